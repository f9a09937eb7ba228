"""Choices between numbers, made in the dtype that they are wanted in.

A choice between Python's numbers is double precision, and what it scales may be single. Chosen in single precision at
once, it takes vectors of half the size, and no conversion.
"""

from __future__ import annotations

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.passes.constants import as_uniform
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import ARRAY, Equation, Graph, Type
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.selection import where_p


def narrow_selects(graph: Graph) -> Graph:
    """Choose between numbers in single precision where the choice is converted to it."""
    made = {eq.outs[0]: eq for eq in graph.equations if eq.prim is where_p}
    if not made or not any(_fits(graph, eq, made) for eq in graph.equations):
        return graph
    work = Builder(graph)

    def narrow(i: int, dtype: np.dtype) -> int:
        if i not in made:
            with np.errstate(over="ignore"):
                return work.number(as_uniform(graph.constants[i]), dtype)
        return choose(i, dtype)

    def choose(i: int, dtype: np.dtype) -> int:
        condition, *both = made[i].ins
        ins = (condition, *[narrow(x, dtype) for x in both])
        return work.apply(where_p, ins, {}, Type(graph.types[i].shape, dtype, ARRAY))

    for eq in graph.equations:
        if _fits(graph, eq, made):
            work.replace(eq, choose(eq.ins[0], np.dtype(eq.params["dtype"])))
        else:
            work.equations.append(eq)
    return drop_dead(work.finish())


def _fits(graph: Graph, eq: Equation, made: dict) -> bool:
    if eq.prim is not astype_p or eq.params["dtype"] != np.float32 or eq.ins[0] not in made:
        return False
    return graph.types[eq.ins[0]].dtype == np.float64 and _of_numbers(graph, eq.ins[0], made)


def _of_numbers(graph: Graph, i: int, made: dict) -> bool:
    """Return whether a value is a choice between numbers; they are rounded before instead of after."""
    if i in made:
        return all(_of_numbers(graph, x, made) for x in made[i].ins[1:])
    return i in graph.constants and as_uniform(graph.constants[i]) is not None
