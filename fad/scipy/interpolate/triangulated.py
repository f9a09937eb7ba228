"""Interpolation of scattered points: linearly over their triangulation, by the nearest, and griddata.

Which triangle a point lies in, and which point is the nearest, is constant almost everywhere; where in the triangle it
lies is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate as theirs
import scipy.spatial

from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.ops.places.indexing import pick
from fad.scipy.interpolate.common import Curve, contract_with, double, together
from fad.scipy.interpolate.grids import interp1d
from fad.scipy.registration import flat_on_host
from fad.scipy.spatial.neighbours import KDTree


def _find_corners(points: Any, x: Any, *, mesh: Any) -> Any:
    mesh = scipy.spatial.Delaunay(points) if mesh is None else mesh
    eps = 100 * np.finfo(np.float64).eps  # as far outside as LinearNDInterpolator takes for inside
    found = mesh.find_simplex(x, tol=eps)
    return np.where(found[:, None] < 0, -1, mesh.simplices[found]).astype(np.intp)


corners_p = flat_on_host(
    "corners",
    _find_corners,
    lambda s: [call(s.real(6, 2), 0.3 * s.real(3, 2), mesh=None), call(s.real(7, 3), s.real(2, 3), mesh=None)],
    "The numbers of the corners of the triangles, or simplices, in which points lie; -1 for points outside.",
    complex=False,
)


def _collect(xi: Any, dimensions: int | None = None) -> Any:
    """Return coordinates, given as an array (..., n) or as a tuple of arrays that broadcast together."""
    if isinstance(xi, tuple) and len(xi) == 1:
        return _collect(xi[0], dimensions)
    if isinstance(xi, tuple):
        return np.stack(np.broadcast_arrays(*map(double, xi)), -1)
    x = double(xi)
    return x.reshape(-1, 1 if dimensions is None else dimensions) if x.ndim == 1 else x


class _Scattered(Curve):
    """Values at scattered points, which may be brought to a common scale."""

    frame: tuple = ()

    def _take(self, points: Any, values: Any, rescale: bool) -> None:
        points, values = _collect(points), as_array(values)
        if points.ndim != 2:
            raise ValueError("invalid shape for input data points")
        if values.shape[:1] != points.shape[:1]:
            raise ValueError("different number of values and points")
        self.points, self.values = points, values
        self.frame = ()
        if rescale:
            plain = stop_gradient(double(points))
            width = np.max(plain, axis=0) - np.min(plain, axis=0)
            self.frame = np.mean(plain, axis=0), np.where(width > 0, width, 1.0)

    def _take_scaled(self, f: Any, values: Any) -> None:
        """Take the points of SciPy's interpolant, which keeps them on the common scale."""
        self.frame = () if f.scale is None else (f.offset, f.scale)
        self.points, self.values = f.points if f.scale is None else f.points * f.scale + f.offset, values

    def _locate(self, xi: tuple) -> tuple:
        """Return the shape of points of evaluation, and these in rows."""
        x, dimensions = _collect(xi, self.points.shape[1]), self.points.shape[1]
        if x.shape[-1] != dimensions:
            raise ValueError("number of dimensions in xi does not match x")
        return x.shape[:-1], x.reshape(-1, dimensions)

    def _scale(self, *xs: Any) -> list:
        """Return points as constants, on the scale of the data, of the length 1 along each axis, if it is asked for."""
        plain = [stop_gradient(x) for x in xs]
        return [(x - self.frame[0]) / self.frame[1] for x in plain] if self.frame else plain


class LinearNDInterpolator(_Scattered):
    """Interpolate scattered points of two dimensions or more linearly over the triangles between them.

    Differentiable in the points, the values and the points of evaluation; a tree of the arrays. The derivative jumps
    from one triangle to the next, and where points move so that other triangles are made.

    Parameters
    ----------
    points : array (n, dims)
        Where the values are known, or a triangulation of plain points (scipy.spatial.Delaunay).
    values : array (n, ...)
        Values, which may be complex.
    fill_value : number
        What stands outside of the convex hull; NaN unless it is given.
    rescale : bool
        Whether triangles are made of points brought to a common scale.

    Raises
    ------
    ValueError
        if there are not as many values as points, or the points have one dimension.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import LinearNDInterpolator
    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> fad.grad(lambda v: LinearNDInterpolator(corners, v)(0.25, 0.5))(np.zeros(3))
    array([0.25, 0.25, 0.5 ])
    """

    _arrays = ("points", "values", "fill_value", "frame")

    def __init__(self, points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False):
        mesh = points if isinstance(points, scipy.spatial.Delaunay) else None
        if mesh is not None and rescale:
            raise ValueError("Rescaling is not supported when passing a Delaunay triangulation as points")
        self._take(points if mesh is None else mesh.points, values, rescale)
        if self.points.shape[1] < 2:
            raise ValueError("Need at least 2-D data: interp1d interpolates along a line")
        self.values = self.values if self.values.dtype.kind == "c" else double(self.values)
        self.fill_value = fill_value
        if mesh is None and type(self.points) is np.ndarray:
            mesh = scipy.spatial.Delaunay(*self._scale(self.points))
        self._mesh = mesh, self.points  # made once for plain points, and of no use for others in their place

    def copy_from(self, f: Any) -> None:
        """Take the triangles and values of SciPy's interpolant."""
        self._take_scaled(f, np.asarray(f.values).reshape(len(f.points), *f.values_shape))
        self._mesh, self.fill_value = (f.tri, self.points), f.fill_value

    def __call__(self, *xi: Any) -> Any:
        """Evaluate at points, an array (..., dims), or arrays of coordinates that broadcast together."""
        shape, x = self._locate(xi)
        points, x, values = together(self.points, x, self.values)
        mesh, meshed = self._mesh
        corners = bind(corners_p, *self._scale(points, x), mesh=mesh if self.points is meshed else None)
        there = corners[:, 0] >= 0
        own = np.where(there[:, None], corners, 0)
        at = pick(points, (own,))
        edges = np.swapaxes(at[:, 1:] - at[:, :1], 1, 2)
        edges = np.where(there[:, None, None], edges, np.eye(points.shape[1]))
        shares = np.linalg.solve(edges, np.where(there[:, None], x - at[:, 0], 0.0)[:, :, None])[:, :, 0]
        shares = np.concatenate([1.0 - np.sum(shares, axis=1, keepdims=True), shares], axis=1)
        trail = (1,) * (values.ndim - 1)
        y = np.sum(pick(values, (own,)) * shares.reshape((*shares.shape, *trail)), axis=1)
        y = np.where(there.reshape(-1, *trail), y, self.fill_value)
        return y.reshape((*shape, *values.shape[1:]))


class NearestNDInterpolator(_Scattered):
    """Interpolate scattered points by the value of the nearest.

    Differentiable in the values; in the points it is constant almost everywhere, and the derivative 0.

    Parameters
    ----------
    x : array (n, dims)
        Where the values are known.
    y : array (n, ...)
        Values, which may be complex.
    rescale : bool
        Whether distances are those of points brought to a common scale.
    tree_options : dict, optional
        As of scipy.spatial.KDTree; ``boxsize`` alone has an effect on traced points.

    Raises
    ------
    ValueError
        if there are not as many values as points.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import NearestNDInterpolator
    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> fad.grad(lambda v: NearestNDInterpolator(corners, v)(0.25, 0.7))(np.zeros(3))
    array([0., 0., 1.])
    """

    _arrays = ("points", "values", "frame")

    def __init__(self, x: Any, y: Any, rescale: bool = False, tree_options: Any = None):
        self._take(x, y, rescale)
        self.boxsize = (tree_options or {}).get("boxsize")

    def copy_from(self, f: Any) -> None:
        """Take the points and values of SciPy's interpolant."""
        self._take_scaled(f, f.values)
        self.boxsize = f.tree.boxsize

    def __call__(self, *xi: Any, **query_options: Any) -> Any:
        """Evaluate at points, an array (..., dims), or arrays of coordinates that broadcast together."""
        shape, x = self._locate(xi)
        points, x = self._scale(self.points, x)
        found = KDTree(points, boxsize=self.boxsize).query(x, **query_options)[1]
        there = found < points.shape[0]
        values = self.values if self.values.dtype.kind == "c" else double(self.values)
        y = pick(values, (np.where(there, found, 0),))
        y = np.where(there.reshape(-1, *[1] * (y.ndim - 1)), y, np.nan)
        return y.reshape((*shape, *values.shape[1:]))


def griddata(
    points: Any, values: Any, xi: Any, method: str = "linear", fill_value: Any = np.nan, rescale: bool = False
) -> Any:
    """Interpolate scattered points: `LinearNDInterpolator` or `NearestNDInterpolator` made and evaluated at once.

    Parameters
    ----------
    points : array (n, dims), or tuple of arrays (n,)
        Where the values are known; of one dimension `interp1d` interpolates.
    values : array (n, ...)
        Values, which may be complex.
    xi : array (..., dims), or tuple of arrays
        Where to interpolate.
    method : "linear", "nearest" or "cubic"
        How values are found; "cubic" along a line only.
    fill_value : number
        What stands outside of the convex hull, but for "nearest".
    rescale : bool
        Whether the points are brought to a common scale before.

    Returns
    -------
    array

    Raises
    ------
    NotImplementedError
        for "cubic" in the plane.
    ValueError
        if there is no such method.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import griddata
    >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> fad.grad(lambda x: griddata(corners, np.array([0.0, 2.0, 5.0]), x)[0])(np.array([[0.25, 0.5]]))
    array([[2., 5.]])
    """
    points, values = _collect(points), as_array(values)
    dimensions = points.shape[-1]
    if dimensions == 1 and method in ("nearest", "linear", "cubic"):
        if isinstance(xi, tuple):
            (xi,) = xi
        fill = "extrapolate" if method == "nearest" else fill_value
        return interp1d(points.reshape(-1), values, method, 0, bounds_error=False, fill_value=fill)(xi)
    if method == "nearest":
        return NearestNDInterpolator(points, values, rescale)(xi)
    if method == "linear":
        return LinearNDInterpolator(points, values, fill_value, rescale)(xi)
    if method == "cubic" and dimensions == 2:
        raise NotImplementedError(
            "griddata with method='cubic' finds slopes by an iteration and has no derivative here: take "
            "method='linear', or RBFInterpolator(points, values, kernel='cubic'), which is smooth"
        )
    raise ValueError(f"Unknown interpolation method {method!r} for {dimensions} dimensional data")


# --- the contract ---------------------------------------------------------------------------------------------------


_PLACES = np.array([[0.0, 0.0], [4.0, 0.1], [0.2, 4.1], [4.3, 4.6], [2.1, 1.4], [1.1, 2.9], [3.2, 3.1]])


def _of_points(kind: Any) -> Any:
    def evaluate(points, values, *xi, **options):
        return kind(points, values, **options)(*xi)

    return evaluate


def _near(s: Any) -> Any:
    return (_PLACES + 0.02 * s.real(7, 2).real).astype(s.real(1).real.dtype)


def _inside(s: Any, *shape: int) -> Any:
    return s.real(*shape, low=0.9, high=3.3).real


def _samples(s: Any) -> list:
    return [
        call(_near(s), s.real(7), _inside(s, 3, 2)),
        call(_near(s), s.real(7, 2), _inside(s, 3), _inside(s, 1)),
        call(_near(s) * np.array([1.0, 50.0]), s.real(7), _inside(s, 3, 2) * np.array([1.0, 50.0]), rescale=True),
    ]


def _nearest_samples(s: Any) -> list:
    return [call(_near(s), s.real(7), _inside(s, 3, 2)), call(_near(s), s.real(7, 2), _inside(s, 2, 2, 2))]


def _grid_samples(s: Any) -> list:
    line = np.cumsum(s.positive(5)).real - 0.3
    return [
        call(_near(s), s.real(7), _inside(s, 3, 2)),
        call(_near(s), s.real(7), _inside(s, 3, 2), method="nearest"),
        call(line[::-1].copy(), s.real(5), line[1:4] - 0.1 * s.positive(3).real, method="cubic"),
    ]


contract_with("LinearNDInterpolator", _of_points(theirs.LinearNDInterpolator), _samples)(
    _of_points(LinearNDInterpolator)
)
contract_with("NearestNDInterpolator", _of_points(theirs.NearestNDInterpolator), _nearest_samples)(
    _of_points(NearestNDInterpolator)
)
contract_with("griddata", theirs.griddata, _grid_samples)(griddata)
