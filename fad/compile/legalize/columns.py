"""Matrices that are put together of columns, multiplied with vectors column by column.

The powers of a vector (`np.vander`), the values of some functions (`np.stack`) or the columns of a design matrix are
computed one column after the other, each a vector. The product of such a matrix with a vector is a sum of multiples of
the columns, that of its transpose the sums of the columns times the other vector: both are one loop with what computes
the columns, and the matrix is never stored. So are the columns that are read of a product of a column and a row.
Powers, each the one before times a vector, are computed again in each such loop: that costs less than to store them.
"""

from __future__ import annotations

import itertools

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.uses import find_transposed
from fad.compile.passes.dce import drop_dead
from fad.core.graph import Equation, Graph
from fad.core.rewriter import rename
from fad.ops.contraction import matmul
from fad.ops.elementwise import multiply
from fad.ops.indexing import getitem_p
from fad.ops.structural import concatenate_p, reshape_p

_SHORTEST = 32  # elements of a column: a shorter one is no loop worth its call
_MOST = 128  # columns
_MOST_PRODUCTS = 4  # with one matrix: for more it is worth storing
_REAL = (np.dtype(float), np.dtype(np.float32))
_UNIT_AXES = (Ellipsis, None, 0, slice(None))


def multiply_by_columns(graph: Graph) -> Graph:
    """Rewrite the products of vectors with matrices that are joined of columns, where nothing else reads these."""
    if not any(eq.prim is concatenate_p and _is_of_columns(graph, eq) for eq in graph.equations):
        return graph
    work = _Rewriter(graph)
    return drop_dead(work.run())


def _is_of_columns(graph: Graph, eq: Equation) -> bool:
    t, axis = graph.types[eq.outs[0]], eq.params["axis"]
    if len(t.shape) != 2 or t.dtype not in _REAL or not 2 <= len(eq.ins) == t.shape[axis] <= _MOST:
        return False
    return t.shape[1 - axis] >= _SHORTEST and all(graph.types[i].dtype == t.dtype for i in eq.ins)


def _is_line(shape: tuple) -> bool:
    return len(shape) == 1 or (len(shape) == 2 and 1 in shape)


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.readers: dict[int, list[Equation]] = {}
        for eq in graph.equations:
            for i in eq.ins:
                self.readers.setdefault(i, []).append(eq)
        self.columns: dict[int, tuple[int, list[int]]] = {}  # matrix -> along which axis its columns lie, the columns
        self.outer: dict[int, tuple[int, int]] = {}  # matrix -> the vectors of whose elements it has the products
        self.line: dict[int, int] = {}  # a matrix of one column or row -> the vector of its elements
        self.factors: dict[int, tuple[int, ...]] = {}  # a product -> what is multiplied
        self.elements: dict[tuple[int, int], int] = {}

    def run(self) -> Graph:
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
        if prim in (reshape_p, getitem_p):
            return self.column_of_outer(eq) if eq.ins[0] in self.outer else self.same_elements(eq)
        if prim is concatenate_p and _is_of_columns(self.graph, eq) and self.is_multiplied(eq.outs[0], 0) is not None:
            self.columns[eq.outs[0]] = eq.params["axis"], list(map(self.vector, eq.ins))
        elif find_transposed(eq) in self.columns:
            axis, parts = self.columns[eq.ins[0]]
            self.columns[eq.outs[0]] = 1 - axis, parts
        elif prim is multiply:
            self.factors[eq.outs[0]] = eq.ins
            self.note_outer(eq)
        elif prim is matmul and not self.columns.keys().isdisjoint(eq.ins):
            return self.product_by_columns(eq)
        return None

    def is_multiplied(self, i: int, depth: int) -> int | None:
        """Return how many products with vectors read a matrix; None if something else reads it, or too many do."""
        readers, n = self.readers.get(i, []), 0
        if i in self.graph.outputs or depth > 2:
            return None
        for eq in readers:
            more: int | None = None
            if find_transposed(eq) is not None:
                more = self.is_multiplied(eq.outs[0], depth + 1)
            elif eq.prim is matmul:
                shapes = [self.graph.types[k].shape for k in eq.ins if k != i]
                same = all(self.graph.types[k].dtype == self.graph.types[eq.outs[0]].dtype for k in eq.ins)
                more = 1 if same and len(shapes) == 1 and _is_line(shapes[0]) and _is_line(self.shape_of(eq)) else None
            if more is None:
                return None
            n += more
        return n if n <= _MOST_PRODUCTS else None

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

    def product_by_columns(self, eq: Equation) -> int:
        """Return the product of a matrix of columns and a vector, as a vector."""
        k = 0 if eq.ins[0] in self.columns else 1
        axis, columns = self.columns[eq.ins[k]]
        v = self.vector(eq.ins[1 - k])
        if axis == 1 - k:  # the axis along which the product adds up
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
        for column in sorted(columns):
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

    def note_outer(self, eq: Equation) -> None:
        """Note a product of a column and a row of which only columns, or only rows, are read."""
        shape, out = self.shape_of(eq), eq.outs[0]
        if len(shape) != 2 or self.types[out].dtype not in _REAL or out in self.graph.outputs:
            return
        places = [_place(reader, shape) for reader in self.readers.get(out, [])]
        if not places or any(self.types[i].dtype != self.types[out].dtype for i in eq.ins):
            return
        axis = places[0][0] if places[0] is not None else -1
        if any(place is None or place[0] != axis for place in places):
            return
        if shape[1 - axis] < _SHORTEST or shape[axis] > _MOST:
            return
        for column, row in (eq.ins, eq.ins[::-1]):
            if self.types[column].shape == (shape[0], 1) and self.types[row].shape in ((shape[1],), (1, shape[1])):
                self.outer[out] = self.vector(column), self.vector(row)
                return

    def column_of_outer(self, eq: Equation) -> int | None:
        place = _place(eq, self.graph.types[eq.ins[0]].shape)
        assert place is not None  # as `note_outer` found
        axis, j = place
        vectors = self.outer[eq.ins[0]]
        return self.multiply(vectors[1 - axis], self.element(vectors[axis], j))


def _place(eq: Equation, shape: tuple) -> tuple[int, int] | None:
    """Return which column (axis 1, its number) or row (axis 0) of a matrix an equation reads; None if it reads more."""
    index = eq.params["template"] if eq.prim is getitem_p and len(eq.ins) == 1 else ()
    if len(index) != 2:
        return None
    for axis, n in enumerate(shape):
        part, other, whole = index[axis], index[1 - axis], range(shape[1 - axis])
        part = slice(part, part + 1) if type(part) is int and part >= 0 else part
        if type(part) is slice and type(other) is slice and range(*other.indices(len(whole))) == whole:
            places = range(*part.indices(n))
            if len(places) == 1 and n > 1:
                return axis, places[0]
    return None
