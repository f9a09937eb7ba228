"""Reads of a body of which nobody uses what they read: the error of a place that is not there is to be kept."""

from __future__ import annotations

import numpy as np

from fad.control_flow.bodies.axis_positions import is_places
from fad.control_flow.bodies.intervals import interval_of
from fad.control_flow.bodies.subgraph import Body, Unrecordable
from fad.core.programs.graph import Equation
from fad.ops.places.indexing import getitem_p
from fad.staging.may_raise import find_unread_raising


def refuse_unread_places(body: Body) -> None:
    """Raise Unrecordable where a body reads what may be no place of an array, and nothing needs what it reads.

    Recorded step by step the program keeps such a read, for the error that it may raise. A loop or branch drops it.
    """
    graph = body.graph
    found = find_unread_raising(graph, graph.outputs, lambda eq: not _is_in_range(body, eq))
    if found:
        raise Unrecordable(body.trace, "it reads an element that may not be there, and does not use it")


def _is_in_range(body: Body, eq: Equation) -> bool:
    """Return whether the integers that index an array are known to be places of it."""
    template = eq.params.get("template", ())
    if eq.prim is not getitem_p or any(part is None or part is Ellipsis for part in template):
        return True
    indices = iter(eq.ins[1:])
    for part, size in zip(template, body.graph.types[eq.ins[0]].shape, strict=False):
        i = next(indices) if part == "array" else None
        if i is None or _is_slice(body, i):
            continue
        low, high = _find_bounds(body, i)
        if low is None or high is None or low < -size or high >= size:
            return False
    return True


def _is_slice(body: Body, i: int) -> bool:
    """Return whether an index stands for a slice whose bounds are traced, which takes what is there."""
    graph, reached = body.graph, {i}
    for eq in reversed(graph.equations):
        if not reached.isdisjoint(eq.outs) and graph.types[eq.outs[0]].shape:
            reached.update(eq.ins)
    return any(is_places(graph.constants.get(j)) for j in reached)


def _find_bounds(body: Body, i: int) -> tuple[int | None, int | None]:
    """Return the least and the most that an index of a body can be, be it an integer or an array of them."""
    known = {**body.graph.constants, **dict(zip(body.graph.inputs, body.captured, strict=False))}.get(i)
    if not body.graph.types[i].shape or type(known) is not np.ndarray:
        return interval_of(body.trace, i)
    return (0, 0) if known.dtype == bool or not known.size else (int(known.min()), int(known.max()))
