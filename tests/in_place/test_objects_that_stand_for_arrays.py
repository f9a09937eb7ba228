"""Objects with ``__array__`` that hold an array which the program made, traced or not."""

import numpy as np
import pytest

import fad


class Cell:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array.copy() if copy else self.array


def holds_a_traced_array(x):
    a = np.zeros((2, 2))
    a[0, 0], a[1, 1] = x, x * x
    return np.sum(np.asarray(Cell(a)) * 2.0)


def is_copied(x):
    a = np.zeros(2)
    a[0] = x
    copied = np.array(Cell(a))
    copied[1] = a[0] ** 2
    return np.sum(copied) + np.sum(a)


def holds_a_new_plain_array(x):
    cell, y = Cell(np.eye(2)), np.ones(2)
    y[0] = x
    return np.sum(np.dot(cell, y)) + np.linalg.norm(cell) * y[0] ** 2 + np.sum(np.asarray(cell) @ y)


@pytest.mark.parametrize("f", [holds_a_traced_array, is_copied, holds_a_new_plain_array], ids=lambda f: f.__name__)
def test_an_object_that_stands_for_an_array_is_taken_for_it(f):
    wanted = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6
    for derivative in (fad.grad(f), fad.jit(fad.grad(f)), fad.jacfwd(f)):
        np.testing.assert_allclose(derivative(1.5), wanted, rtol=1e-8)
    np.testing.assert_allclose(fad.vmap(f)(np.array([1.5, 2.0])), [f(1.5), f(2.0)])
