"""Fourier transforms: the functions of numpy.fft over three linear primitives.

The matrix of the discrete Fourier transform is symmetric, so in fad's convention, without conjugation,
the transpose of a complex transform is the transform itself. The transforms of real signals are each other's
transposes, up to weights: a frequency strictly between 0 and n/2 stands for two.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitives.archetypes import linear
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array, normalize_axes, normalize_axis
from fad.ops.reductions.reduction import shift_axes
from fad.ops.reductions.scans import cut

# --- primitives -----------------------------------------------------------------------------------------------------


def _complex(x: Any) -> Any:
    """Return the sample as complex numbers: these primitives take nothing else."""
    return x if x.dtype.kind == "c" else x + 1j * x[..., ::-1]


def _fft_forward(x, *, axes, inverse, norm):
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes, norm=norm)


def _batch(prim):
    def batch(size, batched, xs, params):
        if "axes" in params:
            return bind(prim(), xs[0], **{**params, "axes": tuple(a + 1 for a in params["axes"])})
        return bind(prim(), xs[0], **shift_axes(params))

    return batch


fft_p: Any = linear(
    "fourier",
    _fft_forward,
    lambda ct, x, *, axes, inverse, norm: bind(fft_p, ct, axes=axes, inverse=inverse, norm=norm),
    _batch(lambda: fft_p),
    mixes="axes",
    samples=lambda s: [
        call(s.real(3, 4), axes=(1,), inverse=False, norm=None),
        call(_complex(s.real(3, 5)), axes=(0, 1), inverse=True, norm="ortho"),
    ],
    doc="The discrete Fourier transform along axes, or its inverse.",
)


def scale_of(n: int, norm: str | None, inverse: bool) -> float:
    """Return the factor that a transform of length n is multiplied by."""
    if norm == "ortho":
        return 1.0 / math.sqrt(n)
    return 1.0 / n if (norm == "forward") != inverse else 1.0


def _weights_like(x: Any, n: int, axis: int, ends: float, inner: float) -> Any:
    """Return weights of the half spectrum of a real signal of length n: of its ends, and of what counts twice."""
    places = np.arange(x.shape[axis])
    end = (places == 0) | (2 * places == n)
    weights = np.where(end, ends, inner).reshape(tuple(-1 if i == axis else 1 for i in range(x.ndim)))
    return like(x, weights.astype(np.float32 if x.dtype in (np.complex64, np.float32) else np.float64))


def _rfft_transpose(ct, x, *, axis, n, norm):
    # Re sum ct_k w^(jk) over the half spectrum is an inverse real transform of conj(ct), where inner frequencies
    # count half, without its factor 1/n.
    scale = scale_of(n, norm, False)
    weighted = np.conjugate(ct) * _weights_like(ct, n, axis, scale, 0.5 * scale)
    return bind(irfft_p, weighted, axis=axis, n=n, norm="forward")


def _irfft_transpose(ct, x, *, axis, n, norm):
    scale = scale_of(n, norm, True)
    spectrum = np.conjugate(bind(rfft_p, ct, axis=axis, n=n, norm=None))
    return spectrum * _weights_like(spectrum, n, axis, scale, 2.0 * scale)


rfft_p: Any = linear(
    "fourier_of_real",
    lambda x, *, axis, n, norm: np.fft.rfft(x, n, axis, norm),
    _rfft_transpose,
    _batch(lambda: rfft_p),
    mixes="axis",
    samples=lambda s: [
        call(s.real(3, 4).real, axis=1, n=4, norm=None),
        call(s.real(5, 3).real, axis=0, n=5, norm="ortho"),
        call(s.real(1).real, axis=0, n=1, norm="forward"),
    ],
    doc="The non-negative frequencies of the transform of a real array.",
)
irfft_p: Any = linear(
    "fourier_to_real",
    lambda x, *, axis, n, norm: np.fft.irfft(x, n, axis, norm),
    _irfft_transpose,
    _batch(lambda: irfft_p),
    mixes="axis",
    samples=lambda s: [
        call(_complex(s.real(3, 4)), axis=1, n=6, norm=None),
        call(_complex(s.real(3, 2)), axis=0, n=5, norm="forward"),
        call(_complex(s.real(1, 1)), axis=0, n=1, norm="ortho"),
    ],
    doc="The real array with the given non-negative frequencies.",
)

# --- NumPy's names --------------------------------------------------------------------------------------------------


def _check_norm(norm: Any) -> None:
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')


def _resize(x: Any, n: int, axis: int) -> Any:
    """Crop an axis, or fill it up with zeros, to length n."""
    m = x.shape[axis]
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    if m > n:
        return cut(x, axis, 0, n)
    if m == n:
        return x
    shape = tuple(n - m if i == axis else d for i, d in enumerate(x.shape))
    return np.concatenate([x, np.zeros_like(x, shape=shape)], axis=axis)


def _many(x: Any, s: Any, axes: Any) -> tuple[list, tuple]:
    """Return the lengths and axes of a transform over several axes, as NumPy understands them."""
    if axes is None:
        axes = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    axes = tuple(normalize_axis(a, x.ndim) for a in axes)
    lengths = (
        [x.shape[a] for a in axes]
        if s is None
        else [x.shape[a] if n == -1 else n for n, a in zip(s, axes, strict=True)]
    )
    return lengths, axes


def _floating(x: Any) -> Any:
    return x if x.dtype.kind in "fc" else x.astype(float)


def _transform(a, lengths, axes, norm, inverse):
    """Run the complex transform along axes, one length each, the last first: an axis may be named twice."""
    _check_norm(norm)
    if len(set(axes)) < len(axes):
        for n, axis in zip(reversed(lengths), reversed(axes), strict=True):
            a = _transform(a, [n], (axis,), norm, inverse)
        return a
    for n, axis in zip(lengths, axes, strict=True):
        a = _resize(a, n, axis)
    return bind(fft_p, a, axes=axes, inverse=inverse, norm=norm)


def _sample_one(s):
    return [
        call(s.real(4)),
        call(s.real(3, 5), 4, norm="ortho"),
        call(s.real(3, 5), n=7, axis=0, norm="forward"),
    ]


def _sample_many(s):
    return [
        call(s.real(3, 4)),
        call(s.real(3, 5), (2, 6), axes=(0, 1), norm="ortho"),
        call(s.real(2, 3, 4), axes=(2, 0), norm="forward"),
        call(s.real(2, 3), (4, 2, 3), axes=(1, 1, 1)),
    ]


def _text(name: str, inverse: bool, axes: str) -> str:
    which, scale = ("inverse ", 4.0) if inverse else ("", 1.0)
    x = [scale, 0.0] if axes == "an axis" else [[scale, 0.0], [0.0, 0.0]]
    shown = "\n    ".join(repr(getattr(np.fft, name)(x)).splitlines())
    return f"""Return the {which}discrete Fourier transform along {axes}: complex, and linear.

    >>> fad.numpy.fft.{name}(np.array({x}))
    {shown}
    """


def _define_one(function, inverse):
    name = function.__name__

    def one(a, n=None, axis=-1, norm=None, out=None):
        refuse_out(out)
        a = _floating(as_array(a))
        axis = normalize_axis(axis, a.ndim)
        return _transform(a, [a.shape[axis] if n is None else int(n)], (axis,), norm, inverse)

    return public(function, name=f"fft.{name}", samples=_sample_one, doc=_text(name, inverse, "an axis"))(one)


def _define_many(function, inverse, default):
    name = function.__name__

    def many(a, s=None, axes=default, norm=None, out=None):
        refuse_out(out)
        a = _floating(as_array(a))
        return _transform(a, *_many(a, s, axes), norm, inverse)

    return public(function, name=f"fft.{name}", samples=_sample_many, doc=_text(name, inverse, "axes"))(many)


fft, ifft = _define_one(np.fft.fft, False), _define_one(np.fft.ifft, True)
fftn, ifftn = _define_many(np.fft.fftn, False, None), _define_many(np.fft.ifftn, True, None)
fft2, ifft2 = _define_many(np.fft.fft2, False, (-2, -1)), _define_many(np.fft.ifft2, True, (-2, -1))


def _half(a, n, axis, norm, name):
    """Return the spectrum of a real signal: the frequencies 0 to n/2."""
    _check_norm(norm)
    a = _resize(a, n, axis)
    if a.dtype.kind == "c":  # last, as in NumPy: the caller's axis and length were looked at before
        raise TypeError(f"{name} takes real input, but it is {a.dtype}; write np.fft.fft")
    return bind(rfft_p, a, axis=axis, n=n, norm=norm)


def _whole(a, n, axis, norm):
    """Return the real signal of length n that has a given half spectrum."""
    _check_norm(norm)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    z = a if a.dtype.kind == "c" else a.astype(np.result_type(a.dtype, np.complex64))
    y = bind(irfft_p, _resize(z, n // 2 + 1, axis), axis=axis, n=n, norm=norm)
    return y.astype(a.dtype) if a.dtype == np.float16 else y


_SWAPPED = {"backward": "forward", None: "forward", "ortho": "ortho", "forward": "backward"}


@public(np.fft.rfft, name="fft.rfft", samples=_sample_one, complex=False)
def rfft(a, n=None, axis=-1, norm=None, out=None):
    """Return the non-negative frequencies of the transform of a real signal.

    >>> fad.numpy.fft.rfft(np.array([1.0, 2.0, 3.0, 4.0]))
    array([10.+0.j, -2.+2.j, -2.+0.j])
    """
    refuse_out(out)
    a = _floating(as_array(a))
    axis = normalize_axis(axis, a.ndim)
    return _half(a, a.shape[axis] if n is None else int(n), axis, norm, "rfft")


@public(np.fft.irfft, name="fft.irfft", samples=_sample_one)
def irfft(a, n=None, axis=-1, norm=None, out=None):
    """Return the real signal with the given non-negative frequencies.

    >>> fad.numpy.fft.irfft(np.array([1.0, 0.0, 0.0]))
    array([0.25, 0.25, 0.25, 0.25])
    """
    refuse_out(out)
    a = _floating(as_array(a))
    axis = normalize_axis(axis, a.ndim)
    return _whole(a, 2 * (a.shape[axis] - 1) if n is None else int(n), axis, norm)


@public(np.fft.hfft, name="fft.hfft", samples=_sample_one)
def hfft(a, n=None, axis=-1, norm=None, out=None):
    """Return the real transform of a signal with Hermitian symmetry, of which half is given.

    >>> fad.numpy.fft.hfft(np.array([1.0, 2.0, 1.0]))
    array([ 6.,  0., -2.,  0.])
    """
    _check_norm(norm)
    a = as_array(a)
    return irfft(a.conj(), n, axis, _SWAPPED[norm], out)


@public(np.fft.ihfft, name="fft.ihfft", samples=_sample_one, complex=False)
def ihfft(a, n=None, axis=-1, norm=None, out=None):
    """Return half of the signal with Hermitian symmetry that has a given real transform.

    >>> fad.numpy.fft.ihfft(np.array([1.0, 2.0]))
    array([ 1.5-0.j, -0.5-0.j])
    """
    _check_norm(norm)
    return np.conjugate(rfft(as_array(a), n, axis, _SWAPPED[norm], out))


def _rfft_many(a, s, axes, norm, out):
    refuse_out(out)
    a = _floating(as_array(a))
    lengths, axes = _many(a, s, axes)
    a = _half(a, lengths[-1], axes[-1], norm, "rfftn")
    step = 1 if _ends_with_the_first() else -1
    return _transform(a, lengths[:-1][::step], axes[:-1][::step], norm, False) if axes[:-1] else a


@functools.cache
def _ends_with_the_first() -> bool:
    """Return whether NumPy's rfftn transforms the other axes last to first; it shows where one is named twice."""
    return np.fft.rfftn([[0.0]], (2, 3, 1), axes=(0, 0, 1)).shape[0] == 2


def _irfft_many(a, s, axes, norm, out):
    refuse_out(out)
    a = _floating(as_array(a))
    lengths, axes = _many(a, s, axes)
    if s is None or s[-1] == -1:
        lengths[-1] = 2 * (a.shape[axes[-1]] - 1)
    a = _transform(a, lengths[-2::-1], axes[-2::-1], norm, True) if axes[:-1] else a  # here NumPy starts with the first
    return _whole(a, lengths[-1], axes[-1], norm)


@public(np.fft.rfftn, name="fft.rfftn", samples=_sample_many, complex=False)
def rfftn(a, s=None, axes=None, norm=None, out=None):
    """Return the transform of a real array over axes: of the last, the non-negative frequencies.

    >>> fad.numpy.fft.rfftn(np.ones((2, 2)))
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    return _rfft_many(a, s, axes, norm, out)


@public(np.fft.irfftn, name="fft.irfftn", samples=_sample_many)
def irfftn(a, s=None, axes=None, norm=None, out=None):
    """Return the real array whose transform over axes is given by half.

    >>> fad.numpy.fft.irfftn(np.ones((2, 2)))
    array([[1., 0.],
           [0., 0.]])
    """
    return _irfft_many(a, s, axes, norm, out)


@public(np.fft.rfft2, name="fft.rfft2", samples=_sample_many, complex=False)
def rfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Return the transform of a real array over two axes: of the last, the non-negative frequencies.

    >>> fad.numpy.fft.rfft2(np.ones((2, 2)))
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    return _rfft_many(a, s, axes, norm, out)


@public(np.fft.irfft2, name="fft.irfft2", samples=_sample_many)
def irfft2(a, s=None, axes=(-2, -1), norm=None, out=None):
    """Return the real array whose transform over two axes is given by half.

    >>> fad.numpy.fft.irfft2(np.ones((2, 2)))
    array([[1., 0.],
           [0., 0.]])
    """
    return _irfft_many(a, s, axes, norm, out)


# --- the order of frequencies ---------------------------------------------------------------------------------------


def _roll(x: Any, axes: Any, inverse: bool) -> Any:
    x = as_array(x)
    axes = normalize_axes(axes, x.ndim)
    shifts = tuple(-(x.shape[a] // 2) if inverse else x.shape[a] // 2 for a in axes)
    return np.roll(x, shifts, axes)


def _sample_shift(s):
    return [call(s.real(5)), call(s.real(3, 4)), call(s.real(3, 4), axes=1)]


@public(np.fft.fftshift, name="fft.fftshift", samples=_sample_shift)
def fftshift(x, axes=None):
    """Move the frequency zero to the middle of axes.

    >>> fad.numpy.fft.fftshift(np.array([0.0, 1.0, 2.0, 3.0]))
    array([2., 3., 0., 1.])
    """
    return _roll(x, axes, False)


@public(np.fft.ifftshift, name="fft.ifftshift", samples=_sample_shift)
def ifftshift(x, axes=None):
    """Move the frequency zero from the middle of axes to their start: the inverse of fftshift.

    >>> fad.numpy.fft.ifftshift(np.array([0.0, 1.0, 2.0, 3.0]))
    array([2., 3., 0., 1.])
    """
    return _roll(x, axes, True)
