"""Matrices that are put together of columns, multiplied with vectors column by column.

The powers of a vector (`np.vander`), the values of some functions (`np.stack`) or the columns of a design matrix that
a program writes (``A[:, k] = ...``) are computed one column after the other, each a vector. The product of such a
matrix with a vector is a sum of multiples of the columns, that of its transpose the sums of the columns times the other
vector: both are one loop with what computes the columns, and the matrix is never stored. So are the columns that are
read of it, or of a product of a column and a row. Powers, each the one before times a vector, are computed again in
each such loop: that costs less than to store them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.uses import find_transposed
from fad.compile.passes.dce import drop_dead
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph, Type
from fad.core.programs.rewriter import rename
from fad.ops.arrangement.structural import concatenate_p, reshape_p, transpose_p
from fad.ops.places.indexing import getitem_p, index_add_p, index_set_p, scatter_p
from fad.ops.products.contraction import matmul
from fad.ops.ufuncs.elementwise import multiply

_SHORTEST = 32  # elements of a column: a shorter one is no loop worth its call
_MOST = 128  # columns
_MOST_PRODUCTS = 4  # with one matrix: for more it is worth storing
_REAL = (np.dtype(float), np.dtype(np.float32))
_WRITES = (index_set_p, index_add_p)
_UNIT_AXES = (Ellipsis, None, 0, slice(None))


class _Columns(NamedTuple):
    """The `n` columns of a matrix (axis 1), or its rows (axis 0): those that are vectors, and what makes the others."""

    axis: int
    n: int
    known: dict[int, int]
    other: Callable[[int], int] | None


def multiply_by_columns(graph: Graph) -> Graph:
    """Rewrite what reads matrices that are joined or written column by column, if it is columns and products alone."""
    if not any(_is_of_columns(graph, eq) or _written_column(graph, eq) for eq in graph.equations):
        return graph
    work = _Rewriter(graph)
    return drop_dead(work.run())


def _is_of_columns(graph: Graph, eq: Equation) -> bool:
    """Whether an equation joins columns, or rows."""
    if eq.prim is not concatenate_p:
        return False
    t, axis = graph.types[eq.outs[0]], eq.params["axis"]
    if not _has_columns(t, axis) or len(eq.ins) != t.shape[axis]:
        return False
    return all(graph.types[i].dtype == t.dtype for i in eq.ins)


def _has_columns(t: Type, axis: int) -> bool:
    """Whether a matrix has columns along an axis that are worth a loop, and not too many of them."""
    if len(t.shape) != 2 or t.dtype not in _REAL:
        return False
    return 2 <= t.shape[axis] <= _MOST and t.shape[1 - axis] >= _SHORTEST


def _written_column(graph: Graph, eq: Equation) -> tuple[int, int] | None:
    """Return the axis and number of the column that an equation sets, or adds to; None if it does something else."""
    if eq.prim not in _WRITES or len(eq.ins) != 2:
        return None
    t, v = graph.types[eq.outs[0]], graph.types[eq.ins[1]]
    place = _place(eq.params["template"], t.shape)
    if place is None or not _has_columns(t, place[0]) or v.dtype != t.dtype:
        return None
    return place if v.shape == () or v.size == t.shape[1 - place[0]] else None


def _read_column(eq: Equation, shape: tuple) -> tuple[int, int] | None:
    """Return the axis and number of the column that an equation reads of a matrix; None if it does something else."""
    return _place(eq.params["template"], shape) if eq.prim is getitem_p and len(eq.ins) == 1 else None


def _column(matrix: _Columns, k: int) -> int:
    """Return a column of a matrix as a vector."""
    if k in matrix.known:
        return matrix.known[k]
    assert matrix.other is not None  # or all are known
    return matrix.other(k)


def _is_line(shape: tuple) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and 1 in shape)


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.readers: dict[int, list[Equation]] = {}
        for eq in graph.equations:
            for i in eq.ins:
                self.readers.setdefault(i, []).append(eq)
        self.products: dict[tuple[int, int], int | None] = {}  # see `count_products`
        self.columns: dict[int, _Columns] = {}
        self.line: dict[int, int] = {}  # a matrix of one column or row -> the vector of its elements
        self.factors: dict[int, tuple[int, ...]] = {}  # a product -> what is multiplied
        self.elements: dict[tuple[int, int], int] = {}

    def run(self) -> Graph:
        for eq in reversed(self.graph.equations):  # a matrix that is written column by column has many versions
            if eq.prim in _WRITES:
                self.count_products(eq.outs[0], 0)
                self.count_products(eq.outs[0], 1)
        alias: dict[int, int] = {}
        for old in self.graph.equations:
            eq = rename(old, alias)
            found = self.rewrite(eq)
            if found is not None and self.types[found] == self.types[eq.outs[0]]:
                alias[eq.outs[0]] = found
                continue
            if found is not None:
                self.line[eq.outs[0]] = found
                self.replace(eq, self.reshape(found, self.types[eq.outs[0]].shape))
            else:
                self.equations.append(eq)
        outputs = [alias.get(i, i) for i in self.graph.outputs]
        return self.finish().replace(outputs=outputs)

    def rewrite(self, eq: Equation) -> int | None:
        """Return a vector that has the elements of an equation's result, if there is one."""
        prim = eq.prim
        if prim is getitem_p and eq.ins[0] in self.columns:
            place = _read_column(eq, self.types[eq.ins[0]].shape)
            assert place is not None  # as `count_products` found
            return _column(self.columns[eq.ins[0]], place[1])
        if prim in (reshape_p, getitem_p):
            return self.same_elements(eq)
        if prim is matmul and not self.columns.keys().isdisjoint(eq.ins):
            return self.product_by_columns(eq)
        if prim is multiply:
            self.factors[eq.outs[0]] = eq.ins
        for axis in (1, 0) if prim in _OF_COLUMNS and len(self.shape_of(eq)) == 2 else ():
            if _has_columns(self.types[eq.outs[0]], axis) and self.count_products(eq.outs[0], axis) is not None:
                found = _OF_COLUMNS[prim](self, eq, axis)
                if found is not None:
                    self.columns[eq.outs[0]] = found
                    break
        return None

    # --- what reads a matrix ------------------------------------------------------------------------------------------

    def count_products(self, i: int, axis: int) -> int | None:
        """Return how many products with vectors read a matrix, besides what reads columns along an axis.

        None if something else reads it, or too many products do.
        """
        if (i, axis) not in self.products:
            counts = [self.count_products_by(eq, i, axis) for eq in self.readers.get(i, [])]
            n = sum([count for count in counts if count is not None])
            alone = i not in self.graph.outputs and None not in counts
            self.products[i, axis] = n if alone and n <= _MOST_PRODUCTS else None
        return self.products[i, axis]

    def count_products_by(self, eq: Equation, i: int, axis: int) -> int | None:
        """Return how many products with vectors a reader makes of a matrix; None if it reads more of it."""
        if find_transposed(eq) is not None:
            return self.count_products(eq.outs[0], 1 - axis)
        if eq.prim in _WRITES and eq.ins[1] != i:
            place = _written_column(self.graph, eq)
            return self.count_products(eq.outs[0], axis) if place is not None and place[0] == axis else None
        if eq.prim is not matmul or eq.ins[0] == eq.ins[1]:
            place = _read_column(eq, self.types[i].shape)
            return 0 if place is not None and place[0] == axis else None
        (other,) = [self.graph.types[k] for k in eq.ins if k != i]
        same = self.types[i].dtype == other.dtype == self.types[eq.outs[0]].dtype
        return 1 if same and _is_line(other.shape) and _is_line(self.shape_of(eq)) else None

    # --- the columns of a matrix --------------------------------------------------------------------------------------

    def columns_joined(self, eq: Equation, axis: int) -> _Columns | None:
        if not _is_of_columns(self.graph, eq) or eq.params["axis"] != axis:
            return None
        return _Columns(axis, len(eq.ins), dict(enumerate(map(self.vector, eq.ins))), None)

    def columns_scattered(self, eq: Equation, axis: int) -> _Columns | None:
        """Return the columns of a matrix into which columns are scattered; the others are zero."""
        t = self.types[eq.outs[0]]
        places = [_place(index, t.shape) if type(index) is tuple else None for index in eq.params["indices"]]
        known: dict[int, int] = {}
        for place, i in zip(places, eq.ins, strict=True):
            fits = self.types[i].size == t.shape[1 - axis] and self.types[i].dtype == t.dtype
            if not fits or place is None or place[0] != axis or place[1] in known:
                return None
            known[place[1]] = self.vector(i)
        return self.columns_over(np.broadcast_to(t.dtype.type(0), t.shape), axis)._replace(known=known)

    def columns_written(self, eq: Equation, axis: int) -> _Columns | None:
        """Return the columns of a matrix of which one is written now, and others were before, or are constant."""
        place, (before, v, *_) = _written_column(self.graph, eq), eq.ins
        if place is None or place[0] != axis:
            return None
        if before in self.constants:
            found = self.columns_over(self.constants[before], axis)
        elif before in self.columns:
            found = self.columns[before]
        else:
            return None
        new = self.vector(v) if self.types[v].shape else self.broadcast_to(v, (self.shape_of(eq)[1 - axis],))
        if eq.prim is index_add_p:
            new = self.add(_column(found, place[1]), new)
        return found._replace(known={**found.known, place[1]: new})

    def columns_over(self, matrix: np.ndarray, axis: int) -> _Columns:
        """Return the columns of a constant matrix."""

        def make(k: int) -> int:
            column = matrix[:, k] if axis else matrix[k]
            return self.constant(np.ascontiguousarray(column) if any(column.strides) else column)

        return _Columns(axis, matrix.shape[axis], {}, functools.cache(make))

    def columns_transposed(self, eq: Equation, axis: int) -> _Columns | None:
        found = self.columns.get(eq.ins[0]) if find_transposed(eq) is not None else None
        return found._replace(axis=axis) if found is not None and found.axis == 1 - axis else None

    def columns_of_outer(self, eq: Equation, axis: int) -> _Columns | None:
        """Return the columns of a product of a column and a row, of which only columns are read."""
        shape, t = self.shape_of(eq), self.types[eq.outs[0]]
        if self.count_products(eq.outs[0], axis) or any(self.types[i].dtype != t.dtype for i in eq.ins):
            return None
        for column, row in (eq.ins, eq.ins[::-1]):
            if self.types[column].shape == (shape[0], 1) and self.types[row].shape in ((shape[1],), (1, shape[1])):
                vectors = self.vector(column), self.vector(row)
                make = functools.partial(self.multiple, vectors[1 - axis], vectors[axis])
                return _Columns(axis, shape[axis], {}, functools.cache(make))
        return None

    def multiple(self, v: int, numbers: int, k: int) -> int:
        return self.multiply(v, self.element(numbers, k))

    def shape_of(self, eq: Equation) -> tuple:
        return self.graph.types[eq.outs[0]].shape

    def vector(self, i: int) -> int:
        """Return the vector of the elements of a matrix of one column or row."""
        if len(self.types[i].shape) == 1:
            return i
        if i not in self.line:
            self.line[i] = self.reshape(i, (self.types[i].size,))
        return self.line[i]

    def element(self, i: int, j: int) -> int:
        if (i, j) not in self.elements:
            self.elements[i, j] = self.getitem(i, (j,))
        return self.elements[i, j]

    def same_elements(self, eq: Equation) -> int | None:
        """Return the vector behind a view of a vector that only adds or takes away axes of length one."""
        (i,) = eq.ins if len(eq.ins) == 1 else (-1,)
        if i < 0 or not _is_line(self.types[i].shape) or not _is_line(self.shape_of(eq)):
            return None
        if self.types[i].size != self.graph.types[eq.outs[0]].size or self.types[i].size < 2:
            return None
        if eq.prim is getitem_p and not all(part in _UNIT_AXES for part in eq.params["template"]):
            return None
        return i if len(self.types[i].shape) == 1 else self.line.get(i)

    # --- products -----------------------------------------------------------------------------------------------------

    def product_by_columns(self, eq: Equation) -> int:
        """Return the product of a matrix of columns and a vector, as a vector."""
        k = 0 if eq.ins[0] in self.columns else 1
        matrix = self.columns[eq.ins[k]]
        columns = [_column(matrix, j) for j in range(matrix.n)]
        v = self.vector(eq.ins[1 - k])
        if matrix.axis == 1 - k:  # the axis along which the product adds up
            return self.sum_of_multiples(columns, [self.element(v, j) for j in range(len(columns))])
        return self.concatenate([self.reshape(self.sum(y, (0,)), (1,)) for y in self.times(columns, v)], 0)

    def sum_of_multiples(self, columns: list[int], numbers: list[int]) -> int:
        """Return the sum of columns times numbers; powers are computed once more, each where it is added.

        Else they would be loops of their own that store them, where they are more than one loop computes. Horner's rule
        needs no powers, but gives another result where one is infinite.
        """
        factors = self.chain(columns)
        again: dict[int, int] = {}
        total = None
        for column, number in sorted(zip(columns, numbers, strict=True)):
            if column in factors:
                before, factor = factors[column]
                again[column] = self.multiply(again.get(before, before), factor)
            term = self.multiply(again.get(column, column), number)
            total = term if total is None else self.add(total, term)
        assert total is not None  # there are two columns at least
        return total

    def times(self, columns: list[int], v: int) -> list[int]:
        """Return the products of columns with a vector; of powers, each is the one before times their factor.

        The sums then read that vector alone, instead of all the columns, which would have to be stored for them.
        """
        factors = self.chain(columns)
        found: dict[int, int] = {}
        for column in sorted(set(columns)):
            before, factor = factors.get(column, (column, v))
            found[column] = self.multiply(found.get(before, before), factor)
        return [found[column] for column in columns]

    def chain(self, columns: list[int]) -> dict[int, tuple[int, int]]:
        """Return for each column that is the one before times a factor, as powers are, that column and the factor."""
        found = {}
        for before, column in itertools.pairwise(sorted(columns)):
            ins = self.factors.get(column, ())
            if before in ins:
                found[column] = before, ins[1] if ins[0] == before else ins[0]
        return found


_OF_COLUMNS: dict[Primitive, Callable] = {
    concatenate_p: _Rewriter.columns_joined, scatter_p: _Rewriter.columns_scattered,
    **dict.fromkeys(_WRITES, _Rewriter.columns_written), transpose_p: _Rewriter.columns_transposed,
    multiply: _Rewriter.columns_of_outer,
}  # fmt: skip


def _place(index: tuple, shape: tuple) -> tuple[int, int] | None:
    """Return which column (axis 1, its number) or row (axis 0) of a matrix an index names; None if more."""
    if not 1 <= len(index) <= 2 or len(shape) != 2:
        return None
    index = (*index, slice(None))[:2]
    for axis, n in enumerate(shape):
        part, other, whole = index[axis], index[1 - axis], range(shape[1 - axis])
        part = slice(part % n, part % n + 1) if type(part) is int and n else part
        if type(part) is slice and type(other) is slice and range(*other.indices(len(whole))) == whole:
            places = range(*part.indices(n))
            if len(places) == 1 and n > 1:
                return axis, places[0]
    return None
