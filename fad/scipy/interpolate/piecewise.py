"""Polynomials between knots: PPoly, and the cubic curves that are made of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.backends import like
from fad.ops.arrangement.structural import normalize_axis
from fad.ops.places.indexing import pick
from fad.scipy.bands import solve_banded
from fad.scipy.interpolate.common import Curve, double, piece, place, together, wrap


class PPoly(Curve):
    """A piecewise polynomial: on ``[x[i], x[i+1])`` the sum of ``c[k-1-p, i] (x - x[i])**p``.

    Differentiable in the coefficients `c`, the breakpoints `x` and the points; it is a tree of `c` and `x`.

    Parameters
    ----------
    c : array, shape (k, m, ...)
        Coefficients, the highest power first.
    x : array, shape (m + 1,)
        Breakpoints, increasing.
    extrapolate : bool or "periodic"
        Whether the first and last polynomial go on beyond the ends, where the result is NaN otherwise.
    axis : int
        Which axis of the results belongs to the points.

    Raises
    ------
    ValueError
        if `x` decreases, or there are not as many pieces as coefficients are for.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import PPoly
    >>> f = PPoly(np.array([[1.0], [0.0]]), np.array([0.0, 2.0]))
    >>> fad.grad(f)(0.5)
    np.float64(1.0)
    """

    _arrays = ("c", "x")

    def __init__(self, c: Any, x: Any, extrapolate: Any = None, axis: int = 0):
        c, x = together(c, x)
        if x.dtype.kind == "c":
            raise ValueError("x must contain real values")
        if c.ndim < 2:
            raise ValueError("Coefficients array must be at least 2-dimensional.")
        axis = normalize_axis(axis, c.ndim - 1)
        if axis:
            c = np.moveaxis(np.moveaxis(c, axis + 1, 0), axis + 1, 0)
        if x.ndim != 1 or x.shape[0] < 2:
            raise ValueError("x must be 1-dimensional with at least 2 elements")
        if c.shape[0] == 0 or c.shape[1] != x.shape[0] - 1:
            raise ValueError(f"c has {c.shape[1]} pieces, but x has {x.shape[0] - 1} intervals")
        if np.any(x[1:] < x[:-1]):
            raise ValueError("`x` must be increasing; turn a decreasing one round")
        self._set(c, x, axis, True if extrapolate is None else extrapolate)

    def _set(self, c: Any, x: Any, axis: int, extrapolate: Any) -> None:
        self.c = c
        self.x = x
        self.axis = axis
        self.extrapolate = extrapolate if extrapolate == "periodic" else bool(extrapolate)

    def _with(self, c: Any) -> PPoly:
        """Return a piecewise polynomial of other coefficients."""
        new = object.__new__(PPoly)
        new._set(c, self.x, self.axis, self.extrapolate)
        return new

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Evaluate the polynomial, or its derivative of order `nu`."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        x = like(self.c, double(x))
        if x.dtype.kind == "c":
            raise TypeError("piecewise polynomials take real points")
        shape, points = x.shape, x.reshape(-1)
        if extrapolate == "periodic":
            points = wrap(points, self.x[0], self.x[-1])
            extrapolate = False
        i = piece(self.x, points, 0, self.x.shape[0] - 2)
        c = self._differentiate(nu) if nu >= 0 else self.antiderivative(-nu).c
        c = pick(c, (slice(None), i))
        trail = (-1, *[1] * (c.ndim - 2))
        s = (points - pick(self.x, i)).reshape(trail)
        y = c[0] + 0.0 * s
        for row in range(1, c.shape[0]):
            y = y * s + c[row]
        if not extrapolate:
            outside = (points < self.x[0]) | (points > self.x[-1])
            y = np.where(outside.reshape(trail), np.nan, y)
        return place(y.reshape(shape + y.shape[1:]), len(shape), self.axis)

    def _differentiate(self, nu: int) -> Any:
        k = self.c.shape[0]
        if nu >= k:
            return 0.0 * self.c[:1]
        factors = like(self.c, np.array([float(math.perm(k - 1 - row, nu)) for row in range(k - nu)]))
        return self.c[: k - nu] * factors.reshape(-1, *[1] * (self.c.ndim - 1)) if nu else self.c

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative of order `nu`, as a piecewise polynomial."""
        return self.antiderivative(-nu) if nu < 0 else self._with(self._differentiate(nu))

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the antiderivative that is continuous and zero at the first breakpoint, `nu` times over."""
        if nu <= 0:
            return self.derivative(-nu)
        c = self.c
        h = (self.x[1:] - self.x[:-1]).reshape(-1, *[1] * (c.ndim - 2))
        for _ in range(nu):
            k = c.shape[0]
            powers = like(c, np.arange(k, 0, -1.0)).reshape(-1, *[1] * (c.ndim - 1))
            raised = c / powers
            whole = raised[0]
            for row in range(1, k):
                whole = whole * h + raised[row]
            ends = np.cumsum(whole * h, axis=0)
            start = np.concatenate([0.0 * ends[:1], ends[:-1]])
            c = np.concatenate([raised, start[None]])
        return self._with(c)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral from `a` to `b`, which may be traced."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        whole = self.antiderivative()
        whole.axis = 0
        if extrapolate != "periodic":
            return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)
        start, end = self.x[0], self.x[-1]
        full = whole(end, extrapolate=True)

        def upto(t: Any) -> Any:
            turns = np.floor((t - start) / (end - start))
            return turns * full + whole(t - turns * (end - start), extrapolate=True)

        return upto(b) - upto(a)


# --- curves through points, with slopes -----------------------------------------------------------------------------


def _prepare(x: Any, y: Any, axis: int, dydx: Any = None) -> tuple:
    """Return double-precision knots and values, the interpolated axis in front, checked as SciPy does."""
    x, y = together(x, y)
    if x.dtype.kind == "c":
        raise ValueError("`x` must contain real values.")
    axis = normalize_axis(axis, y.ndim)
    if x.ndim != 1:
        raise ValueError("`x` must be 1-dimensional.")
    if x.shape[0] < 2:
        raise ValueError("`x` must contain at least 2 elements.")
    if x.shape[0] != y.shape[axis]:
        raise ValueError(f"The length of `y` along `axis`={axis} doesn't match the length of `x`")
    for name, v in (("x", x), ("y", y)):
        if not np.all(np.isfinite(v)):
            raise ValueError(f"`{name}` must contain only finite values.")
    if np.any(x[1:] <= x[:-1]):
        raise ValueError("`x` must be strictly increasing sequence.")
    y = np.moveaxis(y, axis, 0)
    if dydx is None:
        return x, y, axis
    dydx = like(y, double(dydx))
    if np.moveaxis(dydx, axis, 0).shape != y.shape:
        raise ValueError("The shapes of `y` and `dydx` must be identical.")
    return x, y, axis, np.moveaxis(dydx, axis, 0)


def _steps(x: Any, y: Any) -> tuple:
    """Return the widths of the intervals, shaped to meet the values, and the slopes of the chords."""
    h = (x[1:] - x[:-1]).reshape(-1, *[1] * (y.ndim - 1))
    return h, (y[1:] - y[:-1]) / h


class CubicHermiteSpline(PPoly):
    """The piecewise cubic with given values `y` and slopes `dydx` at the knots `x`.

    Parameters
    ----------
    x : array (n,)
        Increasing places.
    y, dydx : array
        Values and slopes; `axis` has length n.
    axis : int
        The axis of `y` along `x`.
    extrapolate : bool or "periodic"
        What to do beyond the ends: evaluate, give NaN, or go on from the other end.

    Raises
    ------
    ValueError
        if `x` does not increase, or its length is not that of `y` along `axis`.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import CubicHermiteSpline
    >>> fad.grad(lambda d: CubicHermiteSpline([0.0, 1.0], [0.0, 0.0], d)(0.5))(np.zeros(2))
    array([ 0.125, -0.125])
    """

    _arrays = ("c", "x")

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None):
        x, y, axis, dydx = _prepare(x, y, axis, dydx)
        self._through(x, y, dydx, axis, True if extrapolate is None else extrapolate)

    def _through(self, x: Any, y: Any, slopes: Any, axis: int, extrapolate: Any) -> None:
        h, chord = _steps(x, y)
        t = (slopes[:-1] + slopes[1:] - 2.0 * chord) / h
        c = np.stack([t / h, (chord - slopes[:-1]) / h - t, slopes[:-1], y[:-1]])
        self._set(c, x, axis, extrapolate)


class PchipInterpolator(CubicHermiteSpline):
    """The monotone piecewise cubic of Fritsch and Butland through points, real ones.

    Where neighbouring chords change direction a slope is 0, and so is its derivative.

    Parameters
    ----------
    x : array (n,)
        Increasing places.
    y : array
        Values; `axis` has length n.
    axis : int
        The axis of `y` along `x`.
    extrapolate : bool
        Whether to evaluate beyond the ends, or give NaN.

    Raises
    ------
    ValueError
        if `x` does not increase, or its length is not that of `y` along `axis`.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import PchipInterpolator
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> fad.grad(lambda y: PchipInterpolator(x, y)(1.0))(np.array([0.0, 1.0, 4.0]))
    array([0., 1., 0.])
    """

    _arrays = ("c", "x")

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None):
        x, y, axis = _prepare(x, y, axis)
        _real("PchipInterpolator", y)
        self._through(x, y, _monotone(x, y), axis, True if extrapolate is None else extrapolate)


def _real(name: str, y: Any) -> None:
    if y.dtype.kind == "c":
        raise ValueError(f"`{name}` only works with real values for `y`; give it np.real(y)")


def _monotone(x: Any, y: Any) -> Any:
    h, m = _steps(x, y)
    if y.shape[0] == 2:
        return np.concatenate([m, m])
    flat = (np.sign(m[1:]) != np.sign(m[:-1])) | (m[1:] == 0) | (m[:-1] == 0)
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    before, after = (np.where(flat, 1.0, v) for v in (m[:-1], m[1:]))
    inner = np.where(flat, 0.0, (w1 + w2) / (w1 / before + w2 / after))
    first, last = _end(h[0], h[1], m[0], m[1]), _end(h[-1], h[-2], m[-1], m[-2])
    return np.concatenate([first[None], inner, last[None]])


def _end(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """Return a one-sided slope that keeps the shape (Moler, Numerical Computing with MATLAB, 3.6)."""
    d = ((2.0 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    against = np.sign(d) != np.sign(m0)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3.0 * np.abs(m0))
    return np.where(against, 0.0, np.where(steep, 3.0 * m0, d))


class Akima1DInterpolator(CubicHermiteSpline):
    """Akima's piecewise cubic through points, real ones, or its modification ``"makima"``.

    Parameters
    ----------
    x : array (n,)
        Increasing places.
    y : array
        Values; `axis` has length n.
    axis : int
        The axis of `y` along `x`.
    method : "akima" or "makima", keyword only
        The formula of the slopes.
    extrapolate : bool
        Whether to evaluate beyond the ends, or give NaN.

    Raises
    ------
    ValueError
        if `x` does not increase, or its length is not that of `y` along `axis`.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import Akima1DInterpolator
    >>> y = np.array([0.0, 1.0, 4.0, 9.0])
    >>> fad.grad(lambda t: Akima1DInterpolator(np.arange(4.0), y)(t))(1.5).round(6)
    np.float64(3.0)
    """

    _arrays = ("c", "x")

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None):
        if method not in ("akima", "makima"):
            raise NotImplementedError(f"`method`={method} is unsupported.")
        x, y, axis = _prepare(x, y, axis)
        _real("Akima1DInterpolator", y)
        self._through(x, y, _akima(x, y, method), axis, False if extrapolate is None else extrapolate)


def _akima(x: Any, y: Any, method: str) -> Any:
    _, m = _steps(x, y)
    if y.shape[0] == 2:
        return np.concatenate([m, m])
    before, after = 2.0 * m[:1] - m[1:2], 2.0 * m[-1:] - m[-2:-1]
    m = np.concatenate([2.0 * before - m[:1], before, m, after, 2.0 * after - m[-1:]])
    change = np.abs(m[1:] - m[:-1])
    if method == "makima":
        middle = np.abs(m[1:] + m[:-1])
        change = change + 0.5 * middle
    f1, f2 = change[2:], change[:-2]
    total = f1 + f2
    clear = total > 1e-9 * np.max(total)
    blend = m[1:-2] + f2 / np.where(clear, total, 1.0) * (m[2:-1] - m[1:-2])
    return np.where(clear, blend, 0.5 * (m[3:] + m[:-3]))


# --- the cubic spline -----------------------------------------------------------------------------------------------


class CubicSpline(CubicHermiteSpline):
    """The cubic spline through points, twice continuously differentiable; `y` may be complex.

    `bc_type` is "not-a-knot", "periodic", "clamped", "natural", or a pair of these or of ``(order, value)``, where the
    values may be traced. Knots, values and points of evaluation may all be traced.

    Parameters
    ----------
    x : array (n,)
        Increasing places.
    y : array
        Values; `axis` has length n.
    axis : int
        The axis of `y` along `x`.
    bc_type : str or pair
        What holds at the ends, as of scipy.interpolate.CubicSpline.
    extrapolate : bool or "periodic"
        What to do beyond the ends: evaluate, give NaN, or go on from the other end.

    Raises
    ------
    ValueError
        if `x` does not increase, or its length is not that of `y` along `axis`.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import CubicSpline
    >>> x = np.arange(5.0)
    >>> fad.grad(lambda t: CubicSpline(x, x**3)(t))(1.5).round(9)
    np.float64(6.75)
    """

    _arrays = ("c", "x")

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None):
        x, y, axis = _prepare(x, y, axis)
        ends = _ends(bc_type, y)
        periodic = isinstance(ends[0], str) and ends[0] == "periodic"
        extrapolate = ("periodic" if periodic else True) if extrapolate is None else extrapolate
        if any(not isinstance(e, str) and e[1].dtype.kind == "c" for e in ends):
            y = y.astype(np.complex128)
        self._through(x, y, _spline_slopes(x, y, ends), axis, extrapolate)


def _ends(bc_type: Any, y: Any) -> list:
    """Return the condition at each end: "not-a-knot", "periodic", or (order, value)."""
    if isinstance(bc_type, str):
        if bc_type == "periodic" and not np.allclose(y[0], y[-1], rtol=1e-15, atol=1e-15):
            raise ValueError("The first and last `y` point must be identical when bc_type='periodic'.")
        bc_type = (bc_type, bc_type)
    elif len(bc_type) != 2:
        raise ValueError("`bc_type` must contain 2 elements to specify start and end conditions.")
    elif any(isinstance(b, str) and b == "periodic" for b in bc_type):
        raise ValueError("'periodic' `bc_type` is defined for both curve ends")
    return [_end_condition(b, y) for b in bc_type]


def _end_condition(condition: Any, y: Any) -> Any:
    if isinstance(condition, str):
        if condition in ("not-a-knot", "periodic"):
            return condition
        if condition not in ("clamped", "natural"):
            raise ValueError(f"bc_type={condition} is not allowed.")
        return (1 if condition == "clamped" else 2), 0.0 * y[0]
    order, value = condition
    value = like(y, double(value))
    if order not in (1, 2):
        raise ValueError("The specified derivative order must be 1 or 2.")
    if value.shape != y.shape[1:]:
        raise ValueError(f"`deriv_value` shape {value.shape} is not the expected one {y.shape[1:]}.")
    return order, value


def _is(condition: Any, name: str) -> bool:
    return isinstance(condition, str) and condition == name


def _spline_slopes(x: Any, y: Any, ends: list) -> Any:
    h, chord = _steps(x, y)
    dx, n = x[1:] - x[:-1], x.shape[0]
    if n == 2:
        ends = [(1, chord[0]) if isinstance(e, str) else e for e in ends]
    if n == 3 and _is(ends[0], "periodic"):
        return np.broadcast_to(np.sum(chord / h, axis=0) / np.sum(1.0 / h, axis=0), y.shape)
    if n == 3 and _is(ends[0], "not-a-knot") and _is(ends[1], "not-a-knot"):
        middle = (h[0] * chord[1] + h[1] * chord[0]) / (h[0] + h[1])  # the parabola through three points
        return np.stack([2.0 * chord[0] - middle, middle, 2.0 * chord[1] - middle])
    if _is(ends[0], "periodic"):
        return _periodic_slopes(dx, h, chord)
    diagonal, inner = 2.0 * (dx[:-1] + dx[1:]), 3.0 * (h[1:] * chord[:-1] + h[:-1] * chord[1:])
    first = _end_row(ends[0], dx, h, chord, y[1] - y[0], 1.0)
    last = _end_row(ends[1], dx[::-1], h[::-1], chord[::-1], y[-1] - y[-2], -1.0)
    zero = 0.0 * dx[:1]
    bands = [[zero, first[1][None], dx[:-1]], [first[0][None], diagonal, last[0][None]], [dx[1:], last[1][None], zero]]
    ab = np.stack([np.concatenate(row) for row in bands])
    return solve_banded(ab, np.concatenate([first[2][None], inner, last[2][None]]), 1, 1)


def _end_row(condition: Any, dx: Any, h: Any, chord: Any, rise: Any, side: float) -> tuple:
    """Return the equation of an end, seen from there: the diagonal, its neighbour, the right-hand side."""
    if _is(condition, "not-a-knot"):
        reach, d = dx[0] + dx[1], h[0] + h[1]
        return dx[1], reach, ((h[0] + 2.0 * d) * h[1] * chord[0] + h[0] ** 2 * chord[1]) / d
    order, value = condition
    if order == 1:
        return 1.0 + 0.0 * dx[0], 0.0 * dx[0], value + 0.0 * rise
    return 2.0 * dx[0], dx[0], -0.5 * side * value * h[0] ** 2 + 3.0 * rise


def _periodic_slopes(dx: Any, h: Any, chord: Any) -> Any:
    """Solve the cyclic system by two tridiagonal ones, with the last unknown taken out."""
    diagonal = np.concatenate([2.0 * (dx[-1:] + dx[:1]), 2.0 * (dx[:-2] + dx[1:-1])])
    zero = 0.0 * dx[:1]
    ab = np.stack(
        [
            np.concatenate([zero, dx[-1:], dx[:-3]]),
            diagonal,
            np.concatenate([dx[1:-1], zero]),
        ]
    )
    right = 3.0 * (np.concatenate([h[:1], h[1:]]) * np.concatenate([chord[-1:], chord[:-1]]))
    right = right + 3.0 * np.concatenate([h[-1:], h[:-1]]) * chord
    inner, last = right[:-1], right[-1]
    corner = np.concatenate([-dx[:1], 0.0 * dx[: dx.shape[0] - 3], -dx[-3:-2]])
    s1 = solve_banded(ab, inner, 1, 1)
    s2 = solve_banded(ab, corner, 1, 1).reshape(-1, *[1] * (h.ndim - 1))
    top = last - h[-2] * s1[0] - h[-1] * s1[-1]
    end = top / (2.0 * (h[-1] + h[-2]) + h[-2] * s2[0] + h[-1] * s2[-1])
    s = s1 + end * s2
    return np.concatenate([s, end[None], s[:1]])
