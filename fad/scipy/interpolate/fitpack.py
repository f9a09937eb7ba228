"""FITPACK's names for splines of one variable: splrep, splev, splint, UnivariateSpline and those derived from it.

The formulas are those of `BSpline`, `make_interp_spline` and `make_lsq_spline`. How smoothing (``s > 0``) chooses knots
follows the data in steps, and has no derivative: such splines are SciPy's, of plain data, and differentiable in the
points alone.
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
from fad.ops.ufuncs.conversion import as_python_number
from fad.scipy.interpolate.common import Curve, contract_with, double, together
from fad.scipy.interpolate.splines import BSpline, interpolation_knots, make_interp_spline, make_lsq_spline

_EXT = {"extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}
_NO_SMOOTHING = (
    "the knots of a smoothing spline follow the data in steps, so that {} has no derivative in them; pass s=0, or take "
    "LSQUnivariateSpline or make_lsq_spline, whose knots are given"
)


def _check_ext(ext: Any) -> int:
    found = _EXT.get(ext, ext) if isinstance(ext, str) else ext
    if found not in (0, 1, 2, 3):
        raise ValueError(f"Unknown extrapolation mode {ext}.")
    return found


def _evaluate(spline: BSpline, x: Any, nu: int, ext: int) -> Any:
    """Evaluate a spline, or its derivative, with what `ext` says of points beyond its ends."""
    x = double(x)
    start, end = spline.t[spline.k], spline.t[spline.t.shape[0] - spline.k - 1]
    outside = (x < start) | (x > end)
    if ext == 2 and np.any(stop_gradient(outside)):
        raise ValueError("Found x value not in the domain: a point lies beyond the ends of the spline, and ext=2")
    if ext == 0 or (ext == 3 and nu):  # FITPACK's derivatives go on beyond the ends where its values are constant
        return spline(x, nu, True)
    y = spline(np.clip(x, start, end), nu, True)
    return np.where(outside.reshape((*outside.shape, *[1] * (y.ndim - x.ndim))), 0.0, y) if ext == 1 else y


def integrate_within(spline: BSpline, a: Any, b: Any) -> Any:
    """Return the integral of a spline that is zero beyond its ends, as FITPACK takes it to be."""
    start, end = spline.t[spline.k], spline.t[spline.t.shape[0] - spline.k - 1]
    a, b = (np.clip(double(at), start, end) for at in (a, b))
    return spline.integrate(a, b)


def _interpolate(x: Any, y: Any, k: int, start: Any, end: Any) -> BSpline:
    """Return the spline through points whose base interval may reach beyond them."""
    x, y = together(x, y)
    if x.ndim != 1 or x.shape != y.shape or x.shape[0] <= k:
        raise TypeError(f"m > k must hold: {x.shape} places and {y.shape} values are not enough for degree {k}")
    ends = [like(x, double(x[at] if given is None else given)).reshape(1) for at, given in ((0, start), (-1, end))]
    inner = interpolation_knots(x, k)
    return make_interp_spline(x, y, k, np.concatenate([*[ends[0]] * (k + 1), inner, *[ends[1]] * (k + 1)]))


def splrep(
    x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None,
    t: Any = None, full_output: int = 0, per: int = 0, quiet: int = 1,
) -> tuple:  # fmt: skip
    """Return the knots, the coefficients and the degree of the spline through points.

    Differentiable in the points where the spline interpolates (``s=0``, the default without weights) or has given
    knots (``task=-1``); a smoothing spline is SciPy's, of plain data.

    Parameters
    ----------
    x, y : array (n,)
        Increasing places, and values.
    w : array (n,), optional
        Weights, which matter where the spline does not interpolate.
    xb, xe : float, optional
        The ends of the spline, those of `x` if not given.
    k : int
        The degree, from 1 to 5.
    task, s, t, full_output, per, quiet
        As of scipy.interpolate.splrep; ``full_output=0`` and ``per=0`` only.

    Returns
    -------
    tuple
        Knots (n + k + 1,), coefficients of the same length with k + 1 zeros at the end, and `k`.

    Raises
    ------
    NotImplementedError
        for a smoothing spline of traced data, a periodic one, and full output.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import splev, splrep
    >>> x = np.arange(6.0)
    >>> fad.grad(lambda t: splev(t, splrep(x, x**2)))(2.5).round(9)
    np.float64(5.0)
    """
    if per or full_output:
        raise NotImplementedError("splrep takes per=0 and full_output=0 here; CubicSpline has bc_type='periodic'")
    if not 1 <= k <= 5:
        raise TypeError(f"1 <= k={k} <= 5 must hold")
    if task == -1:
        spline = _fit(x, y, t, w, (xb, xe), k)
    elif task == 0 and (s == 0 or (s is None and w is None)):
        spline = _interpolate(x, y, k, xb, xe)
    else:
        if has_tracer((x, y, w, s)):
            raise NotImplementedError(_NO_SMOOTHING.format("splrep"))
        return theirs.splrep(x, y, w, xb, xe, k, task, s, t, full_output, per, quiet)
    return spline.t, np.concatenate([spline.c, 0.0 * spline.t[: k + 1]]), k


def _fit(x: Any, y: Any, t: Any, w: Any, ends: tuple, k: int) -> BSpline:
    """Return the spline of given inner knots that fits points best."""
    x, y, t = together(x, y, t)
    start, end = (like(x, double(x[at] if e is None else e)).reshape(1) for at, e in zip((0, -1), ends, strict=True))
    return make_lsq_spline(x, y, np.concatenate([*[start] * (k + 1), t, *[end] * (k + 1)]), k, w)


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Evaluate a spline of `splrep`, or its derivative.

    Differentiable in the points, the knots and the coefficients.

    Parameters
    ----------
    x : array
        Points.
    tck : tuple or BSpline
        Knots, coefficients and degree; a list of coefficients stands for a curve of several components.
    der : int
        Order of the derivative, up to the degree.
    ext : int
        Beyond the ends: 0 goes on, 1 gives zeros, 2 raises, 3 gives the values at the ends.

    Returns
    -------
    array
        Of the shape of `x`; a list of them for several components.

    Raises
    ------
    ValueError
        if `der` or `ext` are none of these, or a point lies beyond the ends with ``ext=2``.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import splev
    >>> t = np.array([0.0, 0.0, 1.0, 2.0, 2.0])
    >>> fad.grad(lambda c: splev(0.25, (t, c, 1)))(np.zeros(3))
    array([0.75, 0.25, 0.  ])
    """
    if hasattr(tck, "extrapolate"):
        return tck(x, der, True if _check_ext(ext) == 0 else tck.extrapolate)
    t, c, k = tck
    if isinstance(c, (list, tuple)) and np.ndim(c[0]):
        return [splev(x, (t, each, k), der, ext) for each in c]
    if not 0 <= der <= k:
        raise ValueError(f"0<=der={der}<=k={k} must hold")
    return _evaluate(BSpline(t, as_array(c), k), x, der, _check_ext(ext))


def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """Return the integral of a spline of `splrep` from `a` to `b`; it is zero beyond its ends.

    Parameters
    ----------
    a, b : float
        The limits, which may be traced.
    tck : tuple or BSpline
        Knots, coefficients and degree.
    full_output : int
        0 only.

    Returns
    -------
    float

    Raises
    ------
    NotImplementedError
        for full output.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import splint, splrep
    >>> x = np.arange(6.0)
    >>> fad.grad(lambda b: splint(0.0, b, splrep(x, x**2)))(2.0).round(9)
    np.float64(4.0)
    """
    if full_output:
        raise NotImplementedError("splint takes full_output=0 here")
    if hasattr(tck, "extrapolate"):
        return tck.integrate(a, b)
    t, c, k = tck
    return as_python_number(integrate_within(BSpline(t, as_array(c), k), a, b))


class UnivariateSpline(Curve):
    """A spline of one variable, through points (``s=0``) or, of plain data, near them.

    Parameters
    ----------
    x, y : array (n,)
        Increasing places, and values.
    w : array (n,), optional
        Weights of a smoothing spline.
    bbox : pair
        The ends of the spline, where they are not those of `x`.
    k : int
        The degree, from 1 to 5.
    s : float, optional
        How near the spline is to the points; 0 goes through them, and alone takes traced points.
    ext : int or str
        Beyond the ends: 0 ("extrapolate"), 1 ("zeros"), 2 ("raise") or 3 ("const").
    check_finite : bool
        Whether NaN and infinities are looked for.

    Raises
    ------
    NotImplementedError
        if the points are traced and `s` is not 0.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import UnivariateSpline
    >>> x = np.arange(6.0)
    >>> fad.grad(lambda y: UnivariateSpline(x, y, s=0)(2.0))(x**2).round(9) + 0.0
    array([0., 0., 1., 0., 0., 0.])
    """

    _arrays = ("t", "c")

    def __init__(
        self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, ext: Any = 0,
        check_finite: bool = False,
    ):  # fmt: skip
        if s == 0 and not has_tracer((s,)):
            self._set(_interpolate(x, y, k, *bbox), _check_ext(ext))
            return
        if has_tracer((x, y, w, s)):
            raise NotImplementedError(_NO_SMOOTHING.format("UnivariateSpline"))
        t, c, k = theirs.UnivariateSpline(x, y, w, list(bbox), k, s, ext, check_finite)._eval_args
        self._set(BSpline(t, c, k), _check_ext(ext))

    def _set(self, spline: BSpline, ext: int) -> None:
        self.t, self.c, self.k = spline.t, spline.c[: spline.t.shape[0] - spline.k - 1], spline.k
        self.ext = ext

    def _of(self, spline: BSpline) -> UnivariateSpline:
        new = object.__new__(UnivariateSpline)
        new._set(spline, self.ext)
        return new

    def _spline(self) -> BSpline:
        new = object.__new__(BSpline)
        new._set(self.t, self.c, self.k, 0, True)
        return new

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """Evaluate the spline, or its derivative of order `nu`."""
        if not 0 <= nu <= self.k:
            raise ValueError(f"0 <= nu={nu} <= k={self.k} must hold")
        return _evaluate(self._spline(), x, nu, self.ext if ext is None else _check_ext(ext))

    def derivative(self, n: int = 1) -> UnivariateSpline:
        """Return the derivative of order `n`, as a spline."""
        return self._of(self._spline().derivative(n))

    def antiderivative(self, n: int = 1) -> UnivariateSpline:
        """Return the antiderivative that is zero at the first knot, `n` times over, as a spline."""
        spline = self._spline()
        for _ in range(n):
            spline = spline._antiderivative()
        return self._of(spline)

    def derivatives(self, x: Any) -> Any:
        """Return the value and all derivatives up to the degree at a point."""
        return np.stack([self(x, nu) for nu in range(self.k + 1)])

    def integral(self, a: Any, b: Any) -> Any:
        """Return the integral from `a` to `b`, either of which may be traced; the spline is zero beyond its ends."""
        return integrate_within(self._spline(), a, b)

    def get_knots(self) -> Any:
        """Return the knots, each end once."""
        return self.t[self.k : self.t.shape[0] - self.k]

    def get_coeffs(self) -> Any:
        """Return the coefficients."""
        return self.c


class InterpolatedUnivariateSpline(UnivariateSpline):
    """The spline of one variable through points; a tree of knots and coefficients.

    Parameters
    ----------
    x, y : array (n,)
        Increasing places, and values.
    w : array (n,), optional
        Without effect.
    bbox : pair
        The ends of the spline, where they are not those of `x`.
    k : int
        The degree, from 1 to 5.
    ext : int or str
        Beyond the ends: 0 ("extrapolate"), 1 ("zeros"), 2 ("raise") or 3 ("const").
    check_finite : bool
        Whether NaN and infinities are looked for.

    Raises
    ------
    ValueError
        if `x` does not increase.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import InterpolatedUnivariateSpline
    >>> x = np.arange(6.0)
    >>> fad.grad(lambda t: InterpolatedUnivariateSpline(x, x**3)(t))(1.5).round(9)
    np.float64(6.75)
    """

    _arrays = ("t", "c")

    def __init__(
        self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
        check_finite: bool = False,
    ):  # fmt: skip
        self._set(_interpolate(x, y, k, *bbox), _check_ext(ext))


class LSQUnivariateSpline(UnivariateSpline):
    """The spline of one variable with given inner knots that fits points best; a tree of knots and coefficients.

    Parameters
    ----------
    x, y : array (n,)
        Increasing places, and values.
    t : array (m,)
        Inner knots, increasing.
    w : array (n,), optional
        Weights of the points' distances.
    bbox : pair
        The ends of the spline, where they are not those of `x`.
    k : int
        The degree, from 1 to 5.
    ext : int or str
        Beyond the ends: 0 ("extrapolate"), 1 ("zeros"), 2 ("raise") or 3 ("const").
    check_finite : bool
        Whether NaN and infinities are looked for.

    Raises
    ------
    ValueError
        if the knots do not fit the points.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.interpolate import LSQUnivariateSpline
    >>> x = np.arange(8.0)
    >>> fad.grad(lambda t: LSQUnivariateSpline(x, x**3, [3.5])(t))(1.5).round(9)
    np.float64(6.75)
    """

    _arrays = ("t", "c")

    def __init__(
        self, x: Any, y: Any, t: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: Any = 0,
        check_finite: bool = False,
    ):  # fmt: skip
        self._set(_fit(x, y, t, w, tuple(bbox), k), _check_ext(ext))


# --- the contract ---------------------------------------------------------------------------------------------------


_KNOTS = [0.0, 0.0, 0.0, 2.5, 6.0, 6.0, 6.0]


def _places(s: Any, n: int) -> Any:
    x = np.cumsum(s.positive(n)).astype(s.dtype).real
    return x - x[0] - 0.25


def _of(kind: Any) -> Any:
    def evaluate(x, y, at, nu=0, **options):
        return kind(x, y, **options)(at, nu)

    return evaluate


def _integral_of(kind: Any) -> Any:
    return lambda x, y, a, b: kind(x, y).integral(a, b) + 0.0


def _beyond(s: Any) -> Any:
    return s.real(3, low=-1.0, high=9.0).real


contract_with("splrep", lambda x, y, **options: theirs.splrep(x, y, **options)[1], lambda s: [
    call(_places(s, 6), s.real(6)), call(_places(s, 6), s.real(6), k=2),
    call(_places(s, 6), s.real(6), xb=-0.5, xe=99.0),
    call(_places(s, 8), s.real(8), w=s.positive(8), task=-1, t=[0.5])], complex=False)(
    lambda x, y, **options: splrep(x, y, **options)[1])  # fmt: skip
contract_with("splev", lambda x, t, c, k, **o: theirs.splev(x, (t, c, k), **o), lambda s: [
    call(_beyond(s), _KNOTS, s.real(4), 2),
    call(_beyond(s), _KNOTS, s.real(4), 2, der=1),
    *[call(_beyond(s), _KNOTS, s.real(4), 2, ext=e) for e in (1, 3)]], complex=False)(
    lambda x, t, c, k, **o: splev(x, (t, c, k), **o))  # fmt: skip
contract_with("splint", lambda a, b, t, c, k: theirs.splint(a, b, (t, c, k)), lambda s: [
    call(1.0 + 0.1 * s.real(), 4.0 + 0.1 * s.real(), _KNOTS, s.real(4), 2)],
    complex=False)(lambda a, b, t, c, k: splint(a, b, (t, c, k)))  # fmt: skip
contract_with("UnivariateSpline", _of(theirs.UnivariateSpline), lambda s: [
    call(_places(s, 6), s.real(6), _beyond(s), s=0), call(_places(s, 6), s.real(6), _beyond(s), s=0, ext=3),
    call(_places(s, 6), s.real(6), _beyond(s), s=0, k=2, nu=1)], complex=False)(_of(UnivariateSpline))  # fmt: skip
contract_with("InterpolatedUnivariateSpline", _of(theirs.InterpolatedUnivariateSpline), lambda s: [
    call(_places(s, 6), s.real(6), _beyond(s)), call(_places(s, 6), s.real(6), _beyond(s), ext=1, nu=2)],
    complex=False)(_of(InterpolatedUnivariateSpline))  # fmt: skip
contract_with("InterpolatedUnivariateSpline.integral", _integral_of(theirs.InterpolatedUnivariateSpline), lambda s: [
    call(_places(s, 6), s.real(6), 0.1 * s.real(), 0.5 + 0.1 * s.real())], complex=False)(
    _integral_of(InterpolatedUnivariateSpline))  # fmt: skip
contract_with("LSQUnivariateSpline", _of(theirs.LSQUnivariateSpline), lambda s: [
    call(_places(s, 9), s.real(9), _beyond(s), t=[1.0]),
    call(_places(s, 9), s.real(9), _beyond(s), t=[1.0], k=2, w=s.positive(9))], complex=False)(
    _of(LSQUnivariateSpline))  # fmt: skip
