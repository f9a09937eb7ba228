"""Terms that a scatter would add into one place are added before, where the sum can be fused with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.cotangent import is_basic
from fad.core.programs.graph import ARRAY, Equation, Graph, Type, hashable
from fad.core.programs.rewriter import Rewriting
from fad.ops.places.indexing import scatter_p
from fad.ops.ufuncs.elementwise import add


def sum_before_scatter(graph: Graph) -> Graph:
    """Add up what a scatter puts into one place beforehand, where the sum can be fused with what computes its terms."""
    work = Rewriting(graph)
    types = work.types
    for eq in graph.equations:
        if eq.prim is scatter_p and len(eq.ins) > 1:
            sums: dict[Any, tuple] = {}
            for i, index in zip(eq.ins, eq.params["indices"], strict=True):
                key = (hashable(index), types[i].shape) if is_basic(index) else len(sums)
                if key in sums:
                    first = sums[key][0]
                    dtype = np.result_type(types[first].dtype, types[i].dtype)
                    i = work.apply(add, (first, i), {}, Type(types[first].shape, dtype, ARRAY))
                sums[key] = (i, index)
            ins, indices = zip(*sums.values(), strict=True)
            eq = Equation(eq.prim, ins, {**eq.params, "indices": indices}, eq.outs, eq.place)
        work.equations.append(eq)
    return work.finish()
