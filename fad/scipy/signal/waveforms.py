"""Waves: sweeps of frequency, saw teeth, squares, Gaussian pulses, differentiable in time and in what shapes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import registrar
from fad.scipy.special.build import number
from fad.scipy.versions import SINCE_1_18

register_function = registrar("signal")
_TAU = 2 * math.pi


def _number_beside(x: Any, t: Any) -> Any:
    """Return a number that leaves the precision of t alone, as Python's do."""
    return x.astype(t.dtype) if type(x) is Tracer and t.dtype.kind == "f" else x


def _log_ratio(v: Any) -> Any:
    """Return ``-log(abs(1 - v)) / v``, and its limit 1 for v = 0, with its derivatives."""
    near = np.abs(v) < 0.01
    small = np.where(near, v, 0.0)
    series: Any = 1.0 / 11
    for k in range(10, 0, -1):
        series = 1.0 / k + small * series
    v = np.where(near, 0.5, v)
    return np.where(near, series, -np.log(np.abs(1.0 - v)) / v)


def _phase(t: Any, f0: Any, t1: Any, f1: Any, method: str, vertex_zero: bool) -> Any:
    beside = lambda x: _number_beside(x, t)
    if method in ("linear", "lin", "li"):
        return _TAU * (beside(f0) * t + beside(0.5 * ((f1 - f0) / t1)) * t * t)
    if method in ("quadratic", "quad", "q"):
        beta = beside((f1 - f0) / t1**2)
        if vertex_zero:
            return _TAU * (beside(f0) * t + beta * t**3 / 3)
        return _TAU * (beside(f1) * t + beta * ((beside(t1) - t) ** 3 - beside(t1**3)) / 3)
    if method in ("logarithmic", "log", "lo"):
        if np.any(number(as_array(f0 * f1 <= 0))):
            raise ValueError("For a logarithmic chirp, f0 and f1 must be nonzero and have the same sign.")
        return beside(_TAU * f0) * t * sc.exprel(t * beside(np.log(f1 / f0) / t1))
    if method in ("hyperbolic", "hyp"):
        if np.any(number(as_array(f0 == 0))) or np.any(number(as_array(f1 == 0))):
            raise ValueError("For a hyperbolic chirp, f0 and f1 must be nonzero.")
        return beside(_TAU * f0) * t * _log_ratio(t * beside((f1 - f0) / (f1 * t1)))
    raise ValueError(
        f"method must be 'linear', 'quadratic', 'logarithmic', or 'hyperbolic', but a value of {method!r} was given."
    )


def _chirp_samples(s):
    # Slow ones: SciPy rounds a phase in the precision of the times.
    ends = lambda: (s.real(low=0.2, high=0.4), s.real(low=1.5, high=2.0), s.real(low=0.5, high=0.7))
    return [
        call(s.real(4, low=0.1, high=1.0), *ends()),
        call(s.real(4, low=0.1, high=1.0), *ends(), "quadratic", 30.0),
        call(s.real(4, low=0.1, high=1.0), *ends(), method="quadratic", vertex_zero=False),
        call(s.real(3, low=0.1, high=1.0), *ends(), method="logarithmic", complex=True),
        call(s.real(4, low=0.1, high=1.0), 0.2, 2.0, 0.6, method="hyperbolic", phi=s.real()),
    ]


@register_function(
    "chirp",
    complex=False,
    rounding="single",
    samples=_chirp_samples,
    raises="ValueError: `f0` or `f1` is zero, or their signs differ.",
)
def chirp(t, f0, t1, f1, method="linear", phi=0, vertex_zero=True, *, complex=False):
    """Return a wave whose frequency goes from `f0` at time 0 to `f1` at time `t1`.

    >>> import numpy as np, fad
    >>> fad.grad(lambda f: fad.scipy.signal.chirp(0.5, f, 1.0, 2.0))(1.0).round(6)
    np.float64(1.666081)
    """
    t = as_array(t)
    f0, t1, f1 = (x.astype(float) if type(x) is Tracer else float(x) for x in (f0, t1, f1))
    phase = _phase(t, f0, t1, f1, method, vertex_zero) + np.deg2rad(phi)
    return np.exp(1j * phase) if complex else np.cos(phase)


def _place(t: Any, part: Any) -> tuple:
    """Return where in a period times are, and a part of it, in one dtype."""
    t, part = as_array(t), as_array(part)
    dtype = np.result_type(t, part)
    return np.mod(t.astype(dtype), _TAU), part.astype(dtype)


def _dtype_of(*args: Any) -> np.dtype:
    """Return the dtype of a wave, which counts that of its arguments since SciPy 1.18."""
    known = [x.dtype for x in args if hasattr(x, "dtype")] if SINCE_1_18 else []
    return np.result_type(*known, np.float16) if any(d.kind == "f" for d in known) else np.dtype(float)


@register_function(
    "sawtooth",
    complex=False,
    rounding="single",
    samples=lambda s: [call(s.real(4)), call(s.real(2, 3), 0.3), call(s.real(3), s.real(3, low=0.6, high=0.9))],
)
def sawtooth(t, width=1):
    """Return a wave of period 2 pi that rises from -1 to 1 in a part `width` of it, and falls in the rest.

    >>> fad.grad(lambda w: fad.scipy.signal.sawtooth(1.0, w))(0.5).round(6)
    np.float64(-1.27324)
    """
    at, w = _place(t, width)
    rises = at < w * _TAU
    up = at / (math.pi * np.where(w > 0, w, 1.0)) - 1
    down = (math.pi * (w + 1) - at) / (math.pi * (1 - np.where(w < 1, w, 0.0)))
    return np.where((w >= 0) & (w <= 1), np.where(rises, up, down), np.nan).astype(_dtype_of(t, width))


@register_function(
    "square", complex=False, flat=True, samples=lambda s: [call(s.real(4)), call(s.real(2, 3), 0.3)]
)
def square(t, duty=0.5):
    """Return a wave of period 2 pi that is 1 in a part `duty` of it, and -1 in the rest; its derivative is 0.

    >>> fad.scipy.signal.square(np.array([1.0, 4.0]))
    array([ 1., -1.])
    """
    at, w = _place(t, duty)
    return np.where((w >= 0) & (w <= 1), np.where(at < w * _TAU, 1.0, -1.0), np.nan).astype(_dtype_of(t, duty))


def _pulse_samples(s):
    return [
        call(s.real(4), s.real(low=0.5, high=1.0)),
        call(s.real(4), 0.7, s.real(low=0.4, high=0.8), s.real(low=-7.0, high=-5.0), retquad=True, retenv=True),
        call(s.real(3), 0.7, retquad=True),
        call(s.real(3), 0.7, retenv=True),
        call("cutoff", s.real(low=0.5, high=1.0), tpr=s.real(low=-70.0, high=-50.0)),
    ]


@register_function(
    "gausspulse",
    complex=False,
    rounding="single",
    samples=_pulse_samples,
    raises="ValueError: A level or a width has the wrong sign.",
)
def gausspulse(t, fc=1000, bw=0.5, bwr=-6, tpr=-60, retquad=False, retenv=False):
    """Return a wave of frequency `fc` under a Gaussian envelope of fractional bandwidth `bw`.

    >>> fad.grad(lambda f: fad.scipy.signal.gausspulse(0.2, f))(1.0).round(6)
    np.float64(-1.174498)
    """
    for value, bad, text in ((fc, fc < 0, "Center frequency must be >=0."), (bw, bw <= 0, "bw must be > 0."),
                             (bwr, bwr >= 0, "Reference level for bandwidth must be < 0 dB")):  # fmt: skip
        if np.any(number(as_array(bad))):
            raise ValueError(f"{text} It is {value}")
    ref = 10.0 ** (bwr / 20.0)
    a = -((math.pi * fc * bw) ** 2) / (4.0 * np.log(ref))
    if isinstance(t, str):
        if t != "cutoff":
            raise ValueError("If `t` is a string, it must be 'cutoff'")
        if np.any(number(as_array(tpr >= 0))):
            raise ValueError("Reference level for time cutoff must be < 0 dB")
        return np.sqrt(-np.log(10.0 ** (tpr / 20.0)) / a)
    t = as_array(t) if isinstance(t, (list, tuple)) else t
    envelope = np.exp(-a * t * t)
    found = [envelope * np.cos(_TAU * fc * t)]
    found += [envelope * np.sin(_TAU * fc * t)] if retquad else []
    found += [envelope] if retenv else []
    return found[0] if len(found) == 1 else tuple(found)
