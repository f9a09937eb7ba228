"""np.ndenumerate over traced arrays, in code that knows it by either name."""

import numpy as np
import pytest
from numpy import ndenumerate

import fad

A = np.arange(6.0).reshape(2, 3)


def by_attribute(a):
    s = 0.0
    for (i, j), v in np.ndenumerate(a):
        s = s + v * v * (i + 2 * j)
    return s


def by_name(a):
    return sum(v * v * (i + 2 * j) for (i, j), v in ndenumerate(a * 1.0))


@pytest.mark.parametrize("f", [by_attribute, by_name])
def test_ndenumerate_gives_the_places_and_elements_of_a_traced_array(f):
    i, j = np.indices(A.shape)
    slope = 2 * A * (i + 2 * j)
    assert np.array_equal(fad.grad(f)(A), slope)
    assert np.array_equal(fad.jit(fad.grad(f))(A), slope)
    assert fad.jit(f)(A) == f(A)
    assert fad.jvp(f, (A,), (A,)) == (f(A), np.sum(slope * A))
    assert np.array_equal(fad.vmap(f)(np.stack([A, 2 * A])), [f(A), f(2 * A)])


def test_ndenumerate_of_an_array_that_is_written_sees_the_writes():
    def f(x):
        y = np.zeros(3)
        y[0] = x
        for (i,), v in np.ndenumerate(y):
            y[(i + 1) % 3] = v * 2.0
        return np.sum(y)

    assert fad.grad(f)(1.5) == f(1.0) == fad.jit(f)(1.0)
