"""The geometry of windows that convolution and pooling share: settings, places, and what reaches where."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fad.errors import ShapeMismatchError

# --- settings, as users give them ------------------------------------------------------------------------------------


def per_axis(value: Any, n: int, name: str) -> tuple:
    """Return one positive integer per spatial axis."""
    values = (value,) * n if hasattr(value, "__index__") else tuple(value)
    if len(values) != n:
        raise ShapeMismatchError(f"{name}={value!r} has {len(values)} entries, but there are {n} spatial axes")
    values = tuple(int(v) for v in values)
    if min(values, default=1) < 1:
        raise ValueError(f"{name} must be positive, but it is {value!r}")
    return values


def pads(padding: Any, size: tuple, kernel: tuple, stride: tuple, dilation: tuple) -> tuple:
    """Return the padding as a pair per spatial axis, from an int, ints, pairs, "valid" or "same"."""
    if padding == "valid":
        return ((0, 0),) * len(size)
    if padding == "same":
        totals = [
            max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
            for n, k, s, d in zip(size, kernel, stride, dilation, strict=True)
        ]
        return tuple((t // 2, t - t // 2) for t in totals)
    if isinstance(padding, str):
        raise ValueError(f"padding must be 'same', 'valid', an int, or one int or pair per axis, not {padding!r}")
    values = (padding,) * len(size) if hasattr(padding, "__index__") else tuple(padding)
    if len(values) != len(size):
        raise ShapeMismatchError(
            f"padding={padding!r} has {len(values)} entries, but there are {len(size)} spatial axes"
        )
    pairs = tuple((int(p), int(p)) if hasattr(p, "__index__") else (int(p[0]), int(p[1])) for p in values)
    if min((p for pair in pairs for p in pair), default=0) < 0:
        raise ValueError(f"padding must not be negative, but it is {padding!r}")
    return pairs


# --- places ----------------------------------------------------------------------------------------------------------


def output_size(size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> tuple:
    """Return the spatial shape of a convolution's or a pooling's result."""
    return tuple(
        (n + lo + hi - d * (k - 1) - 1) // s + 1
        for n, k, s, (lo, hi), d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


def pad_last_axes(x: Any, padding: Sequence, value: float = 0.0) -> Any:
    """Widen the last axes of a plain array by a constant."""
    if not any(lo or hi for lo, hi in padding):
        return x
    lead = x.ndim - len(padding)
    spatial = tuple(n + lo + hi for n, (lo, hi) in zip(x.shape[lead:], padding, strict=True))
    shape = x.shape[:lead] + spatial
    out = np.full_like(x, value, shape=shape) if value else np.zeros_like(x, shape=shape)  # which a device need not run
    inner = tuple(slice(lo, lo + n) for n, (lo, _) in zip(x.shape[lead:], padding, strict=True))
    out[(Ellipsis, *inner)] = x
    return out


def taps(kernel: tuple, stride: tuple, dilation: tuple, out: tuple) -> list:
    """Return for each place in the kernel the slices of the (padded) input that it meets."""
    axes = [
        [slice(i * d, i * d + s * (m - 1) + 1, s) for i in range(k)]
        for k, s, d, m in zip(kernel, stride, dilation, out, strict=True)
    ]
    return list(itertools.product(*axes))


def find_taps(place: int, kernel: int, dilation: int, stride: int) -> list[tuple[int, int]]:
    """Return the taps that reach a place of the padded input, and the output that each of them belongs to."""
    return [(i, (place - i * dilation) // stride) for i in range(kernel) if (place - i * dilation) % stride == 0]


def margins(size: tuple, out: tuple, kernel: tuple, p: dict) -> list[tuple[int, int]]:
    """Return how far outside of its spatial axes the derivative in the input reads the output, on both sides."""
    found = []
    for n, m, k, s, d, (lo, _) in zip(size, out, kernel, p["stride"], p["dilation"], p["padding"], strict=True):
        low, high = 0, m - 1
        for r in range(min(s, n)):
            taps = [t for _, t in find_taps(r + lo, k, d, s)]
            if taps:
                low, high = min(low, *taps), max(high, max(taps) + -(-(n - r) // s) - 1)
        found.append((-low, high - m + 1))
    return found


def by_group(x: Any, groups: int) -> Any:
    """Return a (channels, N, *spatial) array as one matrix per group."""
    return x.reshape(groups, x.shape[0] // groups, math.prod(x.shape[1:]))
