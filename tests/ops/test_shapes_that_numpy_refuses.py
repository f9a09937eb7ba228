"""Shapes, axes and copies that NumPy refuses are refused for traced arrays, with the same class of error."""

import numpy as np
import pytest

import fad

CALLS = {
    "a fraction as a length": lambda x: np.reshape(x, (3.0, 2)),
    "a fraction in the method": lambda x: x.reshape((2.5, 2)),
    "no shape": lambda x: x.reshape(),
    "another size": lambda x: x.reshape(4, 2),
    "a fraction as a length to fill": lambda x: np.full((2.0,), x[0]),
    "an axis beyond those of the first": lambda x: np.append(x, 1, axis=1),
    "a number first": lambda x: np.concatenate([x[0], x], axis=3),
    "a reshape that copies": lambda x: np.reshape(x.reshape(2, 3).T, (6,), copy=False),
    "a list without a copy": lambda x: np.array([x[0], 2.0], copy=False),
    "a list as an array without a copy": lambda x: np.asarray([x[0], 2.0], copy=False),
    "another dtype without a copy": lambda x: np.array(x, dtype=np.float32, copy=False),
}
TAKEN = {
    "None": lambda x: np.reshape(x, None, order="K"),
    "a view": lambda x: np.reshape(x, (2, 3), copy=False),
    "an array itself": lambda x: np.array(x, copy=False),
    "NumPy's integers": lambda x: x.reshape(np.int64(3), np.uint8(2)),
    "an array of integers": lambda x: x.reshape(np.array([3, 2])),
}
X = np.arange(6.0)


def error_of(f):
    try:
        f()
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("name", CALLS)
def test_the_error_is_numpys(name):
    f = CALLS[name]
    wanted = error_of(lambda: f(X))
    assert wanted is not None
    assert error_of(lambda: fad.jvp(f, (X,), (X,))) is wanted
    assert error_of(lambda: fad.vjp(f, X)) is wanted
    assert error_of(lambda: fad.jit(f)(X)) is wanted


@pytest.mark.parametrize("name", TAKEN)
def test_what_numpy_takes_is_taken(name):
    f = TAKEN[name]
    np.testing.assert_array_equal(fad.jvp(f, (X,), (X,))[1], f(X))
    np.testing.assert_array_equal(fad.jit(f)(X), f(X))
