"""Operations that only put whole arrays into slices of their result: joins, scatters, functional updates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import concatenate_p
from fad.ops.places.indexing import getitem_p, scatter_p

_MOST_PIECES, _MOST_COUNTED = 100, 1 << 20  # of pieces that are looked at all together, and the places of each


def find_placed_pieces(graph: Graph, eq: Equation) -> list[tuple[int, tuple]]:
    """Return the operands that are copied, not added, with the index at which each of them stands in the result."""
    if eq.prim is concatenate_p:
        found, start, axis = [], 0, eq.params["axis"]
        for i in eq.ins:
            stop = start + graph.types[i].shape[axis]
            found.append((i, ((slice(None),) * axis + (slice(start, stop),))))
            start = stop
        return found
    if eq.prim is scatter_p:
        indices, shape = eq.params["indices"], graph.types[eq.outs[0]].shape
        if left_out(indices, shape) is not None:
            return [(i, with_ellipsis(index)) for i, index in zip(eq.ins, indices, strict=True)]
        if outside(indices[0], shape) != [()]:
            return [(eq.ins[0], with_ellipsis(indices[0]))]
    return []


def left_out(indices: tuple, shape: tuple) -> list[tuple] | None:
    """Return what pieces that do not overlap leave of an array, as indices; None if they may, or leave holes."""
    spans, axes = [], set()
    for index in indices:
        index = index if type(index) is tuple else (index,)
        if any(type(p) not in (slice, int) for p in index):
            return None
        partial = [d for d, p in enumerate(index) if p != slice(None)]
        if len(partial) != 1:
            return _around(indices, shape)
        (d,) = partial
        start, stop, step = _bounds(index[d], shape[d])
        if step != 1 or stop <= start:
            return _around(indices, shape)
        axes.add(d)
        spans.append((start, stop))
    if len(axes) != 1:
        return _around(indices, shape)
    (axis,) = axes
    gaps, end = [], 0
    for start, stop in sorted(spans):
        if start < end:
            return None
        gaps.append((end, start))
        end = stop
    gaps.append((end, shape[axis]))
    return [(*[slice(None)] * axis, slice(a, b)) for a, b in gaps if a < b]


def _bounds(part: Any, n: int) -> tuple[int, int, int]:
    return part.indices(n) if type(part) is slice else (part % n, part % n + 1, 1)


def _around(indices: tuple, shape: tuple) -> list[tuple] | None:
    """Return the frame around pieces that fill a box together, every second pixel each or so; None if they do not."""
    found = []
    for index in indices:
        index = index if type(index) is tuple else (index,)
        if len(index) > len(shape) or any(type(p) not in (slice, int) for p in index):
            return None
        parts = [_bounds(p, n) for p, n in zip(index, shape, strict=False)]
        if any(step < 1 for _, _, step in parts):
            return None
        found.append(parts)
    axes = [d for d in range(len(shape)) if any(d < len(f) and f[d] != (0, shape[d], 1) for f in found)]
    if math.prod(shape[d] for d in axes) > _MOST_COUNTED:
        return None
    count = np.zeros([shape[d] for d in axes], np.int8)
    for parts in found[:_MOST_PIECES]:
        count[tuple([slice(*parts[d]) if d < len(parts) else slice(None) for d in axes])] += 1
    if len(found) > _MOST_PIECES or count.max(initial=0) != 1:
        return None
    covered = [np.flatnonzero(count.any(tuple(j for j in range(len(axes)) if j != k))) for k in range(len(axes))]
    box = [(int(c[0]), int(c[-1]) + 1) for c in covered]
    if not count[tuple([slice(a, b) for a, b in box])].all():
        return None
    frame, head = [], [slice(None)] * len(shape)
    for d, (a, b) in zip(axes, box, strict=True):
        frame += [(*head[:d], slice(*gap)) for gap in ((0, a), (b, shape[d])) if gap[0] < gap[1]]
        head[d] = slice(a, b)
    return frame


def outside(index: Any, shape: tuple) -> list[tuple]:
    """Return indices that together name all that a basic index leaves out (or more, before it is written)."""
    index = index if type(index) is tuple else (index,)
    partial = [d for d, p in enumerate(index) if p != slice(None)]
    if len(partial) > 1 or not all(type(p) is slice for p in index):
        return [()]
    if not partial:
        return []
    (d,) = partial
    start, stop, step = index[d].indices(shape[d])
    if step != 1 or stop <= start:
        return [()]
    head = (slice(None),) * d
    parts = [(*head, slice(0, start)), (*head, slice(stop, shape[d]))]
    return [p for p, n in zip(parts, (start, shape[d] - stop), strict=True) if n]


def with_ellipsis(index: Any) -> tuple:
    """Return an index that gives an array even where it names one element."""
    index = index if type(index) is tuple else (index,)
    return index if any(p is Ellipsis for p in index) else (*index, ...)


def as_slices(index: Any, rank: int) -> tuple | None:
    """Return an index as a slice for each axis; None if it is another one."""
    index = index if type(index) is tuple else (index,)
    if len(index) > rank or any(type(part) is not slice for part in index):
        return None
    return index + (slice(None),) * (rank - len(index))


def data_address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def view_of(eq: Equation, array: Any) -> Any:
    """Return what an operation makes of an array without copying: a view, of a single number as well."""
    if eq.prim is getitem_p:
        return array[with_ellipsis(eq.params["template"])]
    return eq.prim.forward(array, **eq.params)
