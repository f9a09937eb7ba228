"""Filters of given critical frequencies: Butterworth's and Chebyshev's, elliptic and Bessel's, notches, windowed sincs.

Critical frequencies, sampling rates and Chebyshev's ripples may be traced; orders and kinds are constants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.signal

from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import registrar
from fad.scipy.signal.forms import (
    bilinear_zpk,
    double,
    lp2bp_zpk,
    lp2bs_zpk,
    lp2hp_zpk,
    lp2lp_zpk,
    make_sections,
    zpk2sos,
)
from fad.scipy.signal.response import check_rate
from fad.scipy.signal.windows import get_window
from fad.scipy.special.build import number

register_function = registrar("signal")

_BANDS = {
    "band": "bandpass", "bandpass": "bandpass", "pass": "bandpass", "bp": "bandpass",
    "bs": "bandstop", "bandstop": "bandstop", "bands": "bandstop", "stop": "bandstop",
    "l": "lowpass", "low": "lowpass", "lowpass": "lowpass", "lp": "lowpass",
    "high": "highpass", "highpass": "highpass", "h": "highpass", "hp": "highpass",
}  # fmt: skip
_NORMS = {"bessel": "phase", "bessel_phase": "phase", "bessel_delay": "delay", "bessel_mag": "mag"}
_KINDS = {
    "butter": "butter", "butterworth": "butter", "cheby1": "cheby1", "chebyshev1": "cheby1", "chebyshevi": "cheby1",
    "cheby2": "cheby2", "chebyshev2": "cheby2", "chebyshevii": "cheby2", "ca": "ellip", "cauer": "ellip",
    "ellip": "ellip", "elliptic": "ellip", **dict.fromkeys(_NORMS, "bessel"),
}  # fmt: skip


def _any(condition: Any) -> bool:
    return bool(np.any(number(as_array(condition))))


def _chebyshev1(n: int, rp: Any) -> tuple:
    if type(rp) is not Tracer or not n:
        return scipy.signal.cheb1ap(n, rp)
    eps = np.sqrt(10.0 ** (0.1 * rp.astype(float)) - 1.0)
    mu = np.arcsinh(1 / eps) / n
    p = -np.sinh(mu + 1j * (math.pi / (2 * n) * np.arange(-n + 1, n, 2)))
    k = np.real(np.prod(-p))
    return np.zeros(0), p, k / np.sqrt(1 + eps * eps) if n % 2 == 0 else k


def _chebyshev2(n: int, rs: Any) -> tuple:
    if type(rs) is not Tracer or not n:
        return scipy.signal.cheb2ap(n, rs)
    mu = np.arcsinh(np.sqrt(10.0 ** (0.1 * rs.astype(float)) - 1.0)) / n
    m = np.arange(-n + 1, n, 2)
    z = 1j / np.sin(math.pi / (2 * n) * m[m != 0])
    p = -1 / np.sinh(mu + 1j * (math.pi / (2 * n) * m))
    return z, p, np.real(np.prod(-p) / np.prod(-z))


def _find_prototype(kind: str, n: int, rp: Any, rs: Any, norm: str) -> tuple:
    """Return the zeros, poles and gain of the analog lowpass filter of cutoff frequency 1."""
    if kind == "butter":
        return scipy.signal.buttap(n)
    if kind == "bessel":
        return scipy.signal.besselap(n, norm)
    if kind == "cheby1":
        if rp is None:
            raise ValueError("passband ripple (rp) must be provided to design a Chebyshev I filter.")
        return _chebyshev1(n, rp)
    if kind == "cheby2":
        if rs is None:
            raise ValueError("stopband attenuation (rs) must be provided to design an Chebyshev II filter.")
        return _chebyshev2(n, rs)
    if rp is None or rs is None:
        raise ValueError("Both rp and rs must be provided to design an elliptic filter.")
    if type(rp) is Tracer or type(rs) is Tracer:
        raise DerivativeError(
            "an elliptic filter has no derivative in its ripples here, for its poles are found by iteration; keep rp "
            "and rs constant, or design it by cheby1 or cheby2, whose ripples may be traced"
        )
    return scipy.signal.ellipap(n, rp, rs)


def _expand(roots: Any) -> Any:
    """Return the coefficients of the polynomial of roots that come in conjugate pairs."""
    a = np.ones_like(roots, shape=(1,))
    for i in range(roots.shape[0]):
        a = np.concatenate([a, a[:1] * 0.0]) - np.concatenate([a[:1] * 0.0, a * roots[i]])
    return np.real(a)


def _shape_band(z: Any, p: Any, k: Any, band: str, warped: Any) -> tuple:
    """Return the analog filter of a band of a lowpass prototype."""
    if band in ("lowpass", "highpass"):
        if warped.size != 1:
            raise ValueError("Must specify a single critical frequency Wn for lowpass or highpass filter")
        wo = warped.reshape(())
        return lp2lp_zpk(z, p, k, wo) if band == "lowpass" else lp2hp_zpk(z, p, k, wo)
    if warped.ndim == 0 or warped.shape[0] < 2:
        raise ValueError("Wn must specify start and stop frequencies for bandpass or bandstop filter")
    width, middle = warped[1] - warped[0], np.sqrt(warped[0] * warped[1])
    return lp2bp_zpk(z, p, k, middle, width) if band == "bandpass" else lp2bs_zpk(z, p, k, middle, width)


_FACTS: dict = {
    "complex": False,
    "raises": "ValueError: A critical frequency is not between 0 and fs/2, or the band takes another number of them.",
}  # fmt: skip


def _frequency(s):
    return s.real(low=0.2, high=0.7)


def _pair(s):
    return np.array([0.25, 0.55], s.dtype) + 0.02 * s.real(2)


@register_function("iirfilter", **_FACTS, rounding="single", samples=lambda s: [
    call(2, _pair(s)), call(3, _frequency(s), btype="low", output="zpk"),
    call(2, _pair(s), rs=s.real(low=20.0, high=40.0), btype="stop", ftype="cheby2", output="zpk"),
])  # fmt: skip
def iirfilter(N, Wn, rp=None, rs=None, btype="band", analog=False, ftype="butter", output="ba", fs=None):
    """Return a recursive filter of order `N` and critical frequencies `Wn`, which may be traced.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import iirfilter
    >>> fad.grad(lambda w: iirfilter(1, w, btype="low")[1][1])(0.5).round(6)
    np.float64(1.570796)
    """
    wn = as_array(Wn).astype(float)
    ftype, btype, output = (v.lower() for v in (ftype, btype, output))
    if fs is not None:
        fs = check_rate(fs)
        if analog:
            raise ValueError("fs cannot be specified for an analog filter")
        wn = wn / (fs / 2)
    if _any(wn <= 0):
        raise ValueError("filter critical frequencies must be greater than 0")
    if wn.size > 1 and _any(wn[0] >= wn[1]):
        raise ValueError("Wn[0] must be less than Wn[1]")
    if btype not in _BANDS:
        raise ValueError(f"'{btype}' is an invalid bandtype for filter.")
    if ftype not in _KINDS:
        raise ValueError(f"'{ftype}' is not a valid basic IIR filter.")
    if output not in ("ba", "zpk", "sos"):
        raise ValueError(f"'{output}' is not a valid output form.")
    for value, text in ((rp, "passband ripple (rp)"), (rs, "stopband attenuation (rs)")):
        if value is not None and _any(value < 0):
            raise ValueError(f"{text} must be positive")
    z, p, k = _find_prototype(_KINDS[ftype], N, rp, rs, _NORMS.get(ftype, "phase"))
    if not analog and _any(wn >= 1):
        raise ValueError("Digital filter critical frequencies must be 0 < Wn < 1, or below fs/2")
    warped = wn if analog else 4.0 * np.tan(0.5 * math.pi * wn)
    z, p, k = _shape_band(z, p, k, _BANDS[btype], warped)
    if not analog:
        z, p, k = bilinear_zpk(z, p, k, 2.0)
    if output == "zpk":
        return z, p, k
    if output == "sos":
        return zpk2sos(z, p, k, analog=True) if analog else make_sections(z, p, k)
    return k * np.atleast_1d(_expand(z)), np.atleast_1d(_expand(p))


@register_function("butter", **_FACTS, samples=lambda s: [
    call(3, _frequency(s)), call(2, _pair(s), "band"), call(4, _frequency(s), "high", output="sos"),
    call(2, _pair(s), "stop", output="zpk"), call(2, 3.0 * _frequency(s), analog=True),
    call(2, 10 * _frequency(s), fs=1.0 * s.real(low=20.0, high=30.0)),
])  # fmt: skip
def butter(N, Wn, btype="low", analog=False, output="ba", fs=None):
    """Return Butterworth's filter of order `N` and critical frequencies `Wn`, which may be traced.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import butter, lfilter
    >>> x = np.array([1.0, 2.0, 0.0, -1.0])
    >>> fad.grad(lambda w: np.sum(lfilter(*butter(2, w), x) ** 2))(0.3).round(6)
    np.float64(8.618282)
    """
    return iirfilter(N, Wn, None, None, btype, analog, "butter", output, fs)


@register_function("cheby1", **_FACTS, rounding="single", samples=lambda s: [
    call(3, s.real(low=0.5, high=2.0), _frequency(s)),
    call(2, s.real(low=0.5, high=2.0), _pair(s), "band", output="sos"),
])  # fmt: skip
def cheby1(N, rp, Wn, btype="low", analog=False, output="ba", fs=None):
    """Return Chebyshev's filter with ripples in the passband of `rp` decibels, which may be traced as `Wn` may.

    >>> fad.scipy.signal.cheby1(1, 1.0, 0.5)[0].round(6)
    array([0.662758, 0.662758])
    """
    return iirfilter(N, Wn, rp, None, btype, analog, "cheby1", output, fs)


@register_function("cheby2", **_FACTS, rounding="single", samples=lambda s: [
    call(3, s.real(low=20.0, high=40.0), _frequency(s)), call(2, 30.0, _pair(s), "stop"),
])  # fmt: skip
def cheby2(N, rs, Wn, btype="low", analog=False, output="ba", fs=None):
    """Return Chebyshev's filter with ripples in the stopband, of `rs` decibels, which may be traced as `Wn` may.

    >>> fad.scipy.signal.cheby2(1, 20.0, 0.5)[0].round(6)
    array([0.091325, 0.091325])
    """
    return iirfilter(N, Wn, None, rs, btype, analog, "cheby2", output, fs)


@register_function("ellip", **_FACTS, constants=(1, 2), samples=lambda s: [
    call(3, 1.0, 30.0, _frequency(s)), call(2, 1.0, 30.0, _pair(s), "band", output="zpk")])  # fmt: skip
def ellip(N, rp, rs, Wn, btype="low", analog=False, output="ba", fs=None):
    """Return the elliptic filter with ripples in both bands, which are constants; `Wn` may be traced.

    >>> fad.scipy.signal.ellip(1, 1.0, 20.0, 0.5)[0].round(6)
    array([0.662758, 0.662758])
    """
    return iirfilter(N, Wn, rp, rs, btype, analog, "ellip", output, fs)


@register_function(
    "bessel", **_FACTS, samples=lambda s: [call(3, _frequency(s)), call(2, _pair(s), "band", norm="delay")]
)
def bessel(N, Wn, btype="low", analog=False, output="ba", norm="phase", fs=None):
    """Return Bessel's filter of order `N` and critical frequencies `Wn`, which may be traced.

    >>> fad.scipy.signal.bessel(1, 0.5)[0].round(6)
    array([0.5, 0.5])
    """
    return iirfilter(N, Wn, None, None, btype, analog, f"bessel_{norm}", output, fs)


# --- one frequency --------------------------------------------------------------------------------------------------


def _resonator(w0: Any, q: Any, fs: Any, notch: bool) -> tuple:
    w, q = 2 * double(w0) / double(check_rate(fs)), double(q)
    if _any(w > 1.0) or _any(w < 0.0):
        raise ValueError("w0 should be such that 0 < w0 < 1")
    gain = 1.0 / (1.0 + np.tan(0.5 * math.pi * w / q))
    middle, one = np.cos(math.pi * w), 1.0 + 0.0 * gain
    b = gain * np.stack([one, -2.0 * middle, one]) if notch else (1.0 - gain) * np.stack([one, 0.0 * one, -one])
    return b, np.stack([one, -2.0 * gain * middle, 2.0 * gain - 1.0])


_OUTSIDE: dict = {
    "complex": False, "rounding": "single", "raises": "ValueError: `w0` is not between 0 and fs/2."
}  # fmt: skip


def _resonator_samples(s):
    return [call(_frequency(s), s.positive()), call(10 * _frequency(s), 3.0, fs=1.0 * s.real(low=20.0, high=30.0))]


@register_function("iirnotch", samples=_resonator_samples, **_OUTSIDE)
def iirnotch(w0, Q, fs=2.0):
    """Return the filter that takes out one frequency, of quality `Q`; both may be traced.

    >>> fad.scipy.signal.iirnotch(0.5, 1.0)[0].round(6)
    array([ 0.5, -0. ,  0.5])
    """
    return _resonator(w0, Q, fs, True)


@register_function("iirpeak", samples=_resonator_samples, **_OUTSIDE)
def iirpeak(w0, Q, fs=2.0):
    """Return the filter that leaves one frequency, of quality `Q`; both may be traced.

    >>> fad.scipy.signal.iirpeak(0.5, 1.0)[0].round(6)
    array([ 0.5,  0. , -0.5])
    """
    return _resonator(w0, Q, fs, False)


# --- windowed sincs -------------------------------------------------------------------------------------------------


def _passes_zero(pass_zero: Any, n: int) -> bool:
    if isinstance(pass_zero, str):
        single = {"lowpass": True, "highpass": True, "bandpass": False, "bandstop": False}.get(pass_zero)
        if single is not None and single != (n == 1):
            raise ValueError(f"cutoff has {n} elements, which is no filter of pass_zero={pass_zero!r}")
        pass_zero = {"lowpass": True, "bandstop": True, "highpass": False, "bandpass": False}.get(pass_zero)
    if pass_zero is not True and pass_zero is not False:
        raise ValueError("pass_zero is True, False, 'bandpass', 'lowpass', 'highpass' or 'bandstop'")
    return pass_zero


@register_function("firwin", complex=False, samples=lambda s: [
    call(5, _frequency(s)), call(7, _pair(s), pass_zero=False), call(5, 10 * _frequency(s), fs=30.0, scale=False),
    call(7, _frequency(s), pass_zero="highpass", window="hann"), call(6, _frequency(s), width=0.3)])  # fmt: skip
def firwin(numtaps, cutoff, *, width=None, window="hamming", pass_zero=True, scale=True, fs=None):
    """Return the windowed sinc of `numtaps` coefficients that passes what the cutoff frequencies, maybe traced, say.

    >>> import numpy as np, fad
    >>> fad.grad(lambda c: fad.scipy.signal.firwin(3, c)[1])(0.5).round(6)
    np.float64(0.167795)
    """
    half = 1.0 if fs is None else 0.5 * check_rate(fs)
    cutoff = np.atleast_1d(as_array(cutoff).astype(float)) / half
    if cutoff.ndim > 1:
        raise ValueError("The cutoff argument must be at most one-dimensional.")
    n = cutoff.shape[0]
    if n == 0:
        raise ValueError("At least one cutoff frequency must be given.")
    if _any(cutoff <= 0) or _any(cutoff >= 1):
        raise ValueError("Invalid cutoff frequency: frequencies must be greater than 0 and less than fs/2.")
    if _any(cutoff[1:] <= cutoff[:-1]):
        raise ValueError("Invalid cutoff frequencies: the frequencies must be strictly increasing.")
    if width is not None:
        window = ("kaiser", scipy.signal.kaiser_beta(scipy.signal.kaiser_atten(numtaps, float(width / half))))
    low = _passes_zero(pass_zero, n)
    high = (n % 2 == 0) == low
    if high and numtaps % 2 == 0:
        text = "A filter with an even number of coefficients must have zero response at the Nyquist frequency."
        raise ValueError(text)
    m = np.arange(numtaps) - 0.5 * (numtaps - 1)
    ends = np.concatenate([cutoff[:1] * 0.0] * low + [cutoff] + [cutoff[:1] * 0.0 + 1.0] * high).reshape((-1, 2))
    h: Any = 0.0
    for j in range(ends.shape[0]):
        left, right = ends[j, 0], ends[j, 1]
        h = h + right * np.sinc(right * m) - left * np.sinc(left * m)
    h = h * get_window(window, numtaps, fftbins=False)
    if not scale:
        return h
    where = 0.0 if low else 1.0 if high and ends.shape[0] == 1 else 0.5 * (ends[0, 0] + ends[0, 1])
    return h / np.sum(h * np.cos(math.pi * m * where))
