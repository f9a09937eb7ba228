"""What an index says, split into a template and index arrays: where axes go, and which places occur again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.backends import is_on_device

ARRAY = "array"  # the place of an index array in a template
_MOST_PAIRS = 1 << 10  # of index values that are compared to find those that occur again


def join_index(template: tuple, arrays: Any) -> tuple:
    """Put index arrays back into their places in a template."""
    if not arrays:
        return template
    it = iter(arrays)
    return tuple(next(it) if part is ARRAY else part for part in template)


def index_layout(template: tuple, arrays: list, ndim: int) -> tuple[int, int, bool]:
    """Say where NumPy puts the axes of the index arrays in the result: ``(rank, position, separated)``.

    They stand where the indices stood; with a slice, None or Ellipsis between two of them, they are `separated`
    and stand in front. Beside index arrays an integer counts as one.
    """
    if not arrays:
        return 0, 0, False
    rank = max(1 if a.dtype.kind == "b" else np.ndim(a) for a in arrays)
    places = [i for i, part in enumerate(template) if part is ARRAY or type(part) is int]
    if places != list(range(places[0], places[-1] + 1)):
        return rank, 0, True
    used = sum(part is not None and part is not Ellipsis and part is not ARRAY for part in template)
    used += sum(np.ndim(a) if a.dtype.kind == "b" else 1 for a in arrays)
    return rank, sum(ndim - used if part is Ellipsis else 1 for part in template[: places[0]]), False


def check_masks(template: tuple, arrays: list, shape: tuple) -> None:
    """Raise as NumPy does where a mask of an index has another shape than the axes that it stands for."""
    parts = join_index(template, arrays)
    masks = [np.shape(part) if getattr(getattr(part, "dtype", None), "kind", "") == "b" else None for part in parts]
    ranks = [
        len(mask) if mask is not None else 0 if part is None or part is Ellipsis else 1
        for part, mask in zip(parts, masks, strict=True)
    ]
    rest = len(shape) - sum(ranks)
    if rest < 0:
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {sum(ranks)} were indexed"
        )
    axis = 0
    for part, mask, rank in zip(parts, masks, ranks, strict=True):
        for k, n in enumerate(mask or ()):
            if n and n != shape[axis + k]:  # NumPy takes one without elements for any
                raise IndexError(
                    f"boolean index did not match indexed array along axis {axis + k}; size of axis is "
                    f"{shape[axis + k]} but size of corresponding boolean axis is {n}"
                )
        axis += rest if part is Ellipsis else rank


def can_broadcast(shape: tuple, to: tuple) -> bool:
    """Return whether an array can be repeated to a shape, as a value is to that of the place where it is written."""
    lead = len(to) - len(shape)
    return lead >= 0 and all(n in (1, m) for n, m in zip(shape, to[lead:], strict=True))


def describe_misfit(given: tuple, place: tuple, template: tuple, arrays: list) -> str:
    """Say in NumPy's words that a value cannot be written at an index, of whose places the shape is given."""
    if not arrays:
        return f"could not broadcast input array from shape {shape_text(given)} into shape {shape_text(place)}"
    if len(template) == len(arrays) == len(place) == 1 and arrays[0].dtype.kind == "b" and len(given) <= 1:
        return (
            f"NumPy boolean array indexing assignment cannot assign {math.prod(given)} input values to the "
            f"{place[0]} output values where the mask is true"
        )
    return (
        f"shape mismatch: value array of shape {shape_text(given)} could not be broadcast to indexing result of shape "
        f"{shape_text(place)}"
    )


def shape_text(shape: tuple) -> str:
    """Return a shape as NumPy's errors write it."""
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def last_of_each(shape, arrays, template):
    """Return which values of ``x[index] = values`` are kept, without an array of x's size; None if that costs more."""
    if any(a.dtype.kind == "b" or is_on_device(a) for a in arrays) or any(type(p) is int for p in template):
        return None
    lead = np.broadcast_shapes(*[np.shape(a) for a in arrays])
    n = math.prod(lead)
    if n * n > min(_MOST_PAIRS, math.prod(shape)):
        return None
    rank, position, separated = index_layout(template, arrays, len(shape))
    axes = _find_indexed_axes(template, len(shape))
    place: Any = 0
    for a, axis in zip(arrays, axes, strict=True):
        place = place * shape[axis] + np.broadcast_to(np.where(a < 0, a + shape[axis], a), lead).reshape(-1)
    again = np.logical_and(place[:, None] == place, np.less.outer(np.arange(n), np.arange(n)))
    kept = np.logical_not(np.any(again, axis=1)).reshape(lead)
    whole = np.broadcast_to(False, shape)[join_index(template, [np.zeros(np.shape(a), np.intp) for a in arrays])].ndim
    return kept.reshape(lead + (1,) * (whole - rank - (0 if separated else position)))


def _find_indexed_axes(template, ndim):
    """Return the axes that the index arrays of a template stand for."""
    used = sum(part is not None and part is not Ellipsis for part in template)
    axes, axis = [], 0
    for part in template:
        if part is ARRAY:
            axes.append(axis)
        axis += 0 if part is None else ndim - used if part is Ellipsis else 1
    return axes


def with_elements(shape: tuple, template: tuple, arrays: list) -> tuple:
    """Return a shape of which the axes that arrays of integers index have elements."""
    if 0 not in shape:
        return shape
    arrays_left, parts = iter(arrays), []
    for part in template:
        array = next(arrays_left) if part == ARRAY else None
        is_mask = array is not None and array.dtype.kind == "b"
        taken = array.ndim if array is not None and is_mask else part is not None
        parts.append((array is not None and not is_mask, taken))
    rest = len(shape) - sum(n for (_, n), part in zip(parts, template, strict=True) if part is not Ellipsis)
    out, axis = list(shape), 0
    for (of_integers, n), part in zip(parts, template, strict=True):
        if of_integers and axis < len(out):
            out[axis] = max(out[axis], 1)
        axis += rest if part is Ellipsis else n
    return tuple(out)
