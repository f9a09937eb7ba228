"""Smoothing by medians and by Wiener's rule, and the spectrum of samples at any times."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.ndimage import rank_filter
from fad.scipy.registration import registrar
from fad.scipy.signal.convolution import correlate
from fad.scipy.special.build import number

register_function = registrar("signal")


def _sizes(size: Any, ndim: int) -> list:
    if size is None:
        return [3] * ndim
    return [int(size)] * ndim if not np.ndim(size) else [int(n) for n in size]


def _median_samples(s):
    return [call(s.real(7)), call(s.real(4, 5), 3), call(s.real(4, 5), [3, 1])]


@register_function(
    "medfilt", complex=False, samples=_median_samples, raises="ValueError: An element of `kernel_size` is even."
)
def medfilt(volume, kernel_size=None):
    """Return the median of a window around each element, with zeros beyond the edges.

    >>> import numpy as np, fad
    >>> fad.grad(lambda x: np.sum(fad.scipy.signal.medfilt(x)))(np.array([3.0, 1.0, 2.0, 5.0]))
    array([0., 1., 3., 0.])
    """
    x = as_array(volume)
    x = x if x.ndim else x.reshape(1)
    if x.dtype.kind not in "iuf" or x.dtype == np.float16:
        raise ValueError(f"dtype={x.dtype} is not supported by medfilt")
    sizes = _sizes(kernel_size, x.ndim)
    if any(n % 2 != 1 for n in sizes):
        raise ValueError("Each element of kernel_size should be odd.")
    if any(n > m for n, m in zip(sizes, x.shape, strict=False)):
        warnings.warn("kernel_size exceeds volume extent: the volume will be zero-padded.", stacklevel=3)
    return rank_filter(x, math.prod(sizes) // 2, sizes, mode="constant")


@register_function(
    "medfilt2d",
    complex=False,
    samples=lambda s: [call(s.real(4, 5)), call(s.real(4, 5), [3, 1])],
    raises="ValueError: An element of `kernel_size` is even.",
)
def medfilt2d(input, kernel_size=3):
    """Return the median of a window around each element of a matrix, with zeros beyond the edges.

    >>> fad.scipy.signal.medfilt2d(np.array([[3.0, 1.0, 2.0, 5.0]]), [1, 3])
    array([[1., 2., 2., 2.]])
    """
    return medfilt(input, kernel_size)


@register_function(
    "wiener",
    complex=False,
    raises="ValueError: `mysize` has another length than the array has axes.",
    samples=lambda s: [call(s.real(8)), call(s.real(4, 5), 3), call(s.real(4, 5), (3, 1), s.real(low=0.01, high=0.05))],
)
def wiener(im, mysize=None, noise=None):
    """Return Wiener's estimate: each element drawn to the mean around it, the more the less the variance there is.

    >>> fad.scipy.signal.wiener(np.array([1.0, 5.0, 2.0, 2.0]), 3).round(4)
    array([1.5595, 2.891 , 3.    , 1.3333])
    """
    x = as_array(im)
    sizes = _sizes(mysize, x.ndim)
    ones, count = np.ones(sizes), float(math.prod(sizes))
    mean = correlate(x, ones, "same") / count
    variance = correlate(x**2, ones, "same") / count - mean**2
    noise = np.mean(variance) if noise is None else noise
    smooth = variance < noise
    shared = 1 - noise / np.where(smooth, 1.0, variance)
    return np.where(smooth, mean, (x - mean) * shared + mean)


def _spectrum_samples(s):
    times = np.array([0.1, 0.5, 1.2, 1.9, 2.3, 3.1], s.dtype)
    waves = s.real(3, low=0.6, high=3.0)
    return [
        call(times, s.real(6), waves),
        call(times, s.real(6), waves, normalize=True, weights=s.positive(6)),
        call(times, s.real(6), waves, floating_mean=True, weights=s.positive(6)),
        call(times, s.real(6), waves, normalize="amplitude", floating_mean=True),
    ]


@register_function(
    "lombscargle",
    complex=False,
    samples=_spectrum_samples,
    raises="ValueError: The arrays have other lengths, or are empty.",
)
def lombscargle(x, y, freqs, *, precenter=None, normalize=False, weights=None, floating_mean=False):
    """Return the spectrum of samples `y` at any times `x`: of the waves that fit them best.

    M. Zechmeister and M. Kürster, The generalised Lomb-Scargle periodogram, Astronomy & Astrophysics 496 (2009).

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import lombscargle
    >>> x = np.array([0.0, 0.7, 1.9, 3.1])
    >>> fad.grad(lambda w: lombscargle(x, np.sin(2 * x), np.stack([w]))[()])(1.5).round(4)
    np.float64(0.5957)
    """
    x, y, w = (as_array(v).astype(float) for v in (x, y, freqs))
    weights = np.ones_like(y) if weights is None else as_array(weights).astype(float)
    if not (x.ndim == 1 and x.size > 0 and x.shape == y.shape == weights.shape):
        raise ValueError("Parameters x, y, weights must be 1-D arrays of equal non-zero length!")
    if not (w.ndim == 1 and w.size > 0):
        raise ValueError("Parameter freqs must be a 1-D array of non-zero length!")
    if np.any(number(weights < 0)) or not np.all(number(np.sum(weights) > 0)):
        raise ValueError("Parameter weights must have only non-negative entries which sum to a positive value!")
    normalize = {False: "power", True: "normalize"}.get(normalize, normalize)
    if normalize not in ("power", "normalize", "amplitude"):
        raise ValueError("Normalize must be: False (or 'power'), True (or 'normalize'), or 'amplitude'.")
    weights = weights / np.sum(weights)
    if precenter is not None:
        text = "Use of parameter 'precenter' is deprecated: pass y - y.mean(), or set floating_mean=True"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        y = y - np.mean(y) if precenter else y
    if floating_mean:
        y = y - np.sum(weights * y)
    # The best wave does not depend on the phase from which it is measured: SciPy's, as a constant
    phase = stop_gradient(0.5 * np.arctan2(*_find_moments(x, w, 0.0, weights, floating_mean)))
    a, b, power = _fit(x, y, w, phase, weights, floating_mean)
    if normalize == "amplitude":
        return np.squeeze((a + 1j * b) * np.exp(1j * phase))
    scale = 0.25 * x.shape[0] if normalize == "power" else 0.5 / np.sum(weights * y * y)
    return np.squeeze(power * scale)


def _waves(x: Any, w: Any, phase: Any, weights: Any, floating: bool) -> tuple:
    """Return cosines and sines, a row for each frequency, less their means if the mean is fitted as well."""
    angle = w[:, None] * x - np.reshape(phase, (-1, 1))
    waves = np.cos(angle), np.sin(angle)
    return tuple(v - (v @ weights)[:, None] for v in waves) if floating else waves


def _find_moments(x: Any, w: Any, phase: Any, weights: Any, floating: bool) -> tuple:
    c, s = _waves(x, w, phase, weights, floating)
    return 2.0 * ((c * s) @ weights), (c * c - s * s) @ weights


def _fit(x: Any, y: Any, w: Any, phase: Any, weights: Any, floating: bool) -> tuple:
    """Return the amplitudes of cosine and sine of least squares, and twice what they explain of the variance."""
    c, s = _waves(x, w, phase, weights, floating)
    yc, ys, cs = c @ (weights * y), s @ (weights * y), (c * s) @ weights
    least = np.finfo(float).epsneg
    cc, ss = (np.where(v < least, least, v) for v in ((c * c) @ weights, (s * s) @ weights))
    rest = cc * ss - cs * cs
    a, b = (yc * ss - ys * cs) / rest, (ys * cc - yc * cs) / rest
    return a, b, 2.0 * (a * yc + b * ys)
