"""Operations that only put whole arrays into slices of their result: joins, scatters, functional updates."""

from __future__ import annotations

from typing import Any

from fad.core.graph import Equation, Graph


def placed_pieces(graph: Graph, eq: Equation) -> list[tuple[int, tuple]]:
    """Return the operands that are copied, not added, with the index at which each of them stands in the result."""
    if eq.prim.name == "join":
        found, start, axis = [], 0, eq.params["axis"]
        for i in eq.ins:
            stop = start + graph.types[i].shape[axis]
            found.append((i, ((slice(None),) * axis + (slice(start, stop),))))
            start = stop
        return found
    if eq.prim.name == "scatter":
        indices, shape = eq.params["indices"], graph.types[eq.outs[0]].shape
        if left_out(indices, shape) is not None:
            return [(i, with_ellipsis(index)) for i, index in zip(eq.ins, indices, strict=True)]
        if outside(indices[0], shape) != [()]:
            return [(eq.ins[0], with_ellipsis(indices[0]))]
    return []


def left_out(indices: tuple, shape: tuple) -> list[tuple] | None:
    """Return what pieces along one axis leave of an array, as indices; None if they may overlap."""
    spans, axes = [], set()
    for index in indices:
        index = index if type(index) is tuple else (index,)
        if any(type(p) not in (slice, int) for p in index):
            return None
        partial = [d for d, p in enumerate(index) if p != slice(None)]
        if len(partial) != 1:
            return None
        (d,) = partial
        p = index[d]
        start, stop, step = p.indices(shape[d]) if type(p) is slice else (p % shape[d], p % shape[d] + 1, 1)
        if step != 1 or stop <= start:
            return None
        axes.add(d)
        spans.append((start, stop))
    if len(axes) != 1:
        return None
    (axis,) = axes
    gaps, end = [], 0
    for start, stop in sorted(spans):
        if start < end:
            return None
        gaps.append((end, start))
        end = stop
    gaps.append((end, shape[axis]))
    return [(*[slice(None)] * axis, slice(a, b)) for a, b in gaps if a < b]


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


def data_address(array: Any) -> int:
    return array.__array_interface__["data"][0]


def view_of(eq: Equation, array: Any) -> Any:
    """Return what an operation makes of an array without copying: a view, of a single number as well."""
    if eq.prim.name == "getitem":
        return array[with_ellipsis(eq.params["template"])]
    return eq.prim.forward(array, **eq.params)
