"""The operations of one body, in an order in which arrays may be changed in place.

A value is a number, an array in memory, or an array whose elements are computed where they are read. What is still to
be read of an array is put elsewhere before the array is overwritten.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.builder import constant
from fad.compile.codegen.nests.added_pieces import ON_STACK, add_into, sums_of
from fad.compile.codegen.nests.arrays import put
from fad.compile.codegen.nests.masks import still_masked
from fad.compile.codegen.nests.values import (
    Buffer,
    Computed,
    Stored,
    Value,
    broadcast_to,
    buffers_of,
    reads_elsewhere,
    shape_of,
    spread,
    whole,
)
from fad.compile.codegen.nests.writer import Number, TooMuch, Writer
from fad.compile.ir.types import BYTES, I64, INTEGERS, LLVM_TYPE
from fad.compile.passes.constants import as_uniform
from fad.compile.schedule.inplace_updates import schedule_updates
from fad.core.programs.graph import Equation, Graph
from fad.ops.ufuncs.selection import where_p

MOST_MEMORY = 1 << 26  # bytes of all arrays of a nest that are neither given nor results
_FREE = 1  # the weight of what is computed each time that it is read
_HEAVY = 40  # the weight of an element from which on it is computed once


class Memory:
    """The arrays that a nest has of its own: on the stack, among the words of its row, or constants."""

    def __init__(self, w: Writer):
        self.w = w
        self.pointers: list[str] = []
        self.given: list[Any] = []  # of each pointer: the number of a value, bytes to set aside, or a constant array
        self.known: dict[int, Buffer] = {}
        self.nbytes = 0
        self.taken_over = 0  # updates and loops that change an array in place

    def pointer(self, what: Any) -> Buffer:
        name = f"%b{len(self.pointers)}"
        self.pointers.append(name)
        self.given.append(what)
        return Buffer(name)

    def pointer_to(self, array: np.ndarray) -> Buffer:
        """Return a pointer to an array that lives as long as the program: one for each, for pointers lie apart."""
        if id(array) not in self.known:
            self.known[id(array)] = self.pointer(("constant", array))
        return self.known[id(array)]

    def new(self, shape: tuple, t: str) -> Stored:
        """Return memory for an array."""
        nbytes = max(1, math.prod(shape)) * BYTES[t]
        if nbytes <= ON_STACK:
            return whole(Buffer(self.w.slot("i8", nbytes)), shape, t)
        self.nbytes += nbytes
        if self.nbytes > MOST_MEMORY:
            raise TooMuch("its arrays take too much memory")
        return whole(self.pointer(("spare", nbytes)), shape, t)

    def constant(self, c: Any) -> Value:
        """Return a constant: a number everywhere, numbers on the stack, or an array of the program."""
        t = llvm_type(c.dtype)
        number = as_uniform(c)
        if number is not None:
            return spread(number_of(number, t), c.shape)
        place = whole(self.pointer(("constant", c)), c.shape, t) if c.nbytes > ON_STACK else self.new(c.shape, t)
        note_integers(place, c)
        if c.nbytes > ON_STACK:
            return place
        memory, slots = ("i8" if t == "i1" else t), self.w.slots
        for k, x in enumerate(c.ravel().tolist()):
            name = f"%s{len(slots)}"
            slots.append(f"  {name} = getelementptr i8, ptr {place.pointer}, i64 {k * BYTES[t]}")
            slots.append(f"  store {memory} {int(x) if memory == 'i8' else constant(x, t)}, ptr {name}")
        return place


def llvm_type(dtype: Any) -> str:
    t = LLVM_TYPE.get(dtype)
    if t is None:
        raise TooMuch(f"it has values of dtype {dtype}")
    return t


def note_integers(place: Stored, c: np.ndarray) -> None:
    """Note what is known of an array of constant integers."""
    if place.t in INTEGERS and c.size:
        place.bounds = (int(c.min()), int(c.max()))
    if place.t == I64 and c.size:
        step = int(c[1] - c[0]) if c.ndim == 1 and c.size > 1 else 1
        if c.ndim == 1 and step and np.array_equal(c, c[0] + step * np.arange(c.size)):
            place.first, place.step = int(c[0]), step


def number_of(x: Any, t: str) -> Number:
    value = x.item() if hasattr(x, "item") else x
    bounds = (int(value), int(value)) if t == I64 else (None, None)
    return Number(constant(value, t), t, *bounds)


class Order:
    """A body in an order that lets updates be in place, with all that is known of its values beforehand."""

    def __init__(self, graph: Graph, carried: list[tuple[int, int]], sums: frozenset = frozenset()):
        graph = add_into(graph, sums)
        free = frozenset([i for i, _ in carried if i not in graph.outputs])  # a state that no later step reads
        self.graph, updates = schedule_updates(graph, lambda graph, eq: "pieces", carried, free, choices=True)
        self.sums = sums_of(self.graph, sums)
        self.over = updates.over
        self.last: dict[int, int] = {}
        self.uses: Counter = Counter()
        for k, eq in enumerate(self.graph.equations):
            for i in eq.ins:
                self.last[i] = k
        for i in self.graph.outputs:
            self.last[i] = len(self.graph.equations)
        self.uses.update(self.graph.outputs)
        for eq in reversed(self.graph.equations):
            if eq.is_view:
                self.uses[eq.ins[0]] += self.uses[eq.outs[0]]
            else:
                self.uses.update(eq.ins)

    def root(self, i: int) -> int:
        while i in self.over:
            i = self.over[i]
        return i


class Body:
    """Writes the operations of one body, once."""

    def __init__(self, memory: Memory, order: Order, given: dict[int, Value], places: dict[int, Stored], owned: set):
        self.memory = memory
        self.w = memory.w
        self.order = order
        self.graph = order.graph
        self.values = dict(given)
        self.places = places
        self.owned: set[Buffer] = owned  # memory that this body may overwrite
        self.homes: dict[int, Stored] = {}  # where outputs lie of which a mask says what they are
        self.position = 0
        for i, c in self.graph.constants.items():
            if i not in self.values and i in order.last:
                self.values[i] = memory.constant(np.asarray(c))
        for o, x in reversed(order.over.items()):  # the first version of an array is made where the last one is wanted
            if o in places and x not in places and x not in given:
                places[x] = places[o]

    def write(self, emit: Any) -> list[Value]:
        """Write all operations by ``emit(body, equation)``; return the outputs."""
        for position, eq in enumerate(self.graph.equations):
            self.position = position
            emit(self, eq)
        self.position = len(self.graph.equations)
        return [self.homes.get(i, self.values[i]) for i in self.graph.outputs]

    def type(self, i: int) -> str:
        return llvm_type(self.graph.types[i].dtype)

    def shape(self, i: int) -> tuple:
        return self.graph.types[i].shape

    # --- values in memory ---------------------------------------------------------------------------------------------

    def place(self, o: int) -> Stored:
        """Return where a result is to be written, in memory of its own."""
        found = self.places.get(o)
        if found is None:
            found = self.memory.new(self.shape(o), self.type(o))
        self.owned |= found.buffers
        return found

    def put(self, value: Value, place: Stored) -> None:
        put(self.w, broadcast_to(self.w, value, place.shape), place)

    def give(self, o: int, value: Value) -> None:
        """Let a value be the result of an operation; compute it now if it is wanted in a place, or read often."""
        if isinstance(value, Computed):
            few = math.prod(value.shape) <= 16 and value.ramp is None
            often = self.order.uses[o] > 1 and (value.weight > _FREE or few)
            if o in self.places or often or value.weight > _HEAVY:
                stored = self.stored(value, self.place(o))
                masked = o in self.graph.outputs and value.choice is not None
                if masked or value.ramp is not None:
                    self.homes[o] = stored
                    value = still_masked(value, stored) if masked else value
                else:
                    value = stored
        self.values[o] = value

    def stored(self, value: Value, place: Stored | None = None) -> Stored:
        """Return an array in memory, in a place if one is given."""
        if place is None:
            if isinstance(value, Stored):
                return value
            assert isinstance(value, Computed)
            place = self.memory.new(value.shape, value.t)
            self.owned |= place.buffers
        self.put(value, place)
        return place

    def copied(self, value: Value) -> Stored:
        """Return an array in memory of its own."""
        copy = self.memory.new(shape_of(value), value.t)
        self.owned |= copy.buffers
        self.put(value, copy)
        return copy

    def in_memory(self, i: int) -> Value:
        """Return value i as a number, or as an array that is computed already."""
        value = self.values[i]
        if isinstance(value, Computed) and value.weight:
            value = self.values[i] = self.stored(value)
        return value

    def in_masked_memory(self, i: int) -> Value:
        """Return the same, of which it is still known what a mask chooses."""
        value = self.values[i]
        if isinstance(value, Computed) and value.weight and value.choice is not None:
            self.values[i] = still_masked(value, self.stored(value))
        return self.in_memory(i)

    def operand(self, i: int, shape: tuple) -> Value:
        """Return a value broadcast to a shape; it is computed first if it would be computed for many elements again."""
        value = self.values[i]
        if isinstance(value, Computed) and value.weight > _FREE and math.prod(value.shape) < math.prod(shape):
            value = self.values[i] = self.stored(value)
        return broadcast_to(self.w, value, shape)

    # --- overwriting --------------------------------------------------------------------------------------------------

    def take_over(self, eq: Equation, x: int, o: int) -> Stored:
        """Return where the new version o of array x is, which holds the elements of x and is to be changed."""
        value = self.values[x]
        if not self.owns(x, o):
            target = self.place(o)
            self.keep_readable(target, eq, x, ())
            value = self.values[x]
            if reads_elsewhere(value, target):
                value = self.copied(value)
            self.put(value, target)
            return target
        assert isinstance(value, Stored)
        self.keep_readable(value, eq, x, self._seen_by(eq))
        self.memory.taken_over += 1
        return value

    def keep_readable(self, place: Stored, eq: Equation, x: int, seen: tuple) -> None:
        """Copy what is read later still of a place that is about to be overwritten as the next version of x.

        The operation itself looks after the operands in `seen`.
        """
        last = self.order.last
        for i, value in list(self.values.items()):
            read = last.get(i, -1) > self.position or (i != x and i in eq.ins)
            if read and buffers_of(value) & place.buffers and i not in seen:
                self.values[i] = self.copied(value)

    def _seen_by(self, eq: Equation) -> tuple:
        """Return the operands that the operation itself looks after: the values of an update."""
        values = eq.ins[:2] if eq.prim is where_p else eq.ins[1:2] if eq.prim.updates else ()
        return tuple([v for v in values if self.order.last.get(v, -1) <= self.position])

    def owns(self, x: int, o: int) -> bool:
        """Return whether the new version o of array x may be made in the place of x."""
        value, place = self.values[x], self.places.get(o)
        mine = isinstance(value, Stored) and value.buffers <= self.owned and value.is_contiguous()
        return mine and self.order.over.get(o) == x and (place is None or place.same_place(value))
