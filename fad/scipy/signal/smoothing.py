"""Smoothing and resampling: detrend, hilbert, savgol_filter, upfirdn, resample, resample_poly, decimate."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.signal

from fad.backends import host, like
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.scipy.kernels import convolve_p
from fad.scipy.ndimage.filters import convolve1d
from fad.scipy.signal.convolution import register_function
from fad.scipy.signal.filters import sosfilt, sosfiltfilt
from fad.scipy.signal.windows import get_window


def _floating(x: Any) -> Any:
    x = as_array(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def _constant(x: Any, numbers: Any) -> Any:
    """Return constants in the precision of an array, where it lives."""
    numbers = np.asarray(numbers)
    precision = x.real.dtype if numbers.dtype.kind != "c" else np.result_type(x.real.dtype, np.complex64)
    return like(x, numbers.astype(precision))


# --- trends ---------------------------------------------------------------------------------------------------------


@register_function("detrend", constants=("bp",), samples=lambda s: [
    call(s.real(6)), call(s.real(5, 3), axis=0, type="constant"), call(s.real(2, 7), bp=3),
    call(s.real(8), bp=np.array([3, 5]))])  # fmt: skip
def detrend(data, axis=-1, type="linear", bp=0, overwrite_data=False):
    """Subtract the mean, or the straight line fitted to each piece between the break points `bp`.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import detrend
    >>> fad.grad(lambda x: detrend(x, type="constant")[0])(np.array([1.0, 2.0]))
    array([ 0.5, -0.5])
    """
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    x = as_array(data)
    if type in ("constant", "c"):
        return x - np.mean(x, axis, keepdims=True)
    axis = normalize_axis(axis, x.ndim)
    x = np.moveaxis(_floating(x), axis, -1)
    n = x.shape[-1]
    ends = sorted({0, n, *np.ravel(host(bp)).tolist()})
    if ends[-1] > n:
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    pieces = [_without_line(x[..., i:j]) for i, j in itertools.pairwise(ends)]
    return np.moveaxis(np.concatenate(pieces, axis=-1), -1, axis)


def _without_line(x: Any) -> Any:
    n = x.shape[-1]
    ramp = np.linspace(1.0 / n, 1.0, n)
    line = np.stack([ramp, ramp**0.0], axis=1)[:, -n:]  # through a single sample goes a constant
    q = _constant(x, np.linalg.qr(line)[0])
    return x - (x @ q) @ q.T


# --- the analytic signal --------------------------------------------------------------------------------------------


def _one_sided(n: int) -> Any:
    """Return what the frequencies of an analytic signal of length n are multiplied by."""
    places = np.arange(n)
    return np.where(places == 0, 1.0, np.where(2 * places < n, 2.0, np.where(2 * places == n, 1.0, 0.0)))


@register_function("hilbert", order="C", complex=False, samples=lambda s: [
    call(s.real(6)), call(s.real(2, 5)), call(s.real(5, 2), N=8, axis=0), call(s.real(6), 3)])  # fmt: skip
def hilbert(x, N=None, axis=-1):
    """Return the analytic signal: without negative frequencies, and with `x` as its real part.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import hilbert
    >>> fad.grad(lambda x: np.sum(np.abs(hilbert(x)) ** 2))(np.array([1.0, -1.0, 1.0, -1.0])).round(9)
    array([ 2., -2.,  2., -2.])
    """
    x = as_array(x)
    if x.dtype.kind == "c":
        raise ValueError("x must be real.")
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis] if N is None else N
    if n <= 0:
        raise ValueError("N must be positive.")
    spectrum = np.fft.fft(np.moveaxis(x, axis, -1), n)
    return np.moveaxis(np.fft.ifft(spectrum * _constant(spectrum, _one_sided(n))), -1, axis)


# --- Savitzky and Golay ---------------------------------------------------------------------------------------------


def _savgol_samples(s):
    return [call(s.real(9), 5, 2), call(s.real(2, 8), 3, 1, deriv=1, delta=0.5), call(s.real(7, 2), 4, 2, axis=0)] + [
        call(s.real(8), 5, 3, mode=mode, cval=0.5) for mode in ("mirror", "constant", "nearest", "wrap")]  # fmt: skip


@register_function("savgol_filter", order="C", samples=_savgol_samples, complex=False)
def savgol_filter(x, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp", cval=0.0):
    """Smooth, or differentiate, by polynomials fitted to windows of samples; the settings are constants.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import savgol_filter
    >>> fad.grad(lambda x: savgol_filter(x, 3, 1)[1])(np.array([1.0, 5.0, 0.0])).round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    if mode not in ("mirror", "constant", "nearest", "interp", "wrap"):
        raise ValueError("mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp'.")
    x = as_array(x)
    x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
    weights = scipy.signal.savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta)
    if mode != "interp":
        return convolve1d(x, like(x, weights), axis, None, mode, cval)
    axis = normalize_axis(axis, x.ndim)
    n, half = x.shape[axis], window_length // 2
    if window_length > n:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    x = np.moveaxis(x, axis, -1)
    middle = convolve1d(x, like(x, weights), -1, None, "constant")[..., half : n - half]
    fit = _constant(x, _edge_fit(window_length, polyorder, deriv, delta))
    left = x[..., :window_length] @ fit[:, :half]
    right = x[..., n - window_length :] @ fit[:, window_length - half :]
    return np.moveaxis(np.concatenate([left, middle, right], axis=-1), -1, axis)


def _edge_fit(length: int, polyorder: int, deriv: int, delta: float) -> Any:
    """Return the matrix that maps a window to its fitted polynomial's derivative at each of its places."""
    places = np.arange(length, dtype=float)
    powers = np.vander(places, polyorder + 1, increasing=True)
    fitted = np.linalg.pinv(powers)
    slopes = np.zeros((length, polyorder + 1), float)
    for k in range(deriv, polyorder + 1):
        slopes[:, k] = math.perm(k, deriv) * places ** (k - deriv)
    return (slopes @ fitted).T / delta**deriv


# --- up and down ----------------------------------------------------------------------------------------------------

_PADS: dict[str, Any] = {
    "symmetric": "symmetric", "reflect": "reflect", "edge": "edge", "wrap": "wrap", "antireflect": "reflect",
}  # fmt: skip


def _beyond(x: Any, n: int, mode: str, cval: Any) -> Any:
    """Extend the last axis by n samples on each side, in a mode of `upfirdn`."""
    widths = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if n == 0 or mode == "constant":
        return np.pad(x, widths, constant_values=cval)
    if mode in _PADS:
        more: dict[str, Any] = {"reflect_type": "odd"} if mode == "antireflect" else {}
        return np.pad(x, widths, _PADS[mode], **more)
    if mode == "antisymmetric":
        turns = (np.arange(-n, x.shape[-1] + n) // x.shape[-1]) % 2
        return np.pad(x, widths, "symmetric") * _constant(x, 1 - 2 * turns)
    if mode not in ("smooth", "line"):
        raise ValueError(f"Unknown mode: {mode}")
    first, last = x[..., :1], x[..., -1:]
    steps = _constant(x, np.arange(1, n + 1))
    if mode == "line":
        slopes = ((last - first) / float(max(x.shape[-1] - 1, 1)),) * 2
    else:
        slopes = (x[..., 1:2] - first, last - x[..., -2:-1])
    return np.concatenate([first - slopes[0] * steps[::-1], x, last + slopes[1] * steps], axis=-1)


@register_function(
    "upfirdn", order="C",
    samples=lambda s: [
        call(s.real(3), s.real(5)),
        call(s.real(4), s.real(2, 5), up=2, down=3),
        call(s.real(5), s.real(4, 2), 3, 2, axis=0),
        *[
            call(s.real(5), s.real(6), 2, 1, mode=m)
            for m in ("symmetric", "reflect", "edge", "wrap", "antireflect", "antisymmetric", "smooth", "line")
        ],
        call(s.real(3), s.real(4), 2, 1, mode="constant", cval=0.5),
    ],
)
def upfirdn(h, x, up=1, down=1, axis=-1, mode="constant", cval=0):
    """Put ``up - 1`` zeros between samples, convolve with `h`, and keep every `down`-th sample.

    >>> fad.scipy.signal.upfirdn(np.array([1.0, 1.0]), np.array([1.0, 2.0, 3.0]), up=2)
    array([1., 1., 2., 2., 3., 3.])
    >>> fad.grad(lambda h: fad.scipy.signal.upfirdn(h, np.array([1.0, 2.0, 3.0])).sum())(np.array([1.0, 1.0]))
    array([6., 6.])
    """
    h, x = as_array(h), as_array(x)
    if h.ndim != 1 or not h.shape[0]:
        raise ValueError("h must be 1-D with non-zero length")
    if up < 1 or down < 1:
        raise ValueError("Both up and down must be >= 1")
    dtype = np.result_type(h.dtype, x.dtype, np.float32)
    axis = normalize_axis(axis, x.ndim)
    x = np.moveaxis(x.astype(dtype), axis, -1)
    n = (x.shape[-1] - 1) * up + h.shape[0]
    more = 0 if mode == "constant" and cval == 0 else -(-(h.shape[0] - 1) // up)
    x = _beyond(x, more, mode, cval)
    wide = np.pad(x[..., None], [(0, 0)] * x.ndim + [(0, up - 1)]).reshape(*x.shape[:-1], -1)
    wide = wide[..., : wide.shape[-1] - up + 1]
    y = bind(convolve_p, wide, h.astype(dtype), rank=1, mode="full", method="direct")
    return np.moveaxis(y[..., more * up : more * up + n : down], -1, axis)


def _resample_samples(s):
    return [
        call(s.real(6), 4), call(s.real(6), 9), call(s.real(5, 2), 8), call(s.real(2, 7), 4, axis=1),
        call(s.real(8).real, 6, window="hamming"), call(s.real(6), 8, window=s.positive(6).real), call(s.real(6), 6),
    ]  # fmt: skip


@register_function("resample", samples=_resample_samples, constants=("t", "window"))
def resample(x, num, t=None, axis=0, window=None, domain="time"):
    """Resample to `num` samples along an axis by way of the Fourier transform, as one period of a periodic signal.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import resample
    >>> fad.grad(lambda x: resample(x, 2)[0])(np.array([1.0, 2.0, 3.0, 4.0])).round(6)
    array([ 0.75,  0.25, -0.25,  0.25])
    """
    if domain not in ("time", "freq"):
        raise ValueError(f"Parameter domain={domain!r} not in ('time', 'freq')!")
    x = _floating(x)
    axis = normalize_axis(axis, x.ndim)
    x = np.moveaxis(x, axis, -1)
    n = x.shape[-1]
    real = domain == "time" and x.dtype.kind != "c"
    spectrum = np.fft.rfft(x) if real else np.fft.fft(x) if domain == "time" else x
    if window is not None:
        weights = _window(window, n, real)  # a real signal keeps its precision, as SciPy multiplies in place there
        spectrum = spectrum * (_constant(spectrum, weights) if real else like(spectrum, weights))
    y = _of_length(spectrum * (num / n), n, num, real)
    y = np.moveaxis(np.fft.irfft(y, num) if real else np.fft.ifft(y, num), -1, axis)
    if t is None:
        return y
    return y, t[0] + (t[1] - t[0]) * (n / num) * like(x, np.arange(num))


def _window(window: Any, n: int, real: bool) -> Any:
    if callable(window):
        weights = window(np.fft.fftfreq(n))
    elif hasattr(window, "shape"):
        weights = host(window)
        if weights.shape != (n,):
            raise ValueError(f"window.shape={weights.shape} != ({n},): one weight is needed for each frequency")
    else:
        weights = np.fft.fftshift(get_window(window, n))
    if not real:
        return weights
    half = n // 2 + 1
    return np.concatenate([weights[:1], (weights[1:half] + weights[::-1][: half - 1]) / 2.0])


def _of_length(spectrum: Any, n: int, num: int, real: bool) -> Any:
    """Cut a spectrum of n frequencies to `num`, or fill it up; an unpaired one in the middle is split or joined."""
    kept = min(n, num)
    half = kept // 2 + 1
    positive = spectrum[..., :half]
    negative = spectrum[..., spectrum.shape[-1] - max(kept - half, 0) :]
    if kept % 2 == 0 and num != n:
        middle = positive[..., -1:]
        if real:
            middle = middle * (2.0 if num < n else 0.5)
        elif num < n:
            middle = middle + spectrum[..., n - kept // 2 : n - kept // 2 + 1]
        else:
            middle = middle * 0.5
            negative = np.concatenate([middle, negative], axis=-1)
        positive = np.concatenate([positive[..., :-1], middle], axis=-1)
    if real:
        return positive
    gap = num - positive.shape[-1] - negative.shape[-1]
    return np.concatenate([positive, np.zeros_like(positive, shape=(*positive.shape[:-1], gap)), negative], axis=-1)


_BACKGROUND: dict[str, Callable] = {"mean": np.mean, "median": np.median, "minimum": np.min, "maximum": np.max}


@register_function("resample_poly", constants=("window",), samples=lambda s: [
    call(s.real(6), 3, 2), call(s.real(5, 2), 2, 3), call(s.real(7), 2, 1, padtype="mean"),
    call(s.real(7), 1, 2, padtype="line"), call(s.real(2, 5), 2, 1, axis=1, window=np.array([0.2, 0.5, 0.2], s.dtype)),
    call(s.real(4), 2, 2)])  # fmt: skip
def resample_poly(x, up, down, axis=0, window=("kaiser", 5.0), padtype="constant", cval=None):
    """Resample by the factor ``up / down`` through a low-pass filter, which is a constant.

    >>> fad.scipy.signal.resample_poly(np.array([1.0, 1.0, 1.0]), 2, 1).shape
    (6,)
    """
    if up != int(up) or down != int(down):
        raise ValueError("up and down must be integers")
    if up < 1 or down < 1:
        raise ValueError("up and down must be >= 1")
    if cval is not None and padtype != "constant":
        raise ValueError(f"cval has no effect when padtype is {padtype!r}")
    x = as_array(x)
    axis = normalize_axis(axis, x.ndim)
    common = math.gcd(int(up), int(down))
    up, down = int(up) // common, int(down) // common
    if up == down == 1:
        return x + 0.0
    wanted = -(-x.shape[axis] * up // down)
    h, half = _low_pass(x, window, up, down)
    before = down - half % down
    skipped = (half + before) // down
    after = max(0, (wanted + skipped - 1) * down + 1 - (x.shape[axis] - 1) * up - h.shape[0] - before)
    h = like(x, np.pad(h * up, (before, after)))
    ground = _BACKGROUND[padtype](x, axis=axis, keepdims=True) if padtype in _BACKGROUND else None
    source, mode = (x, padtype) if ground is None else (x - ground, "constant")
    y = np.moveaxis(upfirdn(h, source, up, down, axis, mode, 0 if cval is None else cval), axis, -1)
    y = np.moveaxis(y[..., skipped : skipped + wanted], -1, axis)
    return y if ground is None else y + ground


def _low_pass(x: Any, window: Any, up: int, down: int) -> tuple:
    if isinstance(window, list) or hasattr(window, "shape"):
        h = np.asarray(host(window))
        if h.ndim > 1:
            raise ValueError("window must be 1-D")
        return h, (h.size - 1) // 2
    half = 10 * max(up, down)
    h = scipy.signal.firwin(2 * half + 1, 1.0 / max(up, down), window=window)
    return h.astype(x.dtype) if x.dtype.kind in "fc" else h, half


@register_function(
    "decimate",
    samples=lambda s: [
        call(s.real(30), 2),
        call(s.real(2, 30), 3, ftype="fir"),
        call(s.real(8, 2), 2, n=4, ftype="fir", axis=0, zero_phase=False),
        call(s.real(12), 2, n=2, zero_phase=False),
    ],
)
def decimate(x, q, n=None, ftype="iir", axis=-1, zero_phase=True):
    """Keep every q-th sample of a signal that a low-pass filter has taken the higher frequencies from.

    >>> fad.scipy.signal.decimate(np.ones(40), 2).round(3)[:3]
    array([0.989, 0.989, 0.989])
    """
    x = _floating(x)
    q = operator.index(q)
    axis = normalize_axis(axis, x.ndim)
    every = (slice(None),) * axis + (slice(None, None, q),)
    if ftype == "iir":
        sos = scipy.signal.cheby1(8 if n is None else operator.index(n), 0.05, 0.8 / q, output="sos")
        sos = like(x, sos.astype(x.real.dtype))
        return (sosfiltfilt if zero_phase else sosfilt)(sos, x, axis)[every]
    if ftype != "fir":
        raise ValueError("decimate of traced values takes ftype='iir' or 'fir'; run lfilter or sosfilt for another")
    b = scipy.signal.firwin((20 * q if n is None else operator.index(n)) + 1, 1.0 / q, window="hamming")
    b = b.astype(x.real.dtype)
    if zero_phase:
        return resample_poly(x, 1, q, axis, b)
    wanted = -(-x.shape[axis] // q)
    return upfirdn(like(x, b), x, 1, q, axis)[(slice(None),) * axis + (slice(0, wanted),)]
