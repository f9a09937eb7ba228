"""NumPy's polynomial objects with traced coefficients and operands: their operators catch what they do not know."""

import functools

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial

import fad

BEFORE = Polynomial([1.0, 2.0, 3.0])
X = np.array([1.3, 2.0, 0.7, 3.1])
PROGRAMS = {
    "made times traced": lambda x: (Polynomial([1, 2, 3]) * x[0])(2.0),
    "traced times made": lambda x: (x[0] * Polynomial([1, 2, 3]))(x[1]),
    "times traced": lambda x: (BEFORE * x[0])(2.0),
    "traced minus": lambda x: (x[0] - BEFORE)(2.0) ** 2,
    "times an array": lambda x: (x[:2] * BEFORE)(2.0) ** 2,
    "over traced": lambda x: (BEFORE / x[0] + BEFORE // x[:2])(1.0),
    "negated": lambda x: (-BEFORE * x[0] % x[:2])(1.0),
    "of traced coefficients": lambda x: (Polynomial(x) ** 2)(x[0]) + Chebyshev(x).integ()(0.3),
}


def differences(f, x):
    h = 1e-6
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", ["grad", "jvp", "vmap", "jit", "nested"])
def test_polynomials_have_their_derivatives_in_every_transform(name, mode):
    def f(x):  # one that no transform has seen
        return PROGRAMS[name](x)

    f = functools.partial(f)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-6)
    wanted = differences(f, X)
    if mode == "grad":
        close(fad.grad(f)(X), wanted)
    elif mode == "jvp":
        close(fad.jvp(f, (X,), (np.ones(4),))[1], np.sum(wanted))
    elif mode == "vmap":
        close(fad.vmap(fad.grad(f))(np.stack([X, X * 1.1])), [wanted, differences(f, X * 1.1)])
    elif mode == "jit":
        for g in (fad.jit(fad.grad(f)), fad.jit(fad.grad(f))):
            for x in (X, X * 1.1):
                close(g(x), differences(f, x))
    else:
        close(fad.hessian(f)(X), differences(fad.grad(f), X))


def test_a_function_of_polynomials_runs_twice_the_first_time_alone():
    calls = []

    def f(x):
        calls.append(x)
        return (BEFORE * x)(2.0)

    for _ in range(4):
        assert fad.grad(f)(1.0) == BEFORE(2.0)
    assert len(calls) == 5
