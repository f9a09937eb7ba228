"""Programs that refill plain arrays of their own after operations have used them, as NumPy programs do."""

import numpy as np

X = np.array([1.5, -0.5, 2.0])


def alternating(x):
    total, sign = 0.0, np.ones(x.shape)
    for k in range(3):
        total = total + sign * x**k
        sign *= -1
    return total


def toggled(x):
    """Return to the first content at the end, so that the array shows no change."""
    m = np.array([True, False, True])
    total = np.sum(np.where(m, x, 0.0) ** 2)
    np.logical_not(m, out=m)
    total = total + 3.0 * np.sum(np.where(m, x, 0.0) ** 3)
    np.logical_not(m, out=m)
    return total


def slots(x):
    t = np.zeros(x.shape)
    total = 0.0
    for k in range(3):
        t[:] = k
        total = total + np.sum(np.sin(t * x) + x @ t)
    return total


def growing_mask(x):
    m = np.zeros(x.shape, bool)
    total = 0.0
    for k in range(x.size):
        m[k] = True
        total = total + np.sum(x[m] ** (k + 1))
    return total


def rolled(x):
    i = np.arange(x.size)
    total = 0.0
    for k in range(x.size):
        total = total + (k + 1.0) * np.sum(x[i] * x)
        i[:] = np.roll(i, 1)
    return total


def one_hot_of_many(x):
    e = np.zeros(5_000)
    total = 0.0
    for k in (3, 4999, 12):
        e[k] = 1.0
        total = total + np.sum((x[0] * e) ** 2) * x[1] + e @ (e * x[2])
        e[k] = 0.0
    return total


PROGRAMS = [lambda x: np.sum(alternating(x)), toggled, slots, growing_mask, rolled, one_hot_of_many]
