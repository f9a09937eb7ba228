"""numpy.polynomial and numpy.testing, which are written in Python, run on traced values as a user's functions do."""

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial

import fad

P = np.polynomial
X = np.array([0.3, 0.5, 0.9, 1.3])
CONSTANT = Polynomial([1.0, 2.0, 3.0])


def compare(x):
    np.testing.assert_allclose(x, x + 1e-9, rtol=1e-6)
    np.testing.assert_array_less(x, x + 1)
    return x**2


PROGRAMS = {
    "values at traced places": lambda x: P.polynomial.polyval(x, [1.0, 2.0, 3.0]),
    "values of traced coefficients": lambda x: P.chebyshev.chebval(0.3, x),
    "values in two variables": lambda x: P.polynomial.polyval2d(x, x, np.ones((2, 3))),
    "other bases": lambda x: P.legendre.legval(x, x) + P.hermite.hermval(x, x) + P.laguerre.lagval(x, x),
    "a matrix of powers": lambda x: P.legendre.legvander(x, 3),
    "a fit": lambda x: P.polynomial.polyfit(np.arange(4.0), x, 2),
    "roots": lambda x: P.polynomial.polyroots(x).real,
    "a change of basis": lambda x: P.chebyshev.cheb2poly(x),
    "derivative and integral": lambda x: P.hermite_e.hermeder(P.hermite_e.hermeint(P.hermite_e.hermemul(x, x))),
    "an object from outside": lambda x: CONSTANT(x) * CONSTANT.deriv()(x),
    "an object of traced coefficients": lambda x: (Polynomial(x) * Polynomial([1.0, 2.0]) - 1.0)(2.0) * x,
    "a fitted object": lambda x: Chebyshev.fit(np.arange(4.0), x, 2)(1.5) * x,
    "comparisons of numpy.testing": compare,
}


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_packages_of_numpy_in_python_take_traced_values(f):
    t, h = np.array([1.0, -0.5, 0.3, 2.0]), 1e-6
    y, slope = fad.jvp(f, (X,), (t,))
    assert np.asarray(y).dtype == np.asarray(f(X)).dtype
    np.testing.assert_allclose(y, f(X), rtol=1e-12)
    np.testing.assert_allclose(slope, (f(X + h * t) - f(X - h * t)) / (2 * h), rtol=1e-5, atol=1e-7)
    weights = np.cos(np.arange(np.size(y))).reshape(np.shape(y))
    assert fad.grad(lambda x: np.sum(weights * f(x)))(X) @ t == pytest.approx(np.sum(weights * slope), rel=1e-8)
    run = fad.jit(f)
    for x in (X, 1.1 * X):
        np.testing.assert_allclose(run(x), f(x), rtol=1e-10)
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, 1.1 * X])), [f(X), f(1.1 * X)], rtol=1e-10)


def test_a_comparison_of_numpy_testing_that_fails_says_so_under_a_transform():
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        fad.grad(lambda x: (np.testing.assert_allclose(x, x + 1.0), np.sum(x))[1])(X)


def test_an_item_of_a_traced_array_is_a_number_with_its_derivative():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(fad.grad(lambda x: x.item(1) * x.item(1, 0) * x.item((1, -1)))(x), [[0, 12], [8, 6]])
    assert fad.grad(lambda x: (x[0] @ x[1]).item() ** 2)(x)[0, 0] == 2 * 11 * 3
    single = fad.jvp(lambda x: x * x.item(0), (x.astype("f"),), (x.astype("f"),))[0]
    assert single.dtype == np.float32
    np.testing.assert_array_equal(fad.vmap(lambda x: x.item(0) * x)(x), x[:, :1] * x)
    for place, error in (((), ValueError), ((9,), IndexError), ((0, 0, 0), ValueError)):
        with pytest.raises(error):
            fad.grad(lambda x, place=place: x.item(*place))(x)


def test_fromiter_takes_traced_numbers():
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(np.fromiter((v * v for v in x), float)))(X), 2 * X)
    y, slope = fad.jvp(lambda x: np.fromiter(iter(x), np.float32, 2), (X,), (X,))
    assert y.dtype == slope.dtype == np.float32
    np.testing.assert_array_equal(slope, X[:2].astype(np.float32))
    with pytest.raises(ValueError, match="iterator too short"):
        fad.grad(lambda x: np.sum(np.fromiter(iter(x), float, 9)))(X)


@pytest.mark.parametrize("copy", [np._CopyMode.IF_NEEDED, np._CopyMode.ALWAYS, np._CopyMode.NEVER])
def test_copies_are_requested_by_numpys_enumeration(copy):
    def f(x):
        return np.array(np.reshape(np.asarray(x, copy=copy), (2, 2), copy=copy), copy=copy) * 2.0

    np.testing.assert_array_equal(fad.jvp(f, (X,), (X,))[1], f(X))
