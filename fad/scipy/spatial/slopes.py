"""The first derivatives of sums over pairs of points, on the host: the innermost work of gradients of distances.

`slopes` sums ``u[i,j] g'(a[i,k], b[j,k])`` over the right points j, where g' is a kernel's derivative in its first
number, but for the factor that `pairs` multiplies with. Points are taken in blocks that stay in the cache, one
coordinate at a time. The differences of two columns are a product of two matrices of rank two, ``x 1 + 1 (-y)``: it
rounds each as a subtraction does, and takes half the time of one between a column and a row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.spatial.distance

_BLOCK = 1 << 14  # numbers of a pair of sets that are worked on at a time

_PLUS = np.array([[1.0], [-1.0]])  # makes sums of differences


class _Points:
    """Both sets by coordinates: ``left[k] @ minus[k]`` are all differences of coordinate k."""

    def __init__(self, a: np.ndarray, b: np.ndarray):
        self.a, self.b = a, b
        (m, n_coordinates), n = a.shape, len(b)
        self.left, self.minus = np.empty((n_coordinates, m, 2)), np.empty((n_coordinates, 2, n))
        self.left[:, :, 0], self.left[:, :, 1] = a.T, 1.0
        self.minus[:, 0, :], self.minus[:, 1, :] = 1.0, -b.T


def slopes(kernel: str, u: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Return the sums for a kernel by its name, of the shape of `a`; None for a kernel that has no formula here."""
    formula = _FORMULAS.get(kernel)
    if formula is None:
        return None
    if formula in _AT_ONCE and a.size * len(b) <= _BLOCK:
        return (u[:, None] @ _AT_ONCE[formula](a[:, None] - b))[:, 0]
    points, (m, n_coordinates) = _Points(a, b), a.shape
    out, step = np.empty((n_coordinates, m)), max(1, _BLOCK // max(1, len(b)))
    for start in range(0, m, step):
        rows = slice(start, start + step)
        formula(u[rows], points, rows, out)
    return out.T


def _square(u: np.ndarray, points: _Points, rows: slice, out: np.ndarray) -> None:
    for left, minus, y in zip(points.left, points.minus, out, strict=True):
        np.vecdot(u, left[rows] @ minus, out=y[rows])


def _absolute(u: np.ndarray, points: _Points, rows: slice, out: np.ndarray) -> None:
    for left, minus, y in zip(points.left, points.minus, out, strict=True):
        np.vecdot(u, np.sign(left[rows] @ minus), out=y[rows])


# What the sums above are of, as functions of all differences: for few of them that is one product in all.
_AT_ONCE: dict[Callable, Callable] = {_square: lambda d: d, _absolute: np.sign}


def _canberra(u: np.ndarray, points: _Points, rows: slice, out: np.ndarray) -> None:
    """Sum ``sign(x - y) |y| / (x + y)**2`` over pairs of numbers of one sign; others have no slope."""
    for k, minus in enumerate(points.minus):
        left = points.left[k, rows]
        x, y = left[:, 0], points.b[:, k]
        if (x > 0).all() and (y > 0).all():
            out[k, rows] = _alike(u, left, minus)
            continue
        found = np.zeros(len(x))
        for some, others in ((x > 0, y > 0), (x < 0, y < 0)):
            i, j = np.flatnonzero(some), np.flatnonzero(others)
            found[i] = _alike(u[np.ix_(i, j)], left[i], minus[:, j])
        out[k, rows] = found


def _alike(u: np.ndarray, left: np.ndarray, minus: np.ndarray) -> np.ndarray:
    signs = np.sign(left @ minus)  # in place it would not run in vectors
    total = left @ (minus * _PLUS)
    signs /= np.multiply(total, total, out=total)
    signs *= u
    return signs @ np.abs(minus[1])


def _largest(u: np.ndarray, points: _Points, rows: slice, out: np.ndarray) -> None:
    """Give each pair's number to the coordinates that have its largest difference, with the sign of that."""
    top = scipy.spatial.distance.cdist(points.a[rows], points.b, "chebyshev")
    bottom, signs = -top, np.empty((len(out), *top.shape), np.int8)
    for left, minus, sign in zip(points.left, points.minus, signs, strict=True):
        d = left[rows] @ minus
        np.subtract((d == top).view(np.int8), (d == bottom).view(np.int8), out=sign)
    if np.count_nonzero(signs) > np.count_nonzero(top):  # ties share equally
        u = u / np.maximum(np.count_nonzero(signs, axis=0), 1)
    for sign, y in zip(signs, out, strict=True):
        np.vecdot(u, sign.astype(np.float64), out=y[rows])


_FORMULAS: dict[str, Callable] = {
    "square": _square, "absolute": _absolute, "canberra": _canberra, "largest": _largest,
}  # fmt: skip
