"""Passes for loops and branches: their bodies are optimised, and dead code is eliminated from them.

A result of a loop that is not used need not be computed in any step, so the pass runs over the program backwards, and
a loop that loses results may spare its operands the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.passes.add_in_branches import add_in_branches
from fad.compile.passes.tidy_cotangents import tidy_cotangents
from fad.control_flow.bodies.loop_layout import Inputs, Loop, Outputs, Results, has_condition
from fad.control_flow.derivatives.pullback import pullback_p
from fad.control_flow.derivatives.split_pullback import find_needed
from fad.control_flow.scan import scan_p, while_p
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, SCALAR, Equation, Graph, Type, type_of
from fad.staging.may_raise import find_unread, find_unread_in_body

_SMALL = 64  # elements up to which a constant goes into the body


def alone(operands: Any, params: dict) -> Graph:
    """Return a program of one loop, or of the pullback of one, for operands of these types."""
    if "cut" in params:
        backward = params["cut"].backward
        return _of_one_equation(pullback_p, operands, params, [backward.types[o] for o in backward.outputs])
    body, until = params["body"], has_condition(params)
    carry, ys = Outputs.split([body.types[o] for o in body.outputs], params)
    types = [*carry, *[Type((params["length"], *t.shape), t.dtype, home=t.home) for t in ys]]
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
    alive = {*graph.outputs, *find_unread(graph, graph.outputs)}
    kept: list[Equation] = []
    alias: dict[int, int] = {}
    for eq in reversed(graph.equations):
        if not eq.is_guard and not any(o in alive for o in eq.outs):
            continue
        if eq.prim.archetype == "loop":
            eq = _trim_loop(graph, eq, alive, alias, optimise)
            while _has_unread(eq):  # what was read only by what the optimised body does not do any more
                eq = _trim_loop(graph, eq, alive, alias, optimise)
        elif eq.prim.archetype == "branch":
            eq = _trim_branches(graph, eq, alive, optimise)
            while _has_unread_operand(eq):
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
    loop = Loop(eq)
    inputs, operands = loop.inputs, loop.operands
    body = _reading_once(loop.body, operands.consts, inputs.consts)
    body = _reading_once(body, operands.xs, inputs.xs)
    outputs = Outputs.split(body.outputs, eq.params)
    wanted = Outputs([o in alive for o in loop.results.carry], [o in alive for o in loop.results.ys])
    if loop.has_condition:
        wanted.carry[0] = True
    while True:
        left = outputs.select(wanted).join()
        equations = find_needed(body.equations, [*left, *find_unread_in_body(body, left)])
        used = {i for e in equations for i in e.ins} | set(left)
        more = [w or i in used for w, i in zip(wanted.carry, inputs.carry, strict=True)]
        if more == wanted.carry:
            break
        wanted = Outputs(more, wanted.ys)
    body = body.replace(equations=equations, outputs=left, constants=dict(body.constants))
    reads = Inputs(
        [i in used and not _move(graph, body, i, x) for i, x in zip(inputs.consts, operands.consts, strict=True)],
        [i in used for i in inputs.number],
        wanted.carry,
        [i in used and not _spread(graph, body, i, x) for i, x in zip(inputs.xs, operands.xs, strict=True)],
    )
    inputs, operands = inputs.select(reads), operands.select(reads)
    params = {**eq.params, **inputs.layout()}
    body = optimise(body.replace(inputs=inputs.join()))
    if params.get("adjoint"):
        carried = Inputs.split(body.inputs, params).carry
        body = tidy_cotangents(add_in_branches(body), {i for i in carried if body.types[i].dtype.kind in "fc"})
    outputs, results = _stack_once(Outputs.split(body.outputs, params), loop.results.select(wanted), alias)
    params["body"] = body.replace(outputs=outputs.join())
    return Equation(eq.prim, tuple(operands.join()), params, tuple(results.join()), eq.place)


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
    body, inputs = eq.params["body"], Inputs.split(eq.params["body"].inputs, eq.params)
    read = {i for e in body.equations for i in e.ins} | set(body.outputs)
    return any(i not in read for i in (*inputs.consts, *inputs.number, *inputs.xs))


def _has_unread_operand(eq: Equation) -> bool:
    """Return whether no way of a branch reads some operand."""
    read = [{i for e in g.equations for i in e.ins} | set(g.outputs) for g in eq.params["branches"]]
    inputs = zip(*[g.inputs for g in eq.params["branches"]], strict=True)
    return any(not any(i in r for i, r in zip(each, read, strict=True)) for each in inputs)


def _stack_once(outputs: Outputs, results: Results, alias: dict) -> tuple[Outputs, Results]:
    """Stack each value once."""
    seen: dict[int, int] = {}
    for v, o in zip(outputs.ys, results.ys, strict=True):
        if v in seen:
            alias[o] = seen[v]
        else:
            seen[v] = o
    return outputs._replace(ys=list(seen)), results._replace(ys=list(seen.values()))


def _move(graph: Graph, body: Graph, i: int, operand: int) -> bool:
    """Make a small constant operand a constant of the body, whose input i it is."""
    c = graph.constants.get(operand)
    if c is None or np.size(c) > _SMALL or graph.types[operand] != body.types[i]:
        return False
    body.constants[i] = c
    return True


def _spread(graph: Graph, body: Graph, i: int, operand: int) -> bool:
    """Make an operand that is the same number everywhere a constant of the body, of the shape of one step."""
    c: Any = graph.constants.get(operand)
    if type(c) is not np.ndarray or not c.size or any(c.strides):
        return False
    value = np.broadcast_to(c.reshape(-1)[:1].reshape(()), body.types[i].shape)
    body.constants[i] = value if body.types[i].kind == ARRAY else value[()]
    return True


def _trim_branches(graph: Graph, eq: Equation, alive: set, optimise: Callable) -> Equation:
    keep = [k for k, o in enumerate(eq.outs) if o in alive]
    graphs = [g.replace(outputs=[g.outputs[k] for k in keep]) for g in eq.params["branches"]]
    graphs = [
        g.replace(equations=find_needed(g.equations, [*g.outputs, *find_unread_in_body(g, g.outputs)])) for g in graphs
    ]
    operands = eq.ins[1:]
    graphs = [g.replace(constants=dict(g.constants)) for g in graphs]
    used = [{i for e in g.equations for i in e.ins} | set(g.outputs) for g in graphs]
    wanted = []
    for k, operand in enumerate(operands):
        if not any(g.inputs[k] in u for g, u in zip(graphs, used, strict=True)):
            continue
        if not all(_move(graph, g, g.inputs[k], operand) for g in graphs):
            for g in graphs:
                g.constants.pop(g.inputs[k], None)
            wanted.append(k)
    branches = tuple([optimise(g.replace(inputs=[g.inputs[k] for k in wanted])) for g in graphs])
    ins = (eq.ins[0], *[operands[k] for k in wanted])
    return Equation(eq.prim, ins, {"branches": branches}, tuple([eq.outs[k] for k in keep]), eq.place)
