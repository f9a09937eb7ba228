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
        index = eq.params["indices"][0]
        if outside(index, graph.types[eq.outs[0]].shape) != [()]:
            return [(eq.ins[0], with_ellipsis(index))]
    return []


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
