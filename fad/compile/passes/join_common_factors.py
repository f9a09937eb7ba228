"""Sums of products with a common factor: ``A @ B + C @ B`` is ``(A + C) @ B``, one product in the place of two.

The cotangent of A in ``A @ A.T`` is such a sum.
"""

from __future__ import annotations

from fad.compile.ir.builder import Builder
from fad.compile.ir.uses import use_counts
from fad.compile.passes.dce import drop_dead
from fad.compile.passes.matrix_keys import Key, Side, Sides, is_plain_product, turn
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import transpose_p
from fad.ops.products.contraction import matmul
from fad.ops.ufuncs.elementwise import add, subtract

_FEWEST = 8  # rows or columns of what is multiplied with the common factor


def join_common_factors(graph: Graph) -> Graph:
    """Rewrite sums and differences of two products of matrices that nothing else reads."""
    if sum(eq.prim is matmul for eq in graph.equations) < 2:
        return graph
    work = _Rewriter(graph)
    for eq in graph.equations:
        found = work.rewrite(eq)
        if found is None:
            work.equations.append(eq)
        else:
            work.replace(eq, found)
    return drop_dead(work.finish()) if len(work.types) > len(graph.types) else graph


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.counts = use_counts(graph)
        self.sides = Sides(graph)

    def rewrite(self, eq: Equation) -> int | None:
        """Return the product that a sum of two is, if they have a common factor."""
        if eq.prim not in (add, subtract) or self.types[eq.ins[0]] != self.types[eq.ins[1]]:
            return None
        first, second = map(self.find_product, eq.ins)
        if first is None or second is None or first == second:
            return None
        self.place = eq.place
        (a, b), (c, d) = first, second
        if b == d:
            both = self.combine(eq, a, c)
            return None if both is None else self.matmul(both, self.orient(b))
        if a == c:
            both = self.combine(eq, b, d)
            return None if both is None else self.matmul(self.orient(a), both)
        return None

    def find_product(self, i: int) -> Key | None:
        """Return what a value is the product of, or the transpose of a product, if nothing else reads that."""
        made = self.sides.made
        eq, transposed = made.get(i), False
        if eq is not None and eq.prim is transpose_p and self.counts[i] == 1:
            i, transposed = self.sides.side(i)
            eq = made.get(i) if transposed else None
        if eq is None or self.counts[i] != 1 or not is_plain_product(self, eq):
            return None
        x, y = self.sides.key(self, eq)
        if min(*self.types[x.array].shape, *self.types[y.array].shape) < _FEWEST or len(self.types[i].shape) != 2:
            return None
        return (turn(y), turn(x)) if transposed else (x, y)

    def combine(self, eq: Equation, a: Side, c: Side) -> int | None:
        x, y = self.orient(a), self.orient(c)
        return self.elementwise(eq.prim, x, y) if self.types[x] == self.types[y] else None

    def orient(self, side: Side) -> int:
        return self.matrix_transpose(side.array) if side.transposed else side.array
