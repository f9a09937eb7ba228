"""On a branch cut a function of complex numbers is differentiated on the side that the sign of the zero names."""

import numpy as np
import pytest

import fad

FUNCTIONS = [np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.log, np.log1p, np.sqrt]
ZEROS = [0.0, -0.0]
POINTS = [complex(s * 2.5, zero) for s in (1, -1) for zero in ZEROS]
POINTS += [complex(zero, s * 2.5) for s in (1, -1) for zero in ZEROS]


def slope_along_the_axis(f, z):
    """Return the difference quotient along the axis that z lies on, on the same side of a cut."""
    real = abs(z.imag) < abs(z.real)
    h = 1e-6
    ends = [complex(z.real + e, z.imag) if real else complex(z.real, z.imag + e) for e in (h, -h)]
    high, low = (f(np.complex128(end)) for end in ends)
    return (high - low) / (2 * h * (1 if real else 1j))


@pytest.mark.parametrize("z", POINTS, ids=str)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_derivative_on_a_branch_cut_is_that_of_the_side_that_the_value_is_on(f, z):
    wanted = slope_along_the_axis(f, z)
    tangent = fad.jit(lambda z: fad.jvp(f, (z,), (1 + 0j,))[1])
    got = [fad.grad(f, holomorphic=True)(z), *(tangent(np.complex128(z)) for _ in range(3))]
    np.testing.assert_allclose(got, np.full(4, wanted), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("f", "x"), [(np.emath.arcsin, 2.5), (np.emath.arccos, 2.5), (np.emath.arccos, -2.5)])
def test_emath_is_differentiated_outside_of_the_domain_of_real_numbers(f, x):
    h = 1e-6
    wanted = (f(x + h).imag - f(x - h).imag) / (2 * h)
    np.testing.assert_allclose(fad.grad(lambda x: f(x).imag)(x), wanted, rtol=1e-6)


@pytest.mark.parametrize("f", [np.arcsin, np.arccos])
@pytest.mark.parametrize("x", [1.0, -1.0])
def test_at_the_ends_of_the_real_domain_the_derivative_is_infinite_with_its_sign(f, x):
    with np.errstate(divide="ignore"):
        assert fad.grad(f)(x) == (np.inf if f is np.arcsin else -np.inf)
