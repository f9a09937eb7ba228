"""Layers and rotations are written as the operations that the other passes know: products, sums, slices, joins."""

from __future__ import annotations

import numpy as np

from fad.core.graph import Equation, Graph
from fad.core.rewriter import Rewriting
from fad.ops.arranging import roll_p
from fad.ops.contraction import matmul
from fad.ops.elementwise import add
from fad.ops.indexing import getitem_p
from fad.ops.structural import concatenate_p, transpose_p


def expand_layers(graph: Graph) -> Graph:
    """Write what has no kernel as operations that have: a layer's ``x @ w.T + b``, a rotation of an array."""
    work = Rewriting(graph)
    for eq in graph.equations:
        if eq.prim.dependence == "affine" and len(work.types[eq.ins[0]].shape) == 2:
            _layer(work, eq)
        elif eq.prim is roll_p and work.types[eq.outs[0]].size:
            _rotation(work, eq)
        else:
            work.equations.append(eq)
    return work.finish()


def _layer(work: Rewriting, eq: Equation) -> None:
    x, w, b = eq.ins
    rows, columns = work.types[w].shape
    dtype = np.result_type(work.types[x].dtype, work.types[w].dtype)
    flipped = work.new(transpose_p, (w,), {"axes": (1, 0)}, (columns, rows), work.types[w].dtype)
    product = work.new(matmul, (x, flipped), {}, (work.types[x].shape[0], rows), dtype)
    work.end(eq, add, (product, b), {})


def _rotation(work: Rewriting, eq: Equation) -> None:
    """Write a rotation along one axis after the other as two slices that are joined."""
    (x,) = eq.ins
    t = work.types[x]
    turns = [(n % t.shape[a], a) for n, a in zip(eq.params["shift"], eq.params["axis"], strict=True)]
    turns = [(n, a) for n, a in turns if n]
    for k, (n, a) in enumerate(turns):
        whole = t.shape[a]
        parts = []
        for start, stop in ((whole - n, whole), (0, whole - n)):
            shape = (*t.shape[:a], stop - start, *t.shape[a + 1 :])
            index = (*[slice(None)] * a, slice(start, stop))
            parts.append(work.new(getitem_p, (x,), {"template": index}, shape, t.dtype))
        if k == len(turns) - 1:
            work.end(eq, concatenate_p, tuple(parts), {"axis": a})
        else:
            x = work.new(concatenate_p, tuple(parts), {"axis": a}, t.shape, t.dtype)
    if not turns:
        work.equations.append(eq)
