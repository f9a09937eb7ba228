"""Arrangements that undo each other cancel through the elementwise operations between them.

``sin(x.T).T`` is ``sin(x)``: so a derivative, which arranges its cotangents back, runs over its operand as it lies,
and neither copies it nor reads it across. A value that stands beside it, ``(y * x.T).T``, is read in the other order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.compile.ir.expressions import is_heavy, template
from fad.compile.passes.constants import as_uniform, is_fixed
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph, Type
from fad.core.programs.rewriter import Rewriting, rename
from fad.ops.arrangement.structural import broadcast_p, reshape_p, transpose_p
from fad.ops.layout.memory_order import order_p
from fad.ops.places.indexing import getitem_p

_SMALLEST = 1 << 12  # elements of an array from which on it is worth while
_LARGEST_CONSTANT = 1 << 20
_MOST = 32  # operations between two arrangements
_MOST_READ = 1  # arrays that are read in the other order instead: each costs what is saved
_MOST_REVERSED = 4  # the same, where only directions are reversed


def cancel_arrangements(graph: Graph) -> Graph:
    """Leave out arrangements that undo those of what their operand is computed from."""
    if not any(_is_arrangement(graph, eq) for eq in graph.equations):
        return graph
    needed = drop_dead(graph)
    work = _Cancelling(needed)
    now: dict[int, int] = {}
    for eq in needed.equations:
        eq = rename(eq, now)
        found = work.cancel(eq) if _is_arrangement(work, eq) else None
        if found is not None and work.types[found] == graph.types[eq.outs[0]]:
            now[eq.outs[0]] = found
        else:
            work.add(eq)
    if not now:
        return graph
    return work.finish().replace(outputs=[now.get(i, i) for i in graph.outputs])


def _is_arrangement(graph: Graph | Rewriting, eq: Equation) -> bool:
    """Return whether an operation has the elements of a large array in another order."""
    return (eq.prim is transpose_p or _reverses(graph, eq)) and graph.types[eq.outs[0]].size >= _SMALLEST


def _reverses(graph: Graph | Rewriting, eq: Equation) -> bool:
    """Return whether an operation reverses the direction of axes."""
    return (
        eq.prim is getitem_p
        and graph.types[eq.ins[0]].shape == graph.types[eq.outs[0]].shape
        and all(p == slice(None) or p == slice(None, None, -1) for p in eq.params["template"])
        and slice(None, None, -1) in eq.params["template"]
    )


class _Cannot(Exception):
    """What is computed between two arrangements cannot be computed without them."""


class _Cancelling(Rewriting):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.made: dict[int, Equation] = {}
        self.readers: dict[int, list[Equation]] = {}
        for eq in graph.equations:
            self.note_reader(eq)
        self.outputs = {*graph.outputs}

    def note_reader(self, eq: Equation) -> None:
        for i in set(eq.ins):
            self.readers.setdefault(i, []).append(eq)

    def add(self, eq: Equation) -> None:
        self.equations.append(eq)
        if len(eq.outs) == 1:
            self.made[eq.outs[0]] = eq

    def cancel(self, eq: Equation) -> int | None:
        """Return the result of an arrangement, computed without it, or None if it stays."""
        attempt = _Attempt(self, eq)
        try:
            attempt.look(eq.ins[0], (eq,))
        except _Cannot:
            return None
        return attempt.write(eq.ins[0], (eq,)) if attempt.pays() else None


class _Attempt:
    """What an arrangement's operand is computed from, gone through twice: to see whether it pays, and to write it."""

    def __init__(self, work: _Cancelling, eq: Equation):
        self.work, self.eq = work, eq
        self.inside: dict[int, Equation] = {}  # elementwise operations that are done in the other order
        self.passed: list[Equation] = []  # reshapes on the way
        self.cancelled = 0
        self.read: set[tuple] = set()
        self.seen: set[tuple] = set()
        self.written: dict[tuple, int] = {}

    def look(self, i: int, steps: tuple[Equation, ...]) -> None:
        """See what value i, arranged by these steps, is computed from. Raise _Cannot where that is not possible."""
        key = (i, tuple([eq.outs for eq in steps]))
        if key in self.seen:
            return
        self.seen.add(key)
        eq = self.work.made.get(i)
        undone = self.undo(eq, steps)
        if undone is not None:
            if undone[1]:
                self.look(*undone)
            else:
                self.cancelled += 1
        elif eq is None:
            if not self.is_known(i):
                self.read.add(key)
        elif eq.prim is order_p:
            self.look(eq.ins[0], steps)
        elif eq.prim is reshape_p and self.is_computed(eq.ins[0]):
            self.passed.append(eq)
            self.look(eq.ins[0], (eq, *steps))
        elif self.is_computed(i):
            self.inside[i] = eq
            if len(self.inside) > _MOST:
                raise _Cannot
            for k in set(eq.ins):
                if self.work.types[k].shape == self.work.types[i].shape:
                    self.look(k, steps)
                elif self.work.types[k].shape and any(step.prim is reshape_p for step in steps):
                    raise _Cannot
        elif not _is_one_number(self.work, eq):
            self.read.add(key)

    def undo(self, eq: Equation | None, steps: tuple[Equation, ...]) -> tuple[int, tuple[Equation, ...]] | None:
        """Return an operation's operand, and the steps but the first, if that undoes it; None if it does not."""
        step, types = steps[0], self.work.types
        if eq is None or eq.prim is not step.prim:
            return None
        if eq.prim is transpose_p:
            before = eq.params["axes"]
            undone = all(before[a] == d for d, a in enumerate(step.params["axes"]))
        elif eq.prim is reshape_p:
            undone = types[eq.ins[0]].shape == types[step.outs[0]].shape
        else:
            undone = _reverses(self.work, eq) and eq.params == step.params
        return (eq.ins[0], steps[1:]) if undone else None

    def is_computed(self, i: int) -> bool:
        """Return whether a value is the result of an elementwise operation that kernels compute."""
        eq = self.work.made.get(i)
        return eq is not None and eq.prim is not order_p and self.text_of(eq) is not None

    def is_known(self, i: int) -> bool:
        """Return whether a value is a constant, which is arranged beforehand."""
        value = self.work.constants.get(i)
        return type(value) is np.ndarray and value.size <= _LARGEST_CONSTANT and is_fixed(value)

    def text_of(self, eq: Equation) -> str | None:
        return template(self.work, eq, self.work.constants)

    def pays(self) -> bool:
        """Return whether nothing is read in the other order that was not, and nothing costly is computed twice."""
        steps = [self.eq, *self.passed]
        most = _MOST_REVERSED if all(eq.prim is getitem_p for eq in steps) else _MOST_READ
        return self.cancelled > 0 and len(self.read) <= most and not any(map(self.is_kept, self.inside.values()))

    def is_kept(self, eq: Equation) -> bool:
        """Return whether something costly is also wanted as it was."""
        if not is_heavy(self.text_of(eq) or ""):
            return False
        (o,) = eq.outs
        gone = {self.eq.outs[0], *self.inside, *[r.outs[0] for r in self.passed]}
        return o in self.work.outputs or any(not gone.issuperset(r.outs) for r in self.work.readers.get(o, ()))

    def write(self, i: int, steps: tuple[Equation, ...]) -> int:
        """Write value i, arranged by these steps, and return its number."""
        key = (i, tuple([eq.outs for eq in steps]))
        if key not in self.written:
            self.written[key] = self.write_new(i, steps)
        return self.written[key]

    def write_new(self, i: int, steps: tuple[Equation, ...]) -> int:
        work = self.work
        eq = work.made.get(i)
        undone = self.undo(eq, steps)
        if undone is not None:
            return self.write(*undone) if undone[1] else undone[0]
        if eq is None:
            return self.arrange_constant(i, steps) if self.is_known(i) else self.arrange(i, steps)
        if eq.prim is order_p:
            return self.write(eq.ins[0], steps)
        if eq.prim is reshape_p and self.is_computed(eq.ins[0]):
            return self.write(eq.ins[0], (eq, *steps))
        shape, dtype = work.types[steps[-1].outs[0]].shape, work.types[i].dtype
        if i in self.inside:
            whole = work.types[i].shape
            ins = [(self.write if work.types[k].shape == whole else self.arrange_part)(k, steps) for k in eq.ins]
            return self.emit(eq.prim, ins, eq.params, shape, dtype)
        if _is_one_number(work, eq):
            return self.emit(broadcast_p, eq.ins, {"shape": shape}, shape, dtype)
        return self.arrange(i, steps)

    def arrange(self, i: int, steps: tuple[Equation, ...]) -> int:
        """Write a value in the other order."""
        for step in steps:
            i = self.emit(step.prim, (i,), step.params, self.work.types[step.outs[0]].shape, self.work.types[i].dtype)
        return i

    def arrange_constant(self, i: int, steps: tuple[Equation, ...]) -> int:
        """Arrange a constant, of which only one element is stored where all are equal."""
        value, shape = self.work.constants[i], self.work.types[steps[-1].outs[0]].shape
        if as_uniform(value) is not None:
            return self.work.constant(np.broadcast_to(np.asarray(as_uniform(value), value.dtype), shape))
        for step in steps:
            value = step.prim.forward(value, **step.params)
        return self.work.constant(np.ascontiguousarray(value))

    def arrange_part(self, i: int, steps: tuple[Equation, ...]) -> int:
        """Write an operand that is repeated along some axes in the other order."""
        t, rank = self.work.types[i], len(self.work.types[steps[0].ins[0]].shape)
        if not t.shape:
            return i
        shape = (*[1] * (rank - len(t.shape)), *t.shape)
        if shape != t.shape:
            i = self.emit(reshape_p, (i,), {"shape": shape}, shape, t.dtype)
        for step in steps:
            if step.prim is transpose_p:
                shape = tuple([shape[a] for a in step.params["axes"]])
            i = self.emit(step.prim, (i,), step.params, shape, t.dtype)
        return i

    def emit(self, prim: Any, ins: Any, params: dict, shape: tuple, dtype: Any) -> int:
        out = self.work.add_value(Type(shape, dtype))
        eq = Equation(prim, tuple(ins), params, (out,), self.eq.place)
        self.work.add(eq)
        self.work.note_reader(eq)
        return out


def _is_one_number(work: Rewriting, eq: Equation) -> bool:
    """Return whether an operation repeats one number."""
    return eq.prim is broadcast_p and not work.types[eq.ins[0]].shape
