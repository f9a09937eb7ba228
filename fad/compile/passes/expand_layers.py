"""Layers and rotations are written as the operations that the other passes know: products, sums, slices, joins."""

from __future__ import annotations

from fad.compile.ir.builder import Builder
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.arranging import roll_p


def expand_layers(graph: Graph) -> Graph:
    """Write what has no kernel as operations that have: a layer's ``x @ w.T + b``, a rotation of an array."""
    work = Builder(graph)
    for eq in graph.equations:
        if eq.prim.dependence == "affine" and len(work.types[eq.ins[0]].shape) == 2:
            _layer(work, eq)
        elif eq.prim is roll_p and work.types[eq.outs[0]].size:
            _rotation(work, eq)
        else:
            work.equations.append(eq)
    return work.finish()


def _layer(work: Builder, eq: Equation) -> None:
    x, w, b = eq.ins
    work.replace(eq, work.add(work.matmul(x, work.matrix_transpose(w)), b))


def _rotation(work: Builder, eq: Equation) -> None:
    """Write a rotation along one axis after the other as two slices that are joined."""
    (x,) = eq.ins
    t = work.types[x]
    turns = [(n % t.shape[a], a) for n, a in zip(eq.params["shift"], eq.params["axis"], strict=True)]
    turns = [(n, a) for n, a in turns if n]
    if not turns:
        work.replace(eq, work.copy(x))
        return
    for n, a in turns:
        whole = t.shape[a]
        x = work.concatenate([work.take_along(x, a, whole - n, whole), work.take_along(x, a, 0, whole - n)], a)
    work.replace(eq, x)
