"""``row = A[i]`` with a traced i is a view, as in NumPy: it is written through, and sees what is written."""

import numpy as np
import pytest

import fad

A = np.random.default_rng(0).normal(size=(4, 3))


def writes_through_a_row(a, n):
    row = a[n]
    row[0] = np.sum(row)
    row *= 2.0
    return a


def reads_a_row_after_a_write(a, n):
    row = a[n]
    a[n, 0] = a[n, 1] ** 2
    a[n, 1] = row[0] * 3.0
    return a


def writes_through_a_part_of_a_row(a, n):
    part = a[n, 1:]
    part[:] = part[::-1] * a[n, 0]
    a[n] += 1.0
    return a


def writes_through_a_column(a, n):
    column = a[:, n]
    column[1:] -= column[:-1] * a[0, 0]
    return a


def keeps_a_copy(a, n):
    row = a[n].copy()
    a[n] = 0.5
    a[n, 2] += row[1] * row[2]
    return a


PROGRAMS = [
    writes_through_a_row, reads_a_row_after_a_write, writes_through_a_part_of_a_row, writes_through_a_column,
    keeps_a_copy,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_view_by_the_counter_of_a_loop_is_numpys(program):
    def by_loop(a):
        return fad.fori_loop(0, 3, lambda i, a: program(a, i), a.copy())

    def by_python(a):
        a = a.copy()
        for i in range(3):
            a = program(a, i)
        return a

    def total(loop):
        return lambda a: np.sum(loop(a) * np.cos(np.arange(12.0).reshape(4, 3)))

    jitted, derivative = fad.jit(by_loop), fad.jit(fad.grad(total(by_loop)))
    expected = fad.grad(total(by_python))(A)
    for _ in range(3):
        np.testing.assert_allclose(jitted(A), by_python(A), rtol=1e-13)
        np.testing.assert_allclose(derivative(A), expected, rtol=1e-12, atol=1e-12)
    fad.testing.check_grads(total(by_loop), (A,), order=2)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_view_by_a_traced_argument_is_numpys(program):
    def fun(a, n):
        return program(a.copy(), n)

    jitted = fad.jit(fun)
    for n in (0, 2, 1, 2):
        np.testing.assert_allclose(jitted(A, n), fun(A, n), rtol=1e-13)
    derivative = fad.jit(fad.grad(lambda a, n: np.sum(np.sin(fun(a, n)))))
    expected = fad.grad(lambda a: np.sum(np.sin(fun(a, 1))))(A)
    for _ in range(3):
        np.testing.assert_allclose(derivative(A, 1), expected, rtol=1e-12, atol=1e-12)
