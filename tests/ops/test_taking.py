"""Taking and putting, places, ranges, interpolation, histograms: what the contract's samples do not show."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fad
import fad.numpy as fnp


def test_put_along_axis_returns_the_array_that_numpys_function_would_leave():
    x = np.arange(12.0).reshape(3, 4)
    places = np.array([[0, 3], [1, 1], [2, 0]])
    values = np.array([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])
    want = x.copy()
    np.put_along_axis(want, places, values, 1)
    got, pullback = fad.vjp(lambda x, v: fnp.put_along_axis(x, places, v, 1), x, values)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(fnp.put_along_axis(x, places, values, 1), want)
    in_x, in_values = pullback(np.ones((3, 4)))
    np.testing.assert_array_equal(in_x, [[0, 1, 1, 0], [1, 0, 1, 1], [0, 1, 0, 1]])
    np.testing.assert_array_equal(in_values, [[1, 1], [0, 1], [1, 1]])  # of two values for one place the last is kept
    np.testing.assert_array_equal(x, np.arange(12.0).reshape(3, 4))


def test_take_along_the_order_of_sorting_sorts_each_batch_element():
    x = np.random.default_rng(0).normal(size=(3, 4, 5))

    got = fad.vmap(lambda x, i: np.take_along_axis(x, i, axis=1))(x, np.argsort(-x, axis=2))
    np.testing.assert_array_equal(got, -np.sort(-x, axis=2))


def test_a_plain_table_is_looked_up_at_batched_places_without_splitting_the_batch_elements():
    table = np.arange(10.0).reshape(5, 2)
    runs = []

    def look_up(table, i):
        runs.append(1)
        return fnp.take(table, i, axis=0)

    places = np.array([4, 0, 4, 2])
    np.testing.assert_array_equal(fad.vmap(look_up, in_axes=(None, 0))(table, places), table[places])
    assert len(runs) == 1
    found = fad.grad(lambda table: fad.vmap(look_up, in_axes=(None, 0))(table, places).sum())(table)
    np.testing.assert_array_equal(found, [[1, 1], [0, 0], [1, 1], [0, 0], [2, 2]])


@pytest.mark.parametrize("name", ["compress", "extract"])
def test_lanes_that_keep_different_elements_are_split(name):
    x = np.array([[1.0, -2.0, 3.0], [-1.0, 2.0, -3.0]])
    f = getattr(np, name)
    np.testing.assert_array_equal(fad.vmap(lambda x: f(x > 0, x).sum())(x), [4.0, 2.0])


def test_places_of_nonzero_elements_are_plain_and_select_what_has_a_derivative():
    x = np.array([[0.0, 2.0], [3.0, 0.0]])
    for select in (
        lambda x: x[np.nonzero(x)],
        lambda x: np.ravel(x)[np.flatnonzero(x)],
        lambda x: x[tuple(np.argwhere(x).T)],
        lambda x: x[x != 0],
        lambda x: x[np.unravel_index(np.flatnonzero(x), x.shape)],
    ):
        np.testing.assert_array_equal(fad.grad(lambda x, select=select: np.sum(select(x) ** 2))(x), 2 * x)


def test_choose_chooses_by_batch_element():
    which = np.array([[0, 1], [1, 0]])
    got = fad.vmap(lambda i, a, b: np.choose(i, [a, b]), in_axes=(0, None, 0))(which, 1.0, np.array([5.0, 6.0]))
    np.testing.assert_array_equal(got, [[1.0, 5.0], [6.0, 1.0]])


def test_searching_is_done_by_batch_element_in_sorted_vectors_that_differ():
    a = np.sort(np.random.default_rng(0).normal(size=(4, 6)), axis=1)
    v = np.random.default_rng(1).normal(size=(4, 3))
    for side in ("left", "right"):
        got = fad.vmap(lambda a, v, side=side: np.searchsorted(a, v, side))(a, v)
        np.testing.assert_array_equal(got, [np.searchsorted(r, w, side) for r, w in zip(a, v, strict=True)])


def test_weights_that_fall_into_bins_have_derivatives_and_the_values_binned_have_none():
    places, weights = np.array([0, 2, 2, 1]), np.arange(4.0)
    table = np.array([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(
        fad.grad(lambda w: np.sum(table * np.bincount(places, w)))(weights), [1.0, 100.0, 100.0, 10.0]
    )
    x = np.array([0.1, 0.9, 0.5, 0.45])
    found = fad.grad(lambda w: np.histogram(x, 2, (0.0, 1.0), weights=w)[0][1])(weights)
    np.testing.assert_array_equal(found, [0.0, 1.0, 1.0, 0.0])
    assert fad.grad(lambda x: np.histogram(x, 2, (0.0, 1.0))[0][1] * x[0])(x)[0] == 2


def test_weights_that_fall_into_the_boxes_of_a_grid_have_derivatives_and_the_points_have_none():
    x, y = np.array([0.1, 0.9, 0.5, 1.0, 2.0, np.nan]), np.array([0.9, 0.1, 1.0, 1.0, 0.5, 0.5])
    grid = [np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 1.0])]
    table = np.array([[1.0, 10.0], [100.0, 1000.0]])
    wanted = [10.0, 100.0, 1000.0, 1000.0, 0.0, 0.0]
    found = fad.grad(lambda w: np.sum(table * np.histogram2d(x, y, grid, weights=w)[0]))(np.ones(6))
    np.testing.assert_array_equal(found, wanted)
    points = np.stack([x, y], -1)
    found = fad.grad(lambda w: np.sum(table * np.histogramdd(points, grid, weights=w)[0]))(np.ones(6))
    np.testing.assert_array_equal(found, wanted)
    counts, pulled = fad.vjp(lambda x: np.histogram2d(x, y, grid)[0], x)
    np.testing.assert_array_equal(counts, np.histogram2d(x, y, grid)[0])
    np.testing.assert_array_equal(pulled(table)[0], np.zeros(6))


@pytest.mark.parametrize("bins", [3, (2, 3), [2, np.array([-1.0, 0.0, 2.0])], np.array([-1.0, 0.0, 0.5, 1.0])])
@pytest.mark.parametrize("range", [None, [(-1.0, 1.0), (-2.0, 1.0)]])
@pytest.mark.parametrize("density", [False, True])
def test_histograms_of_traced_points_on_a_grid_are_numpys(bins, range, density):
    x, y = np.random.default_rng(2).normal(size=(2, 20))
    calls = [lambda x, y: np.histogram2d(x, y, bins, range, density)]
    if not isinstance(bins, np.ndarray):
        calls.append(lambda x, y: np.histogramdd([x, y], bins, range, density))
    for call in calls:
        for got, wanted in zip(fad.vjp(call, x, y)[0], call(x, y), strict=True):
            fad.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14), got, wanted)


# --- ranges --------------------------------------------------------------------------------------------------------


def test_a_linspace_moves_with_its_ends():
    weights = np.arange(5.0)
    in_start, in_stop = fad.grad(lambda a, b: np.sum(weights * np.linspace(a, b, 5)), argnums=(0, 1))(1.0, 3.0)
    np.testing.assert_allclose((in_start, in_stop), (2.5, 7.5), rtol=1e-15)
    in_stop = fad.grad(lambda b: np.linspace(0.0, b, 4, endpoint=False)[-1])(2.0)
    assert in_stop == 0.75


def test_a_range_hits_its_traced_end_exactly():
    assert fad.vjp(lambda b: np.linspace(0.1, b, 7)[-1], 0.7)[0] == 0.7
    assert fad.vjp(lambda b: np.geomspace(0.1, b, 7)[-1], 0.7)[0] == 0.7


def test_an_integer_range_between_traced_ends_is_flat():
    value, pullback = fad.vjp(lambda b: np.linspace(0, b, 3, dtype=int) * 1.0, 5.0)
    np.testing.assert_array_equal(value, [0.0, 2.0, 5.0])
    assert pullback(np.ones(3)) == (0.0,)


def test_a_number_of_samples_that_is_traced_is_refused():
    with pytest.raises(TypeError):
        fad.grad(lambda n: np.linspace(0.0, n, n).sum())(3.0)


# --- functions of a variable ---------------------------------------------------------------------------------------

NUMBERS = st.floats(-3.0, 3.0).map(lambda x: round(x, 3))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(NUMBERS, min_size=1, max_size=5, unique=True).map(sorted),
    st.lists(NUMBERS, min_size=1, max_size=5),
    st.sampled_from([{}, {"left": 7.0}, {"right": -7.0}, {"period": 2.0}]),
)
def test_interpolation_gives_numpys_values(xp, x, options):
    x, xp = np.array(x), np.array(xp)
    fp = np.cos(np.arange(xp.size))
    value, _ = fad.vjp(lambda fp: np.interp(x, xp, fp, **options), fp)
    np.testing.assert_allclose(value, np.interp(x, xp, fp, **options), rtol=1e-9, atol=1e-9)


def test_outside_its_points_an_interpolation_is_flat_and_at_a_point_it_has_the_slope_to_the_right():
    xp, fp = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, -2.0])
    slopes = fad.vmap(fad.grad(lambda x: np.interp(x, xp, fp)))(np.array([-1.0, 0.5, 1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(slopes, [0.0, 1.0, -2.0, -2.0, 0.0])


def test_unwrapping_has_derivative_one():
    x = np.array([0.0, 2.0, 4.0, 6.0, 8.0, 1.0, -5.0]) % 6.0
    np.testing.assert_allclose(fad.vjp(np.unwrap, x)[0], np.unwrap(x), rtol=1e-15)
    np.testing.assert_array_equal(fad.jacobian(np.unwrap)(x), np.eye(7))


def test_the_derivative_of_i0_is_i1_as_exactly_as_its_conditioning_allows():
    special = pytest.importorskip("scipy.special")
    x = np.array([1e-8, 1e-3, 0.5, 3.0, 8.0, 20.0, 100.0, 600.0])
    slopes = fad.vmap(fad.grad(np.i0))(x)
    np.testing.assert_array_less(np.abs(slopes / special.i1(x) - 1), 2e-16 * (20 + x))
    np.testing.assert_array_equal(fad.vmap(fad.grad(np.i0))(-x), -slopes)
    second = fad.vmap(fad.grad(fad.grad(np.i0)))(x)
    np.testing.assert_array_less(np.abs(second * 2 / (special.i0(x) + special.iv(2, x)) - 1), 2e-16 * (20 + x))


def test_the_roots_of_a_polynomial_move_as_the_implicit_function_theorem_says():
    p = np.array([1.0, -6.0, 11.0, -6.0])  # roots 3, 2, 1
    value, pullback = fad.vjp(np.roots, p)
    for i, root in enumerate(value):
        unit = np.zeros_like(value)
        unit[i] = 1.0
        np.testing.assert_allclose(
            pullback(unit)[0], -(root ** np.arange(3, -1, -1)) / np.polyval(np.polyder(p), root), rtol=1e-9
        )


def test_a_fitted_polynomial_is_linear_in_the_values_fitted():
    x, y = np.linspace(0.0, 1.0, 6), np.cos(np.arange(6.0))
    slopes = fad.jacobian(lambda y: np.polyfit(x, y, 2))(y)
    np.testing.assert_allclose(slopes @ y, np.polyfit(x, y, 2), rtol=1e-9)


@pytest.mark.parametrize("columns", [(), (3,)])
@pytest.mark.parametrize("options", [{"cov": True}, {"cov": "unscaled"}, {"full": True}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_polyfit_gives_what_numpy_gives_beside_the_coefficients(columns, options, weighted):
    rng = np.random.default_rng(0)
    x, y, along = np.sort(rng.normal(size=8)), rng.normal(size=(8, *columns)), rng.normal(size=(8, *columns))
    w = 1 + rng.random(8) if weighted else None
    fit = lambda x, y: np.polyfit(x, y, 2, w=w, **options)
    found, wanted = fad.vjp(fit, x, y)[0], fit(x, y)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-10)
    total = lambda x, y: sum(np.sum(np.cos(part)) for part in fit(x, y)[:2])
    step = 1e-5
    for f in (fad.grad(total, (0, 1)), fad.jit(fad.grad(total, (0, 1)))):
        slopes = f(x, y)
        found = np.sum(slopes[0] * np.cos(x)) + np.sum(slopes[1] * along)
        there = [total(x + h * np.cos(x), y + h * along) for h in (step, -step)]
        np.testing.assert_allclose(found, (there[0] - there[1]) / (2 * step), rtol=1e-6)


def test_polyfit_refuses_a_covariance_without_more_points_than_coefficients():
    with pytest.raises(ValueError, match="number of data points"):
        fad.grad(lambda x: np.polyfit(x, x, 2, cov=True)[1].sum())(np.arange(3.0))


def test_sliding_windows_average_with_the_derivative_of_the_average():
    x = np.arange(6.0)
    found = fad.grad(lambda x: np.mean(np.lib.stride_tricks.sliding_window_view(x, 3), axis=-1)[0])(x)
    np.testing.assert_allclose(found, [1 / 3, 1 / 3, 1 / 3, 0, 0, 0], rtol=1e-15)


def test_traced_arrays_print_their_numbers():
    texts = []

    def f(x):
        texts.extend([np.array2string(x, precision=2), np.array_str(x), np.array_repr(x), f"{x}", str(x)])
        return x.sum()

    fad.grad(f)(np.array([1.0, 2.5]))
    assert texts == ["[1.  2.5]", "[1.  2.5]", "array([1. , 2.5])", "[1.  2.5]", "[1.  2.5]"]


def test_functions_of_emath_answer_with_complex_numbers_outside_the_real_domain():
    assert fad.grad(lambda x: np.emath.sqrt(x).imag)(-4.0) == -0.25
    assert fad.grad(np.emath.sqrt)(4.0) == 0.25
    np.testing.assert_array_equal(fad.vmap(lambda x: np.abs(np.emath.log(x)))(np.array([1.0, np.e])), [0.0, 1.0])


def test_rounding_a_traced_number_gives_a_plain_whole_number():
    import math

    kept = []

    def f(x):
        return (round(x) + math.floor(x) + math.ceil(x) + math.trunc(x)) * x

    assert fad.grad(f)(1.6) == 2 + 1 + 2 + 1
    fad.grad(lambda x: kept.append(round(x)) or x)(2.5)
    assert kept == [2]
    assert type(kept[0]) is int
    np.testing.assert_array_equal(fad.vmap(f)(np.array([1.6, 2.2])), [1.6 * 6, 2.2 * 9])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[3, 2, 1], [3, 1, 1, 0], [1, 1, 1], [0, 1, 1, 2]])
@pytest.mark.parametrize("dtype", [float, np.int64, np.uint8])
def test_a_number_on_an_edge_falls_into_numpys_bin_whichever_way_the_edges_run(bins, right, dtype):
    x, bins = np.array([0, 1, 2, 3]).astype(dtype), np.array(bins).astype(dtype)
    want = np.digitize(x, bins, right)
    np.testing.assert_array_equal(fad.jit(lambda x, bins: np.digitize(x, bins, right))(x, bins), want)
    np.testing.assert_array_equal(fad.vmap(lambda x: np.digitize(x, bins, right))(x), want)
