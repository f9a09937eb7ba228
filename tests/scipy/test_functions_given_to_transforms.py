"""Functions of SciPy's that are given to a transform themselves, and methods of its objects, are fad's for it."""

import functools
import math

import numpy as np
import pytest
from scipy import integrate, interpolate, linalg, special, stats

import fad

X = np.array([1.5, 2.0, 0.7])
CURVE = interpolate.CubicSpline(np.arange(5.0), np.arange(5.0) ** 3)
GIVEN = {
    "a function": special.logsumexp,
    "a function of samples": integrate.simpson,
    "a method of a distribution": stats.norm.logpdf,
    "a method of a frozen distribution": stats.gamma(2.0).logpdf,
    "an object": CURVE,
    "a partial function": functools.partial(stats.norm.cdf, scale=2.0),
}


@pytest.mark.parametrize("name", GIVEN)
def test_every_transform_takes_them(name):
    f = GIVEN[name]
    named = lambda x: f(x)
    y, tangent = fad.jvp(named, (X,), (X,))
    np.testing.assert_allclose(fad.jvp(f, (X,), (X,)), (y, tangent))
    np.testing.assert_allclose(fad.jit(f)(X), f(X))
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, 1.1 * X])), [f(X), f(1.1 * X)])
    np.testing.assert_allclose(fad.linearize(f, X)[1](X), tangent)
    np.testing.assert_allclose(fad.jacobian(f)(X), fad.jacobian(named)(X))
    np.testing.assert_allclose(fad.jit(fad.jacobian(f))(X), fad.jacobian(named)(X))
    np.testing.assert_allclose(fad.hessian(f)(X), fad.hessian(named)(X))


def test_a_stack_of_matrices_is_mapped_and_a_number_differentiated():
    stack = np.stack([np.eye(2), np.ones((2, 2))])
    np.testing.assert_allclose(fad.vmap(linalg.expm)(stack), [linalg.expm(x) for x in stack])
    np.testing.assert_allclose(fad.vmap(fad.grad(stats.norm.logpdf))(X), -X)
    np.testing.assert_allclose(fad.grad(CURVE)(2.5), CURVE(2.5, 1))


@pytest.mark.parametrize("f", [math.sin, stats.norm.logpdf, stats.norm(0.0, 2.0)], ids=["math", "method", "object"])
def test_a_function_or_an_object_may_be_an_argument(f):
    call = lambda f, x: (f.logpdf(x) if hasattr(f, "logpdf") else f(x)) * 2.0
    slope = (call(f, 0.7 + 1e-6) - call(f, 0.7 - 1e-6)) / 2e-6
    np.testing.assert_allclose(fad.grad(call, 1)(f, 0.7), slope, rtol=1e-7)
    np.testing.assert_allclose(fad.jit(fad.grad(call, 1))(f, 0.7), slope, rtol=1e-7)
    np.testing.assert_allclose(fad.jit(call)(f, 0.7), call(f, 0.7), rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(call, (None, 0))(f, X), [call(f, x) for x in X], rtol=1e-12)
