"""Loops that read the same array, or write pieces of the same one, become one loop, though neither needs the other.

A column of a matrix is a number in each of its cache lines: columns that are written by a loop each bring all of the
matrix into the cache each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fad.compile.schedule.fusion import ORDERED, Step, are_few
from fad.core.programs.graph import Graph
from fad.ops.arrangement.structural import reshape_p

_FURTHEST = 64  # steps between two loops: looking at more of them takes time
_MOST_BEFORE = 8  # earlier loops that a loop may be fused with


def fuse_siblings(
    graph: Graph, steps: list[Step], group: dict[int, Any], smallest: int, limits: Callable
) -> list[Step]:
    """Fuse loops of more than `smallest` elements with earlier ones of the same shape.

    ``limits(shape)`` are the most weight and operands of a loop, and `group` tells the loop that computes a value.
    """
    loops = [s for s in steps if s.kind == "loop" and math.prod(s.shape) > smallest]
    if len(loops) < 2:
        return steps
    wholes = _find_wholes(graph, steps)
    steps = list(steps)
    shapes: dict[tuple, list[Step]] = {}
    for later in loops:
        before = shapes.setdefault(later.shape, [])
        for earlier in before[: -_MOST_BEFORE - 1 : -1]:
            if _belong_together(graph, earlier, later, wholes) and _fits(graph, earlier, later, limits):
                moved = _move(steps, earlier, later)
                if moved is not None:
                    _merge(earlier, later)
                    group.update(dict.fromkeys(earlier.members, later))
                    steps = moved
                    before.remove(earlier)
        before.append(later)
    return steps


def _find_wholes(graph: Graph, steps: list[Step]) -> dict[int, int]:
    """Return for each value that is a piece of a larger array that array, the outermost."""
    wholes: dict[int, int] = {}
    for step in reversed(steps):
        eq = step.equations[0]
        if step.kind == "pieces" or (step.kind == "view" and eq.prim is reshape_p):
            whole = eq.outs[0]
            if step.kind == "pieces" or whole in wholes:
                wholes.update(dict.fromkeys(eq.ins, wholes.get(whole, whole)))
    return wholes


def _belong_together(graph: Graph, earlier: Step, later: Step, wholes: dict[int, int]) -> bool:
    size = math.prod(later.shape)
    if any(graph.types[i].size == size for i in earlier.operands & later.operands):
        return True
    return not _written(earlier, wholes).isdisjoint(_written(later, wholes))


def _written(step: Step, wholes: dict[int, int]) -> set[int]:
    return {wholes[o] for o in step.members if o in wholes}


def _fits(graph: Graph, earlier: Step, later: Step, limits: Callable) -> bool:
    most_weight, most_operands = limits(later.shape)
    operands = (earlier.operands | later.operands) - earlier.members - later.members
    return earlier.weight + later.weight <= most_weight and are_few(graph, operands, most_operands)


def _move(steps: list[Step], earlier: Step, later: Step) -> list[Step] | None:
    """Return the steps with a loop gone from its place to that of a later one, and what reads it behind that."""
    a, b = steps.index(earlier), steps.index(later)
    if b - a > _FURTHEST:
        return None
    made, behind, between = set(earlier.members), [], []
    for step in steps[a + 1 : b]:
        if any(i in made for eq in step.equations for i in eq.ins):
            if step.kind in ORDERED:
                return None
            behind.append(step)
            made.update([o for eq in step.equations for o in eq.outs])
        else:
            between.append(step)
    made -= earlier.members
    if any(i in made for eq in later.equations for i in eq.ins):
        return None
    return [*steps[:a], *between, later, *behind, *steps[b + 1 :]]


def _merge(earlier: Step, later: Step) -> None:
    later.equations[:0] = earlier.equations
    later.templates[:0] = earlier.templates
    later.members |= earlier.members
    later.operands |= earlier.operands
    later.weight += earlier.weight
