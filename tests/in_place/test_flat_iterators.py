"""The flat iterator of a traced array stands for its elements wherever NumPy takes an array."""

import numpy as np
import pytest

import fad

X = np.array([[0.2, 0.7], [0.4, 0.9]])


def add_to_buffer(x):
    out = np.zeros(4)
    out += x.T.flat
    return out * out


def take_elements(flat):
    first = next(flat)
    return np.array([first, *flat, *flat]) * first  # which has no more


PROGRAMS = {
    "a ufunc": lambda x: np.sin(x.flat),
    "a ufunc of two": lambda x: np.arange(4.0) * x.T.flat,
    "a reduction of a ufunc": lambda x: np.multiply.reduce(x.flat),
    "interp": lambda x: np.interp(x.flat, [0.0, 0.5, 1.0], [0.0, 1.0, 4.0]),
    "dot": lambda x: np.dot(x.flat, x.T.flat),
    "norm": lambda x: np.linalg.norm(x.flat),
    "cumsum by name": lambda x: np.cumsum(a=x.flat),
    "concatenate": lambda x: np.concatenate([x.flat, x.T.flat]) ** 2,
    "array": lambda x: np.array(x.flat) ** 2,
    "asarray": lambda x: np.asarray(x.T.flat) ** 2,
    "an update of an array": add_to_buffer,
    "what compares": lambda x: np.where(x.flat != 0.3, x.flat, 0.0) * (x.flat < 0.5) + x.flat[1] * any(x.flat >= 0.8),
    "its elements one by one": lambda x: take_elements(x.T.flat),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_flat_iterator_is_taken_for_an_array(name):
    f = PROGRAMS[name]
    direction = np.array([[0.3, -0.5], [0.8, 0.1]])
    h = 1e-6
    expected = (f(X + h * direction) - f(X - h * direction)) / (2 * h)
    y, tangent = fad.jvp(f, (X,), (direction,))
    np.testing.assert_array_equal(y, f(X))
    np.testing.assert_allclose(tangent, expected, rtol=1e-7, atol=1e-8)
    gradient = fad.grad(lambda x: np.sum(f(x)))(X)
    np.testing.assert_allclose(np.sum(gradient * direction), np.sum(expected), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(fad.jit(f)(X), f(X))
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, 2 * X]))[0], f(X))
