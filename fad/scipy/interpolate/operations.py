"""The curves through points as operations of the registry: samples for the contract, kinks, what is not complex."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.interpolate as theirs

from fad.core.primitives.samples import call
from fad.scipy.interpolate.common import contract_with
from fad.scipy.interpolate.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
)

# --- the contract ---------------------------------------------------------------------------------------------------


def _points(s, n):
    x = np.cumsum(s.positive(n)).astype(s.dtype).real
    return x - x[0]


def _curve_samples(s):
    return [
        call(_points(s, 6), s.real(6), s.real(2, 3, low=0.0, high=6.0).real),
        call(_points(s, 5), s.real(2, 5), s.real(3, low=0.0, high=4.0).real, axis=1, nu=1),
        call(_points(s, 3), s.real(3), s.real(2, low=0.0, high=2.0).real),
        call(_points(s, 2), s.real(2), s.real(2, low=0.0, high=0.5).real),
    ]


def _evaluate(kind: Any) -> Any:
    def evaluate(x, y, t, nu=0, **options):
        return kind(x, y, **options)(t, nu)

    return evaluate


def _spline_samples(s):
    return [
        *_curve_samples(s),
        call(_points(s, 6), s.real(6), s.real(3, low=0.0, high=9.0).real, bc_type="natural"),
        call(_points(s, 5), s.real(5), s.real(3, low=0.0, high=9.0).real, bc_type=("clamped", (2, s.real()))),
        call(_points(s, 4), s.real(4, 2), s.real(3).real, bc_type=((1, s.real(2)), "not-a-knot")),
    ]


def _close(kind: Any) -> Any:
    def evaluate(x, y, t):
        return kind(x, np.concatenate([y, y[:1]]), bc_type="periodic")(t)

    return evaluate


def _at_breaks(x: Any, t: Any) -> tuple:
    """Return what is zero on the breaks, and where these stand in other periods: some derivative jumps there."""
    period = x[-1] - x[0]
    gaps = np.subtract.outer(t, x) / period
    return ((gaps - np.round(gaps)) * period,)


_kinks = {"kinks": lambda x, y, t, *_, **__: _at_breaks(x, t)}
_real_samples = {"complex": False, **_kinks}
contract_with("CubicSpline", _evaluate(theirs.CubicSpline), _spline_samples, **_kinks)(_evaluate(CubicSpline))
contract_with("CubicSpline.periodic", _close(theirs.CubicSpline), lambda s: [
    call(_points(s, n), s.real(n - 1), s.real(3, low=-9.0, high=9.0).real) for n in (3, 4, 6)], **_kinks)(
    _close(CubicSpline))  # fmt: skip
contract_with("PchipInterpolator", _evaluate(theirs.PchipInterpolator), _curve_samples, **_real_samples)(
    _evaluate(PchipInterpolator)
)
contract_with(
    "Akima1DInterpolator", _evaluate(theirs.Akima1DInterpolator),
    lambda s: [*_curve_samples(s), call(_points(s, 6), s.real(6), s.real(3, low=1.0, high=6.0), method="makima")],
    **_real_samples,
)(_evaluate(Akima1DInterpolator))  # fmt: skip


def _power_samples(s):
    x = np.cumsum(s.positive(4)).astype(s.dtype).real
    return [
        call(s.real(3, 3), x, s.real(4, low=-1.0, high=8.0).real),
        call(s.real(2, 3, 2), x, s.real(3, low=-1.0, high=8.0).real, nu=1),
        call(s.real(3, 3), x, s.real(3).real, nu=-2),
        call(s.real(3, 3), x, s.real(3, low=-9.0, high=9.0).real, extrapolate="periodic"),
    ]


def _power(kind: Any) -> Any:
    def evaluate(c, x, t, nu=0, extrapolate=None):
        return kind(c, x, extrapolate)(t) if nu == 0 else kind(c, x, extrapolate).derivative(nu)(t)

    return evaluate


def _integral(kind: Any) -> Any:
    def integral(c, x, a, b, extrapolate=None):
        return kind(c, x).integrate(a, b, extrapolate) + 0.0

    return integral


_BREAKS = np.array([0.0, 1.0, 2.5, 3.0])
contract_with("PPoly", _power(theirs.PPoly), _power_samples, kinks=lambda c, x, t, *_, **__: _at_breaks(x, t))(
    _power(PPoly)
)
contract_with("PPoly.integrate", _integral(theirs.PPoly), lambda s: [
    call(s.real(3, 3), _BREAKS, 0.3, 2.7), call(s.real(2, 1, 2), np.array([0.0, 2.0]), -1.0, 3.0),
    call(s.real(3, 3), _BREAKS, -4.3, 7.7, extrapolate="periodic")])(_integral(PPoly))  # fmt: skip
contract_with(
    "CubicHermiteSpline", lambda x, y, d, t: theirs.CubicHermiteSpline(x, y, d)(t),
    lambda s: [call(_points(s, 4), s.real(4), s.real(4), s.real(3).real)],
    kinks=lambda x, y, d, t: _at_breaks(x, t),
)(lambda x, y, d, t: CubicHermiteSpline(x, y, d)(t))  # fmt: skip
