"""Complex numbers read as pairs of real ones, and pairs as complex numbers: views, as NumPy's are."""

import numpy as np
import pytest
from each import each

import fad
from fad.errors import MissingRuleError
from fad.testing import check_grads

X = np.array([1.0, -2.0, 0.5, 3.0])


def states_of_a_solver(x):
    z = x.view(complex)
    return np.sum((z * z * 1j).view(float) * np.arange(4.0))


def written_through_pairs(x):
    z = np.empty(2, complex)
    v = z.view(np.float64)
    v[:] = 2.0 * x
    v[1] *= x[0]
    z *= 1j
    z[0] += x[3]
    return np.sum(np.abs(z)) + v[3] + np.sum(z.imag)


def written_through_complex_numbers(x):
    y = 1.0 * x
    z = y.view("c16")
    z *= 2j
    y[0] = x[1]
    z[1] = x[0] + 1j * x[2]
    return np.sum(y * np.arange(1.0, 5.0)) + abs(z[0])


def rows(x):
    z = np.outer(x, x).view(complex)
    return np.sum(np.abs(z.T) ** 2 * np.arange(4.0)) + z[1].view(float)[2]


PROGRAMS = [states_of_a_solver, written_through_pairs, written_through_complex_numbers, rows]


@each("fun", PROGRAMS, [f.__name__ for f in PROGRAMS])
def test_pairs_are_views_of_complex_numbers(fun):
    check_grads(fun, (X,), order=2)
    jitted = fad.jit(fad.value_and_grad(fun))
    value, slope = fun(X), fad.grad(fun)(X)
    for _ in range(2):
        got = jitted(X)
        np.testing.assert_allclose(got[0], value, rtol=1e-12)
        np.testing.assert_allclose(got[1], slope, rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(fun)(np.stack([X, 2 * X])), [value, fun(2 * X)], rtol=1e-12)


def test_pairs_have_the_types_and_errors_of_numpys():
    single = fad.jit(lambda x: x.view(np.complex64))(X.astype(np.float32))
    np.testing.assert_array_equal(single, X.astype(np.float32).view(np.complex64))
    assert single.dtype == np.complex64
    for fun in (lambda x: x[::2].view(complex), lambda x: x[:3].view(complex)):
        with pytest.raises(ValueError) as want:
            fun(X)
        with pytest.raises(ValueError, match=str(want.value)[:30]):
            fad.jit(fun)(X)
    for dtype in (int, np.float32, np.complex64):
        with pytest.raises(MissingRuleError, match="reads the memory"):
            fad.grad(lambda x, dtype=dtype: np.sum(x.view(dtype)).real)(X)
