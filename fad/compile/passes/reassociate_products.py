"""Products of three factors: ``(A @ B) @ C`` is ``A @ (B @ C)``, and the one with less arithmetic is computed.

A derivative along many directions multiplies a large product with a small matrix in each of them, and the small one can
go first. Likewise ``A @ P + (A @ B) @ C`` is ``A @ (P + B @ C)``, though ``A @ B`` itself is read elsewhere.
"""

from __future__ import annotations

import math

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.uses import use_counts
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import reshape_p
from fad.ops.products.contraction import matmul

_ELEMENT = 8  # multiplications that take as long as to read an element, or to write one
_LEAST = 1 << 14  # multiplications that have to be saved
_SHARE = 0.9  # and the share of all that may be left

Shape = tuple[int, ...]


def reassociate_products(graph: Graph) -> Graph:
    """Rewrite products of products, and sums of such, where that saves arithmetic."""
    if sum(eq.prim is matmul for eq in graph.equations) < 2:
        return graph
    work = _Rewriter(graph)
    for eq in graph.equations:
        written = len(work.equations)
        found = work.rewrite(eq)
        if found is None:
            work.equations.append(eq)
        else:
            work.replace(eq, found)
        work.made.update({made.outs[0]: made for made in work.equations[written:] if len(made.outs) == 1})
    return drop_dead(work.finish()) if len(work.types) > len(graph.types) else graph


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.counts = use_counts(graph)
        self.made: dict[int, Equation] = {}

    def rewrite(self, eq: Equation) -> int | None:
        """Return the result of an operation, computed with less arithmetic if that is possible."""
        self.place = eq.place
        if eq.prim is matmul and self.is_real(eq):
            return self.multiply_right_first(eq) or self.multiply_left_first(eq)
        if eq.prim.symbol in ("+", "-") and self.types[eq.ins[0]] == self.types[eq.ins[1]] == self.types[eq.outs[0]]:
            return self.join(eq)
        return None

    def multiply_right_first(self, eq: Equation) -> int | None:
        """Return ``(A @ B) @ C`` as ``A @ (B @ C)``. Before a matrix, ``A @ B`` may be in any shape of such rows."""
        x, c = eq.ins
        shapes = self.types[x].shape, self.types[c].shape
        inner = self.find_product(x, rows=len(shapes[1]) == 2)
        if inner is None:
            return None
        a, b = inner.ins
        if len(shapes[1]) == 1 and len(self.types[b].shape) > 2:
            return None
        before = self.cost(a, b) + _cost(*shapes)
        last = _product_shape(self.types[b].shape, shapes[1])
        after = self.cost(b, c) + _cost(self.types[a].shape, last)
        if not _is_worth(before, after):
            return None
        y, wanted = self.matmul(a, self.matmul(b, c)), self.types[eq.outs[0]].shape
        return y if self.types[y].shape == wanted else self.reshape(y, wanted)

    def multiply_left_first(self, eq: Equation) -> int | None:
        """Return ``A @ (B @ C)`` as ``(A @ B) @ C``."""
        a, x = eq.ins
        inner = self.find_product(x)
        if inner is None:
            return None
        b, c = inner.ins
        if len(self.types[a].shape) == 1 and len(self.types[b].shape) > 2:
            return None
        before = self.cost(b, c) + self.cost(a, x)
        first = _product_shape(self.types[a].shape, self.types[b].shape)
        after = self.cost(a, b) + _cost(first, self.types[c].shape)
        return self.matmul(self.matmul(a, b), c) if _is_worth(before, after) else None

    def join(self, eq: Equation) -> int | None:
        """Return ``A @ P + (A @ B) @ C`` as ``A @ (P + B @ C)``."""
        products = [self.find_product(i) for i in eq.ins]
        for k, (one, other) in enumerate((products, products[::-1])):
            inner = None if one is None or other is None else self.made.get(other.ins[0])
            if one is None or other is None or inner is None or not self.is_matrix_product(inner):
                continue
            (a, p), (b, c) = one.ins, (inner.ins[1], other.ins[1])
            shapes = self.types[b].shape, self.types[c].shape
            if inner.ins[0] != a or _product_shape(*shapes) != self.types[p].shape:
                continue
            before, after = self.types[eq.outs[0]].size, self.types[p].size
            if _is_worth(self.cost(*other.ins) + _cost_of_sum(before), self.cost(b, c) + _cost_of_sum(after)):
                q = self.matmul(b, c)
                return self.matmul(a, self.elementwise(eq.prim, *((p, q) if k == 0 else (q, p))))
        return None

    def find_product(self, i: int, rows: bool = False) -> Equation | None:
        """Return the product of matrices that a value is, if nothing else reads it.

        It may have been another shape in between, and with `rows` may be another one now, of rows as long.
        """
        t, eq = self.types[i], self.made.get(i)
        while eq is not None and self.counts.get(i, 1) == 1 and eq.prim is reshape_p:
            (i,) = eq.ins
            eq = self.made.get(i)
        if eq is None or self.counts.get(i, 1) != 1 or not self.is_matrix_product(eq):
            return None
        shape = self.types[i].shape
        return eq if shape == t.shape or (rows and shape[-1:] == t.shape[-1:]) else None

    def is_matrix_product(self, eq: Equation) -> bool:
        return eq.prim is matmul and self.is_real(eq) and min(len(self.types[i].shape) for i in eq.ins) > 1

    def is_real(self, eq: Equation) -> bool:
        """Return whether a product is of floating-point numbers in one dtype, which may be added in any order."""
        dtype = self.types[eq.outs[0]].dtype
        return dtype.kind == "f" and all(self.types[i].dtype == dtype for i in eq.ins)

    def cost(self, x: int, y: int) -> int:
        return _cost(self.types[x].shape, self.types[y].shape)


def _product_shape(x: Shape, y: Shape) -> Shape:
    """Return the shape of a product; a vector has no axis in it."""
    return (*np.broadcast_shapes(x[:-2], y[:-2]), *x[-2:-1], *(y[-1:] if len(y) > 1 else ()))


def _cost(x: Shape, y: Shape) -> int:
    """Return how many multiplications a product takes, and its elements in memory count as some."""
    size = math.prod(_product_shape(x, y))
    return size * x[-1] + _ELEMENT * (size + math.prod(x) + math.prod(y))


def _cost_of_sum(size: int) -> int:
    return (1 + 3 * _ELEMENT) * size


def _is_worth(before: int, after: int) -> bool:
    return before - after >= _LEAST and after <= _SHARE * before
