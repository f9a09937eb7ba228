"""Buffers that a function makes are memory of their own: copies of them stay as they are, views of them follow."""

import copy

import numpy as np
import pytest

import fad

X = np.array([0.7, 1.3, 0.4])


def a_shallow_copy_is_a_copy(x):
    b = np.zeros(3)
    c = copy.copy(b)
    d = copy.deepcopy(b)
    b[0] = 2.0
    return np.sum(x * b) + 10 * np.sum(c * x) + 100 * np.sum(d * x)


def copyto_copies(x):
    y, z = np.ones(3), np.zeros(3)
    np.copyto(z, y)
    z[0] = 5.0
    y[1] = 7.0
    return np.sum(x * y) + 10 * np.sum(x * z)


def index_arrays_are_refilled_after_the_write(x):
    i = np.zeros(2, int)
    y = x * 1.0
    y[i] = x[1:] * x[:2]
    i[:] = 1, 2
    y[i] *= 3.0
    i[0] = 0
    y[i] += x[0]
    return np.sum(y * np.array([1.0, 2.0, 3.0]))


def a_failed_write_leaves_the_views_in_place(x):
    y = x * 1.0
    y[0] = 2.0
    row = y[1:]
    kept = y.copy()
    try:
        y[:2] = np.ones(3)
    except ValueError:
        row[0] = x[0] * 4.0
    return np.sum(y * y) + np.sum(kept)


def a_traced_value_comes_after_views_of_a_buffer(x):
    b = np.arange(6.0).reshape(2, 3)
    row, flat = b[1], b.ravel()
    b[0] = x
    flat[4] += x[0] * x[1]
    row *= 2.0
    return np.sum(b * np.cos(np.arange(6.0)).reshape(2, 3)) + np.sum(flat**2)


def a_failed_write_leaves_a_buffer_as_it_was(x):
    b = np.ones(2)
    try:
        b[:] = x
    except ValueError:
        b[0] = 3.0
    return np.sum(x) * np.sum(b)


def plain_writes_follow_numpys_casts(x):
    i, z = np.zeros(3, int), np.zeros(3, complex)
    i[:] = 2.7
    i[1] += 3
    z[0] = 1j
    z[1:] = i[1:]
    return np.sum(x * i) + np.sum((x * z).imag) + np.sum((x * z).real)


def views_of_views_are_read_after_each_write(x):
    m = np.outer(x, x)
    t = m.T
    flat = m.reshape(-1)
    for k in range(1, 9):
        flat[k] = flat[k - 1] * 0.5 + t[k // 3, k % 3]
        t[1][0] += t[0][1] * flat[0]
    return np.sum(m * np.cos(np.arange(9.0)).reshape(3, 3)) + flat[2:5].sum() + np.sum(t[1] ** 2)


PROGRAMS = [
    a_shallow_copy_is_a_copy,
    copyto_copies,
    index_arrays_are_refilled_after_the_write,
    a_failed_write_leaves_the_views_in_place,
    a_traced_value_comes_after_views_of_a_buffer,
    a_failed_write_leaves_a_buffer_as_it_was,
    plain_writes_follow_numpys_casts,
    views_of_views_are_read_after_each_write,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_derivatives_are_those_of_the_plain_program(f):
    def central(e, h):
        return (f(X + h * e) - f(X - h * e)) / (2 * h)

    wanted = np.array([(4 * central(e, 5e-5) - central(e, 1e-4)) / 3 for e in np.eye(3)])
    value, g = fad.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    np.testing.assert_allclose(g, wanted, rtol=1e-8)
    pullback = fad.vjp(f, X)[1]
    for _ in range(2):
        np.testing.assert_allclose(pullback(1.0)[0], wanted, rtol=1e-8)
    np.testing.assert_allclose([fad.jvp(f, (X,), (e,))[1] for e in np.eye(3)], wanted, rtol=1e-8)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.stack([X, X]))[1], wanted, rtol=1e-8)
    hessian = np.stack([(fad.grad(f)(X + 1e-5 * e) - fad.grad(f)(X - 1e-5 * e)) / 2e-5 for e in np.eye(3)])
    np.testing.assert_allclose(fad.hessian(f)(X), hessian, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fad.jacrev(fad.grad(f))(X), hessian, rtol=1e-6, atol=1e-8)
