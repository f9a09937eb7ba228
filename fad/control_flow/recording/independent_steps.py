"""Loops whose steps are independent of each other run at once, on arrays.

``for j in range(n): B[i, j] += A[i] @ B[:, j]`` touches one column of B in each step, and no other step reads it. So
all steps are one operation on arrays, which a derivative takes as a whole, and whose loops are the compiler's: in the
order that suits the memory, in vectors, by BLAS, on several threads. What such a loop computes is the same to the bit
but for sums and products of matrices, which have an order of their own.

Every array that a step changes must be touched at one place along one axis, which is the number of the step or a
distance from it. Numbers that a step binds may not be read by the next one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fad.control_flow.bodies.counters import Counters, Place
from fad.control_flow.bodies.loop_layout import Inputs, Operands, Outputs, Results
from fad.control_flow.bodies.subgraph import BodyTrace, to_number_p
from fad.core.programs.graph import NUMBER, Equation, has_effects, place_constant
from fad.core.programs.refusals import is_of_math, may_refuse
from fad.core.tracing.tracer import Tracer, bind, tracer
from fad.ops.layout.index_layout import ARRAY
from fad.ops.places.indexing import as_full_value, getitem_p
from fad.ops.products.contraction import matmul
from fad.ops.ufuncs.selection import where_p
from fad.staging.record import recorder
from fad.transforms.batching.batch_trace import BatchTrace

_MOST = 1 << 24  # elements that an operation of all steps has at most
_LEAST, _TIMES = 1 << 10, 2  # so many always, and more if the arrays that the loop is given have a part of that
_WHOLE = slice(None)
_ARCHETYPES = frozenset({"elementwise", "bilinear", "linear", "reduction", "selection", "flat"})
_WIDE = frozenset(np.dtype(t) for t in (np.float64, np.int64, np.complex128, bool))


def run_at_once(operands: Operands, params: dict) -> list | None:
    """Return the results of a loop of a known number of steps, run at once; None if it must be run step by step."""
    if params["stop"] != "length" or params["length"] is None:
        return None
    plan = _Plan(params)
    return plan.run(operands) if plan.fits() else None


class _Plan:
    """What is known of the steps of a loop: what differs from step to step, and where they touch the state."""

    def __init__(self, params: dict):
        body = self.body = params["body"]
        self.n, self.reverse = params["length"], params["reverse"]
        self.inputs, self.outputs = Inputs.split(body.inputs, params), Outputs.split(body.outputs, params)
        self.places: dict[int, Place] = {}  # of a version of an array that the steps change
        self.first: dict[int, int] = {}  # of such a version: the input of the body that is the first one
        self.counters = Counters(body, self.inputs.number, self.n)
        self.varying = {*self.inputs.number, *self.inputs.xs}
        given = [*self.inputs.consts, *self.inputs.carry]
        self.most = _LEAST + _TIMES * sum(math.prod(body.types[i].shape) for i in given)

    # --- whether it can be --------------------------------------------------------------------------------------------

    def fits(self) -> bool:
        body, ends = self.body, list(zip(self.inputs.carry, self.outputs.carry, strict=True))
        if self.n < 2 or any(t.home is not None for t in body.types):
            return False
        read = {i for eq in body.equations for i in eq.ins}.union(self.outputs.ys, [o for i, o in ends if i != o])
        self.first = {i: i for i, o in ends if i in read and i != o}
        if not all(map(self._takes, body.equations)):
            return False
        return self.first.keys().isdisjoint(self.outputs.ys) and all(self._ends(i, o) for i, o in ends)

    def _ends(self, i: int, o: int) -> bool:
        """Return whether the last state is known: an array with what all steps wrote, or what the last step gave."""
        return self.first.get(o) == self.first.get(i) and (i not in self.first or o in self.places)

    def _takes(self, eq: Equation) -> bool:
        """Note what an operation gives; return whether it can be done for all steps at once."""
        types = self.body.types
        if eq.is_guard or has_effects(eq) or eq.prim.archetype not in _ARCHETYPES or len(eq.outs) != 1:
            return False
        (o,) = eq.outs
        if not self.first.keys().isdisjoint(eq.ins):
            return self._touches(eq)
        if not self.varying.isdisjoint(eq.ins):
            self.varying.add(o)
            if eq.prim is getitem_p and len(eq.ins) > 1:
                return self._place(eq, 1) is not None and eq.ins[0] not in self.varying
            return (o in self.counters.known or not self._may_differ(eq)) and self._is_small(types[o].shape)
        return not _may_raise(eq) or eq.prim is getitem_p

    def _may_differ(self, eq: Equation) -> bool:
        """Return whether an operation on arrays may do something else than on the numbers of one step."""
        types = self.body.types
        if _may_raise(eq) or (eq.prim.batch is None and eq.prim.array_form is None):
            return True
        if eq.prim.symbol == "**" or is_of_math(eq.prim):
            return True
        if eq.prim.array_form is not None and eq.prim.symbol in ("/", "//", "%", "<<", ">>"):
            return not (eq.ins[1] in self.body.constants and self.body.constants[eq.ins[1]])
        numbers = any(types[i].kind == NUMBER and i in self.varying for i in eq.ins)
        return numbers and not all(types[i].dtype in _WIDE for i in (*eq.ins, *eq.outs))

    def _touches(self, eq: Equation) -> bool:
        """Note where an operation reads or writes an array that the steps change."""
        x, first = eq.ins[0], eq.prim.indexed
        if first is None or x not in self.first or not self.first.keys().isdisjoint(eq.ins[1:]):
            return False
        place = self._place(eq, first)
        if place is None or self.places.setdefault(x, place) != place:
            return False
        (o,) = eq.outs
        if eq.prim is getitem_p:
            self.varying.add(o)
        else:
            self.first[o], self.places[o] = self.first[x], place
        return self._is_small(self.body.types[o if eq.prim is getitem_p else eq.ins[1]].shape)

    def _is_small(self, shape: tuple) -> bool:
        """Return whether something of all steps is not much more than the arrays that the loop is given."""
        return self.n * math.prod(shape) <= min(_MOST, self.most)

    def _place(self, eq: Equation, first: int) -> Place | None:
        """Return where an index points in which nothing but the number of the step differs from step to step."""
        place = self.counters.place(eq, first)
        others = [i for i in eq.ins[first:] if i in self.varying and i not in self.counters.known]
        return None if others else place

    # --- all steps at once --------------------------------------------------------------------------------------------

    def run(self, operands: Operands) -> list:
        body, inputs = self.body, self.inputs
        env: dict[int, Any] = {i: place_constant(c, body.types[i]) for i, c in body.constants.items()}
        env.update(zip(inputs.consts, map(_lift, operands.consts), strict=True))
        env.update(zip(inputs.carry, operands.carry, strict=True))
        env.update({i: _Steps(x, 0) for i, x in zip(inputs.xs, operands.xs, strict=True)})
        env.update({i: _Steps(np.arange(self.n), 0) for i in inputs.number})
        for eq in body.equations:
            env[eq.outs[0]] = self._step(eq, env)
        return Results(
            [self._last(env[o], o) for o in self.outputs.carry],
            [_stack(env[o], self.n) for o in self.outputs.ys],
            [],
        ).join()

    def _last(self, x: Any, o: int) -> Any:
        """Return output o of the last step; numbers of Python's are such again."""
        if type(x) is not _Steps:
            return x
        at = 0 if self.reverse else self.n - 1
        last = x.value[(*(_WHOLE,) * x.axis, at)]
        if self.body.types[o].kind != NUMBER:
            return last
        return last.item() if type(last) is not Tracer else bind(to_number_p, last)

    def _step(self, eq: Equation, env: dict) -> Any:
        ins = [env[i] for i in eq.ins]
        if eq.ins and eq.ins[0] in self.first:
            if eq.prim is getitem_p:
                return self._read(eq, ins, self.places[eq.ins[0]])
            return self._write(eq, ins, self.places[eq.ins[0]])
        if eq.prim is getitem_p and not self.varying.isdisjoint(eq.ins[1:]):
            place = self._place(eq, 1)
            assert place is not None
            return self._read(eq, ins, place)
        if not any(type(x) is _Steps for x in ins):
            return bind(eq.prim, *ins, **eq.params)
        prim = eq.prim.array_form or eq.prim
        if prim.archetype == "elementwise" or prim is where_p:
            y = _elementwise(prim, ins, eq.params)
        elif prim is matmul and (found := _dot(ins)) is not None:
            y = found
        else:
            y = _in_front(prim, ins, eq.params, self.n)
        dtype = self.body.types[eq.outs[0]].dtype
        return y if y.value.dtype == dtype else y._replace(value=y.value.astype(dtype))

    def _index(self, eq: Equation, ins: list, first: int, place: Place) -> tuple[tuple, list, int]:
        """Return the index of all steps, and at which axis of what it takes the steps are."""
        parts, operands, ahead = [], [], 0
        given = iter(ins[first:])
        for axis, part in enumerate(eq.params["template"]):
            x = next(given) if part is ARRAY else None
            if axis == place.axis:
                part = place.of_all(self.n, self.body.types[eq.ins[0]].shape[axis])
            elif x is not None:
                operands.append(x)
            ahead += type(part) is slice and axis < place.axis
            parts.append(part)
        return tuple(parts), operands, ahead

    def _read(self, eq: Equation, ins: list, place: Place) -> _Steps:
        template, operands, axis = self._index(eq, ins, 1, place)
        return _Steps(ins[0] if _is_all(template) else bind(getitem_p, ins[0], *operands, template=template), axis)

    def _write(self, eq: Equation, ins: list, place: Place) -> Any:
        template, operands, axis = self._index(eq, ins, 2, place)
        x, v = ins[:2]
        rank = sum(type(p) is slice for p in template) + np.ndim(x) - len(template)
        v = _beside(v, rank - 1, rank - 1 - axis)
        if _is_all(template) and not eq.prim.adds and np.shape(v) == np.shape(x) and v.dtype == x.dtype:
            return v
        return bind(eq.prim, x, as_full_value(x, v, operands, template), *operands, template=template)


class _Steps(NamedTuple):
    """A value of all steps, which lie along one of its axes."""

    value: Any
    axis: int


def _front(x: _Steps) -> Any:
    return np.moveaxis(x.value, x.axis, 0) if x.axis else x.value


def _stack(x: Any, n: int) -> Any:
    return _front(x) if type(x) is _Steps else np.broadcast_to(x, (n, *np.shape(x)))


def _beside(x: Any, rank: int, behind: int) -> Any:
    """Return a value so that NumPy broadcasts it to steps of some rank whose axis has some others behind it."""
    if type(x) is not _Steps:
        own = np.ndim(x)
        if own <= behind:
            return x
        shape = np.shape(x)
        return np.reshape(x, (*shape[: own - behind], 1, *shape[own - behind :]))
    own = x.value.ndim - 1
    if own - x.axis == behind:
        return x.value
    if own >= behind:
        return np.moveaxis(x.value, x.axis, own - behind)
    y = _front(x)
    return y.reshape((y.shape[0],) + (1,) * (behind - own) + y.shape[1:])


def _elementwise(prim: Any, ins: list, params: dict) -> _Steps:
    """Apply an operation to each element; the steps stay where the largest operand has them."""
    rank = max(x.value.ndim - 1 if type(x) is _Steps else np.ndim(x) for x in ins)
    largest = max([x for x in ins if type(x) is _Steps], key=lambda x: x.value.ndim)
    behind = largest.value.ndim - 1 - largest.axis
    return _Steps(bind(prim, *[_beside(x, rank, behind) for x in ins], **params), rank - behind)


def _dot(ins: list) -> _Steps | None:
    """Return the products of vectors of which one is the same in all steps: a matrix times a vector."""
    x, y = ins
    ranks = [v.value.ndim - 1 if type(v) is _Steps else np.ndim(v) for v in ins]
    if ranks != [1, 1] or type(x) is type(y) is _Steps:
        return None
    steps, vector = (x, y) if type(x) is _Steps else (y, x)
    return _Steps(steps.value @ vector if steps.axis == 0 else vector @ steps.value, 0)


def _in_front(prim: Any, ins: list, params: dict, n: int) -> _Steps:
    """Apply an operation by its rule for batches, which have their axis in front."""
    trace = BatchTrace(n, (), "split")
    try:
        y = bind(prim, *[tracer(_front(x), trace, None) if type(x) is _Steps else x for x in ins], **params)
        return _Steps(y.wrapped, 0)
    finally:
        trace.finish()


def _lift(x: Any) -> Any:
    """Return a value from outside of the body that is being recorded as one of it: views of it are taken there."""
    trace = recorder.get()
    return trace.lift(x) if type(x) is Tracer and isinstance(trace, BodyTrace) and x.owner is not trace else x


def _is_all(template: tuple) -> bool:
    return all(type(part) is slice and part == _WHOLE for part in template)


def _may_raise(eq: Equation) -> bool:
    return may_refuse(eq.prim, eq.ins)
