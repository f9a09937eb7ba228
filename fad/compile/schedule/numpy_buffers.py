"""The memory plan: which values may live in buffers that are used again, and when each buffer is free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.ir.uses import last_uses
from fad.core.programs.graph import ARRAY, Equation, Graph
from fad.ops.reductions.reduction import sum_p


def is_ufunc(eq: Equation) -> bool:
    return isinstance(eq.prim.forward, np.ufunc) and not eq.params and not eq.prim.multi


def is_fresh(eq: Equation) -> bool:
    """Return whether a result shares no memory with an operand; where that is not known, it is assumed to."""
    if eq.prim is sum_p:
        return bool(eq.params["axis"])
    return eq.prim.fresh or is_ufunc(eq)


def owner_of(graph: Graph) -> Callable[[int], int]:
    """Return a function that finds the value whose memory a value may be a view of: one for all that may share it."""
    parent: dict[int, int] = {}

    def find(i: int) -> int:
        while (above := parent.get(i, i)) != i:
            parent[i] = above = parent.get(above, above)
            i = above
        return i

    for eq in graph.equations:
        if is_fresh(eq):
            continue
        roots = [find(i) for i in eq.ins if graph.types[i].kind == ARRAY] + [find(o) for o in eq.outs]
        for r in roots[1:]:
            parent[r] = roots[0]
    return find


def newly_shared(recorded: Graph, graph: Graph) -> list[int]:
    """Return which outputs of an optimised program may lie in memory of others, which they did not as recorded.

    ``x * 1.0`` has become x itself, and two equal expressions are one. A write into such a result must not reach
    an argument, or another result. So an output that is an argument, as ``x.copy()`` of a traced x is, and
    one that is there twice are reported, too.
    """
    before, after = owner_of(recorded), owner_of(graph)
    known: dict[int, set[int]] = {}
    for i, j in zip(recorded.inputs, graph.inputs, strict=True):
        known.setdefault(after(j), set()).add(before(i))
    found = []
    for k, (i, j) in enumerate(zip(recorded.outputs, graph.outputs, strict=True)):
        mine = before(i)
        others = known.setdefault(after(j), set())
        if others - {mine} or j in graph.outputs[:k] or j in graph.inputs:
            found.append(k)
        others.add(mine)
    return found


class Plan:
    """``buffer[i]`` is the number of the buffer that value i is computed into; ``specs`` says what each buffer is."""

    __slots__ = ("buffer", "specs")

    def __init__(self) -> None:
        self.buffer: dict[int, int] = {}
        self.specs: list[tuple] = []


def plan_memory(graph: Graph, wanted: Any = None) -> Plan:
    """Give each intermediate array a buffer, and a buffer that is free again to the next that fits."""
    owner = owner_of(graph)
    last: dict[int, int] = {}
    for i, k in last_uses(graph).items():
        o = owner(i)
        last[o] = max(last.get(o, -1), k)
    plan = Plan()
    free: dict[tuple, list[int]] = {}
    ending: dict[int, list[int]] = {}
    end = len(graph.equations)
    for k, eq in enumerate(graph.equations):
        if is_ufunc(eq):
            out = eq.outs[0]
            t = graph.types[out]
            until = last.get(owner(out), -1)
            if t.kind == ARRAY and t.shape and until < end and (wanted is None or wanted(eq)):
                spec = (t.shape, t.dtype)
                waiting = free.get(spec)
                number = waiting.pop() if waiting else len(plan.specs)
                if number == len(plan.specs):
                    plan.specs.append(spec)
                plan.buffer[out] = number
                ending.setdefault(max(until, k), []).append(number)
        for number in ending.pop(k, ()):
            free.setdefault(plan.specs[number], []).append(number)
    return plan
