"""autograd.scipy.signal: convolution over chosen axes."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["convolve"]


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """Convolve two arrays over `axes`, contracting `dot_axes`; the other axes multiply as in an outer product.

    Parameters
    ----------
    A, B : arrays
    axes : pair of lists of int
        The axes to convolve; by default all.
    dot_axes : pair of lists of int
        The axes to sum over.
    mode : "full", "valid", or "same": the middle of the full result, in the size of `A`

    Examples
    --------
    >>> convolve(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([1., 3., 2.])
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode of convolve must be 'full', 'valid' or 'same', not {mode!r}")
    if axes is None:
        axes = (list(range(np.ndim(A))), list(range(np.ndim(B))))
    a_axes, b_axes = ([i % np.ndim(x) for i in group] for x, group in zip((A, B), axes, strict=True))
    a_dot, b_dot = ([i % np.ndim(x) for i in group] for x, group in zip((A, B), dot_axes, strict=True))
    if mode == "valid" and any(A.shape[i] < B.shape[j] for i, j in zip(a_axes, b_axes, strict=True)):
        A, B, a_axes, b_axes, a_dot, b_dot, swapped = B, A, b_axes, a_axes, b_dot, a_dot, True
    else:
        swapped = False
    kept = [(B.shape[j] - 1) // 2 for j in b_axes], [A.shape[i] for i in a_axes]
    if mode != "valid":
        widths = [(B.shape[b_axes[a_axes.index(i)]] - 1,) * 2 if i in a_axes else (0, 0) for i in range(np.ndim(A))]
        A = np.pad(A, widths)
    full = _windows_times(A, B, a_axes, b_axes, a_dot, b_dot, swapped)
    if mode != "same" or not a_axes:
        return full
    return full[(..., *[slice(start, start + size) for start, size in zip(*kept, strict=True)])]


def _windows_times(A, B, a_axes, b_axes, a_dot, b_dot, swapped):
    a_rest = [i for i in range(np.ndim(A)) if i not in (*a_axes, *a_dot)]
    b_rest = [i for i in range(np.ndim(B)) if i not in (*b_axes, *b_dot)]
    B = np.flip(B, tuple(b_axes)) if b_axes else B
    sizes = [A.shape[i] - B.shape[j] + 1 for i, j in zip(a_axes, b_axes, strict=True)]
    total: Any = 0.0
    for offset in np.ndindex(*(B.shape[j] for j in b_axes)):
        a = A[tuple(_window(i, a_axes, offset, sizes) for i in range(np.ndim(A)))]
        b = B[tuple(offset[b_axes.index(j)] if j in b_axes else slice(None) for j in range(np.ndim(B)))]
        left = [b_dot[k] - sum(j < b_dot[k] for j in b_axes) for k in range(len(b_dot))]
        total = total + np.tensordot(a, b, axes=(a_dot, left))
    return _order(total, a_rest, a_axes, a_dot, b_rest, swapped)


def _window(i, axes, offset, sizes):
    if i not in axes:
        return slice(None)
    k = axes.index(i)
    return slice(offset[k], offset[k] + sizes[k])


def _order(total, a_rest, a_axes, a_dot, b_rest, swapped):
    """Put the axes in autograd's order: the rest of A, the rest of B, the convolved ones."""
    kept = [i for i in sorted((*a_rest, *a_axes)) if i not in a_dot]
    first = [kept.index(i) for i in a_rest]
    conv = [kept.index(i) for i in a_axes]
    second = list(range(len(kept), len(kept) + len(b_rest)))
    order = (second + first if swapped else first + second) + conv
    return np.transpose(total, order)
