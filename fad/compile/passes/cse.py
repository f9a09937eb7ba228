"""Common subexpressions: what is computed twice alike is computed once."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.programs.graph import Equation, Graph, has_effects, hashable
from fad.core.programs.rewriter import rewrite_equations
from fad.ops.arrangement.structural import reshape_p, transpose_p

_LARGE = 1 << 16  # elements above which constants are not compared


def share(graph: Graph) -> Graph:
    """Compute each expression once: equal operation, operands and parameters give one value."""
    seen: dict[Any, tuple] = {}
    constants: dict[Any, int] = {}
    first: dict[int, int] = {}
    large: dict[Any, list[int]] = {}
    for i, c in graph.constants.items():
        if type(c) is not np.ndarray or c.size <= 64:
            first[i] = constants.setdefault((graph.types[i], hashable(c)), i)
        elif c.size <= _LARGE:
            large.setdefault(graph.types[i], []).append(i)
    for alike in large.values():
        if len(alike) > 1:
            first.update({i: constants.setdefault((graph.types[i], graph.constants[i].tobytes()), i) for i in alike})

    variable = first.keys().isdisjoint

    def rewrite(eq: Equation, alias: dict) -> Equation | None:
        ins = eq.ins if variable(eq.ins) else tuple([first.get(i, i) for i in eq.ins])
        if has_effects(eq):
            return Equation(eq.prim, ins, eq.params, eq.outs, eq.place)
        params = hashable(eq.params) if eq.params else ()
        known = seen.setdefault((eq.prim, ins, params), eq.outs)
        if known is not eq.outs:
            alias.update(zip(eq.outs, known, strict=True))
            return None
        return eq if ins is eq.ins else Equation(eq.prim, ins, eq.params, eq.outs, eq.place)

    return rewrite_equations(graph, rewrite)


def share_copies(graph: Graph) -> Graph:
    """Let a transposed array be copied once for all shapes that it is wanted in: the others are views of the first."""
    transposed = {eq.outs[0] for eq in graph.equations if eq.prim is transpose_p}
    first: dict[int, int] = {}
    equations = []
    for eq in graph.equations:
        if eq.prim is reshape_p and eq.ins[0] in transposed:
            known = first.setdefault(eq.ins[0], eq.outs[0])
            if known != eq.outs[0]:
                eq = Equation(eq.prim, (known,), eq.params, eq.outs, eq.place)
        equations.append(eq)
    return graph.replace(equations=equations)
