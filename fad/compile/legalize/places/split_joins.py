"""What is computed of a join is computed of its parts, where one of them is nearly all of it.

``np.roll(x, 3) * y`` and what follows ``np.pad(x, 5)`` stored the join and read it again. Of the parts it is one loop
each, which reads what was joined and writes where the result is wanted. A slice within a part is a slice of that.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import templates
from fad.compile.ir.slice_writes import as_slices
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph
from fad.core.programs.rewriter import rename
from fad.ops.arrangement.structural import concatenate_p
from fad.ops.places.indexing import getitem_p, scatter_p

_SMALLEST = 1 << 15  # elements of a join
_SHARE = 0.75  # of the largest part
_MOST_PARTS, _MOST_SPLIT = 4, 16  # and operations that are done part by part


class _Join(NamedTuple):
    axis: int
    bounds: tuple[int, ...]
    parts: tuple[int, ...]


def split_joins(graph: Graph) -> Graph:
    """Compute elementwise operations of large joins part by part."""
    found = {eq.outs[0]: join for eq in graph.equations if (join := _find_join(graph, eq)) is not None}
    if not found:
        return graph
    work = _Splitting(graph)
    split = {o: join for o, join in found.items() if work.is_split(o, join)}
    if not split:
        return graph
    for eq in graph.equations:
        work.rewrite(eq, split)
    return drop_dead(work.finish().replace(outputs=[work.now.get(i, i) for i in graph.outputs]))


def _find_join(graph: Graph, eq: Equation) -> tuple[int, tuple[int, ...]] | None:
    """Return along which axis an operation joins large arrays, or puts one among zeros, and where parts begin."""
    if eq.prim not in (concatenate_p, scatter_p) or graph.types[eq.outs[0]].size < _SMALLEST:
        return None
    t = graph.types[eq.outs[0]]
    if any(graph.types[i].dtype != t.dtype for i in eq.ins) or t.dtype.kind not in "fiu":
        return None
    if eq.prim is concatenate_p:
        axis, lengths = eq.params["axis"], [graph.types[i].shape[eq.params["axis"]] for i in eq.ins]
        bounds = tuple(np.cumsum([0, *lengths]).tolist())
    else:
        index = as_slices(eq.params["indices"][0], len(t.shape)) if len(eq.ins) == 1 else None
        if index is None:
            return None
        spans = [p.indices(n) for p, n in zip(index, t.shape, strict=True)]
        cut = [d for d, span in enumerate(spans) if span != (0, t.shape[d], 1)]
        if len(cut) != 1 or spans[cut[0]][2] != 1:
            return None
        (axis,) = cut
        start, stop, _ = spans[axis]
        bounds = tuple(sorted({0, start, stop, t.shape[axis]}))
    longest = max(b - a for a, b in itertools.pairwise(bounds))
    fits = 2 < len(bounds) <= _MOST_PARTS + 1 and 0 not in np.diff(bounds) and longest >= _SHARE * bounds[-1]
    return (axis, bounds) if fits else None


class _Splitting(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.readers: dict[int, list[Equation]] = defaultdict(list)
        for eq in graph.equations:
            for i in {*eq.ins}:
                self.readers[i].append(eq)
        self.outputs = {*graph.outputs}
        self.text_of = templates(graph)
        self.joins: dict[int, _Join] = {}  # what is not stored as a whole
        self.now: dict[int, int] = {}

    def is_split(self, i: int, join: tuple[int, tuple[int, ...]]) -> bool:
        """Return whether all that reads a value can be done part by part, and is little."""
        readers = self.readers[i]
        if i in self.outputs or not 0 < len(readers) <= _MOST_SPLIT:
            return False
        return all(self.is_elementwise(eq, i) or self.find_part(eq, *join) is not None for eq in readers)

    def is_elementwise(self, eq: Equation, i: int) -> bool:
        same = len(eq.outs) == 1 and self.types[eq.outs[0]].shape == self.types[i].shape
        return same and self.text_of(eq) is not None

    def find_part(self, eq: Equation, axis: int, bounds: tuple[int, ...]) -> tuple[int, tuple] | None:
        """Return in which part a slice of a join lies, and the slice of that."""
        shape = self.types[eq.ins[0]].shape
        index = as_slices(eq.params["template"], len(shape)) if eq.prim is getitem_p and len(eq.ins) == 1 else None
        if index is None:
            return None
        start, stop, step = index[axis].indices(shape[axis])
        for k, (a, b) in enumerate(itertools.pairwise(bounds)):
            if step > 0 and a <= start < stop <= b:
                return k, (*index[:axis], slice(start - a, stop - a, step), *index[axis + 1 :])
        return None

    def rewrite(self, eq: Equation, split: dict) -> None:
        """Write an operation, part by part if it is one of a join's."""
        self.place = eq.place
        if eq.outs and eq.outs[0] in split:
            axis, bounds = split[eq.outs[0]]
            self.joins[eq.outs[0]] = _Join(axis, bounds, self.parts_of(eq, axis, bounds))
            return
        joins = [i for i in eq.ins if i in self.joins]
        if not joins:
            self.equations.append(rename(eq, self.now))
        elif eq.prim is getitem_p:
            join = self.joins[joins[0]]
            found = self.find_part(eq, join.axis, join.bounds)
            assert found is not None
            part = join.parts[found[0]]
            whole = all(p.indices(n) == (0, n, 1) for p, n in zip(found[1], self.types[part].shape, strict=True))
            self.now[eq.outs[0]] = part if whole else self.getitem(part, found[1])
        else:
            self.compute_parts(eq, joins)

    def parts_of(self, eq: Equation, axis: int, bounds: tuple[int, ...]) -> tuple[int, ...]:
        """Return the parts of a join; small ones are copied, so that they are read as the large one is."""
        ins = [self.now.get(i, i) for i in eq.ins]
        if eq.prim is concatenate_p:
            largest = max(ins, key=lambda i: self.types[i].shape[axis])
            return tuple([i if i == largest else self.copy(i) for i in ins])
        t, parts = self.types[eq.outs[0]], []
        for a, b in itertools.pairwise(bounds):
            shape = (*t.shape[:axis], b - a, *t.shape[axis + 1 :])
            zeros = self.types[ins[0]].shape != shape
            parts.append(self.copy(self.constant(np.zeros(shape, t.dtype))) if zeros else ins[0])
        return tuple(parts)

    def compute_parts(self, eq: Equation, joins: list[int]) -> None:
        """Compute an elementwise operation of each part, and join what is not done part by part any more."""
        first = self.joins[joins[0]]
        for i in joins[1:]:
            if self.joins[i][:2] != first[:2]:
                self.join(i)
        shape, axis = self.types[eq.outs[0]].shape, first.axis
        parts = []
        for k, (a, b) in enumerate(itertools.pairwise(first.bounds)):
            ins = [
                self.joins[i].parts[k] if i in self.joins else self.cut(self.now.get(i, i), axis - len(shape), a, b)
                for i in eq.ins
            ]
            parts.append(self.clone(eq, ins, (*shape[:axis], b - a, *shape[axis + 1 :])))
        self.joins[eq.outs[0]] = _Join(axis, first.bounds, tuple(parts))
        if not self.is_split(eq.outs[0], first[:2]):
            self.join(eq.outs[0])

    def cut(self, i: int, axis: int, start: int, stop: int) -> int:
        """Return a stretch of an operand along an axis, counted from the last one."""
        shape = self.types[i].shape
        if len(shape) < -axis or shape[axis] == 1:
            return i
        return self.take_along(i, len(shape) + axis, start, stop)

    def join(self, i: int) -> None:
        """Store a join as a whole after all."""
        join = self.joins.pop(i)
        self.define(i, self.concatenate(join.parts, join.axis))
