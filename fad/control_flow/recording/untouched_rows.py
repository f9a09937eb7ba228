"""Reads of what no step has written yet: they are reads of the array as it was before the loop.

``for i in range(n): B[i] += A[i + 1 :, i] @ B[i + 1 :]`` writes one row of B in each step, and reads rows that are
written later. Read from the array before the loop they are no part of the state: nothing is kept of them for the
backward pass, and their cotangents are added up beside the state's.
"""

from __future__ import annotations

from fad.control_flow.bodies.counters import Counters, Place
from fad.control_flow.bodies.loop_layout import Inputs, Operands, Outputs
from fad.core.programs.graph import Equation
from fad.core.programs.rewriter import Rewriting
from fad.ops.ufuncs.selection import where_p


def read_from_the_start(operands: Operands, params: dict) -> tuple[Operands, dict]:
    """Let a body read from arrays before the loop what no earlier step has written; return what it is given then."""
    body = params["body"]
    inputs, outputs = Inputs.split(body.inputs, params), Outputs.split(body.outputs, params)
    if not inputs.number or params["stop"] != "length":
        return operands, params
    counters, work = Counters(body, inputs.number, params["length"]), Rewriting(body)
    work.equations = list(body.equations)
    consts, given = list(inputs.consts), list(operands.consts)
    for start, end, x in zip(inputs.carry, outputs.carry, operands.carry, strict=True):
        written = counters.versions(start, end)
        later = [] if written is None else _reads_of_later(counters, *written, params["reverse"])
        if later:
            consts.append(work.add_value(body.types[start]))
            given.append(x)
        for k in later:
            eq = work.equations[k]
            work.equations[k] = Equation(eq.prim, (eq.ins[0], consts[-1], eq.ins[2]), eq.params, eq.outs, eq.place)
    inputs, operands = inputs._replace(consts=consts), operands._replace(consts=given)
    return operands, {**params, "body": work.finish().replace(inputs=inputs.join()), **inputs.layout()}


def _reads_of_later(counters: Counters, versions: set[int], place: Place, reverse: bool) -> list[int]:
    """Return the equations that choose from an array what only steps to come write."""
    types = counters.body.types
    towards = 1 if (place.step == 1) != reverse else -1
    found = []
    for k, eq in enumerate(counters.body.equations):
        if eq.prim is where_p and len(eq.ins) == 3 and eq.ins[1] in versions:
            mask, x, _ = eq.ins
            shape = types[x].shape
            if types[eq.outs[0]].shape == shape and counters.is_beyond(mask, place.axis - len(shape), place, towards):
                found.append(k)
    return found
