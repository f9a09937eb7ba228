"""Products that are added to an array: ``W - 0.01 * (X.T @ D)``, a step of gradient descent, as one call of BLAS.

gemm adds to what lies where its result goes, times a number. So neither is the product stored nor read again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.compile.ir.expressions import template
from fad.compile.ir.lowered_ops import ADDED_PRODUCT
from fad.compile.ir.uses import use_counts
from fad.compile.machine.cpu import is_small, thinnest
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import ARRAY, Equation, Graph
from fad.ops.products.contraction import matmul

_REAL = (np.dtype(float), np.dtype(np.float32))


def accumulate_gemm(graph: Graph) -> Graph:
    """Join large products with the sums that are results of the program, if nothing else reads either of them.

    What else is elementwise about the sum, before or after, would be one loop with it, which is then left as it is.
    """
    large = {eq.outs[0]: eq for eq in graph.equations if eq.prim is matmul and _is_large(graph, eq)}
    if not large:
        return graph
    outputs, counts = set(graph.outputs), use_counts(graph)
    made = {eq.outs[0]: eq for eq in graph.equations if len(eq.outs) == 1}
    equations = []
    for eq in graph.equations:
        if eq.prim.symbol in ("+", "-") and eq.outs[0] in outputs and counts[eq.outs[0]] == 1:
            eq = _join(graph, eq, large, counts, made) or eq
        equations.append(eq)
    return drop_dead(graph.replace(equations=equations))


def _is_large(graph: Graph, eq: Equation) -> bool:
    x, y = (graph.types[i].shape for i in eq.ins)
    real = len(x) == len(y) == 2 and graph.types[eq.outs[0]].dtype in _REAL
    return real and not is_small(x[0], *y) and min(x[0], y[1]) > thinnest()


def _join(graph: Graph, eq: Equation, large: dict, counts: Any, made: dict) -> Equation | None:
    t = graph.types[eq.outs[0]]
    for place in (1, 0)[: 1 + (eq.prim.symbol == "+")]:
        base = eq.ins[1 - place]
        before = made.get(base)
        if graph.types[base] != t or t.kind != ARRAY or (before and template(graph, before, graph.constants)):
            continue
        found = _scale(graph, eq, eq.ins[place], large, counts, made)
        if found is not None:
            product, factor = found
            factor = factor if eq.prim.symbol == "+" else -factor
            return Equation(ADDED_PRODUCT, (*product.ins, base), {"factor": factor}, eq.outs, eq.place)
    return None


def _scale(graph: Graph, total: Equation, i: int, large: dict, counts: Any, made: dict) -> tuple | None:
    """Return the product and the number that a summand is made of, with no other use; None if it is another value."""
    factor, dtype = 1.0, graph.types[total.outs[0]].dtype
    while i not in large:
        eq = made.get(i)
        if eq is None or counts[i] > 1 or eq.prim.symbol not in ("*", "neg"):
            return None
        numbers = [k for k in eq.ins if k in graph.constants and np.ndim(graph.constants[k]) == 0]
        if len(numbers) != len(eq.ins) - 1:
            return None
        factor *= float(graph.constants[numbers[0]]) if numbers else -1.0
        (i,) = (k for k in eq.ins if k not in numbers)
    same = all(graph.types[k].dtype == dtype for k in (i, *large[i].ins))
    with np.errstate(over="ignore", under="ignore"):
        factor = float(dtype.type(factor))
    known = factor != 0 and np.isfinite(factor)  # BLAS takes no notice of what is times 0
    return (large[i], factor) if same and known and counts[i] == 1 else None
