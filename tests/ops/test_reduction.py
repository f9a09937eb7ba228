"""Reductions, scans and statistics: the points where a naive rule gives NaN, and NumPy's own conventions."""

import numpy as np
import pytest

import fad
from fad.errors import TracerConversionError
from fad.ops.reductions.reduction import logsumexp

X = np.array([[0.5, -1.0, 2.0, 0.0], [0.0, 3.0, 0.0, 1.5], [2.0, 1.0, -1.0, 0.3]])


def numerical(f, x, eps=1e-6):
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = eps
        g[i] = (f(x + e) - f(x - e)) / (2 * eps)
    return g


@pytest.mark.parametrize("f", [
    lambda x: np.sum(np.prod(x, axis=1) ** 2), lambda x: np.prod(x[2]), lambda x: np.sum(np.cumprod(x, axis=1) * X),
    lambda x: np.multiply.reduce(x[1]), lambda x: np.sum(np.multiply.accumulate(x, axis=0) ** 2),
])  # fmt: skip
def test_products_with_zeros_have_exact_first_and_second_derivatives(f):
    np.testing.assert_allclose(fad.grad(f)(X), numerical(f, X), atol=1e-8)
    v = np.cos(np.arange(12.0)).reshape(3, 4)
    along = lambda x: np.sum(fad.grad(f)(x) * v)
    plain = numerical(lambda x: np.sum(fad.grad(f)(x) * v), X)
    np.testing.assert_allclose(fad.grad(along)(X), plain, atol=1e-7)
    np.testing.assert_allclose(fad.jvp(fad.grad(f), (X,), (v,))[1], plain, atol=1e-7)


def test_the_product_of_many_numbers_has_all_its_derivatives():
    # d^3 (x1 x2 x3) = 1 in the mixed direction, even at the origin
    third = fad.jacfwd(fad.jacfwd(fad.grad(np.prod)))(np.zeros(3))
    assert third[0, 1, 2] == third[2, 0, 1] == 1
    assert third.sum() == 6


def test_ties_share_the_derivative_of_extremes():
    x = np.array([1.0, 3.0, 3.0, 2.0])
    np.testing.assert_array_equal(fad.grad(np.max)(x), [0, 0.5, 0.5, 0])
    np.testing.assert_array_equal(fad.grad(lambda x: np.min(-x))(x), [0, -0.5, -0.5, 0])
    np.testing.assert_array_equal(fad.jvp(np.max, (x,), (np.array([0, 1.0, 0, 0]),))[1], 0.5)
    np.testing.assert_array_equal(fad.grad(lambda x: np.maximum.accumulate(x)[2])(x), [0, 0.5, 0.5, 0])


def test_the_norm_at_zero_has_derivative_zero_for_every_order():
    for order in (None, 1, 2, 3, 2.5, np.inf, -np.inf):
        g = fad.grad(lambda x, o=order: np.linalg.norm(x, o))(np.zeros(3))
        np.testing.assert_array_equal(g, np.zeros(3), err_msg=str(order))
    for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        g = fad.grad(lambda x, o=order: np.linalg.norm(x, o))(np.zeros((2, 3)))
        np.testing.assert_array_equal(g, np.zeros((2, 3)), err_msg=str(order))
    np.testing.assert_array_equal(fad.jvp(np.linalg.norm, (np.zeros(3),), (np.ones(3),))[1], 0.0)


def test_the_standard_deviation_of_equal_numbers_has_derivative_zero():
    np.testing.assert_array_equal(fad.grad(np.std)(np.ones(4)), np.zeros(4))


def test_the_gradient_of_a_complex_norm_follows_the_convention():
    z = np.array([3.0 + 4j, 1.0 - 2j])
    np.testing.assert_allclose(fad.grad(np.linalg.norm)(z), np.conj(z) / np.linalg.norm(z))


def test_logsumexp_with_minus_infinity_has_finite_derivatives():
    x = np.array([[-np.inf, 1.0, 2.0], [-np.inf, -np.inf, -np.inf], [np.inf, 0.0, 1.0]])
    y, pull = fad.vjp(lambda x: logsumexp(x, axis=1), x)
    np.testing.assert_allclose(y, [np.logaddexp(1, 2), -np.inf, np.inf])
    e = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    np.testing.assert_allclose(pull(np.ones(3))[0], [[0, *e], [1 / 3] * 3, [1, 0, 0]])
    assert np.isfinite(fad.hessian(logsumexp)(x[0])).all()


def test_logsumexp_takes_weights_and_signs():
    a, b = np.array([0.0, 1.0, 800.0]), np.array([1.0, -2.0, 0.0])
    y, sign = logsumexp(a, b=b, return_sign=True)
    assert sign == -1
    np.testing.assert_allclose(y, np.log(2 * np.e - 1))
    g = fad.grad(lambda b: logsumexp(a, b=b))(np.array([1.0, 2.0, 0.0]))
    np.testing.assert_allclose(g[:2], np.exp([0.0, 1.0]) / (1 + 2 * np.e))


def test_ufunc_reduce_works_along_axis_zero_by_default():
    x = X + 3.0
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp, np.subtract, np.divide, np.hypot):
        y, pull = fad.vjp(ufunc.reduce, x)
        assert y.shape == (4,)
        np.testing.assert_allclose(y, ufunc.reduce(x))
        np.testing.assert_allclose(pull(np.ones(4))[0], numerical(lambda x, u=ufunc: np.sum(u.reduce(x)), x), atol=1e-7)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float32, bool])
def test_sums_and_products_have_the_dtype_that_is_asked_for(dtype):
    x = np.array([[3.0, 1.0], [0.0, 120.0]])
    for f in (lambda x: np.sum(x > 1.0, axis=1, dtype=dtype), lambda x: np.prod(x, axis=0, dtype=dtype)):
        (y,) = fad.make_graph(f)(x)(x)
        assert y.dtype == f(x).dtype == dtype
        np.testing.assert_array_equal(y, f(x))


def test_the_maximum_of_nothing_with_an_initial_value_is_a_number():
    traced = []
    y = fad.vjp(lambda x: traced.append(np.max(x, initial=2.0)) or np.sum(x), np.zeros((0, 2)))[0]
    assert y == 0.0
    assert type(traced[0]) is type(np.max(np.zeros(0), initial=2.0))


def test_out_is_refused():
    out = np.zeros(())
    with pytest.raises(TracerConversionError, match="out="):
        fad.grad(lambda x: np.sum(x, out=out))(np.ones(3))


def test_numpys_warnings_and_errors_are_kept():
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        assert np.isnan(fad.jvp(np.nanmax, (np.array([np.nan]),), (np.ones(1),))[0])
    for f in (np.nanmin, np.nanmedian, lambda x: np.nanquantile(x, 0.5)):
        with pytest.warns(RuntimeWarning, match="All-NaN"):
            assert np.isnan(fad.jvp(f, (np.array([np.nan]),), (np.ones(1),))[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        for f in (lambda x: np.var(x, ddof=3), lambda x: np.var(x, ddof=3, mean=x[0]), lambda x: np.cov(x, ddof=4),
                  lambda x: np.cov(x, aweights=np.ones(3), ddof=4)):  # fmt: skip
            with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
                value = fad.vjp(f, np.arange(3.0))[0]
            with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
                assert value == f(np.arange(3.0)) == np.inf
    with pytest.raises(ValueError, match="identity"):
        fad.grad(lambda x: np.max(x[:0]))(np.ones(3))
    with pytest.raises(np.exceptions.AxisError):
        fad.grad(lambda x: np.sum(x, axis=3))(np.ones(3))
    with pytest.raises(ZeroDivisionError):
        fad.grad(lambda x: np.average(x, weights=np.zeros(3)))(np.ones(3))


def test_the_initial_value_and_the_mask_of_max_have_no_derivative():
    x = np.array([1.0, 5.0, 3.0])
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(fad.grad(lambda x: np.max(x, initial=4.0))(x), [0, 1, 0])
    np.testing.assert_array_equal(fad.grad(lambda x: np.max(x, initial=2.0, where=mask))(x), [0, 0, 1])
    np.testing.assert_array_equal(fad.grad(lambda x: np.max(x[:0], initial=2.0) + x[0])(x), [1, 0, 0])


def test_batched_booleans_and_integers_are_summed_as_numpy_does():
    flags = X > 0
    counted = fad.vmap(lambda row: (np.sum(row), np.cumsum(row), np.mean(row), np.all(row), np.argmax(row)))(flags)
    wanted = np.sum(flags, 1), np.cumsum(flags, 1), np.mean(flags, 1), np.all(flags, 1), np.argmax(flags, 1)
    for got, want in zip(counted, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype


def test_a_long_recurrence_is_right_even_where_products_of_its_factors_overflow():
    b = np.zeros(50)
    b[-1] = 1.0
    y = fad.ops.reductions.scans.recur_p(np.full(50, 1e200), b, axis=0, reverse=False)
    np.testing.assert_array_equal(y, b)


def test_the_derivative_of_a_long_cumulative_product_is_that_of_its_formula():
    y = np.linspace(0.5, 1.5, 100)
    _, t = fad.jvp(np.cumprod, (y,), (np.ones(100),))
    np.testing.assert_allclose(t, np.cumprod(y) * np.cumsum(1 / y))


METHODS = (
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "cumsum",
    "cumprod",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_of_a_traced_array_is_the_method_of_an_array(name):
    x = X + 0.1 * np.arange(12.0).reshape(3, 4)
    for options in ({}, {"axis": 1}):
        found = fad.vmap(lambda x, options=options: getattr(x, name)(**options))(x[None])[0]
        wanted = getattr(x, name)(**options)
        np.testing.assert_allclose(found, wanted)
        assert found.dtype == wanted.dtype


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
@pytest.mark.parametrize("ufunc", [np.add, np.multiply])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_ufuncs_method_computes_in_the_dtype_of_a_wider_array_for_its_result(dtype, ufunc, method):
    x = (np.arange(1.0, 8.0) / 3).astype(dtype)
    wide = np.result_type(dtype, np.float64)

    def f(x):
        out = np.zeros(x.shape if method == "accumulate" else (), wide)
        return getattr(ufunc, method)(x, out=out)

    wanted = f(x)
    assert np.any(wanted != getattr(ufunc, method)(x))  # the operand's own precision shows
    transformed = [fad.vjp(f, x)[0], fad.jvp(f, (x,), (x,))[0], fad.jit(f)(x), fad.vmap(f)(x[None])[0]]
    for got in transformed:
        assert got.dtype == wide
        np.testing.assert_allclose(got, wanted, rtol=1e-15)
