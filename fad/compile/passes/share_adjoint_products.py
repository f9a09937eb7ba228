"""Products that a gradient has anyhow: ``sum(W * (A @ B))`` is ``sum(A * (W @ B.T))``, and that is A's cotangent.

So where a loss is linear in a product, as one with fixed weights is, the product itself need not be computed. Of
``A @ A.T`` the cotangent of A is ``(W + W.T) @ A``, which gives the sum twice.
"""

from __future__ import annotations

from typing import NamedTuple

from fad.compile.ir.builder import Builder
from fad.compile.ir.uses import use_counts
from fad.compile.passes.constants import as_uniform
from fad.compile.passes.matrix_keys import Side, Sides, is_plain_product, turn
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import transpose_p
from fad.ops.products.contraction import matmul
from fad.ops.reductions.reduction import sum_p
from fad.ops.ufuncs.elementwise import add, multiply

_DEEPEST = 8  # operations between a sum and the product
_MOVED = (transpose_p, multiply, add, matmul)  # operations that may be done before their place


def share_adjoint_products(graph: Graph) -> Graph:
    """Rewrite sums of products with weights, where the program multiplies the weights with one of the factors."""
    prims = [eq.prim for eq in graph.equations]
    if sum_p not in prims or prims.count(matmul) < 2:
        return graph
    work = _Rewriter(graph)
    for eq in graph.equations:
        work.rewrite(eq)
    return work.finish().replace(outputs=[work.early.get(i, i) for i in graph.outputs])


class _Term(NamedTuple):
    """The sum of weights times a value, times a number if there is one; -1 for the negative."""

    weights: int
    value: int
    number: int | None


class _Adjoint(NamedTuple):
    """What a weighted sum of a product is: the sum of a factor times another product, perhaps twice over."""

    factor: int
    product: int
    twice: bool


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.counts = use_counts(graph)
        self.sides = Sides(graph)
        self.made, self.side = self.sides.made, self.sides.side
        products = [eq for eq in graph.equations if is_plain_product(graph, eq)]
        self.there = {self.sides.key(graph, eq): eq.outs[0] for eq in reversed(products)}
        self.scaled: dict[tuple[int, int], int] = {}  # (array, number) -> their product; -1 for the negative
        self.symmetric: dict[int, int] = {}  # a matrix -> the sum of it and its transpose
        for eq in graph.equations:
            if eq.prim is multiply:
                for a, k in (eq.ins, eq.ins[::-1]):
                    if not graph.types[k].shape:
                        minus = k in graph.constants and as_uniform(graph.constants[k]) == -1
                        self.scaled[a, -1 if minus else k] = eq.outs[0]
            elif eq.prim.symbol == "neg":
                self.scaled[eq.ins[0], -1] = eq.outs[0]
            elif eq.prim is add:
                a, b = map(self.side, eq.ins)
                if a == turn(b):
                    self.symmetric[a.array] = eq.outs[0]
        self.done = {*graph.inputs, *graph.constants}  # values that are there already
        self.early: dict[int, int] = {}  # values that were computed before their place: what they are

    def rewrite(self, eq: Equation) -> None:
        if eq.outs and eq.outs[0] in self.early:
            return
        found = self.find_weights(eq)
        self.place = eq.place
        if found is None:
            self.equations.append(self.rename(eq))
        else:
            self.replace(eq, self.reshape(self.sum_of(*found, 0), ()))
        self.done.update(eq.outs)

    def rename(self, eq: Equation) -> Equation:
        ins = tuple([self.early.get(i, i) for i in eq.ins])
        return eq if ins == eq.ins else Equation(eq.prim, ins, eq.params, eq.outs, eq.place)

    def find_weights(self, eq: Equation) -> tuple[int, int] | None:
        """Return the weights and what they are multiplied with, if an operation adds up that and a product is in it."""
        if eq.prim is not sum_p or len(eq.params["axis"]) < len(self.types[eq.ins[0]].shape):
            return None
        inner, t = self.made.get(eq.ins[0]), self.types[eq.ins[0]]
        if inner is None or inner.prim is not multiply or self.counts[eq.ins[0]] > 1 or not t.size:
            return None
        if self.types[eq.outs[0]].shape or self.types[eq.outs[0]].dtype != t.dtype:
            return None
        for w, y in (inner.ins, inner.ins[::-1]):
            if self.types[w] == self.types[y] == t and self.has_product(w, y, 0):
                return w, y
        return None

    def has_product(self, w: int, y: int, depth: int) -> bool:
        """Return whether a value is linear in a product, without other uses, that its weighted sum does not need."""
        eq = self.made.get(y)
        if eq is None or self.counts[y] > 1 or depth > _DEEPEST:
            return False
        if eq.prim is matmul:
            return self.find_adjoint(w, eq) is not None
        return any(self.has_product(v, i, depth + 1) for v, i, _ in self.terms(w, eq))

    def terms(self, w: int, eq: Equation) -> list[_Term]:
        """Return what the sum of weights times the result of an operation consists of, if it is linear."""
        t, symbol = self.types[eq.outs[0]], eq.prim.symbol
        if symbol in ("+", "-", "neg"):
            if any(self.types[i] != t for i in eq.ins):
                return []
            plain = [_Term(w, i, None) for i in (eq.ins if symbol == "+" else eq.ins[: symbol == "-"])]
            return plain if symbol == "+" else [*plain, self.term(w, eq.ins[-1], -1)]
        if symbol != "*":
            return []
        pairs = [(i, k) for i, k in (eq.ins, eq.ins[::-1]) if self.types[i] == t and not self.types[k].shape]
        return next(([self.term(w, i, k)] for i, k in pairs), [])

    def term(self, w: int, i: int, k: int) -> _Term:
        """Return weights times a value times a number: the program may have the weights times the number."""
        scaled = self.scaled.get((w, k))
        return _Term(w, i, k) if scaled is None else _Term(scaled, i, None)

    def find_adjoint(self, w: int, eq: Equation) -> _Adjoint | None:
        """Return what the sum of weights times a product is by a product of the weights that the program has."""
        if not is_plain_product(self, eq):
            return None
        (x, y), weights = map(self.side, eq.ins), self.side(w)
        ranks = [len(self.types[i].shape) for i in eq.ins]
        wanted = [((turn(x), weights), eq.ins[1])] if ranks[0] == 2 else []
        if ranks[1] == 2:
            wanted.append(((weights, turn(y)) if ranks[0] == 2 else (y, weights), eq.ins[0]))
        for key, factor in wanted:
            found = self.there.get(key)
            if found is not None and found != eq.outs[0] and self.can_move(found, 0):
                return _Adjoint(factor, found, False)
        whole = Side(self.symmetric.get(weights.array, -1), False)
        for key, factor in (((whole, x), eq.ins[0]), ((y, whole), eq.ins[1])) if x == turn(y) else ():
            found = self.there.get(key)
            if found is not None and self.can_move(found, 0):
                return _Adjoint(factor, found, True)
        return None

    def sum_of(self, w: int, y: int, depth: int) -> int:
        """Return the sum of weights times a value."""
        if not self.has_product(w, y, depth):
            return self.total(self.move(w), y)
        eq = self.made[y]
        if eq.prim is matmul:
            found = self.find_adjoint(w, eq)
            assert found is not None
            total = self.total(found.factor, self.move(found.product))
            return self.multiply(total, self.number(0.5, self.types[y].dtype)) if found.twice else total
        sums = [self.scale(self.sum_of(v, i, depth + 1), k) for v, i, k in self.terms(w, eq)]
        return sums[0] if len(sums) == 1 else self.add(*sums)

    def scale(self, total: int, k: int | None) -> int:
        if k is None:
            return total
        return self.negative(total) if k == -1 else self.multiply(total, self.early.get(k, k))

    def total(self, w: int, y: int) -> int:
        product = self.multiply(self.early.get(w, w), self.early.get(y, y))
        return self.sum(product, tuple(range(len(self.types[y].shape))))

    # --- values before their place -----------------------------------------------------------------------------------

    def can_move(self, i: int, depth: int) -> bool:
        """Return whether a value is there, or can be computed of what is there."""
        if i in self.done or i in self.early:
            return True
        eq = self.made.get(i)
        known = eq is not None and eq.prim in _MOVED and depth < _DEEPEST
        return known and all(self.can_move(k, depth + 1) for k in eq.ins)  # type: ignore[union-attr]

    def move(self, i: int) -> int:
        """Return a value, which is computed now if its place is behind this one."""
        if i in self.done or i in self.early:
            return self.early.get(i, i)
        eq = self.made[i]
        self.early[i] = self.apply(eq.prim, tuple([self.move(k) for k in eq.ins]), eq.params, self.types[i])
        return self.early[i]
