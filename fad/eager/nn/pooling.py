"""Maxima of windows with their places, and the inverse: what ``return_indices`` and `MaxUnpool2d` are for."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.eager.tensor import Tensor
from fad.nn.functional import unfold
from fad.ops.products.conv import output_size as sizes_of
from fad.ops.products.conv import per_axis


def _pairs(padding: Any) -> tuple:
    return tuple((p, p) for p in ((padding, padding) if hasattr(padding, "__index__") else padding))


def places_of_maxima(x: np.ndarray, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> np.ndarray:
    """Return where in its (flattened) image the first greatest element of each window lies: (N, C, h, w)."""
    n, channels, height, width = x.shape
    pairs = ((0, 0), (0, 0), *padding)
    numbers = np.pad(np.arange(height * width).reshape(1, 1, height, width), pairs)
    columns = unfold(np.pad(x, pairs, constant_values=-np.inf), kernel, dilation, 0, stride)
    columns = columns.reshape(n, channels, kernel[0] * kernel[1], -1)
    places = unfold(numbers, kernel, dilation, 0, stride)[0]
    best = np.argmax(columns, axis=2)
    rows, cols = sizes_of((height, width), kernel, stride, padding, dilation)
    return places[best, np.arange(best.shape[-1])].reshape(n, channels, rows, cols)


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1
) -> tuple[Tensor, Tensor]:
    """Return ``(maxima, places)`` of windows of images; the derivative goes to the element at the place."""
    if input.ndim == 3:
        values, places = max_pool2d_with_indices(input.unsqueeze(0), kernel_size, stride, padding, dilation)
        return values.squeeze(0), places.squeeze(0)
    kernel = per_axis(kernel_size, 2, "kernel_size")
    step = kernel if stride is None else per_axis(stride, 2, "stride")
    step_inside = per_axis(dilation, 2, "dilation")
    places = places_of_maxima(np.asarray(input.detach()), kernel, step, _pairs(padding), step_inside)
    flat = Tensor(places.reshape(*places.shape[:2], -1))
    return input.flatten(2).gather(2, flat).reshape(places.shape), Tensor(places)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Return images with the elements put back to the places that ``return_indices`` gave, zero elsewhere."""
    kernel = per_axis(kernel_size, 2, "kernel_size")
    step = kernel if stride is None else per_axis(stride, 2, "stride")
    if output_size is None:
        ends = _pairs(padding)
        four = zip(input.shape[-2:], step, ends, kernel, strict=True)
        size = tuple((n - 1) * s - 2 * p[0] + k for n, s, p, k in four)
    else:
        size = tuple(int(n) for n in output_size)[-2:]
    lead = tuple(input.shape[:-2])
    blank = Tensor(np.zeros((*lead, size[0] * size[1]), input.dtype))
    return blank.scatter(len(lead), indices.flatten(-2), input.flatten(-2)).reshape((*lead, *size))
