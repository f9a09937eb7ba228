"""The builder that passes write operations with: a method for each, which infers the shape and dtype of its result.

A pass says what it computes, ``self.sum(self.multiply(x, y), axes)``; parameters and types are written here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fad.compile.ir.lowered_ops import copy_p
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import NUMBER, Equation, Graph
from fad.core.programs.rewriter import Rewriting
from fad.ops.arrangement import structural
from fad.ops.places import indexing
from fad.ops.products import contraction
from fad.ops.reductions import reduction
from fad.ops.ufuncs import complexes, conversion, selection
from fad.ops.ufuncs import elementwise as numeric

Unary: TypeAlias = "Callable[[Builder, int], int]"
Binary: TypeAlias = "Callable[[Builder, int, int], int]"
_BOOLEAN, _COUNT = np.dtype(bool), np.dtype(np.int64)


def _unary(prim: Primitive) -> Unary:
    return lambda self, x: self.elementwise(prim, x)


def _binary(prim: Primitive) -> Binary:
    return lambda self, x, y: self.elementwise(prim, x, y)


def _comparison(prim: Primitive) -> Binary:
    return lambda self, x, y: self.elementwise(prim, x, y, dtype=_BOOLEAN)


class Builder(Rewriting):
    """A graph that is being rewritten. Values are numbers, as in the graph; a method returns that of its result.

    Types are inferred for what passes write: arithmetic and functions of floating-point numbers, choices between values
    of one dtype. Where operands do not show the type of a result, `new` takes a shape and dtype, `apply` a Type.
    """

    def rewrite_each(self, rewrite: Callable[[Equation], bool]) -> Graph:
        """Return the graph with its operations rewritten, or as they are where ``rewrite(eq)`` returns false."""
        for eq in self.graph.equations:
            if not rewrite(eq):
                self.equations.append(eq)
        return self.finish()

    def replace(self, eq: Equation, value: int) -> None:
        """Let the operation that was applied just now, whose result is `value`, give the result of an old one."""
        self.define(eq.outs[0], value, eq.place)

    def define(self, old: int, value: int, place: Any = None) -> None:
        """Let the operation that was applied just now, whose result is `value`, give an old value instead.

        So no copy of the result is needed: readers of the old value read the new one.
        """
        new, found, wanted = self.equations.pop(), self.types.pop(), self.types[old]
        assert (*new.outs, len(self.types)) == (value, value), "something was written after the value"
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), (new.prim, found, wanted)
        self.equations.append(Equation(new.prim, new.ins, new.params, (old,), place))

    # --- elementwise operations -------------------------------------------------------------------------------------

    def elementwise(self, prim: Primitive, *ins: int, dtype: Any = None) -> int:
        """Apply an operation whose operands broadcast; without `dtype` its result has their common one."""
        shape = self.types[ins[0]].shape
        if any(self.types[i].shape != shape for i in ins):
            shape = np.broadcast_shapes(*[self.types[i].shape for i in ins])
        return self.new(prim, ins, {}, shape, dtype or self.common_dtype(ins))

    def common_dtype(self, values: Sequence[int]) -> np.dtype:
        types = [self.types[i] for i in values]
        if all(t.dtype == types[0].dtype for t in types):
            return types[0].dtype
        return np.result_type(*[t.dtype for t in types if t.kind != NUMBER] or [t.dtype for t in types])

    def is_even(self, i: int, axes: tuple, ndim: int) -> bool:
        """Return whether a factor is the same all along some axes of a result of so many."""
        shape = self.types[i].shape
        return all(a < ndim - len(shape) or shape[a - ndim + len(shape)] == 1 for a in axes)

    def clone(self, eq: Equation, ins: Sequence[int], shape: tuple) -> int:
        """Apply an elementwise operation once more, to operands of another shape."""
        return self.new(eq.prim, tuple(ins), eq.params, shape, self.types[eq.outs[0]].dtype)

    add = _binary(numeric.add)
    subtract = _binary(numeric.subtract)
    multiply = _binary(numeric.multiply)
    divide = _binary(numeric.divide)
    power = _binary(numeric.power)
    maximum = _binary(numeric.maximum)
    equal = _comparison(numeric.equal)
    not_equal = _comparison(numeric.not_equal)
    greater = _comparison(numeric.greater)
    less_equal = _comparison(numeric.less_equal)
    logical_not = _unary(numeric.logical_not)
    negative = _unary(numeric.negative)
    positive = _unary(numeric.positive)
    absolute = _unary(complexes.absolute)
    sign = _unary(complexes.sign_p)
    sqrt = _unary(numeric.sqrt)
    exp = _unary(numeric.exp)
    log = _unary(numeric.log)
    rint = _unary(numeric.rint)
    copy = _unary(copy_p)

    def isfinite(self, x: int) -> int:
        return self.elementwise(numeric.isfinite, x, dtype=_BOOLEAN)

    def where(self, mask: int, x: int, y: int) -> int:
        return self.elementwise(selection.where_p, mask, x, y, dtype=self.types[x].dtype)

    def astype(self, x: int, dtype: Any) -> int:
        dtype = np.dtype(dtype)
        return self.new(conversion.astype_p, (x,), {"dtype": dtype}, self.types[x].shape, dtype)

    # --- sums and products ------------------------------------------------------------------------------------------

    def reduce(self, prim: Primitive, x: int, axis: tuple, keepdims: bool = False) -> int:
        """Apply a reduction; the sum of booleans is their number."""
        t = self.types[x]
        shape = [1 if d in axis else n for d, n in enumerate(t.shape) if keepdims or d not in axis]
        dtype = _COUNT if prim is reduction.sum_p and t.dtype == _BOOLEAN else t.dtype
        return self.new(prim, (x,), {"axis": axis, "keepdims": keepdims}, tuple(shape), dtype)

    def sum(self, x: int, axis: tuple, keepdims: bool = False) -> int:
        return self.reduce(reduction.sum_p, x, axis, keepdims)

    def max(self, x: int, axis: tuple, keepdims: bool = False) -> int:
        return self.reduce(reduction.max_p, x, axis, keepdims)

    def matmul(self, x: int, y: int) -> int:
        return self.product(contraction.matmul, x, y)

    def product(self, prim: Primitive, x: int, *others: int, **params: Any) -> int:
        """Apply a matrix product, or one with more operands between the factors, the first and the last."""
        a, b = self.types[x], self.types[others[-1]]
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        shape = (*batch, *a.shape[-2:-1], *(b.shape[-1:] if len(b.shape) > 1 else ()))
        return self.new(prim, (x, *others), params, shape, self.common_dtype((x, others[-1])))

    # --- the same elements in another order, or some of them ---------------------------------------------------------

    def reshape(self, x: int, shape: Sequence[int]) -> int:
        return self.new(structural.reshape_p, (x,), {"shape": tuple(shape)}, tuple(shape), self.types[x].dtype)

    def transpose(self, x: int, axes: Sequence[int]) -> int:
        t = self.types[x]
        return self.new(structural.transpose_p, (x,), {"axes": tuple(axes)}, tuple([t.shape[a] for a in axes]), t.dtype)

    def matrix_transpose(self, x: int) -> int:
        """Exchange the last two axes."""
        rank = len(self.types[x].shape)
        return self.transpose(x, (*range(rank - 2), rank - 1, rank - 2))

    def broadcast_to(self, x: int, shape: tuple) -> int:
        return self.new(structural.broadcast_p, (x,), {"shape": shape}, shape, self.types[x].dtype)

    def getitem(self, x: int, index: tuple) -> int:
        """Take a part of an array by an index of slices and integers."""
        t = self.types[x]
        parts = [range(n)[part] for part, n in zip(index, t.shape, strict=False)]
        shape = (*[len(part) for part in parts if type(part) is range], *t.shape[len(index) :])
        return self.new(indexing.getitem_p, (x,), {"template": index}, shape, t.dtype)

    def take_along(self, x: int, axis: int, start: int, stop: int) -> int:
        """Take the elements from one place to another along an axis."""
        return self.getitem(x, (*[slice(None)] * axis, slice(start, stop)))

    def concatenate(self, parts: Sequence[int], axis: int) -> int:
        first, n = self.types[parts[0]].shape, sum([self.types[i].shape[axis] for i in parts])
        shape = (*first[:axis], n, *first[axis + 1 :])
        return self.new(structural.concatenate_p, tuple(parts), {"axis": axis}, shape, self.common_dtype(parts))

    def index_add(self, x: int, v: int, index: tuple) -> int:
        """Add values to an array, at an index of slices and integers."""
        return self.apply(indexing.index_add_p, (x, v), {"template": index}, self.types[x])

    def scatter(self, pieces: Sequence[int], indices: Sequence, shape: Sequence[int]) -> int:
        """Add pieces, each at its index, into zeros of this shape."""
        dtype = self.common_dtype(pieces)
        params = {"shape": tuple(shape), "dtype": dtype, "indices": tuple(indices)}
        return self.new(indexing.scatter_p, tuple(pieces), params, tuple(shape), dtype)
