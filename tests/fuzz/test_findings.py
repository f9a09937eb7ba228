"""What random programs found, each as the smallest program that shows it: fad does what a plain run does."""

import itertools

import numpy as np
import pytest
from numpy_versions import BEFORE_2_4

import fad
import fad.testing
from fad import tree

X = np.array([0.5, -1.25, 2.0])


@pytest.mark.parametrize("axis", [None, 0, 1] if BEFORE_2_4 else [None, 0, 1, (0, 1)])  # several at once since 2.4
@pytest.mark.parametrize("trim", ["f", "b", "fb"])
def test_trim_zeros_trims_every_axis(trim, axis):
    x = np.pad(np.arange(1.0, 7.0).reshape(2, 3), 1)

    def f(x):
        return np.trim_zeros(x, trim, axis=axis)

    wanted = f(x)
    y, t = fad.jvp(f, (x,), (x,))
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(t, wanted)
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(f(x) ** 2))(x), 2 * x)
    np.testing.assert_array_equal(fad.jit(f)(x), wanted)
    assert fad.jvp(f, (0 * x,), (x,))[0].shape == f(0 * x).shape


def test_vmap_of_a_product_of_numbers_raises_as_matmul_does():
    def f(x):
        return np.matmul(x, x)

    for product in (f, lambda x: x @ X, lambda x: X @ x):
        with pytest.raises(ValueError, match="does not have enough dimensions"):
            product(np.float64(1.0))
        with pytest.raises(ValueError, match="does not have enough dimensions"):
            fad.vmap(product)(X)


OF_MATRICES = "inv det slogdet cholesky eigh eigvalsh eig eigvals svd svdvals qr pinv"


@pytest.mark.parametrize("name", OF_MATRICES.split())
def test_a_batch_of_vectors_is_no_matrix_to_linear_algebra(name):
    f = getattr(np.linalg, name)
    with pytest.raises(np.linalg.LinAlgError):
        f(X)
    with pytest.raises(np.linalg.LinAlgError, match="1-dimensional array given"):
        fad.vmap(f)(np.eye(3) + 1.0)


def test_a_batch_of_vectors_is_no_matrix_to_solve():
    matrix = np.array([[4.0]])
    with pytest.raises(np.linalg.LinAlgError, match="1-dimensional array given"):
        fad.vmap(lambda x: np.linalg.solve(x, x))(matrix)
    with pytest.raises(np.linalg.LinAlgError, match="0-dimensional array given"):
        fad.vmap(lambda x: np.linalg.solve(matrix, x))(X[:1])


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "eig", "eigvals", "solve_triangular", "lu_factor"])
def test_a_batch_of_vectors_is_no_matrix_to_scipy(name):
    sl = pytest.importorskip("fad.scipy.linalg")
    f = getattr(sl, name)
    with pytest.raises(np.linalg.LinAlgError, match="1-dimensional array given"):
        fad.vmap(lambda x: f(x, x) if name == "solve_triangular" else f(x))(np.eye(3) + 1.0)


@pytest.mark.parametrize("order", ["A", "K"])
def test_an_order_of_memory_is_that_of_numpy(order):
    x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for f in (lambda x: np.ravel(x, order), lambda x: x.flatten(order), lambda x: np.ravel(x.T, order)):
        np.testing.assert_array_equal(fad.jvp(f, (x,), (x,))[1], f(x))
        np.testing.assert_array_equal(fad.vmap(f)(np.stack([x, x]).transpose(0, 2, 1)), [f(x.T), f(x.T)])
        np.testing.assert_array_equal(fad.jvp(f, (X,), (X,))[1], f(X))
    if order == "A":
        found = fad.grad(lambda x: np.reshape(x, (3, 2), order="A")[0] @ np.ones(2))(x)
        np.testing.assert_array_equal(found, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.take(x, [0, 0], axis=0), lambda x: np.take(x, 0, axis=-1), lambda x: np.repeat(x, 2, axis=0),
        lambda x: np.compress([True], x, axis=-1),
    ],
)  # fmt: skip
def test_a_number_has_an_axis_where_numpy_gives_it_one(f):
    x = np.array(1.5)
    for got in (fad.jvp(f, (x,), (x,))[0], fad.jvp(f, (x,), (x,))[1], fad.jit(f)(x), fad.vmap(f)(x[None])[0]):
        np.testing.assert_array_equal(got, f(x))
        assert np.shape(got) == np.shape(f(x))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: x.astype(np.result_type(x, n)), lambda x, n: np.linspace(x, n, 3), lambda x, n: np.dot(x, n),
        lambda x, n: np.logspace(x, n, 3), lambda x, n: np.einsum("i,->i", x, n),
        lambda x, n: np.choose([0, 1], [x, n]),
        lambda x, n: np.unwrap(x, period=n), lambda x, n: np.quantile(x, n), lambda x, n: np.inner(x, n),
        lambda x, n: fad.numpy.at(x)[0].set(n), lambda x, n: np.add.outer(n, x), lambda x, n: np.copy(n) * x,
        lambda x, n: np.flip(n) * x, lambda x, n: np.transpose(n) * x,
    ],
)  # fmt: skip
def test_a_python_number_given_to_jit_has_the_dtype_that_it_has_in_numpy(f):
    """As an operand it is weak, as what NumPy makes an array of it is float64."""
    x, n = np.array([0.5, 1.25], np.float32), 0.25
    wanted = f(x, n)
    fast = fad.jit(f)
    for got in (fast(x, n), fast(x, n), fad.jvp(lambda x: f(x, n), (x,), (x,))[0]):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_trim_zeros_of_a_number_is_the_number():
    assert fad.jit(np.trim_zeros)(0.5) == 0.5
    assert fad.grad(np.trim_zeros)(0.5) == 1.0


@pytest.mark.parametrize("ufunc", [np.hypot, np.logaddexp2, np.subtract, np.logical_xor, np.copysign])
@pytest.mark.parametrize("keywords", [{}, {"keepdims": True}, {"axis": None}, {"axis": -1}])
@pytest.mark.parametrize("x", [[-1.5], [], [[-1.0, 2.0]], [[3.0], [-0.5]], [1.0, -2.0, 3.0]])
def test_a_reduction_by_a_ufunc_begins_as_in_numpy(ufunc, keywords, x):
    """With the identity of the ufunc, if it has one: hypot of one negative number is positive."""
    x = np.array(x)

    def f(x):
        return ufunc.reduce(x, **keywords)

    try:
        wanted = f(x)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20]):
            fad.jvp(f, (x,), (x,))
        return
    for got in (fad.jvp(f, (x,), (x,))[0], fad.vmap(f)(np.stack([x, x]))[1]):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-15)
    if ufunc is np.hypot and x.size:
        fad.testing.check_grads(f, (x,), order=2)


def test_parts_of_modf_keep_the_sign_of_the_number():
    x = np.array([-2.0, 2.0, -0.0, -1.75, 0.5, np.inf, -np.inf])
    for got, wanted in zip(fad.jvp(np.modf, (x,), (np.ones(7),))[0], np.modf(x), strict=True):
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(np.modf(x)[0]))(x[:5]), np.ones(5))


def test_apply_over_axes_leaves_the_axes_of_a_number_to_the_function():
    x = np.array(0.5)
    assert fad.grad(lambda x: np.apply_over_axes(np.sum, x, [0]))(x) == 1.0


def test_products_of_polynomials_have_no_leading_zeros():
    def f(a):
        return np.polymul(a, X)

    for a in (np.array([0.0, 0.0, 2.0]), np.zeros(3), np.array([1.0, 0.0])):
        for got in (fad.jvp(f, (a,), (a,))[0], fad.jit(f)(a), fad.vmap(f)(a[None])[0]):
            np.testing.assert_array_equal(got, f(a))
        np.testing.assert_array_equal(fad.jvp(f, (a,), (a,))[1], f(a))


@pytest.mark.parametrize("f", [lambda z: np.digitize(z, X), lambda z: round(z[0], 1)])
def test_complex_numbers_have_no_place_among_bins_and_are_not_rounded_by_python(f):
    z = X + 1j
    for g, x in ((f, z), (fad.jit(f), z), (fad.vmap(f), z[None])):
        with pytest.raises(TypeError, match=r"may not be complex|__round__"):
            g(x)


def test_python_rounds_no_arrays():
    for f in (lambda x: round(x, 1), round):
        with pytest.raises(TypeError, match=r"numpy\.ndarray doesn't define __round__"):
            f(X)
        with pytest.raises(TypeError, match=r"numpy\.ndarray doesn't define __round__"):
            fad.jvp(f, (X,), (X,))


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_the_largest_of_no_numbers_is_a_norm_of_zero(shape, axis):
    x = np.zeros(shape)
    y = fad.jvp(lambda x: np.linalg.norm(x, np.inf, axis=axis), (x,), (x,))[0]
    np.testing.assert_array_equal(y, np.zeros(np.shape(np.sum(x, axis))))


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_trapezoid_counts_a_negative_axis_in_each_array_for_itself(shape, axis):
    y, x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape), np.array([[0.0, 1.0], [3.0, 7.0]])

    def f(y, x):
        return np.trapezoid(y, x, axis=axis)

    wanted = f(y, x)
    np.testing.assert_array_equal(fad.jvp(f, (y, x), (y, x))[0], wanted)
    np.testing.assert_array_equal(fad.jvp(f, (y, x), (y, x))[1], 2 * wanted)
    np.testing.assert_array_equal(fad.vmap(f)(y[None], x[None])[0], wanted)


def test_an_array_that_is_copied_onto_itself_takes_any_mask():
    def f(x):
        np.copyto(x, x, where=[True, True])
        return x * 2

    np.testing.assert_array_equal(fad.jvp(f, (X,), (X,))[0], f(X.copy()))


ZEROS = np.array([-0.0, 0.0, -1.0, 1.0])
SIGNS = {
    "clip between arrays": lambda a, b: np.clip(a, b, b + 2.0),
    "clip between a number and an array": lambda a, b: np.clip(a, -2.0, b),
    "clip between numbers": lambda a, b: np.clip(a, -0.0, 1.0) + np.clip(b, -1.0, 0.0),
    "clip by one limit": lambda a, b: np.stack([np.clip(a, b, None), np.clip(a, None, b), np.clip(a, 0.0, None)]),
    "a diagonal": lambda a, b: np.diag(a[:4], 1),
    "medians": lambda a, b: np.stack([np.median(a[:1]), np.median(np.stack([a, a]), 0)[0], np.nanmedian(a[:1])]),
    "a number times an array": lambda a, b: np.stack([np.dot(a[0], b), np.inner(b, a[0])]),
    "a number times a number": lambda a, b: np.stack([np.dot(a[0], b[2]), np.inner(a[2], b[1])]),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", SIGNS)
def test_zeros_have_the_signs_of_a_plain_run(name, dtype):
    a, b = (x.ravel().astype(dtype) for x in np.meshgrid(ZEROS, ZEROS))
    f = SIGNS[name]
    wanted = f(a, b)
    runs = [fad.vjp(f, a, b)[0], fad.jvp(f, (a, b), (a, b))[0], fad.vmap(f)(a[None], b[None])[0], fad.jit(f)(a, b)]
    for got in runs:
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_an_axis_that_is_not_there_is_named_before_the_dtype():
    def f(x):
        return np.logaddexp.reduce(x, axis=5)

    for x in (np.ones(2), np.ones(2, complex)):
        for call in (f, fad.jit(f), lambda x: fad.jvp(f, (x,), (x,))):
            with pytest.raises(np.exceptions.AxisError):
                call(x)


@pytest.mark.parametrize("x", [np.array(1.5), np.array(1.5, ">f4"), np.array(2)])
def test_full_like_of_an_array_without_axes_is_one(x):
    for f in (lambda x: np.full_like(x, 3), lambda x: np.full_like(x, x), lambda x: np.full_like(x, 2.7, dtype=">f8")):
        got = fad.jit(f)(x)
        assert type(got) is np.ndarray
        assert (got.dtype, got) == (f(x).dtype, f(x))
    y, t = fad.jvp(lambda v: fad.numpy.full_like(x, v), (2.7,), (1.0,))
    assert (y, y.dtype, t) == (np.full_like(x, 2.7), x.dtype, 1.0 if x.dtype.kind == "f" else 0)


@pytest.mark.parametrize("name", ["dot", "partition", "argpartition"])
def test_a_number_lacks_the_methods_that_arrays_alone_have(name):
    def f(x):
        return getattr(x, name)(0) if hasattr(x, name) else 3.0 * x

    assert fad.grad(f)(np.float64(2.0)) == fad.grad(f)(2.0) == 3.0
    np.testing.assert_array_equal(fad.vmap(f)(X), 3.0 * X)
    with pytest.raises(AttributeError, match=f"'numpy.float64' object has no attribute '{name}'"):
        fad.grad(lambda x: getattr(np.sum(x), name)(0))(X)
    assert fad.grad(lambda x: x.dot(x))(np.array(2.0)) == 4.0


def test_nan_to_num_of_an_integer_is_a_number():
    assert type(fad.jit(np.nan_to_num)(np.array(2))) is type(np.nan_to_num(np.array(2))) is np.int64


def test_products_of_empty_vectors_have_gradients_in_batches():
    y = np.ones((0, 0))
    for f in (lambda x: np.sum(x @ y), lambda x: np.sum(np.ones((2, 0)) * x @ y)):
        for call in (fad.vmap(fad.grad(f)), fad.jit(fad.vmap(fad.grad(f)))):
            assert call(np.zeros((3, 0))).shape == (3, 0)
    back = fad.vjp(lambda w: np.ones((2, 3, 0)) @ w, np.zeros((0, 0)))[1]
    assert back(np.ones((2, 3, 0)))[0].shape == (0, 0)


ONES = {n: np.ones(n) for n in (1, 3)}
TAKE_NO_SUCH_SHAPES = {
    "matrix_norm of a vector": (np.linalg.matrix_norm, (X,)),
    "vecdot": (np.vecdot, (ONES[3], ONES[1])),
    "matvec": (getattr(np, "matvec", None), (np.ones((2, 3)), ONES[1])),
    "vecmat": (getattr(np, "vecmat", None), (ONES[3], np.ones((1, 3)))),
    "matvec of a vector": (getattr(np, "matvec", None), (ONES[1], ONES[3])),
}


@pytest.mark.parametrize(("f", "xs"), TAKE_NO_SUCH_SHAPES.values(), ids=TAKE_NO_SUCH_SHAPES)
def test_a_shape_that_numpy_refuses_is_refused_in_its_words(f, xs):
    if f is None:
        pytest.skip("NumPy has it since 2.2")
    with pytest.raises(ValueError) as wanted:
        f(*xs)
    for call in (
        lambda: fad.jvp(f, xs, xs), lambda: fad.vjp(f, *xs), lambda: fad.jit(f)(*xs),
        lambda: fad.vmap(f)(*[np.stack([x, x, x]) for x in xs]),
    ):  # fmt: skip
        with pytest.raises(type(wanted.value)) as got:
            call()
        assert str(got.value) == str(wanted.value)


def test_a_product_of_two_arrays_by_multi_dot_is_that_of_dot():
    a, b = np.arange(8.0).reshape(2, 2, 2), np.arange(4.0)[:2]
    np.testing.assert_array_equal(fad.jit(lambda a, b: np.linalg.multi_dot([a, b]))(a, b), np.dot(a, b))


@pytest.mark.parametrize("f", [np.tril, np.triu])
def test_a_number_has_no_triangle(f):
    x = np.float64(0.5)
    calls = [lambda: f(x), lambda: fad.grad(f)(x), lambda: fad.jvp(f, (x,), (x,)), lambda: fad.jit(f)(x)]
    for call in (*calls, lambda: fad.vmap(f)(X)):
        with pytest.raises(TypeError, match="tri"):
            call()


@pytest.mark.parametrize("number", [1.5, 2, True, 1j, np.float64(1.5), [1.5]], ids=repr)
@pytest.mark.parametrize("join", [np.union1d, lambda x, y: np.concatenate((x, y), axis=None)])
def test_pythons_numbers_are_weak_where_arrays_are_joined_flat(join, number):
    for x in (X.astype(np.float32), np.array([1.0, 2.0], np.float16)):
        for f in (lambda x: join(x, number), lambda x: join(number, x)):
            found = (fad.jvp(f, (x,), (x,))[0], fad.vjp(f, x)[0], fad.vmap(f)(x[None])[0], fad.jit(f)(x))
            assert {y.dtype for y in found} == {f(x).dtype}
            for y in found:
                np.testing.assert_array_equal(y, f(x))


@pytest.mark.parametrize("level", [0.5, 1, True, np.float64(0.5), np.float32(0.5), np.array(0.5), [0.5]], ids=repr)
@pytest.mark.parametrize("quantile", [np.quantile, np.percentile, np.nanquantile, np.nanpercentile])
def test_levels_of_quantiles_widen_as_numpys_do(quantile, level):
    if BEFORE_2_4 and "percentile" in quantile.__name__ and type(level) in (bool, np.float64):
        pytest.skip("NumPy takes these percentages for numbers of Python before 2.4")
    x, f = X.astype(np.float32), lambda x: quantile(x, level)
    assert fad.jvp(f, (x,), (x,))[0].dtype == fad.vjp(f, x)[0].dtype == fad.jit(f)(x).dtype == f(x).dtype


@pytest.mark.skipif(BEFORE_2_4, reason="NumPy computes quantiles in the precision of the numbers since 2.4")
@pytest.mark.parametrize("quantile", [np.quantile, np.nanquantile])
@pytest.mark.parametrize("level", [0.1, 0.3, 0.55, 0.7, 0.95])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_quantiles_of_lower_precision_round_as_numpys_do(dtype, level, quantile):
    f = lambda x: quantile(x, level, axis=0)
    x = np.random.default_rng(0).normal(size=(7, 40)).astype(dtype)
    for found in (fad.jvp(f, (x,), (x,))[0], fad.vjp(f, x)[0], fad.jit(f)(x)):
        np.testing.assert_array_equal(found, f(x))


def test_another_layout_whose_loop_fails_otherwise_takes_no_impure_path():
    def f(x, y):
        k = 3
        while k:
            k -= 1
            y[x > 1] -= k
            t = x.sum() if y[2] else x
        return x + np.sum(t)

    g = fad.jit(fad.grad(lambda x, y: f(x, y).sum()))
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.5, 0.0, -1.25])
    for values in (y[::-1].copy()[::-1], y[::-1].copy()[::-1], x.copy(), y.copy()):
        np.testing.assert_array_equal(g(x, values), fad.grad(lambda x, y: f(x, y).sum())(x, values))


def transformed(f, *x):
    """Yield what f gives under each transform."""
    yield fad.jvp(f, x, x)[0]
    yield fad.vjp(f, *x)[0]
    yield from [fad.jit(f)(*x)] * 2
    yield tree.map(lambda y: y[0], fad.vmap(f)(*[v[None] for v in x]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_allclose_gives_a_bool_that_widens_nothing(dtype):
    def f(x):
        return x + np.allclose(x, x) * 0, np.allclose(x, x + 1) + x

    x = X.astype(dtype)
    for y, z in list(transformed(f, x))[:4]:
        np.testing.assert_array_equal((y, z), f(x), strict=True)
        assert y.dtype == z.dtype == dtype
    assert type(fad.numpy.allclose(1.0, 1.0)) is bool


def test_in_looks_for_an_element():
    def f(x):
        return x * 2 if 0.5 in x and 0.75 not in x[:2] else -x

    for y in transformed(f, X):
        np.testing.assert_array_equal(y, 2 * X)
    with pytest.raises(TypeError, match="is not iterable"):
        fad.vjp(lambda x: 0.5 in x[0], X)


@pytest.mark.parametrize("out", ["f8", "f4", "c16"])
@pytest.mark.parametrize(
    ("ufunc", "method"),
    [
        (np.power, "accumulate"),
        *itertools.product(
            [np.add, np.hypot, np.logaddexp, np.divide, np.maximum], ["reduce", "accumulate", "reduceat"]
        ),
    ],
    ids=str,
)
def test_a_ufunc_goes_along_an_axis_in_a_dtype_that_counts_the_output(ufunc, out, method):
    x = np.array([1.5, 0.25, 2.3, 0.7], "f4")

    def f(x):
        y = np.zeros(np.shape(getattr(ufunc, method)(x, *places)), out)
        getattr(ufunc, method)(x, *places, out=y)
        return y

    places = [[0, 2]] if method == "reduceat" else []
    try:
        wanted = f(x)
    except TypeError:
        with pytest.raises(TypeError):
            fad.jvp(f, (x,), (x,))
        return
    for y in transformed(f, x):
        np.testing.assert_allclose(y, wanted, rtol=2e-7 if out == "f4" else 1e-15, strict=True)


@pytest.mark.parametrize("places", [lambda x: x > 0, lambda x: (x > 1) * 1, lambda x: np.argsort(x)])
@pytest.mark.parametrize("ufunc", [np.multiply, np.maximum, np.power, np.add], ids=str)
def test_ufunc_at_takes_traced_places(ufunc, places):
    def f(x):
        y = x + 2
        ufunc.at(y, places(x), 1.5)
        return y

    for y in transformed(f, X):
        np.testing.assert_array_equal(y, f(X))


@pytest.mark.parametrize("ord", [-1, -2, -0.5, 3])
def test_the_norm_of_nothing_is_that_of_numpy(ord):
    x = np.zeros((0, 2))
    for y in transformed(lambda x: np.linalg.norm(x, ord, axis=0), x):
        np.testing.assert_array_equal(y, 0.0 if ord > 0 else np.inf)


def test_the_largest_singular_value_of_nothing_is_that_of_numpy():
    x = np.zeros((0, 0))
    try:
        wanted = np.linalg.norm(x, 2)
    except ValueError:  # of older versions
        return
    assert fad.jvp(lambda x: np.linalg.norm(x, 2), (x,), (x,))[0] == wanted
