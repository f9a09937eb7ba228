"""``scipy.signal``, differentiable: convolutions, filters and their design, resampling, spectra, waves and peaks.

Signals, kernels and the coefficients of filters may all be traced. Derivatives of convolutions are convolutions, those
of recursive filters are recursive filters run backwards; so they cost what the functions themselves cost.

>>> import numpy as np, fad
>>> fad.grad(lambda b: np.sum(fad.scipy.signal.lfilter(b, [1.0, -0.5], np.ones(3))))(np.array([1.0, 1.0]))
array([4.25, 2.5 ])
"""

from __future__ import annotations

import scipy.signal

from fad.core.primitives.docstring_sections import refer
from fad.scipy.registration import missing
from fad.scipy.signal import windows
from fad.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve, oaconvolve
from fad.scipy.signal.design import bessel, butter, cheby1, cheby2, ellip, firwin, iirfilter, iirnotch, iirpeak
from fad.scipy.signal.estimates import lombscargle, medfilt, medfilt2d, wiener
from fad.scipy.signal.filters import filtfilt, lfilter, lfilter_zi, lfiltic, sosfilt, sosfilt_zi, sosfiltfilt
from fad.scipy.signal.forms import (
    bilinear,
    bilinear_zpk,
    lp2bp_zpk,
    lp2bs_zpk,
    lp2hp_zpk,
    lp2lp_zpk,
    normalize,
    sos2tf,
    tf2sos,
    tf2zpk,
    zpk2sos,
    zpk2tf,
)
from fad.scipy.signal.peaks import argrelextrema, argrelmax, argrelmin, find_peaks, peak_prominences, peak_widths
from fad.scipy.signal.rational import deconvolve, residue, residuez
from fad.scipy.signal.response import freqs, freqs_zpk, freqz, freqz_sos, freqz_zpk, group_delay, sosfreqz
from fad.scipy.signal.smoothing import decimate, detrend, hilbert, resample, resample_poly, savgol_filter, upfirdn
from fad.scipy.signal.spectra import coherence, csd, istft, periodogram, spectrogram, stft, welch
from fad.scipy.signal.systems import (
    bode,
    cont2discrete,
    freqresp,
    impulse,
    lsim,
    place_poles,
    ss2tf,
    ss2zpk,
    step,
    tf2ss,
    zpk2ss,
)
from fad.scipy.signal.waveforms import chirp, gausspulse, sawtooth, square
from fad.scipy.signal.windows import get_window

__all__ = [
    "argrelextrema", "argrelmax", "argrelmin", "bessel", "bilinear", "bilinear_zpk", "bode", "butter", "cheby1",
    "cheby2", "chirp", "coherence", "cont2discrete", "convolve", "convolve2d", "correlate", "correlate2d", "csd",
    "decimate", "deconvolve", "detrend", "ellip", "fftconvolve", "filtfilt", "find_peaks", "firwin", "freqresp",
    "freqs", "freqs_zpk", "freqz", "freqz_sos", "freqz_zpk", "gausspulse", "get_window", "group_delay", "hilbert",
    "iirfilter", "iirnotch", "iirpeak", "impulse", "istft", "lfilter", "lfilter_zi", "lfiltic", "lombscargle",
    "lp2bp_zpk", "lp2bs_zpk", "lp2hp_zpk", "lp2lp_zpk", "lsim", "medfilt", "medfilt2d", "normalize", "oaconvolve",
    "peak_prominences", "peak_widths", "periodogram", "place_poles", "resample", "resample_poly", "residue",
    "residuez", "savgol_filter", "sawtooth", "sos2tf", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz",
    "spectrogram", "square", "ss2tf", "ss2zpk", "step", "stft", "tf2sos", "tf2ss", "tf2zpk", "upfirdn", "welch",
    "wiener", "windows", "zpk2sos", "zpk2ss", "zpk2tf",
]  # fmt: skip
__getattr__ = missing("signal")
refer({"place_poles": place_poles}, scipy.signal)
