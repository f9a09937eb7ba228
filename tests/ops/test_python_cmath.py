"""Python's `cmath` in programs that are differentiated as they are written, with its values, branch cuts and errors."""

import cmath
import functools
import itertools
import math
import pickle
from cmath import exp

import numpy as np
import pytest

import fad

ONE = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10", "sin", "sinh", "sqrt",
    "tan", "tanh",
)  # fmt: skip
PARTS = (0.0, -0.0, 0.5, -2.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 800.0)
PLACES = [complex(a, b) for a, b in itertools.product(PARTS, PARTS)]
TABLE = {name: getattr(cmath, name) for name in ONE}


def around(x):
    z = complex(x[0], 0.3)
    for k in range(30):
        z = 0.5 * cmath.exp(1j * z) + 0.1 * cmath.sin(z) / (k + x[1])
    return abs(z)


def impedance(x):
    z = x[0] + 3j * x[1] + 1 / (3j * x[0])
    size, angle = cmath.polar(z)
    return size * angle + cmath.phase(z**2)


def cube_roots(x):
    roots = [cmath.rect(x[0] ** (1 / 3), (cmath.phase(-x[1]) + cmath.tau * k) / 3) for k in range(3)]
    return sum(abs(r - 1) ** 2 for r in roots)


def transformed(x):
    a = [sum(v * exp(-2j * cmath.pi * k * t / 2) for t, v in enumerate(x)) for k in range(2)]
    return abs(a[0]) ** 2 + 3 * abs(a[1]) ** 2


def quadratic(x):
    return ((-x[0] + cmath.sqrt(x[0] ** 2 - 4 * x[1])) / 2).imag


def with_a_base(x):
    return (cmath.log(complex(x[0], x[1]), 2) * cmath.log(x[0], complex(3, 1)) * 1j).real


PROGRAMS = [around, impedance, cube_roots, transformed, quadratic, with_a_base]
X = np.array([0.7, 1.4])


def differences(f, x):
    h = 1e-6
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_have_their_derivatives_in_every_transform(f):
    close = functools.partial(np.testing.assert_allclose, rtol=1e-7, atol=1e-7)
    wanted = differences(f, X)
    close(fad.grad(f)(X), wanted)
    close(fad.jvp(f, (X,), (np.ones(2),))[1], np.sum(wanted))
    close(fad.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])
    close(fad.hessian(f)(X), differences(fad.grad(f), X))
    fast, steep = fad.jit(f), fad.jit(fad.grad(f))
    for x in (X, X + 0.5, X):
        close(fast(x), f(x))
        close(steep(x), differences(f, x))


def outcome(f, *args):
    try:
        return repr(complex(f(*args)))
    except (ValueError, OverflowError) as error:
        return repr(error)


def is_like(found, wanted):
    """Return whether an outcome is another, or a number that differs by rounding."""
    if found == wanted or "Error" in wanted + found:
        return found == wanted
    return abs(complex(found) - complex(wanted)) <= 4e-16 * abs(complex(wanted))


@pytest.mark.parametrize("name", ONE)
def test_values_and_errors_are_those_of_cmath(name):
    f = lambda z: TABLE[name](z)
    fast = fad.jit(f)
    for z in PLACES:
        with np.errstate(all="ignore"):  # where the slope is infinite
            assert outcome(lambda z: fad.jvp(f, (z,), (1 + 0j,))[0], z) == outcome(f, z)
        assert is_like(outcome(fast, z), outcome(f, z))


@pytest.mark.parametrize("name", ONE)
def test_derivatives_are_complex(name):
    f = lambda z: TABLE[name](z)
    for z in (0.4 + 0.7j, -1.3 + 0.2j, 1.8 - 1.1j):
        slope = (f(z + 1e-6) - f(z - 1e-6)) / 2e-6
        np.testing.assert_allclose(fad.jvp(f, (z,), (1 + 2j,))[1], slope * (1 + 2j), rtol=1e-8)
        of_parts = fad.grad(lambda x, y: f(complex(x, y)).imag, (0, 1))(z.real, z.imag)
        np.testing.assert_allclose(of_parts, [slope.imag, slope.real], rtol=1e-7, atol=1e-9)


def test_what_is_asked_of_a_complex_number_is_answered():
    def f(x):
        z = complex(x, 1)
        if cmath.isnan(z) or cmath.isinf(z) or not cmath.isfinite(z) or not cmath.isclose(z, z + 1e-12):
            return x
        return x * x if cmath.isclose(z, 2 + 1.1j, abs_tol=0.2) else 3 * x

    assert fad.grad(f)(2.0) == 4.0
    assert fad.grad(f)(1.0) == 3.0
    assert [fad.jit(f)(x) for x in (2.0, 1.0)] == [4.0, 3.0]


def test_a_function_of_cmath_may_be_pickled_and_asked_for_its_name_meanwhile():
    def f(x):
        assert pickle.loads(pickle.dumps(cmath.exp)) == exp
        assert cmath.log.__name__ == "log"
        return cmath.exp(x).real

    assert fad.grad(f)(0.0) == 1.0
