"""What native code computes by simpler operations is what NumPy computes, without a call of NumPy."""

import numpy as np
import pytest
from natively import compiled, native

import fad
import fad.scipy.special as sp
from fad import control

RNG = np.random.default_rng(0)

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
X, M, B = rng.normal(size=37), rng.normal(size=(6, 6)), rng.normal(size=(3, 4, 5))
HOLES = np.where(M > 0.5, np.nan, M)
HOLES[2] = np.nan


PROGRAMS = {
    "a matrix with whole numbers in it": (lambda x: np.array([[x[0], 0, 1], [-x[1], True, 2]]), X),
    "joined to whole numbers": (lambda x: np.concatenate([[0], np.cumsum(x), np.arange(3) * (x > 0).sum()]), X),
    "numbers joined to truths": (lambda x: np.stack([x > 0, np.argsort(x)], axis=1), X),
    "norm": (lambda x: np.linalg.norm(x), X),
    "norm of rows": (lambda x: x / np.linalg.norm(x, axis=1, keepdims=True), M),
    "norm over axes apart": (lambda x: np.linalg.norm(x, axis=(0, 2)), B),
    "norm of complex numbers": (lambda x: np.linalg.norm(x * (1 + 2j)), X),
    "norm over axes in another order": (lambda x: np.linalg.norm(x, axis=(2, 0)), B),
    "var": (lambda x: np.var(x, axis=0, ddof=1), M),
    "var over axes in another order": (lambda x: np.var(x, axis=(2, 1)) + np.var(x, axis=(-1, 0, 1)), B),
    "standard scores": (lambda x: (x - np.mean(x, 0)) / np.std(x, 0), M),
    "logsumexp": (lambda x: np.logaddexp.reduce(x, axis=1), M),
    "logsumexp kept": (lambda x: np.logaddexp.reduce(x, axis=0, keepdims=True), M),
    "any": (lambda x: np.any(x > 1.5, axis=1), M),
    "any of numbers": (lambda x: np.any(np.floor(x), axis=0), M),
    "all": (lambda x: np.all(x > -2.0), X),
    "allclose": (lambda x: np.allclose(x, x + 1e-9), X),
    "count": (lambda x: np.count_nonzero(x > 0.0, axis=1), M),
    "max of booleans": (lambda x: np.max(x > 2.0) | np.min(x > -9.0), X),
    "nanmax": (lambda x: np.fmax.reduce(x, axis=1), HOLES),
    "nanmin": (lambda x: np.fmin.reduce(x, axis=0), HOLES),
    "quadratic forms": (lambda x: np.einsum("ni,ij,nj->n", x, M, x), M),
    "batched product": (lambda x: np.einsum("bij,bkj->bik", x, x), B),
    "outer product": (lambda x: np.einsum("bi,bj->bij", x, x), M),
    "inner products of rows": (lambda x: np.einsum("bi,bi->b", x, x), M),
    "turned result": (lambda x: np.einsum("ij,bjk->kbi", M[:4, :4], x), B),
    "tensordot": (lambda x: np.tensordot(x, x, ([1, 2], [1, 2])), B),
    "inner": (lambda x: np.inner(x, x), X),
    "two kinds of numbers": (lambda x: np.einsum("ij,jk->ik", x, np.arange(6.0, dtype="f")[:, None]), M),
    "pad": (lambda x: np.pad(x, ((1, 2), (0, 3))), M),
    "round": (lambda x: np.round(x, 2), X),
    "round to hundreds": (lambda x: np.round(x * 1e3, -2), X),
    "square by an array": (lambda x: x ** np.array([2.0]) + abs(x) ** np.full((1, 1, 1), 0.5), M),
    "round to whole numbers": (lambda x: np.round(x), X),
    "entropies": (lambda x: sp.xlogy(abs(x), x * x) + sp.entr(abs(x)) + sp.xlog1py(x, x * x), X),
    "logistic": (lambda x: sp.logit(sp.expit(x)) + sp.log_expit(x), X),
}


def test_numbers_of_one_element_in_arrays_are_read_as_numbers():
    n = np.arange(7)
    for f in (lambda n: n ** np.array([[2]]), lambda n: n // np.array([3]), lambda n: n % np.full((1, 1), 4)):
        y = native(f, n)
        np.testing.assert_array_equal(y, f(n))
        assert y.shape == f(n).shape


@pytest.mark.filterwarnings("error::fad.errors.NativeFallbackWarning")
def test_rounding_by_a_unit_beyond_all_numbers_is_left_to_numpy():
    with np.errstate(all="ignore"):
        for decimals in (400, -400):
            fast = compiled(lambda x, d=decimals: np.round(x, d), X)
            np.testing.assert_array_equal(fast(X), np.round(X, decimals))


@pytest.mark.parametrize("reduce", [np.sum, np.max, np.min, np.prod, np.nansum, np.logaddexp.reduce, np.any])
@pytest.mark.parametrize("axis", [(1, 0), (2, 0), (2, 1), (-1, 1), (2, 0, 1)])
def test_axes_may_be_named_in_any_order(reduce, axis):
    x = rng.normal(size=(3, 3, 3))
    for f in (lambda x: reduce(x, axis=axis), lambda x: reduce(np.sin(x), axis=axis, keepdims=True)):
        np.testing.assert_allclose(compiled(f, x)(x), f(x), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_composed_operation_gives_what_numpy_gives(name, dtype):
    f, x = PROGRAMS[name]
    x = x.astype(dtype)
    want = np.asarray(f(x))
    y = np.asarray(native(f, x))
    assert (y.dtype, y.shape) == (want.dtype, want.shape)
    rtol = 1e-5 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(y, want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", [n for n, (f, x) in PROGRAMS.items() if np.asarray(f(x)).dtype == float])
def test_its_derivative_does_too(name):
    f, x = PROGRAMS[name]
    x = np.where(np.isnan(x), 0.25, x)
    derivative = fad.grad(lambda x: np.sum(f(x) ** 2))
    np.testing.assert_allclose(native(derivative, x), derivative(x), rtol=1e-11, atol=1e-11)


def test_questions_to_special_values_are_answered_as_numpy_does():
    x = np.array([[np.nan, -np.inf, 0.0], [-0.0, 0.0, 0.0], [-np.inf, -np.inf, -np.inf]])
    for f in (np.any, np.all, np.count_nonzero, np.fmax.reduce, np.logaddexp.reduce):
        for axis in (0, 1):
            with np.errstate(invalid="ignore"):
                y, want = native(lambda x, f=f, axis=axis: f(x, axis=axis), x), f(x, axis=axis)
            np.testing.assert_array_equal(y, want)


def test_loops_that_ask_arrays_when_to_stop_do_not_return_to_python():
    def bisect(low, high):
        def step(s):
            middle = (s[0] + s[1]) / 2
            below = np.cos(middle) > middle
            return np.where(below, middle, s[0]), np.where(below, s[1], middle)

        return control.while_loop(lambda s: np.any(s[1] - s[0] > 1e-12), step, (low, high))[0]

    np.testing.assert_allclose(native(bisect, np.zeros(9), np.full(9, 1.5)), 0.7390851332151607, rtol=1e-11)

    matrix = M @ M.T + 6.0 * np.eye(6)

    def conjugate_gradients(b):
        def step(s):
            x, r, p = s
            q = matrix @ p
            a = np.dot(r, r) / np.dot(p, q)
            rest = r - a * q
            return x + a * p, rest, rest + np.dot(rest, rest) / np.dot(r, r) * p

        return control.while_loop(lambda s: np.linalg.norm(s[1]) > 1e-12, step, (np.zeros_like(b), b, b))[0]

    np.testing.assert_allclose(native(conjugate_gradients, X[:6]), np.linalg.solve(matrix, X[:6]), rtol=1e-10)


@pytest.mark.parametrize("x", [np.array([0.0, -0.0, 1.0, -1.0, np.inf, np.nan, 0.4, 0.9]), np.linspace(0, 1, 41)])
def test_entropies_and_logistic_functions_have_scipys_special_values(x):
    a, b = np.meshgrid(x, x)
    with np.errstate(all="ignore"):
        for f in (sp.entr, sp.logit, sp.log_expit, lambda x: sp.xlogy(a, x), lambda x: sp.xlog1py(a, x)):
            np.testing.assert_allclose(native(f, b), f(b), rtol=1e-14)


def test_the_source_for_people_keeps_numpys_names():
    text = fad.source(lambda x: np.var(x) + np.linalg.norm(x) + np.any(x > 0))(X)
    assert "np.var" in text
    assert "any" in text


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("taps", [2, 5, 32, 33])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_convolutions_with_a_few_numbers_are_numpys(mode, taps, dtype):
    x, v = RNG.normal(size=3000).astype(dtype), RNG.normal(size=taps).astype(dtype)
    f = lambda x, v: np.convolve(x, v, mode)
    for program, args in ((f, (x, v)), (lambda v, x: f(v, x), (v, x)), (lambda x: f(x, v), (x,))):
        found, wanted = fad.jit(program)(*args), program(*args)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=100 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps)
        pulled = fad.grad(lambda *args, f=program: np.sum(np.sin(f(*args))), tuple(range(len(args))))
        for a, b in zip(fad.jit(pulled)(*args), pulled(*args), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e3 * np.finfo(dtype).eps, atol=2e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("closed_over", [True, False])
@pytest.mark.parametrize("v", [np.array([1.0, np.inf, 2.0, np.nan, 0.0]), np.array([1.0, 2.0, 0.5])])
def test_infinite_numbers_of_a_convolution_stay_at_their_places(mode, closed_over, v):
    x = RNG.normal(size=1000)
    x[[0, 500, 999]] = np.inf, np.nan, -np.inf
    f = (lambda x: np.convolve(x, v, mode)) if closed_over else (lambda x, v: np.convolve(x, v, mode))
    args = (x,) if closed_over else (x, v)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(fad.jit(f)(*args), f(*args), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(6, 3), (3, 6), (5, 5), (32, 32), (1, 2)])
def test_convolutions_of_short_vectors_in_loops_are_native(mode, sizes):
    x, v = RNG.normal(size=sizes[0]), RNG.normal(size=sizes[1])
    n = len(np.convolve(x, v, mode))

    def repeat(x, v):
        total = np.zeros(n)
        for k in range(150):
            total = 0.5 * total + np.convolve(x + 0.01 * k, np.tanh(v), mode)
        return total

    g = fad.grad(lambda x, v: (repeat(x, v) ** 2).sum(), argnums=(0, 1))
    np.testing.assert_allclose(native(repeat, x, v), repeat(x, v), rtol=1e-11, atol=1e-12)
    for got, wanted in zip(native(g, x, v), g(x, v), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)
