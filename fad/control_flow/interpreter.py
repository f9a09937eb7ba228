"""How the steps of a loop are run: on plain values, once as an example, or one by one on traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import made_like
from fad.control_flow.subgraph import example

runner: list[Callable] = []
"""Compiles and runs a loop on plain values; put here by the lowerings, which stand above."""


class Parts:
    """The operands of a loop, sorted."""

    __slots__ = ("consts", "count", "carry", "xs")

    def __init__(self, operands: Any, consts: int, carries: int, stop: str, **_: Any):
        operands = list(operands)
        counted = stop == "count"
        self.consts = operands[:consts]
        self.count = operands[consts] if counted else None
        self.carry = operands[consts + counted : consts + counted + carries]
        self.xs = operands[consts + counted + carries :]

    def operands(self) -> list:
        return [*self.consts, *([] if self.count is None else [self.count]), *self.carry, *self.xs]


def parts_of(consts: list, carry: list, xs: list) -> Parts:
    """Return the operands of a loop of a known length."""
    parts = Parts([], 0, 0, "length")
    parts.consts, parts.carry, parts.xs = consts, carry, xs
    return parts


def first_step(parts: Parts, length: Any, reverse: bool, index: bool) -> list:
    """Return plain values for the inputs of the body: those of the first step."""
    xs = [example(x) for x in parts.xs]
    at = len(xs[0]) - 1 if reverse and xs else 0
    position = [(length or 1) - 1 if reverse else 0] if index else []
    steps = [x[at] if len(x) else made_like(np.zeros_like, x, x.shape[1:])[()] for x in xs]
    return [*map(example, parts.consts), *position, *map(example, parts.carry), *steps]


def run(*operands: Any, **params: Any) -> tuple:
    return runner[0](operands, params) if runner else run_steps(operands, params)


def run_pullback(*operands: Any, **params: Any) -> tuple:
    return runner[0](operands, params)


def run_steps(operands: Any, params: dict, body: Callable | None = None) -> tuple:
    """Run a loop step by step; `body` runs one step, the graph itself if not given."""
    graph, carries, length = params["body"], params["carries"], params["length"]
    parts = Parts(operands, **params)
    step = graph if body is None else body
    limit = {"length": length, "count": parts.count, "cond": None}[params["stop"]]
    state = parts.carry
    types = [graph.types[o] for o in graph.outputs[carries:]]
    stacks = [t.zeros(length) for t in types]
    done = 0
    while state[0] if limit is None else done < limit:
        at = limit - 1 - done if params["reverse"] else done
        position = [int(at)] if params["index"] else []
        outs = step(*parts.consts, *position, *state, *[x[at] for x in parts.xs])
        state = outs[:carries]
        if stacks and at < length:
            for stack, y in zip(stacks, outs[carries:], strict=True):
                stack[at] = y
        done += 1
    return (*state, *stacks, *((np.int64(done),) if limit is None else ()))


def example_step(*operands: Any, **params: Any) -> tuple:
    """Return values of the right types after one step: for the recording of a body, where values stand for others."""
    parts = Parts(operands, **params)
    outs = params["body"](*first_step(parts, params["length"], params["reverse"], params["index"]))
    k = params["carries"]
    stacks = [np.broadcast_to(y, (params["length"], *np.shape(y))) for y in outs[k:]]
    return (*outs[:k], *stacks, *((np.int64(1),) if params["stop"] == "cond" else ()))


def step_by_step(args: Any, params: dict) -> tuple:
    """Run a loop on traced values one step after the other: nothing is left of the loop in a recording."""
    graph, carries, length = params["body"], params["carries"], params["length"]
    parts = Parts(args, **params)
    limit = {"length": length, "count": parts.count, "cond": None}[params["stop"]]
    n = -1 if limit is None else limit.__index__()
    state, ys, done = parts.carry, [], 0
    while bool(state[0]) if limit is None else done < n:
        at = n - 1 - done if params["reverse"] else done
        position = [at] if params["index"] else []
        outs = graph(*parts.consts, *position, *state, *[x[at] for x in parts.xs])
        state = outs[:carries]
        ys.append(outs[carries:])
        done += 1
    ys = ys[::-1] if params["reverse"] else ys
    empty = [graph.types[o].zeros() for o in graph.outputs[carries:]]
    ys += [empty] * ((length or 0) - done)
    stacks = [np.stack(column) for column in zip(*ys, strict=True)] if empty else []
    return (*state, *stacks, *((np.int64(done),) if limit is None else ()))
