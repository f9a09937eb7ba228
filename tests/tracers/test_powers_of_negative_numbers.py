"""A power of a negative number of Python's with a fraction is complex, in every transform."""

import numpy as np
import pytest

import fad


def f(x):
    return ((-x) ** 1.5).imag + abs((-x) ** (x * 1.25)) + pow(-x, -0.5).imag


def differences(f, x, h=1e-6):
    return (f(x + h) - f(x - h)) / (2 * h)


def test_it_has_its_derivatives():
    value, slope = fad.value_and_grad(f)(1.3)
    assert value == pytest.approx(f(1.3))
    assert slope == pytest.approx(differences(f, 1.3))
    assert fad.jvp(f, (1.3,), (1.0,))[1] == pytest.approx(slope)
    assert fad.grad(fad.grad(f))(1.3) == pytest.approx(differences(fad.grad(f), 1.3))
    fast = fad.jit(fad.value_and_grad(f))
    for _ in range(2):
        np.testing.assert_allclose(fast(1.3), (value, slope))
    with np.errstate(invalid="ignore"):  # NumPy's numbers stay real
        assert np.isnan(fad.vmap(lambda x: x**0.5)(np.array([-1.0]))).all()


def test_a_jitted_function_finds_whether_it_is_complex():
    def sum_up(x):
        total = 0.0
        for _ in range(100):
            total += (x**1.5).real
            x -= 0.1
        return total

    for g in (lambda x: x**0.5, lambda x: (x**0.5).imag, sum_up, lambda n: 2**n):
        fast = fad.jit(g)
        for x in (12, 11, -2, 12, -3) if g(2) == 4 else (12.0, 11.0, -2.0, 12.0, 4.0):
            assert type(fast(x)) is type(g(x))
            assert fast(x) == pytest.approx(g(x))
