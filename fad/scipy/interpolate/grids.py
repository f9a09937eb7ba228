"""Interpolation between given values: interp1d along an axis, RegularGridInterpolator and interpn on a grid."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import scipy.interpolate as theirs
from scipy.sparse.linalg import spsolve

from fad.backends import like
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.ops.places.indexing import pick
from fad.ops.places.taking import searchsorted
from fad.scipy.interpolate.common import Curve, contract_with, double, place
from fad.scipy.interpolate.splines import make_interp_spline
from fad.scipy.interpolate.surfaces import RectBivariateSpline
from fad.scipy.interpolate.tensor_products import evaluate_splines, fit_splines, fold_monotone

_DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("nearest", "nearest-up", "previous", "next")
# Methods of grids: their degree, and whether derivatives of their own are offered.
_SPLINES = {"slinear": 1, "cubic": 3, "quintic": 5}
_LEGACY = {f"{name}_legacy": degree for name, degree in _SPLINES.items()}
_CURVES = {**_SPLINES, **_LEGACY, "pchip": 3}


class interp1d(Curve):
    """Interpolate between points ``(x, y)``: linearly, in steps, or by a spline; a tree of `x` and `y`.

    Differentiable in `x`, `y`, the points of evaluation and `fill_value`; in steps, in the values alone.

    Parameters
    ----------
    x : array, shape (n,)
        Sorted along, unless ``assume_sorted=False``, which is the default.
    y : array
        Values, n of them along `axis`.
    kind : str or int
        "linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", or a degree.
    bounds_error : bool, optional
        Whether points outside raise ValueError; by default they do unless `fill_value` is "extrapolate".
    fill_value : value, (below, above) or "extrapolate"
        What stands outside.
    axis : int
        The axis of `y` along `x`; the last unless it is given.
    copy, assume_sorted : bool
        Whether the arrays are copied, and whether `x` is in order.

    Raises
    ------
    ValueError
        if `x` and `y` differ in length, or a point lies outside.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import interp1d
    >>> fad.grad(lambda y: interp1d([0.0, 1.0, 3.0], y)(2.0))(np.array([1.0, 2.0, 5.0]))
    array([0. , 0.5, 0.5])
    """

    _arrays = ("x", "y", "fill_value")

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
        fill_value: Any = np.nan, assume_sorted: bool = False,
    ):  # fmt: skip
        x, y = as_array(x), as_array(y)
        x, y = like(y, x), like(x, y)
        if x.ndim != 1 or y.ndim == 0:
            raise ValueError("the x array must have exactly one dimension, and the y array at least one")
        self.axis = normalize_axis(axis, y.ndim)
        if x.shape[0] != y.shape[self.axis]:
            raise ValueError("x and y arrays must be equal in length along interpolation axis.")
        y = np.moveaxis(y if y.dtype.kind in "fc" else y.astype(float), self.axis, 0)
        if not assume_sorted:
            order = np.argsort(stop_gradient(x), kind="stable")
            x, y = pick(x, (order,)), pick(y, (order,))
        self.kind = kind if isinstance(kind, str) else int(kind)
        if self.kind not in ("linear", *_STEPS, *_DEGREES) and not isinstance(self.kind, int):
            raise NotImplementedError(f"{kind} is unsupported: Use fitpack routines for other types.")
        if x.shape[0] <= (self.kind if isinstance(self.kind, int) else _DEGREES.get(self.kind, 0)):
            raise ValueError("x and y arrays must have more entries than the degree of the spline")
        self.x, self.y = x, y
        self.extrapolate = isinstance(fill_value, str) and fill_value == "extrapolate"
        if self.extrapolate and bounds_error:
            raise ValueError("Cannot extrapolate and raise at the same time.")
        self.bounds_error = not self.extrapolate if bounds_error is None else bool(bounds_error)
        self.fill_value = () if self.extrapolate else fill_value

    def __call__(self, x: Any) -> Any:
        """Evaluate; raises ValueError for points outside where the bounds are to be kept."""
        x = double(x) if not hasattr(x, "dtype") or x.dtype.kind not in "f" else x
        x = like(self.y, x)
        shape, points = x.shape, x.reshape(-1)
        plain = stop_gradient(points)
        low, high = plain < self.x[0], plain > self.x[-1]
        if self.bounds_error and (np.any(low) or np.any(high)):
            raise ValueError("a value in x_new lies outside the interpolation range.")
        y = self._evaluate(points, plain)
        if not self.extrapolate:
            y = self._fill(y, low, high)
        y = y.reshape(shape + y.shape[1:])
        return place(y, len(shape), self.axis)

    def _fill(self, y: Any, low: Any, high: Any) -> Any:
        below, above = self.fill_value if isinstance(self.fill_value, tuple) else (self.fill_value,) * 2
        trail = (-1, *[1] * (y.ndim - 1))
        return np.where(low.reshape(trail), below, np.where(high.reshape(trail), above, y))

    def _evaluate(self, points: Any, plain: Any) -> Any:
        kind, x, y = self.kind, self.x, self.y
        trail = (-1, *[1] * (y.ndim - 1))
        n = x.shape[0]
        if kind == "linear":
            i = np.clip(searchsorted(stop_gradient(x), plain), 1, n - 1)
            left, right = pick(x, (i - 1,)), pick(x, (i,))
            first, second = pick(y, (i - 1,)), pick(y, (i,))
            return (second - first) / (right - left).reshape(trail) * (points - left).reshape(trail) + first
        if kind in _STEPS:
            still = stop_gradient(x)
            if kind in ("nearest", "nearest-up"):
                side = "left" if kind == "nearest" else "right"
                i = searchsorted((still[1:] + still[:-1]) / 2.0, plain, side)
            elif kind == "previous":
                i = searchsorted(still, plain, "right") - 1
            else:
                i = searchsorted(still, plain, "left")
            value = pick(y, (np.clip(i, 0, n - 1),))
            if kind == "previous":
                return np.where((i < 0).reshape(trail), np.nan, value)
            return np.where((i >= n).reshape(trail), np.nan, value) if kind == "next" else value
        degree = kind if isinstance(kind, int) else _DEGREES[kind]
        return make_interp_spline(x, y, degree, check_finite=False)(points)


# --- grids ----------------------------------------------------------------------------------------------------------


class RegularGridInterpolator(Curve):
    """Interpolate values on a regular grid of any number of dimensions; a tree of arrays.

    Differentiable in the grid's `points`, the `values` and the points of evaluation. SciPy finds splines by an
    iteration, to about five digits; those of traced values are exact.

    Parameters
    ----------
    points : tuple of arrays
        The coordinates along each axis, increasing or decreasing.
    values : array
        Values on the grid; further axes are those of a vector or matrix at each point.
    bounds_error : bool
        Whether points outside raise ValueError; else `fill_value` stands there, or for None the extrapolation.
    method : str
        How values between places are found: "linear", "nearest", by splines "slinear", "cubic" or "quintic", or by the
        monotone "pchip", one axis after another.
    fill_value : number or None
        What stands outside; NaN unless it is given.
    solver, solver_args
        How SciPy solves for splines of plain values.

    Raises
    ------
    ValueError
        if the points are not in order or too few for the method, a point lies outside, or there is no such method.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import RegularGridInterpolator
    >>> f = RegularGridInterpolator((np.arange(3.0), np.arange(3.0)), np.arange(9.0).reshape(3, 3))
    >>> fad.grad(lambda p: f(p)[0])(np.array([[0.5, 1.25]]))
    array([[3., 1.]])
    """

    _arrays = ("grid", "values", "fill_value", "spline")

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan, *,
        solver: Any = None, solver_args: Any = None,
    ):  # fmt: skip
        self.method = _method(method)
        values = as_array(values)
        self.values = values if values.dtype.kind in "fc" else values.astype(float)
        grid = [double(p) for p in points]
        if len(grid) > values.ndim:
            raise ValueError(f"There are {len(grid)} point arrays, but values has {values.ndim} dimensions")
        for i, p in enumerate(grid):
            if p.ndim != 1 or p.shape[0] != values.shape[i]:
                raise ValueError(f"There are {p.shape} points and {values.shape[i]} values along dimension {i}")
            if np.all(p[1:] < p[:-1]) and p.shape[0] > 1:
                grid[i], self.values = p[::-1], np.flip(self.values, i)
            elif not np.all(p[1:] > p[:-1]):
                raise ValueError(f"The points in dimension {i} must be strictly ascending or descending")
        self.grid = tuple(grid)
        self.bounds_error = bool(bounds_error)
        self.fill_value = fill_value
        self.spline = self.fit(method, solver, solver_args)

    def fit(self, method: str, solver: Any = None, solver_args: Any = None) -> tuple:
        """Return the knots and the coefficients of the splines of a method, or nothing for another one."""
        degree = _CURVES.get(method, 0)
        for i, p in enumerate(self.grid):
            if p.shape[0] <= degree:
                raise ValueError(
                    f"There are {p.shape[0]} points in dimension {i}, but method {method} requires at least "
                    f"{degree + 1} points per dimension."
                )
        if method == "pchip" or not degree:
            return ()
        if method in _SPLINES and all(type(x) is np.ndarray for x in (*self.grid, self.values)):
            return _fit_as_scipy(self.grid, self.values, method, solver, solver_args)
        return fit_splines(self.grid, self.values, [degree] * len(self.grid))

    def __call__(self, xi: Any, method: str | None = None, *, nu: Any = None) -> Any:
        """Evaluate at points, an array of shape (..., n), or a tuple of arrays that broadcast together.

        `nu` are the orders of the derivatives along the axes to give instead, by splines.
        """
        method = self.method if method is None else _method(method)
        if nu is not None and method not in _SPLINES:
            raise ValueError(f"Can only compute derivatives for methods {tuple(_SPLINES)}, got method = {method!r}.")
        n = len(self.grid)
        x = double(np.stack(np.broadcast_arrays(*[as_array(v) for v in xi]), -1) if isinstance(xi, tuple) else xi)
        if x.ndim == 1:
            x = x.reshape(-1, 1) if n == 1 else x.reshape(1, -1)
        if x.shape[-1] != n:
            raise ValueError(f"The requested sample points xi have dimension {x.shape[-1]} but this has dimension {n}")
        shape, rows = x.shape[:-1], x.reshape(-1, n)
        axes = [rows[:, k] for k in range(n)]
        lost = [(c < g[0]) | (c > g[-1]) for c, g in zip(axes, self.grid, strict=True)]
        if self.bounds_error:
            for k, outside in enumerate(lost):
                if np.any(outside):
                    raise ValueError(f"One of the requested xi is out of bounds in dimension {k}")
        y = self._evaluate(axes, method, nu)
        trail = (-1, *[1] * (y.ndim - 1))
        if not self.bounds_error and self.fill_value is not None:
            y = np.where(np.any(np.stack(lost), axis=0).reshape(trail), self.fill_value, y)
        y = np.where(np.any(np.isnan(rows), axis=1).reshape(trail), np.nan, y)
        return y.reshape(shape + y.shape[1:])

    def _evaluate(self, axes: list, method: str, nu: Any) -> Any:
        n = len(axes)
        if method == "pchip":
            if self.values.dtype.kind == "c":
                raise ValueError("`PchipInterpolator` only works with real values: interpolate their parts.")
            return fold_monotone(self.grid, self.values, axes).astype(self.values.dtype)
        if method not in _CURVES:
            return self._between(axes, method)
        orders = [0] * n if nu is None else [operator.index(order) for order in nu]
        if len(orders) != n or min(orders) < 0:
            raise ValueError(f"`nu` must have {n} orders of derivatives that are not negative, not {nu}")
        knots, c = self.spline if method == self.method else self.fit(method)
        y = evaluate_splines(knots, c, [_CURVES[method]] * n, axes, orders)
        return y.astype(self.values.dtype) if method in _LEGACY else y  # SciPy's other splines are of double precision

    def _between(self, axes: list, method: str) -> Any:
        near = [_near(g, c) for g, c in zip(self.grid, axes, strict=True)]
        if method == "nearest":
            return pick(self.values, tuple(np.where(stop_gradient(t) <= 0.5, i, i + (w > 0)) for i, t, w in near))
        trail = (-1, *[1] * (self.values.ndim - len(axes)))
        total: Any = None
        for corner in itertools.product((0, 1), repeat=len(axes)):
            if any(c and w == 0 for c, (_, _, w) in zip(corner, near, strict=True)):
                continue
            term = pick(self.values, tuple(i + c for c, (i, _, _) in zip(corner, near, strict=True)))
            for c, (_, t, _) in zip(corner, near, strict=True):
                term = term * (t if c else 1.0 - t).reshape(trail)
            total = term if total is None else total + term
        return total


def _method(method: str) -> str:
    if method in ("linear", "nearest") or method in _CURVES:
        return method
    raise ValueError(f"Method '{method}' is not defined")


def _fit_as_scipy(grid: tuple, values: Any, method: str, solver: Any, solver_args: Any) -> tuple:
    options = {"solver": solver, "solver_args": solver_args}
    spline = theirs.RegularGridInterpolator(grid, values, method, **options)._spline
    return tuple(spline.t), spline.c


def _near(grid: Any, x: Any) -> tuple:
    """Return for each coordinate its interval, where it lies in it from 0 to 1, and 1; or 0 for a grid of one point."""
    if grid.shape[0] == 1:
        return np.zeros_like(searchsorted(grid, stop_gradient(x))), 0.0 * x, 0
    i = np.clip(searchsorted(grid, stop_gradient(x), "right") - 1, 0, grid.shape[0] - 2)
    low = pick(grid, (i,))
    return i, (x - low) / (pick(grid, (i + 1,)) - low), 1


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """Interpolate values on a regular grid at points: `RegularGridInterpolator` made and evaluated at once.

    Parameters
    ----------
    points : tuple of arrays
        Increasing places along each axis of the grid.
    values : array
        Values on the grid.
    xi : array (..., ndim)
        Where to interpolate.
    method : str
        How values between places are found: one of `RegularGridInterpolator`, or "splinef2d".
    bounds_error : bool
        Whether places outside the grid are an error.
    fill_value : float or None
        What is given there otherwise; None extrapolates.

    Returns
    -------
    array

    Raises
    ------
    ValueError
        if the points are not in order, a point lies outside, or there is no such method.

    Examples
    --------
    >>> import numpy as np
    >>> from fad.scipy.interpolate import interpn
    >>> interpn((np.arange(3.0),), np.array([0.0, 1.0, 4.0]), np.array([[1.5]]))
    array([2.5])
    """
    if method == "splinef2d":
        return _interpolate_surface(points, as_array(values), xi, bounds_error, fill_value)
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


def _interpolate_surface(points: Any, values: Any, xi: Any, bounds_error: bool, fill_value: Any) -> Any:
    """Return what the spline of a plane through values on a grid has at points within it."""
    if values.ndim != 2 or len(points) != 2:
        raise ValueError("The method splinef2d can only be used for scalar data with one point per coordinate")
    if not bounds_error and fill_value is None:
        raise ValueError("The method splinef2d does not support extrapolation.")
    surface = RectBivariateSpline(points[0], points[1], values)
    inside = RegularGridInterpolator(points, np.zeros(values.shape), "linear", bounds_error, 1.0)(xi) == 0
    x = double(np.stack(np.broadcast_arrays(*[as_array(v) for v in xi]), -1) if isinstance(xi, tuple) else xi)
    return np.where(inside, surface.ev(x[..., 0], x[..., 1]), fill_value)


# --- the contract ---------------------------------------------------------------------------------------------------


def _points(s, n):
    x = np.cumsum(s.positive(n)).astype(s.dtype).real
    return x - x[0] - 0.25


def _line_samples(s):
    def inside(n):
        return s.real(n, low=0.0, high=4.0).real

    kinds = [call(_points(s, 6), s.real(6), inside(3), kind=k) for k in ("nearest", "previous", "next", "quadratic")]
    return [
        *kinds,
        call(_points(s, 6), s.real(6), inside(4)),
        call(_points(s, 5)[::-1].copy(), s.real(5, 2), inside(3), kind="cubic", axis=0),
        call(
            _points(s, 4), s.real(2, 4), s.real(3, low=-3.0, high=9.0).real, bounds_error=False, fill_value=(0.3, 0.2)
        ),
        call(_points(s, 4), s.real(4), s.real(2, 2, low=-3.0, high=9.0).real, fill_value="extrapolate"),
    ]


def _of_line(kind: Any) -> Any:
    def evaluate(x, y, t, **options):
        return kind(x, y, **options)(t)

    return evaluate


def _grid_samples(s):
    def inside(*shape):
        return s.real(*shape, low=0.0, high=2.0).real

    return [
        call((_points(s, 4), _points(s, 5)), s.real(4, 5), inside(3, 2)),
        call((_points(s, 4),), s.real(4, 2), inside(3, 1)),
        call((_points(s, 4), _points(s, 4)[::-1].copy()), s.real(4, 4), inside(2, 2, 2), method="nearest"),
        call((_points(s, 3), _points(s, 3)), s.real(3, 3), s.real(3, 2, low=-1.0, high=8.0).real, bounds_error=False,
             fill_value=None),
        call((_points(s, 3), _points(s, 3)), s.real(3, 3), s.real(3, 2, low=-1.0, high=8.0).real, bounds_error=False,
             fill_value=0.5),
        call((_points(s, 5), _points(s, 4)), s.real(5, 4, 2), inside(1, 2), method="cubic_legacy"),
        call((_points(s, 3), _points(s, 2)), s.real(3, 2), s.real(3, 2).real, method="slinear", nu=(0, 1),
             bounds_error=False, fill_value=None),
        call((_points(s, 4), _points(s, 5)), s.real(4, 5), inside(2, 2), method="cubic", nu=(1, 0), solver=spsolve),
    ]  # fmt: skip


def _monotone_samples(s):
    return [
        call((_points(s, 4), _points(s, 5)), s.real(4, 5), s.real(3, 2, low=0.0, high=2.0).real, method="pchip"),
        call((_points(s, 4),), s.real(4, 2), s.real(2, 1, low=0.0, high=2.0).real, method="pchip"),
    ]


def _of_grid(kind: Any) -> Any:
    def evaluate(points, values, xi, nu=None, **options):
        return kind(points, values, **options)(xi, nu=nu)

    return evaluate


contract_with("interp1d", _of_line(theirs.interp1d), _line_samples)(_of_line(interp1d))
contract_with("RegularGridInterpolator", _of_grid(theirs.RegularGridInterpolator), _grid_samples)(
    _of_grid(RegularGridInterpolator)
)
contract_with("RegularGridInterpolator.pchip", _of_grid(theirs.RegularGridInterpolator), _monotone_samples,
              complex=False)(_of_grid(RegularGridInterpolator))  # fmt: skip
