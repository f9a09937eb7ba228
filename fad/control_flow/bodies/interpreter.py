"""How the steps of a loop are run: on plain values, once as an example, or one by one on traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import made_like
from fad.control_flow.bodies.loop_layout import Inputs, Operands, Outputs, has_condition
from fad.control_flow.bodies.subgraph import example
from fad.core.programs.graph import Graph, place_constant
from fad.core.tracing.tracer import bind

runner: list[Callable] = []
"""Compiles and runs a loop on plain values; put here by the lowerings, which stand above."""


def first_step(operands: Operands, params: dict) -> Inputs:
    """Return plain values for the inputs of the body: those of the first step."""
    length, reverse = params["length"], params["reverse"]
    xs = [example(x) for x in operands.xs]
    at = len(xs[0]) - 1 if reverse and xs else 0
    index = [(length or 1) - 1 if reverse else 0] if params["index"] else []
    steps = [x[at] if len(x) else made_like(np.zeros_like, x, x.shape[1:])[()] for x in xs]
    return Inputs([*map(example, operands.consts)], index, [*map(example, operands.carry)], steps)


def _limit(operands: Operands, params: dict) -> Any:
    """Return how many steps a loop takes; None if it stops by itself."""
    return {"length": [params["length"]], "count": operands.steps, "cond": [None]}[params["stop"]][0]


def run(*operands: Any, **params: Any) -> tuple:
    return runner[0](operands, params) if runner else run_steps(operands, params)


def run_pullback(*operands: Any, **params: Any) -> tuple:
    return runner[0](operands, params)


def run_steps(operands: Any, params: dict, body: Callable | None = None) -> tuple:
    """Run a loop step by step; `body` runs one step, the graph itself if not given."""
    graph, length = params["body"], params["length"]
    parts = Operands.split(operands, params)
    step = graph if body is None else body
    limit = _limit(parts, params)
    state = parts.carry
    stacks = [graph.types[o].zeros(length) for o in Outputs.split(graph.outputs, params).ys]
    done = 0
    while state[0] if limit is None else done < limit:
        at = limit - 1 - done if params["reverse"] else done
        index = [int(at)] if params["index"] else []
        state, ys = Outputs.split(step(*parts.consts, *index, *state, *[x[at] for x in parts.xs]), params)
        if stacks and at < length:
            for stack, y in zip(stacks, ys, strict=True):
                stack[at] = y
        done += 1
    return (*state, *stacks, *((np.int64(done),) if limit is None else ()))


def example_step(*operands: Any, **params: Any) -> tuple:
    """Return values of the right types after one step: for the recording of a body, where values stand for others.

    A first step may refuse them, as a loop does from ``i + 1`` on that no step of the last ``i`` runs: zeros do then.
    """
    body = params["body"]
    shown = first_step(Operands.split(operands, params), params)
    try:
        found = compute_example(body, shown.join())
    except Exception:
        found = [body.types[o].zeros() for o in body.outputs]
    carry, ys = Outputs.split(found, params)
    stacks = [np.broadcast_to(y, (params["length"], *np.shape(y))) for y in ys]
    return (*carry, *stacks, *((np.int64(1),) if has_condition(params) else ()))


def compute_example(graph: Graph, values: list) -> list:
    """Run a graph as an example, and so the loops in it: they need not run to their ends, nor be compiled for it."""
    env = {i: place_constant(c, graph.types[i]) for i, c in graph.constants.items()}
    env.update(zip(graph.inputs, values, strict=True))
    for eq in graph.equations:
        operands = [env[i] for i in eq.ins]
        y = eq.prim.example(*operands, **eq.params) if eq.prim.example else bind(eq.prim, *operands, **eq.params)
        env.update(zip(eq.outs, y if eq.prim.multi else [y], strict=True))
    return [env[i] for i in graph.outputs]


def step_by_step(args: Any, params: dict) -> tuple:
    """Run a loop on traced values one step after the other: nothing is left of the loop in a recording."""
    graph, length = params["body"], params["length"]
    parts = Operands.split(args, params)
    limit = _limit(parts, params)
    n = -1 if limit is None else limit.__index__()
    state, ys, done = parts.carry, [], 0
    while bool(state[0]) if limit is None else done < n:
        at = n - 1 - done if params["reverse"] else done
        index = [at] if params["index"] else []
        state, y = Outputs.split(graph(*parts.consts, *index, *state, *[x[at] for x in parts.xs]), params)
        ys.append(y)
        done += 1
    ys = ys[::-1] if params["reverse"] else ys
    empty = [graph.types[o].zeros() for o in Outputs.split(graph.outputs, params).ys]
    ys += [empty] * ((length or 0) - done)
    stacks = [np.stack(column) for column in zip(*ys, strict=True)] if empty else []
    return (*state, *stacks, *((np.int64(done),) if limit is None else ()))
