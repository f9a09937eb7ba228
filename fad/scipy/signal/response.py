"""What filters do to frequencies: responses and delays, of their coefficients, sections, zeros and poles."""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

import numpy as np
import scipy.signal

from fad.backends import like
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import flat_on_host, registrar
from fad.scipy.signal.filters import _check_sections
from fad.scipy.special.build import number

register_function = registrar("signal")
_TAU = 2 * math.pi


def _coefficients(x: Any) -> Any:
    x = as_array(x)
    x = x if x.dtype.kind in "fc" else x.astype(float)
    return x if x.ndim else x.reshape(1)


def check_rate(fs: Any) -> Any:
    """Return a sampling rate that is a number, or traced."""
    if type(fs) is Tracer:
        return fs
    if fs is None or not np.isscalar(fs):
        raise ValueError("Sampling frequency fs must be a single scalar.")
    return float(fs)  # type: ignore[arg-type]


def _is_count(n: Any) -> bool:
    return not (type(n) is Tracer or isinstance(n, (complex, float))) and hasattr(n, "__index__") and np.ndim(n) == 0


def _frequencies(wanted: Any, whole: bool, fs: Any, dtype: Any, nyquist: bool = False) -> Any:
    """Return angular frequencies: a number of them around the circle or half of it, or those that are given."""
    if wanted is None or _is_count(wanted):
        n = 512 if wanted is None else operator.index(wanted)
        if n < 0:
            raise ValueError(f"worN must be nonnegative, got {n}")
        real = np.zeros(0, dtype).real.dtype
        return np.linspace(0, _TAU if whole else math.pi, n, endpoint=nyquist and not whole, dtype=real)
    wanted = wanted.real if isinstance(wanted, complex) else wanted
    w = as_array(wanted)
    w = w.astype(dtype) if dtype is not None else w if w.dtype.kind in "fc" else w.astype(float)
    return _TAU * (w if w.ndim else w.reshape(1)) / fs


def _evaluate(coefficients: Any, w: Any, z: Any) -> Any:
    """Return ``sum_k c[k] z**k`` for z = exp(-1j w)."""
    if coefficients.ndim == 1:
        k = like(w, np.arange(coefficients.shape[0]).astype(w.real.dtype))
        return np.exp(-1j * w[..., None] * k) @ coefficients.astype(np.result_type(coefficients, z))
    total = coefficients[-1] + z * 0
    for k in range(coefficients.shape[0] - 2, -1, -1):
        total = coefficients[k] + total * z
    return total


def _filter_samples(s):
    return [
        call(s.real(3), s.positive(2), 4),
        call(s.real(4), worN=s.real(3, low=0.2, high=2.5)),
        call(s.real(3), 2.0, worN=8, whole=True),
        call(s.real(2), s.positive(3), s.real(5, low=0.2, high=0.9), fs=2.0),
        call(s.real(3), worN=5, include_nyquist=True),
        call(s.real(3, 2, 1), s.positive(2, 1, 1), worN=4),
    ]


@register_function("freqz", complex=False, samples=_filter_samples, raises="ValueError: `worN` is negative.")
def freqz(b, a=1, worN=512, whole=False, plot=None, fs=_TAU, include_nyquist=False):
    """Return frequencies and the response of a digital filter there: ``sum b[k] z**-k / sum a[k] z**-k``.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import freqz
    >>> fad.grad(lambda b: abs(freqz(b, worN=[np.pi / 2])[1][0]))(np.array([1.0, 1.0])).round(6)
    array([0.707107, 0.707107])
    """
    b, a, fs = _coefficients(b), _coefficients(a), check_rate(fs)
    dtype = np.result_type(b, a)
    w = _frequencies(worN, whole, fs, dtype, include_nyquist)
    n = w.shape[0]
    size = n if whole else 2 * (n - 1) if include_nyquist else 2 * n
    counted = worN is None or _is_count(worN)
    if counted and a.size == 1 and b.ndim == 1 and size >= b.shape[0] and size > 0:
        h = np.fft.fft(b, size)[:n]
        h = (h / a).astype(h.dtype)
    else:
        z = np.exp(-1j * w)
        h = _evaluate(b, w, z) / _evaluate(a, w, z)
    w = w * (fs / _TAU)
    if plot is not None:
        plot(w, h)
    return w, h


def _sections(s, n):
    x = s.positive(n, 6)
    x[:, 3] = 1.0
    return x


_SECTIONS: dict = {
    "numerical": False, "complex": False, "raises": "ValueError: The array has not the shape (sections, 6).",
    "samples": lambda s: [
        call(_sections(s, 2), 4), call(_sections(s, 1), s.real(3, low=0.2, high=0.9), fs=2.0)
    ],
}  # fmt: skip


@register_function("freqz_sos", **_SECTIONS)
def freqz_sos(sos, worN=512, whole=False, fs=_TAU):
    """Return frequencies and the response there of second-order sections, the product of theirs.

    >>> fad.scipy.signal.freqz_sos(np.array([[1.0, 0.5, 0.0, 1.0, 0.0, 0.0]]), worN=[0.0])[1]
    array([1.5+0.j])
    """
    sos = np.atleast_2d(_coefficients(sos))
    _check_sections(sos)
    if not sos.shape[0]:
        raise ValueError("Cannot compute frequencies with no sections")
    h: Any = 1.0
    for k in range(sos.shape[0]):
        w, part = freqz(sos[k, :3], sos[k, 3:], worN, whole, None, fs)
        h = h * part
    return w, h


@register_function("sosfreqz", **_SECTIONS)
def sosfreqz(sos, worN=512, whole=False, fs=_TAU):
    """Return frequencies and the response of second-order sections: an older name of `freqz_sos`.

    Parameters
    ----------
    sos : array_like, shape (sections, 6)
    worN : int or array_like
        The number of frequencies, or the frequencies.
    whole : bool
        Whether they go around the whole circle.
    fs : float
        The sampling rate.

    Returns
    -------
    w, h : ndarray, ndarray of complex

    Examples
    --------
    >>> fad.scipy.signal.sosfreqz(np.array([[1.0, 0.5, 0.0, 1.0, 0.0, 0.0]]), worN=[0.0])[1]
    array([1.5+0.j])
    """
    return freqz_sos(sos, worN, whole, fs)


@register_function("freqz_zpk", complex=False, raises="ValueError: `fs` is no number.", samples=lambda s: [
    call(s.real(2), s.real(3), s.positive(), 4), call(s.real(1), s.real(1), 2.0, s.real(3, low=0.2, high=0.9), fs=2.0)
])  # fmt: skip
def freqz_zpk(z, p, k, worN=512, whole=False, fs=_TAU):
    """Return frequencies and the response there of a digital filter of zeros, poles and gain.

    >>> fad.scipy.signal.freqz_zpk(np.array([0.5]), np.array([0.0]), 2.0, [0.0])[1]
    array([1.+0.j])
    """
    z, p, fs = _coefficients(z), _coefficients(p), check_rate(fs)
    real = np.dtype(float if np.result_type(z, p) in (np.float64, np.complex128) else np.float32)
    w = _frequencies(worN, whole, fs, real if worN is None or _is_count(worN) else None)
    around = np.exp(1j * w)
    gain = as_array(k).astype(real)
    h = gain * np.prod(around[:, None] - z, axis=-1) / np.prod(around[:, None] - p, axis=-1)
    return w * (fs / _TAU), h


# --- analog filters -------------------------------------------------------------------------------------------------

# The decades around zeros and poles: they move in steps
places_p = flat_on_host(
    "frequencies_of_a_filter",
    lambda b, a, *, count, kind: scipy.signal.findfreqs(b, a, count, kind=kind),
    lambda s: [
        call(s.positive(2), s.positive(3), count=4, kind="ba"),
        call(s.real(1), -s.positive(2), count=3, kind="zp"),
    ],
    "The frequencies around the zeros and poles of an analog filter.",
    complex=False,
)


def _analog_frequencies(b: Any, a: Any, wanted: Any, kind: str) -> Any:
    if wanted is None or _is_count(wanted):
        return bind(places_p, b, a, count=200 if wanted is None else operator.index(wanted), kind=kind)
    return np.atleast_1d(as_array(wanted))


@register_function("freqs", complex=False, raises="ValueError: `worN` is negative.", samples=lambda s: [
    call(s.positive(2), s.positive(3), s.positive(4)), call(s.positive(1), s.positive(2), 5)])  # fmt: skip
def freqs(b, a, worN=200, plot=None):
    """Return frequencies and the response of an analog filter there: the quotient of polynomials in 1j w.

    >>> import numpy as np, fad
    >>> fad.grad(lambda a: abs(fad.scipy.signal.freqs([1.0], np.stack([1.0, a]), [1.0])[1][0]))(1.0).round(6)
    np.float64(-0.353553)
    """
    b, a = _coefficients(b), _coefficients(a)
    w = _analog_frequencies(b, a, worN, "ba")
    h = np.polyval(b, 1j * w) / np.polyval(a, 1j * w)
    if plot is not None:
        plot(w, h)
    return w, h


_ZPK: dict = {"complex": False, "rounding": "single", "raises": "ValueError: `k` has several elements."}


@register_function("freqs_zpk", **_ZPK, samples=lambda s: [
    call(s.real(1), -s.positive(2), s.positive(), s.positive(3)), call(s.real(1), -s.positive(2), 2.0, 4)])  # fmt: skip
def freqs_zpk(z, p, k, worN=200):
    """Return frequencies and the response there of an analog filter of zeros, poles and gain.

    >>> fad.scipy.signal.freqs_zpk(np.array([]), np.array([-1.0]), 2.0, [0.0])[1]
    array([2.+0.j])
    """
    z, p = _coefficients(z), _coefficients(p)
    w = _analog_frequencies(z, p, worN, "zp")
    s = 1j * w[:, None]
    k = as_array(k).astype(float)
    if k.size > 1:
        raise ValueError("k must be a single scalar gain")
    return w, k * np.prod(s - z, axis=-1) / np.prod(s - p, axis=-1)


# --- delays ---------------------------------------------------------------------------------------------------------


def _delay_samples(s):
    return [
        call((s.positive(3), np.array([1.0, 0.3], s.dtype)), 4),
        call((s.positive(2), s.positive(1)), s.real(3, low=0.2, high=0.9), fs=2.0),
        call((s.positive(2), np.array([1.0, 0.2, 0.1], s.dtype)), w=5, whole=True),
    ]


@register_function("group_delay", complex=False, samples=_delay_samples, raises="ValueError: `fs` is no number.")
def group_delay(system, w=512, whole=False, fs=_TAU):
    """Return frequencies and by how many samples a digital filter ``(b, a)`` delays them; 0 where it is singular.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import group_delay
    >>> fad.grad(lambda b: group_delay((b, 1.0), [0.0])[1][0])(np.array([3.0, 1.0]))
    array([-0.0625,  0.1875])
    """
    b, a, fs = _coefficients(system[0]), _coefficients(system[1]), check_rate(fs)
    w = _frequencies(w, whole, fs, float if w is None or _is_count(w) else None)
    c = np.convolve(b, np.conjugate(a[::-1]))
    z = np.exp(-1j * w)
    slope = _evaluate(c * np.arange(c.shape[0]), w, z)
    value = _evaluate(c, w, z)
    singular = value == 0
    delay = np.real(slope / np.where(singular, 1.0, value)) - a.shape[0] + 1
    if np.any(number(singular)):
        warnings.warn("The group delay is singular at some frequencies, setting to 0", stacklevel=3)
        delay = np.where(singular, 0.0, delay)
    elif np.any(number(np.abs(value) < 10 * np.finfo(float).eps)):
        text = "The filter's denominator is extremely small at some frequencies, around which a singularity may be"
        warnings.warn(f"{text} present", stacklevel=3)
    return w * (fs / _TAU), delay
