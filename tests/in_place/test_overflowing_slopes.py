"""What is left out of a result has no part in a derivative, though it overflowed."""

import numpy as np
from each import each

import fad


def overwritten(x):
    e = np.exp(x)
    e[np.isinf(e)] = 1.0
    return np.sum(e)


PROGRAMS = {
    "exp, a slice": lambda x: np.sum(np.exp(x)[1:]),
    "exp, overwritten": overwritten,
    "exp, a factor": lambda x: np.sum((x * np.exp(x))[1:]),
    "exp, sorted": lambda x: np.sort(np.exp(x))[0],
    "exp, summed up": lambda x: np.cumsum(np.exp(x[::-1]))[0],
    "exp of exp": lambda x: np.sum(np.exp(np.exp(x))[1:]),
    "exp2": lambda x: np.sum(np.exp2(2.0 * x)[1:]),
    "expm1": lambda x: np.sum(np.expm1(x)[1:]),
    "sinh": lambda x: np.sum(np.sinh(x)[1:]),
    "cosh": lambda x: np.sum(np.cosh(x)[1:]),
    "a power": lambda x: np.sum((x**200)[1:]),
    "a power of a number": lambda x: np.sum(np.power(2.0, 10.0 * x)[1:]),
    "an infinite numerator": lambda x: np.sum((np.array([np.inf, 1.0]) / x)[1:]),
    "an infinite factor": lambda x: np.sum((x * np.array([np.inf, 1.0]))[1:]),
}


@each("name", PROGRAMS)
def test_what_overflowed_and_is_left_out_has_the_derivative_zero(name):
    fun, x = PROGRAMS[name], np.array([1000.0, 1.0])
    with np.errstate(all="ignore"):
        slope = fad.grad(lambda y: fun(np.stack([x[0], y])))(x[1])
        jitted = fad.jit(fad.grad(fun))
        jitted(x / 1000.0)
        for found in (fad.grad(fun)(x), fad.vmap(fad.grad(fun))(x[None])[0], jitted(x), jitted(x)):
            np.testing.assert_allclose(found, [0.0, slope], rtol=1e-12)
        pushed = fad.jvp(fun, (x,), (np.ones(2),))[1]
    np.testing.assert_allclose(pushed, slope, rtol=1e-12)


@each("fun", [np.exp, np.expm1, np.exp2, np.sinh, np.cosh, lambda x: x**60, lambda x: 1e250 / x])
def test_large_numbers_are_looked_at_without_a_warning(fun):
    fad.grad(lambda x: np.sum(fun(x)[1:]))(np.array([500.0, 1.0]))
