"""A product of rows that are merged from axes in another order is a batch of products, which copies nothing.

Under `vmap` the products of many matrices with one are a single product of all their rows. Where the matrices lie
across each other in memory, as many thin products that were one product do, to merge their rows is to copy them.
"""

from __future__ import annotations

from fad.compile.ir.builder import Builder
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import reshape_p, transpose_p
from fad.ops.products.contraction import matmul

_MOST_COLUMNS = 64  # of the rows and of the result: more work than that is worth a copy


def unmerge_rows(graph: Graph) -> Graph:
    """Multiply the axes of a transposed array as they are, where they are merged for a product with a matrix."""
    made = {o: eq for eq in graph.equations for o in eq.outs if eq.prim in (transpose_p, reshape_p)}
    if not any(_parts(graph, eq, made) for eq in graph.equations):
        return graph
    work = Builder(graph)
    for eq in graph.equations:
        parts = _parts(graph, eq, made)
        if parts is None:
            work.equations.append(eq)
            continue
        product = work.matmul(parts, eq.ins[1])
        work.replace(eq, work.reshape(product, work.types[eq.outs[0]].shape))
    return drop_dead(work.finish())


def _parts(graph: Graph, eq: Equation, made: dict[int, Equation]) -> int | None:
    """Return the transposed array whose rows a product has merged; None if they are others, or wide."""
    if eq.prim is not matmul or any(len(graph.types[i].shape) != 2 for i in eq.ins):
        return None
    merge = made.get(eq.ins[0])
    turn = made.get(merge.ins[0]) if merge is not None and merge.prim is reshape_p else None
    if merge is None or turn is None or turn.prim is not transpose_p:
        return None
    shape, axes = graph.types[turn.outs[0]].shape, turn.params["axes"]
    k, n = graph.types[eq.ins[1]].shape
    fits = len(shape) > 2 and shape[-1] == k and axes[-1] == len(axes) - 1 and max(k, n) <= _MOST_COLUMNS
    return merge.ins[0] if fits else None
