"""Whether Python's integers in a captured loop stay within 64 bits: they have no end, and those of a program do.

The bounds of the state are followed through one step, and from that through all of them. Within a body its condition
holds, and the test of an ``if`` within its branches; an integer that indexes an array is a place of it, or the program
raises. What grows by a constant in each step stays small for as many steps as any computer runs.

Where this says nothing the program checks itself while it runs (`fad.compile.legalize.numbers.integer_overflow`).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.capture.recording.integer_rules import (
    COMPARISONS,
    COPIES,
    UNKNOWN,
    Interval,
    bound_compared,
    bound_operands,
    bound_result,
    bounds_of_number,
    is_empty,
    is_within,
    limits_of,
    meet,
    union_of,
)
from fad.control_flow.bodies.intervals import interval
from fad.control_flow.bodies.loop_layout import Inputs, Operands, Outputs
from fad.control_flow.bodies.subgraph import example
from fad.core.programs.graph import NUMBER, Equation, Graph
from fad.ops.places.indexing import getitem_p
from fad.ops.ufuncs.elementwise import logical_and, logical_not, logical_or, square

FIT, UNSURE, GROW = 0, 1, 2  # integers stay within 64 bits; what they depend on is not known; they may leave them
_END = 1 << 62
_MANY = 1 << 40  # more steps than any loop takes, and all loops of a program together
_GIVEN = 1 << 39  # integers from outside have fewer bits
_WIDE = 1 << 48
_FAR = 1 << 50
_ROUNDS = 3  # steps that are followed one by one, before it is asked how the state grows
_UNROLLED = 64  # steps that are followed one by one where nothing else says how the state grows


def judge_integers(params: dict, first: list[Interval], consts: list[Interval], most: int | None) -> int:
    """Return whether Python's integers in a loop stay within 64 bits, given those that it begins with."""
    return _Loop(params, first, consts, most, {}).judge()


def state_interval(x: Any) -> Interval:
    """Return the bounds of what a state begins with."""
    y = example(x)
    known = np.ndim(x) == 0 and not is_on_device(y) and np.asarray(y).dtype.kind in "iu"
    return interval(x) if known else UNKNOWN


def _is_whole(graph: Graph, number: int) -> bool:
    t = graph.types[number]
    return t.kind == NUMBER and t.dtype.kind == "i"


# --- one graph -------------------------------------------------------------------------------------------------------


def bounds_of(graph: Graph, ins: list[Interval], seen: dict) -> Bounds:
    """Return what is known of a graph's integers; `seen` holds what was found already, by graph and inputs.

    A branch is asked for by its own equation, and again by each condition that depends on it, in every step that is
    followed. Graphs live as long as the parameters that are judged, so their ids are theirs.
    """
    key = id(graph), tuple(ins)
    found = seen.get(key)
    if found is None:
        found = seen[key] = Bounds(graph, ins, seen)
    return found


class Bounds:
    """What is known of the integers of a graph, from what is known of its inputs."""

    def __init__(self, graph: Graph, ins: list[Interval], seen: dict):
        self.graph = graph
        self.seen = seen
        self.known: dict[int, Interval] = {}
        self.made: dict[int, Equation] = {}
        self.verdict = FIT
        self.possible = True  # whether all that is assumed can be true
        self.read = {i for eq in graph.equations for i in eq.ins} | {*graph.outputs}
        for number, c in graph.constants.items():
            if np.ndim(c) == 0 and not is_on_device(c):
                self.known[number] = bounds_of_number(c)
        for number, x in zip(graph.inputs, ins, strict=True):
            self._note(number, x)
        for eq in graph.equations:
            for o, x in zip(eq.outs, self._results(eq), strict=True):
                self._note(o, x)
                self.made[o] = eq
            self._learn_places(eq)

    def of(self, number: int) -> Interval:
        """Return the bounds of a value."""
        found = self.known.get(number)
        return limits_of(self.graph.types[number].dtype) if found is None else found

    def assume(self, number: int, truth: bool) -> Bounds:
        """Return what is known where a condition is true, or false."""
        found = copy.copy(self)
        found.known = dict(self.known)
        found._learn_truth(number, truth)
        return found

    def _note(self, number: int, x: Interval) -> None:
        t = self.graph.types[number]
        if t.shape or t.dtype.kind not in "biu":
            return
        if _is_whole(self.graph, number):
            if any(bound is not None and abs(bound) >= _END for bound in x):
                self.verdict, x = GROW, UNKNOWN
        elif not is_within(x, limits_of(t.dtype)) or any(b is not None and abs(b) >= _END for b in x):
            x = limits_of(t.dtype)  # it wraps around
        self.known[number] = x

    def _results(self, eq: Equation) -> list[Interval]:
        if eq.prim.archetype == "branch":
            return self._branches(eq)
        given = [self.of(i) for i in eq.ins]
        if eq.prim.archetype == "loop" and "cut" not in eq.params:  # a loop, and not the gradient of one
            operands = Operands.split(given, eq.params)
            loop = _Loop(eq.params, operands.carry, operands.consts, eq.params["length"], self.seen)
            self.verdict = max(self.verdict, min(UNSURE, loop.judge()))
            state = loop.last()
            return [*state, *[UNKNOWN] * (len(eq.outs) - len(state))]
        return [bound_result(eq.prim, given)] if len(eq.outs) == 1 and given else [UNKNOWN] * len(eq.outs)

    def _branches(self, eq: Equation) -> list[Interval]:
        ways = []
        for way, graph in enumerate(eq.params["branches"]):
            here = self.assume(eq.ins[0], bool(way)) if self._is_choice(eq) else self
            if not here.possible:
                continue
            inner = bounds_of(graph, [here.of(i) for i in eq.ins[1:]], self.seen)
            self.verdict = max(self.verdict, inner.verdict)
            ways.append([inner.of(o) for o in graph.outputs])
        return union_of(ways) if ways else [UNKNOWN] * len(eq.outs)

    def _is_choice(self, eq: Equation) -> bool:
        return len(eq.params["branches"]) == 2 and self.graph.types[eq.ins[0]].dtype.kind == "b"

    # --- what follows -------------------------------------------------------------------------------------------------

    def _learn(self, number: int, x: Interval) -> None:
        """Note what is known of a value besides, and what that says of those that it was computed from."""
        old = self.of(number)
        new = meet(old, x)
        t = self.graph.types[number]
        if new == old or t.shape or t.dtype.kind not in "biu":
            return
        self.known[number] = new
        if is_empty(new):
            self.possible = False
            return
        eq = self.made.get(number)
        if eq is None or eq.prim.archetype in ("branch", "loop") or (t.kind != NUMBER and None in old):
            return  # what is no number of Python's may have wrapped around
        if eq.prim.symbol == "*" and eq.ins[0] == eq.ins[-1]:
            self._learn(eq.ins[0], bound_operands(square, new, [])[0])
            return
        for i, bounds in zip(eq.ins, bound_operands(eq.prim, new, [self.of(i) for i in eq.ins]), strict=False):
            if self.graph.types[i].dtype.kind in "biu":
                self._learn(i, bounds)

    def _learn_places(self, eq: Equation) -> None:
        """Note that the integers that index an array are places of it: otherwise the program raises there."""
        if not (eq.prim is getitem_p or eq.prim.updates) or self.read.isdisjoint(eq.outs):
            return
        template = eq.params.get("template", ())
        if any(part is None or part is Ellipsis for part in template):
            return
        indices = iter(eq.ins[1 if eq.prim is getitem_p else 2 :])
        for part, size in zip(template, self.graph.types[eq.ins[0]].shape, strict=False):
            if part == "array":
                i = next(indices)
                if not is_empty(meet(self.of(i), (-size, size - 1))):
                    self._learn(i, (-size, size - 1))

    def _learn_truth(self, number: int, truth: bool) -> None:
        """Note what follows where a condition is true, or false."""
        eq = self.made.get(number)
        if eq is None:
            c = self.graph.constants.get(number)
            if c is not None and np.ndim(c) == 0 and bool(c) != truth:
                self.possible = False
            return
        symbol = eq.prim.symbol
        logical = self.graph.types[number].dtype.kind == "b"
        if eq.prim is logical_and or (symbol == "&" and logical):
            for i in eq.ins if truth else ():
                self._learn_truth(i, True)
        elif eq.prim is logical_or or (symbol == "|" and logical):
            for i in eq.ins if not truth else ():
                self._learn_truth(i, False)
            left = [i for i in eq.ins if not self._is_constant(i, False)]
            if truth and len(left) == 1:
                self._learn_truth(left[0], True)
        elif eq.prim is logical_not:
            self._learn_truth(eq.ins[0], not truth)
        elif eq.prim in COPIES:
            self._learn_truth(eq.ins[0], truth)
        elif symbol in COMPARISONS:
            how = symbol if truth else COMPARISONS[symbol]
            for i, x in zip(eq.ins, bound_compared(how, *[self.of(i) for i in eq.ins]), strict=True):
                self._learn(i, x)
        elif eq.prim.archetype == "branch" and self._is_choice(eq):
            self._learn_chosen(eq, eq.outs.index(number), truth)

    def _learn_chosen(self, eq: Equation, place: int, truth: bool) -> None:
        """Note what follows where the result of a choice is true, or false: which way was taken, as of ``a and b``."""
        ways = [way for way in (0, 1) if self._may_give(eq, way, place, truth)]
        if len(ways) != 1:
            return
        (way,) = ways
        self._learn_truth(eq.ins[0], bool(way))
        graph = eq.params["branches"][way]
        inner = bounds_of(graph, [self.of(i) for i in eq.ins[1:]], self.seen).assume(graph.outputs[place], truth)
        self.possible = self.possible and inner.possible
        for i, own in zip(eq.ins[1:], graph.inputs, strict=True):
            self._learn(i, inner.of(own))

    def _may_give(self, eq: Equation, way: int, place: int, truth: bool) -> bool:
        """Return whether one way of a choice may give true, or false."""
        graph = eq.params["branches"][way]
        o = graph.outputs[place]
        made = {i: e for e in graph.equations for i in e.outs}
        while o in made and (made[o].prim in COPIES or made[o].prim is logical_or):
            left = [i for i in made[o].ins if i not in graph.constants or graph.constants[i]]
            if len(left) != 1:
                break
            (o,) = left
        if o in graph.constants:
            return bool(graph.constants[o]) == truth
        if o not in graph.inputs:
            return True
        given = eq.ins[1 + graph.inputs.index(o)]
        if given in self.graph.constants:
            return bool(self.graph.constants[given]) == truth
        return given != eq.ins[0] or bool(way) == truth

    def _is_constant(self, number: int, value: bool) -> bool:
        c = self.graph.constants.get(number)
        return c is not None and np.ndim(c) == 0 and bool(c) == value


# --- all steps -------------------------------------------------------------------------------------------------------


class _Loop:
    """What is known of the integers of a loop's state before each of its steps."""

    def __init__(self, params: dict, first: list[Interval], consts: list[Interval], most: int | None, seen: dict):
        self.params, self.body, self.seen = params, params["body"], seen
        own, ends = Inputs.split(self.body.inputs, params), Outputs.split(self.body.outputs, params)
        self.ends = ends.carry
        whole = [_is_whole(self.body, i) for i in own.carry]
        self.whole = [k for k, mark in enumerate(whole) if mark]
        self.begin = [_fill_bounds(x) if mark else x for x, mark in zip(first, whole, strict=True)]
        filled = [_fill_bounds(x) if _is_whole(self.body, i) else x for x, i in zip(consts, own.consts, strict=True)]
        self.steps = most if most is not None else params["length"] or _MANY
        counter = [(0, max(self.steps - 1, 0)) for _ in own.number]
        self.given = Inputs(filled, counter, [], [UNKNOWN] * len(own.xs))
        self.verdict = FIT
        self.state = self._settle()

    def judge(self) -> int:
        """Return whether Python's integers in it stay within 64 bits."""
        verdict = max(self.verdict, self._through(self.state).verdict)
        return max(verdict, UNSURE) if any(None in self.state[k] for k in self.whole) else verdict

    def last(self) -> list[Interval]:
        """Return the bounds of the state behind it."""
        found = self._through(self.state)
        return union_of([self.begin, [found.of(o) for o in self.ends]])

    def _through(self, state: list[Interval]) -> Bounds:
        return bounds_of(self.body, self.given._replace(carry=state).join(), self.seen)

    def _next(self, state: list[Interval]) -> list[Interval]:
        """Return the bounds of the state before the next step, if there is one."""
        found = self._through(state)
        if self.params["stop"] == "cond":
            found = found.assume(self.ends[0], True)
        return [found.of(o) for o in self.ends] if found.possible else state

    def _settle(self) -> list[Interval]:
        """Return bounds that hold before every step."""
        state: list[Interval] = self.begin
        grown: set = set()
        for _ in range(min(_ROUNDS, self.steps)):
            joined = union_of([state, self._next(state)])
            if joined == state:
                return state
            grown = _exceeding(joined, state)
            state = joined
        while True:
            wide = [_widen(x, k, grown) for k, x in enumerate(state)]
            joined = union_of([state, self._next(wide)])
            beyond = _exceeding(joined, wide)
            if beyond <= grown:
                break
            grown |= beyond
        if not beyond:
            return self._narrow(joined)
        tried = _choose(wide, joined, beyond)  # what is computed from others, now that their bounds are known
        again = union_of([state, self._next(tried)])
        if not _exceeding(again, tried):
            return self._narrow(again)
        found = self._grow(state, joined, beyond)
        if self.verdict != FIT and self.steps <= _UNROLLED:
            return self._unroll(found)
        return found

    def _narrow(self, state: list[Interval]) -> list[Interval]:
        """Return bounds within others that hold, too."""
        for _ in range(_ROUNDS):
            again = union_of([self.begin, self._next(state)])
            if again == state or not all(map(is_within, again, state)):
                break
            state = again
        return state

    def _grow(self, state: list[Interval], others: list[Interval], beyond: set) -> list[Interval]:
        """Return bounds that hold, where some of them grow with the number of steps."""

        found = _choose(state, others, beyond)
        near, far = self._next(found), self._next([_widen(x, k, beyond, _FAR) for k, x in enumerate(found)])
        fresh = all(b is None or abs(b) < _MANY for x in (*self.given.consts, *found) for b in x)
        for k, side in beyond:
            bounds = list(found[k])
            bounds[side] = self._end(state[k][side], near[k][side], far[k][side], side, fresh)
            found[k] = tuple(bounds)
            if bounds[side] is None and k in self.whole:
                known = None not in (near[k][side], far[k][side])
                self.verdict = max(self.verdict, GROW if known else UNSURE)
        while True:  # others may depend on what has no bounds
            joined = union_of([self.begin, self._next(found)])
            more = _exceeding(joined, found) - beyond
            if not more:
                return found
            beyond = beyond | more
            found = [tuple(None if (k, s) in more else b for s, b in enumerate(x)) for k, x in enumerate(found)]

    def _end(self, start: int | None, near: int | None, far: int | None, side: int, fresh: bool) -> int | None:
        """Return how far a bound gets that moves by the same number in each step; None if it does not, or too far.

        What an inner loop adds in all its steps is counted once: `_MANY` are the steps of all loops together.
        """
        sign = 1 if side else -1
        if start is None or near is None or far is None:
            return None
        by = sign * (near - start)
        if by != sign * (far - start) - _FAR or by < 0:
            return None
        loops, own = divmod(by + _MANY // 2, _MANY) if fresh else (0, by)
        own = max(0, own - _MANY // 2) if fresh else own
        end = start + sign * (loops * _MANY + own * self.steps)
        return end if abs(end) < _END else None

    def _unroll(self, found: list[Interval]) -> list[Interval]:
        """Return bounds from following the few steps that there are, if those say more."""
        state = self.begin
        for _ in range(self.steps):
            state = union_of([state, self._next(state)])
            if any(None in state[k] for k in self.whole):
                return found
        self.verdict = FIT
        return state


def _fill_bounds(x: Interval) -> Interval:
    """Return bounds for an integer of which none are known: it is an argument, and those have fewer bits."""
    least, most = x
    return (min(-_GIVEN, most or 0) if least is None else least, max(_GIVEN, least or 0) if most is None else most)


def _widen(x: Interval, k: int, sides: set, by: int | None = None) -> Interval:
    """Return bounds of value k that are moved by a number, or to one that is large, on some sides."""
    least, most = x
    if (k, 0) in sides and least is not None:
        least = min(least, -_WIDE) if by is None else least - by
    if (k, 1) in sides and most is not None:
        most = max(most, _WIDE) if by is None else most + by
    return (least, most)


def _choose(these: list[Interval], others: list[Interval], sides: set) -> list[Interval]:
    """Return bounds that are these on some sides, and others elsewhere."""
    return [
        tuple(these[k][side] if (k, side) in sides else bound for side, bound in enumerate(x))  # type: ignore[misc]
        for k, x in enumerate(others)
    ]


def _exceeding(found: list[Interval], bounds: list[Interval]) -> set:
    """Return of which values, and on which sides, some bounds exceed others."""
    sides: set[Any] = set()
    for k, ((a, b), (least, most)) in enumerate(zip(found, bounds, strict=True)):
        if least is not None and (a is None or a < least):
            sides.add((k, 0))
        if most is not None and (b is None or b > most):
            sides.add((k, 1))
    return sides
