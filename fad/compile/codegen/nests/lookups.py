"""Reading and writing at many places, which an array of integers gives along one axis: ``x[i]``, ``x[i] += y``."""

from __future__ import annotations

import math
from typing import NamedTuple

from fad.compile.codegen.nests.arrays import loops
from fad.compile.codegen.nests.body import Body
from fad.compile.codegen.nests.masks import along, stretches
from fad.compile.codegen.nests.ramps import kept_within, placed_by_ramp
from fad.compile.codegen.nests.values import (
    Computed,
    Stored,
    Value,
    bounds_of,
    broadcast_to,
    buffers_of,
    element,
    shape_of,
)
from fad.compile.codegen.nests.writer import Index, Number, TooMuch, Writer
from fad.compile.ir.types import BOOL, I64, INTEGERS
from fad.core.programs.graph import Equation

_MOST = 1 << 18  # elements of one operation


class Lookup(NamedTuple):
    """The axis of an array along which places are given, the places, and the ranges along the other axes."""

    axis: int
    places: Value
    ranges: tuple[tuple[int, int, int], ...]  # start, step and length for each axis of the array
    known: bool  # whether all places are in the array

    @property
    def shape(self) -> tuple:
        return tuple([n for _, _, n in self.ranges])

    def source(self, w: Writer, index: tuple, shape: tuple) -> tuple:
        """Return where in an array of a shape the element at an index of what is looked up is."""
        found: list[Index] = [w.plus(w.times(i, step), a) for i, (a, step, _) in zip(index, self.ranges, strict=True)]
        found[self.axis] = w.position(element(w, self.places, (index[self.axis],)), shape[self.axis])
        return tuple(found)


def lookup_of(body: Body, eq: Equation, first: int, shape: tuple) -> Lookup | None:
    """Return how an operation looks up places in an array of a shape; None if it takes slices and single places."""
    arrays = [i for i in eq.ins[first:] if body.shape(i)]
    if not arrays:
        return None
    template = eq.params["template"]
    others = all(type(p) in (str, slice) or p is Ellipsis for p in template)
    one = len(eq.ins) == first + 1 and len(body.shape(arrays[0])) == 1 and body.type(arrays[0]) in INTEGERS
    if not (one and others):
        raise TooMuch("an index array looks up many places")
    dots = next((k for k, p in enumerate(template) if p is Ellipsis), len(template))
    rest = len(shape) - sum(p is not Ellipsis for p in template)
    parts = (*template[:dots], *[slice(None)] * rest, *template[dots + 1 :])
    axis = next(d for d, p in enumerate(parts) if type(p) is str)
    places, (n,) = body.values[arrays[0]], body.shape(arrays[0])
    bounds = [part.indices(size) if type(part) is slice else (0, 0, 1) for part, size in zip(parts, shape, strict=True)]
    ranges = [(a, step, len(range(a, b, step))) for a, b, step in bounds]
    ranges[axis] = (0, 1, n)
    counted = _are_inside(places, shape[axis]) and bounds_of(places)[0] >= 0  # type: ignore[operator]  # all from the start
    inside = None if counted or places.t != I64 else kept_within(body.w, places, shape[axis])
    places = places if inside is None else inside
    return Lookup(axis, places, tuple(ranges), _are_inside(places, shape[axis]))


def _are_inside(places: Value, size: int) -> bool:
    """Return whether bounds are known of all places that keep them within an axis."""
    low, high = bounds_of(places)
    return low is not None and high is not None and -size <= low and high < size


def take_many(body: Body, eq: Equation, lookup: Lookup) -> None:
    """Read elements at many places; where one may be outside of the array, all of them at once."""
    (x, _), (o,) = eq.ins, eq.outs
    if math.prod(lookup.shape) > _MOST and not body.w.large:
        raise TooMuch("its arrays are large enough for kernels of their own")
    value = body.in_memory(x)
    shape = shape_of(value)

    def compute(w: Writer, index: tuple) -> Number:
        return element(w, value, lookup.source(w, index, shape))

    aligned = [lookup.places] if len(lookup.shape) == 1 else []
    found = Computed(lookup.shape, body.type(o), compute, [value, lookup.places], 1, aligned=aligned)
    if lookup.known:
        body.give(o, found)
    else:
        body.values[o] = body.stored(found, body.place(o))


def update_many(body: Body, eq: Equation, lookup: Lookup) -> None:
    """Write or add elements at many places, one after the other."""
    (x, v, _), (o,), w = eq.ins, eq.outs, body.w
    adds, t = eq.prim.adds, body.type(o)
    gathered = placed_by_ramp(w, body.values[x], body.values[v], lookup.places) if adds else None
    if gathered is not None:
        body.give(o, gathered)
        return
    if (math.prod(lookup.shape) > _MOST and not w.large) or (adds and t == BOOL):
        raise TooMuch("an update of many places that kernels do")
    place = body.take_over(eq, x, o)
    value = _apart(body, v, place)
    places = body.copied(lookup.places) if buffers_of(lookup.places) & place.buffers else lookup.places
    lookup = lookup._replace(places=places)
    mine = shape_of(value)
    if len(mine) > len(lookup.shape):
        raise TooMuch("values of more axes than their places")
    value = broadcast_to(w, value, lookup.shape)

    def one(index: tuple) -> None:
        target = place.address(w, lookup.source(w, index, place.shape))
        new = element(w, value, index).name
        w.write(t, w.add(w.read(t, target), new, t) if adds else new, target)

    if len(lookup.shape) > 1:
        with loops(w, lookup.shape) as index:
            one(index)
    else:
        for stretch in stretches(w, *lookup.shape, value, places):
            if not (adds and stretch.is_zero(value)):
                with along(w, stretch) as i:
                    one((i,))
    body.values[o] = place


def _apart(body: Body, i: int, place: Stored) -> Value:
    """Return an operand that does not change while a place is written."""
    value = body.values[i]
    return body.copied(value) if buffers_of(value) & place.buffers else value
