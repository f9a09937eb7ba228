"""What a recorded program may have to do with infinite slopes: slopes of its own, and operands that it leaves out.

`fad.transforms.reverse.slopes` asks the same of what is on a tape, where values are at hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.archetypes import STEEP
from fad.ops.ufuncs.elementwise import has_zero, power
from fad.transforms.reverse.slopes import FACTORS


def has_steep(graph: Any) -> bool:
    """Return whether an operation of a program may have an infinite slope."""
    for eq in graph.equations:
        partials: tuple = eq.prim.partials or ()
        if any(map(has_steep, eq.bodies)):
            return True
        if any(partial in STEEP for partial in partials):
            second = graph.constants.get(eq.ins[1]) if len(partials) == 2 else None
            divides = partials[-1] in FACTORS
            if second is None or not (_is_whole(second) if eq.prim is power else divides and not has_zero(second)):
                return True
    return False


def _is_whole(exponent: Any) -> bool:
    """Return whether powers with an exponent have finite derivatives at zero, of all orders."""
    return np.size(exponent) == 1 and bool(np.all(exponent >= 0)) and bool(np.all(exponent == np.round(exponent)))


def leaves_out(graph: Any, active: list[bool], some: list[int] | None = None) -> bool:
    """Return whether a program may use a part of its operands only, by a choice, an index or a constant zero.

    The derivative is taken of its inputs that are `active`. It is asked for all of them, or for those in `some`.
    """
    moved = {i for i, a in zip(graph.inputs, active, strict=True) if a and graph.types[i].dtype.kind in "fc"}
    reached = set(moved if some is None else moved.intersection(some))
    if not reached <= {i for eq in graph.equations for i in eq.ins}.union(graph.outputs):
        return True
    for eq in graph.equations:
        if eq.prim.flat:
            continue
        if not reached.isdisjoint(eq.ins):
            if _leaves_out(eq, graph, moved):
                return True
            reached.update(eq.outs)
        if not moved.isdisjoint(eq.ins):
            moved.update(eq.outs)
    return False


def _leaves_out(eq: Any, graph: Any, moved: set[int]) -> bool:
    prim, constants = eq.prim, graph.constants
    if prim.adds:
        return False
    if prim.partials is not None or prim.archetype == "bilinear":
        factors = prim.partials is None or not FACTORS.keys().isdisjoint(prim.partials)
        fixed = [i for i in eq.ins if i not in moved]
        zeros = factors and any(i not in constants or has_zero(constants[i]) for i in fixed)
        return zeros or prim.choice is not None
    if prim.archetype == "loop":
        body = eq.params["body"]
        return leaves_out(body, [True] * len(body.inputs))
    size, given = graph.types[eq.outs[0]].size, max([graph.types[i].size for i in eq.ins], default=0)
    if prim.archetype == "linear" and not prim.selects:
        return size < given or (prim.indexed is not None and given > 1)
    return not prim.moves
