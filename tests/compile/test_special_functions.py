"""SciPy's special functions run in native programs, by pointer, and give exactly what SciPy gives."""

import numpy as np
import pytest
import scipy.special
from natively import native

import fad
import fad.scipy.special as sp
from fad import control
from fad.compile.codegen.special_functions import address

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
X = rng.uniform(0.1, 0.9, (5, 8))


ONE = ["gammaln", "digamma", "gamma", "rgamma", "erfinv", "erfcinv", "ndtri", "log_ndtr", "erfcx", "dawsn", "i0", "i0e"]
ONE += ["i1", "i1e", "j0", "j1", "y0", "k0", "k1", "exp1", "expi", "spence", "ellipk"]
TWO = ["betaln", "beta", "gammainc", "gammaincc", "rel_entr"]


@pytest.mark.parametrize("name", ONE)
def test_a_function_of_one_number_is_scipys_to_the_bit(name):
    f = getattr(sp, name)
    ends = np.array([0.0, -0.0, 1.0, -1.5, 2.0, 30.0, 1e3, np.inf, -np.inf, np.nan])
    for x in (X, X.T, X[:, ::2], X[0, 0], ends, rng.uniform(0.1, 0.9, 20_000)):
        np.testing.assert_array_equal(native(f, x), f(x))
    y = native(f, X.astype(np.float32))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, f(X.astype(np.float32)), rtol=2e-6)


@pytest.mark.parametrize("name", TWO)
def test_a_function_of_two_numbers_is_too_in_any_broadcast(name):
    f = getattr(sp, name)
    for a, b in ((X, X[::-1]), (X, X[0]), (X[:, :1], X), (X[0, 0], X), (X, 0.5), (2.0, X)):
        np.testing.assert_array_equal(native(f, a, b), f(a, b))
    np.testing.assert_array_equal(native(lambda x: f(2.5, x) + f(x, 0.5), X), f(2.5, X) + f(X, 0.5))


def test_a_function_of_three_numbers_is_too():
    np.testing.assert_array_equal(native(lambda x: sp.betainc(2.0, 3.0, x), X), scipy.special.betainc(2.0, 3.0, X))


def test_likelihoods_and_their_derivatives_run_natively():
    counts = rng.poisson(4.0, 50).astype(float)

    def negative_binomial(p):
        r, mu = np.exp(p[0]), np.exp(p[1])
        terms = sp.gammaln(counts + r) - sp.gammaln(r) - sp.gammaln(counts + 1.0)
        return -np.sum(terms + r * np.log(r / (r + mu)) + sp.xlogy(counts, mu / (r + mu)))

    p = np.array([0.3, 1.2])
    for f in (negative_binomial, fad.grad(negative_binomial)):
        np.testing.assert_allclose(native(f, p), f(p), rtol=1e-12)


def test_a_loop_that_calls_one_does_not_return_to_python():
    def inverse_digamma(y):  # Newton's iteration
        step = lambda i, x: x - (sp.digamma(x) - y) * 0.5 * x
        return control.fori_loop(0, 60, step, np.exp(y) + 0.5)

    y = np.linspace(-0.5, 2.0, 7)
    np.testing.assert_allclose(scipy.special.digamma(native(inverse_digamma, y)), y, rtol=1e-12, atol=1e-13)


def test_functions_that_scipy_does_not_export_stay_calls():
    assert address(np.sin) is None
    assert address(scipy.special.airy) is None
