"""Spectra of pieces of a signal: stft, istft, spectrogram, periodogram, welch, csd, coherence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.scipy.signal.convolution import register_function
from fad.scipy.signal.filters import extend
from fad.scipy.signal.smoothing import detrend as _detrend
from fad.scipy.signal.windows import get_window


def _plan(window: Any, nperseg: Any, noverlap: Any, nfft: Any, n: int) -> tuple:
    """Return the window, and the lengths of a segment, of its overlap with the next, and of its transform."""
    if nperseg is not None and int(nperseg) < 1:
        raise ValueError("nperseg must be a positive integer")
    if isinstance(window, (str, tuple)):
        nperseg = 256 if nperseg is None else int(nperseg)
        if nperseg > n:
            warnings.warn(f"nperseg = {nperseg} is greater than input length = {n}, using nperseg = {n}", stacklevel=4)
            nperseg = n
        window = get_window(window, nperseg)
    else:
        window = as_array(window)
        if window.ndim != 1:
            raise ValueError("window must be 1-D")
        if n < window.shape[0]:
            raise ValueError("window is longer than input signal")
        if nperseg is not None and int(nperseg) != window.shape[0]:
            raise ValueError("value specified for nperseg is different from length of window")
        nperseg = window.shape[0]
    nfft = nperseg if nfft is None else int(nfft)
    noverlap = nperseg // 2 if noverlap is None else int(noverlap)
    if nfft < nperseg:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    if noverlap >= nperseg:
        raise ValueError("noverlap must be less than nperseg.")
    return window, nperseg, noverlap, nfft


def _segments(x: Any, length: int, step: int) -> Any:
    """Return windows of the last axis as rows."""
    starts = np.arange(0, x.shape[-1] - length + 1, step)
    return x[..., starts[:, None] + np.arange(length)]


def _spectra(x: Any, window: Any, plan: Sequence, detrend: Any, onesided: bool) -> Any:
    length, overlap, nfft = plan
    rows = _segments(x, length, length - overlap)
    if detrend:
        rows = detrend(rows) if callable(detrend) else _detrend(rows, type=detrend)
    return (np.fft.rfft if onesided else np.fft.fft)(rows * window, nfft)


def _in_dtype(window: Any, x: Any, dtype: np.dtype) -> Any:
    """Return a window where the signal lives, in the precision of its spectrum."""
    wanted = np.float32 if dtype == np.complex64 and window.dtype.kind != "c" else window.dtype
    return (window if type(window) is Tracer else like(x, window)).astype(wanted)


def _scale(window: Any, fs: Any, scaling: str) -> Any:
    if scaling == "density":
        return 1.0 / (fs * np.sum(window * window))
    if scaling == "spectrum":
        return 1.0 / np.sum(window) ** 2
    raise ValueError(f"Unknown scaling: {scaling!r}")


def _double(power: Any, nfft: int) -> Any:
    """Count the frequencies twice that stand for two."""
    places = np.arange(power.shape[-1])
    weights = np.where((places == 0) | (2 * places == nfft), 1.0, 2.0)
    return power * like(power, weights.astype(power.real.dtype))


def _frequencies(x: Any, nfft: int, fs: Any, onesided: bool) -> Any:
    return like(x, np.fft.rfftfreq(nfft, 1.0) if onesided else np.fft.fftfreq(nfft, 1.0)) * fs


def _take_root(scale: Any) -> Any:
    return np.sqrt(scale) if hasattr(scale, "dtype") else math.sqrt(scale)


def _like_scipy(x: Any, axis: int) -> Any:
    """Move the frequencies from the last axis to where the signal's axis was, with the segments behind all."""
    return np.moveaxis(x, -1, axis - 1 if axis < 0 else axis)


def _short_time(x, fs, window, nperseg, noverlap, nfft, detrend, onesided, boundary, padded, axis, scaling):
    if boundary not in ("even", "odd", "constant", "zeros", None):
        raise ValueError(f"boundary must be 'even', 'odd', 'constant', 'zeros' or None, not {boundary!r}")
    x = as_array(x)
    dtype = np.result_type(x.dtype, np.complex64)
    x = np.moveaxis(x, axis, -1)
    window, *plan = _plan(window, nperseg, noverlap, nfft, x.shape[-1])
    length, overlap, nfft = plan
    x = extend(x, length // 2, boundary)
    if padded:
        more = (-(x.shape[-1] - length) % (length - overlap)) % length
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, more)])
    if onesided and x.dtype.kind == "c":
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=4)
        onesided = False
    window = _in_dtype(window, x, dtype)
    y = _spectra(x, window, plan, detrend, onesided) * _take_root(_scale(window, fs, scaling))
    times = like(x, np.arange(length / 2, x.shape[-1] - length / 2 + 1, length - overlap)) / fs
    if boundary is not None:
        times = times - (length / 2) / fs
    return _frequencies(x, nfft, fs, onesided), times, _like_scipy(y.astype(dtype), axis)


@register_function("stft", constants=("fs", "window"), samples=lambda s: [
    call(s.real(12).real, nperseg=4), call(s.real(10, 2).real, fs=2.0, nperseg=5, noverlap=2, axis=0, scaling="psd"),
    call(s.real(11), nperseg=4, return_onesided=False, boundary="odd", detrend="constant"),
    call(s.real(12).real, nperseg=4, nfft=7, boundary=None, padded=False)])  # fmt: skip
def stft(
    x, fs=1.0, window="hann", nperseg=256, noverlap=None, nfft=None, detrend=False, return_onesided=True,
    boundary="zeros", padded=True, axis=-1, scaling="spectrum",
):  # fmt: skip
    """Return frequencies, times and the short-time Fourier transform of a signal.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import stft
    >>> x = np.arange(8.0)
    >>> fad.grad(lambda x: np.sum(np.abs(stft(x, nperseg=4, window="boxcar", boundary=None)[2]) ** 2))(x)[4]
    np.float64(4.0)
    """
    if scaling not in ("spectrum", "psd"):
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    how = "density" if scaling == "psd" else scaling
    plan = (window, nperseg, noverlap, nfft)
    return _short_time(x, fs, *plan, detrend, return_onesided, boundary, padded, int(axis), how)


@register_function("spectrogram", constants=("fs", "window"), samples=lambda s: [
    call(s.real(12).real, nperseg=4), call(s.real(10, 2).real, nperseg=5, axis=0, mode="complex", scaling="spectrum"),
    call(s.real(12).real, nperseg=4, mode="magnitude"), call(s.real(9), nperseg=3, return_onesided=False)])  # fmt: skip
def spectrogram(
    x, fs=1.0, window=("tukey", 0.25), nperseg=None, noverlap=None, nfft=None, detrend="constant",
    return_onesided=True, scaling="density", axis=-1, mode="psd",
):  # fmt: skip
    """Return frequencies, times and the power (or the complex value, magnitude, angle, phase) in each segment.

    >>> fad.scipy.signal.spectrogram(np.arange(16.0) % 2, nperseg=8)[2].shape
    (5, 2)
    """
    if mode not in ("psd", "complex", "magnitude", "angle", "phase"):
        raise ValueError(f"mode must be 'psd', 'complex', 'magnitude', 'angle' or 'phase', not {mode!r}")
    x, axis = as_array(x), int(axis)
    window, nperseg, _, _ = _plan(window, nperseg, 0, None, x.shape[axis])
    noverlap = nperseg // 8 if noverlap is None else noverlap
    freqs, times, y = _short_time(
        x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, None, False, axis, scaling
    )
    along = axis - 1 if axis < 0 else axis
    if mode == "psd":
        power = (np.conjugate(y) * y).real
        if return_onesided and x.dtype.kind != "c":
            power = np.moveaxis(_double(np.moveaxis(power, along, -1), nfft or nperseg), -1, along)
        return freqs, times, power
    if mode == "complex":
        return freqs, times, y
    if mode == "magnitude":
        return freqs, times, np.abs(y)
    angles = np.angle(y)
    return freqs, times, np.unwrap(angles, axis=along) if mode == "phase" else angles


# --- power ----------------------------------------------------------------------------------------------------------


def _longer(x: Any, n: int) -> Any:
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])]) if x.shape[-1] < n else x


def _power(x, y, fs, window, nperseg, noverlap, nfft, detrend, onesided, scaling, axis, average):
    x, same = as_array(x), y is None
    y = x if same else as_array(y)
    dtype = np.result_type(x.dtype, y.dtype, np.complex64)
    x, y = (np.moveaxis(v, axis, -1) for v in (x, y))
    n = max(x.shape[-1], y.shape[-1])
    x, y = _longer(x, n), _longer(y, n)
    window, *plan = _plan(window, nperseg, noverlap, nfft, n)
    onesided = onesided and x.dtype.kind != "c" and y.dtype.kind != "c"
    window = _in_dtype(window, x, dtype)
    first = _spectra(x, window, plan, detrend, onesided)
    second = first if same else _spectra(y, window, plan, detrend, onesided)
    power = np.conjugate(first) * second * _scale(window, fs, scaling)
    power = _double(power, plan[2]) if onesided else power
    power = power.real if same else power
    power = _average(power, average)
    power = power.astype(np.finfo(dtype).dtype if same else dtype)
    return _frequencies(x, plan[2], fs, onesided), np.moveaxis(power, -1, axis)


def _average(power: Any, average: str) -> Any:
    """Return the mean over segments, or the median without its bias."""
    if average == "mean":
        return np.mean(power, axis=-2)
    if average != "median":
        raise ValueError(f"Parameter average={average!r} must be 'median' or 'mean'!")
    count = power.shape[-2]
    if count == 1:
        return power[..., 0, :]
    even = 2 * np.arange(1.0, (count - 1) // 2 + 1)
    bias = 1.0 + float(np.sum(1.0 / (even + 1) - 1.0 / even))
    if power.dtype.kind == "c":
        return (np.median(power.real, axis=-2) + 1j * np.median(power.imag, axis=-2)) / bias
    return np.median(power, axis=-2) / bias


@register_function(
    "welch",
    constants=("fs", "window"),
    samples=lambda s: [
        call(s.real(12).real, nperseg=4),
        call(s.real(11, 2).real, fs=2.0, nperseg=5, axis=0, scaling="spectrum", detrend="linear"),
        call(s.real(12), nperseg=4, return_onesided=False),
        call(s.real(13).real, nperseg=4, average="median", detrend=False),
    ],
)
def welch(
    x, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant", return_onesided=True,
    scaling="density", axis=-1, average="mean",
):  # fmt: skip
    """Return frequencies and the power spectral density of a signal, averaged over overlapping segments.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import welch
    >>> fad.grad(lambda x: welch(x, nperseg=4, window="boxcar", detrend=False)[1][0])(np.ones(4))
    array([2., 2., 2., 2.])
    """
    return _power(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, int(axis), average)


@register_function("csd", constants=("fs", "window"), samples=lambda s: [
    call(s.real(12).real, s.real(12).real, nperseg=4), call(s.real(9, 2).real, s.real(11, 2).real, nperseg=4, axis=0),
    call(s.real(12), s.real(12), nperseg=4, return_onesided=False),
    call(s.real(13).real, s.real(13).real, nperseg=4, average="median")])  # fmt: skip
def csd(
    x, y, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant", return_onesided=True,
    scaling="density", axis=-1, average="mean",
):  # fmt: skip
    """Return frequencies and the cross power spectral density of two signals.

    >>> fad.scipy.signal.csd(np.arange(8.0) % 3, np.arange(8.0) % 2, nperseg=4)[1].shape
    (3,)
    """
    other = None if y is x else y
    return _power(x, other, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, int(axis), average)


@register_function("periodogram", constants=("fs", "window"), samples=lambda s: [
    call(s.real(8).real), call(s.real(7, 2).real, fs=2.0, axis=0, nfft=9, scaling="spectrum"),
    call(s.real(8), window="hann", nfft=6, return_onesided=False)])  # fmt: skip
def periodogram(
    x, fs=1.0, window="boxcar", nfft=None, detrend="constant", return_onesided=True, scaling="density", axis=-1
):
    """Return frequencies and the power spectral density of a whole signal.

    >>> fad.scipy.signal.periodogram(np.array([1.0, -1.0, 1.0, -1.0]))[1]
    array([0., 0., 4.])
    """
    x = as_array(x)
    n = x.shape[axis]
    if nfft is not None and nfft < n:
        x = np.moveaxis(np.moveaxis(x, axis, -1)[..., :nfft], -1, axis)
        n, nfft = nfft, None
    window = "boxcar" if window is None else window
    if hasattr(window, "size") and window.size != n:
        raise ValueError("the size of the window must be the same size of the input on the specified axis")
    return _power(x, None, fs, window, n, 0, nfft, detrend, return_onesided, scaling, int(axis), "mean")


@register_function(
    "coherence",
    constants=("fs", "window"),
    samples=lambda s: [
        call(s.real(14).real, s.real(14).real, nperseg=4),
        call(s.real(12, 2).real, s.real(12, 2).real, nperseg=4, axis=0),
    ],
)
def coherence(x, y, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant", axis=-1):
    """Return frequencies and the squared magnitude of the coherence of two signals.

    >>> fad.scipy.signal.coherence(np.arange(8.0) % 3, np.arange(8.0) % 3, nperseg=4)[1].round(6)
    array([1., 1., 1.])
    """
    settings = {"fs": fs, "window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend}
    freqs, pxx = welch(x, axis=axis, **settings)
    _, pyy = welch(y, axis=axis, **settings)
    _, pxy = csd(x, y, axis=axis, **settings)
    return freqs, (pxy.real**2 + pxy.imag**2) / pxx / pyy


# --- back -----------------------------------------------------------------------------------------------------------


def _inverse_samples(s):
    x = s.real(10)
    z = x if x.dtype.kind == "c" else x + 1j * x[::-1]
    z = np.outer(z[:5], z[:4])
    return [
        call(z[:3], nperseg=4),
        call(z, fs=2.0, nperseg=5, noverlap=3, input_onesided=False, scaling="psd", window="boxcar"),
        call(np.stack([z[:3], z[1:4]]).swapaxes(0, 2), nperseg=4, time_axis=0, freq_axis=1),
    ]


@register_function(
    "istft",
    constants=("fs", "window"),
    samples=_inverse_samples,
    raises="ValueError: The array has fewer than two axes, or the window does not fit it.",
)
def istft(
    Zxx, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, input_onesided=True, boundary=True,
    time_axis=-1, freq_axis=-2, scaling="spectrum",
):  # fmt: skip
    """Return times and the signal whose short-time Fourier transform is nearest to the given one.

    >>> x = np.arange(16.0)
    >>> fad.scipy.signal.istft(fad.scipy.signal.stft(x, nperseg=8)[2], nperseg=8)[1].round(6)[:4]
    array([0., 1., 2., 3.])
    """
    z = as_array(Zxx)
    z = z if z.dtype.kind == "c" else z + 0j
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    freq_axis, time_axis = (normalize_axis(int(a), z.ndim) for a in (freq_axis, time_axis))
    if freq_axis == time_axis:
        raise ValueError("Must specify differing time and frequency axes!")
    default = z.shape[freq_axis] if not input_onesided else 2 * (z.shape[freq_axis] - 1)
    nperseg = default if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = nperseg if input_onesided and nperseg == default + 1 else default
    window, nperseg, noverlap, nfft = _plan(window, nperseg, noverlap, nfft, nperseg)
    z = np.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    rows = (np.fft.irfft if input_onesided else np.fft.ifft)(z, nfft)[..., :nperseg]
    window = _in_dtype(window, rows, np.result_type(rows.dtype, np.complex64))
    if scaling == "spectrum":
        rows = rows * np.sum(window)
    elif scaling == "psd":
        rows = rows * np.sqrt(fs * np.sum(window**2)).astype(window.dtype)
    else:
        raise ValueError(f"Parameter scaling={scaling!r} not in ['spectrum', 'psd']!")
    x = _overlap_add(rows * window, nperseg - noverlap)
    weight = _overlap_add(np.broadcast_to(window * window, rows.shape[-2:]), nperseg - noverlap)
    if boundary:
        cut = slice(nperseg // 2, -(nperseg // 2))
        x, weight = x[..., cut], weight[..., cut]
    if not np.all(weight > 1e-10):
        warnings.warn("NOLA condition failed, STFT may not be invertible.", stacklevel=2)
    x = x / np.where(weight > 1e-10, weight, np.ones_like(weight))
    if x.ndim > 1 and time_axis != z.ndim - 1:
        x = np.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
    return like(x, np.arange(x.shape[0])) / float(fs), x


def _overlap_add(rows: Any, step: int) -> Any:
    """Add up rows, each shifted by `step` against the one before: a scatter of all of them at once."""
    count, length = rows.shape[-2:]
    total, pieces = length + (count - 1) * step, -(-length // step)
    padded = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, pieces * step - length)])
    blocks = padded.reshape(*rows.shape[:-1], pieces, step)
    y: Any = None
    for k in range(pieces):  # block k of row i belongs to place i + k
        widths = [(0, 0)] * (rows.ndim - 2) + [(k, pieces - 1 - k), (0, 0)]
        part = np.pad(blocks[..., k, :], widths)
        y = part if y is None else y + part
    return y.reshape(*y.shape[:-2], -1)[..., :total]
