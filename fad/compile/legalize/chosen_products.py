"""Products with the elements of a matrix that a mask chooses, as products with zeros in the place of the others.

They are the same unless something infinite stands where the zeros meet it. Then the result has a NaN, the program
stops, and the call runs in NumPy, which multiplies what is chosen.
"""

from __future__ import annotations

import numpy as np

from fad.compile.ir.lowered_ops import BLOCK_PRODUCT, CHOSEN_PRODUCT
from fad.compile.legalize.integer_overflow import CHECK
from fad.core.graph import SCALAR, Equation, Graph, Type
from fad.core.rewriter import Rewriting
from fad.ops.contraction import matmul
from fad.ops.conversion import astype_p
from fad.ops.elementwise import isfinite, multiply
from fad.ops.reduction import sum_p
from fad.ops.selection import where_p


def expand_chosen_products(graph: Graph) -> Graph:
    """Rewrite the products of a program of which a mask chooses elements."""
    if not any(eq.prim is CHOSEN_PRODUCT for eq in graph.equations):
        return graph
    work = Rewriting(graph)
    for eq in graph.equations:
        if eq.prim is CHOSEN_PRODUCT:
            _expand(work, eq)
        else:
            work.equations.append(eq)
    return work.finish()


def _expand(work: Rewriting, eq: Equation) -> None:
    (x, mask, y), (z,) = eq.ins, eq.outs
    t, result = work.types[x], work.types[z]
    zero, work.place = work.number(0, t.dtype), eq.place
    chosen = work.new(where_p, (mask, x, zero), {}, t.shape, t.dtype)
    blocks = eq.params["blocks"]
    prim, params = matmul, {}
    if blocks is not None:
        prim, params = BLOCK_PRODUCT, {"blocks": blocks, "of": "terms"}
    work.equations.append(Equation(prim, (chosen, y), params, eq.outs, eq.place))
    zeros = work.new(multiply, (z, zero), {}, result.shape, t.dtype)
    total = work.new(sum_p, (zeros,), {"axis": (0, 1), "keepdims": False}, (), t.dtype)
    finite = work.new(isfinite, (total,), {}, (), np.bool_)
    number = work.new(astype_p, (finite,), {"dtype": np.dtype(np.int64)}, (), np.int64)
    work.apply(CHECK, (number,), {"how": "nonzero", "of": z}, Type((), np.dtype(np.int64), SCALAR))
