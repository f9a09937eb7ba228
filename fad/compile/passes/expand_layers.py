"""Layers and rotations are written as the operations that the other passes know: products, sums, slices, joins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fad.core.graph import ARRAY, Equation, Graph, Type
from fad.core.primitive import REGISTRY


def take_apart(graph: Graph) -> Graph:
    """Write what has no kernel as operations that have: a layer's ``x @ w.T + b``, a rotation of an array."""
    types = list(graph.types)
    equations: list[Equation] = []

    def new(shape: tuple, dtype: np.dtype) -> int:
        types.append(Type(shape, dtype, ARRAY))
        return len(types) - 1

    for eq in graph.equations:
        if eq.prim.name == "affine" and len(types[eq.ins[0]].shape) == 2:
            equations += _layer(eq, types, new)
        elif eq.prim.name == "roll_round" and types[eq.outs[0]].size:
            equations += _rotation(eq, types, new)
        else:
            equations.append(eq)
    return graph.replace(types=types, equations=equations)


def _layer(eq: Equation, types: list, new: Callable) -> list[Equation]:
    x, w, b = eq.ins
    rows, columns = types[w].shape
    flipped = new((columns, rows), types[w].dtype)
    product = new((types[x].shape[0], rows), np.result_type(types[x].dtype, types[w].dtype))
    return [
        Equation(REGISTRY["permute"], (w,), {"axes": (1, 0)}, (flipped,)),
        Equation(REGISTRY["matmul"], (x, flipped), {}, (product,)),
        Equation(REGISTRY["add"], (product, b), {}, eq.outs),
    ]


def _rotation(eq: Equation, types: list, new: Callable) -> list[Equation]:
    """Write a rotation along one axis after the other as two slices that are joined."""
    (x,), found = eq.ins, []
    t = types[x]
    turns = [(n % t.shape[a], a) for n, a in zip(eq.params["shift"], eq.params["axis"], strict=True)]
    turns = [(n, a) for n, a in turns if n]
    for k, (n, a) in enumerate(turns):
        whole = t.shape[a]
        parts = []
        for start, stop in ((whole - n, whole), (0, whole - n)):
            part = new((*t.shape[:a], stop - start, *t.shape[a + 1 :]), t.dtype)
            index = (*[slice(None)] * a, slice(start, stop))
            found.append(Equation(REGISTRY["getitem"], (x,), {"template": index}, (part,)))
            parts.append(part)
        x = eq.outs[0] if k == len(turns) - 1 else new(t.shape, t.dtype)
        found.append(Equation(REGISTRY["join"], tuple(parts), {"axis": a}, (x,)))
    return found or [eq]
