"""Places of an axis: integers that rise or fall in even steps, and those of which a mask says which count.

``k - 1 - i`` are the places of a reversed slice. An element of such an array is computed from its position and read
nowhere, so LLVM sees that neighbours are read, and whether all of them lie within an array is checked at the first and
the last. Other places that a mask chooses are checked one by one, before they are used: only those that it chooses are.
"""

from __future__ import annotations

from typing import NamedTuple

from fad.compile.codegen.llvm.builder import constant
from fad.compile.codegen.nests.masks import Stretch, along, is_chosen
from fad.compile.codegen.nests.values import Computed, Mask, Stored, Value, bounds_of, element, shape_of, spread
from fad.compile.codegen.nests.writer import Index, Number, Writer
from fad.compile.ir.types import BOOL, I64
from fad.core.programs.graph import Equation


class Ramp(NamedTuple):
    """What an array holds whose other axes have one place: ``start + step * i`` at place i."""

    start: Index
    step: int

    def at(self, w: Writer, i: Index) -> Index:
        return w.plus(w.times(i, self.step), self.start)


def find_ramp(x: Value) -> Ramp | None:
    """Return what an array holds, if that is a ramp."""
    if isinstance(x, Stored):
        return None if x.first is None else Ramp(x.first, x.step)
    return x.ramp if isinstance(x, Computed) else None


def ramp_of(w: Writer, eq: Equation, numbers: list[Value]) -> Ramp | None:
    """Return the ramp that an operation gives, if it does; `numbers` are its operands before they were broadcast."""
    symbol = eq.prim.symbol
    if symbol not in ("+", "-") or len(numbers) != 2:
        return None
    x, y = numbers
    swapped = isinstance(x, Number)
    ramp, number = find_ramp(y if swapped else x), x if swapped else y
    if ramp is None or not isinstance(number, Number) or number.t != I64:
        return None
    if symbol == "+":
        return Ramp(w.plus(ramp.start, number.index), ramp.step)
    if swapped:
        return Ramp(w.minus(number.index, ramp.start), -ramp.step)
    return Ramp(w.minus(ramp.start, number.index), ramp.step)


def as_computed(ramp: Ramp, shape: tuple, bounds: tuple) -> Computed:
    """Return an array that a ramp fills."""
    found = Computed(shape, I64, lambda w, index: Number(str(ramp.at(w, index[0])), I64, *bounds), [], 0, bounds)
    found.ramp = ramp
    return found


def kept_within(w: Writer, places: Value, size: int) -> Computed | None:
    """Return places of an axis that a mask chooses, with one number elsewhere, and check that all are within the axis.

    The function is left where one is outside; of a ramp also where it is negative. None if they are something else.
    """
    if not isinstance(places, Computed) or places.choice is None:
        return None
    mask, x, y = places.choice
    if not isinstance(y, Computed) or y.number is None or mask.mask is None or not mask.mask.inside:
        return None
    (n,) = places.shape
    low = w.least(w.greatest(mask.mask.low, 0), n)
    high = w.least(w.greatest(mask.mask.high, low), n)
    first = _inside(w, x, Stretch(low, w.minus(high, low), {mask.mask.range: True}, mask.mask.range), size)
    other = spread(Number(str(w.position(y.number, size)), I64, 0, size - 1), places.shape)

    def compute(w: Writer, index: tuple) -> Number:
        known = is_chosen(w, mask.mask, index)
        if known is not None:
            return element(w, first if known else other, index)
        a, b = element(w, first, index), element(w, other, index)
        chosen = w.new(f"select i1 {element(w, mask, index).name}, i64 {a.name}, i64 {b.name}")
        return Number(chosen, I64, *first.bounds)

    found = Computed(places.shape, I64, compute, places.parts, 0, first.bounds, (mask, first, other))
    found.choice = (mask, first, other)
    return found


def placed_by_ramp(w: Writer, x: Value, v: Value, places: Value) -> Computed | None:
    """Return what numbers chosen by a mask make of zeros where a ramp places them; None if this is something else.

    No two of them have one place: each element of the result is read from where it comes from.
    """
    if not (isinstance(x, Computed) and x.number is not None and x.number.name == constant(0, x.t)):
        return None
    if not isinstance(places, Computed) or not isinstance(v, Computed) or places.choice is None or v.choice is None:
        return None
    mask, chosen, _ = places.choice
    ramp, (own, values, _) = find_ramp(chosen), v.choice
    within = Stretch(0, 0, {own.mask.range: not own.mask.inside}).is_zero(v) if own.mask else False
    if ramp is None or mask.mask is None or own.mask != mask.mask or not mask.mask.inside or not within:
        return None
    n, (size,) = shape_of(v)[0], shape_of(x)
    low = w.least(w.greatest(mask.mask.low, 0), n)
    high = w.least(w.greatest(mask.mask.high, low), n)
    ends = [ramp.at(w, low), ramp.at(w, w.plus(high, -1))]
    first, last = ends[:: ramp.step]
    count = w.minus(w.plus(last, 1), first)

    def is_placed(w: Writer, index: tuple) -> Number:
        return Number(w.new(f"icmp ult i64 {w.minus(index[0], first)}, {count}"), BOOL)

    def source(w: Writer, index: tuple) -> Index:
        return w.times(w.minus(index[0], ramp.start), ramp.step)

    def compute(w: Writer, index: tuple) -> Number:
        known = is_chosen(w, part, index)
        if known is not None:
            return element(w, values if known else zero, (source(w, index),) if known else index)
        at = w.least(w.greatest(source(w, index), 0), n - 1)
        a = element(w, values, (at,))
        return Number(w.new(f"select i1 {placed.at(w, index).name}, {a.t} {a.name}, {a.t} {constant(0, a.t)}"), a.t)

    part = Mask(first, w.plus(first, count))
    placed = Computed((size,), BOOL, is_placed, [], 0)
    placed.mask = part
    zero = spread(Number(constant(0, v.t), v.t), (size,))
    moved = Computed((size,), v.t, lambda w, index: element(w, values, (source(w, index),)), [values], 0)
    found = Computed((size,), v.t, compute, [values], 1, aligned=(placed, moved, zero))
    found.choice = (placed, moved, zero)
    return found


def _inside(w: Writer, x: Value, part: Stretch, size: int) -> Computed:
    """Return places that are within an axis of some size in a part of them, after a check of these."""
    ramp = find_ramp(x)
    if ramp is not None:
        ends = [ramp.at(w, i) for i in (part.start, w.plus(part.start, w.plus(part.length, -1)))]
        within = [w.new(f"icmp ult i64 {i}, {size}") for i in ends]
        empty = w.new(f"icmp sle i64 {part.length}, 0")
        w.require(w.new(f"or i1 {empty}, {w.new(f'and i1 {within[0]}, {within[1]}')}"))
        return as_computed(ramp, shape_of(x), (0, size - 1))
    low, high = bounds_of(x)
    bounds = (max(-size, -size if low is None else low), min(size - 1, size - 1 if high is None else high))
    if (low, high) != bounds:
        with along(w, part) as i:
            w.position(element(w, x, (i,)), size)

    def compute(w: Writer, index: tuple) -> Number:
        found = element(w, x, index)
        return Number(found.name, I64, *bounds)

    return Computed(shape_of(x), I64, compute, [x], 0, bounds, [x])
