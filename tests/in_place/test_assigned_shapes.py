"""``x.shape = shape``: an array that has one name, and no views, takes another shape where it lies."""

import types

import numpy as np
import pytest
from numpy_versions import WITH_SET_SHAPES

import fad
from fad.testing import check_grads

X = np.linspace(0.3, 1.7, 12) ** 2
W = np.cos(np.arange(12.0))


def of_result(x):
    y = x * x
    y.shape = (3, 4)
    return np.sum(y @ y.T * W[:9].reshape(3, 3))


def of_copy(x):
    y = x.copy()
    y.shape = 4, -1
    return np.sum(y[1] * y[2] ** 2)


def of_attribute(x):
    held = types.SimpleNamespace(values=np.sin(x))
    held.values.shape = (2, 6)
    return np.sum(held.values[0] * held.values[1])


def of_view(x):
    rows = (x * 2.0).reshape(3, 4)
    row = rows[1]
    row.shape = (2, 2)
    row[0] *= x[0]
    return np.sum(rows**2 * W.reshape(3, 4))


def written_before_and_after(x):
    y = np.zeros(12)
    y[:6] = x[:6] ** 2
    y.shape = (3, 4)
    y[2] = x[:4]
    y[:, 1] *= x[5]
    y.shape = (12,)
    y[3:] += 1.0
    return np.sum(y**2 * W)


def views_of_the_new_shape(x):
    y = x * 1.0
    y.shape = (3, 4)
    row = y[1]
    y.shape = (3, 4)
    row[:] = x[:4] ** 2
    y[:, 2] = 3.0 * x[0]
    return np.sum(y**3) + np.sum(row)


def without_axes(x):
    total = np.sum(x * W, keepdims=True)
    total.shape = ()
    return np.sin(total) * x[0]


def in_a_loop(x):
    total = 0.0
    for k in range(5):
        y = x * (k + 1.0)
        y.shape = (3, 4)
        total = total + np.sum(y[0] * y[1])
    return total


def behind_a_loop(x):
    y = np.zeros(12)
    for k in range(12):
        y[k] = x[k] ** 2
    y.shape = (3, 4)
    return np.sum(y[0] * y[1])


PROGRAMS = [
    of_result, of_copy, of_attribute, of_view, written_before_and_after, views_of_the_new_shape, without_axes,
    in_a_loop, behind_a_loop,
]  # fmt: skip


@WITH_SET_SHAPES
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_shape_is_assigned(f):
    value, _ = fad.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X))
    check_grads(f, (X,), order=2)
    batch = np.stack([X, 2 * X, X + 1])
    np.testing.assert_allclose(fad.vmap(f)(batch), [f(x) for x in batch])
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(batch), [fad.grad(f)(x) for x in batch])
    compiled, slope = fad.jit(f), fad.jit(fad.grad(f))
    for x in batch:
        np.testing.assert_allclose(compiled(x), f(x))
        np.testing.assert_allclose(slope(x), fad.grad(f)(x))


def another_name(x):
    y = x * 1.0
    z = y
    y.shape = (3, 4)
    return np.sum(z[0])


def a_view(x):
    y = x * 1.0
    first = y[:4]
    y.shape = (3, 4)
    first[0] = x[2]
    return np.sum(y)


def a_view_of_a_view(x):
    y = (x * 1.0).reshape(2, 6)
    row = y[0]
    part = row[2:]
    row.shape = (2, 3)
    part[0] = x[2]
    return np.sum(y)


@pytest.mark.parametrize("f", [another_name, a_view, a_view_of_a_view], ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [fad.grad, fad.jit, lambda f: lambda x: fad.jvp(f, (x,), (x,))])
def test_an_array_that_something_else_knows_keeps_its_shape(f, transform):
    with pytest.raises(AttributeError, match=r"x\.reshape"):
        transform(f)(X)


def test_an_array_that_does_not_lie_so_keeps_its_shape():
    def f(x):
        y = (x * 1.0).reshape(3, 4).T
        y.shape = (12,)
        return np.sum(y)

    with pytest.raises(AttributeError, match="incompatible shape"):
        fad.grad(f)(X)


def test_a_shape_of_another_size_is_numpys_error():
    def f(x):
        y = x * 1.0
        y.shape = (5, 2)
        return np.sum(y)

    with pytest.raises(ValueError, match="reshape"):
        fad.grad(f)(X)
