"""Convolutions, poolings, padding and resizing as functions, in PyTorch's names: one for each number of axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad.nn.fused import counting
from fad.ops.products.conv import conv, conv_transpose
from fad.ops.products.conv import conv as conv1d
from fad.ops.products.conv import conv as conv2d
from fad.ops.products.conv import conv as conv3d
from fad.ops.products.conv import conv_transpose as conv_transpose1d
from fad.ops.products.conv import conv_transpose as conv_transpose2d
from fad.ops.products.conv import conv_transpose as conv_transpose3d
from fad.ops.products.pooling import avg_pool, max_pool
from fad.ops.products.windows import output_size, per_axis, taps
from fad.typing import Array

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d", "channel_shuffle", "conv", "conv1d",
    "conv2d", "conv3d", "conv_transpose", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold",
    "interpolate", "max_pool", "max_pool1d", "max_pool2d", "max_pool3d", "pad", "pixel_shuffle", "pixel_unshuffle",
    "unfold",
]  # fmt: skip

_window_counts = output_size  # of which `fold` has an argument
_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


# --- pooling -------------------------------------------------------------------------------------------------------


def _ends(x: Any, window: tuple, stride: tuple, padding: tuple, dilation: tuple) -> tuple:
    """Return how much to pad at each end so that a window that begins in the input is not dropped (``ceil_mode``)."""
    pairs = []
    for n, k, s, p, d in zip(x.shape[-len(window) :], window, stride, padding, dilation, strict=True):
        span = n + 2 * p - d * (k - 1) - 1
        count = -(-span // s) + 1
        if (count - 1) * s >= n + p:
            count -= 1
        pairs.append((p, p + max((count - 1) * s - span, 0)))
    return tuple(pairs)


def pool_max(x: Any, dims: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    window = per_axis(kernel_size, dims, "kernel_size")
    if not ceil_mode:
        return max_pool(x, window, stride, padding, dilation)
    stride = window if stride is None else per_axis(stride, dims, "stride")
    dilation = per_axis(dilation, dims, "dilation")
    return max_pool(x, window, stride, _ends(x, window, stride, _each(padding, dims), dilation), dilation)


def pool_avg(
    x: Any, dims: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Any:
    window = per_axis(kernel_size, dims, "kernel_size")
    if not ceil_mode:
        return avg_pool(x, window, stride, padding, count_include_pad)
    stride = window if stride is None else per_axis(stride, dims, "stride")
    pairs = _ends(x, window, stride, _each(padding, dims), (1,) * dims)
    if count_include_pad:  # the padding counts, but not what was added for the last window
        x = np.pad(x, [(0, 0)] * (x.ndim - dims) + [(p, p) for p, _ in pairs])
        pairs = tuple((0, end - p) for p, end in pairs)
    return avg_pool(x, window, stride, pairs, False)


def _each(padding: Any, dims: int) -> tuple:
    return (padding,) * dims if hasattr(padding, "__index__") else tuple(padding)


def _make_pool(dims: int, kind: str) -> Callable:
    pool: Any
    if kind == "max":

        def pool(
            x: Array, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
        ) -> Array:  # fmt: skip
            return pool_max(x, dims, kernel_size, stride, padding, dilation, ceil_mode)

    else:

        def pool(
            x: Array, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        ) -> Array:  # fmt: skip
            return pool_avg(x, dims, kernel_size, stride, padding, ceil_mode, count_include_pad)

    pool.__name__ = pool.__qualname__ = f"{kind}_pool{dims}d"
    what, most = {"max": ("maximum", 1.0), "avg": ("mean", 0.5**dims)}[kind]
    x = f"np.eye(1, {2**dims}).reshape(1, 1{', 2' * dims})"
    pool.__doc__ = f"""Return the {what} of windows over the last axes, {dims} in number.

    >>> fad.nn.functional.{pool.__name__}({x}, 2).ravel()
    {np.array([most])!r}
    """
    return pool


max_pool1d, max_pool2d, max_pool3d = (_make_pool(dims, "max") for dims in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_make_pool(dims, "avg") for dims in (1, 2, 3))


def _bins(n: int, count: int) -> list[tuple[int, int]]:
    """Return where `count` windows that cover n places begin and end."""
    return [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]


def _adaptive(x: Any, sizes: Any, dims: int, reduce: Callable) -> Any:
    sizes = (sizes,) * dims if sizes is None or hasattr(sizes, "__index__") else tuple(sizes)
    for axis, size in zip(range(x.ndim - dims, x.ndim), sizes, strict=True):
        n = x.shape[axis]
        if size is None or size == n:
            continue
        before = (slice(None),) * axis
        if size < 0:
            raise ValueError(f"output_size counts windows, and cannot be negative: {sizes}")
        if size == 0:
            x = x[(*before, slice(0))]
            continue
        if n % size == 0:  # windows of one size, side by side
            x = reduce(x.reshape(*x.shape[:axis], size, n // size, *x.shape[axis + 1 :]), axis=axis + 1)
            continue
        x = np.stack([reduce(x[(*before, slice(a, b))], axis=axis) for a, b in _bins(n, size)], axis=axis)
    return x


def adaptive_avg_pool1d(x: Array, output_size: int | Sequence[int]) -> Array:
    """Return means over the last axis, of windows that cover it, `output_size` in number.

    >>> fad.nn.functional.adaptive_avg_pool1d(np.arange(4.0).reshape(1, 1, 4), 2)
    array([[[0.5, 2.5]]])
    """
    return _adaptive(x, output_size, 1, np.mean)


def adaptive_avg_pool2d(x: Array, output_size: int | Sequence[int]) -> Array:
    """Return means over the last two axes, `output_size` (one number, or two; None keeps an axis) along each.

    >>> adaptive_avg_pool2d(np.arange(16.0).reshape(1, 4, 4), (1, 2))
    array([[[6.5, 8.5]]])
    """
    return _adaptive(x, output_size, 2, np.mean)


def adaptive_avg_pool3d(x: Array, output_size: int | Sequence[int]) -> Array:
    """Return means over the last three axes, `output_size` (one number, or three; None keeps an axis) along each.

    >>> fad.nn.functional.adaptive_avg_pool3d(np.ones((1, 2, 4, 4, 4)), 1).shape
    (1, 2, 1, 1, 1)
    """
    return _adaptive(x, output_size, 3, np.mean)


def adaptive_max_pool1d(x: Array, output_size: int | Sequence[int]) -> Array:
    """Return maxima over the last axis, of windows that cover it, `output_size` in number.

    >>> fad.nn.functional.adaptive_max_pool1d(np.arange(4.0).reshape(1, 1, 4), 2)
    array([[[1., 3.]]])
    """
    return _adaptive(x, output_size, 1, np.max)


def adaptive_max_pool2d(x: Array, output_size: int | Sequence[int]) -> Array:
    """Return maxima over the last two axes, `output_size` (one number, or two; None keeps an axis) along each.

    >>> fad.nn.functional.adaptive_max_pool2d(np.arange(4.0).reshape(1, 1, 2, 2), 1)
    array([[[[3.]]]])
    """
    return _adaptive(x, output_size, 2, np.max)


def adaptive_max_pool3d(x: Array, output_size: int | Sequence[int]) -> Array:
    """Return maxima over the last three axes, `output_size` (one number, or three; None keeps an axis) along each.

    >>> fad.nn.functional.adaptive_max_pool3d(np.ones((1, 2, 4, 4, 4)), 1).shape
    (1, 2, 1, 1, 1)
    """
    return _adaptive(x, output_size, 3, np.max)


# --- padding and resizing ------------------------------------------------------------------------------------------


def pad(x: Array, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> Array:
    """Return x with its last axes made longer: `pad` is (before, after) of the last axis, then of the one before it ...

    `mode` is ``"constant"`` (filled with `value`), ``"reflect"``, ``"replicate"`` or ``"circular"``; negative numbers
    cut off.

    >>> pad(np.array([1.0, 2.0, 3.0]), (1, 2), "replicate")
    array([1., 1., 2., 3., 3., 3.])
    """
    if mode not in _PAD_MODES:
        raise ValueError(f"mode must be one of {sorted(_PAD_MODES)}, not {mode!r}")
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ValueError(f"pad has {len(pad)} numbers, but needs a pair for each of at most {x.ndim} axes")
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    if any(p < 0 for pair in pairs for p in pair):
        x = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, pairs, strict=True))]
        pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if mode == "constant":
        return np.pad(x, pairs, constant_values=value)
    return np.pad(x, pairs, mode=_PAD_MODES[mode])  # type: ignore[call-overload]


def interpolate(
    x: Array, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool = False,
) -> Array:  # fmt: skip
    """Return ``(N, C, *spatial)`` resized to `size`, or by `scale_factor`, along each spatial axis.

    `mode` is ``"nearest"``, or ``"linear"`` (of images ``"bilinear"``), between neighbours, of images ``"bicubic"``,
    between four of them along each axis (R. Keys, 1981, with a = -0.75), or ``"area"``, means of what is covered;
    `align_corners` puts the first and last places on each other instead of the edges of the pixels.

    >>> interpolate(np.array([[[0.0, 2.0]]]), 4, mode="linear")
    array([[[0. , 0.5, 1.5, 2. ]]])
    """
    dims = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate needs a size or a scale_factor, and not both")
    named = {1: "linear", 2: "bilinear", 3: "trilinear"}.get(dims), "bicubic" if dims == 2 else None
    if mode not in ("nearest", "area", "linear", *named):
        raise ValueError(f"mode {mode!r} is not known for an input with {dims} spatial axes")
    given: Any = size if scale_factor is None else scale_factor
    given = (given,) * dims if np.ndim(given) == 0 else tuple(given)
    for axis, value in zip(range(2, x.ndim), given, strict=True):
        n = x.shape[axis]
        count = int(value) if scale_factor is None else int(n * value)
        step = n / count if scale_factor is None else 1.0 / value
        if mode == "area":
            x = _adaptive(x, (*(None,) * (axis - 2), count, *(None,) * (dims - axis + 1)), dims, np.mean)
        elif mode == "bicubic":
            even = counting(count, x) * ((n - 1) / max(count - 1, 1))
            x = _between_four(x, axis, even if align_corners else (counting(count, x) + 0.5) * step - 0.5)
        elif mode == "nearest":
            x = np.take(x, np.minimum((counting(count, x) * step).astype(int), n - 1), axis=axis)
        elif align_corners:
            x = _between(x, axis, counting(count, x) * ((n - 1) / max(count - 1, 1)))
        else:
            x = _between(x, axis, np.maximum((counting(count, x) + 0.5) * step - 0.5, 0.0))
    return x


def _between(x: Any, axis: int, places: Any) -> Any:
    """Return x along an axis at places between its elements."""
    low = np.minimum(places.astype(int), x.shape[axis] - 1)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    share = (places - low).astype(x.dtype).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    below = np.take(x, low, axis=axis)
    return below + share * (np.take(x, high, axis=axis) - below)


def _between_four(x: Any, axis: int, places: Any) -> Any:
    """Return x along an axis at places between its elements, by a cubic through the four around."""
    low = np.floor(places)
    t = (places - low).astype(x.dtype).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    a, last = -0.75, x.shape[axis] - 1
    near = lambda d: ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    far = lambda d: ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    weights = far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)
    total = 0.0
    for k, weight in enumerate(weights):
        total = total + weight * np.take(x, np.clip(low.astype(int) + k - 1, 0, last), axis=axis)
    return total


def pixel_shuffle(x: Array, upscale_factor: int) -> Array:
    """Return (..., C r², H, W) as (..., C, H r, W r): channels become places, r = `upscale_factor`.

    >>> fad.nn.functional.pixel_shuffle(np.ones((1, 4, 2, 2)), 2).shape
    (1, 1, 4, 4)
    """
    r = upscale_factor
    *lead, channels, h, w = x.shape
    if channels % (r * r):
        raise ValueError(f"pixel_shuffle by {r} needs a multiple of {r * r} channels, not {channels}")
    n = len(lead)
    y = x.reshape(*lead, channels // (r * r), r, r, h, w)
    y = np.transpose(y, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return y.reshape(*lead, channels // (r * r), h * r, w * r)


def pixel_unshuffle(x: Array, downscale_factor: int) -> Array:
    """Return (..., C, H r, W r) as (..., C r², H, W): the inverse of :func:`pixel_shuffle`, r = `downscale_factor`.

    >>> fad.nn.functional.pixel_unshuffle(np.ones((1, 1, 4, 4)), 2).shape
    (1, 4, 2, 2)
    """
    r = downscale_factor
    *lead, channels, h, w = x.shape
    if h % r or w % r:
        raise ValueError(f"pixel_unshuffle by {r} needs a height and a width that it divides, not {h} and {w}")
    n = len(lead)
    y = x.reshape(*lead, channels, h // r, r, w // r, r)
    y = np.transpose(y, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return y.reshape(*lead, channels * r * r, h // r, w // r)


def channel_shuffle(x: Array, groups: int) -> Array:
    """Return (N, C, ...) with the channels of the groups dealt in turn.

    >>> channel_shuffle(np.arange(4.0).reshape(1, 4, 1), 2).ravel()
    array([0., 2., 1., 3.])
    """
    if x.shape[1] % groups:
        raise ValueError(f"channel_shuffle needs a number of groups that divides {x.shape[1]} channels, not {groups}")
    y = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    return np.swapaxes(y, 1, 2).reshape(x.shape)


# --- windows as columns ----------------------------------------------------------------------------------------------


def unfold(
    x: Array, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Array:  # fmt: skip
    """Return the windows of images as columns: (N, C, H, W) -> (N, C kh kw, number of windows).

    >>> unfold(np.arange(4.0).reshape(1, 1, 2, 2), (1, 2))
    array([[[0., 2.],
            [1., 3.]]])
    """
    if x.ndim == 3:
        return unfold(x[None], kernel_size, dilation, padding, stride)[0]
    kernel, dilation, stride = (per_axis(v, 2, "kernel_size") for v in (kernel_size, dilation, stride))
    padding = _each(padding, 2)
    pairs = tuple((p, p) for p in padding)
    rows, columns = output_size(x.shape[2:], kernel, stride, pairs, dilation)
    x = np.pad(x, [(0, 0), (0, 0), *pairs]) if any(padding) else x
    parts = [x[(slice(None), slice(None), *tap)] for tap in taps(kernel, stride, dilation, (rows, columns))]
    y = np.stack(parts, axis=2)
    return y.reshape(x.shape[0], x.shape[1] * len(parts), rows * columns)


def fold(
    x: Array, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1,
) -> Array:  # fmt: skip
    """Return images of the columns of :func:`unfold`, of which those that overlap are added: the transpose of it.

    >>> fold(np.ones((1, 2, 3)), (1, 4), (1, 2))
    array([[[[1., 2., 2., 1.]]]])
    """
    if x.ndim == 2:
        return fold(x[None], output_size, kernel_size, dilation, padding, stride)[0]
    size, kernel, dilation, stride = (
        per_axis(v, 2, "output_size") for v in (output_size, kernel_size, dilation, stride)
    )
    padding = _each(padding, 2)
    counts = _window_counts(size, kernel, stride, tuple((p, p) for p in padding), dilation)
    taken = math.prod(kernel)
    if x.shape[1] % taken or x.shape[2] != math.prod(counts):
        raise ValueError(
            f"fold to {size} with windows of {kernel} needs (N, C * {taken}, {math.prod(counts)}), not {x.shape}"
        )
    channels = x.shape[1] // taken
    units = (counting(taken, x)[:, None] == counting(taken, x)).astype(x.dtype).reshape(1, taken, *kernel)
    weight = np.broadcast_to(units, (channels, taken, *kernel)).reshape(channels * taken, 1, *kernel)
    ends = [n + 2 * p - d * (k - 1) - 1 - (m - 1) * s
            for n, p, d, k, m, s in zip(size, padding, dilation, kernel, counts, stride, strict=True)]  # fmt: skip
    columns = x.reshape(x.shape[0], x.shape[1], *counts)
    return conv_transpose(columns, weight, None, stride, padding, tuple(ends), dilation, channels)
