"""Filters of images of any number of dimensions: correlations with small arrays, and what is made of them.

What lies beyond an edge is put there first, and then everything is one valid convolution (see
`fad.scipy.signal.convolution`). Weights may be traced as well as images; so may the width of a Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitives.archetypes import cast
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.values import stop_gradient
from fad.core.tracing.views import root_of
from fad.errors import MissingRuleError, TracerConversionError, UnsupportedInputError
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.scipy.kernels import backwards, convolve_p, cost_of
from fad.scipy.registration import registrar

register_function = registrar("ndimage", order="C")

MODES: dict[str, Any] = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


def beyond(x: Any, widths: list, mode: str, cval: Any) -> Any:
    """Extend an image on both sides of each axis, in SciPy's modes."""
    if mode not in MODES:
        raise RuntimeError("boundary mode not supported")
    if mode.endswith("constant"):
        return np.pad(x, widths, constant_values=cval)
    return np.pad(x, widths, MODES[mode])


def per_axis(value: Any, n: int) -> list:
    """Return a setting for each of n axes."""
    if isinstance(value, str) or not np.ndim(value):
        return [value] * n
    if len(value) != n:
        raise RuntimeError("sequence argument must have length equal to input rank")
    return [value[i] for i in range(n)]


def choose_axes(axes: Any, ndim: int) -> tuple:
    if axes is None:
        return tuple(range(ndim))
    found = tuple(normalize_axis(a, ndim) for a in (axes if np.ndim(axes) else [axes]))
    if len(set(found)) < len(found):
        raise ValueError("axes must be unique")
    return found


def in_dtype(y: Any, x: Any, output: Any) -> Any:
    """Return a result in the dtype that SciPy gives it: that of the image, unless `output` names one or is an array."""
    if output is None:
        wanted = np.result_type(x.dtype, np.complex64) if y.dtype.kind == "c" and x.dtype.kind != "c" else x.dtype
        return cast(y, np.dtype(wanted))
    if type(output) is Tracer:
        if output.shape != y.shape:
            raise RuntimeError("output shape not correct")
        output[...] = y.astype(output.dtype)
        return output
    if isinstance(output, np.ndarray):
        raise TracerConversionError(
            "a traced result was to be written into an array (output=) that is not made in the function under the "
            "transform. Make it there, or write y = f(x), and name at most a dtype"
        )
    return y.astype(output)


def _write_last(y: Any, x: Any, output: Any) -> Any:
    """Do the same for what SciPy computes of its image again when it has written a part of the result."""
    if type(output) is Tracer and type(x) is Tracer and root_of(output) is root_of(x):
        raise MissingRuleError(
            "SciPy overwrites its image here before it has read all of it (output= is the image itself). Write "
            "x[...] = f(x), or name another array"
        )
    return in_dtype(y, x, output)


def _filter_axis(x: Any, weights: Any, axes: tuple, mode: str, cval: Any, origins: list, output: Any) -> Any:
    """Correlate some axes of an image with weights, placed by their middle and `origins`."""
    sizes = weights.shape
    if any(not n for n in sizes):
        raise RuntimeError("filter weights array has incorrect shape.")
    widths = [(0, 0)] * x.ndim
    for axis, m, origin in zip(axes, sizes, origins, strict=True):
        before = m // 2 + int(origin)
        if not 0 <= before < m:
            raise ValueError("invalid origin")
        widths[axis] = (before, m - 1 - before)
    wide = beyond(x, widths, mode, cval)
    last = list(range(-len(axes), 0))
    method = cost_of(math.prod(x.shape[a] for a in axes), weights.size)
    kernel = backwards(weights, len(axes))
    y = bind(convolve_p, np.moveaxis(wide, axes, last), kernel, rank=len(axes), mode="valid", method=method)
    return in_dtype(np.moveaxis(y, last, axes), x, output)


def _mirror(m: int, origin: int) -> int:
    """Return the origin of a convolution's weights once they are reversed."""
    return -int(origin) - (m % 2 == 0)


_SOME_MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-wrap")


def _line_samples(s):
    return [call(s.real(3, 5), s.real(3), mode=m, cval=0.5) for m in _SOME_MODES] + [
        call(s.real(4, 2), s.real(2), axis=0), call(s.real(6), s.real(4), origin=1), call(s.real(2), s.real(7)),
        call(s.real(2), s.real(7), mode="wrap")]  # fmt: skip


def _vector(weights: Any) -> Any:
    weights = as_array(weights)
    weights = weights if weights.dtype.kind in "fc" else weights.astype(float)
    if weights.ndim != 1 or weights.shape[0] < 1:
        raise RuntimeError("no filter weights given")
    return weights


@register_function("correlate1d", samples=_line_samples)
def correlate1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Correlate along one axis: ``y[i] = sum_j weights[j] input[i + j - len(weights) // 2 - origin]``.

    >>> import numpy as np, fad
    >>> from fad.scipy.ndimage import correlate1d
    >>> fad.grad(lambda w: correlate1d(np.array([1.0, 2.0, 4.0]), w)[0])(np.ones(3))
    array([1., 1., 2.])
    """
    x, weights = as_array(input), _vector(weights)
    axis = normalize_axis(axis, x.ndim)
    return _filter_axis(x, np.conj(weights), (axis,), mode, cval, [origin], output)


@register_function("convolve1d", samples=_line_samples)
def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Convolve along one axis: `correlate1d` with the weights reversed.

    >>> fad.scipy.ndimage.convolve1d(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]))
    array([4., 6., 8.])
    >>> fad.grad(lambda w: fad.scipy.ndimage.convolve1d(np.array([1.0, 2.0, 3.0]), w)[1])(np.array([1.0, 1.0, 1.0]))
    array([3., 2., 1.])
    """
    x, weights = as_array(input), _vector(weights)
    axis = normalize_axis(axis, x.ndim)
    return _filter_axis(x, weights[::-1], (axis,), mode, cval, [_mirror(weights.shape[0], origin)], output)


def _plane_samples(s):
    return [call(s.real(3, 4), s.real(3, 2), mode=m, cval=0.5) for m in _SOME_MODES] + [
        call(s.real(3, 4), s.real(2, 4), origin=(0, -1)), call(s.real(5), s.real(3))]  # fmt: skip


def _both(input: Any, weights: Any, axes: Any) -> tuple:
    x, weights = as_array(input), as_array(weights)
    axes = choose_axes(axes, x.ndim)
    if weights.ndim != len(axes):
        raise RuntimeError(f"weights.ndim ({weights.ndim}) must match len(axes) ({len(axes)})")
    return x, weights if weights.dtype.kind in "fc" else weights.astype(float), axes


@register_function("correlate", samples=_plane_samples)
def correlate(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Correlate an image with weights of as many dimensions.

    >>> fad.scipy.ndimage.correlate(np.eye(3), np.ones((1, 3)))
    array([[2., 1., 0.],
           [1., 1., 1.],
           [0., 1., 2.]])
    """
    x, weights, axes = _both(input, weights, axes)
    return _filter_axis(x, np.conj(weights), axes, mode, cval, per_axis(origin, len(axes)), output)


@register_function("convolve", samples=_plane_samples)
def convolve(input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Convolve an image with weights of as many dimensions.

    >>> import numpy as np, fad
    >>> from fad.scipy.ndimage import convolve
    >>> fad.grad(lambda x: convolve(x, np.ones((2, 2)), mode="constant")[0, 0])(np.eye(2))
    array([[1., 1.],
           [1., 1.]])
    """
    x, weights, axes = _both(input, weights, axes)
    origins = [_mirror(m, o) for m, o in zip(weights.shape, per_axis(origin, len(axes)), strict=True)]
    return _filter_axis(x, backwards(weights, weights.ndim), axes, mode, cval, origins, output)


# --- Gaussians ------------------------------------------------------------------------------------------------------


def _gaussian(x: Any, sigma: Any, order: int, radius: int) -> Any:
    """Return a Gaussian's derivative of an order at whole numbers, over the sum of the Gaussian itself."""
    if order < 0:
        raise ValueError("order must be non-negative")
    places = like(x, np.arange(-radius, radius + 1).astype(float))
    variance = sigma * sigma
    bell = np.exp(-0.5 / variance * places**2)
    bell = bell / np.sum(bell)
    factors: list = [1.0]  # of the polynomial that the Gaussian is multiplied by, from the constant on
    for _ in range(order):  # (q e^-x²/2s²)' = (q' - q x/s²) e^-x²/2s²
        slope = [k * c for k, c in enumerate(factors)][1:]
        down = [0.0, *[-c / variance for c in factors]]
        factors = [d + (slope[k] if k < len(slope) else 0.0) for k, d in enumerate(down)]
    polynomial: Any = factors[-1]
    for c in factors[-2::-1]:
        polynomial = polynomial * places + c
    return bell * polynomial


@register_function(
    "gaussian_filter1d",
    samples=lambda s: [
        call(s.real(3, 5), 0.8),
        call(s.real(6, 2), 1.2, axis=0, order=1, mode="wrap"),
        call(s.real(7), 0.7, order=3, mode="constant", cval=0.3, truncate=3.0),
        call(s.real(5), 1.0, order=2, radius=2),
    ],
)
def gaussian_filter1d(
    input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None
):
    """Smooth along an axis by a Gaussian, or by its derivative of an order; `sigma` may be traced, too.

    How many samples it reaches follows from the value of `sigma`, and has no derivative.

    >>> import numpy as np, fad
    >>> from fad.scipy.ndimage import gaussian_filter1d
    >>> fad.grad(lambda s: gaussian_filter1d(np.array([0.0, 0.0, 1.0, 0.0, 0.0]), s)[2])(1.0).round(6)
    np.float64(-0.398915)
    """
    reach = int(truncate * float_of(sigma) + 0.5) if radius is None else radius
    if int(reach) != reach or reach < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    x = as_array(input)
    sigma = sigma if hasattr(sigma, "dtype") else float(sigma)
    weights = _gaussian(x, sigma, order, int(reach))
    return correlate1d(x, weights[::-1], axis, output, mode, cval, 0)


def float_of(x: Any) -> float:
    """Return the plain number behind a value on which only the size of a window depends."""
    return float(stop_gradient(x)) if type(x) is Tracer else float(x)


@register_function("gaussian_filter", samples=lambda s: [
    call(s.real(3, 4), 0.8), call(s.real(4, 3), (0.6, 1.0), order=(1, 0), mode=("wrap", "nearest"), truncate=2.0),
    call(s.real(2, 3, 2), 0.5, mode="constant", cval=0.2, radius=1), call(s.real(3, 2), (0.0, 0.7))])  # fmt: skip
def gaussian_filter(
    input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None, axes=None
):
    """Smooth an image by a Gaussian, one axis after the other; `sigma` may be traced, too.

    >>> fad.scipy.ndimage.gaussian_filter(np.array([0.0, 1.0, 0.0]), 1.0).round(3)
    array([0.296, 0.408, 0.296])
    >>> fad.grad(lambda s: fad.scipy.ndimage.gaussian_filter(np.array([0.0, 1.0, 0.0]), s)[1])(1.0).round(3)
    np.float64(-0.328)
    """
    x = as_array(input)
    axes = choose_axes(axes, x.ndim)
    settings = [per_axis(v, len(axes)) for v in (sigma, order, mode, radius)]
    y = x
    for axis, width, n, how, reach in zip(axes, *settings, strict=True):
        if float_of(width) > 1e-15:
            y = gaussian_filter1d(y, width, axis, n, None, how, cval, truncate, radius=reach)
    return in_dtype(y, x, output) if y is not x else in_dtype(x + 0.0, x, output)


# --- means, differences ---------------------------------------------------------------------------------------------


@register_function(
    "uniform_filter1d",
    samples=lambda s: [
        call(s.real(3, 5), 3),
        call(s.real(4, 2), 2, axis=0, mode="wrap"),
        call(s.real(5), 4, origin=1, mode="constant", cval=0.5),
    ],
)
def uniform_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Average along an axis over `size` samples.

    >>> fad.scipy.ndimage.uniform_filter1d(np.array([0.0, 3.0, 6.0]), 3)
    array([1., 3., 5.])
    """
    if size < 1:
        raise RuntimeError("incorrect filter size")
    x = as_array(input)
    weights = np.full_like(x, 1.0 / size, shape=(size,), dtype=float)
    return correlate1d(x, weights, axis, output, mode, cval, origin)


@register_function("uniform_filter", samples=lambda s: [
    call(s.real(3, 4)), call(s.real(4, 3), (2, 3), mode="nearest", origin=(0, 1)), call(s.real(4), 1)])  # fmt: skip
def uniform_filter(input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Average an image over boxes.

    >>> fad.scipy.ndimage.uniform_filter(np.array([0.0, 3.0, 6.0]), 3)
    array([1., 3., 5.])
    """
    x = as_array(input)
    axes = choose_axes(axes, x.ndim)
    y = x + 0.0
    for axis, n, how, at in zip(axes, *[per_axis(v, len(axes)) for v in (size, mode, origin)], strict=True):
        if n > 1:
            y = uniform_filter1d(y, int(n), axis, None, how, cval, at)
    return in_dtype(y, x, output)


def _derivative(input: Any, axis: int, output: Any, mode: Any, cval: Any, across: list) -> Any:
    x = as_array(input)
    axis = normalize_axis(axis, x.ndim)
    modes = per_axis(mode, x.ndim)
    y = correlate1d(x, like(x, np.array([-1.0, 0.0, 1.0])), axis, None, modes[axis], cval)
    for other in range(x.ndim):
        if other != axis:
            y = correlate1d(y, like(x, np.array(across)), other, None, modes[other], cval)
    return in_dtype(y, x, output)


def _edge_samples(s):
    return [
        call(s.real(3, 4)),
        call(s.real(4, 3), axis=0, mode="wrap"),
        call(s.real(2, 3, 3), mode="constant", cval=0.5),
    ]


@register_function("sobel", samples=_edge_samples)
def sobel(input, axis=-1, output=None, mode="reflect", cval=0.0):
    """Return Sobel's difference along an axis, smoothed across the others.

    >>> fad.scipy.ndimage.sobel(np.array([0.0, 1.0, 4.0, 9.0]))
    array([1., 4., 8., 5.])
    """
    return _derivative(input, axis, output, mode, cval, [1.0, 2.0, 1.0])


@register_function("prewitt", samples=_edge_samples)
def prewitt(input, axis=-1, output=None, mode="reflect", cval=0.0):
    """Return Prewitt's difference along an axis, summed across the others.

    >>> fad.scipy.ndimage.prewitt(np.array([0.0, 1.0, 4.0, 9.0]))
    array([1., 4., 8., 5.])
    """
    return _derivative(input, axis, output, mode, cval, [1.0, 1.0, 1.0])


def _sum_over_axes(x: Any, axes: tuple, mode: Any, part: Callable) -> Any:
    """Return the sum over axes of ``part(axis, mode)``, and zeros for no axes."""
    total: Any = None
    for axis, how in zip(axes, per_axis(mode, len(axes)), strict=True):
        total = part(axis, how) if total is None else total + part(axis, how)
    return np.zeros_like(x) if total is None else total


@register_function(
    "laplace",
    samples=lambda s: [
        call(s.real(3, 4)),
        call(s.real(5), mode="wrap"),
        call(s.real(3, 3), mode=("nearest", "mirror")),
    ],
)
def laplace(input, output=None, mode="reflect", cval=0.0, *, axes=None):
    """Return the sum of second differences.

    >>> fad.scipy.ndimage.laplace(np.array([0.0, 1.0, 4.0, 9.0]))
    array([ 1.,  2.,  2., -5.])
    """
    x = as_array(input)
    weights = like(x, np.array([1.0, -2.0, 1.0]))
    y = _sum_over_axes(x, choose_axes(axes, x.ndim), mode, lambda a, m: correlate1d(x, weights, a, None, m, cval))
    return _write_last(y, x, output)


@register_function("gaussian_laplace", samples=lambda s: [
    call(s.real(3, 4), 0.8), call(s.real(5), 0.6, mode="wrap", truncate=2.0),
])  # fmt: skip
def gaussian_laplace(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **kwargs):
    """Return the Laplacian of an image smoothed by a Gaussian.

    >>> fad.scipy.ndimage.gaussian_laplace(np.array([0.0, 0.0, 1.0, 0.0, 0.0]), 1.0).round(3)
    array([ 0.197,  0.002, -0.399,  0.002,  0.197])
    """
    x = as_array(input)
    axes = choose_axes(axes, x.ndim)

    def part(axis, how):
        order = [2 * (a == axis) for a in axes]
        return gaussian_filter(x, sigma, order, None, how, cval, axes=axes, **kwargs)

    return _write_last(_sum_over_axes(x, axes, mode, part), x, output)


@register_function("gaussian_gradient_magnitude", complex=False, samples=lambda s: [
    call(s.real(3, 4), 0.8), call(s.real(5), 0.6, mode="wrap", truncate=2.0)])  # fmt: skip
def gaussian_gradient_magnitude(input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **kwargs):
    """Return the length of the gradient of an image smoothed by a Gaussian; where it is zero, so is its derivative.

    >>> fad.scipy.ndimage.gaussian_gradient_magnitude(np.array([0.0, 1.0, 2.0, 3.0]), 1.0).round(3)
    array([0.363, 0.834, 0.834, 0.363])
    """
    x = as_array(input)
    if x.dtype.kind == "c":
        raise UnsupportedInputError(
            "gaussian_gradient_magnitude takes a real image here: of a complex one SciPy takes the root of a sum of "
            "complex squares, which is no length. Write it out with gaussian_filter(x, sigma, order=...)"
        )
    axes = choose_axes(axes, x.ndim)
    parts = []
    for axis, how in zip(axes, per_axis(mode, len(axes)), strict=True):
        order = [int(a == axis) for a in axes]
        parts.append(gaussian_filter(x, sigma, order, None, how, cval, axes=axes, **kwargs))
    return _write_last(np.linalg.norm(np.stack(parts), axis=0), x, output)
