"""Convolution on a device, where a launch costs more than a pass over a small array: windows are copied all at once.

The windows of an array are a view of it, with axes for the places in the kernel. One copy makes a matrix of them, whose
product with the weights is the convolution, and with the cotangent the weights' derivative. The input's derivative is
one product for all places in the kernel, and a sum over a view in which each place's part is shifted to where it
belongs. What stands between is made in pieces, of as many bytes as the operands and the result have together.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from fad.backends import backend_of
from fad.ops.products.windows import by_group, find_taps, margins, output_size, pad_last_axes

SMALLEST = 1 << 22  # bytes of a piece, below which launches cost more than the memory is worth


def _pieces(n: int, nbytes: int, beside: int) -> list[slice]:
    """Cut an axis of length `n` so that each piece has at most the bytes of what is there beside it, if it can be."""
    step = max(1, n * max(beside, SMALLEST) // max(nbytes, 1))
    step = -(-n // max(1, -(-n // step)))  # pieces of about one size
    return [slice(a, a + step) for a in range(0, max(n, 1), max(step, 1))]


def _windows(x: Any, kernel: tuple, stride: tuple, dilation: tuple, out: tuple) -> Any:
    """Return a view of the windows of a (C, N, *spatial) array, (C, *kernel, N, *out)."""
    by_channel, by_example, *by_place = x.strides
    shape = (x.shape[0], *kernel, x.shape[1], *out)
    of_kernel = [s * d for s, d in zip(by_place, dilation, strict=True)]
    of_out = [s * d for s, d in zip(by_place, stride, strict=True)]
    return backend_of(x).as_strided(x, shape, (by_channel, *of_kernel, by_example, *of_out))


def _product(a: Any, b: Any) -> Any:
    """Multiply matrices by group; a stack of one is no stack, which the device would copy to transpose."""
    multiply = backend_of(a).matmul
    return multiply(a, b) if len(a) > 1 else multiply(a[0], b[0])[None]


def conv(x, w, *, stride, padding, dilation, groups):
    n, kernel = x.shape[0], w.shape[2:]
    out = output_size(x.shape[2:], kernel, stride, padding, dilation)
    windows = _windows(pad_last_axes(x.swapaxes(0, 1), padding), kernel, stride, dilation, out)
    weights = w.reshape(groups, w.shape[0] // groups, math.prod(w.shape[1:]))
    dtype = np.result_type(x, w)
    size = w.shape[0] * n * math.prod(out) * dtype.itemsize
    pieces = _pieces(n, windows.nbytes, x.nbytes + size)
    y: Any = None if len(pieces) == 1 else np.empty_like(x, shape=(w.shape[0], n, *out), dtype=dtype, order="C")
    for piece in pieces:
        part = windows[(slice(None),) * (1 + len(kernel)) + (piece,)]
        columns = part.reshape(groups, weights.shape[2], math.prod(part.shape[1 + len(kernel) :]))
        found = _product(weights, columns).reshape(w.shape[0], part.shape[1 + len(kernel)], *out)
        del columns  # before the next ones are made
        if y is None:
            return found.swapaxes(0, 1)
        y[:, piece] = found
        del found
    return y.swapaxes(0, 1)


def conv_kernel(x, c, *, kernel, stride, padding, dilation, groups):
    outputs, channels = c.shape[1] // groups, x.shape[1] // groups
    windows = _windows(pad_last_axes(x.swapaxes(0, 1), padding), kernel, stride, dilation, c.shape[2:])
    c = by_group(c.swapaxes(0, 1), groups)
    found = []
    if groups == 1:
        for piece in _pieces(channels, windows.nbytes, x.nbytes + c.nbytes):
            found.append(backend_of(c).matmul(c[0], windows[piece].reshape(-1, c.shape[2]).T))
        return _join(found, 1).reshape(outputs, channels, *kernel)
    for piece in _pieces(groups, windows.nbytes, x.nbytes + c.nbytes):
        part = c[piece].swapaxes(1, 2)  # a stack is copied to be transposed: the cotangent, not the windows
        lines = windows[piece.start * channels : piece.stop * channels]
        found.append(backend_of(c).matmul(lines.reshape(len(part), -1, c.shape[2]), part))
    return _join(found, 0).swapaxes(1, 2).reshape(groups * outputs, channels, *kernel)


def _join(found: list, axis: int) -> Any:
    return found[0] if len(found) == 1 else np.concatenate(found, axis)


def conv_input(c, w, *, size, stride, padding, dilation, groups):
    n, out, kernel = c.shape[0], c.shape[2:], w.shape[2:]
    channels = groups * w.shape[1]
    settings = {"stride": stride, "padding": padding, "dilation": dilation}
    wide = margins(size, out, kernel, settings)
    weights = w.reshape(groups, w.shape[0] // groups, math.prod(w.shape[1:])).swapaxes(1, 2)
    c = c.swapaxes(0, 1)
    x = np.empty_like(c, shape=(channels, n, *size), dtype=np.result_type(c, w), order="C")
    reach = [m + lo + hi for m, (lo, hi) in zip(out, wide, strict=True)]
    nbytes = channels * math.prod(kernel) * n * math.prod(reach) * x.dtype.itemsize
    for piece in _pieces(n, nbytes, c.nbytes + x.nbytes):
        part = pad_last_axes(c[:, piece], wide)
        found = _product(weights, by_group(part, groups)).reshape(channels, *kernel, *part.shape[1:])
        del part
        _add_up(found, x[:, piece], [lo for lo, _ in wide], settings)
        del found  # before the next is made
    return x.swapaxes(0, 1)


def _add_up(parts: Any, x: Any, low: list, settings: dict) -> None:
    """Sum the (C, *kernel, N, *out) parts into the places of a (C, N, *spatial) array that they came from.

    The outputs begin `low` places before their own. The same places in the kernel reach all places of the array whose
    remainders by the stride are equal, so these are one sum, over a view.
    """
    stride, spatial = settings["stride"], x.shape[2:]
    k = len(spatial)
    by_channel, by_example = parts.strides[0], parts.strides[1 + k]
    of_kernel, of_out = parts.strides[1 : 1 + k], parts.strides[2 + k :]
    taps = zip(parts.shape[1 : 1 + k], settings["dilation"], stride, settings["padding"], spatial, strict=True)
    axes = [[(r, find_taps(r + lo, m, d, s)) for r in range(min(s, size))] for m, d, s, (lo, _), size in taps]
    for chosen in itertools.product(*axes):
        place = x[(slice(None), slice(None), *[slice(r, None, s) for (r, _), s in zip(chosen, stride, strict=True)])]
        reached = [found for _, found in chosen]
        if not all(reached):
            place[...] = 0
            continue
        first = [slice(found[0][0], None) for found in reached]
        start = [slice(found[0][1] + lo, None) for found, lo in zip(reached, low, strict=True)]
        steps = [
            (f[1][0] - f[0][0]) * a + (f[1][1] - f[0][1]) * b if len(f) > 1 else 0
            for f, a, b in zip(reached, of_kernel, of_out, strict=True)
        ]
        view = backend_of(parts).as_strided(
            parts[(slice(None), *first, slice(None), *start)],
            (x.shape[0], *map(len, reached), *place.shape[1:]),
            (by_channel, *steps, by_example, *of_out),
        )
        np.sum(view, axis=tuple(range(1, 1 + k)), out=place)
