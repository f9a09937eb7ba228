"""One matrix times many thin ones, as one product with all of their columns side by side.

The derivatives of ``A @ x`` along many directions are the products of A with as many matrices of a few columns each.
One by one they leave most of a vector unused, and read A again for each.
"""

from __future__ import annotations

import math

import numpy as np

from fad.compile.ir.builder import Builder
from fad.core.programs.graph import Equation, Graph
from fad.ops.products.contraction import matmul

_MOST_COLUMNS = 4  # of what is thin
_FEWEST_TOGETHER = 16  # columns
_FEWEST_ROWS, _SHORTEST = 32, 48  # of the matrix; columns put side by side, and apart again, are copied
_REAL = (np.dtype(float), np.dtype(np.float32))


def join_thin_products(graph: Graph) -> Graph:
    """Rewrite the products of one matrix with many of a few columns."""
    if not any(_is_thin(graph, eq) for eq in graph.equations):
        return graph
    work = Builder(graph)
    for eq in graph.equations:
        if _is_thin(graph, eq):
            _join(work, eq)
        else:
            work.equations.append(eq)
    return work.finish()


def _is_thin(graph: Graph, eq: Equation) -> bool:
    if eq.prim is not matmul:
        return False
    (a, b), out = (graph.types[i] for i in eq.ins), graph.types[eq.outs[0]]
    if len(a.shape) != 2 or len(b.shape) < 3 or out.dtype not in _REAL or not a.dtype == b.dtype == out.dtype:
        return False
    (rows, k), n = a.shape, b.shape[-1]
    count = math.prod(b.shape[:-2])
    return 1 < n <= _MOST_COLUMNS and count * n >= _FEWEST_TOGETHER and rows >= _FEWEST_ROWS and k >= _SHORTEST


def _join(work: Builder, eq: Equation) -> None:
    a, b = eq.ins
    (*lead, k, n), m = work.types[b].shape, work.types[a].shape[0]
    d = len(lead)
    joined = work.reshape(work.transpose(b, (d, *range(d), d + 1)), (k, math.prod(lead) * n))
    apart = work.reshape(work.matmul(a, joined), (m, *lead, n))
    work.replace(eq, work.transpose(apart, (*range(1, d + 1), 0, d + 1)))
