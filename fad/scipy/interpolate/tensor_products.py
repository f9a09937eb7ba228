"""Curves along each axis of a grid: splines as products of their bases, and monotone cubics one axis after another."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import like
from fad.ops.places.indexing import pick
from fad.scipy.interpolate.common import piece
from fad.scipy.interpolate.piecewise import PchipInterpolator
from fad.scipy.interpolate.splines import basis_at, last_piece, make_interp_spline


def fit_splines(grid: Any, values: Any, degrees: Any, knots: Any = None) -> tuple:
    """Return the knots along each axis of a grid, and the coefficients of the spline through its values."""
    found, c = [], values
    for axis, (x, k) in enumerate(zip(grid, degrees, strict=True)):
        spline = make_interp_spline(x, c, k, None if knots is None else knots[axis], axis=axis)
        found.append(spline.t)
        c = np.moveaxis(spline.c, 0, axis)
    return tuple(found), c


def evaluate_splines(knots: Any, c: Any, degrees: Any, points: Any, orders: Any) -> Any:
    """Return the values, or the derivatives of some orders, at points: one array (m,) of coordinates for each axis."""
    places, weights, n = [], [], len(degrees)
    for axis, (t, k, x, nu) in enumerate(zip(knots, degrees, points, orders, strict=True)):
        first = piece(t, x, k, last_piece(t, k, t.shape[0] - k - 1)) - k
        near = like(first, np.arange(k + 1)).reshape(-1, *[1] * (n - 1 - axis))
        places.append(first.reshape(-1, *[1] * n) + near)
        basis = basis_at(t, k, first + k, x, nu) if nu <= k else [0.0 * x] * (k + 1)
        weights.append(np.stack(basis, axis=1))
    block = pick(c, tuple(places))
    for w in weights:  # the axis of this one's neighbours stands first
        block = np.sum(block * w.reshape((*w.shape, *[1] * (block.ndim - 2))), axis=1)
    return block


def fold_monotone(grid: Any, values: Any, points: Any) -> Any:
    """Return the values at points of monotone cubics along the last axis of a grid, of those along the next, and so on.

    Behind the last axis there is another curve for each point, and each is evaluated at its own point alone.
    """
    y, own = values, ()
    for axis in range(len(grid) - 1, -1, -1):
        x = points[axis]
        curve = PchipInterpolator(grid[axis], y, axis=axis)
        i = piece(curve.x, x, 0, curve.x.shape[0] - 2)
        c = np.moveaxis(curve.c, (1, -1), (0, 1)) if own else np.moveaxis(curve.c, 1, 0)
        c = pick(c, (i, *own))  # points, powers, what else is interpolated
        s = (x - pick(curve.x, (i,))).reshape(-1, *[1] * (c.ndim - 2))
        y = np.moveaxis(((c[:, 0] * s + c[:, 1]) * s + c[:, 2]) * s + c[:, 3], 0, -1)
        own = (like(x, np.arange(x.shape[0])),)
    return np.moveaxis(y, -1, 0)
