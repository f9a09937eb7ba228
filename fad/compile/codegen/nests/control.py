"""Loops and branches within a nest: what a loop carries is a number in a register, or an array in memory.

An array that a step changes in place has one place. Another one has two, which are read and written by turns, or lies
in the rows of the stack that keeps it; a small one is copied back at the end of a step, and may stay in registers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fad.compile.codegen.llvm.builder import constant
from fad.compile.codegen.nests.added_pieces import ON_STACK, sums_of
from fad.compile.codegen.nests.body import Body, Order
from fad.compile.codegen.nests.emitters import emit_operation
from fad.compile.codegen.nests.values import Buffer, Computed, Stored, Value, contiguous, make_view, shape_of
from fad.compile.codegen.nests.writer import Index, Number, TooMuch, Writer
from fad.compile.ir.types import BOOL, BYTES, I64
from fad.compile.schedule.inplace_updates import updated_by
from fad.control_flow.bodies.loop_layout import GUESSED_STEPS, Loop, Outputs
from fad.core.programs.graph import Equation, Graph, has_effects
from fad.ops.products.contraction import matmul

_QUIET = 50_000  # operations, of a nanosecond or so, between two looks at the clock
_FOREVER = 2**62


def emit_any(body: Body, eq: Equation) -> None:
    """Write any operation of a body."""
    if has_effects(eq):
        raise TooMuch(f"{eq.prim.name} has an effect")
    if eq.prim.archetype == "loop":
        emit_loop(body, eq)
    elif eq.prim.archetype == "branch":
        _emit_branch(body, eq)
    else:
        emit_operation(body, eq)


def work(graph: Graph) -> int:
    """Return about how many operations a run of a graph does."""
    total = 1
    for eq in graph.equations:
        if eq.prim.archetype == "loop":
            inner = work(eq.params["body"])
            known = eq.params["stop"] == "length"
            total += (eq.params["length"] if known else GUESSED_STEPS) * inner
        elif eq.prim.archetype == "branch":
            total += max(map(work, eq.params["branches"]))
        else:
            sizes = [math.prod(graph.types[i].shape) for i in (*eq.ins, *eq.outs)]
            total += max(sizes) * (graph.types[eq.ins[0]].shape or (1,))[-1] if eq.prim is matmul else max(sizes)
    return total


class _Carried(NamedTuple):
    """One array that a loop carries: where a step finds it, and where it puts the next one, if that is elsewhere."""

    kind: str  # "same": not changed; "number"; "in place"; "copied" back; "by turns" in two places; "in rows" kept
    value: Any  # the first state; or the slot of a number
    slots: tuple = ()


def emit_loop(body: Body, eq: Equation) -> None:
    """Write a loop, with its body in it."""
    loop = Loop(eq)
    _Loop(body, eq, loop).write()


class _Loop:
    def __init__(self, outer: Body, eq: Equation, loop: Loop):
        self.outer = outer
        self.eq = eq
        self.loop = loop
        self.w = outer.w
        carried = list(zip(loop.carry_inputs, loop.carry_outputs, strict=True))
        arrays = [(i, o) for i, o in carried if loop.body.types[i].shape and i != o]
        begun = [self._begins_at_zero(i) for i in loop.carry]
        pairs = zip(carried, begun, strict=True)
        sums = [i for (i, o), zero in pairs if zero and o in sums_of(loop.body, frozenset((i,)))]
        self.order = Order(loop.body, arrays, frozenset(sums))
        self.graph = self.order.graph
        self.outputs = Outputs.split(self.graph.outputs, eq.params)
        self.ends = list(zip(loop.carry_inputs, self.outputs.carry, strict=True))
        self.owned: set[Buffer] = set()
        self.targets: dict[int, list[Stored]] = {}  # of a state that has two places: where it is, and where to put it
        self.rows: dict[int, Stored] = {}  # of a state that each step keeps: the stack in whose rows it lies

    def write(self) -> None:
        loop, outer, w = self.loop, self.outer, self.w
        limit = self._limit()
        self._keep_readable()
        stacks = [outer.place(o) for o in loop.results.ys]
        self._find_rows(stacks)
        states = [self._state(k) for k in range(len(loop.carry))]
        pairs = zip(loop.const_inputs, loop.consts, strict=True)
        given: dict[int, Value] = {inner: outer.in_memory(i) for inner, i in pairs}
        rows = [outer.in_memory(i) for i in loop.xs]
        flag = states[0].value if loop.has_condition else None
        if loop.has_condition and states[0].kind != "number":
            raise TooMuch("a loop does not change whether it goes on")
        length = limit.index
        with w.loop(length, self._stretch(limit), flag) as t:
            at = self._position(t, limit)
            if loop.indexed:
                given[loop.index_input] = at
            places: dict[int, Stored] = {}
            for k, state in enumerate(states):
                self._begin(k, state, given, places, at)
            for x, inner in zip(rows, loop.x_inputs, strict=True):
                shape = shape_of(x)[1:]
                steps = [("at", at.index), *[("axis", d, 0, 1) for d in range(len(shape))]]
                given[inner] = make_view(w, x, shape, steps)
            ends = self._row_places(stacks, at, places, states)
            inside = Body(outer.memory, self.order, given, places, set(self.owned))
            found = inside.write(emit_any)
            self._end(inside, states, found, ends)
        done = w.counted
        self._results(states)
        outer.values.update(zip(loop.results.ys, stacks, strict=True))
        for o in loop.results.steps:
            outer.values[o] = Number(done, I64, 0, _FOREVER)

    def _begins_at_zero(self, i: int) -> bool:
        """Return whether an array is positive zeros, or a sum that began as such."""
        x = self.outer.values[i]
        zeros = isinstance(x, Computed) and x.number is not None and x.number.name == constant(0, x.t)
        return zeros or i in self.outer.order.sums

    # --- how often ----------------------------------------------------------------------------------------------------

    def _limit(self) -> Number:
        loop = self.loop
        if loop.stop == "length":
            return Number(str(loop.length), I64, loop.length, loop.length)
        if loop.has_condition:
            return Number(str(_FOREVER), I64, _FOREVER, _FOREVER)
        count = self.outer.values[loop.count]
        assert isinstance(count, Number)
        if count.t != I64:
            raise TooMuch("the number of steps is no integer of 64 bits")
        return count

    def _stretch(self, limit: Number) -> int:
        """Return the steps between two looks at the clock; none if all steps take little time."""
        each = work(self.graph)
        if self.loop.stop == "length" and self.loop.length * each <= _QUIET:
            return 0
        return max(1, _QUIET // each)

    def _position(self, t: str, limit: Number) -> Number:
        last = None if limit.high is None else max(0, limit.high - 1)
        if not self.loop.reverse:
            return self.w.note(Number(t, I64, 0, last))
        top = self.w.plus(limit.index, -1)
        return self.w.note(Number(str(self.w.minus(top, t)), I64, 0, last))

    # --- the state ----------------------------------------------------------------------------------------------------

    def _keep_readable(self) -> None:
        """Copy what is read later still of the places of the results: older versions of these lie there."""
        for i, o in zip(self.loop.carry, self.loop.results.carry, strict=True):
            if self.outer.shape(o) and o in self.outer.places:
                self.outer.keep_readable(self.outer.places[o], self.eq, i, ())

    def _state(self, k: int) -> _Carried:
        """Put the first state where the loop wants it."""
        outer, i, o = self.outer, self.loop.carry[k], self.loop.results.carry[k]
        start, end = self.ends[k]
        if start == end and not (k == 0 and self.loop.has_condition):
            return _Carried("same", outer.in_memory(i))
        shape, t = outer.shape(o), outer.type(o)
        if not shape:
            first = outer.values[i]
            assert isinstance(first, Number)
            slot = self.w.slot(t)
            self.w.do(f"store {t} {first.name}, ptr {slot}")
            return _Carried("number", slot)
        if self.order.root(end) == start:
            place = outer.take_over(self.eq, i, o)
            self.owned |= place.buffers
            return _Carried("in place", place)
        if math.prod(shape) * BYTES[t] <= ON_STACK:
            place = outer.memory.new(shape, t)
            outer.put(outer.values[i], place)
            return _Carried("copied", place, (outer.memory.new(shape, t),))
        place = outer.place(o)
        if k in self.rows:
            first = self.loop.length - 1 if self.loop.reverse else 0
            outer.put(outer.values[i], _row_of(self.w, self.rows[k], first))
            return _Carried("in rows", place)
        other = outer.memory.new(shape, t)
        outer.put(outer.values[i], place)
        slots = (self.w.slot("ptr"), self.w.slot("ptr"))
        zero = (0,) * len(shape)
        for slot, where in zip(slots, (place, other), strict=True):
            self.w.do(f"store ptr {where.address(self.w, zero)}, ptr {slot}")
        return _Carried("by turns", (place, other), slots)

    def _find_rows(self, stacks: list[Stored]) -> None:
        """Find the states that every step keeps: each is computed in the row where the next step keeps it."""
        if self.loop.stop == "length" and self.loop.length:
            starts = {start: k for k, (start, _) in enumerate(self.ends)}
            for v, stack in zip(self.outputs.ys, stacks, strict=True):
                if v in starts:
                    self.rows.setdefault(starts[v], stack)

    def _begin(self, k: int, state: _Carried, given: dict, places: dict, at: Number) -> None:
        """Say where a step finds its state, and where it puts the next one."""
        start, end = self.ends[k]
        if state.kind == "number":
            t = self.outer.type(self.loop.results.carry[k])
            given[start] = Number(self.w.fresh(f"load {t}, ptr {state.value}"), t)
        elif state.kind == "by turns":
            place, _ = state.value
            found = []
            for slot in state.slots:
                pointer = self.w.fresh(f"load ptr, ptr {slot}")
                buffers = frozenset((Buffer(pointer),))
                found.append(Stored(buffers, pointer, 0, place.shape, contiguous(place.shape, place.t), place.t))
            given[start] = found[0]
            self.owned |= found[0].buffers  # the step after the next one writes there
            places.setdefault(end, found[1])
            self.targets[k] = found
        elif state.kind == "in rows":
            given[start], target = self._two_rows(self.rows[k], at, state.value)
            places.setdefault(end, target)
            self.targets[k] = [target]
        else:
            given[start] = state.value
            if state.kind == "copied":
                places.setdefault(end, state.slots[0])

    def _two_rows(self, stack: Stored, at: Number, final: Stored) -> tuple[Stored, Stored]:
        """Return the row in which a step finds its state, and where the next one belongs."""
        w, last, zero = self.w, self.loop.length - 1, (0,) * len(final.shape)
        end, step = (0, -1) if self.loop.reverse else (last, 1)
        done = w.new(f"icmp eq i64 {at.index}, {end}")
        there = _row_of(w, stack, w.plus(at.index, step)).address(w, zero)
        here = _row_of(w, stack, at.index).address(w, zero)
        pointers = here, w.new(f"select i1 {done}, ptr {final.address(w, zero)}, ptr {there}")
        rows = [Stored(frozenset((Buffer(p),)), p, 0, final.shape, final.strides, final.t) for p in pointers]
        return rows[0], rows[1]

    def _row_places(self, stacks: list[Stored], at: Number, places: dict, states: list[_Carried]) -> list:
        """Return where a step puts what it adds to the stacks; arrays are computed there."""
        if not stacks:
            return []
        w, last = self.w, self.loop.length - 1
        row: Index = at.index
        if self.loop.stop != "length":
            over = w.new(f"icmp sgt i64 {row}, {last}")
            row = w.new(f"select i1 {over}, i64 {last}, i64 {row}")
        elsewhere = {end for (_, end), state in zip(self.ends, states, strict=True) if state.kind == "in place"}
        elsewhere.update(self.loop.carry_inputs)
        found = []
        for v, stack in zip(self.outputs.ys, stacks, strict=True):
            place = _row_of(w, stack, row)
            found.append(place)
            if place.shape and v not in elsewhere:
                places.setdefault(v, place)
        return found

    def _end(self, inside: Body, states: list[_Carried], found: list[Value], ends: list[Stored]) -> None:
        """Put the next state, and what is stacked, where they belong."""
        w = self.w
        there = {self.ends[k][0] for k, state in enumerate(states) if state.kind == "in rows"}
        carry, ys = Outputs.split(found, self.eq.params)
        for v, value, place in zip(self.outputs.ys, ys, ends, strict=True):
            if v in there:
                there.discard(v)  # it lies in one stack, of those that keep it
            else:
                inside.put(value, place)
        numbers = [(s, v) for s, v in zip(states, carry, strict=True) if s.kind == "number"]
        for state, value in numbers:
            assert isinstance(value, Number)
            w.do(f"store {value.t} {value.name}, ptr {state.value}")
        back: list[tuple[Value, Stored]] = []
        for k, (state, value) in enumerate(zip(states, carry, strict=True)):
            if state.kind == "copied":
                (other,) = state.slots
                inside.put(value, other)
                back.append((other, state.value))
            elif state.kind == "in place":
                back.append((value, state.value))
            elif state.kind == "by turns":
                now, then = self.targets[k]
                inside.put(value, then)
                w.do(f"store ptr {then.pointer}, ptr {state.slots[0]}")
                w.do(f"store ptr {now.pointer}, ptr {state.slots[1]}")
            elif state.kind == "in rows":
                inside.put(value, *self.targets[k])
        for value, place in back:
            inside.put(value, place)

    def _results(self, states: list[_Carried]) -> None:
        outer, w = self.outer, self.w
        for o, state in zip(self.loop.results.carry, states, strict=True):
            if state.kind == "number":
                t = outer.type(o)
                value: Any = Number(w.fresh(f"load {t}, ptr {state.value}"), t)
            elif state.kind == "by turns":
                place, other = state.value
                pointer = w.fresh(f"load ptr, ptr {state.slots[0]}")
                value = Stored(place.buffers | other.buffers, pointer, 0, place.shape, place.strides, place.t)
                outer.owned |= other.buffers
                if o in outer.places:
                    value = self._bring(place, value)
            else:
                value = state.value
                if state.kind == "copied":
                    outer.owned |= value.buffers
                if state.kind != "in place" and o in outer.places and outer.shape(o):
                    value = outer.stored(value, outer.place(o))
            outer.values[o] = value
            if not outer.shape(o) and o in outer.places:
                outer.put(value, outer.places[o])

    def _bring(self, place: Stored, found: Stored) -> Stored:
        """Copy the last state to where it is wanted, unless it is there."""
        w = self.w
        copy, on = w.label(), w.label()
        home = place.address(w, (0,) * len(place.shape))
        there = w.fresh(f"icmp eq ptr {found.pointer}, {home}")
        w.do(f"br i1 {there}, label %{on}, label %{copy}")
        w.begin(copy)
        nbytes = math.prod(place.shape) * BYTES[place.t]
        w.needs.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {home}, ptr {found.pointer}, i64 {nbytes}, i1 false)")
        w.do(f"br label %{on}")
        w.begin(on)
        w.loaded = {}
        return place


def _row_of(w: Writer, stack: Stored, row: Index) -> Stored:
    """Return a row of a stack."""
    offset = w.plus(stack.offset, w.times(row, stack.strides[0]))
    return Stored(stack.buffers, stack.pointer, offset, stack.shape[1:], stack.strides[1:], stack.t)


# --- branches ---------------------------------------------------------------------------------------------------------


def _orders(body: Body, eq: Equation) -> tuple[dict[int, int], list[Order]]:
    """Return the results of a branch that are made in the place of an operand, each with it, and its ways in order."""
    over, branches = body.order.over, eq.params["branches"]
    taken = {k: m for k, m in updated_by(eq).items() if over.get(eq.outs[k]) == eq.ins[1 + m]}
    while True:
        carried = [[(g.inputs[m], g.outputs[k]) for k, m in taken.items()] for g in branches]
        orders = [Order(g, [(i, o) for i, o in c if i != o]) for g, c in zip(branches, carried, strict=True)]
        ends = [(order, order.graph.outputs) for order in orders]
        left = {k: m for k, m in taken.items() if all(v.root(o[k]) == v.graph.inputs[m] for v, o in ends)}
        if left == taken:
            return taken, orders
        taken = left


def _emit_branch(body: Body, eq: Equation) -> None:
    """Write a choice: the chosen branch puts its results where they belong."""
    w, branches = body.w, eq.params["branches"]
    index = body.values[eq.ins[0]]
    assert isinstance(index, Number)
    if index.t not in (BOOL, I64):
        raise TooMuch("a branch is chosen by a number of another dtype")
    taken, orders = _orders(body, eq)
    for i in eq.ins[1:]:
        body.in_memory(i)
    for k, o in enumerate(eq.outs):
        if k not in taken and o in body.places and body.shape(o):
            body.keep_readable(body.places[o], eq, o, ())  # an operand may lie there, and a branch read it at any time
    slots: list[Any] = []
    for k, o in enumerate(eq.outs):
        if k in taken:
            slots.append(body.take_over(eq, eq.ins[1 + taken[k]], o))
        else:
            slots.append(body.place(o) if body.shape(o) else w.slot(body.type(o)))
    operands = [body.values[i] for i in eq.ins[1:]]
    for k, m in taken.items():
        operands[m] = slots[k]
    owned = {b for k in taken for b in slots[k].buffers}
    labels, on = [w.label() for _ in branches], w.label()
    if index.t == BOOL:
        w.do(f"br i1 {index.name}, label %{labels[-1]}, label %{labels[0]}")
    else:
        last = len(branches) - 1
        above = w.fresh(f"icmp sgt i64 {index.name}, {last}")
        low = w.fresh(f"select i1 {above}, i64 {last}, i64 {index.name}")
        cases = " ".join(f"i64 {k}, label %{labels[k]}" for k in range(1, len(branches)))
        w.do(f"switch i64 {low}, label %{labels[0]} [{cases}]")
    for label, graph, order in zip(labels, branches, orders, strict=True):
        w.begin(label)
        with w.block():
            given = dict(zip(graph.inputs, operands, strict=True))
            outputs = order.graph.outputs
            places = {v: s for v, s in zip(outputs, slots, strict=True) if isinstance(s, Stored) and v not in given}
            inside = Body(body.memory, order, given, places, set(owned))
            for value, slot in zip(inside.write(emit_any), slots, strict=True):
                if isinstance(slot, Stored):
                    inside.put(value, slot)
                else:
                    assert isinstance(value, Number)
                    w.do(f"store {value.t} {value.name}, ptr {slot}")
        w.do(f"br label %{on}")
    w.begin(on)
    for o, slot in zip(eq.outs, slots, strict=True):
        if isinstance(slot, Stored):
            body.values[o] = slot
        else:
            body.values[o] = Number(w.fresh(f"load {body.type(o)}, ptr {slot}"), body.type(o))
            if o in body.places:
                body.put(body.values[o], body.places[o])

