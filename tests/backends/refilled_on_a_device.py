"""Programs that write into arrays of their own, through views and by index: for arrays of the host and of a device."""

import numpy as np


def view_of_argument(a):
    y = a * 1.0
    v = y[1:]
    y[2] = a[0] * 2
    return np.sum(v * v)


def reshaped_view(a):
    y = a * 1.0
    v = y.reshape(5, 1)
    y[2] = a[0] * 2
    v[3] = a[1] * a[2]
    return np.sum(v * v) + np.sum(y)


def reversed_view(a):
    y = a * 1.0
    v = y[::-1]
    v[0] = a[0] * 2
    return np.sum(y * y)


def transposed_view(a):
    y = np.outer(a, a)
    v = y.T
    v[0] = a
    w = y[1]
    y[1, 1] = 7.0
    return np.sum(y * y) + np.sum(w)


def flattened_view(a):
    y = a * 1.0
    v = np.ravel(y)
    v[1] = 3.0
    return np.sum(y * y)


def zeros(a):
    y = np.zeros(5)
    y[1:4] = a[:3]
    v = y[1:]
    y[2] = a[0] * 2
    return np.sum(v * v) + y[0]


def zeros_like(a):
    y = np.zeros_like(a)
    v = y[::2]
    y[0] = 3.0
    v[1] = a[1]
    y += a
    return np.sum(y * y) + np.sum(v)


def ones(a):
    y = np.ones((3, 4))
    y *= 2
    y[1] = 7
    z = y + 1
    z[0, 0] = a[0]
    y[2, 2] = a[1]
    return np.sum(y * 1.5) + np.sum(z**2)


def out(a):
    y = np.empty_like(a)
    np.multiply(a, 2, out=y)
    w = y.T
    w[0] += a[1]
    return np.sum(y**2)


def rows(a):
    y = np.zeros((2, 5))
    r = y[0]
    r[...] = a
    y[1] = r * 2
    r[2] = 9
    return np.sum(y * np.arange(10.0).reshape(2, 5))


def names(a):
    y = np.full(5, 2.0)
    z = y
    z[3] = a[3]
    y[4] += a[4]
    y.sort()
    return np.sum(y * np.linspace(0, 1, 5))


def diagonal(a):
    y = np.eye(5)
    y[np.diag_indices(5)] = a
    return np.sum(y @ a)


def view_of_made(a):
    y = np.zeros(5)
    x = y.reshape(5, 1)
    y[0] = 1.0
    x[1, 0] = a[0]
    y[1] *= 3
    u = y.copy()
    y[1] = 0
    return np.sum(x) + np.sum(u)


def results(a):
    y = np.zeros(5)
    b = y + 1
    b[0] = a[0]
    y[1] = 5.0
    c = b
    c += y
    return np.sum(b * b)


def mask(a):
    y = np.concatenate([np.zeros(2), a])
    y[0] = a[0]
    m = np.ones(7, bool)
    m[1] = False
    return np.sum(y[m] ** 2)


def constructor(a):
    y = np.ndarray((2, 5))
    y[0] = a
    y[1] = a * a
    return np.sum(y**2)


def grid(a):
    i, j = np.mgrid[0:5, 0:5]
    return np.sum(i * j * np.outer(a, a))


def masked(a):
    y = a * 1.0
    y[np.array([True, False, True, False, False])] *= 2.0
    y[y > 1] = 0.5
    return np.sum(y * a)


def elements(a):
    y = np.array([a[1], 0.0, a[0] * 2])
    z = np.ones(3)
    z[1] = y[0]
    z[0] = np.sum(z)
    return np.sum(y * z)


PROGRAMS = [
    masked, elements,
    view_of_argument, reshaped_view, reversed_view, transposed_view, flattened_view, zeros, zeros_like, ones, out, rows,
    names, diagonal, view_of_made, results, mask, constructor, grid,
]  # fmt: skip
