"""The native plan: which operations become one loop, and what the other steps of a program are."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from fad.compile.ir.expressions import templates, weight, working_type
from fad.compile.schedule.fusion import ORDERED, Step, join
from fad.compile.schedule.recompute import recompute_cheap
from fad.compile.schedule.siblings import fuse_siblings
from fad.compile.schedule.sink import compute_where_used
from fad.core.programs.graph import Equation, Graph, has_effects

# A transcendental function weighs 8. The bound keeps the time to compile a kernel short, and lets the steps of an
# unrolled loop share kernels; for large arrays the memory that a longer kernel saves is worth more.
MOST_WEIGHT, MOST_WEIGHT_LARGE, LARGE_SIZE, MOST_OPERANDS = 24, 1000, 1 << 13, 36
# In programs of few operations, where kernels are few, what is no function weighs little beside loads and stores.
_FEW, _SMALL, _LIGHT = 1000, 1 << 7, 0.02


def plan_steps(graph: Graph, kind_of: Callable[[Graph, Equation], str], updates: Any = None) -> list[Step]:
    """Return the steps of a program in an order in which they can be run.

    ``kind_of(graph, eq)`` says what an operation without a template becomes. What overwrites an
    array, as `updates` says, runs after all that reads the array as it was.
    """
    over, version = updates or ({}, {})
    overwritten = {version.get(x, x) for x in over.values()}
    read: dict[int, int] = dict.fromkeys(overwritten, -1)  # such an array -> the highest level that reads it
    stays: set[int] = set()
    level: dict[int, int] = dict.fromkeys([*graph.inputs, *graph.constants], -1)
    group: dict[int, Step] = {}
    steps: list[Step] = []
    last_guard = last_effect = -1
    level_of, template_of = level.__getitem__, templates(graph)
    few = len(graph.equations) <= _FEW
    weigh = _weigh if few else lambda text, shape: weight(text)
    for number, eq in enumerate(graph.equations):
        lowest = max(map(level_of, eq.ins), default=-1)
        text = None if eq.is_guard else template_of(eq)
        if text is not None and 0 not in graph.types[eq.outs[0]].shape:
            more = weigh(text, graph.types[eq.outs[0]].shape)
            step = join(graph, eq, level, group, more, _limits)
            if step is None:
                step = Step("loop", lowest + 1, number, eq, graph.types[eq.outs[0]].shape)
                steps.append(step)
            step.templates.append(text)
            step.weight += more
            group[eq.outs[0]] = step
        else:
            kind = kind_of(graph, eq)
            at = lowest if kind == "view" else lowest + 1
            if kind in ORDERED:
                at = max(at, last_guard + (not eq.is_guard))
            if has_effects(eq):
                last_effect = at = max(at, last_effect + 1)
            if over:
                mine = [over[o] for o in eq.outs if o in over]
                at = max([at, *[read[version.get(x, x)] + 1 for x in mine]])
            step = Step(kind, at, number, eq)
            steps.append(step)
            if eq.is_guard:
                last_guard = at
        for o in eq.outs:
            level[o] = step.level
        if over:
            some = overwritten.intersection([version.get(i, i) for i in eq.ins])
            for v in some:
                read[v] = max(read[v], step.level)
                stays.update(eq.outs)
    steps = [s for s in steps if s.equations]
    steps.sort(key=lambda s: (s.level, s.kind == "view", s.number))
    steps = compute_where_used(graph, steps, group, MOST_OPERANDS, MOST_WEIGHT_LARGE, stays=stays)
    if few and not over:
        steps = fuse_siblings(graph, steps, group, _SMALL, _limits)
    recompute_cheap(graph, steps, group, MOST_OPERANDS, MOST_WEIGHT_LARGE, stays)
    return _fuse_sums(graph, steps, group)


def _weigh(text: str, shape: tuple) -> float:
    """Return what an operation weighs in a program of few operations, which has few kernels."""
    heavy = weight(text)
    return _LIGHT if heavy == 1 and _SMALL < math.prod(shape) <= LARGE_SIZE else heavy


def _limits(shape: tuple) -> tuple[int, int]:
    """Return the most that a group of this shape may weigh, and how many operands it may have."""
    return (MOST_WEIGHT_LARGE if math.prod(shape) > LARGE_SIZE else MOST_WEIGHT), MOST_OPERANDS


def _fuse_sums(graph: Graph, steps: list[Step], group: dict[int, Step]) -> list[Step]:
    """Let a loop add up what it computes, for all sums of its values over the axes that the first such sum names.

    The loop still stores what others need.
    """
    removed: set[int] = set()
    for step in steps:
        if step.kind != "sum":
            continue
        (eq,) = step.equations
        loop = group.get(eq.ins[0])
        if loop is None or (loop.kind == "sum" and _reduce(loop.equations[-1]) != _reduce(eq)):
            continue
        removed.add(id(step))
        loop.kind = "sum"
        loop.equations.append(eq)
        loop.members.update(eq.outs)
    return [s for s in steps if id(s) not in removed]


def _reduce(eq: Equation) -> tuple:
    return eq.prim.name, eq.params["axis"]


def node_facts(graph: Graph, eq: Equation, text: str) -> tuple[str, tuple[int, ...], bool]:
    """Return a node's working type, the operands that its template reads, and whether it selects."""
    return working_type(graph, eq), *_reading(text, len(eq.ins))


@functools.cache
def _reading(text: str, arity: int) -> tuple[tuple[int, ...], bool]:
    return tuple([k for k in range(arity) if f"{{{k}}}" in text]), "select(" in text


def count_kinds(steps: list[Step]) -> dict[str, Any]:
    """Count the steps of each kind."""
    found: dict[str, Any] = {}
    for s in steps:
        found[s.kind] = found.get(s.kind, 0) + 1
    return found
