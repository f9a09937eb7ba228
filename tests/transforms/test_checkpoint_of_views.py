"""A function under checkpoint may return views of arrays that it wrote, before and after the write."""

from __future__ import annotations

import numpy as np
import pytest

import fad


def _column(x):
    y = (x * x).reshape(2, 1)
    y[0] = x[1] * x[0]
    return y


def _in_order_of_columns(x):
    y = np.zeros((2, 1), order="F")
    y[:, 0] = x
    y[0] = x[1] * x[0]
    return y.reshape(-1, order="F")


def _through_a_view(x):
    y = x.copy()
    w = y[:]
    w *= x
    return w


def _into_zeros(x):
    y = np.zeros(3)
    w = y[:2]
    w[0] = x[0] * x[1]
    return w


def _array_and_its_view(x):
    y = np.zeros(2)
    w = y[:]
    w[0] += x[1] * x[0]
    return y, w


def _flipped(x):
    y = np.flip(x * 1)
    y[0] *= x[0]
    return y


def _transposed(x):
    y = np.outer(x, x).T
    y[0] *= x[1]
    return y


def _sorted_backward(x):
    y = np.sort(x)[::-1]
    y[1:] *= x[0]
    return y


def _last_row(x):
    y = np.outer(x, x)
    for r in y[1:]:
        r[:] = r * x
    return r


def _element_taken_before(x):
    y = x.copy()
    first = y[:1]
    y[0] = x[0] * x[1]
    return first


def _same_array_twice(x):
    y = x * x
    y[0] *= x[1]
    return y, y


PROGRAMS = [
    _column, _in_order_of_columns, _through_a_view, _into_zeros, _array_and_its_view, _flipped, _transposed,
    _sorted_backward, _last_row, _element_taken_before, _same_array_twice,
]  # fmt: skip
POINT = np.array([3.0, 5.0])


def _loss(f):
    return lambda x: sum(np.sum(np.sin(y) * y) for y in fad.tree.leaves(f(x)))


@pytest.mark.parametrize("wrap", [
    lambda f: fad.checkpoint(f), lambda f: fad.checkpoint(fad.checkpoint(f)), lambda f: fad.checkpoint(fad.jit(f)),
    lambda f: fad.jit(fad.checkpoint(f)), lambda f: lambda x: fad.checkpoint(lambda x: f(x))(x * 1),
], ids=["checkpoint", "twice", "of jit", "in jit", "in a function"])  # fmt: skip
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_derivatives_are_those_without_checkpoint(f, wrap):
    g = wrap(f)
    for wanted, found in [
        (fad.jacrev(f)(POINT), fad.jacrev(g)(POINT)),
        (fad.grad(_loss(f))(POINT), fad.grad(_loss(g))(POINT)),
        (fad.grad(_loss(f))(POINT), fad.jit(fad.grad(_loss(g)))(POINT)),
        (fad.hessian(_loss(f))(POINT), fad.hessian(_loss(g))(POINT)),
        (fad.grad(_loss(f))(POINT), fad.vmap(fad.grad(_loss(g)))(np.stack([POINT, POINT]))[1]),
    ]:
        for a, b in zip(fad.tree.leaves(wanted), fad.tree.leaves(found), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12)


def test_a_write_into_one_result_is_one_into_another_of_the_same_array():
    def f(x):
        y, w = fad.checkpoint(_array_and_its_view)(x)
        w[0] = 7.0 * x[0]
        return np.sum(y * y) + np.sum(w)

    value, gradient = fad.value_and_grad(f)(POINT)
    assert value == f(POINT) == 21.0**2 + 21.0
    np.testing.assert_allclose(gradient, [2 * 21 * 7 + 7, 0])


_picked = np.sin


def _write_squares(x):
    y = np.zeros(2)
    y[:] = x * x
    return y


def _sum_of_picked(x):
    return np.sum(_picked(x))


def test_the_second_run_finds_the_function_that_a_name_stands_for_now(monkeypatch):
    fad.grad(_sum_of_picked)(POINT)
    monkeypatch.setitem(globals(), "_picked", _write_squares)
    np.testing.assert_array_equal(fad.grad(fad.checkpoint(_sum_of_picked))(POINT), 2 * POINT)
