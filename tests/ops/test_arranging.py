"""Arranging, padding, diagonals and taking: operations whose every result element is one of the operand's elements.

For these the derivative is known exactly: run the operation on the places 0, 1, 2 … instead of values, and each
cotangent belongs to the place that stands where it stands.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fad
import fad.numpy as fnp

EXAMPLES = settings(max_examples=60, deadline=None)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


def assert_moves_elements(f, shape):
    """Assert that value, both derivatives and the batched value of `f` follow the elements that it moves."""
    n = int(np.prod(shape))
    places = f(np.arange(1, n + 1).reshape(shape))  # 0 stands for what is none of the elements
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=shape), rng.normal(size=shape)
    wanted = np.concatenate(([0.0], x.ravel()))[places]
    value, pullback = fad.vjp(f, x)
    np.testing.assert_array_equal(value, wanted)
    np.testing.assert_array_equal(fad.jvp(f, (x,), (t,))[1], np.concatenate(([0.0], t.ravel()))[places])
    ct = rng.normal(size=places.shape)
    summed = np.bincount(places.ravel(), weights=ct.ravel(), minlength=n + 1)[1:].reshape(shape)
    np.testing.assert_allclose(pullback(ct)[0], summed, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(fad.vmap(f)(np.stack([x, t])), np.stack([f(x), f(t)]))


def _axes(ndim):
    return st.integers(-ndim, ndim - 1)


@EXAMPLES
@given(st.data(), SHAPES)
def test_flips_and_rolls_move_elements(data, shape):
    axis = data.draw(st.one_of(st.none(), _axes(len(shape))))
    shift = data.draw(st.integers(-7, 7))
    plane = data.draw(st.sampled_from([(0, 1), (1, 0), (-1, 0)]))
    assert_moves_elements(lambda x: np.flip(x, axis), shape)
    assert_moves_elements(lambda x: np.roll(x, shift, axis), shape)
    assert_moves_elements(lambda x: np.roll(x, (shift, 1), (0, -1)), shape)
    if len(shape) > 1:
        assert_moves_elements(lambda x: np.rot90(x, shift, plane), shape)


@EXAMPLES
@given(st.data(), SHAPES)
def test_repeats_move_elements(data, shape):
    axis = data.draw(st.one_of(st.none(), _axes(len(shape))))
    n = int(np.prod(shape)) if axis is None else shape[axis]
    times = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    reps = tuple(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)))
    new_shape = tuple(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)))
    assert_moves_elements(lambda x: np.repeat(x, 2, axis), shape)
    assert_moves_elements(lambda x: np.repeat(x, times, axis), shape)
    assert_moves_elements(lambda x: np.tile(x, reps), shape)
    assert_moves_elements(lambda x: np.resize(x, new_shape), shape)


@EXAMPLES
@given(st.data(), SHAPES, st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
def test_pads_move_elements(data, shape, mode):
    widths = [data.draw(st.tuples(st.integers(0, 6), st.integers(0, 6))) for _ in shape]
    assert_moves_elements(lambda x: np.pad(x, widths, mode), shape)


@EXAMPLES
@given(st.data(), SHAPES)
def test_splits_deletions_and_diagonals_move_elements(data, shape):
    axis = data.draw(_axes(len(shape)))
    n = shape[axis]
    places = data.draw(st.lists(st.integers(-n, n - 1), max_size=4))
    parts = data.draw(st.integers(1, 4))
    k = data.draw(st.integers(-4, 4))
    assert_moves_elements(lambda x: np.delete(x, places, axis), shape)
    assert_moves_elements(lambda x: np.array_split(x, parts, axis)[-1], shape)
    assert_moves_elements(lambda x: np.array_split(x, sorted(abs(p) for p in places), axis)[0], shape)
    assert_moves_elements(lambda x: np.diagflat(x, k), shape)
    assert_moves_elements(lambda x: np.tril(x, k), shape)
    assert_moves_elements(lambda x: np.triu(x, k), shape)
    if len(shape) > 1:
        i, j = data.draw(st.permutations(range(len(shape))))[:2]
        assert_moves_elements(lambda x: np.diagonal(x, k, i, j), shape)
    if len(shape) < 3:
        assert_moves_elements(lambda x: np.diag(x, k), shape)


@EXAMPLES
@given(st.data(), SHAPES, st.sampled_from(["wrap", "clip", "raise"]))
def test_takes_move_elements(data, shape, mode):
    axis = data.draw(st.one_of(st.none(), _axes(len(shape))))
    n = int(np.prod(shape)) if axis is None else shape[axis]
    bound = 0 if mode == "raise" else 5
    places = np.array(data.draw(st.lists(st.integers(-n - bound, n - 1 + bound), max_size=5)), int)
    assert_moves_elements(lambda x: np.take(x, places, axis, mode=mode), shape)


INSERTIONS = [
    (1, None), (-1, None), ([1, 1, 4], None), ([], None), (slice(0, 3), None), (np.array([2]), None),
    (1, 0), ([0, 1], 1), (-1, 1), ([2], 0), (slice(None, None, 2), 1),
]  # fmt: skip


@pytest.mark.parametrize(("places", "axis"), INSERTIONS)
def test_an_insertion_is_numpys_and_linear_in_array_and_values(places, axis):
    x = np.linspace(1.0, 2.0, 12).reshape(3, 4)
    values = np.array(0.5)
    want = np.insert(x, places, values, axis)
    got, pullback = fad.vjp(lambda x, v: fnp.insert(x, places, v, axis), x, values)
    np.testing.assert_array_equal(got, want)
    ct = np.cos(np.arange(want.size)).reshape(want.shape)
    in_x, in_values = pullback(ct)
    inserted = np.isin(want, 0.5)
    np.testing.assert_array_equal(in_x.ravel(), ct[~inserted])
    np.testing.assert_allclose(in_values, ct[inserted].sum(), rtol=1e-12, atol=1e-14)


def test_inserted_rows_are_placed_as_numpy_places_them():
    x = np.arange(6.0).reshape(2, 3)
    for places, values, axis in [
        (1, [7.0, 8.0, 9.0], 0), ([1], [[7.0, 8.0, 9.0], [1.0, 1.0, 1.0]], 0), (1, [7.0, 8.0], 1),
        ([1, 2], [7.0, 8.0], 1),
        ([1], [[7.0], [8.0]], 1), (1, [[7.0, 8.0]], 1),
    ]:  # fmt: skip
        value, _ = fad.vjp(lambda x, p=places, v=values, a=axis: np.insert(x, p, v, a), x)
        np.testing.assert_array_equal(value, np.insert(x, places, values, axis))


PADS = [
    ("constant", dict(constant_values=2.0)), ("constant", dict(constant_values=((1.0, 2.0), (3.0, 4.0)))),
    ("constant", dict(constant_values=(1.0, 2.0))), ("linear_ramp", dict(end_values=1.5)),
    ("linear_ramp", dict(end_values=((1.0, 2.0), (3.0, 4.0)))), ("mean", {}), ("mean", dict(stat_length=2)),
    ("maximum", dict(stat_length=((1, 2), (3, 9)))), ("minimum", {}), ("reflect", dict(reflect_type="odd")),
    ("symmetric", dict(reflect_type="odd")),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "options"), PADS)
@pytest.mark.parametrize("widths", [2, (1, 9), ((0, 3), (11, 1)), ((7,), (8,))])
def test_every_mode_of_pad_gives_numpys_values(mode, options, widths):
    x = np.random.default_rng(1).normal(size=(3, 4))
    value, _ = fad.vjp(lambda x: np.pad(x, widths, mode, **options), x)
    np.testing.assert_allclose(value, np.pad(x, widths, mode, **options), rtol=1e-13, atol=1e-13)


def test_pad_takes_traced_constants_and_end_values_through_fad_numpy():
    x = np.ones((2, 2))
    assert fad.grad(lambda c: fnp.pad(x, 1, constant_values=c).sum())(0.5) == 12.0
    found = fad.grad(lambda c: fnp.pad(x, ((0, 1), (2, 0)), constant_values=c).sum())(np.zeros((2, 2)))
    np.testing.assert_array_equal(found, [[0.0, 2.0], [6.0, 0.0]])
    assert fad.grad(lambda c: fnp.pad(np.ones(2), (0, 2), "linear_ramp", end_values=c).sum())(0.5) == 1.5


def test_pad_takes_a_mapping_of_axes_to_widths():
    value, _ = fad.vjp(lambda x: fnp.pad(x, {-1: (1, 2)}), np.ones((2, 2)))
    np.testing.assert_array_equal(value, np.pad(np.ones((2, 2)), ((0, 0), (1, 2))))


@pytest.mark.parametrize("mode", ["empty", lambda vector, width, axis, kwargs: None])
def test_pad_refuses_modes_that_leave_values_undefined_or_write_in_place(mode):
    with pytest.raises(fad.errors.MissingRuleError, match=r"np\.concatenate"):
        fad.grad(lambda x: np.pad(x, 1, mode).sum())(np.ones(2))


ILLEGAL = [
    lambda x: np.reshape(x, (5, -1)), lambda x: np.reshape(x, (-1, -1)), lambda x: np.moveaxis(x, (0, 1), 0),
    lambda x: np.transpose(x, (0, 0)), lambda x: np.transpose(x, (0,)), lambda x: np.swapaxes(x, 0, 2),
    lambda x: np.squeeze(x, 0), lambda x: np.concatenate([x, x[0]]), lambda x: np.concatenate([x, x[:, :1]]),
    lambda x: np.stack([x, x[0]]), lambda x: np.stack([x], axis=4), lambda x: np.split(x, 2, axis=0),
    lambda x: np.array_split(x, 0), lambda x: np.hsplit(x[0, 0], 1), lambda x: np.vsplit(x[0], 1),
    lambda x: np.dsplit(x, 1),
    lambda x: np.broadcast_to(x, (2, 4)), lambda x: np.broadcast_arrays(x, np.ones(3)), lambda x: np.flip(x, 2),
    lambda x: np.fliplr(x[0]), lambda x: np.flipud(x[0, 0]), lambda x: np.rot90(x, 1, (0, 0)), lambda x: np.rot90(x[0]),
    lambda x: np.rot90(x, 1, (0, 2)), lambda x: np.roll(x, 1, 3), lambda x: np.roll(x, (1, 2, 3), (0, 1)),
    lambda x: np.repeat(x, -1), lambda x: np.repeat(x, [1, 2], axis=1), lambda x: np.resize(x, (-1, 2)),
    lambda x: np.pad(x, -1), lambda x: np.pad(x, 1.5), lambda x: np.pad(x, 1, "no such mode"),
    lambda x: np.pad(x, (1, 2, 3)),
    lambda x: np.pad(x, 1, "edge", constant_values=1), lambda x: np.pad(x[:0], 1, "edge"),
    lambda x: np.pad(x, 1, "maximum", stat_length=0), lambda x: np.delete(x, 19), lambda x: np.insert(x, 19, 1.0),
    lambda x: np.diag(x[None]), lambda x: np.diagonal(x[0]), lambda x: np.diagonal(x, 0, 1, 1), lambda x: np.vander(x),
    lambda x: np.block([[x], x]), lambda x: np.block([]), lambda x: np.meshgrid(x[0], indexing="zz"),
    lambda x: np.rollaxis(x, 3), lambda x: np.rollaxis(x, 0, 4), lambda x: np.take(x, 99),
    lambda x: np.take(x, 0, axis=5),
    lambda x: np.take(x, 0, mode="no such mode"), lambda x: np.take_along_axis(x, np.zeros(3, int), 0),
    lambda x: np.take_along_axis(x, np.zeros((3, 4)), 0), lambda x: np.compress(np.ones((2, 2), bool), x),
    lambda x: np.compress([True] * 6, x, axis=0), lambda x: np.choose(np.array([5]), [x, x]),
    lambda x: np.expand_dims(x, 5), lambda x: np.expand_dims(x, (0, 0)), lambda x: np.tril_indices_from(x[0]),
    lambda x: np.linspace(x[0], x[1], -1), lambda x: np.geomspace(x[0] * 0.0, 1.0, 3), lambda x: x[5],
    lambda x: x[0, 0, 0],
    lambda x: x[np.array([9])], lambda x: x[np.ones(7, bool)], lambda x: np.interp(x, [1.0, 2.0], [1.0]),
    lambda x: np.polyder(x[0], -1), lambda x: np.polyint(x[0], 3, [1.0, 2.0]),
    lambda x: np.apply_along_axis(np.sum, 7, x),
    lambda x: np.histogram(x, 0), lambda x: np.histogram(x, np.array([1.0, 0.0])), lambda x: np.bincount([1, 2], x[0]),
    lambda x: np.histogram2d(x[0], x[1], [1, 2, 1]), lambda x: np.histogram2d(x[0], x[1, :2]),
    lambda x: np.histogramdd(x, 0), lambda x: np.histogramdd(x, 2.5), lambda x: np.histogramdd(x, [1, 2]),
    lambda x: np.histogramdd(x, 2, [(0.0, 1.0)]), lambda x: np.histogram2d(x[0], x[1], [[1.0, 0.0], 2]),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, (5, 5)), lambda x: np.unravel_index(99, x.shape),
]  # fmt: skip


@pytest.mark.parametrize("call", ILLEGAL, ids=range(len(ILLEGAL)))
def test_what_numpy_refuses_is_refused_with_the_same_type_of_error(call):
    x = np.linspace(0.5, 2.0, 12).reshape(3, 4)
    with pytest.raises(Exception) as wanted:
        call(x)
    with pytest.raises(wanted.type):
        fad.vjp(call, x)


def test_results_of_joining_keep_numpys_dtype():
    a, b = np.ones(2, np.float32), np.ones(2)
    for f in (np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, np.block):
        value, pullback = fad.vjp(lambda a, f=f: f([a, b]), a)
        assert value.dtype == f([a, b]).dtype == np.float64
        assert pullback(np.ones_like(value))[0].dtype == np.float32
    assert fad.vjp(lambda a: np.concatenate([a, b], dtype=np.float32), a)[0].dtype == np.float32


def test_trim_zeros_trims_and_its_derivative_lands_where_the_kept_elements_were():
    x = np.array([0.0, 0.0, 1.5, 0.0, 2.0, 0.0])
    for trim in ("fb", "f", "b"):
        value, pullback = fad.vjp(lambda x, trim=trim: np.trim_zeros(x, trim), x)
        np.testing.assert_array_equal(value, np.trim_zeros(x, trim))
        assert pullback(np.ones_like(value))[0].sum() == value.size
    assert fad.vjp(np.trim_zeros, np.zeros(3))[0].size == 0


def test_a_grid_of_traced_vectors_sends_each_cotangent_back_to_its_vector():
    x, y = np.arange(3.0), np.arange(4.0)
    _, pullback = fad.vjp(lambda x, y: np.meshgrid(x, y), x, y)
    ones = np.ones((4, 3))
    in_x, in_y = pullback([ones, 2 * ones] if isinstance(np.meshgrid(x, y), list) else (ones, 2 * ones))
    np.testing.assert_array_equal(in_x, [4.0] * 3)
    np.testing.assert_array_equal(in_y, [6.0] * 4)


@pytest.mark.parametrize("dtype", [None, np.float32])
def test_a_range_between_single_precision_numbers_rounds_as_numpys(dtype):
    for seed in range(20):
        start, stop, step = np.random.default_rng(seed).uniform([-2, 3, 0.2], [1, 6, 0.9]).astype(np.float32)
        f = lambda start, step, stop=stop: fnp.arange(start, stop, step, dtype=dtype)
        found, _ = fad.jvp(f, (start, step), (start, step))
        wanted = np.arange(start, stop, step, dtype=dtype)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype else 1e-15)


def test_a_number_has_no_edges_to_pad():
    x = np.array(3.0)
    assert fad.grad(lambda x: np.pad(x, 1) * 2.0)(3.0) == 2.0
    assert np.shape(fad.vjp(lambda x: np.pad(x, ((1, 2),)), x)[0]) == np.shape(np.pad(x, ((1, 2),))) == ()
