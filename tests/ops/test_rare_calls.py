"""Rare ways of calling NumPy's functions: traced arrays get the values of plain ones, or their kind of error."""

import numpy as np
import pytest

import fad
import fad.numpy as fnp

X = np.array([[1.0, 0.3], [0.2, 2.0]])
MASK = X > 1
WEIGHTS = np.array([1.0, 3.0])
N = np.array([[9, 2], [1, 18]])
by_weight = {"method": "inverted_cdf"}
windows = np.lib.stride_tricks.sliding_window_view

VALUES = [
    lambda x: np.size(x, 1) * x,
    lambda x: np.where(x > 0.25, x, np.isrealobj(x) + np.size(x, 0)),
    lambda x: np.where(np.can_cast(x, np.float32), 0.0, x),
    lambda x: x.astype(np.common_type(x, np.ones(2, np.float32))).astype(np.min_scalar_type(x)),
    lambda x: x * (np.shares_memory(x, x) and not np.may_share_memory(x, 2 * x)),
    lambda x: np.vander(x[0], 0),
    lambda x: np.fft.irfftn(x, (3, 4, 5), axes=(0, 0, 1)),
    lambda x: np.linalg.norm(x[0], -1.5),
    lambda x: np.linalg.matrix_rank(x[0]),
    lambda x: np.linalg.svd(x + x.T, compute_uv=False, hermitian=True),
    lambda x: np.roots(x[0] * 0),
    lambda x: np.roots(np.stack([x[0, 0], 0 * x[0, 0], 0 * x[0, 0]])),
    lambda x: np.quantile(x, np.full((2, 2), 0.5)),
    lambda x: np.sum(x[0, 0], axis=-1),
    lambda x: np.max(x[0, 0], axis=0),
    lambda x: np.add.reduce(x, initial=3.0),
    lambda x: np.maximum.reduce(x, 1, initial=1.5),
    lambda x: np.where(np.all(x, axis=0, where=MASK), x, 0.0),
    lambda x: x[np.any(x, axis=1, where=np.array([True, False]))],
    lambda x: x[np.where(x > 0.25)],
    lambda x: np.linalg.pinv(x, np.array(0.5)),
    lambda x: round(x[0, 1], 1),
    lambda x: np.argsort(x[0, 0], axis=None) + x,
    lambda x: np.nanmean(x, dtype=np.float32),
    lambda x: np.nanvar(x, correction=1),
    lambda x: np.stack(np.average(x, 0, returned=True)),
    lambda x: np.corrcoef(x[0]),
    lambda x: np.delete(x, [True, False], 0),
    lambda x: np.delete(x, np.array([False, True]), 1),
    lambda x: x.view(np.float64),
    lambda x: np.sin(x, dtype=np.float32),
    lambda x: np.sign(np.add(x, [1.0, -3.0], dtype=np.float32), dtype=np.float64),
    lambda x: np.less(x, 1.0, dtype=bool) * 1.0,
    lambda x: x[x[0] > 0.5] * x.nbytes,
]


@pytest.mark.parametrize("f", VALUES)
def test_a_traced_array_gives_the_value_of_a_plain_one(f):
    wanted = np.asarray(f(X))
    for found in (fad.vjp(f, X)[0], fad.jit(f)(X), fad.vmap(f)(X[None])[0]):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
        assert np.asarray(found).dtype == wanted.dtype


@pytest.mark.parametrize("mode", ["linear_ramp", "mean", "median"])
def test_padded_vectors_of_integers_are_rounded_as_numpy_rounds(mode):
    np.testing.assert_array_equal(fad.vmap(lambda x: np.pad(x, 2, mode))(N[None])[0], np.pad(N, 2, mode))


def test_a_function_of_a_part_is_given_that_part_alone():
    f = lambda x: np.piecewise(x, [x > 0, x <= 0], [lambda v: np.log(v) - np.mean(v), 0.0])
    x = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(fad.vmap(f)(np.stack([x, x[::-1]])), [f(x), f(x[::-1])], rtol=1e-15)
    np.testing.assert_allclose(fad.jacobian(f)(x), [[0, 0, 0], [0, 1.5, -0.5], [0, -0.5, 0.0]], rtol=1e-15)


def test_a_number_in_parts_takes_a_traced_condition():
    f = lambda x: x * np.piecewise(np.float64(2.0), [x > 0], [lambda v: 2 * v, lambda v: v])
    for transform in (fad.grad, fad.jit, lambda f: fad.jit(fad.grad(f))):
        assert transform(f)(1.0) == 4.0
        assert transform(f)(np.array(1.0)) == 4.0


ERRORS = [
    lambda x: np.block(((x, x),)),
    lambda x: np.block([[x], []]),
    lambda x: np.rot90(x, 1, (0,)),
    lambda x: np.roll(x, [[1]], [0]),
    lambda x: np.cross(np.ones(4) * x[0, 0], np.ones(4)),
    lambda x: np.linalg.cross(x, x),
    lambda x: np.convolve(x[0], np.ones(0)),
    lambda x: np.convolve(x[0], x[0], "no such mode"),
    lambda x: np.correlate(x[0], np.ones(0)),
    lambda x: np.correlate(x[0][:0], np.ones(2)),
    lambda x: np.diag_indices_from(x[:1]),
    lambda x: np.diff(x, -1),
    lambda x: np.diff(x[0, 0]),
    lambda x: np.gradient(x[:1]),
    lambda x: np.gradient(x, edge_order=3),
    lambda x: np.gradient(x, 1.0, 2.0, 3.0),
    lambda x: np.gradient(x, x, x),
    lambda x: np.gradient(x, np.ones(3), 1.0),
    lambda x: np.einsum(x, [0, 77]),
    lambda x: np.einsum("ij,jk", x),
    lambda x: np.einsum("i5->i", x),
    lambda x: np.einsum("ijk", x),
    lambda x: np.einsum("...i->i", x),
    lambda x: np.einsum("ij->ik", x),
    lambda x: np.einsum("ii", x[:1]),
    lambda x: np.histogram(x, range=(2, 1)),
    lambda x: np.histogram(x * np.inf),
    lambda x: np.histogram2d(x[0], x[1], bins=[np.ones((2, 2)), 2]),
    lambda x: np.linalg.qr(x, "no such mode"),
    lambda x: np.linalg.qr(x[0]),
    lambda x: np.linalg.eigh(x, "K"),
    lambda x: np.linalg.matrix_power(x[:1], 2),
    lambda x: np.linalg.matrix_power(x, 1.5),
    lambda x: np.linalg.multi_dot([x]),
    lambda x: np.linalg.multi_dot([x, np.stack([x, x]), x]),
    lambda x: np.linalg.outer(x, x[0]),
    lambda x: np.linalg.pinv(x, rcond=0.1, rtol=0.1),
    lambda x: np.linalg.lstsq(x, np.ones(3)),
    lambda x: np.linalg.tensorsolve(x[:1], np.ones(1)),
    lambda x: np.linalg.tensorinv(x, 0),
    lambda x: np.apply_along_axis(np.sum, 0, x[:, :0]),
    lambda x: np.apply_over_axes(lambda a, i: a[0, 0], x, [0]),
    lambda x: windows(x, (2,)),
    lambda x: np.linalg.norm(x, axis=(0, 0)),
    lambda x: np.linalg.norm(np.stack([x, x]), 2),
    lambda x: np.polyint(x[0], -1),
    lambda x: np.poly(x[:1]),
    lambda x: np.roots(x),
    lambda x: np.polyfit(x[0], x[1], -1),
    lambda x: np.polyfit(x, x[1], 1),
    lambda x: np.polyfit(x[0][:0], x[1], 1),
    lambda x: np.polyfit(x[0], x[0, 0], 1),
    lambda x: np.polyfit(x[0], x[1][:1], 1),
    lambda x: np.polyfit(x[0], x[1], 1, w=x),
    lambda x: np.polyfit(x[0], x[1], 1, w=x[0][:1]),
    lambda x: np.isposinf(x * (1 + 1j)),
    lambda x: np.quantile(x, 0.5, weights=np.ones((2, 2)), method="linear"),
    lambda x: np.quantile(x, 0.5, weights=-np.ones((2, 2)), **by_weight),
    lambda x: np.quantile(x, 0.5, weights=np.ones(3), axis=0, **by_weight),
    lambda x: np.quantile(x, 0.5, weights=np.ones(3), **by_weight),
    lambda x: np.quantile(x, np.full((1, 2, 2), 0.5)),
    lambda x: np.quantile(x[:0], 0.5),
    lambda x: np.max(x, where=x > 0),
    lambda x: np.logaddexp.reduce(x * 1j),
    lambda x: np.cumulative_sum(x),
    lambda x: np.add.accumulate(x[0, 0]),
    lambda x: np.add.accumulate(x, (0, 1)),
    lambda x: np.subtract.reduce(x, (0, 1)),
    lambda x: np.add.reduceat(x, [0, 5]),
    lambda x: np.where(x, x),
    lambda x: np.select([x > 1], [x, x]),
    lambda x: np.piecewise(x, [x > 1], [1, 2, 3]),
    lambda x: np.piecewise(x, x > 1, [1]),
    lambda x: np.sort(x, order="a"),
    lambda x: np.sort(x[0, 0]),
    lambda x: np.var(x, ddof=1, correction=1),
    lambda x: np.nanvar(x, ddof=1, correction=1),
    lambda x: np.average(x, weights=np.ones(2)),
    lambda x: np.average(x, 0, weights=np.ones(3)),
    lambda x: np.cov(np.stack([x, x])),
    lambda x: np.nanmax(x[:0]),
    lambda x: np.nanargmax(x * np.nan, axis=0),
    lambda x: np.reshape(x, -1, order="K"),
    lambda x: np.matrix_transpose(x[0]),
    lambda x: np.broadcast_to(x, (2,)),
    lambda x: np.concatenate([x[0, 0], x[0, 0]]),
    lambda x: np.digitize(x, np.array([1.0, 3.0, 2.0])),
    lambda x: np.unravel_index((x * 9).astype(int), (2, 2)),
    lambda x: np.ravel_multi_index(((x * 9).astype(int), (x * 9).astype(int)), (2, 2)),
    lambda x: np.ix_(x),
    lambda x: np.bincount(np.array([0, -1]), x[0]),
    lambda x: np.vander(x[0], -1),
    lambda x: np.vander(x[0], 2.0),
    lambda x: np.delete(x, [True], 0),
    lambda x: np.delete(x, [True, False, True], 0),
    lambda x: np.size(x, 5),
    lambda x: np.multiply(x, x, dtype=int),
    lambda x: np.abs(x, dtype=complex),
    lambda x: x + {},
    lambda x: len(x[0, 0]),
    lambda x: [*x[0, 0]],
    lambda x: [1, 2, 3][x[0].astype(int)],
    lambda x: 1 if x[0] > 1 else 2,
    lambda x: x.to_device("no such device"),
    lambda x: fnp.vstack(7.0 if type(x) is np.ndarray else x[0, 0]),
    lambda x: fnp.unstack(x[0, 0]),
    lambda x: fnp.asarray_chkfinite(x * np.inf),
    lambda x: fnp.concatenate([]),
    lambda x: fnp.stack([]),
]


@pytest.mark.parametrize("f", ERRORS)
def test_a_traced_array_gives_the_kind_of_error_of_a_plain_one(f):
    with pytest.raises(Exception) as wanted:
        f(X)
    for attempt in (
        lambda: fad.vjp(f, X), lambda: fad.jvp(f, (X,), (X,)), lambda: fad.linearize(f, X), lambda: fad.vmap(f)(X[None])
    ):  # fmt: skip
        with pytest.raises(wanted.type) as found:
            attempt()
        assert str(found.value).strip()


@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_powers_of_a_traced_vector_have_the_values_dtype_and_layout_of_numpys(dtype, increasing):
    x = np.array([0.0, -1.5, 2.0, np.inf]).astype(dtype)
    for count in (1, 2, 5):
        with np.errstate(invalid="ignore"):
            wanted = np.vander(x, count, increasing)
            found = fad.vjp(lambda x, n=count: np.vander(x, n, increasing), x)[0]
        np.testing.assert_array_equal(found, wanted)
        assert (found.dtype, found.strides) == (wanted.dtype, wanted.strides)


def test_an_empty_operand_of_a_convolution_is_named():
    with pytest.raises(ValueError, match="a cannot be empty"):
        fad.vjp(lambda x: np.convolve(x[:0], x), X[0])


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: x.view(int), "astype"),
        (lambda x: x.view(np.recarray), "make a recarray of what the transform returns"),
        (lambda x: np.subtract.reduce(x, initial=1.0), "no initial"),
        (lambda x: np.sin(x, where=x > 1), "np.where"),
        (lambda x: np.float_power(x, 2, where=x > 1), "np.where"),
        (lambda x: np.sin(x, signature="d->d"), "signature"),
        (lambda x: fad.jvp(lambda y: y * np.array([x, None]), (X,), (X,)), "Python objects"),
        (lambda x: np.take(x, [0.5]), "integers"),
    ],
)
def test_what_numpy_can_do_and_fad_cannot_says_what_to_write(f, said):
    with pytest.raises((fad.errors.FadError, TypeError, ValueError), match=said):
        fad.vjp(f, X)


@pytest.mark.parametrize(
    "mapped",
    [
        lambda f: fad.numpy.apply_along_axis(f, 0, np.array([1.0, 2.0])),
        lambda f: fad.numpy.apply_over_axes(lambda v, axis: f(v), np.array([1.0, 2.0]), [0]),
        lambda f: fad.numpy.piecewise(np.array([1.0, 2.0]), [np.array([True, True])], [f]),
        lambda f: fad.numpy.vectorize(f)(np.array([1.0, 2.0])),
    ],
    ids=["apply_along_axis", "apply_over_axes", "piecewise", "vectorize"],
)
def test_a_function_mapped_over_plain_numbers_may_use_traced_ones(mapped):
    assert fad.grad(lambda a: np.sum(mapped(lambda v: np.sin(a) * v)))(0.0) == 3.0


BITS = np.array([[True, False, True, True, False, False, True, False, True], [False] * 4 + [True] * 5])
OF_BITS = [
    lambda b: np.packbits(b), lambda b: np.packbits(b, 0), lambda b: np.packbits(b, axis=-1, bitorder="little"),
    lambda b: np.packbits(b[0, 0]), lambda b: np.packbits(b * 3, axis=1), lambda b: np.packbits(b[:, :0], axis=1),
    lambda b: np.unpackbits(np.packbits(b), count=5), lambda b: np.unpackbits(np.packbits(b, 1), axis=1, count=-7),
    lambda b: np.unpackbits(np.packbits(b, 0), 0, None, "little"), lambda b: np.packbits(b, axis=2),
    lambda b: np.packbits(b * 1.0), lambda b: np.unpackbits(b), lambda b: np.packbits(b[0, 0], axis=-1),
    lambda b: np.packbits(b[0, 0], axis=1),
]  # fmt: skip


@pytest.mark.parametrize("f", OF_BITS)
def test_bits_are_packed_and_unpacked_as_in_numpy(f):
    jitted = fad.jit(f)
    calls = [jitted, jitted, lambda b: fad.vmap(f)(np.stack([b, ~b]))[0], lambda b: fad.vmap(f, 2)(b[..., None])[0]]
    try:
        wanted = f(BITS)
    except (TypeError, ValueError) as error:
        for call in calls:
            with pytest.raises(type(error)):
                call(BITS)
        return
    for call in calls:
        np.testing.assert_array_equal(call(BITS), wanted)
        assert call(BITS).dtype == wanted.dtype
    np.testing.assert_array_equal(jitted(~BITS), f(~BITS))


@pytest.mark.parametrize("dtype", ["b", "H", "f4", "f8", "c8", "c16", "?"])
def test_sort_complex_is_numpys(dtype):
    x = np.array([[3, 1, 2], [0, 5, 4]]).astype(dtype) * np.array(1, dtype)
    wanted = np.sort_complex(x)
    for got in (fad.jit(np.sort_complex)(x), fad.vmap(np.sort_complex)(x), fnp.sort_complex(x)):
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype
    if x.dtype.kind in "fc":
        y, pullback = fad.vjp(np.sort_complex, x)
        assert y.dtype == wanted.dtype
        np.testing.assert_array_equal(pullback(y)[0], x)


def test_a_shift_that_is_no_integer_and_a_shape_that_is_none_are_read_as_by_numpy():
    x = np.arange(4.0)
    np.testing.assert_array_equal(fad.jit(lambda x: np.roll(x, [0.6, 0.7, 1.5]))(x), np.roll(x, [0.6, 0.7, 1.5]))
    square = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(x.reshape(None) ** 2))(square), 2 * square)


NARROW = np.array([0.0, 1.0, 3.0], np.float32)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: np.select([x > 2, x > 0], [x, 2], 0), NARROW),
        (lambda x: np.select([x > 2], [2.5], 1j), NARROW),
        (lambda x: np.select([x > 2], [2.5], np.float64(1.0)), NARROW),
        (lambda x: np.select([MASK[0, 0]], [1.0], x[0]), NARROW),  # NumPy does not dispatch on the default
        (lambda x: np.select([x > 2, True], [x, 2 * x]), NARROW),
        (lambda x: np.linspace(False, x, 4), NARROW),
        (lambda x: np.linspace(np.int8(1), x, 4), NARROW),
        (lambda x: np.linspace(1, x, 4), NARROW),
        (lambda x: np.float_power(x, 2), NARROW.astype(np.longdouble)),
        (lambda x: np.float_power(x, 2.5), NARROW),
        (lambda x: (x > 0) ** 2, NARROW),
        (lambda x: (x > 0) ** 3, NARROW),
        (lambda x: np.where(1, x, 0.0), NARROW),
        (lambda x: np.where(0, 1.0, x) + np.where(0, x, 1.0), NARROW),
        (lambda x: np.full(3, x[None]) + np.full_like(x, x[None, None]), NARROW),
        (lambda x: np.isclose(x[0], 1.0), NARROW),
        (lambda x: np.bincount(x > 0), NARROW),
        (lambda x: np.linspace(NARROW[1], x > 0, 3), NARROW),
        (lambda x: fnp.at(NARROW)[1].set(np.float64(1) * x[2]), NARROW),
    ],
)
def test_types_beside_numbers_are_numpys(f, x):
    wanted = f(x)
    for y in (fad.jit(f)(x), fad.jvp(f, (x,), (x,))[0]):
        assert (type(y), y.dtype) == (type(wanted), wanted.dtype)
        np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_select_wants_booleans():
    for run in (fad.jit, lambda f: lambda x: fad.jvp(f, (x,), (x,))):
        with pytest.raises(TypeError, match="should be boolean"):
            run(lambda x: np.select([np.arange(3)], [x]))(NARROW)
