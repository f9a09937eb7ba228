"""Values that only a later loop reads are sunk into it, if their operands are in memory then all the same.

A group of operations begins as early as it can. The product of two arrays that are stored anyway, which only a later
loop of that shape reads, would be written and read once more for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from fad.compile.ir.expressions import weight
from fad.core.programs.graph import Graph

SMALLEST = 1 << 13  # elements: smaller arrays stay in the nearest cache
_MOST_READ = 2  # large arrays that the later loop reads instead of one


def compute_where_used(
    graph: Graph, steps: list, group: dict[int, Any], most_operands: int, most_weight: int,
    smallest: int = SMALLEST, keep_comparisons: bool = False, stays: Iterable[int] = (),
) -> list:  # fmt: skip
    """Move operations into the one later loop that reads them; return the steps that are left.

    `group` tells the step that computes a value of a loop. No loop gets more operands or weight than is said, and those
    of up to `smallest` elements stay as they are, as do the results in `stays`. With `keep_comparisons` a comparison of
    arrays is stored, in bytes, so that the arrays need not be.
    """
    loops = [s for s in steps if s.kind == "loop" and math.prod(s.shape) > smallest]
    if len(loops) < 2:
        return steps
    users = _users(graph, steps)
    stays = {*stays, *(o for step in loops for o in _comparisons(graph, step) if keep_comparisons)}
    for step in reversed(loops):
        tried: set[int] = set()  # loops to which all that they alone read could not move together
        for eq in reversed(step.equations[:]):
            later = _later(step, eq, users) if eq.outs[0] not in stays and group[eq.outs[0]] is step else None
            if later is None:
                continue
            moving = _find_made_of(step, [eq], users, stays)
            if not moving and id(later) not in tried:
                tried.add(id(later))
                moving = _find_made_of(step, _read_by(step, later, users, stays), users, stays)
            if moving and _pays(graph, step, later, moving, most_operands, most_weight):
                for one in moving:
                    _move(step, one, later, users, group)
    return [s for s in steps if s.equations]


def _users(graph: Graph, steps: list) -> dict[int, dict]:
    """Return for each value the steps that read it, and how many of their operations do; a result is read by None."""
    users: dict[int, dict] = {}
    for step in steps:
        for eq in step.equations:
            for i in eq.ins:
                mine = users.setdefault(i, {})
                mine[step] = mine.get(step, 0) + 1
    for o in graph.outputs:
        users.setdefault(o, {})[None] = 1
    return users


def _later(step: Any, eq: Any, users: dict) -> Any:
    """Return the one loop of the same shape that reads a result, or None."""
    readers = users.get(eq.outs[0], {})
    later = next(iter(readers), None) if len(readers) == 1 else None
    fits = later is not None and later is not step and later.kind == "loop" and later.shape == step.shape
    return later if fits else None


def _comparisons(graph: Graph, step: Any) -> list[int]:
    """Return the booleans that a loop makes of larger elements."""
    truths = [eq for eq in step.equations if graph.types[eq.outs[0]].dtype == bool]
    size = math.prod(step.shape)
    return [eq.outs[0] for eq in truths if any(_is_wide(graph.types[i], size) for i in eq.ins)]


def _is_wide(t: Any, size: int) -> bool:
    return t.size == size and t.dtype.itemsize > 1


def _read_by(step: Any, later: Any, users: dict, stays: set) -> list:
    """Return the operations of a loop whose results a later one alone reads."""
    return [eq for eq in step.equations if eq.outs[0] not in stays and _later(step, eq, users) is later]


def _find_made_of(step: Any, lasts: list, users: dict, stays: set) -> list:
    """Return operations and what of their loop is computed for them alone, the last first, without what stays.

    None of them, if that needs a value that the loop computes, and would have to store for them.
    """
    moving: list = []
    needed: dict[int, int] = {last.outs[0]: 1 for last in lasts}  # and by how many of those that move
    for eq in reversed(step.equations):
        (o,) = eq.outs
        if o not in needed or o in stays:
            continue
        if eq in lasts or users[o] == {step: needed[o]}:
            moving.append(eq)
            for i in eq.ins:
                needed[i] = needed.get(i, 0) + 1
        elif len(users[o]) == (step in users[o]):
            return []
    return moving


def _pays(graph: Graph, step: Any, later: Any, moving: list, most_operands: int, most_weight: int) -> bool:
    """Return whether a loop may get these operations, and reads hardly more than before."""
    made = {eq.outs[0] for eq in moving}
    size = graph.types[moving[0].outs[0]].size
    ins = {i for eq in moving for i in eq.ins} - made
    read = sum(graph.types[i].size == size for i in ins - later.operands - later.members)
    weights = sum(weight(step.templates[step.equations.index(eq)]) for eq in moving)
    fits = len((later.operands | ins) - later.members - made) <= most_operands
    return fits and read <= _MOST_READ and later.weight + weights <= most_weight


def _move(step: Any, eq: Any, later: Any, users: dict, group: dict) -> None:
    k = step.equations.index(eq)
    del step.equations[k]
    text = step.templates.pop(k)
    later.equations.insert(0, eq)
    later.templates.insert(0, text)
    later.weight += weight(text)
    step.weight -= weight(text)
    (o,) = eq.outs
    step.members.discard(o)
    later.members.add(o)
    group[o] = later
    later.operands.update(eq.ins)
    step.operands = {i for e in step.equations for i in e.ins}
    for i in eq.ins:
        users[i][step] -= 1
        users[i][later] = users[i].get(later, 0) + 1
        if not users[i][step]:
            del users[i][step]
