"""``scipy.signal``, differentiable: convolutions, filters, resampling and spectra.

Signals, kernels and the coefficients of filters may all be traced. Derivatives of convolutions are convolutions, those
of recursive filters are recursive filters run backwards; so they cost what the functions themselves cost.

>>> import numpy as np, fad
>>> fad.grad(lambda b: np.sum(fad.scipy.signal.lfilter(b, [1.0, -0.5], np.ones(3))))(np.array([1.0, 1.0]))
array([4.25, 2.5 ])
"""

from __future__ import annotations

from fad.scipy.registration import missing
from fad.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve, oaconvolve
from fad.scipy.signal.filters import filtfilt, lfilter, lfilter_zi, sosfilt, sosfilt_zi, sosfiltfilt
from fad.scipy.signal.smoothing import decimate, detrend, hilbert, resample, resample_poly, savgol_filter, upfirdn
from fad.scipy.signal.spectra import coherence, csd, istft, periodogram, spectrogram, stft, welch

__all__ = [
    "coherence", "convolve", "convolve2d", "correlate", "correlate2d", "csd", "decimate", "detrend", "fftconvolve",
    "filtfilt", "hilbert", "istft", "lfilter", "lfilter_zi", "oaconvolve", "periodogram", "resample", "resample_poly",
    "savgol_filter", "sosfilt", "sosfilt_zi", "sosfiltfilt", "spectrogram", "stft", "upfirdn", "welch",
]  # fmt: skip
__getattr__ = missing("signal")
