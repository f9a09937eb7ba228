"""Sorting, searching and counting elements of tensors."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from fad.eager.core.composite import composite
from fad.eager.core.records import name_user_line
from fad.eager.ops.nodes import as_array, without_derivative
from fad.eager.tensor import Tensor

Sorted = namedtuple("Sorted", "values indices")


def _choose(x: Tensor, order: np.ndarray, dim: int) -> Sorted:
    values = composite("SortBackward0", lambda v: np.take_along_axis(v, order, dim), x)
    return Sorted(values, Tensor(order))


def argsort(input: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """Return the indices that sort a tensor along an axis; equal elements stay in order."""
    value = np.asarray(input.detach())
    if not descending:
        return Tensor(np.argsort(value, dim, kind="stable"))
    back = np.argsort(np.flip(value, dim), dim, kind="stable")  # so that equal elements stay in order here too
    return Tensor(np.ascontiguousarray(np.flip(value.shape[dim] - 1 - back, dim)))


def sort(input: Tensor, dim: int = -1, descending: bool = False) -> Sorted:
    """Return ``(values, indices)`` in order along an axis."""
    return _choose(input, argsort(input, dim, descending).value, dim)


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """Return ``(values, indices)`` of the k largest (or smallest) elements along an axis, the best first."""
    order = argsort(input, dim, largest).value
    return _choose(input, np.take(order, np.arange(k), axis=dim), dim)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the middle element, of two the lower; over `dim`, ``(values, indices)``."""
    if dim is None:
        flat = input.reshape(-1)
        return name_user_line(flat[argsort(flat).value[(flat.shape[0] - 1) // 2]])
    order = np.take(argsort(input, dim).value, [(input.shape[dim] - 1) // 2], axis=dim)
    values, indices = _choose(input, order, dim)
    return Sorted(values, indices) if keepdim else Sorted(name_user_line(values.squeeze(dim)), indices.squeeze(dim))


isin = without_derivative("isin", np.isin)


def _search(a: np.ndarray, v: np.ndarray, right: bool = False) -> np.ndarray:
    side: Any = "right" if right else "left"
    if a.ndim < 2:
        return np.searchsorted(a, v, side)
    rows = zip(a.reshape(-1, a.shape[-1]), v.reshape(-1, v.shape[-1]), strict=True)
    return np.stack([np.searchsorted(*row, side) for row in rows]).reshape(v.shape)


searchsorted = without_derivative("searchsorted", _search)


def _pick(name: str, x: Tensor, places: np.ndarray, dim: int, keepdim: bool) -> Sorted:
    values = composite(name, lambda v: np.take_along_axis(v, places, dim), x)
    both = Sorted(values, Tensor(places))
    return both if keepdim else Sorted(*(name_user_line(t.squeeze(dim)) for t in both))


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Sorted:
    """Return ``(values, indices)`` of the k-th smallest elements along an axis; the first is number 1."""
    if not 1 <= k <= input.shape[dim]:
        raise ValueError(f"k must lie in 1 ... {input.shape[dim]}, the length of the axis, not {k}")
    return _pick("KthvalueBackward0", input, np.take(argsort(input, dim).value, [k - 1], axis=dim), dim, keepdim)


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Sorted:
    """Return ``(values, indices)`` of the most frequent elements along an axis: the least of them, its last place."""

    def last_place(row):
        values, counts = np.unique(row, return_counts=True)
        return np.flatnonzero(row == values[np.argmax(counts)])[-1]

    places = np.expand_dims(np.apply_along_axis(last_place, dim, as_array(input)), dim)
    return _pick("ModeBackward0", input, places, dim, keepdim)


def msort(input: Tensor) -> Tensor:
    """Return the tensor sorted along its first axis."""
    return name_user_line(input.sort(0)[0])


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Return the different values in order, or slices along an axis; with where each element is among them, and how
    often it is there, if requested."""
    found = np.unique(as_array(input), return_inverse=True, return_counts=True, axis=dim)
    parts = [found[0], *([found[1]] if return_inverse else []), *([found[2]] if return_counts else [])]
    return Tensor(parts[0]) if len(parts) == 1 else tuple(map(Tensor, parts))


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Return the flattened elements without repetitions that follow each other."""
    x = as_array(input).reshape(-1)
    new = np.concatenate([[True], x[1:] != x[:-1]]) if x.size else np.zeros(0, bool)
    inverse = (np.cumsum(new) - 1).reshape(tuple(input.shape))
    counts = np.diff(np.append(np.flatnonzero(new), x.size))
    parts = [x[new], *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return Tensor(parts[0]) if len(parts) == 1 else tuple(map(Tensor, parts))


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each whole number is there, or the sum of its weights."""
    return Tensor(np.bincount(as_array(input), None if weights is None else as_array(weights), minlength))


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False, out_int32: bool = False) -> Tensor:
    """Return between which boundaries, which are in order, each number lies."""
    found = np.asarray(np.searchsorted(as_array(boundaries), as_array(input), "right" if right else "left"))
    return Tensor(found.astype(np.int32) if out_int32 else found)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements lie in each of equal bins, by default from the least to the greatest."""
    x = as_array(input)
    span = (x.min(), x.max()) if min == max else (min, max)
    return Tensor(np.histogram(x, bins, span)[0].astype(x.dtype))
