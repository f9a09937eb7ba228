"""FITPACK's splines of two variables: RectBivariateSpline and those of scattered points, and bisplev.

Through values on a grid a spline is the product of those along its axes (`tensor_products`). How smoothing chooses
knots, and what FITPACK makes of scattered points, is SciPy's, of plain data, and differentiable in the points alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate as theirs

from fad.backends import like
from fad.core.primitives.primitive import has_tracer
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.interpolate.common import Curve, contract_with, double, together
from fad.scipy.interpolate.fitpack import integrate_within
from fad.scipy.interpolate.splines import BSpline, interpolation_knots
from fad.scipy.interpolate.tensor_products import evaluate_splines, fit_splines


class BivariateSpline(Curve):
    """A spline of two variables, a tree of knots and coefficients; made by the classes that derive from it.

    Beyond the ends of the knots it has the values at the ends, as FITPACK's.

    Raises
    ------
    ValueError
        if it is evaluated on a grid whose places do not increase.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import BivariateSpline, RectBivariateSpline
    >>> isinstance(RectBivariateSpline(np.arange(4.0), np.arange(4.0), np.ones((4, 4))), BivariateSpline)
    True
    """

    _arrays = ("tx", "ty", "c")

    def _set(self, tx: Any, ty: Any, c: Any, degrees: tuple, fp: Any) -> None:
        shape = (tx.shape[0] - degrees[0] - 1, ty.shape[0] - degrees[1] - 1)
        self.tx, self.ty, self.c = tx, ty, c.reshape(shape)
        self.degrees, self.fp = degrees, fp

    def copy_from(self, spline: Any) -> None:
        """Take the knots and coefficients of a spline of SciPy's, of which a derivative has no residual."""
        tx, ty, c = map(np.asarray, spline.tck[:3])
        self._set(tx, ty, c, spline.degrees, vars(spline).get("fp"))

    @property
    def tck(self) -> tuple:
        """Knots along both axes, and the coefficients in a row."""
        return self.tx, self.ty, self.c.reshape(-1)

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """Evaluate the spline, or a partial derivative, on the grid of two arrays in order, or at pairs of them."""
        x, y = like(self.c, double(x)), like(self.c, double(y))
        if not grid:
            x, y = np.broadcast_arrays(x, y)
            return self._evaluate(x.reshape(-1), y.reshape(-1), dx, dy).reshape(x.shape)
        x, y = np.atleast_1d(x), np.atleast_1d(y)
        for name, at in (("x", x), ("y", y)):
            if at.ndim != 1 or np.any(stop_gradient(at)[1:] < stop_gradient(at)[:-1]):
                raise ValueError(f"{name} must have one axis, and increase, when `grid` is True")
        return self._evaluate(x, y, dx, dy, True)

    def _evaluate(self, x: Any, y: Any, dx: int, dy: int, grid: bool = False) -> Any:
        (kx, ky), tx, ty = self.degrees, self.tx, self.ty
        if (dx or dy) and not (0 <= dx < kx and 0 <= dy < ky):
            raise ValueError(f"the orders {dx} and {dy} of derivatives must be less than the degrees {kx} and {ky}")
        x = np.clip(x, tx[kx], tx[tx.shape[0] - kx - 1])
        y = np.clip(y, ty[ky], ty[ty.shape[0] - ky - 1])
        if not grid:
            return evaluate_splines((tx, ty), self.c, (kx, ky), (x, y), (dx, dy))
        along = evaluate_splines((tx,), self.c, (kx,), (x,), (dx,))
        return evaluate_splines((ty,), along.T, (ky,), (y,), (dy,)).T

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Evaluate the spline, or a partial derivative, at points whose coordinates broadcast together."""
        return self(xi, yi, dx, dy, False)

    def partial_derivative(self, dx: int, dy: int) -> BivariateSpline:
        """Return a partial derivative, as a spline."""
        (kx, ky), new = self.degrees, object.__new__(BivariateSpline)
        if not (0 <= dx < kx and 0 <= dy < ky):
            raise ValueError("order of derivative must be positive or zero, and less than degree of spline")
        first = BSpline(self.tx, self.c, kx).derivative(dx)
        second = BSpline(self.ty, first.c.T, ky).derivative(dy)
        new._set(first.t, second.t, second.c.T, (kx - dx, ky - dy), None)
        return new

    def integral(self, xa: Any, xb: Any, ya: Any, yb: Any) -> Any:
        """Return the integral over a rectangle, whose sides may be traced; the spline is zero beyond its ends."""
        along = integrate_within(BSpline(self.tx, self.c, self.degrees[0]), xa, xb)
        return integrate_within(BSpline(self.ty, along, self.degrees[1]), ya, yb)

    def get_knots(self) -> tuple:
        """Return the knots along both axes."""
        return self.tx, self.ty

    def get_coeffs(self) -> Any:
        """Return the coefficients in a row."""
        return self.c.reshape(-1)

    def get_residual(self) -> Any:
        """Return the sum of the squared distances from the values."""
        return self.fp


_NO_SMOOTHING = (
    "{} of traced values would choose its knots by them, in steps, so that it has no derivative in them; "
    "RectBivariateSpline of values on a grid has, with s=0, and so have RBFInterpolator and LinearNDInterpolator "
    "of scattered ones"
)


class RectBivariateSpline(BivariateSpline):
    """The spline of two variables through values on a grid (``s=0``) or, of plain data, near them.

    Differentiable in `x`, `y`, `z`, `bbox` and the points of evaluation.

    Parameters
    ----------
    x : array (m,)
        Increasing places along the first axis.
    y : array (n,)
        Increasing places along the second axis.
    z : array (m, n)
        Values.
    bbox : sequence of four
        The ends of the spline, where they are not those of `x` and `y`.
    kx, ky : int
        The degrees, from 1 to 5.
    s : float
        How near the spline is to the values; 0 goes through them, and alone takes traced ones.
    maxit : int
        The most iterations of smoothing.

    Raises
    ------
    ValueError
        if `x` or `y` do not increase, are too few for the degrees, or do not fit the shape of `z`.
    NotImplementedError
        if the values are traced and `s` is not 0.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import RectBivariateSpline
    >>> x = np.arange(5.0)
    >>> f = lambda p: RectBivariateSpline(x, x, np.outer(x**2, x)).ev(p[0], p[1])
    >>> fad.grad(f)(np.array([1.5, 3.0])).round(9)
    array([9.  , 2.25])
    """

    _arrays = ("tx", "ty", "c")

    def __init__(
        self, x: Any, y: Any, z: Any, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3, s: Any = 0, maxit: int = 20
    ):
        if has_tracer((s,)) or s:
            if has_tracer((x, y, z, s, list(bbox))):
                raise NotImplementedError(_NO_SMOOTHING.format("RectBivariateSpline with s > 0"))
            self.copy_from(theirs.RectBivariateSpline(x, y, z, list(bbox), kx, ky, s, maxit))
            return
        x, y, z = together(x, y, z)
        x, y = x.reshape(-1), y.reshape(-1)
        if z.dtype.kind == "c":
            raise ValueError("RectBivariateSpline takes real values: interpolate the real and the imaginary part")
        if z.shape != x.shape + y.shape:
            raise ValueError(f"z must have the shape {x.shape + y.shape} that x and y are for, not {z.shape}")
        if len(bbox) != 4:
            raise ValueError("bbox shape should be (4,)")
        knots = [_knots(*axis) for axis in (("x", x, kx, bbox[0], bbox[1]), ("y", y, ky, bbox[2], bbox[3]))]
        (tx, ty), c = fit_splines((x, y), z, (kx, ky), knots)
        self._set(tx, ty, c, (kx, ky), 0.0)


def _knots(name: str, x: Any, k: int, start: Any, end: Any) -> Any:
    """Return the knots of the spline through points, whose base interval may reach beyond them."""
    if np.any(stop_gradient(x)[1:] <= stop_gradient(x)[:-1]):
        raise ValueError(f"{name} must be strictly increasing")
    if not 1 <= k <= 5 or x.shape[0] <= k:
        raise ValueError(f"the degree along {name} must be from 1 to 5, and less than the {x.shape[0]} places: not {k}")
    ends = [like(x, double(x[at] if given is None else given)).reshape(1) for at, given in ((0, start), (-1, end))]
    return np.concatenate([*[ends[0]] * (k + 1), interpolation_knots(x, k), *[ends[1]] * (k + 1)])


class SmoothBivariateSpline(BivariateSpline):
    """A spline of two variables near scattered points, which are plain: its points of evaluation may be traced.

    Parameters
    ----------
    x, y, z : array (m,)
        Places, and the values there.
    w, bbox, kx, ky, s, eps
        As of scipy.interpolate.SmoothBivariateSpline.

    Raises
    ------
    NotImplementedError
        if the points are traced.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import SmoothBivariateSpline
    >>> x, y = (a.ravel() for a in np.mgrid[:5.0, :5.0])
    >>> surface = SmoothBivariateSpline(x, y, x * y, kx=1, ky=1)
    >>> fad.grad(lambda t: surface.ev(t, 2.0))(1.5).round(9)
    np.float64(2.0)
    """

    _arrays = ("tx", "ty", "c")

    def __init__(
        self, x: Any, y: Any, z: Any, w: Any = None, bbox: Any = (None,) * 4, kx: int = 3, ky: int = 3, s: Any = None,
        eps: float = 1e-16,
    ):  # fmt: skip
        if has_tracer((x, y, z, w, s, list(bbox))):
            raise NotImplementedError(_NO_SMOOTHING.format("SmoothBivariateSpline"))
        self.copy_from(theirs.SmoothBivariateSpline(x, y, z, w, list(bbox), kx, ky, s, eps))


class LSQBivariateSpline(BivariateSpline):
    """The spline of two variables with given knots that fits scattered points best, which are plain.

    The points of evaluation may be traced.

    Parameters
    ----------
    x, y, z : array (m,)
        Places, and the values there.
    tx, ty : array
        Inner knots, increasing.
    w, bbox, kx, ky, eps
        As of scipy.interpolate.LSQBivariateSpline.

    Raises
    ------
    NotImplementedError
        if the points or knots are traced.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import LSQBivariateSpline
    >>> x, y = (a.ravel() for a in np.mgrid[:5.0, :5.0])
    >>> surface = LSQBivariateSpline(x, y, x * y, [2.0], [2.0], kx=1, ky=1)
    >>> fad.grad(lambda t: surface.ev(t, 2.0))(1.5).round(9)
    np.float64(2.0)
    """

    _arrays = ("tx", "ty", "c")

    def __init__(
        self, x: Any, y: Any, z: Any, tx: Any, ty: Any, w: Any = None, bbox: Any = (None,) * 4, kx: int = 3,
        ky: int = 3, eps: Any = None,
    ):  # fmt: skip
        if has_tracer((x, y, z, tx, ty, w, list(bbox))):
            raise NotImplementedError(_NO_SMOOTHING.format("LSQBivariateSpline"))
        self.copy_from(theirs.LSQBivariateSpline(x, y, z, tx, ty, w, list(bbox), kx, ky, eps))


def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    """Evaluate a spline of two variables, or its derivative, on the grid of two arrays.

    Differentiable in the places, the knots and the coefficients.

    Parameters
    ----------
    x, y : float or array (m,)
        Places along both axes, increasing.
    tck : sequence of five
        Knots along both axes, the coefficients in a row, and the degrees, as of scipy.interpolate.bisplrep.
    dx, dy : int
        The orders of the derivatives.

    Returns
    -------
    array (mx, my)
        Without the axes of places of which there is only one.

    Raises
    ------
    ValueError
        if an order is not less than the degree, or the places do not increase.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import bisplev
    >>> t = np.array([0.0, 0.0, 1.0, 1.0])
    >>> fad.grad(lambda c: bisplev(0.25, 0.5, (t, t, c, 1, 1)))(np.zeros(4))
    array([0.375, 0.375, 0.125, 0.125])
    """
    tx, ty, c, kx, ky = tck
    tx, ty, c = together(tx, ty, as_array(c))
    if not (0 <= dx < kx and 0 <= dy < ky):
        raise ValueError(f"0 <= dx = {dx} < kx = {kx} and 0 <= dy = {dy} < ky = {ky} must hold")
    surface = object.__new__(BivariateSpline)
    surface._set(tx, ty, c, (kx, ky), None)
    z = surface(x, y, dx, dy)
    if z.shape[0] > 1:
        return z
    return z[0] if z.shape[1] > 1 else z[0, 0]


# --- the contract ---------------------------------------------------------------------------------------------------


def _places(s: Any, n: int) -> Any:
    x = np.cumsum(s.positive(n)).astype(s.dtype).real
    return x - x[0] - 0.25


def _of_grid(kind: Any) -> Any:
    def evaluate(x, y, z, xi, yi, dx=0, dy=0, grid=False, **options):
        return kind(x, y, z, **options)(xi, yi, dx, dy, grid)

    return evaluate


def _samples(s: Any) -> list:
    def inside(n: int) -> Any:
        return np.sort(s.real(n, low=-0.2, high=2.0).real)

    return [
        call(_places(s, 5), _places(s, 4), s.real(5, 4), inside(3), inside(3)),
        call(_places(s, 4), _places(s, 4), s.real(4, 4), inside(2), inside(3), dx=1, grid=True, ky=2),
        call(_places(s, 4), _places(s, 2), s.real(4, 2), s.real(3, low=-3.0, high=9.0).real, inside(3), kx=2, ky=1),
    ]


def _integral(kind: Any) -> Any:
    return lambda x, y, z, a, b: kind(x, y, z).integral(a, b, -0.1, 0.6) + 0.0


_T = np.array([0.0, 0.0, 0.0, 2.5, 6.0, 6.0, 6.0])
contract_with("RectBivariateSpline", _of_grid(theirs.RectBivariateSpline), _samples, complex=False)(
    _of_grid(RectBivariateSpline)
)
contract_with("RectBivariateSpline.integral", _integral(theirs.RectBivariateSpline), lambda s: [
    call(_places(s, 5), _places(s, 4), s.real(5, 4), s.real(low=-0.2, high=0.2), 0.7)], complex=False)(
    _integral(RectBivariateSpline))  # fmt: skip
contract_with("bisplev", lambda x, y, c, **options: theirs.bisplev(x, y, [_T, _T, c, 2, 2], **options), lambda s: [
    call(np.sort(s.real(3, low=0.1, high=5.9).real), 1.3, s.real(16)),
    call(1.5, np.sort(s.real(2, low=0.1, high=5.9).real), s.real(16), dy=1)], complex=False)(
    lambda x, y, c, **options: bisplev(x, y, [_T, _T, c, 2, 2], **options))  # fmt: skip
