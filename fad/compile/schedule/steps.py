"""The native plan: which operations become one loop, and what the other steps of a program are."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fad.compile.codegen.axis_ops import is_row
from fad.compile.codegen.convolution import is_convolution
from fad.compile.codegen.gather_scatter import is_lookup
from fad.compile.codegen.special_functions import is_special
from fad.compile.ir.expressions import templates, working_type
from fad.compile.ir.lowered_ops import ADDED_PRODUCT, COMPLEX, PIECES, REDUCTIONS, VIEWS
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.schedule.fusion import Step, join
from fad.compile.schedule.sink import compute_where_used, weight
from fad.core.cotangent import is_basic
from fad.core.graph import GUARD, Equation, Graph, has_effects

_REAL = (np.dtype(float), np.dtype(np.float32))
_COUNTED = (np.dtype(bool), np.dtype(np.int32), np.dtype(np.int64))
# A transcendental function weighs 8. The bound keeps the time to compile a kernel short, and lets the steps of an
# unrolled loop share kernels; for large arrays the memory that a longer kernel saves is worth more.
MOST_WEIGHT, MOST_WEIGHT_LARGE, LARGE_SIZE, MOST_OPERANDS = 24, 1000, 1 << 13, 24


def plan_steps(graph: Graph, updates: Any = None) -> list[Step]:
    """Return the steps of a program in an order in which they can be run.

    What overwrites an array, as `updates` says, runs after all that reads the array as it was.
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
    for number, eq in enumerate(graph.equations):
        lowest = max(map(level_of, eq.ins), default=-1)
        text = None if eq.prim is GUARD else template_of(eq)
        if text is not None and 0 not in graph.types[eq.outs[0]].shape:
            step = join(graph, eq, level, group, weight(text), _limits)
            if step is None:
                step = Step("loop", lowest + 1, number, eq, graph.types[eq.outs[0]].shape)
                steps.append(step)
            step.templates.append(text)
            step.weight += weight(text)
            group[eq.outs[0]] = step
        else:
            kind = kind_of(graph, eq)
            at = lowest if kind == "view" else lowest + 1
            if kind in ("guard", "call"):
                at = max(at, last_guard + (kind == "call"))
            if has_effects(eq):
                last_effect = at = max(at, last_effect + 1)
            if over:
                mine = [over[o] for o in eq.outs if o in over]
                at = max([at, *[read[version.get(x, x)] + 1 for x in mine]])
            step = Step(kind, at, number, eq)
            steps.append(step)
            if kind == "guard":
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
    return _fuse_sums(graph, steps, group)


def kind_of(graph: Graph, eq: Equation) -> str:
    if eq.prim is GUARD:
        return "guard"
    out = graph.types[eq.outs[0]]
    if eq.prim is COMPLEX:
        return "pieces" if out.size else "call"
    if is_convolution(eq):
        return "convolution"
    if eq.prim.name in PIECES and _in_pieces(graph, eq):
        return "pieces"
    if is_lookup(graph, eq):
        return "lookup"
    if eq.prim.name in VIEWS and (eq.prim.name != "getitem" or _is_basic(eq.params["template"])):
        return "view"
    if out.dtype in _REAL:
        same = all(graph.types[i].dtype == out.dtype for i in eq.ins)
        if eq.prim.name in REDUCTIONS and same and eq.params["axis"] and graph.types[eq.ins[0]].size:
            return "sum"
        if (eq.prim.name == "matmul" and same) or eq.prim is ADDED_PRODUCT:
            return "matmul"
    if eq.prim.name == "sum_over" and out.dtype == np.int64 and eq.params["axis"]:
        x = graph.types[eq.ins[0]]
        return "sum" if x.dtype in _COUNTED and x.size else "call"
    return "row" if is_row(graph, eq) or is_special(graph, eq) else "call"


def _in_pieces(graph: Graph, eq: Equation) -> bool:
    """Tell whether an operation only copies or adds whole arrays into slices of its result."""
    out = graph.types[eq.outs[0]].dtype
    if out not in LLVM_TYPE or any(graph.types[i].dtype != out for i in eq.ins) or 0 in graph.types[eq.outs[0]].shape:
        return False
    if out not in _REAL and eq.prim.name not in ("join", "index_set"):
        return False
    if eq.prim.name == "scatter":
        return all(is_basic(index) for index in eq.params["indices"])
    return eq.prim.name == "join" or _is_basic(eq.params["template"])


def _is_basic(index: tuple) -> bool:
    return all(type(p) is not str for p in index)


def _limits(shape: tuple) -> tuple[int, int]:
    """Return the most that a group of this shape may weigh, and how many operands it may have."""
    return (MOST_WEIGHT_LARGE if math.prod(shape) > LARGE_SIZE else MOST_WEIGHT), MOST_OPERANDS


def _fuse_sums(graph: Graph, steps: list[Step], group: dict[int, Step]) -> list[Step]:
    """Let a loop add up what it computes, for all sums of its values over the axes that the first such sum names.

    The loop still stores what others need.
    """
    gone: set[int] = set()
    for step in steps:
        if step.kind != "sum":
            continue
        (eq,) = step.equations
        loop = group.get(eq.ins[0])
        if loop is None or (loop.kind == "sum" and _reduced(loop.equations[-1]) != _reduced(eq)):
            continue
        gone.add(id(step))
        loop.kind = "sum"
        loop.equations.append(eq)
        loop.members.update(eq.outs)
    return [s for s in steps if id(s) not in gone]


def _reduced(eq: Equation) -> tuple:
    return eq.prim.name, eq.params["axis"]


def node_facts(graph: Graph, eq: Equation, text: str) -> tuple[str, tuple[int, ...], bool]:
    """Return a node's working type, the operands that its template reads, and whether it selects."""
    return working_type(graph, eq), *_reading(text, len(eq.ins))


@functools.cache
def _reading(text: str, arity: int) -> tuple[tuple[int, ...], bool]:
    return tuple([k for k in range(arity) if f"{{{k}}}" in text]), "select(" in text


def shown(steps: list[Step]) -> dict[str, Any]:
    """Count the steps of each kind."""
    found: dict[str, Any] = {}
    for s in steps:
        found[s.kind] = found.get(s.kind, 0) + 1
    return found
