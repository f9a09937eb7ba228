"""``np.hanning(n)`` and ``np.pad(x, n)`` of a traced whole number, and ``np.kaiser(n, beta)``."""

import numpy as np
import pytest
from numpy_versions import BEFORE_2_4

import fad


@pytest.mark.parametrize("make", [np.hanning, np.hamming, np.bartlett, np.blackman])
def test_a_window_has_the_length_that_a_jitted_function_is_given(make):
    name = make.__name__
    f = fad.jit(lambda x, n: x * getattr(np, name)(n))
    for n in (4, 5, 4):
        np.testing.assert_array_equal(f(2.0, n), 2.0 * make(n))
    with pytest.raises(fad.errors.TracerConversionError, match=rf"np\.{name}\(int\(n\)\)"):
        fad.grad(lambda n: np.sum(getattr(np, name)(n)))(5.0)


def test_the_shape_of_a_kaiser_window_has_a_derivative():
    f = lambda beta: np.sum(np.kaiser(5, beta) ** 2) + np.sum(np.kaiser(1, beta))
    value, slope = fad.value_and_grad(f)(5.0)
    assert value == f(5.0)
    np.testing.assert_allclose(slope, (f(5 + 1e-6) - f(5 - 1e-6)) / 2e-6, rtol=1e-7)
    np.testing.assert_array_equal(fad.jit(lambda n, beta: np.kaiser(n, beta))(4, 2.0), np.kaiser(4, 2.0))


WIDTHS = [lambda n: n, lambda n: (n, 1), lambda n: ((n, 2 * n),), lambda n: {0: (1, n)}]


@pytest.mark.parametrize("widths", WIDTHS[:-1] if BEFORE_2_4 else WIDTHS)  # NumPy takes a dictionary since 2.4
def test_an_array_is_padded_by_the_number_that_a_jitted_function_is_given(widths):
    f = lambda x, n: np.pad(x, widths(n), mode="edge")
    x = np.array([1.0, 2.0])
    jitted = fad.jit(f)
    for n in (2, 3, 2):
        np.testing.assert_array_equal(jitted(x, n), f(x, n))
