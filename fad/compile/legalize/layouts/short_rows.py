"""Large arrays of short rows, with their last two axes exchanged: long rows of one coordinate, for rows of a few.

``x[:, None, :] - x[None, :, :]`` of points in space has the shape (n, n, 3), and loops over it run over three elements
at a time. As (n, 3, n) the same operations run over n, and what they read is made of arrays that are much smaller. So
the operations that hand such arrays to each other are written in that order, from the broadcasts that make them to the
sums, extremes and parts that leave them; nothing large is transposed. Where that cannot be, all of them stay as they
are. Batches along one axis alone are `fad.compile.legalize.layouts.struct_of_arrays`' part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import template
from fad.compile.ir.lowered_ops import REDUCTIONS
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.passes.constants import as_uniform
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import broadcast_p, reshape_p
from fad.ops.places.indexing import getitem_p, scatter_p

MOST = 16  # elements of a row: longer ones fill the CPU's vectors
LONG = 32  # elements from which on an axis is long
_SMALLER = 4  # how many times smaller what is transposed is than what is computed of it


def exchange_short_rows(graph: Graph) -> Graph:
    """Write operations on large arrays of short rows with their last two axes exchanged."""
    found = _find_groups(graph)
    if not found:
        return graph
    work = _Exchange(graph)
    for k, eq in enumerate(graph.equations):
        if k in found:
            work.rewrite(eq)
        else:
            work.equations.append(eq)
    return drop_dead(work.finish())


def has_short_rows(shape: tuple) -> bool:
    """Return whether an array has rows of a few elements, along two long axes."""
    if len(shape) < 3 or not 1 < shape[-1] <= MOST:
        return False
    return shape[-2] >= LONG and sum(n >= LONG for n in shape[:-1]) > 1


def _find_groups(graph: Graph) -> set[int]:
    """Return the numbers of the operations to be rewritten: all that read or give arrays which belong together."""
    short = [has_short_rows(t.shape) for t in graph.types]
    if not any(short):
        return set()
    group: dict[int, int] = {}

    def root(i: int) -> int:
        while (above := group.setdefault(i, i)) != i:
            group[i] = group[above]
            i = group[i]
        return i

    spoiled = [i for i in (*graph.inputs, *graph.outputs) if short[i]]
    touched: dict[int, int] = {}  # an operation -> one of its arrays
    for k, eq in enumerate(graph.equations):
        own = [i for i in (*eq.ins, *eq.outs) if short[i] and i not in graph.constants]
        if not own:
            continue
        touched[k] = own[0]
        for i in own:
            group[root(i)] = root(own[0])
        if not _is_supported(graph, eq, short):
            spoiled.append(own[0])
    kept = {root(i) for i in spoiled}
    return {k for k, i in touched.items() if root(i) not in kept}


def _is_supported(graph: Graph, eq: Equation, short: list[bool]) -> bool:
    types = graph.types
    if len(eq.outs) != 1 or eq.is_guard or any(types[i].dtype not in LLVM_TYPE for i in (*eq.ins, *eq.outs)):
        return False
    out, first = types[eq.outs[0]], eq.ins[0]
    if eq.prim in REDUCTIONS:
        left = [d for d in range(len(types[first].shape)) if d not in eq.params["axis"]]
        return short[first] and (out.size * _SMALLER <= types[first].size or left[-1:] != [len(types[first].shape) - 1])
    if eq.prim is getitem_p:
        return len(eq.ins) == 1 and short[first] and _exchange_index(graph, eq, eq.params["template"]) is not None
    if eq.prim is scatter_p:
        pieces = zip(eq.ins, eq.params["indices"], strict=True)
        return short[eq.outs[0]] and all(
            types[i].dtype == out.dtype and _exchange_index(graph, eq, index, i) is not None for i, index in pieces
        )
    if not short[eq.outs[0]]:
        return False
    if eq.prim is reshape_p:
        return short[first] and types[first].shape[-2:] == out.shape[-2:]
    if eq.prim is broadcast_p or template(graph, eq, graph.constants) is not None:
        return all(_may_enter(graph, i, out.size) for i in eq.ins if not short[i])
    return False


def _may_enter(graph: Graph, i: int, size: int) -> bool:
    """Return whether an operand needs no transposing, or little beside the result."""
    shape = graph.types[i].shape
    if len(shape) < 2 or 1 in shape[-2:] or graph.types[i].size * _SMALLER <= size:
        return True
    return i in graph.constants and as_uniform(graph.constants[i]) is not None


def _exchange_index(graph: Graph, eq: Equation, index: Any, piece: int | None = None) -> tuple | None:
    """Return an index of slices and numbers for the array with exchanged axes, and whether its result has them, too.

    None where that is not to be said. `piece` is what is scattered to the index; else the operation takes it.
    """
    whole = graph.types[eq.ins[0] if piece is None else eq.outs[0]].shape
    part = graph.types[eq.outs[0] if piece is None else piece].shape
    parts = list(index) if type(index) is tuple else [index]
    if not all(p is Ellipsis or type(p) in (slice, int) for p in parts) or parts.count(Ellipsis) > 1:
        return None
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(whole) + 1 - len(parts))
    parts += [slice(None)] * (len(whole) - len(parts))
    exchanged = type(parts[-1]) is type(parts[-2]) is slice
    if exchanged and not has_short_rows(part):
        return None
    parts[-2:] = parts[-1], parts[-2]
    return tuple(parts), exchanged


class _Exchange(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.exchanged: dict[int, int] = {}  # value -> the same with its last two axes exchanged

    def rewrite(self, eq: Equation) -> None:
        """Write an operation on arrays of short rows as one on arrays with exchanged axes."""
        if eq.prim in REDUCTIONS:
            self.reduce_exchanged(eq)
            return
        out = self.types[eq.outs[0]]
        shape = _exchange(out.shape)
        if eq.prim is getitem_p:
            index, exchanged = _exchange_index(self.graph, eq, eq.params["template"])  # type: ignore[misc]
            found = self.getitem(self.of(eq.ins[0], len(index)), index)
            if not exchanged:
                self.replace(eq, found)
                return
        elif eq.prim is scatter_p:
            found = self.scatter_exchanged(eq, shape)
        elif eq.prim is reshape_p:
            found = self.reshape(self.of(eq.ins[0], len(self.types[eq.ins[0]].shape)), shape)
        else:
            ins = [self.of(i, len(shape)) for i in eq.ins]
            broadcast = eq.prim is broadcast_p
            found = self.broadcast_to(ins[0], shape) if broadcast else self.clone(eq, ins, shape)
        self.exchanged[eq.outs[0]] = found

    def of(self, i: int, rank: int) -> int:
        """Return a value with its last two axes exchanged, and with as many axes as it is to be broadcast to."""
        shape = self.types[i].shape
        if len(shape) == 0:
            return i
        if i not in self.exchanged:
            self.exchanged[i] = self.exchange(i)
        found, shape = self.exchanged[i], _exchange(shape)
        missing = rank - len(shape)
        return self.reshape(found, (1,) * missing + shape) if missing else found

    def exchange(self, i: int) -> int:
        shape = self.types[i].shape
        if i in self.constants:
            c = np.broadcast_to(self.constants[i], (1,) * (2 - len(shape)) + shape)
            return self.constant(np.swapaxes(c, -1, -2))
        if len(shape) < 2 or 1 in shape[-2:]:
            return self.reshape(i, _exchange(shape))
        return self.copy_transposed(i)

    def copy_transposed(self, i: int) -> int:
        return self.concatenate([self.matrix_transpose(i)], 0)  # a join is not fused with what reads it: one copy

    def reduce_exchanged(self, eq: Equation) -> None:
        x, out = eq.ins[0], self.types[eq.outs[0]]
        rank = len(self.types[x].shape)
        turned = {rank - 1: rank - 2, rank - 2: rank - 1}
        axis = tuple(sorted(turned.get(d, d) for d in eq.params["axis"]))
        neither = not {rank - 1, rank - 2}.intersection(axis)
        keepdims = eq.params["keepdims"] and neither
        kept = [d for d in range(rank) if d not in eq.params["axis"]]
        shape = _exchange(out.shape) if neither else tuple([self.types[x].shape[d] for d in kept])
        params = {"axis": axis, "keepdims": keepdims}
        found = self.new(eq.prim, (self.of(x, rank),), params, shape, out.dtype)
        if neither:
            found = self.copy_transposed(found)
        elif shape != out.shape:
            found = self.reshape(found, out.shape)
        self.replace(eq, found)

    def scatter_exchanged(self, eq: Equation, shape: tuple) -> int:
        pieces, indices = [], []
        for i, index in zip(eq.ins, eq.params["indices"], strict=True):
            turned, exchanged = _exchange_index(self.graph, eq, index, i)  # type: ignore[misc]
            pieces.append(self.of(i, len(self.types[i].shape)) if exchanged else i)
            indices.append(turned)
        return self.scatter(pieces, indices, shape)


def _exchange(shape: tuple) -> tuple:
    """Return the shape of an array with its last two axes exchanged; a vector is a row."""
    shape = (1,) * (2 - len(shape)) + shape
    return (*shape[:-2], shape[-1], shape[-2])
