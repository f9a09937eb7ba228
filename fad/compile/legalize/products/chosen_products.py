"""Products with the elements of a matrix that a mask chooses, as products with zeros in the place of the others.

They are the same unless something infinite stands where the zeros meet it. Then the result has a NaN, the program
stops, and the call runs in NumPy, which multiplies what is chosen.
"""

from __future__ import annotations

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.lowered_ops import BLOCK_PRODUCT, CHOSEN_PRODUCT
from fad.compile.legalize.numbers.integer_overflow import add_check
from fad.core.programs.graph import Equation, Graph


def expand_chosen_products(graph: Graph) -> Graph:
    """Rewrite the products of a program of which a mask chooses elements."""
    if not any(eq.prim is CHOSEN_PRODUCT for eq in graph.equations):
        return graph
    work = Builder(graph)
    for eq in graph.equations:
        if eq.prim is CHOSEN_PRODUCT:
            _expand(work, eq)
        else:
            work.equations.append(eq)
    return work.finish()


def _expand(work: Builder, eq: Equation) -> None:
    (x, mask, y), (z,), blocks = eq.ins, eq.outs, eq.params["blocks"]
    zero, work.place = work.number(0, work.types[x].dtype), eq.place
    chosen = work.where(mask, x, zero)
    if blocks is None:
        work.replace(eq, work.matmul(chosen, y))
    else:
        work.replace(eq, work.product(BLOCK_PRODUCT, chosen, y, blocks=blocks, of="terms"))
    finite = work.isfinite(work.sum(work.multiply(z, zero), (0, 1)))
    add_check(work, "nonzero", work.astype(finite, np.int64), z)
