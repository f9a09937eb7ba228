"""scipy.signal's convolutions and correlations, in SciPy's modes, over the primitive of `fad.scipy.kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.samples import call
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.ops.layout.memory_order import lay_out
from fad.scipy.kernels import backwards, cost_of, run_convolution
from fad.scipy.registration import registrar

register_function = registrar("signal")


def _pair(in1: Any, in2: Any, what: str = "in1 and in2") -> tuple:
    a, v = as_array(in1), as_array(in2)
    if a.ndim != v.ndim:
        raise ValueError(f"{what} should have the same dimensionality")
    return a, v


def _needs_swap(mode: str, a: tuple, v: tuple) -> bool:
    """Return whether the second operand of a valid convolution is the larger one; raise if neither is."""
    if mode != "valid" or all(n >= m for n, m in zip(a, v, strict=True)):
        return False
    if not all(m >= n for n, m in zip(a, v, strict=True)):
        raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
    return True


def _centre(y: Any, shape: tuple, rank: int) -> Any:
    """Return the middle part, of a given shape, of the last axes."""
    starts = [(n - m) // 2 for n, m in zip(y.shape[y.ndim - rank :], shape, strict=True)]
    return y[(..., *[slice(i, i + m) for i, m in zip(starts, shape, strict=True)])]


def _modes(mode: str) -> str:
    if mode not in ("full", "same", "valid"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    return mode


def _run(a: Any, v: Any, rank: int, mode: str, method: str) -> Any:
    """Convolve the last axes in one of SciPy's modes; "same" is of the shape of `a`."""
    first, second = a.shape[a.ndim - rank :], v.shape[v.ndim - rank :]
    if _needs_swap(_modes(mode), first, second):
        a, v = v, a
    if mode != "same":
        return run_convolution(a, v, rank, mode, method)
    return _centre(run_convolution(a, v, rank, "full", method), first, rank)


def _choose(a: Any, v: Any, mode: str, method: str) -> str:
    if method not in ("auto", "direct", "fft"):
        raise ValueError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    if method != "auto":
        return method
    return cost_of(max(a.size, v.size), min(a.size, v.size))


def _samples(s):
    shapes = (((5,), (3,)), ((4,), (2,)), ((2,), (5,)), ((3, 4), (2, 3)), ((2, 2), (3, 3)))
    return [
        call(s.real(*n), s.real(*m), mode, ("direct", "fft")[(i + j) % 2])
        for i, (n, m) in enumerate(shapes)
        for j, mode in enumerate(("full", "same", "valid"))
    ] + [call(s.real(), s.real()), call(s.real(6), s.real(3))]


@register_function("convolve", order="C", samples=_samples)
def convolve(in1, in2, mode="full", method="auto"):
    """Convolve two arrays of any one number of dimensions; both may be traced.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import convolve
    >>> fad.grad(lambda k: convolve(np.array([1.0, 2.0, 3.0]), k, "same")[1])(np.array([1.0, 0.0, -1.0]))
    array([3., 2., 1.])
    """
    a, v = _pair(in1, in2, "volume and kernel")
    if a.ndim == 0:
        return a * v
    method = _choose(a, v, mode, method)
    return _run(a, v, a.ndim, mode, method)


@register_function("correlate", order="C", samples=_samples)
def correlate(in1, in2, mode="full", method="auto"):
    """Correlate two arrays: ``z[k] = sum(in1[l] * conj(in2[l - k]))``, in the modes of `convolve`.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import correlate
    >>> fad.grad(lambda x: correlate(x, np.array([1.0, 2.0]), "valid")[0])(np.array([5.0, 6.0, 7.0]))
    array([1., 2., 0.])
    """
    a, v = _pair(in1, in2)
    if a.ndim == 0:
        return a * np.conj(v)
    method = _choose(a, v, mode, method)
    v = np.conj(backwards(v, a.ndim))
    return _run(a, v, a.ndim, mode, method)


def _over_axes(in1: Any, in2: Any, mode: str, axes: Any) -> Any:
    a, v = _pair(in1, in2)
    if a.ndim == 0:
        return a * v
    if not a.size or not v.size:
        return np.zeros_like(a, shape=(0,), dtype=np.float64)
    _modes(mode)
    axes = range(a.ndim) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    if not len(axes):
        raise ValueError("when provided, axes cannot be empty")
    axes = sorted(normalize_axis(i, a.ndim) for i in axes)
    if len(set(axes)) < len(axes):
        raise ValueError("all axes must be unique")
    axes = [i for i in axes if a.shape[i] != 1 and v.shape[i] != 1]
    rest = [i for i in range(a.ndim) if i not in axes]
    if not all(a.shape[i] == v.shape[i] or 1 in (a.shape[i], v.shape[i]) for i in rest):
        raise ValueError(f"incompatible shapes for in1 and in2: {a.shape} and {v.shape}")
    a, v = (x if x.dtype.kind in "fc" else x.astype(float) for x in (a, v))
    shape, last = [a.shape[i] for i in rest], list(range(-len(axes), 0))
    a, v = (np.moveaxis(x, axes, last) for x in (a, v))
    y = _run(a, v, len(axes), mode, "fft") if axes else a * v
    if mode == "same" and y.shape[: len(rest)] != tuple(shape):
        y = y[tuple(slice((n - m) // 2, (n - m) // 2 + m) for n, m in zip(y.shape, shape, strict=False))]
    return np.moveaxis(y, last, axes)


def _axes_samples(s):
    return [
        call(s.real(5), s.real(3)), call(s.real(3, 4), s.real(2, 3), "same"), call(s.real(2, 2), s.real(3, 4), "valid"),
        call(s.real(3, 4), s.real(3, 2), axes=1), call(s.real(4, 3), s.real(2, 1), "valid", axes=[0]),
        call(s.real(1, 4), s.real(3, 2), "same", axes=-1), call(s.real(), s.real()),
    ]  # fmt: skip


@register_function("fftconvolve", order="C", samples=_axes_samples)
def fftconvolve(in1, in2, mode="full", axes=None):
    """Convolve two arrays over `axes` by way of Fourier transforms; the other axes broadcast.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import fftconvolve
    >>> fad.grad(lambda k: fftconvolve(np.array([1.0, 2.0]), k)[1])(np.array([3.0, 4.0])).round(9)
    array([2., 1.])
    """
    return _over_axes(in1, in2, mode, axes)


@register_function("oaconvolve", order="C", samples=_axes_samples)
def oaconvolve(in1, in2, mode="full", axes=None):
    """Convolve as `fftconvolve` does: SciPy adds up pieces of plain arrays, for traced ones the sum is the same.

    >>> fad.scipy.signal.oaconvolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])).round(6)
    array([1., 3., 5., 3.])
    """
    return _over_axes(in1, in2, mode, axes)


# --- of images ------------------------------------------------------------------------------------------------------

_BOUNDARIES: dict[str, Any] = {
    "fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap", "symm": "symmetric",
    "symmetric": "symmetric",
}  # fmt: skip


def _plane(in1, in2, mode, boundary, fillvalue, correlating):
    a, v = as_array(in1), as_array(in2)
    name = "correlate2d" if correlating else "convolve2d"
    if a.ndim != 2 or v.ndim != 2:
        raise ValueError(f"{name} inputs must both be 2-D arrays")
    swapped = _needs_swap(_modes(mode), a.shape, v.shape)
    if swapped:
        a, v = v, a
    if boundary not in _BOUNDARIES:
        raise ValueError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric' (or 'symm').")
    how = _BOUNDARIES[boundary]
    shape = a.shape
    v = np.conj(backwards(v, 2)) if correlating else v
    if mode != "valid" and (how != "constant" or fillvalue != 0):
        options = {"constant_values": fillvalue} if how == "constant" else {}
        a = np.pad(a, [(m - 1, m - 1) for m in v.shape], how, **options)
        y = run_convolution(a, v, 2, "valid", _choose(a, v, mode, "auto"))
    else:
        y = run_convolution(a, v, 2, "valid" if mode == "valid" else "full", _choose(a, v, mode, "auto"))
    if mode == "same":
        starts = [m // 2 if correlating else (m - 1) // 2 for m in v.shape]
        y = y[tuple(slice(i, i + n) for i, n in zip(starts, shape, strict=True))]
    y = lay_out(y, "C")
    return backwards(y, 2) if swapped and correlating else y


def _plane_samples(s):
    shapes = (((4, 5), (3, 2)), ((2, 2), (3, 3)))
    return [
        call(*(s.real(*shape) for shape in shapes[(i + j) % 2]), mode, boundary, fill)
        for i, mode in enumerate(("full", "same", "valid"))
        for j, (boundary, fill) in enumerate((("fill", 0), ("fill", 0.7), ("wrap", 0), ("symm", 0)))
    ]


@register_function("convolve2d", samples=_plane_samples)
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """Convolve two matrices, with what lies beyond the edges of the first filled, wrapped round or mirrored.

    >>> import numpy as np, fad
    >>> from fad.scipy.signal import convolve2d
    >>> fad.grad(lambda x: np.sum(convolve2d(x, np.eye(2), "same", "wrap") ** 2))(np.eye(2))
    array([[8., 0.],
           [0., 8.]])
    """
    return _plane(in1, in2, mode, boundary, fillvalue, False)


@register_function("correlate2d", samples=_plane_samples)
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """Correlate two matrices, with what lies beyond the edges of the first filled, wrapped round or mirrored.

    >>> fad.scipy.signal.correlate2d(np.eye(2), np.ones((2, 2)), mode="valid")
    array([[2.]])
    """
    return _plane(in1, in2, mode, boundary, fillvalue, True)
