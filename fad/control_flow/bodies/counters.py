"""What a loop's body does with the number of its step: where it points, and which part of an axis a mask leaves to it.

``A[i, :j]`` is a row of which a mask chooses the places before j. Whether a step reads what an earlier one has written,
or what a later one will write, follows from where they write and what such masks choose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fad.backends import is_on_device
from fad.control_flow.bodies.subgraph import to_number_p
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import reshape_p, transpose_p
from fad.ops.layout.index_layout import ARRAY
from fad.ops.places.indexing import getitem_p
from fad.ops.ufuncs.elementwise import logical_and
from fad.ops.ufuncs.selection import where_p

_BEYOND = {"<": 1, "<=": 0, ">": 1, ">=": 0}  # how far at least the greater one is from the other


class Place(NamedTuple):
    """Where a step touches an array: ``first + step * t`` along an axis, with t the number of the step."""

    axis: int
    first: int
    step: int

    def is_inside(self, n: int, shape: tuple) -> bool:
        """Return whether all of n steps touch places of an array of some shape."""
        ends = self.first, self.first + self.step * (n - 1)
        return min(ends) >= 0 and max(ends) < shape[self.axis]

    def of_all(self, n: int, size: int) -> slice:
        """Return what n steps touch of an axis of some size, in the order of their numbers."""
        if (self.first, self.step, n) == (0, 1, size):
            return slice(None)
        stop = self.first + self.step * n
        return slice(self.first, None if stop < 0 else stop, self.step)


class Bound(NamedTuple):
    """What a mask says of the places that it chooses: none lies below (or above) ``first + step * t``."""

    below: bool
    first: int
    step: int


class Counters:
    """The integers of a body that follow from the number of the step: ``first + step * t``, the step 1 or -1."""

    def __init__(self, body: Graph, number: list[int], steps: int):
        self.body, self.steps = body, steps
        self.made = {o: eq for eq in body.equations for o in eq.outs}
        self.known: dict[int, tuple[int, int]] = dict.fromkeys(number, (0, 1))
        for eq in body.equations:
            found = self._result(eq)
            if found is not None and abs(found[1]) == 1:
                self.known[eq.outs[0]] = found

    def _result(self, eq: Equation) -> tuple[int, int] | None:
        if eq.prim is to_number_p:
            return self.known.get(eq.ins[0])
        if eq.prim.symbol not in ("+", "-", "*") or len(eq.ins) != 2 or self.body.types[eq.outs[0]].shape:
            return None
        x, y = [self.known.get(i) or self._constant(i) for i in eq.ins]
        if x is None or y is None or x[1] == y[1] == 0:
            return None
        if eq.prim.symbol == "*":
            return None if 0 not in (x[1], y[1]) else (x[0] * y[0], x[0] * y[1] + x[1] * y[0])
        sign = 1 if eq.prim.symbol == "+" else -1
        return x[0] + sign * y[0], x[1] + sign * y[1]

    def _constant(self, i: int) -> tuple[int, int] | None:
        c = self.body.constants.get(i)
        if c is None or np.ndim(c) or is_on_device(c):
            return None
        return (int(c), 0) if np.asarray(c).dtype.kind == "i" else None

    def place(self, eq: Equation, first: int) -> Place | None:
        """Return where an index with a counter in it points, in all steps into the array.

        None if there is no counter in it, or more than one: an index before the first place counts from the end.
        """
        operands, found = iter(eq.ins[first:]), None
        for axis, part in enumerate(eq.params["template"]):
            if part is None or part is Ellipsis:
                return None
            i = next(operands) if part is ARRAY else -1
            if i in self.known:
                if found is not None:
                    return None
                found = Place(axis, *self.known[i])
            elif i >= 0 and self.body.types[i].shape:
                return None
        inside = found is not None and found.is_inside(self.steps, self.body.types[eq.ins[0]].shape)
        return found if inside else None

    # --- what steps write, and what is read where ---------------------------------------------------------------------

    def versions(self, start: int, end: int) -> tuple[set[int], Place] | None:
        """Return all versions of an array of the state, and where every step writes it; None if it may be elsewhere."""
        versions, place = {start}, None
        for eq in self.body.equations:
            if versions.isdisjoint(eq.ins) or eq.prim in (getitem_p, where_p, transpose_p, reshape_p):
                continue
            found = self.place(eq, 2) if eq.prim.updates else None
            if found is None or eq.ins[0] not in versions or place not in (None, found):
                return None
            place = found
            versions.update(eq.outs)
        return (versions, place) if place is not None and end in versions else None

    def is_beyond(self, mask: int, axis: int, place: Place, towards: int) -> bool:
        """Return whether a mask chooses places beyond that of the step alone, which lie before it if `towards` is -1.

        `axis` is the one along which the mask is looked at, counted from behind.
        """
        return any(
            b.step == place.step and b.below == (towards > 0) and towards * (b.first - place.first) >= 1
            for b in self._bounds(mask, axis)
        )

    def _bounds(self, mask: int, axis: int) -> list[Bound]:
        types = self.body.types
        eq = self.made.get(mask)
        while eq is not None and eq.prim is reshape_p:
            shape, (inner,) = types[eq.outs[0]].shape, eq.ins
            if len(types[inner].shape) != 1 or -axis > len(shape) or shape[axis] != types[inner].shape[0]:
                return []
            axis, mask = -1, inner
            eq = self.made.get(mask)
        if eq is None:
            return []
        if eq.prim is logical_and:
            return [b for i in eq.ins for b in self._bounds(i, axis)]
        beyond = _BEYOND.get(eq.prim.symbol)
        if beyond is None or axis != -1 or len(types[mask].shape) != 1:
            return []
        left, right = eq.ins if eq.prim.symbol[0] == "<" else eq.ins[::-1]  # left < right, or left <= right
        for counter, places, sign in ((left, right, 1), (right, left, -1)):
            known, first = self.known.get(counter), self._first_of(places)
            if known is not None and first is not None:
                return [Bound(sign > 0, known[0] + sign * beyond - first, known[1])]
        return []

    def _first_of(self, i: int) -> int | None:
        """Return where an array begins that counts upwards by one; None if it is another one."""
        x = self.body.constants.get(i)
        if type(x) is not np.ndarray or x.ndim != 1 or not x.size or x.dtype.kind != "i":
            return None
        return int(x[0]) if np.array_equal(x, np.arange(x[0], x[0] + x.size)) else None
