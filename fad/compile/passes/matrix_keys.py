"""What a matrix product is of, whichever of its factors are transposed: products that are equal have equal keys."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fad.compile.ir.uses import find_transposed
from fad.core.programs.graph import Equation
from fad.ops.products.contraction import matmul


class Side(NamedTuple):
    """A factor of a product: an array, and whether it is transposed."""

    array: int
    transposed: bool


Key = tuple[Side, Side]


def turn(side: Side) -> Side:
    return Side(side.array, not side.transposed)


def is_plain_product(graph: Any, eq: Equation) -> bool:
    """Return whether an operation multiplies matrices, or a matrix and a vector, of one floating-point dtype."""
    if eq.prim is not matmul:
        return False
    (x, y), t = (graph.types[i] for i in eq.ins), graph.types[eq.outs[0]]
    ranks = len(x.shape), len(y.shape)
    return x.dtype == y.dtype == t.dtype and t.dtype.kind == "f" and max(ranks) == 2 and min(ranks) > 0


class Sides:
    """The arrays of a program as factors: a transposed matrix is what it is the transpose of."""

    def __init__(self, graph: Any):
        self.made = {eq.outs[0]: eq for eq in graph.equations if len(eq.outs) == 1}
        self.constants: dict[int, Side] = {}
        seen: dict[tuple, int] = {}
        for i, c in graph.constants.items():
            if type(c) is np.ndarray and c.ndim == 2:
                start = c.__array_interface__["data"][0]
                transposed = seen.get((start, c.shape[::-1], c.strides[::-1]))
                self.constants[i] = Side(i, False) if transposed is None else Side(transposed, True)
                seen.setdefault((start, c.shape, c.strides), i)

    def side(self, i: int) -> Side:
        """Return an array as a factor."""
        x = find_transposed(self.made.get(i))
        if x is not None:
            return Side(x, True)
        return self.constants.get(i) or Side(i, False)

    def key(self, graph: Any, eq: Equation) -> Key:
        """Return what a product is of; ``v @ M`` is ``M.T @ v``."""
        x, y = map(self.side, eq.ins)
        return (turn(y), x) if len(graph.types[eq.ins[0]].shape) == 1 else (x, y)
