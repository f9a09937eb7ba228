"""Sums of matrix products: where only the sum of a product's rows or columns is wanted, a factor is added up instead.

``sum over i of (A @ B)[i]`` is ``(sum over i of A[i]) @ B``. The derivative by an array that was broadcast before a
product is such a sum, of the product or of something linear in it.
"""

from __future__ import annotations

from fad.compile.ir.builder import Builder
from fad.compile.ir.uses import use_counts
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, Equation, Graph
from fad.ops.products.contraction import matmul
from fad.ops.reductions.reduction import sum_p

_DEEPEST = 8  # operations between a sum and the product


def reduce_before_matmul(graph: Graph) -> Graph:
    """Rewrite sums of what is linear in a product without other uses."""
    prims = {eq.prim for eq in graph.equations}
    if not {matmul, sum_p} <= prims:
        return graph
    work = _Rewriter(graph)
    return work.rewrite_each(work.rewrite)


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.counts = use_counts(graph)
        self.made = {eq.outs[0]: eq for eq in graph.equations if len(eq.outs) == 1}

    def rewrite(self, eq: Equation) -> bool:
        """Compute a sum in a cheaper way, if there is one."""
        if eq.prim is not sum_p or not eq.params["axis"]:
            return False
        (x,), (o,) = eq.ins, eq.outs
        t = self.types[x]
        if t.dtype.kind != "f" or self.types[o].dtype != t.dtype or not t.size or not self.has_product(x, eq, 0):
            return False
        self.place = eq.place
        self.replace(eq, self.reshape(self.sum_of(x, eq.params["axis"], 0), self.types[o].shape))
        return True

    def has_product(self, x: int, eq: Equation, depth: int) -> bool:
        """Return whether a value is linear in a product whose rows or columns are added up."""
        linear = self.linear(x, eq.params["axis"], depth)
        if linear is None:
            return False
        prim, inner = linear
        if prim is matmul:
            return True
        return any(self.has_product(i, eq, depth + 1) for i in inner)

    def linear(self, x: int, axes: tuple, depth: int) -> tuple[Primitive, tuple] | None:
        """Return the operation that makes a value, and in which operands it is linear; None if it is added up as is."""
        eq = self.made.get(x)
        if eq is None or self.counts[x] > 1 or depth > _DEEPEST:
            return None
        t, prim, symbol = self.types[x], eq.prim, eq.prim.symbol
        if any(self.types[i].dtype != t.dtype for i in eq.ins if self.types[i].kind == ARRAY):
            return None
        if prim is matmul and self.factor(eq, axes) is not None:
            return prim, ()
        if symbol in ("+", "-", "neg"):
            inner = eq.ins
        elif symbol in ("*", "/"):
            pairs = (eq.ins, eq.ins[::-1])[: 1 + (symbol == "*")]
            inner = next(((i,) for i, factor in pairs if self.is_even(factor, axes, len(t.shape))), ())
        else:
            return None
        return (prim, inner) if inner and all(self.types[i].shape == t.shape for i in inner) else None

    def factor(self, eq: Equation, axes: tuple) -> int | None:
        """Return which factor of a product can be added up in its stead, 0 or 1."""
        (a, b), ndim = (self.types[i].shape for i in eq.ins), len(self.types[eq.outs[0]].shape)
        if len(a) < 2 or len(b) < 2:
            return None
        if axes == (ndim - 1,):
            return 1
        if axes == (ndim - 2,) or (len(b) == 2 and ndim - 1 not in axes):
            return 0
        return None

    def sum_of(self, x: int, axes: tuple, depth: int) -> int:
        """Return the sum of a value along axes, which are kept with length one."""
        linear = self.linear(x, axes, depth)
        if linear is None:
            return self.sum(x, axes, keepdims=True)
        eq = self.made[x]
        if eq.prim is matmul:
            return self.of_factor(eq, axes)
        shape = tuple([1 if d in axes else n for d, n in enumerate(self.types[x].shape)])
        return self.clone(eq, [self.sum_of(i, axes, depth + 1) if i in linear[1] else i for i in eq.ins], shape)

    def of_factor(self, eq: Equation, axes: tuple) -> int:
        k = self.factor(eq, axes)
        assert k is not None
        ins, ndim = [*eq.ins], len(self.types[eq.outs[0]].shape)
        own = tuple([a - ndim + len(self.types[ins[k]].shape) for a in axes])
        ins[k] = self.sum(ins[k], own, keepdims=True)
        return self.matmul(*ins)
