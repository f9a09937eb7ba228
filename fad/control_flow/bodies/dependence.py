"""What in a body depends on which of its inputs: as far as derivatives go, or at all.

For derivatives, loops and branches in a body are looked into: of what an inner loop carries, some may be the same
whatever is differentiated, and needs no cotangent.
"""

from __future__ import annotations

from typing import Any

from fad.control_flow.bodies.loop_layout import Operands, Outputs
from fad.core.programs.graph import Equation, Graph


def find_dependent(graph: Graph, inputs: list[bool], derivative: bool = True) -> list[bool]:
    """Return which outputs depend on the inputs that are marked; as far as derivatives go, or at all."""
    alive = {i for i, mark in zip(graph.inputs, inputs, strict=True) if mark}
    for eq in graph.equations:
        if any(i in alive for i in eq.ins) and not (derivative and eq.prim.flat):
            if not derivative:
                alive.update(eq.outs)
                continue
            marks = _find_results(eq, [i in alive for i in eq.ins])
            found = [o for o, mark in zip(eq.outs, marks, strict=True) if mark]
            alive.update(o for o in found if graph.types[o].dtype.kind in "fc")
    return [o in alive for o in graph.outputs]


def _find_results(eq: Equation, marks: list[bool]) -> list[bool]:
    """Return of which results of an operation the marked operands have a derivative."""
    if eq.prim.archetype == "loop" and "cut" not in eq.params:  # a loop, and not the gradient of one
        return [*find_active(marks, eq.params)[1], False][: len(eq.outs)]  # the number of steps is an integer
    if eq.prim.archetype == "branch":
        return find_chosen(eq.params["branches"], marks[1:])
    return [True] * len(eq.outs)


def find_chosen(branches: Any, marks: list[bool]) -> list[bool]:
    """Return of which results of a branch the marked operands have a derivative, whichever is chosen."""
    found = [find_dependent(g, marks) for g in branches]
    return [any(column) for column in zip(*found, strict=True)]


def find_active(marks: Any, params: dict, derivative: bool = True) -> tuple[list[bool], list[bool]]:
    """Mark the carry that depends on marked operands in any step; return the marks of the body's inputs and outputs."""
    inputs = Operands.split(marks, params).at_inputs([False] if params["index"] else [])
    while True:
        outputs = Outputs.split(find_dependent(params["body"], inputs.join(), derivative), params)
        carry = [a or b for a, b in zip(inputs.carry, outputs.carry, strict=True)]
        if carry == inputs.carry:
            return inputs.join(), [*carry, *outputs.ys]
        inputs = inputs._replace(carry=carry)
