"""Passes for loops and branches: their bodies are optimised, and dead code is eliminated from them.

A result of a loop that is not used need not be computed in any step, so the pass runs over the program backwards, and
a loop that loses results may spare its operands the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.passes.tidy_cotangents import tidy_cotangents
from fad.control_flow.pullback import pullback_p
from fad.control_flow.scan import scan_p, while_p
from fad.control_flow.split_pullback import find_needed
from fad.core.graph import ARRAY, GUARD, SCALAR, Equation, Graph, Type, type_of
from fad.core.primitive import Primitive
from fad.staging.may_raise import unread, unread_in_body

_SMALL = 64  # elements up to which a constant goes into the body
GUESSED = 32  # steps of a loop within a loop whose number is not known


class Loop:
    """A loop's equation, sorted: the numbers of values outside and within its body."""

    def __init__(self, eq: Equation):
        params = eq.params
        body = self.body = params["body"]
        c, m, counted = params["consts"], params["carries"], int(params["stop"] == "count")
        index = int(params["index"])
        self.length, self.reverse, self.stop = params["length"], params["reverse"], params["stop"]
        self.count = c  # the position of the number of steps among the operands, if it is one
        self.consts, self.carry, self.xs = eq.ins[:c], eq.ins[c + counted : c + counted + m], eq.ins[c + counted + m :]
        start = c + index
        self.const_inputs, self.index_input = body.inputs[:c], body.inputs[c] if index else -1
        self.carry_inputs, self.x_inputs = body.inputs[start : start + m], body.inputs[start + m :]
        self.carry_outputs, self.ys = body.outputs[:m], body.outputs[m:]
        self.indexed = bool(index)
        self.needs_number = bool(index or self.xs or self.ys or self.stop == "cond")


def alone(operands: Any, params: dict) -> Graph:
    """Return a program of one loop, or of the pullback of one, for operands of these types."""
    if "cut" in params:
        backward = params["cut"].backward
        return _of_one_equation(pullback_p, operands, params, [backward.types[o] for o in backward.outputs])
    body, m, until = params["body"], params["carries"], params["stop"] == "cond"
    types = [body.types[o] for o in body.outputs[:m]]
    stacked = [body.types[o] for o in body.outputs[m:]]
    types += [Type((params["length"], *t.shape), t.dtype, home=t.home) for t in stacked]
    types += [Type((), np.dtype(np.int64), SCALAR)] if until else []
    return _of_one_equation(while_p if until else scan_p, operands, params, types)


def _of_one_equation(prim: Primitive, operands: Any, params: dict, results: list[Type]) -> Graph:
    n = len(operands)
    ins, outs = list(range(n)), list(range(n, n + len(results)))
    eq = Equation(prim, tuple(ins), params, tuple(outs))
    return Graph([*map(type_of, operands), *results], ins, {}, [eq], outs)


def is_control(eq: Equation) -> bool:
    return eq.prim.archetype in ("loop", "branch")


def trim(graph: Graph, optimise: Callable) -> Graph:
    """Optimise the bodies of all loops and branches, after dropping what no result needs."""
    if not any(map(is_control, graph.equations)):
        return graph
    alive = {*graph.outputs, *unread(graph, graph.outputs)}
    kept: list[Equation] = []
    alias: dict[int, int] = {}
    for eq in reversed(graph.equations):
        if eq.prim is not GUARD and not any(o in alive for o in eq.outs):
            continue
        if eq.prim.archetype == "loop":
            eq = _trim_loop(graph, eq, alive, alias, optimise)
            while _has_unread(eq):  # what was read only by what the optimised body does not do any more
                eq = _trim_loop(graph, eq, alive, alias, optimise)
        elif eq.prim.archetype == "branch":
            eq = _trim_branches(graph, eq, alive, optimise)
        alive.update(eq.ins)
        kept.append(eq)
    kept = kept[::-1]
    if alias:
        kept = [_rename(eq, alias) for eq in kept]
    outputs = [_end(i, alias) for i in graph.outputs]
    constants = {i: c for i, c in graph.constants.items() if i in alive or i in outputs}
    graph = graph.replace(equations=kept, constants=constants, outputs=outputs)
    return trim(graph, optimise) if alias and any(map(_reads_twice, kept)) else graph


def _reads_twice(eq: Equation) -> bool:
    """Return whether a loop is given a value several times, of which its body is to read one."""
    if eq.prim.archetype != "loop":
        return False
    loop = Loop(eq)
    return any(len(set(operands)) < len(operands) for operands in (loop.consts, loop.xs))


def _end(i: int, alias: dict[int, int]) -> int:
    while i in alias:
        i = alias[i]
    return i


def _rename(eq: Equation, alias: dict) -> Equation:
    ins = tuple([_end(i, alias) for i in eq.ins])
    return eq if ins == eq.ins else Equation(eq.prim, ins, eq.params, eq.outs, eq.place)


def _trim_loop(graph: Graph, eq: Equation, alive: set, alias: dict, optimise: Callable) -> Equation:
    params = dict(eq.params)
    body, c, m, index = params["body"], params["consts"], params["carries"], int(params["index"])
    counted = int(params["stop"] == "count")
    until = params["stop"] == "cond"
    body = _reading_once(body, eq.ins[:c], body.inputs[:c])
    body = _reading_once(body, eq.ins[c + counted + m :], body.inputs[c + index + m :])
    state = list(eq.outs[:m])
    stacked = list(eq.outs[m : len(body.outputs)])
    start = c + index
    wanted = [o in alive for o in state]
    if until:
        wanted[0] = True
    ys = [k for k, o in enumerate(stacked) if o in alive]
    while True:
        outputs = [body.outputs[k] for k in range(m) if wanted[k]] + [body.outputs[m + k] for k in ys]
        equations = find_needed(body.equations, [*outputs, *unread_in_body(body, outputs)])
        used = {i for e in equations for i in e.ins} | set(outputs)
        more = [w or body.inputs[start + k] in used for k, w in enumerate(wanted)]
        if more == wanted:
            break
        wanted = more
    body = body.replace(equations=equations, outputs=outputs)
    constants = dict(body.constants)
    ins = list(eq.ins)
    consts = [k for k in range(c) if body.inputs[k] in used and not _move(graph, body, k, ins[k], constants)]
    first = c + counted + m
    xs = [
        k
        for k in range(len(ins) - first)
        if body.inputs[start + m + k] in used and not _spread(graph, body, start + m + k, ins[first + k], constants)
    ]
    carry = [k for k in range(m) if wanted[k]]
    numbered = bool(index) and body.inputs[c] in used
    body = body.replace(
        constants=constants,
        inputs=[
            *[body.inputs[k] for k in consts],
            *([body.inputs[c]] if numbered else []),
            *[body.inputs[start + k] for k in carry],
            *[body.inputs[start + m + k] for k in xs],
        ],
    )
    body = optimise(body)
    if params.get("adjoint"):
        state_inputs = body.inputs[len(consts) + numbered : len(consts) + numbered + len(carry)]
        body = tidy_cotangents(body, {i for i in state_inputs if body.types[i].dtype.kind in "fc"})
    outs = [state[k] for k in carry]
    body, left = _distinct(body, len(carry), [stacked[k] for k in ys], alias)
    outs += left
    if until:
        outs.append(eq.outs[-1])
    operands = [
        *[ins[k] for k in consts],
        *ins[c : c + counted],
        *[ins[c + counted + k] for k in carry],
        *[ins[first + k] for k in xs],
    ]
    params.update(body=body, consts=len(consts), carries=len(carry), index=numbered)
    return Equation(eq.prim, tuple(operands), params, tuple(outs), eq.place)


def _reading_once(body: Graph, operands: Any, inputs: Any) -> Graph:
    """Let a body read an operand that it is given several times under one name."""
    first: dict[int, int] = {}
    alias = {i: first[x] for x, i in zip(operands, inputs, strict=True) if first.setdefault(x, i) != i}
    if not alias:
        return body
    equations = [_rename(eq, alias) for eq in body.equations]
    return body.replace(equations=equations, outputs=[_end(i, alias) for i in body.outputs])


def _has_unread(eq: Equation) -> bool:
    """Return whether the body of a loop does not read something that is not its state."""
    body, m, start = eq.params["body"], eq.params["carries"], eq.params["consts"] + int(eq.params["index"])
    read = {i for e in body.equations for i in e.ins} | set(body.outputs)
    return any(i not in read for i in (*body.inputs[:start], *body.inputs[start + m :]))


def _distinct(body: Graph, carries: int, stacked: list[int], alias: dict) -> tuple[Graph, list[int]]:
    """Stack each value once."""
    seen: dict[int, int] = {}
    outputs = body.outputs[:carries]
    outs = []
    for v, o in zip(body.outputs[carries:], stacked, strict=True):
        if v in seen:
            alias[o] = seen[v]
        else:
            seen[v] = o
            outputs.append(v)
            outs.append(o)
    return body.replace(outputs=outputs), outs


def _move(graph: Graph, body: Graph, k: int, operand: int, constants: dict) -> bool:
    """Make a small constant operand a constant of the body."""
    c = graph.constants.get(operand)
    i = body.inputs[k]
    if c is None or np.size(c) > _SMALL or graph.types[operand] != body.types[i]:
        return False
    constants[i] = c
    return True


def _spread(graph: Graph, body: Graph, k: int, operand: int, constants: dict) -> bool:
    """Make an operand that is the same number everywhere a constant of the body, of the shape of one step."""
    c: Any = graph.constants.get(operand)
    if type(c) is not np.ndarray or not c.size or any(c.strides):
        return False
    i = body.inputs[k]
    value = np.broadcast_to(c.reshape(-1)[:1].reshape(()), body.types[i].shape)
    constants[i] = value if body.types[i].kind == ARRAY else value[()]
    return True


def _trim_branches(graph: Graph, eq: Equation, alive: set, optimise: Callable) -> Equation:
    keep = [k for k, o in enumerate(eq.outs) if o in alive]
    graphs = [g.replace(outputs=[g.outputs[k] for k in keep]) for g in eq.params["branches"]]
    graphs = [
        g.replace(equations=find_needed(g.equations, [*g.outputs, *unread_in_body(g, g.outputs)])) for g in graphs
    ]
    operands = eq.ins[1:]
    used = [{i for e in g.equations for i in e.ins} | set(g.outputs) for g in graphs]
    constants: list[dict] = [dict(g.constants) for g in graphs]
    wanted = []
    for k, operand in enumerate(operands):
        if not any(g.inputs[k] in u for g, u in zip(graphs, used, strict=True)):
            continue
        if not all(_move(graph, g, k, operand, c) for g, c in zip(graphs, constants, strict=True)):
            for g, c in zip(graphs, constants, strict=True):
                c.pop(g.inputs[k], None)
            wanted.append(k)
    branches = tuple([
        optimise(g.replace(constants=c, inputs=[g.inputs[k] for k in wanted]))
        for g, c in zip(graphs, constants, strict=True)
    ])  # fmt: skip
    ins = (eq.ins[0], *[operands[k] for k in wanted])
    return Equation(eq.prim, ins, {"branches": branches}, tuple([eq.outs[k] for k in keep]), eq.place)
