"""Donated arguments: which results may be written into the memory of an argument that the caller donates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fad.compile.ir.expressions import is_heavy
from fad.compile.ir.lowered_ops import ADDED_PRODUCT
from fad.compile.schedule.steps import Step
from fad.core.programs.refusals import may_refuse

_MOST_AXES = 4  # of a loop that is surely one kernel


def find_reused(program: Any, donated: Iterable[int]) -> dict[int, int]:
    """Return for results of a program the number of the argument whose memory each of them takes over.

    A result takes over an argument of its shape and dtype that nothing reads any more, or that is read last by the
    loop, or the product added to it, that computes the result, place by place. At a guard a program may stop and
    leave its arguments to another. An operation that may raise must find the arguments as they were, so that the
    caller can have them back: nothing is taken over before the last of both.
    """
    graph = program.graph
    found: dict[int, int] = {}
    sure = 1 + _last_refusing(program)
    free = {k for k in donated if k < len(graph.inputs) and program.memory.places[graph.inputs[k]].outside}
    for o in dict.fromkeys(graph.outputs):
        o = program.memory.reshaped.get(o, program.memory.root(o))
        place = program.memory.places.get(o)
        if place is None or not place.outside or place.first < sure:
            continue
        for k in sorted(free):
            i = graph.inputs[k]
            if graph.types[i] == graph.types[o] and _is_over(program, i, o, place.first):
                found[o] = k
                free.discard(k)
                break
    return found


def _last_refusing(program: Any) -> int:
    """Return the number of the last step that may raise for the values that it finds, or -1."""
    called = {id(step) for row, _, step in program.code.runs if row is None}
    for k in range(len(program.memory.steps) - 1, -1, -1):
        step = program.memory.steps[k]
        if any(eq.is_guard for eq in step.equations):
            return k
        if any(o in program.stopping for eq in step.equations for o in eq.outs):
            return k
        if id(step) in called and any(may_refuse(eq.prim, eq.ins) for eq in step.equations):
            return k
    return -1


def _is_over(program: Any, i: int, o: int, first: int) -> bool:
    """Return whether an argument is read for the last time before a result is written, place by place at the latest."""
    last = program.memory.places[i].last
    return last < first or (last == first and _place_by_place(program, program.memory.steps[first], i, o))


def _place_by_place(program: Any, step: Step, i: int, o: int) -> bool:
    if step.equations[0].prim is ADDED_PRODUCT:
        x, y, base = step.equations[0].ins
        return base == i and all(program.memory.base.get(j) != i for j in (x, y))
    if step.kind != "loop" or len(step.shape) > _MOST_AXES or program.graph.types[o].shape != step.shape:
        return False
    # A kernel with such a function may run its loop again from the start, for arguments beyond a polynomial's bound.
    if any(is_heavy(text) for text in step.templates):
        return False
    return all(j == i or program.memory.base.get(j) != i for eq in step.equations for j in eq.ins)
