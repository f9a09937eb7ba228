"""Functions of a variable: interpolation, unwrapping, the Bessel function i0."""

from __future__ import annotations

import math

import numpy as np

from fad.backends import is_numpy, like
from fad.core.primitives.archetypes import elementwise
from fad.core.primitives.primitive import answer, public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import outcome
from fad.core.tracing.values import stop_gradient
from fad.core.tracing.views import as_one_array, layout
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.ops.layout.memory_order import lay_out_as
from fad.ops.places.indexing import pick
from fad.ops.places.taking import searchsorted

# --- interp ------------------------------------------------------------------------------------------------------


def _interp_samples(s):
    xp = np.sort(s.real(5))
    return [
        call(s.real(3, 2), xp, s.real(5)),
        call(s.real(4, low=-3.0, high=3.0), xp, s.real(5), left=0.5, right=-1.0),
        call(s.real(4), xp, s.real(5), period=3.5),
        call(s.real(4), xp, s.real(5), period=-3.5),
        call(s.real(), np.array([0.5]), s.real(1)),
    ]


@public(np.interp, samples=_interp_samples, complex=False)
def interp(x, xp, fp, left=None, right=None, period=None):
    """Interpolate linearly between points (xp, fp), all of which may be traced; at a point, the slope to its right.

    >>> fad.grad(lambda y: fad.numpy.interp(1.25, np.array([1.0, 2.0]), y))(np.array([3.0, 5.0]))
    array([0.75, 0.25])
    """
    x, xp, fp = (as_array(v) for v in (x, xp, fp))
    x, xp = x.astype(np.float64), xp.astype(np.float64)
    fp = fp.astype(np.result_type(fp, np.float64))
    if xp.ndim != 1 or fp.shape != xp.shape or not xp.size:
        raise ValueError("interp needs vectors xp and fp of one length, not zero")
    if period is not None:
        if outcome(as_array(period) == 0):
            raise ValueError("period must be a non-zero value")
        x, xp, fp = _periodic(x, xp, fp, abs(period))
        left = right = None
    n = xp.shape[0]
    at, points = stop_gradient(x), stop_gradient(xp)
    behind = np.clip(searchsorted(points, at, "right"), 1, n - 1)  # how many points are not to the right of x
    behind = np.where(at >= points[-1], n, np.where(at < points[0], 0, behind))
    first, second = np.clip(behind - 1, 0, None), np.clip(behind, None, n - 1)  # outside they are one and the same
    start, end, value, last = pick(xp, first), pick(xp, second), pick(fp, first), pick(fp, second)
    with np.errstate(invalid="ignore"):
        width = end - start
        slope = (last - value) / np.where(width == 0, np.ones_like(width), width)
        y = value + (x - start) * slope
        lost = np.isnan(y)  # at an infinite point, or beside one
        if not is_numpy(lost) or lost.any():
            other = last + (x - end) * slope
            known = (x == start) | (first == second) | (np.isnan(other) & (value == last))
            y = np.where(lost, np.where(known, value, other), y)
            y = np.where(np.isnan(x), np.nan, y) if n > 1 else y  # NumPy does not compare with one point alone
    y = y if left is None else np.where(at < points[0], left, y)
    y = y if right is None else np.where(at > points[-1], right, y)
    return y if y.ndim else y[()]


def _periodic(x, xp, fp, period):
    x, xp = x % period, xp % period
    order = np.argsort(outcome(xp))
    xp, fp = pick(xp, order), pick(fp, order)
    return x, np.concatenate((xp[-1:] - period, xp, xp[:1] + period)), np.concatenate((fp[-1:], fp, fp[:1]))


@public(
    np.unwrap,
    samples=lambda s: [call(s.real(3, 6) * 6), call(s.real(6, 2) * 4, axis=0, period=5.0), call(s.real(5) * 6, 4.0)],
    complex=False,
)
def unwrap(p, discont=None, axis=-1, *, period=2 * math.pi):
    """Add multiples of the period where neighbours differ by more than `discont`, half a period; the slope is 1.

    >>> fad.numpy.unwrap(np.array([0.0, 6.0, 12.0]))
    array([ 0.        , -0.28318531, -0.56637061])
    """
    p = as_array(p)
    axis = normalize_axis(axis, p.ndim)
    plain = np.moveaxis(stop_gradient(p), axis, -1)
    discont = period / 2 if discont is None else discont
    step = np.diff(plain, axis=-1)
    dtype = np.result_type(step, period)
    half, odd = divmod(period, 2) if dtype.kind in "iu" else (period / 2, 0)
    low = -half
    wrapped = np.mod(step - low, period) + low
    if not odd:
        wrapped = np.where((wrapped == low) & (step > 0), half, wrapped)
    change = np.cumsum(np.where(np.abs(step) < discont, 0, wrapped - step), axis=-1)
    moved = np.moveaxis(p, axis, -1)
    moved = np.concatenate((moved[..., :1], moved[..., 1:] + change), axis=-1)
    return lay_out_as(np.moveaxis(moved, -1, axis).astype(dtype), np.empty_like(layout(p)))


# --- i0 ----------------------------------------------------------------------------------------------------------

# I_1(x) = 2/pi times the integral of sinh(x cos t) cos t over [0, pi/2] (Abramowitz & Stegun 9.6.18). The integrand is
# periodic and even, so the midpoint rule converges geometrically; all its terms have one sign, so nothing cancels.
_NODES = 64
_COSINES = np.cos((np.arange(_NODES) + 0.5) * (math.pi / (2 * _NODES)))


def _i1(x):
    cosines = like(x, _COSINES.astype(x.dtype))
    return np.sum(np.sinh(x[..., None] * cosines) * cosines, axis=-1) * (1.0 / _NODES)


i0 = elementwise("i0", lambda _z, x: _i1(x), domain=(-3.0, 3.0))
answer(np.i0, lambda x: as_one_array(i0(x)))
