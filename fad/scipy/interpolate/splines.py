"""B-splines: BSpline, and make_interp_spline, the one through given points."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.interpolate as theirs

from fad.backends import like
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import normalize_axis
from fad.ops.places.indexing import pick
from fad.ops.places.taking import at
from fad.scipy.bands import solve_banded
from fad.scipy.interpolate.common import Curve, contract_with, double, piece, place, together, wrap


def _over(a: Any, b: Any) -> Any:
    """Divide, with 0 over an interval without a width."""
    none = b == 0
    return np.where(none, 0.0 * a, a / np.where(none, 1.0 + 0.0 * b, b))


class BSpline(Curve):
    """The spline ``sum_j c[j] B_j(x)`` of degree k over the knots `t`, evaluated by de Boor's recursion.

    Differentiable in knots, coefficients and points; it is a tree of `t` and `c`.

    Parameters
    ----------
    t : array, shape (n + k + 1,)
        Knots, not decreasing.
    c : array, shape (>= n, ...)
        Coefficients.
    k : int
        Degree.
    extrapolate : bool or "periodic"
        Whether the first and last polynomial go on beyond the base interval, where the result is NaN otherwise.
    axis : int
        Which axis of `c` counts the coefficients.

    Raises
    ------
    ValueError
        if the knots decrease, or are too few for the degree.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import BSpline
    >>> t = np.array([0.0, 0.0, 1.0, 2.0, 2.0])
    >>> fad.grad(lambda c: BSpline(t, c, 1)(0.25))(np.zeros(3))
    array([0.75, 0.25, 0.  ])
    """

    _arrays = ("t", "c")

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0):
        (t, c), k = together(t, c), operator.index(k)
        axis = normalize_axis(axis, c.ndim)
        c = np.moveaxis(c, axis, 0)
        n = t.shape[0] - k - 1
        if k < 0:
            raise ValueError("Spline order cannot be negative.")
        if t.ndim != 1:
            raise ValueError("Knot vector must be one-dimensional.")
        if n < k + 1:
            raise ValueError(f"Need at least {2 * k + 2} knots for degree {k}")
        if np.any(t[1:] < t[:-1]):
            raise ValueError("Knots must be in a non-decreasing order.")
        if np.unique(stop_gradient(t)[k : n + 1]).shape[0] < 2:
            raise ValueError("Need at least two internal knots.")
        if not np.all(np.isfinite(t)):
            raise ValueError("Knots should not have nans or infs.")
        if c.shape[0] < n:
            raise ValueError("Knots, coefficients and degree are inconsistent.")
        self._set(t, c, k, axis, extrapolate)

    def _set(self, t: Any, c: Any, k: int, axis: int, extrapolate: Any) -> None:
        self.t = t
        self.c = c
        self.k = k
        self.axis = axis
        self.extrapolate = extrapolate if extrapolate == "periodic" else bool(extrapolate)

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Evaluate the spline, or its derivative of order `nu`."""
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        x, k, n = like(self.c, double(x)), self.k, self.t.shape[0] - self.k - 1
        if x.dtype.kind == "c":
            raise TypeError("splines take real points")
        if nu < 0:
            raise ValueError("the order of a derivative cannot be negative")
        shape, points = x.shape, x.reshape(-1)
        start, end = self.t[k], self.t[n]
        if extrapolate == "periodic":
            points = wrap(points, start, end)
            extrapolate = False
        places = piece(self.t, points, k, last_piece(self.t, k, n))
        if nu <= k:
            knots, coefficients = self._derive(nu)
            y = _evaluate(knots, coefficients, k - nu, places - nu, points)
        else:
            y = self._nothing(points)
        if not extrapolate:
            outside = (points < start) | (points > end)
            y = np.where(outside.reshape(-1, *[1] * (y.ndim - 1)), np.nan, y)
        return place(y.reshape(shape + y.shape[1:]), len(shape), self.axis)

    def _nothing(self, points: Any) -> Any:
        return 0.0 * (points.reshape(-1, *[1] * (self.c.ndim - 1)) + self.c[:1])

    def _derive(self, nu: int) -> tuple:
        """Return knots and coefficients of the derivative of an order."""
        t, c, k = self.t, self.c[: self.t.shape[0] - self.k - 1], self.k
        for degree in range(k, k - nu, -1):
            n = c.shape[0]
            widths = (t[degree + 1 : degree + n] - t[1:n]).reshape(-1, *[1] * (c.ndim - 1))
            c = float(degree) * _over(c[1:] - c[:-1], widths)
            t = t[1:-1]
        return t, c

    def derivative(self, nu: int = 1) -> BSpline:
        """Return the derivative of an order up to the degree, as a spline."""
        if not 0 <= nu <= self.k:
            raise ValueError(f"the derivatives of a spline of degree {self.k} have the orders 0 to {self.k}, not {nu}")
        new = object.__new__(BSpline)
        t, c = self._derive(nu)
        new._set(t, c, self.k - nu, self.axis, self.extrapolate)
        return new

    def integrate(self, a: Any, b: Any) -> Any:
        """Return the integral from `a` to `b`, which may be traced, and may lie beyond the base interval."""
        if self.extrapolate == "periodic":
            raise ValueError("integrate takes splines that are not periodic")
        whole = self._antiderivative()
        return whole(b, extrapolate=True) - whole(a, extrapolate=True)

    def _antiderivative(self) -> BSpline:
        t, k, n = self.t, self.k, self.t.shape[0] - self.k - 1
        widths = (t[k + 1 :] - t[:n]).reshape(-1, *[1] * (self.c.ndim - 1)) * (1.0 / (k + 1))
        sums = np.cumsum(self.c[:n] * widths, axis=0)
        new = object.__new__(BSpline)
        c = np.concatenate([0.0 * sums[:1], sums])
        new._set(np.concatenate([t[:1], t, t[-1:]]), c, k + 1, 0, True)
        return new


def last_piece(t: Any, k: int, n: int) -> int:
    """Return the last interval of the base interval that has a width; steps have a value at the end without one."""
    if k == 0:
        return n - 1
    plain = stop_gradient(t)
    inside = plain[k:n] < plain[n]
    return k + int(np.sum(inside)) - 1


def _evaluate(t: Any, c: Any, k: int, places: Any, x: Any) -> Any:
    """Return a spline's values by de Boor's recursion; each point lies between the knots ``places`` and the next."""
    trail = (-1, *[1] * (c.ndim - 1))
    d = [pick(c, (places - k + j,)) for j in range(k + 1)]
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            low, high = pick(t, (places + (j - k),)), pick(t, (places + (j + 1 - r),))
            share = _over(x - low, high - low).reshape(trail)
            d[j] = (1.0 - share) * d[j - 1] + share * d[j]
    return d[k] + 0.0 * x.reshape(trail)


# --- interpolation --------------------------------------------------------------------------------------------------


def basis_at(t: Any, k: int, places: Any, x: Any, nu: int = 0) -> list:
    """Return the k + 1 B-splines that are not zero at points, or their derivatives of an order."""
    found: list = [1.0 + 0.0 * x]
    for degree in range(1, k + 1):
        new = []
        for j in range(degree + 1):
            # B_i of this degree, i = places - degree + j, from those of one degree less
            terms = []
            for sign, index, part in ((1.0, j - 1, 0), (-1.0, j, 1)):
                if 0 <= index < degree:
                    first = pick(t, (places + (j - degree + part),))
                    last = pick(t, (places + (j + part),))
                    if degree > k - nu:
                        terms.append(sign * float(degree) * _over(found[index], last - first))
                    else:
                        share = _over(x - first, last - first) if part == 0 else _over(last - x, last - first)
                        terms.append(share * found[index])
            new.append(terms[0] if len(terms) == 1 else terms[0] + terms[1])
        found = new
    return found


_ALIASES = {"clamped": 1, "natural": 2}


def _conditions(given: Any, y: Any) -> list:
    """Return the conditions at an end as (order, value) pairs."""
    if given is None:
        return []
    if isinstance(given, str):
        if given == "not-a-knot":
            return []
        if given not in _ALIASES:
            raise ValueError(f"Unknown boundary condition : {given}")
        return [(_ALIASES[given], 0.0 * y[0])]
    try:
        return [(int(order), like(y, double(value))) for order, value in given]
    except TypeError:
        raise ValueError("`bc_type` should be a pair of iterables of pairs of (order, value).") from None


def _default_knots(x: Any, k: int, conditions: bool) -> Any:
    if conditions:
        return np.concatenate([*[x[:1]] * k, x, *[x[-1:]] * k])
    return np.concatenate([*[x[:1]] * (k + 1), interpolation_knots(x, k), *[x[-1:]] * (k + 1)])


def interpolation_knots(x: Any, k: int) -> Any:
    """Return the inner knots of the spline through points at `x`, where nothing is said of its ends."""
    half = (k + 1) // 2
    t = x if k % 2 else (x[1:] + x[:-1]) / 2.0
    return t[half:-half] if half else t


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> BSpline:
    """Return the spline of degree `k` through points, as a `BSpline`; points, knots and end values may be traced.

    Parameters
    ----------
    x : array, shape (n,)
        Increasing.
    y : array
        Values, n of them along `axis`.
    k : int
        Degree, 3 if not given.
    t : array, optional
        Knots; those of SciPy if not given.
    bc_type : str or pair, optional
        "not-a-knot", "natural", "clamped", or for each end None, one of these, or ``[(order, value), ...]``.
        Periodic splines are offered by `CubicSpline` only.
    axis : int
        The axis of `y` along `x`.
    check_finite : bool
        Whether NaN and infinities are looked for.

    Returns
    -------
    BSpline

    Raises
    ------
    ValueError
        if `x` does not increase, or the knots do not fit the degree.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import make_interp_spline
    >>> x = np.arange(6.0)
    >>> fad.grad(lambda s: make_interp_spline(x, x**2)(s))(2.5).round(9)
    np.float64(5.0)
    """
    if isinstance(bc_type, str) and bc_type == "periodic":
        raise ValueError("make_interp_spline takes no bc_type='periodic' here; CubicSpline does")
    ends = (bc_type, bc_type) if bc_type is None or isinstance(bc_type, str) else bc_type
    (x, y), k = together(x, y), operator.index(k)
    y = np.moveaxis(y, normalize_axis(axis, y.ndim), 0)
    first, last = (_conditions(e, y) for e in ends)
    _check_points(x, y, check_finite)
    if k < 0:
        raise ValueError("Expect non-negative k.")
    if k < 2 and t is None:
        if first or last:
            raise ValueError(f"Too much info for k={k}: bc_type can only be None.")
        knots = np.concatenate([x, x[-1:]] if k == 0 else [x[:1], x, x[-1:]])
        return _spline(knots, y, k, axis)
    t = _default_knots(x, k, bool(first or last)) if t is None else like(y, double(t))
    n = t.shape[0] - k - 1
    _check_knots(t, x, k)
    if n - x.shape[0] != len(first) + len(last):
        raise ValueError(
            f"The number of derivatives at boundaries does not match: expected {n - x.shape[0]}, "
            f"got {len(first)}+{len(last)}"
        )
    if any(not 0 <= order <= k for order, _ in (*first, *last)):
        raise ValueError("Bad boundary conditions: an order is larger than the degree")
    values = [*[v[None] for _, v in first], y, *[v[None] for _, v in last]]
    ab = _collocation(x, t, k, n, [o for o, _ in first], [o for o, _ in last])
    return _spline(t, solve_banded(ab, np.concatenate(values), k, k), k, axis)


def make_lsq_spline(
    x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *, method: str = "qr"
) -> BSpline:
    """Return the spline of degree `k` with given knots that fits points best, by least squares.

    Points, knots and weights may be traced.

    Parameters
    ----------
    x : array, shape (n,)
        Increasing.
    y : array
        Values, n of them along `axis`.
    t : array, shape (m + k + 1,)
        Knots, with the ends k + 1 times each.
    k : int
        Degree.
    w : array, shape (n,), optional
        Weights of the distances from the points.
    axis : int
        The axis of `y` along `x`.
    check_finite : bool
        Whether NaN and infinities are looked for.
    method : str
        Without effect: SciPy's way to solve.

    Returns
    -------
    BSpline

    Raises
    ------
    ValueError
        if `x` does not increase, or the knots do not fit.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import make_lsq_spline
    >>> x, t = np.arange(6.0), np.array([0.0, 0.0, 0.0, 5.0, 5.0, 5.0])
    >>> fad.grad(lambda s: make_lsq_spline(x, x**2, t, 2)(s))(2.5).round(9)
    np.float64(5.0)
    """
    (x, y, t), k = together(x, y, t), operator.index(k)
    y = np.moveaxis(y, normalize_axis(axis, y.ndim), 0)
    _check_points(x, y, check_finite)
    n = t.shape[0] - k - 1
    if t.ndim != 1 or np.any(t[1:] < t[:-1]) or np.any(x[0] < t[k]) or np.any(x[-1] > t[n]):
        raise ValueError("Expect t to be a 1-D sorted array_like whose base interval holds all points")
    places = piece(t, x, k, last_piece(t, k, n))
    rows = like(x, np.arange(x.shape[0]))
    a = np.zeros_like(t, shape=(x.shape[0], n))
    for j, values in enumerate(basis_at(t, k, places, x)):
        a = at(a)[rows, places - k + j].add(values)
    if w is not None:
        w = like(y, double(w))
        a, y = a * w[:, None], y * w.reshape(-1, *[1] * (y.ndim - 1))
    c = np.linalg.lstsq(a, y.reshape(y.shape[0], -1), rcond=None)[0]
    return _spline(t, c.reshape(n, *y.shape[1:]), k, axis)


def _spline(t: Any, c: Any, k: int, axis: int) -> BSpline:
    new = object.__new__(BSpline)
    new._set(t, c, k, normalize_axis(axis, c.ndim), True)
    return new


def _check_points(x: Any, y: Any, check_finite: bool) -> None:
    if x.ndim != 1 or x.shape[0] != y.shape[0]:
        raise ValueError(f"Shapes of x {x.shape} and y {y.shape} are incompatible")
    if np.any(x[1:] == x[:-1]):
        raise ValueError("Expect x to not have duplicates")
    if np.any(x[1:] < x[:-1]):
        raise ValueError("Expect x to be a 1D strictly increasing sequence.")
    if check_finite and not (np.all(np.isfinite(x)) and np.all(np.isfinite(y))):
        raise ValueError("array must not contain infs or NaNs")


def _check_knots(t: Any, x: Any, k: int) -> None:
    if t.ndim != 1 or np.any(t[1:] < t[:-1]):
        raise ValueError("Expect t to be a 1-D sorted array_like.")
    if t.shape[0] < x.shape[0] + k + 1:
        raise ValueError(f"Got {t.shape[0]} knots, need at least {x.shape[0] + k + 1}.")
    if np.any(x[0] < t[k]) or np.any(x[-1] > t[t.shape[0] - k - 1]):
        raise ValueError("Out of bounds: a point lies beyond the knots")


def _collocation(x: Any, t: Any, k: int, n: int, first: list, last: list) -> Any:
    """Return the banded matrix of the B-splines at the points, with rows of derivatives for the ends."""
    where = [x[:1]] * len(first) + [x] + [x[-1:]] * len(last)
    orders = [*first, 0, *last]
    ab, row = np.zeros_like(t, shape=(2 * k + 1, n)), 0
    for points, order in zip(where, orders, strict=True):
        places = piece(t, points, k, last_piece(t, k, n))
        rows = like(x, np.arange(row, row + points.shape[0]))
        for j, values in enumerate(basis_at(t, k, places, points, order)):
            columns = places - k + j
            near = np.abs(rows - columns) <= k
            diagonal = np.where(near, k + rows - columns, 0)
            ab = at(ab)[diagonal, columns].add(np.where(near, values, 0.0))
        row += points.shape[0]
    return ab


# --- the contract ---------------------------------------------------------------------------------------------------


def _knots(s, n):
    x = np.cumsum(s.positive(n)).astype(s.dtype).real
    return x - x[0]


def _bspline_samples(s):
    t = np.concatenate([np.zeros(3, s.dtype), _knots(s, 3)[1:] + 0.1, np.full(3, 9.0, s.dtype)]).real.tolist()
    return [
        call(t, s.real(5), 2, s.real(4, low=0.0, high=9.0).real),
        call(_knots(s, 9), s.real(5, 2), 3, s.real(3).real),
        call(t, s.real(2, 5), 2, s.real(2, 2, low=0.0, high=9.0).real, nu=1, axis=1),
        call(_knots(s, 8), s.real(5), 2, s.real(3, low=-9.0, high=19.0).real, extrapolate="periodic"),
        call(t, s.real(6), 2, s.real(3, low=0.0, high=9.0).real, nu=3),
    ]


def _of_basis(kind: Any) -> Any:
    def evaluate(t, c, k, x, nu=0, **options):
        return kind(t, c, k, **options)(x, nu)

    return evaluate


def _of_points(make: Any) -> Any:
    def evaluate(x, y, at, nu=0, k=3, **options):
        return make(x, y, k=k, **options)(at, nu)

    return evaluate


contract_with("BSpline", _of_basis(theirs.BSpline), _bspline_samples)(_of_basis(BSpline))
contract_with("BSpline.integrate", lambda t, c, k, a, b: theirs.BSpline(t, c, k).integrate(a, b) + 0.0, lambda s: [
    call(_knots(s, 8), s.real(5), 2, 0.3 + s.real(), 4.0)], complex=False)(
    lambda t, c, k, a, b: BSpline(t, c, k).integrate(a, b) + 0.0)  # fmt: skip
contract_with("make_interp_spline", _of_points(theirs.make_interp_spline), lambda s: [
    call(_knots(s, 6), s.real(6), s.real(4, low=-1.0, high=7.0).real),
    call(_knots(s, 6), s.real(6, 2), s.real(3).real, k=2),
    call(_knots(s, 5), s.real(2, 5), s.real(3).real, k=1, axis=1),
    call(_knots(s, 5), s.real(5), s.real(3).real, bc_type="natural"),
    call(_knots(s, 5), s.real(5), s.real(3).real, bc_type=([(1, 0.4)], [(2, -0.3)]), nu=1),
    call(_knots(s, 7), s.real(7), s.real(3).real, k=5)])(_of_points(make_interp_spline))  # fmt: skip
contract_with("make_lsq_spline", _of_points(theirs.make_lsq_spline), lambda s: [
    call(_knots(s, 6), s.real(6), s.real(3).real, t=[-1.0] * 3 + [0.2] + [99.0] * 3, k=2),
    call(_knots(s, 6), s.real(6, 2), s.real(3).real, t=[-1.0] * 2 + [0.2] + [99.0] * 2, k=1, w=s.positive(6)),
    ])(_of_points(make_lsq_spline))  # fmt: skip
