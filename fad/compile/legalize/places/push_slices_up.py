"""Elementwise operations beside pooling, done on the slices that pooling reads and writes.

Pooling looks at slices of what an activation computed, and its pullback puts pieces together that the activation's
pullback scales. Both ways the activation is cheaper on the slices: everything between one convolution and the next,
forwards and backwards, is then one loop each, and no array of the activation's size is written but the cotangent.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import is_heavy, template
from fad.compile.ir.slice_writes import as_slices, left_out
from fad.compile.passes.constants import as_uniform
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph, hashable
from fad.core.programs.rewriter import Rewriting
from fad.ops.places.indexing import getitem_p, scatter_p
from fad.ops.reductions.reduction import sum_p
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.elementwise import multiply
from fad.ops.ufuncs.selection import where_p

SMALLEST = 1 << 12  # elements of an array from which on it is worth while
MOST_AGAIN = 48  # operations that a slice may compute again
_TRIES = 4


def push_slices_up(graph: Graph) -> Graph:
    """Compute slices from slices, where no whole array is needed then, and scale pieces before they are scattered."""
    read = _find_sliced_values(graph)
    if not read and not any(_is_apart(graph, eq) for eq in graph.equations):
        return graph
    for _ in range(_TRIES):
        work = _Rewriter(graph, read)
        found = drop_dead(_again(drop_dead(work.run()), work.cheap))
        whole = read.keys() & {o for eq in found.equations for o in eq.outs}
        if not whole:
            return found
        read = {i: some for i, some in read.items() if i not in whole}  # something else reads all of them
    return graph


def _apart(indices: list, shape: tuple) -> bool:
    """Return whether slices are strided and do not overlap."""
    strided = all(any((part.step or 1) > 1 for part in index) for index in indices)
    return len(indices) > 1 and strided and left_out(tuple(indices), shape) is not None


def _find_sliced_values(graph: Graph) -> dict[int, set]:
    """Return the large results of cheap elementwise operations that are read in slices that do not overlap."""
    cheap = {
        eq.outs[0] for eq in graph.equations
        if len(eq.outs) == 1 and graph.types[eq.outs[0]].size >= SMALLEST and _is_cheap(graph, eq)
    }  # fmt: skip
    found: dict[int, list] = {}
    for eq in graph.equations:
        if eq.prim is getitem_p and eq.ins[0] in cheap and len(eq.ins) == 1:
            index = as_slices(eq.params["template"], len(graph.types[eq.ins[0]].shape))
            if index is not None and index not in found.setdefault(eq.ins[0], []):
                found[eq.ins[0]].append(index)
    return {i: set(map(hashable, s)) for i, s in found.items() if _apart(s, graph.types[i].shape)}


def _is_cheap(graph: Graph, eq: Equation) -> bool:
    text = template(graph, eq, graph.constants)
    return text is not None and not is_heavy(text)


def _is_apart(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation scatters strided slices that do not overlap."""
    if eq.prim is not scatter_p or graph.types[eq.outs[0]].size < SMALLEST:
        return False
    shape = graph.types[eq.outs[0]].shape
    indices = [as_slices(index, len(shape)) for index in eq.params["indices"]]
    same = len({graph.types[i].shape for i in eq.ins}) == 1
    return same and None not in indices and _apart(indices, shape)  # type: ignore[arg-type]


def _again(graph: Graph, cheap: set) -> Graph:
    """Compute cheap values once more where a later loop reads them, which else they would have to be stored for."""
    work, level = Rewriting(graph), dict.fromkeys([*graph.inputs, *graph.constants], 0)
    made = {o: eq for eq in graph.equations for o in eq.outs}
    known: dict[tuple, int] = {}

    def copy(i: int, at: int) -> int:
        if i not in cheap or level[i] >= at:
            return i
        if (i, at) not in known:
            ins = tuple([copy(x, at) for x in made[i].ins])
            known[i, at] = work.apply(made[i].prim, ins, made[i].params, work.types[i])
        return known[i, at]

    for eq in graph.equations:
        at = max((level[i] for i in eq.ins), default=0)
        fused = len(eq.outs) == 1 and template(graph, eq, graph.constants) is not None
        level.update(dict.fromkeys(eq.outs, at if fused or eq.prim.view is not None else at + 1))
        if fused and eq.outs[0] not in cheap:
            eq = Equation(eq.prim, tuple([copy(i, at) for i in eq.ins]), eq.params, eq.outs, eq.place)
        work.equations.append(eq)
    return work.finish()


class _Rewriter(Builder):
    def __init__(self, graph: Graph, read: dict[int, set]):
        super().__init__(graph)
        self.read = read
        self.made: dict[int, Equation] = {}
        self.alias: dict[int, int] = {}
        self.known: dict[Any, int] = {}
        self.cheap: set[int] = set()  # the slices that are computed again
        self.scattered: dict[int, tuple[list, tuple]] = {}  # value -> the indices and the pieces that it is made of

    def run(self) -> Graph:
        for eq in self.graph.equations:
            if not self.alias.keys().isdisjoint(eq.ins):
                ins = tuple([self.alias.get(i, i) for i in eq.ins])
                eq = Equation(eq.prim, ins, eq.params, eq.outs, eq.place) if eq.outs else _rename(eq, ins)
            self.made.update(dict.fromkeys(eq.outs, eq))
            if not (self.slice_of(eq) or self.scale(eq) or self.total(eq)):
                self.equations.append(eq)
            if _is_apart(self.graph, eq):
                shape = self.types[eq.outs[0]].shape
                self.scattered[eq.outs[0]] = ([as_slices(p, len(shape)) for p in eq.params["indices"]], eq.ins)
        outputs = [self.alias.get(i, i) for i in self.graph.outputs]
        return Graph(self.types, self.graph.inputs, self.constants, self.equations, outputs)

    # --- slices of what is computed ----------------------------------------------------------------------------------

    def slice_of(self, eq: Equation) -> bool:
        if eq.prim is not getitem_p or eq.ins[0] not in self.read:
            return False
        index = as_slices(eq.params["template"], len(self.types[eq.ins[0]].shape))
        if index is None or hashable(index) not in self.read[eq.ins[0]]:
            return False
        self.alias[eq.outs[0]] = self.slice(eq.ins[0], index, [MOST_AGAIN])
        return True

    def slice(self, i: int, index: tuple, budget: list[int]) -> int:
        """Return a slice of value i, which broadcasts to an array that the index fits, recomputed if it is cheap."""
        t = self.types[i]
        own = index[len(index) - len(t.shape) :]
        own = tuple([slice(None) if n == 1 else part for n, part in zip(t.shape, own, strict=True)])
        if all(part == slice(None) for part in own):
            return i
        key = (i, hashable(own))
        if key not in self.known:
            self.known[key] = self._slice(i, own, budget)
        return self.known[key]

    def _slice(self, i: int, index: tuple, budget: list[int]) -> int:
        t = self.types[i]
        shape = tuple([len(range(*part.indices(n))) for n, part in zip(t.shape, index, strict=True)])
        constant = self.constants.get(i)
        if constant is not None and not any(constant.strides):
            return self.constant(constant[index])
        eq = self.made.get(i)
        if eq is None or budget[0] <= 0 or not self.is_cheap(eq):
            return self.getitem(i, index)
        budget[0] -= 1
        out = self.clone(eq, [self.slice(x, index, budget) for x in eq.ins], shape)
        self.cheap.add(out)
        return out

    def is_cheap(self, eq: Equation) -> bool:
        return _is_cheap(Graph(self.types, [], self.constants, [], []), eq)

    # --- pieces that are scattered -----------------------------------------------------------------------------------

    def scale(self, eq: Equation) -> bool:
        """Scale pieces before they are scattered, where that leaves the zeros between them zero."""
        place = next((k for k, i in enumerate(eq.ins) if i in self.scattered), None)
        if place is None or self.types[eq.outs[0]].shape != self.types[eq.ins[place]].shape:
            return False
        indices, pieces = self.scattered[eq.ins[place]]
        shape = self.types[eq.outs[0]].shape
        if not self.keeps_zero(eq, place, left_out(tuple(indices), shape) == []):
            return False
        done = []
        for index, piece in zip(indices, pieces, strict=True):
            ins = [self.slice(i, index, [MOST_AGAIN]) if k != place else piece for k, i in enumerate(eq.ins)]
            done.append(self.clone(eq, ins, self.types[piece].shape))
        self.scattered[eq.outs[0]] = (indices, tuple(done))
        self.replace(eq, self.scatter(done, indices, shape))
        return True

    def keeps_zero(self, eq: Equation, place: int, whole: bool) -> bool:
        if eq.prim is multiply:
            other = eq.ins[1 - place]
            return other not in self.scattered and (whole or self.is_finite(other))
        if eq.prim is where_p:
            return place > 0 and self.is_number(eq.ins[3 - place], lambda c: c == 0)
        return False

    def is_number(self, i: int, test: Any) -> bool:
        number = as_uniform(self.constants[i]) if i in self.constants else None
        return number is not None and bool(test(number))

    def is_finite(self, i: int) -> bool:
        eq = self.made.get(i)
        if eq is None:
            return self.is_number(i, np.isfinite)
        if eq.prim is astype_p:
            return self.types[eq.ins[0]].dtype == bool or self.is_finite(eq.ins[0])
        return eq.prim is where_p and all(map(self.is_finite, eq.ins[1:]))

    def total(self, eq: Equation) -> bool:
        """Add up the pieces, not what they are scattered into."""
        if eq.prim is not sum_p or eq.ins[0] not in self.scattered:
            return False
        indices, pieces = self.scattered[eq.ins[0]]
        cut = {d for index in indices for d, part in enumerate(index) if part != slice(None)}
        t = self.types[eq.ins[0]]
        if not cut.issubset(eq.params["axis"]) or self.types[eq.outs[0]].dtype != t.dtype:
            return False
        self.replace(eq, self.sum(functools.reduce(self.add, pieces), **eq.params))
        return True


def _rename(guard: Equation, ins: tuple) -> Equation:
    guard.ins = ins  # the position of a guard is known by the equation itself
    return guard
