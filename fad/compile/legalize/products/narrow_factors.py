"""Products with a matrix of so few columns that its rows fill no vector: a layer with a few outputs, and its gradients.

As they lie, most of each vector would be unused. Where the rows of the other factor are contiguous, the narrow one is
copied with its columns contiguous, and the product is dot products. Where the columns of the other are, the transpose
of the product is computed, which has few rows, and long ones.
"""

from __future__ import annotations

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.machine.cpu import LONG_DOT, register_bytes
from fad.core.programs.graph import Equation, Graph, Type
from fad.ops.arrangement.structural import transpose_p
from fad.ops.products.contraction import matmul

_FEWEST_ROWS = 32  # of the other factor
_REAL = (np.dtype(float), np.dtype(np.float32))


def arrange_narrow_factors(graph: Graph) -> Graph:
    """Rewrite the products of matrices whose right factor is narrow."""
    if not any(_has_narrow_factor(graph.types, eq) for eq in graph.equations):
        return graph
    transposed = {eq.outs[0]: eq.ins[0] for eq in graph.equations if _is_transposition(eq)}
    work = Builder(graph)
    for eq in graph.equations:
        product = _arrange(work, eq, transposed) if _has_narrow_factor(graph.types, eq) else None
        if product is None:
            work.equations.append(eq)
        else:
            work.replace(eq, product)
    return work.finish()


def _arrange(work: Builder, eq: Equation, transposed: dict[int, int]) -> int | None:
    """Return the same product, computed otherwise; None if the narrow factor lies well."""
    x, y = eq.ins
    if x in transposed:
        rows = transposed[y] if y in transposed else work.matrix_transpose(y)
        return work.matrix_transpose(work.matmul(rows, transposed[x]))
    if y in transposed:
        return None
    columns = work.astype(work.matrix_transpose(y), work.types[y].dtype)
    return work.matmul(x, work.matrix_transpose(columns))


def _is_transposition(eq: Equation) -> bool:
    return eq.prim is transpose_p and tuple(eq.params["axes"]) == (1, 0)


def _has_narrow_factor(types: list[Type], eq: Equation) -> bool:
    """Return whether the rows of a right factor fill no more than half a vector, and its columns are long."""
    if eq.prim is not matmul:
        return False
    left, right = (types[i] for i in eq.ins)
    if len(left.shape) != 2 or len(right.shape) != 2 or right.dtype not in _REAL or left.dtype != right.dtype:
        return False
    (m, k), n = left.shape, right.shape[1]
    return m >= _FEWEST_ROWS and k >= LONG_DOT and 1 < n <= register_bytes() // (2 * right.dtype.itemsize)
