"""Functional updates in place: which ``index_set``, ``index_add`` and loops may overwrite the operand that they change.

A program with writes is recorded as a chain of pure updates, each of which gives a new version of the array. If nobody
reads the old version after the update, both versions can share memory, and the update costs what it touches. To that
end an update runs as late as it can, after the other readers of the old version, and a small view that is read later
still is copied first. An operand that is an input, a constant or a result of the program is not overwritten; the state
of a loop is, by the loop's own body.

What is proposed here is checked once more where memory is planned, for the order of the steps that comes out there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fad.compile.ir.lowered_ops import WRITE_PIECES, copy_p
from fad.control_flow.bodies.loop_layout import Loop
from fad.control_flow.bodies.subgraph import to_number_p
from fad.core.programs.graph import ARRAY, Equation, Graph, Type
from fad.core.programs.rewriter import Rewriting, rename
from fad.ops.arrangement.structural import broadcast_p
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.selection import where_p

_CONTROL = ("loop", "branch")
_COPIED = 2  # the elements of an array are so many times those of the views that are copied before it is overwritten


class Updates(NamedTuple):
    """``over[o]`` is the operand whose memory result o takes over; ``version[i]`` is the array that value i views."""

    over: dict[int, int]
    version: dict[int, int]


def schedule_updates(
    graph: Graph,
    kind_of: Callable[[Graph, Equation], str],
    carried: Iterable[tuple[int, int]] = (),
    free: frozenset = frozenset(),
    choices: bool = False,
) -> tuple[Graph, Updates]:
    """Return a program in an order that lets updates be in place, and which of them are.

    ``kind_of(graph, eq)`` says what an operation becomes. `carried` are the inputs that this program
    may overwrite, each with the output that must then be in its memory, unless the input is among the `free`.
    With `choices`, ``where(mask, y, x)`` is an update of x, too, and a branch is one of what its ways update.
    """
    inputs = {i for i, _ in carried}
    chosen = where_p if choices and inputs else None
    if not any(_is_update(eq) or eq.prim is chosen or eq.prim.archetype in _CONTROL for eq in graph.equations):
        return graph, Updates({}, {})
    work = _Schedule(graph, kind_of, inputs if choices else set(), choices)
    work.order()
    work.choose(inputs)
    work.keep_apart(carried, free)
    return work.finish().replace(outputs=work.outputs), work.found


def _is_update(eq: Equation) -> bool:
    return eq.prim.updates or eq.prim is WRITE_PIECES


def updated_by(eq: Equation, known: dict[int, dict[int, int]] | None = None) -> dict[int, int]:
    """Return which results of a branch are versions of one operand, whichever way is taken: each with its operand.

    `known` has what was found of branches within this one: each is looked at once, however deep they are nested.
    """
    known = {} if known is None else known
    if id(eq) in known:
        return known[id(eq)]
    found = known[id(eq)] = {}
    branches = eq.params["branches"]
    for k in range(len(eq.outs)):
        places = {_updated_input(g, g.outputs[k], known) for g in branches}
        m = places.pop()
        if not places and m is not None and m not in found.values() and eq.ins.count(eq.ins[1 + m]) == 1:
            found[k] = m
    return found


def _updated_input(graph: Graph, o: int, known: dict[int, dict[int, int]]) -> int | None:
    """Return the position of the input that a value is a version of, or None."""
    made = {o: eq for eq in graph.equations for o in eq.outs}
    while o in made:
        eq = made[o]
        if _is_update(eq):
            o = eq.ins[0]
        elif eq.prim is where_p:
            o = eq.ins[2]
        elif eq.prim.archetype == "loop" and o in Loop(eq).results.carry:
            o = Loop(eq).carry[Loop(eq).results.carry.index(o)]
        elif eq.prim.archetype == "branch" and eq.outs.index(o) in (found := updated_by(eq, known)):
            o = eq.ins[1 + found[eq.outs.index(o)]]
        else:
            return None
    return graph.inputs.index(o) if o in graph.inputs else None


class _Schedule(Rewriting):
    def __init__(self, graph: Graph, kind_of: Callable[[Graph, Equation], str], changing: set[int], branches: bool):
        super().__init__(graph)
        self.branches = branches  # whether branches may overwrite their operands
        self.kind_of = kind_of
        self.outputs = list(graph.outputs)
        self.version: dict[int, int] = {}
        self.spread: set[int] = set()  # views that show an element more than once
        self.sources: dict[int, set] = {}  # the arrays, to be overwritten, that a value is computed from by elements
        self.changing = set(changing)  # what choices may update: some inputs, and what updates make of them
        self.made = {o: eq for eq in graph.equations for o in eq.outs}
        self.found = Updates({}, self.version)

    def order(self) -> None:
        """Take views as soon as they can be, and run updates as late as they can."""
        views: dict[int, list[Equation]] = {}
        rest = []
        for eq in self.graph.equations:
            if eq.is_view:
                x, o = eq.ins[0], eq.outs[0]
                views.setdefault(x, []).append(eq)
                self.version[o] = self.version.get(x, x)
                if eq.prim is broadcast_p or x in self.spread:
                    self.spread.add(o)
            else:
                rest.append(eq)
        waiting: dict[int, Equation] = {}  # updates that nobody has read yet

        def take_views(values: Iterable[int]) -> None:
            todo = list(values)
            while todo:
                for view in views.get(todo.pop(), ()):
                    self.equations.append(view)
                    todo.extend(view.outs)

        def run(eq: Equation) -> None:
            todo = [eq]
            while todo:
                read = {self.version.get(i, i) for i in todo[-1].ins}
                first = next((v for v in read if v in waiting), None)
                if first is not None:
                    todo.append(waiting.pop(first))
                    continue
                done = todo.pop()
                self.equations.append(done)
                take_views(done.outs)

        take_views([*self.graph.inputs, *self.graph.constants])
        for eq in rest:
            target = self.target(eq)
            if target is not None:
                waiting[eq.outs[0]] = eq
                if target in self.changing:
                    self.changing.add(eq.outs[0])
            else:
                run(eq)
        if len(waiting) > 1:
            self._note_sources({self._overwrites(eq) for eq in waiting.values()})
        while waiting:
            run(waiting.pop(self._next(waiting)))

    def target(self, eq: Equation) -> int | None:
        """Return the operand that an operation updates; None if it is no update."""
        if _is_update(eq):
            return eq.ins[0]
        if eq.prim is not where_p or len(eq.ins) != 3 or not self.changing:
            return None
        mask, y, x = eq.ins
        same = x in self.changing and x != y and self.types[x] == self.types[eq.outs[0]]
        return x if same and all(self._reads_in_step(v, x, mask) for v in (mask, y)) else None

    def _reads_in_step(self, v: int, x: int, mask: int) -> bool:
        """Return whether a value, where a mask chooses it, is computed from elements of x at their own places alone."""
        waiting, seen = [(v, True)], set()
        while waiting:
            v, aligned = waiting.pop()
            if (v, aligned) in seen:
                continue
            seen.add((v, aligned))
            eq = self.made.get(v)
            if v == x or self.version.get(v, v) == self.version.get(x, x):
                if v != x or not aligned:
                    return False
            elif eq is None:
                continue
            elif eq.prim is where_p and eq.ins[0] == mask:
                waiting += [(eq.ins[1], aligned), (mask, aligned)]
            elif eq.prim.archetype == "elementwise" or eq.prim in (where_p, to_number_p, astype_p):
                waiting += [(i, aligned and self.types[i].shape == self.types[x].shape) for i in eq.ins]
            elif eq.prim.view is not None:
                waiting += [(i, False) for i in eq.ins]
        return True

    def _overwrites(self, update: Equation) -> int:
        target = self.target(update)
        assert target is not None
        return self.version.get(target, target)

    def _note_sources(self, arrays: set[int]) -> None:
        """Note which of some arrays each value is computed from, element by element."""
        for eq in self.equations:
            if eq.prim.archetype == "elementwise":
                read = [self.version.get(i, i) for i in eq.ins if self.types[i].shape]
                found = arrays.intersection(read).union(*[self.sources.get(v, ()) for v in read])
                if found:
                    self.sources.update(dict.fromkeys(eq.outs, found))

    def _next(self, waiting: dict[int, Equation]) -> int:
        """Return an update that overwrites nothing from which what another one writes may still be computed."""
        for o, eq in waiting.items():
            x = self._overwrites(eq)
            others = [i for other in waiting.values() if other is not eq for i in other.ins if i != self.target(other)]
            if all(x not in self.sources.get(self.version.get(i, i), ()) for i in others):
                return o
        return next(iter(waiting))

    def choose(self, inputs: set[int]) -> None:
        """Choose the updates whose operand may be overwritten, and copy the small views that are read later."""
        owned = {o for eq in self.equations if not eq.is_view for o in eq.outs} | inputs
        members: dict[int, list[int]] = {}  # version -> values that see its memory
        readers: dict[int, list[int]] = {}  # value -> positions of those who read it and are no views
        for k, eq in enumerate(self.equations):
            if eq.is_view:
                members.setdefault(self.version[eq.outs[0]], []).append(eq.outs[0])
            else:
                for i in eq.ins:
                    readers.setdefault(i, []).append(k)
        end = len(self.equations)
        for o in self.outputs:
            readers.setdefault(o, []).append(end)
        last = lambda i: readers[i][-1] if i in readers else -1
        copies: dict[int, int] = {}
        for k, eq in enumerate(self.equations):
            for x, o in self.pairs(eq):
                v = self.version.get(x, x)
                again = readers[x][-1] > k or eq.ins.count(x) > 1
                if again or v not in owned or x in self.spread or self.types[o] != self.types[x]:
                    continue
                some = [v, *members.get(v, ())]
                late = [w for w in some if last(w) > k or (w != x and w in eq.ins)]
                guarded = any(self.equations[r].is_guard for w in late for r in readers[w] if k < r < end)
                if guarded or sum(self.types[w].size for w in late) * _COPIED > self.types[v].size:
                    continue
                self.found.over[o] = x
                for w in late:
                    t = self.types[w]
                    copies[w] = self.add_value(Type(t.shape, t.dtype, t.kind))
        if copies:
            self.insert(copies)

    def pairs(self, eq: Equation) -> list[tuple[int, int]]:
        """Return the operands that an operation may overwrite, each with the result that is then in its memory."""
        target = self.target(eq)
        if target is not None:
            return [(target, eq.outs[0])] if self.kind_of(self.graph, eq) in ("pieces", "lookup") else []
        if eq.prim.archetype == "branch" and self.branches:
            found = [(eq.ins[1 + m], eq.outs[k]) for k, m in updated_by(eq).items()]
        elif eq.prim.archetype == "loop":
            loop = Loop(eq)
            found = list(zip(loop.carry, loop.results.carry, strict=True))
        else:
            return []
        return [(x, o) for x, o in found if x not in self.version and self.types[x].kind == ARRAY]

    def insert(self, copies: dict[int, int]) -> None:
        """Copy some views where they are taken, and let all read the copies."""
        equations = []
        for eq in self.equations:
            if not eq.is_guard and not eq.is_view:
                eq = rename(eq, copies)
            equations.append(eq)
            if eq.is_view and eq.outs[0] in copies:
                equations.append(Equation(copy_p, eq.outs, {}, (copies[eq.outs[0]],)))
        self.equations = equations
        self.outputs = [copies.get(i, i) for i in self.outputs]

    def keep_apart(self, carried: Iterable[tuple[int, int]], free: frozenset) -> None:
        """Let results have whole arrays of their own, and overwrite no input whose own output is another array.

        The memory of the `free` is not read again, wherever their outputs are.
        """
        over, version = self.found
        root: dict[int, int] = {}
        for o in self.outputs:
            i = o
            while i in over:
                if over[i] in version:  # a part of an array, or one in another order
                    del over[i]
                else:
                    i = over[i]
            root[o] = i
        taken = {i for i, o in carried if root.get(o) == i}
        for i, _ in carried:
            if i not in taken and i not in free:
                for o in [o for o, x in over.items() if version.get(x, x) == i]:
                    del over[o]
