"""Images at places between their pixels: affine maps of a grid, and sampling there (M. Jaderberg et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fad.nn.fused import counting
from fad.typing import Array

__all__ = ["affine_grid", "grid_sample"]


def affine_grid(theta: Array, size: Sequence[int], align_corners: bool = False) -> Array:
    """Return where an affine map sends each pixel: theta (N, 2, 3), size (N, C, H, W) -> (N, H, W, 2), x before y.

    The image goes from -1 to 1 in both directions, between its edges or, with `align_corners`, the middles of its
    outermost pixels.

    >>> affine_grid(np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2))
    array([[[[-0.5,  0. ],
             [ 0.5,  0. ]]]])
    """
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (2, 3):
        raise ValueError(f"affine_grid needs theta of shape (N, 2, 3), not {theta.shape}")
    height, width = size[-2:]
    x, y = (_middles(n, theta, align_corners) for n in (width, height))
    ones = np.ones_like(theta, shape=(height, width))
    places = np.stack([ones * x, ones * y[:, None], ones], axis=-1)
    return np.einsum("hwk,njk->nhwj", places, theta)


def _middles(n: int, like: Any, align_corners: bool) -> Any:
    i = counting(n, like).astype(like.dtype)
    if align_corners:
        return 2.0 * i / max(n - 1, 1) - 1.0 if n > 1 else 0.0 * i
    return (2.0 * i + 1.0) / n - 1.0


def grid_sample(
    x: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Array:
    """Return images (N, C, H, W) at the places of a grid (N, h, w, 2), x before y, each from -1 to 1: (N, C, h, w).

    `mode` is ``"bilinear"`` or ``"nearest"``; `padding_mode` says what lies outside: ``"zeros"``, ``"border"`` (the
    nearest pixel) or ``"reflection"``.

    >>> grid_sample(np.array([[[[1.0, 3.0]]]]), np.array([[[[0.0, 0.0]]]]))
    array([[[[2.]]]])
    """
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "mode must be 'bilinear' or 'nearest', padding_mode 'zeros', 'border' or 'reflection', not "
            f"{mode!r} and {padding_mode!r}"
        )
    if x.ndim != 4 or grid.ndim != 4 or grid.shape[-1] != 2:
        raise ValueError(f"grid_sample needs (N, C, H, W) and (N, h, w, 2), not {x.shape} and {grid.shape}")
    height, width = x.shape[2:]
    px, py = (
        _place(grid[..., k], n, padding_mode, align_corners) for k, n in ((0, width), (1, height))
    )
    if mode == "nearest":
        return _pixels(x, np.rint(px).astype(int), np.rint(py).astype(int))
    x0, y0 = np.floor(px), np.floor(py)
    right, below = px - x0, py - y0
    columns, rows = x0.astype(int), y0.astype(int)
    total = _pixels(x, columns, rows) * ((1.0 - right) * (1.0 - below))[:, None]
    total = total + _pixels(x, columns + 1, rows) * (right * (1.0 - below))[:, None]
    total = total + _pixels(x, columns, rows + 1) * ((1.0 - right) * below)[:, None]
    return total + _pixels(x, columns + 1, rows + 1) * (right * below)[:, None]


def _place(p: Any, n: int, padding_mode: str, align_corners: bool) -> Any:
    """Return a coordinate from -1 to 1 as one in pixels, brought inside as `padding_mode` says."""
    p = (p + 1.0) * (0.5 * (n - 1)) if align_corners else ((p + 1.0) * n - 1.0) * 0.5
    if padding_mode == "reflection":
        low, high = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
        span = high - low
        away = np.abs(p - low)
        turns = np.floor(away / span) if span else np.zeros_like(away)
        rest = away - turns * span
        p = low + (np.where(turns % 2 == 0, rest, span - rest) if span else 0.0 * away)
    return p if padding_mode == "zeros" else np.clip(p, 0.0, n - 1.0)


def _pixels(x: Any, columns: Any, rows: Any) -> Any:
    """Return the pixels of each image at (N, h, w) columns and rows, and zero outside: (N, C, h, w)."""
    n, channels, height, width = x.shape
    inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    flat = np.where(inside, rows * width + columns, 0).reshape(n, 1, -1)
    wide = np.broadcast_to(flat, (n, channels, flat.shape[-1]))
    found = np.take_along_axis(x.reshape(n, channels, height * width), wide, axis=2)
    return np.where(inside[:, None], found.reshape(n, channels, *columns.shape[1:]), 0.0)
