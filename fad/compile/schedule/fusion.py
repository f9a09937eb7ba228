"""Fusion in one pass: steps by level.

Every value has a level, and a group of fused operations has one: all that it reads was computed on lower levels, or in
the group itself. An elementwise operation joins the group of an operand if it has its shape and that stays true.
Running the steps by level is then a right order.
"""

from __future__ import annotations

from collections.abc import Callable

from fad.core.programs.graph import Equation, Graph

ORDERED = frozenset({"guard", "call", "control"})  # steps that Python sees run, which stay in their order
_MOST_NUMBERS = 24  # operands of a loop that are numbers: each is in a register throughout


class Step:
    """One step of a program.

    `kind` is "loop", "sum", "matmul", "convolution", "pieces", "lookup", "row", "guard", "view", "control", "call",
    or "lone": an elementwise operation that a device's library computes. A loop is `full` once an operation found no
    place in it for its operands; `again` are values that it computes beside the loop that stores them.
    """

    __slots__ = (
        "kind", "level", "number", "equations", "templates", "shape", "members", "operands", "weight", "full",
        "again",
    )  # fmt: skip

    def __init__(self, kind: str, level: int, number: int, eq: Equation, shape: tuple = ()):
        self.kind = kind
        self.level = level
        self.number = number
        self.equations = [eq]
        self.templates: list[str] = []
        self.weight = 0.0
        self.full = False
        self.again: set[int] = set()
        self.shape = shape
        self.members: set[int] = set(eq.outs)
        self.operands: set[int] = set(eq.ins)


def join(graph: Graph, eq: Equation, level: dict, group: dict, more: float, limits: Callable) -> Step | None:
    """Put an operation into the group of one of its operands if all others come from below; return the group.

    `more` is what it weighs; ``limits(shape)`` are the most weight and the most operands of a group. A group that is
    full takes nothing more: what goes on from it, a product of ever more factors beside a sum, say, goes on in the
    group that comes next, and is not stored for that step by step.
    """
    shape = graph.types[eq.outs[0]].shape
    mine = [group[i] for i in eq.ins if i in group and group[i].shape == shape and not group[i].full]
    if not mine:
        return None
    best = mine[0] if len(mine) == 1 else max(mine, key=lambda step: step.level)
    most_weight, most_operands = limits(shape)
    if best.weight + more > most_weight:
        return None
    for other in dict.fromkeys(mine) if len(mine) > 1 else ():  # one group may give several operands
        if other is not best and other.level == best.level:
            _merge(graph, best, other, group, most_weight - more, most_operands)
    for i in eq.ins:
        if i not in best.members and level[i] >= best.level:
            return None
    many = len(best.operands) + len(eq.ins) > _MOST_NUMBERS
    if many and not are_few(graph, best.operands.union(eq.ins) - best.members, most_operands):
        best.full = True
        return None
    best.equations.append(eq)
    best.members.update(eq.outs)
    best.operands.update(eq.ins)
    return best


def are_few(graph: Graph, operands: set[int], most: int) -> bool:
    """Return whether a loop may have these operands; numbers that are known beforehand do not count."""
    arrays = sum(bool(graph.types[i].shape) for i in operands)
    numbers = sum(not graph.types[i].shape and i not in graph.constants for i in operands)
    return arrays + numbers <= most and numbers <= _MOST_NUMBERS


def _merge(graph: Graph, best: Step, other: Step, group: dict, most_weight: float, most_operands: int) -> None:
    """Make two groups of one level and shape one: neither reads what the other computes."""
    operands = best.operands | other.operands
    outside = operands - best.members - other.members
    if best.weight + other.weight > most_weight or not are_few(graph, outside, most_operands - 1):
        return
    best.equations += other.equations
    best.templates += other.templates
    best.members |= other.members
    best.operands = operands
    best.weight += other.weight
    for o in other.members:
        group[o] = best
    other.equations, other.templates = [], []
