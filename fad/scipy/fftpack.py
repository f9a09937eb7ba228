"""``scipy.fftpack``, differentiable: the older names of Fourier, cosine and sine transforms, and its operators.

New programs take `fad.scipy.fft`. What differs is that `rfft` and `irfft` keep real and imaginary parts in one real
array, and that lengths of several axes are called `shape`.

>>> import numpy as np, fad
>>> fad.grad(lambda x: np.sum(fad.scipy.fftpack.dct(x, norm="ortho") ** 2))(np.array([1.0, 2.0, 3.0])).round(6)
array([2., 4., 6.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fftpack as sp
from scipy.fftpack import fftfreq, next_fast_len, rfftfreq

from fad.backends import like
from fad.core.primitives.samples import call
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.scipy import fft as newer
from fad.scipy.registration import missing, registrar

register_function = registrar("fftpack", order="C")


def _text(name: str, x: list, what: str) -> str:
    shown = "\n    ".join(repr(getattr(sp, name)(np.array(x)).round(6) + 0.0).splitlines())
    return f"""{what}; `overwrite_x` changes no values.

    >>> fad.scipy.fftpack.{name}(np.array({x})).round(6) + 0.0
    {shown}
    """


# --- transforms -------------------------------------------------------------------------------------------------------


def _define_one(name: str) -> Callable:
    def one(x, n=None, axis=-1, overwrite_x=False):
        return getattr(newer, name)(x, n, axis)

    doc = _text(name, [1.0, 1.0], f"The transform `fad.scipy.fft.{name}` without scaling of its own")
    samples = lambda s: [call(s.real(4)), call(s.real(3, 5), 4, axis=0)]
    return register_function(name, samples=samples, doc=doc)(one)


def _define_many(name: str, default: Any) -> Callable:
    def many(x, shape=None, axes=default, overwrite_x=False):
        return getattr(newer, name)(x, _lengths(x, shape, axes), axes)

    doc = _text(name, [[1.0, 1.0], [1.0, 1.0]], f"The transform `fad.scipy.fft.{name}`, with lengths in `shape`")
    samples = lambda s: [call(s.real(3, 4)), call(s.real(3, 5), (2, 6), axes=(0, 1))]
    return register_function(name, samples=samples, doc=doc)(many)


def _lengths(x: Any, shape: Any, axes: Any) -> Any:
    """Return the lengths of the axes, where some may be left as they are."""
    if shape is None or axes is not None:
        return shape
    return tuple(np.shape(x)[i - len(shape)] if n == -1 else n for i, n in enumerate(np.atleast_1d(shape)))


_UNSCALED = ", which is not divided by the lengths unless it is of norm `ortho`"
_TRANSPOSED = {1: 1, 2: 3, 3: 2, 4: 4}


def _type_of(name: str, type_: int) -> int:
    """Return the type of the forward transform that one is."""
    return _TRANSPOSED.get(type_, type_) if name[0] == "i" else type_


def _define_trig(name: str) -> Callable:
    def one(x, type=2, n=None, axis=-1, norm=None, overwrite_x=False):
        return transform(x, _type_of(name, type), n, axis, norm)

    transform = getattr(newer, name[-3:])
    doc = _text(name, [1.0, 1.0], f"The transform `fad.scipy.fft.{name}`{_UNSCALED * (name[0] == 'i')}")
    samples = lambda s: [call(s.real(5)), call(s.real(4), 3, norm="ortho"), call(s.real(3, 5), 1, 4, axis=0)]
    return register_function(name, samples=samples, doc=doc)(one)


def _define_trigs(name: str) -> Callable:
    def many(x, type=2, shape=None, axes=None, norm=None, overwrite_x=False):
        return transform(x, _type_of(name, type), _lengths(x, shape, axes), axes, norm)

    transform = getattr(newer, name[-4:])
    what = f"The transform `fad.scipy.fft.{name}`, with lengths in `shape`{_UNSCALED * (name[0] == 'i')}"
    doc = _text(name, [[1.0, 1.0], [1.0, 1.0]], what)
    samples = lambda s: [call(s.real(3, 4)), call(s.real(3, 5), 3, (2, 6), axes=(0, 1), norm="ortho")]
    return register_function(name, samples=samples, doc=doc)(many)


fft, ifft = _define_one("fft"), _define_one("ifft")
fftn, ifftn = _define_many("fftn", None), _define_many("ifftn", None)
fft2, ifft2 = _define_many("fft2", (-2, -1)), _define_many("ifft2", (-2, -1))
dct, idct, dst, idst = (_define_trig(name) for name in ("dct", "idct", "dst", "idst"))
dctn, idctn, dstn, idstn = (_define_trigs(name) for name in ("dctn", "idctn", "dstn", "idstn"))
fftshift, ifftshift = newer.fftshift, newer.ifftshift


def _real_samples(s):
    return [call(s.real(5)), call(s.real(6)), call(s.real(3, 5), 4, axis=0), call(s.real(2, 3), 5)]


def _real(x: Any) -> Any:
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError("x must be a real sequence")
    return x if x.dtype.kind == "f" else x.astype(float)


def _halves(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each place of n numbers which frequency it is of, and whether of its imaginary part."""
    places = np.arange(n)
    return (places + 1) // 2, (places % 2 == 0) & (places > 0)


@register_function("rfft", samples=_real_samples, complex=False)
def rfft(x, n=None, axis=-1, overwrite_x=False):
    """Return the Fourier transform of real numbers as real numbers: y(0), Re y(1), Im y(1), Re y(2), ...

    >>> fad.scipy.fftpack.rfft(np.array([9.0, -9.0, 1.0, 3.0]))
    array([ 4.,  8., 12., 16.])
    """
    x = _real(x)
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    y = np.moveaxis(np.fft.rfft(x, n, axis), axis, -1)
    frequency, imaginary = _halves(n)
    parts = np.where(like(y, imaginary), y.imag[..., frequency], y.real[..., frequency])
    return np.moveaxis(parts, -1, axis)


@register_function("irfft", samples=_real_samples, complex=False)
def irfft(x, n=None, axis=-1, overwrite_x=False):
    """Return the inverse of `rfft`: real numbers of their Fourier transform as real numbers.

    >>> fad.scipy.fftpack.irfft(np.array([4.0, 8.0, 12.0, 16.0]))
    array([ 9., -9.,  1.,  3.])
    """
    x = _real(x)
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis] if n is None else n
    x = np.moveaxis(newer._resize(x, n, axis), axis, -1)
    frequency, imaginary = _halves(n)
    known = np.isin(np.arange(n // 2 + 1), frequency[imaginary])  # the others are real
    parts = x[..., np.where(known, 2 * np.arange(n // 2 + 1), 0)] * like(x, known.astype(x.dtype))
    return np.moveaxis(np.fft.irfft(x[..., np.flatnonzero(~imaginary)] + 1j * parts, n), -1, axis)


# --- operators on periodic samples ------------------------------------------------------------------------------------
# All of them commute with shifts of the samples, so that each is a convolution with what SciPy makes of a unit impulse.


def _define_operator(name: str, what: str, samples: Callable, wanted: tuple, defaults: dict) -> Callable:
    names = ("x", *wanted, *defaults)

    def operator(*args: Any, **kwargs: Any) -> Any:
        given = defaults | dict(zip(names, args, strict=False)) | kwargs
        x, options = as_array(given.pop("x")), given
        x = x.astype(complex if x.dtype.kind == "c" else float)  # SciPy computes these in double precision
        n = len(x)
        response = getattr(sp, name)(np.eye(1, n)[0], **options)
        y = np.fft.ifft(np.fft.fft(x) * like(x, np.fft.fft(response)))
        return y if x.dtype.kind == "c" else y.real

    shown = dict.fromkeys(wanted, 1.0)
    text = ", ".join(f"{p}={v}" for p, v in shown.items())
    value = repr(getattr(sp, name)(np.array([1.0, 2.0, 0.0, 1.0]), **shown).round(6) + 0.0)
    doc = f"""{what}, of the samples of a periodic function; the parameters are constants.

    >>> fad.scipy.fftpack.{name}(np.array([1.0, 2.0, 0.0, 1.0]){", " + text if text else ""}).round(6) + 0.0
    {value}
    """
    constants = [*range(1, len(names)), *names[1:]]
    return register_function(name, samples=samples, doc=doc, constants=constants)(operator)


def _sample_operator(*values: float) -> Callable:
    return lambda s: [call(s.real(5), *values), call(s.real(6), *values, period=3.0)]


_PERIOD = {"period": None}
diff = _define_operator("diff", "The derivative or integral", _sample_operator(1), (), {"order": 1, "period": None})
tilbert = _define_operator("tilbert", "The h-Tilbert transform", _sample_operator(0.5), ("h",), _PERIOD)
itilbert = _define_operator("itilbert", "The inverse of `tilbert`", _sample_operator(0.5), ("h",), _PERIOD)
shift = _define_operator("shift", "The function shifted by `a`", _sample_operator(0.3), ("a",), _PERIOD)
_PLAIN = lambda s: [call(s.real(5)), call(s.real(6))]
hilbert = _define_operator("hilbert", "The Hilbert transform", _PLAIN, (), {})
ihilbert = _define_operator("ihilbert", "The inverse of `hilbert`", _PLAIN, (), {})

__all__ = [
    "dct", "dctn", "diff", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hilbert", "idct", "idctn",
    "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihilbert", "irfft", "itilbert", "next_fast_len", "rfft",
    "rfftfreq", "shift", "tilbert",
]  # fmt: skip
__getattr__ = missing("fftpack")
