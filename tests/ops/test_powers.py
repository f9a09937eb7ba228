"""Powers by whole numbers, whose derivatives are computed by products."""

import numpy as np
import pytest

import fad

EXPONENTS = [-17, -16, -7, -2, -1, 0, 1, 2, 3, 4, 6, 11, 16, 17, 18, 3.0, -2.0, 12.0]
X = np.array([0.5, -1.3, 2.0, -0.04])


@pytest.mark.parametrize("n", EXPONENTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_derivatives_of_whole_powers_are_those_of_the_formula(n, dtype):
    x, n64 = X.astype(dtype), float(n)
    wanted = n64 * np.power(x.astype(np.result_type(dtype, np.float64)), n64 - 1.0)
    power = lambda x: x**n
    found = fad.vjp(power, x)[1](np.ones_like(x))[0]
    pushed = fad.jvp(power, (x,), (np.ones_like(x),))[1]
    single = dtype is np.float32
    for slope in (found, pushed):
        assert slope.dtype == dtype
        np.testing.assert_allclose(slope, wanted.astype(dtype), rtol=2e-6 if single else 1e-14)
    if not single and dtype is not np.complex128:
        bend = fad.grad(lambda x: np.sum(fad.grad(lambda x: np.sum(power(x)))(x)))(x)
        np.testing.assert_allclose(bend, n64 * (n64 - 1.0) * np.power(x, n64 - 2.0), rtol=1e-13)


def test_powers_at_zero_and_near_the_ends_of_the_numbers():
    with np.errstate(divide="ignore", over="ignore"):
        slopes = [fad.grad(lambda x, n=n: np.sum(x**n))(np.array([0.0, 1e-160, 1e160])) for n in (2, 3, -1)]
    np.testing.assert_allclose(slopes[0], [0.0, 2e-160, 2e160])
    np.testing.assert_allclose(slopes[1][:1], [0.0])
    assert slopes[1][2] == np.inf
    np.testing.assert_array_equal(slopes[2][[0, 1]], [-np.inf, -np.inf])
    np.testing.assert_allclose(slopes[2][2], -1e-320, rtol=1e-3)  # which has few digits left


def test_values_stay_numpys():
    for n in EXPONENTS:
        np.testing.assert_array_equal(fad.value_and_grad(lambda x, n=n: np.sum(x**n))(X)[0], np.sum(X**n))
