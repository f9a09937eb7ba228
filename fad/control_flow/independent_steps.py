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

from fad.control_flow.subgraph import to_number_p
from fad.core.graph import ARRAY as IS_ARRAY
from fad.core.graph import GUARD, NUMBER, Equation, Graph, has_effects, place_constant
from fad.core.tracer import Tracer, bind, tracer
from fad.ops.index_layout import ARRAY
from fad.ops.indexing import getitem_p
from fad.staging.may_raise import may_refuse
from fad.transforms.vmap import BatchTrace

_MOST = 1 << 22  # elements that an operation of all steps has at most
_WHOLE = slice(None)
_ARCHETYPES = frozenset({"elementwise", "bilinear", "linear", "reduction", "selection", "flat"})
_WIDE = frozenset(np.dtype(t) for t in (np.float64, np.int64, np.complex128, bool))


class _Place(NamedTuple):
    """Where a step touches an array: ``first + step * t`` along an axis, with t the number of the step."""

    axis: int
    first: int
    step: int

    def of_all(self, n: int) -> slice:
        """Return what n steps touch, in the order of their numbers."""
        stop = self.first + self.step * n
        return slice(self.first, None if stop < 0 else stop, self.step)


def run_at_once(captured: list, leaves: list, items: list, params: dict) -> list | None:
    """Return the results of a loop of a known number of steps, run at once; None if it must be run step by step."""
    plan = _Plan(params)
    return plan.run(captured, leaves, items) if plan.fits() else None


class _Plan:
    """What is known of the steps of a loop: what differs from step to step, and where they touch the state."""

    def __init__(self, params: dict):
        body = self.body = params["body"]
        self.n, self.reverse, c = params["length"], params["reverse"], params["consts"]
        self.indexed, self.m = params["index"], params["carries"]
        start = c + params["index"]
        self.consts = body.inputs[:c]
        self.index = body.inputs[c] if params["index"] else -1
        self.carry, self.xs = body.inputs[start : start + self.m], body.inputs[start + self.m :]
        self.fixed = params["stop"] == "length" and params["length"] is not None
        self.places: dict[int, _Place] = {}  # of a version of an array that the steps change
        self.lanes: dict[int, tuple[int, int]] = {self.index: (0, 1)}  # value -> first and step of ``first + step * t``
        self.varying: set[int] = {self.index, *self.xs} - {-1}

    # --- whether it can be --------------------------------------------------------------------------------------------

    def fits(self) -> bool:
        body = self.body
        if not self.fixed or self.n < 2 or any(t.home is not None for t in body.types):
            return False
        read = {i for eq in body.equations for i in eq.ins} | set(body.outputs[self.m :])
        arrays = {}
        for i, o in zip(self.carry, body.outputs, strict=False):
            if i in read and i != o:
                arrays[i] = o
        self.arrays = set(arrays)  # versions of what the steps change
        for eq in body.equations:
            if not self._takes(eq):
                return False
        return all(o in self.arrays and o in self.places for o in arrays.values())

    def _takes(self, eq: Equation) -> bool:
        """Note what an operation gives; return whether it can be done for all steps at once."""
        body, types = self.body, self.body.types
        if eq.prim is GUARD or has_effects(eq) or eq.prim.archetype not in _ARCHETYPES or len(eq.outs) != 1:
            return False
        (o,) = eq.outs
        touched = [i for i in eq.ins if i in self.arrays]
        if touched:
            return self._touches(eq)
        if not self.varying.isdisjoint(eq.ins):
            self.varying.add(o)
            lane = self._lane(eq)
            if lane is not None:
                self.lanes[o] = lane
            elif eq.prim.name == "getitem" and len(eq.ins) > 1:
                return self._place(eq, 1, types[eq.ins[0]].shape) is not None and eq.ins[0] not in self.varying
            elif self._may_differ(eq):
                return False
            return self.n * max(1, math.prod(types[o].shape)) <= _MOST
        return not _may_raise(eq) or eq.prim.name == "getitem"

    def _may_differ(self, eq: Equation) -> bool:
        """Return whether an operation on arrays may do something else than on the numbers of one step."""
        types = self.body.types
        if _may_raise(eq) or (eq.prim.batch is None and eq.prim.array_form is None) or eq.prim.symbol == "**":
            return True
        if eq.prim.array_form is not None and eq.prim.symbol in ("/", "//", "%", "<<", ">>"):
            return not (eq.ins[1] in self.body.constants and self.body.constants[eq.ins[1]])
        numbers = any(types[i].kind == NUMBER and i in self.varying for i in eq.ins)
        return numbers and not all(types[i].dtype in _WIDE for i in (*eq.ins, *eq.outs))

    def _lane(self, eq: Equation) -> tuple[int, int] | None:
        """Return how an integer follows from the number of the step, if it is a distance from it."""
        if eq.prim is to_number_p:
            return self.lanes.get(eq.ins[0])
        if eq.prim.symbol not in ("+", "-", "*") or len(eq.ins) != 2 or self.body.types[eq.outs[0]].shape:
            return None
        (a, b), symbol = eq.ins, eq.prim.symbol
        x, y = [self.lanes.get(i) or self._fixed(i) for i in (a, b)]
        if x is None or y is None:
            return None
        if symbol == "*":
            if 0 not in (x[1], y[1]):
                return None
            found = x[0] * y[0], x[0] * y[1] + x[1] * y[0]
        else:
            sign = 1 if symbol == "+" else -1
            found = x[0] + sign * y[0], x[1] + sign * y[1]
        return found if found[1] in (1, -1) else None

    def _fixed(self, i: int) -> tuple[int, int] | None:
        c = self.body.constants.get(i)
        return (int(c), 0) if c is not None and not np.ndim(c) and np.asarray(c).dtype.kind == "i" else None

    def _touches(self, eq: Equation) -> bool:
        """Note where an operation reads or writes an array that the steps change."""
        name, x = eq.prim.name, eq.ins[0]
        first = {"getitem": 1, "index_set": 2, "index_add": 2}.get(name)
        if first is None or x not in self.arrays or not self.arrays.isdisjoint(eq.ins[1:]):
            return False
        place = self._place(eq, first, self.body.types[x].shape)
        if place is None or self.places.setdefault(x, place) != place:
            return False
        (o,) = eq.outs
        if name == "getitem":
            self.varying.add(o)
        else:
            self.arrays.add(o)
            self.places[o] = place
        return self.n * max(1, math.prod(self.body.types[o if name == "getitem" else eq.ins[1]].shape)) <= _MOST

    def _place(self, eq: Equation, first: int, shape: tuple) -> _Place | None:
        """Return where an index with the number of the step in it points, if all steps point into the array."""
        template, operands = eq.params["template"], iter(eq.ins[first:])
        found = None
        for axis, part in enumerate(template):
            if part is None or part is Ellipsis:
                return None
            if part is not ARRAY:
                continue
            i = next(operands)
            if i in self.varying:
                if i not in self.lanes or found is not None:
                    return None
                found = _Place(axis, *self.lanes[i])
            elif self.body.types[i].shape:
                return None
        if found is None:
            return None
        ends = found.first, found.first + found.step * (self.n - 1)
        return found if 0 <= min(ends) and max(ends) < shape[found.axis] else None

    # --- all steps at once --------------------------------------------------------------------------------------------

    def run(self, captured: list, leaves: list, items: list) -> list:
        body, trace = self.body, BatchTrace(self.n, (), "split")
        env: dict[int, Any] = {i: place_constant(c, body.types[i]) for i, c in body.constants.items()}
        env.update(zip(self.consts, captured, strict=True))
        env.update(zip(self.carry, leaves, strict=True))
        env.update({i: tracer(x, trace, None) for i, x in zip(self.xs, items, strict=True)})
        if self.indexed:
            env[self.index] = tracer(np.arange(self.n), trace, None)
        try:
            for eq in body.equations:
                env[eq.outs[0]] = self._step(eq, env, trace)
            return self._results(env, trace)
        finally:
            trace.finish()

    def _step(self, eq: Equation, env: dict, trace: BatchTrace) -> Any:
        t, ins = self.body.types[eq.outs[0]], [env[i] for i in eq.ins]
        if eq.ins[0] in self.arrays:
            if eq.prim.name == "getitem":
                return self._read(eq, ins, self.places[eq.ins[0]], trace)
            return self._write(eq, ins, self.places[eq.ins[0]], trace)
        if eq.prim.name == "getitem" and not self.varying.isdisjoint(eq.ins[1:]):
            place = self._place(eq, 1, self.body.types[eq.ins[0]].shape)
            assert place is not None
            return self._read(eq, ins, place, trace)
        prim = eq.prim
        if prim.array_form is not None and any(_is_of(x, trace) for x in ins):
            prim = prim.array_form
        y = bind(prim, *ins, **eq.params)
        return y.astype(t.dtype) if _is_of(y, trace) and y.dtype != t.dtype else y

    def _index(self, eq: Equation, ins: list, first: int, place: _Place) -> tuple[tuple, list, int]:
        """Return the index of all steps, and at which axis of what it takes the steps are."""
        parts, operands, ahead = [], [], 0
        given = iter(ins[first:])
        for axis, part in enumerate(eq.params["template"]):
            x = next(given) if part is ARRAY else None
            if axis == place.axis:
                part = place.of_all(self.n)
            elif x is not None:
                operands.append(x)
            ahead += type(part) is slice and axis < place.axis
            parts.append(part)
        return tuple(parts), operands, ahead

    def _read(self, eq: Equation, ins: list, place: _Place, trace: BatchTrace) -> Any:
        template, operands, axis = self._index(eq, ins, 1, place)
        y = bind(getitem_p, ins[0], *operands, template=template)
        return tracer(np.moveaxis(y, axis, 0) if axis else y, trace, None)

    def _write(self, eq: Equation, ins: list, place: _Place, trace: BatchTrace) -> Any:
        template, operands, axis = self._index(eq, ins, 2, place)
        x, v = ins[:2]
        rank = sum(type(p) is slice for p in template) + len(self.body.types[eq.ins[0]].shape) - len(template)
        steps = _is_of(v, trace)
        v = v.value if steps else v
        shape = np.shape(v)
        own = shape[1:] if steps else shape
        if len(own) < rank - 1 or not steps:
            v = np.reshape(v, (self.n if steps else 1, *(1,) * (rank - 1 - len(own)), *own))
        return bind(eq.prim, x, np.moveaxis(v, 0, axis) if axis else v, *operands, template=template)

    def _results(self, env: dict, trace: BatchTrace) -> list:
        found, last = [], 0 if self.reverse else -1
        for i, o in zip(self.carry, self.body.outputs, strict=False):
            y = env[o]
            found.append(y.value[last] if _is_of(y, trace) and i != o else y)
        for o in self.body.outputs[self.m :]:
            y = env[o]
            found.append(y.value if _is_of(y, trace) else np.broadcast_to(y, (self.n, *np.shape(y))))
        return found


def _is_of(x: Any, trace: BatchTrace) -> bool:
    return type(x) is Tracer and x.owner is trace


def _may_raise(eq: Equation) -> bool:
    return may_refuse(eq.prim, eq.ins)
