"""Objects with ``__array__`` that hold an array which the program made, traced or not."""

import numpy as np
import pytest

import fad


class Cell:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array.copy() if copy else self.array

    def __matmul__(self, other):
        return self.array @ other


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


def is_written_into_arrays(x):
    a, b = np.zeros((2, 2)), np.zeros((3, 2, 2))
    a[:] = Cell(np.array([[x, 1.0], [2.0, x * x]]))
    b[1] = Cell(a * x)
    a += Cell(b[1])
    np.copyto(b[2], Cell(a))
    return np.sum(b**2)


def meets_a_plain_array(x):
    cell = Cell(np.array([[x, 1.0], [2.0, x * x]]))
    return np.sum((np.ones(2) @ cell) ** 2) + np.sum(np.eye(2) / cell + np.sin(cell))


def meets_a_traced_array(x):
    y, cell = x * np.array([1.0, 2.0]), Cell(np.array([[x, 1.0], [2.0, x * x]]))
    return np.sum(y.dot(cell) ** 2) + np.sum(np.maximum(cell, y) + y / cell) + np.sum(cell @ (y - Cell(y**2)))


def is_in_a_list(x):
    row = Cell(np.array([x, x * x]))
    return np.sum(np.concatenate([row, np.ones(2), x * np.ones(2)]) ** 2) + np.sum(np.vstack((row, row)) ** 3)


class Reflecting(Cell):
    __array_priority__ = 10.0

    def __rmul__(self, other):
        return np.sum(other) * np.sum(self.array)


def reflects_operators(x):
    y = x * np.array([1.0, 2.0])
    return y * Reflecting(y**2) + np.sum(np.multiply.outer(y, [x]))


FUNCTIONS = [
    holds_a_traced_array, is_copied, holds_a_new_plain_array, is_written_into_arrays, meets_a_plain_array,
    meets_a_traced_array, is_in_a_list, reflects_operators,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_an_object_that_stands_for_an_array_is_taken_for_it(f):
    wanted = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6
    for derivative in (fad.grad(f), fad.jit(fad.grad(f)), fad.jacfwd(f)):
        np.testing.assert_allclose(derivative(1.5), wanted, rtol=1e-8)
    np.testing.assert_allclose(fad.vmap(f)(np.array([1.5, 2.0])), [f(1.5), f(2.0)])
