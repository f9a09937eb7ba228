"""Curves through the arguments of a function, and its derivatives along them by nested jvp."""

import math

import numpy as np

import fad

X = np.array([0.7, -0.4, 1.1])
SERIES = [np.array([0.3, -1.2, 0.5]), np.array([0.1, 0.2, -0.3]), np.array([1.0, 0.0, 0.5]), np.array([0.3, 0.4, 0.2])]


def curve(points, series):
    """Return t -> the points moved along curves with these derivatives at 0."""

    def at(t):
        terms = [[t**k * (c * (1 / math.factorial(k))) for k, c in enumerate(cs, 1)] for cs in series]
        return [x + sum(ts) for x, ts in zip(points, terms, strict=True)]

    return at


def nested(f, points, series):
    """Return the derivatives of f along curves by jvp of jvp of ..., one list per result."""
    at, order = curve(points, series), len(series[0])

    def derived(k):
        return (lambda t: f(*at(t))) if k == 0 else lambda t: fad.jvp(derived(k - 1), (t,), (1.0,))

    def pick(pairs, k):
        for i in range(order):
            pairs = pairs[i < k]
        return fad.tree.leaves(pairs)

    found = derived(order)(0.0)
    return [list(column) for column in zip(*[pick(found, k) for k in range(1, order + 1)], strict=True)]


def check(f, points=(X,), series=(SERIES,), tolerance=1e-10):
    out, found = fad.jet(f, points, series)
    values, ys = fad.tree.leaves(out), fad.tree.leaves(f(*points))
    for value, y, cs, es in zip(values, ys, _lists(found), nested(f, points, series), strict=True):
        np.testing.assert_allclose(value, y, rtol=1e-12, atol=1e-12)
        for c, e in zip(cs, es, strict=True):
            assert (np.shape(c), np.result_type(c)) == (np.shape(e), np.result_type(value))
            np.testing.assert_allclose(c, e, rtol=tolerance, atol=tolerance * max(1.0, np.max(np.abs(e), initial=0.0)))


def _lists(found):
    """Return the lists of derivatives in the series of a result, one for each leaf."""
    return fad.tree.leaves(found, is_leaf=lambda x: isinstance(x, list) and not any(isinstance(c, list) for c in x))
