"""Integers that rise or fall by the same step from place to place: ``k - 1 - i``, the places of a reversed slice.

An element of such an array is computed from its position and read nowhere, so LLVM sees that neighbours are read, and
whether all of them lie within an array is asked of the first and the last.
"""

from __future__ import annotations

from typing import NamedTuple

from fad.compile.codegen.nests.values import Computed, Stored, Value, element, shape_of, spread
from fad.compile.codegen.nests.writer import Index, Number, Writer
from fad.compile.ir.types import I64
from fad.core.graph import Equation


class Ramp(NamedTuple):
    """What an array of one axis holds: ``start + step * i`` at place i."""

    start: Index
    step: int

    def at(self, w: Writer, i: Index) -> Index:
        return w.plus(w.times(i, self.step), self.start)


def _of(x: Value) -> Ramp | None:
    if isinstance(x, Stored):
        return None if x.first is None else Ramp(x.first, 1)
    return x.ramp if isinstance(x, Computed) else None


def ramp_of(w: Writer, eq: Equation, numbers: list[Value]) -> Ramp | None:
    """Return the ramp that an operation gives, if it does; `numbers` are its operands before they were broadcast."""
    name = eq.prim.name.removeprefix("python_")
    if name not in ("add", "subtract") or len(numbers) != 2:
        return None
    for x, y, sign in (*numbers, 1), (*numbers[::-1], -1):
        ramp = _of(x)
        if ramp is None or not isinstance(y, Number) or y.t != I64:
            continue
        if name == "add":
            return Ramp(w.plus(ramp.start, y.index), ramp.step)
        if sign > 0:
            return Ramp(w.minus(ramp.start, y.index), ramp.step)
        return Ramp(w.minus(y.index, ramp.start), -ramp.step)
    return None


def as_computed(ramp: Ramp, shape: tuple, bounds: tuple) -> Computed:
    """Return an array that a ramp fills."""
    found = Computed(shape, I64, lambda w, index: Number(str(ramp.at(w, index[0])), I64, *bounds), [], 0, bounds)
    found.ramp = ramp
    return found


def kept_within(w: Writer, places: Value, size: int) -> Computed | None:
    """Return places of an axis that are a ramp where a mask is true, and one number elsewhere, within the axis.

    The function is left where one of them is outside, or negative. None if the places are something else.
    """
    if not isinstance(places, Computed) or places.choice is None:
        return None
    mask, x, y = places.choice
    ramp = _of(x)
    if ramp is None or not isinstance(y, Computed) or y.number is None or mask.mask is None or not mask.mask.inside:
        return None
    (n,) = shape_of(places)
    low = w.least(w.greatest(mask.mask.low, 0), n)
    high = w.least(mask.mask.high, n)
    ends = [w.new(f"icmp ult i64 {ramp.at(w, i)}, {size}") for i in (low, w.plus(high, -1))]
    inside = w.new(f"and i1 {ends[0]}, {ends[1]}")
    empty = w.new(f"icmp sge i64 {low}, {high}")
    w.require(w.new(f"or i1 {empty}, {inside}"))
    bounds = (0, size - 1)
    first = as_computed(ramp, places.shape, bounds)
    other = spread(Number(str(w.position(y.number, size)), I64, *bounds), places.shape)
    choice = (mask, first, other)

    def compute(w: Writer, index: tuple) -> Number:
        known = w.assumed.get((mask, index))
        if known is not None:
            return element(w, first if known else other, index)
        a, b = element(w, first, index), element(w, other, index)
        return Number(w.new(f"select i1 {element(w, mask, index).name}, i64 {a.name}, i64 {b.name}"), I64, *bounds)

    found = Computed(places.shape, I64, compute, places.parts, 0, bounds, (mask, first, other))
    found.weight = 0
    found.choice = choice
    return found
