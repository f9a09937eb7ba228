"""Pieces that a body writes into an array one after the other: once for each place, and neighbouring places at once.

The pullback of a stencil is a sum of scatters, one for each time that the stencil reads the array. That of
``x[a] += y`` overwrites a slice with zeros, and adds what was in it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.lowered_ops import WRITE_PIECES
from fad.compile.passes.constants import as_uniform
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.primitives.cotangent import is_basic
from fad.core.programs.graph import Equation, Graph
from fad.core.programs.rewriter import rename
from fad.ops.places.indexing import getitem_p, index_add_p, index_set_p, scatter_p
from fad.ops.ufuncs.elementwise import add, logical_and, logical_not
from fad.ops.ufuncs.selection import where_p

ON_STACK = 1024  # bytes of an array that lies on the stack, and may get into registers


def add_into(graph: Graph, sums: frozenset = frozenset()) -> Graph:
    """Let what is added to an array be an update of it: one for each place, and neighbouring places at once.

    `sums` are inputs that begin as positive zeros, and to which the body only adds: none of their elements is ever a
    negative zero, so that zeros need not be added to them.
    """
    return _in_place(_write_chains(_without_zeros(graph)), sums)


def sums_of(graph: Graph, begun: frozenset) -> frozenset:
    """Return the values of a body that are sums: those begun before it, and what they are after additions."""
    found = set(begun)
    for eq in graph.equations if begun else ():
        terms = eq.ins if eq.prim is add else eq.ins[:1] if eq.prim.adds else ()
        if not found.isdisjoint(terms):
            found.add(eq.outs[0])
        elif eq.prim.archetype == "loop":
            loop = Loop(eq)
            for i, o, x, y in zip(loop.carry, loop.results.carry, loop.carry_inputs, loop.carry_outputs, strict=True):
                if i in found and y in sums_of(loop.body, frozenset((x,))):
                    found.add(o)
    return frozenset(found)


def _in_place(graph: Graph, sums: frozenset) -> Graph:
    """Let arrays that are added to a sum be updates of it, where nothing else reads the sum as it was."""
    if not sums:
        return graph
    known, uses, equations = sums_of(graph, sums), _uses(graph), []
    for eq in graph.equations:
        if eq.prim is add and graph.types[eq.outs[0]].nbytes > ON_STACK:
            for x, v in (eq.ins, eq.ins[::-1]):
                if x in known and uses[x] == 1 and graph.types[x] == graph.types[v] == graph.types[eq.outs[0]]:
                    eq = Equation(index_add_p, (x, v), {"template": (Ellipsis,)}, eq.outs, eq.place)
                    break
        equations.append(eq)
    return graph.replace(equations=equations)


def _without_zeros(graph: Graph) -> Graph:
    made = {o: eq for eq in graph.equations for o in eq.outs}
    uses = _uses(graph)
    work = Builder(graph)
    for eq in graph.equations:
        pair = _find_scatter(graph, eq, made, uses)
        if pair is None:
            work.equations.append(eq)
            continue
        x, pieces = pair
        (o,) = eq.outs
        if pieces.prim.adds:
            work.equations.append(Equation(pieces.prim, (x, *pieces.ins[1:]), pieces.params, (o,), eq.place))
            continue
        for piece, index in zip(pieces.ins, pieces.params["indices"], strict=True):
            x = work.index_add(x, piece, index if type(index) is tuple else (index,))
        work.define(o, x)
    used = {*graph.outputs, *(i for eq in work.equations for i in eq.ins)}
    work.equations = [eq for eq in work.equations if not _adds_to_zeros(graph, eq) or eq.outs[0] in used]
    return work.finish()


def _find_scatter(graph: Graph, eq: Equation, made: dict[int, Equation], uses: Counter) -> tuple[int, Equation] | None:
    """Return the array and what an operation adds to it at some places; None if it does something else."""
    if eq.prim is not add:
        return None
    types, (o,) = graph.types, eq.outs
    for x, v in (eq.ins, eq.ins[::-1]):
        pieces = made.get(v)
        if pieces is None or not _adds_to_zeros(graph, pieces) or x == v or not types[x] == types[v] == types[o]:
            continue
        if pieces.prim.adds:
            if uses[v] == 1 and _is_link(graph, pieces):
                return x, pieces
        elif not (uses[v] > 1 and len(pieces.ins) > 1) and all(map(is_basic, pieces.params["indices"])):
            return x, pieces
    return None


def _adds_to_zeros(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation gives an array that is zero but for some places."""
    if not eq.prim.adds:
        return eq.prim is scatter_p
    c = graph.constants.get(eq.ins[0])
    number = None if c is None else as_uniform(np.asarray(c))
    return number is not None and number == 0


# --- updates of one array, one after the other ------------------------------------------------------------------------


class _Write(NamedTuple):
    """What is written to a place of an array, or added to what is there."""

    adds: bool
    template: tuple
    piece: int
    at: tuple[int, ...] = ()  # the positions along the axes that the template leaves open

    @property
    def place(self) -> tuple:
        return repr(self.template), self.at

    @property
    def is_whole(self) -> bool:
        return all(p is Ellipsis or (type(p) is slice and p == slice(None)) for p in self.template)

    @property
    def is_box(self) -> bool:
        return all((type(p) is slice and p.step in (None, 1)) or p is Ellipsis for p in self.template)


def _write_chains(graph: Graph) -> Graph:
    """Write updates of which each is read by the next one alone where the last of them stands, and as few as do."""
    chains = _chains(graph)
    if not chains:
        return graph
    inner = {eq.outs[0] for chain in chains.values() for eq in chain[:-1]}
    work = _Rewriter(graph)
    for eq in graph.equations:
        if not inner.isdisjoint(eq.outs):
            continue
        chain = chains.get(eq.outs[0]) if eq.outs else None
        if chain is None:
            work.equations.append(rename(eq, work.alias))
        else:
            work.write(chain)
    return work.finish().replace(outputs=[work.alias.get(i, i) for i in graph.outputs])


def _chains(graph: Graph) -> dict[int, list[Equation]]:
    """Return the chains of updates, each by the number of its last version."""
    uses = _uses(graph)
    found: dict[int, list[Equation]] = {}
    for eq in graph.equations:
        if _is_link(graph, eq):
            x, o = eq.ins[0], eq.outs[0]
            before = found.pop(x) if x in found and uses[x] == 1 else []
            found[o] = [*before, eq]
    return found


def _is_link(graph: Graph, eq: Equation) -> bool:
    if not eq.prim.updates:
        return False
    x, o, template = graph.types[eq.ins[0]], graph.types[eq.outs[0]], eq.params["template"]
    known = is_basic(tuple([0 if type(p) is str else p for p in template])) and None not in template
    return x == o and x.size > 0 and known and not any(graph.types[i].shape for i in eq.ins[2:])


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.made = {o: eq for eq in graph.equations for o in eq.outs}
        self.alias: dict[int, int] = {}

    def write(self, chain: list[Equation]) -> None:
        """Write the updates of a chain."""
        first, last = chain[0].ins[0], chain[-1].outs[0]
        writes: list[_Write] = []
        for eq in chain:
            self.extend(writes, _Write(eq.prim.adds, eq.params["template"], eq.ins[1], eq.ins[2:]))
        if writes and not writes[0].adds and self.is_there(writes[0], first):
            del writes[0]
        version = self.alias.get(first, first)
        if self.is_zero(first) and all(w.adds for w in writes):
            whole = next((w for w in writes if w.is_whole and self.types[w.piece] == self.types[last]), None)
            if whole is not None:  # the others are added to it
                writes.remove(whole)
                version = self.alias.get(whole.piece, whole.piece)
        if not writes:
            self.alias[last] = version
            return
        runs = [writes] if len(writes) > 1 and all(w.is_box for w in writes) else [[w] for w in writes]
        for k, run in enumerate(runs):
            end = last if k == len(runs) - 1 else self.add_value(self.types[last])
            pieces = tuple([self.alias.get(i, i) for w in run for i in (w.piece, *w.at)])
            prim, params = _operation(run)
            self.equations.append(Equation(prim, (version, *pieces), params, (end,), chain[-1].place))
            version = end

    def extend(self, writes: list[_Write], new: _Write) -> None:
        """Put an update behind others: into that of the same place, if there is one."""
        if new.adds and self.is_zero(new.piece):
            return
        same = next((k for k, w in enumerate(writes) if w.place == new.place), None)
        if same is None:
            writes.append(new)
        elif not new.adds:
            del writes[same]
            writes.append(new)
        elif not all(w.adds for w in writes[same + 1 :]) or self.types[writes[same].piece] != self.types[new.piece]:
            writes.append(new)  # a slice between them may overwrite some of the place
        else:
            old = writes[same]
            piece = new.piece if self.is_zero(old.piece) else self.sum_of(old.piece, new.piece)
            writes[same] = old._replace(piece=piece)

    def sum_of(self, x: int, y: int) -> int:
        parts = self.part(x), self.part(y)
        if parts[0] and parts[1] and parts[0][:2] == parts[1][:2] and parts[0][2] != parts[1][2]:
            return parts[0][0]  # what a mask chooses and what it leaves are the whole
        return self.add(self.alias.get(x, x), self.alias.get(y, y))

    def part(self, i: int) -> tuple[int, int, bool] | None:
        """Return the array of which a mask chooses the elements of another, zero elsewhere; the mask, and if it is."""
        eq = self.made.get(i)
        if eq is None or eq.prim is not where_p or not self.is_zero(eq.ins[2]):
            return None
        mask, x, _ = eq.ins
        chosen = True
        while mask in self.made and self.made[mask].prim in (logical_not, logical_and):
            found = self.made[mask]
            if len(set(found.ins)) > 1:
                break
            chosen, mask = chosen != (found.prim is logical_not), found.ins[0]
        same = self.types[x] == self.types[i] and self.types[mask].shape == self.types[i].shape
        return (x, mask, chosen) if same else None

    def is_zero(self, i: int) -> bool:
        c: Any = self.constants.get(i)
        number = None if c is None else as_uniform(c)
        return number is not None and number == 0

    def is_there(self, write: _Write, x: int) -> bool:
        """Return whether what is written is what an array has there."""
        eq = self.made.get(write.piece)
        same = eq is not None and eq.prim is getitem_p and eq.ins == (x, *write.at)
        return same and repr(eq.params["template"]) == repr(write.template)  # type: ignore[union-attr]


def _operation(run: list[_Write]) -> tuple[Any, dict]:
    """Return the operation that makes some updates, and its parameters."""
    if len(run) == 1:
        return index_add_p if run[0].adds else index_set_p, {"template": run[0].template}
    return WRITE_PIECES, {"templates": tuple([w.template for w in run]), "adds": tuple([w.adds for w in run])}


def _uses(graph: Graph) -> Counter:
    return Counter([*(i for eq in graph.equations for i in eq.ins), *graph.outputs])
