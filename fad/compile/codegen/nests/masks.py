"""Loops over one axis, split where a mask changes: ``where(i < k, x, y)`` is x in one stretch and y in the other.

A slice whose length depends on a counter is an array of full size of which a mask says what counts. A loop over it
needs no mask where it is split at the ends of the slice, and no steps where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from fad.compile.codegen.llvm.builder import constant
from fad.compile.codegen.nests.values import Computed, Mask, Stored, Value, shape_of
from fad.compile.codegen.nests.writer import Index, Number, Writer
from fad.compile.ir.types import BOOL, I64
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation
from fad.ops.ufuncs.elementwise import greater, greater_equal, less, less_equal, logical_and, logical_not

_COMPARISONS = {less: (0, False), less_equal: (1, False), greater: (0, True), greater_equal: (1, True)}
_SHORTEST = 16  # elements up to which a loop is written out, not split


def mask_of(w: Writer, eq: Equation, operands: list[Value], numbers: list[Value]) -> Mask | None:
    """Return where an operation's result of one axis is true, if that is a range.

    `numbers` are the operands as they were before they were broadcast.
    """
    if eq.prim not in _COMPARISONS or len(numbers) != 2:
        return None
    closed, swapped = _COMPARISONS[eq.prim]
    left, right = numbers[::-1] if swapped else numbers  # left < right, or left <= right
    n = shape_of(operands[0])[0]
    if _counts(left) and isinstance(right, Number):
        return Mask(0, w.plus(right.index, closed - left.first))  # type: ignore[union-attr, operator]
    if _counts(right) and isinstance(left, Number):
        return Mask(w.plus(left.index, 1 - closed - right.first), n)  # type: ignore[union-attr, operator]
    return None


def _counts(x: Value) -> bool:
    return isinstance(x, Stored) and x.first is not None and x.step == 1


def combine_masks(w: Writer, prim: Primitive, found: Computed, operands: list[Value]) -> None:
    """Note where booleans are true that are computed from others of which it is known."""
    known = [x for x in operands if isinstance(x, Computed) and (x.mask is not None or x.masks)]
    if len(known) < len(operands):
        return
    if prim is logical_not and known[0].mask is not None:
        mask = known[0].mask
        found.mask = mask._replace(inside=not mask.inside)
    elif prim is logical_and:
        masks = list(dict.fromkeys(m for x in known for m in x.masks or (x.mask,)))
        for axis in dict.fromkeys(m.axis for m in masks):
            mine = [m for m in masks if m.axis == axis]
            both = _both(w, *mine) if len(mine) == 2 else None
            if both is not None:
                masks = [both, *[m for m in masks if m.axis != axis]]
        if len(masks) == 1:
            found.mask = masks[0]
        elif len({m.axis for m in masks}) == len(masks):
            found.masks = tuple(masks)
    if found.mask is not None:
        found.weight = 0


def choose_by_masks(found: Computed, operands: list[Value]) -> None:
    """Note of a choice by a mask what it chooses from."""
    mask, x, y = operands
    if not isinstance(mask, Computed) or not x.t == y.t == found.t:
        return
    if mask.masks:  # true where all of several masks are: a choice in a choice
        parts = [_part_of(mask, m) for m in mask.masks]
        inner: Value = x
        for part in parts[1:]:
            inner = found.remake([part, inner, y], found.shape)  # type: ignore[misc]
        mask, x = parts[0], inner
    elif mask.mask is None:
        return
    otherwise, choice = found.compute, (mask, x, y)
    found.choice = choice
    if found.t == I64 and not getattr(x, "weight", 0) and not getattr(y, "weight", 0):
        found.weight = 0  # where the mask is known it is one of the two
    found.compute = lambda w, index: choose(w, choice, index, otherwise)


def _part_of(mask: Computed, part: Mask) -> Computed:
    """Return one of the masks of which booleans are true where all are."""
    axis, low, high = part.range

    def compute(w: Writer, index: tuple) -> Number:
        inside = w.new(f"icmp ult i64 {w.minus(index[axis], low)}, {w.minus(high, low)}")
        return Number(inside if part.inside else w.new(f"xor i1 {inside}, true"), BOOL)

    found = Computed(mask.shape, BOOL, compute, [], 0)
    found.mask = part
    return found


def _both(w: Writer, a: Mask, b: Mask) -> Mask | None:
    if a == b:
        return a
    if not (a.inside and b.inside):
        return None
    return Mask(w.greatest(a.low, b.low), w.least(a.high, b.high), axis=a.axis)


class Stretch(NamedTuple):
    """A part of an axis, and of which ranges it is known whether it is inside, of those of other axes too."""

    start: Index
    length: Index
    known: dict[tuple, bool]
    range: tuple | None = None  # that splits the axis

    def resolve(self, value: Value) -> Value:
        """Return what a value is in this stretch, as far as masks choose it."""
        while isinstance(value, Computed) and value.choice is not None and value.choice[0].mask.range in self.known:
            mask, x, y = value.choice
            value = x if self.known[mask.mask.range] == mask.mask.inside else y
        return value

    def assume(self, *positions: Index) -> dict[tuple, bool]:
        """Return what is known of the range that splits the axis at some positions in the stretch."""
        return {} if self.range is None else {(*self.range[1:], i): self.known[self.range] for i in positions}

    def is_zero(self, value: Value) -> bool:
        """Return whether a value is zero in all of the stretch, whatever a mask leaves beside it."""
        value = self.resolve(value)
        return isinstance(value, Computed) and value.number is not None and value.number.name == constant(0, value.t)


def decide(value: Value, mask: Mask) -> Value:
    """Return a value without the choices that a mask decides, where it is true."""
    if not isinstance(value, Computed):
        return value
    if value.choice is not None and value.choice[0].mask.range == mask.range:
        return decide(value.choice[1 if value.choice[0].mask.inside == mask.inside else 2], mask)
    if value.remake is None or value.mask is not None:
        return value
    parts = [decide(x, mask) for x in value.aligned]
    same = all(a is b for a, b in zip(parts, value.aligned, strict=True))
    return value if same else value.remake(parts, value.shape)


def whole(n: int) -> Stretch:
    """Return all of an axis."""
    return Stretch(0, n, {})


def stretches(w: Writer, n: int, *values: Value, axis: int = 0, within: dict | None = None) -> list[Stretch]:
    """Return the parts of an axis of n places, split where masks in some values change.

    `within` are the ranges of other axes of which it is known whether one is inside.
    """
    known = within or {}
    found = _ranges_in(values, axis, known)
    if n <= _SHORTEST or not found:
        return [Stretch(0, n, known)]
    _, low, high = found[0]
    start = w.least(w.greatest(low, 0), n)
    end = w.least(w.greatest(high, start), n)
    parts = [(0, start, False), (start, w.minus(end, start), True), (end, w.minus(n, end), False)]
    return [
        Stretch(first, count, {**known, found[0]: inside}, found[0]) for first, count, inside in parts if count != 0
    ]


def _ranges_in(values: tuple, axis: int, known: dict) -> list[tuple]:
    """Return the ranges along an axis by which values are chosen, where these are read at the index of the loop."""
    found: dict[tuple, None] = {}
    seen: set[int] = set()
    waiting = list(values)
    while waiting:
        x = waiting.pop(0)
        if not isinstance(x, Computed) or id(x) in seen:
            continue
        seen.add(id(x))
        if x.choice is not None:
            mask = x.choice[0].mask
            if mask.range in known:
                waiting.append(x.choice[1] if known[mask.range] == mask.inside else x.choice[2])
                continue
            if mask.axis == axis:
                found[mask.range] = None
        waiting += x.aligned
    return list(found)


@contextmanager
def along(w: Writer, stretch: Stretch, chains: int = 1) -> Iterator[Index]:
    """Write a loop over a stretch; give the position along the axis."""
    with w.loop(stretch.length, chains=chains) as j:
        i = w.plus(j, stretch.start)
        before = w.assumed
        w.assumed = {**before, **stretch.assume(i)}
        try:
            yield i
        finally:
            w.assumed = before


def is_chosen(w: Writer, mask: Mask, index: tuple) -> bool | None:
    """Return whether a mask is true at an index; None if that is not known."""
    axis, low, high = mask.range
    known = w.assumed.get((low, high, index[axis]))
    return None if known is None else known == mask.inside


def choose(w: Writer, choice: tuple, index: tuple, otherwise: Callable) -> Number:
    """Return the element of the value that a mask chooses, if it is known which."""
    mask, x, y = choice
    known = is_chosen(w, mask.mask, index)
    return otherwise(w, index) if known is None else (x if known else y).at(w, index)


def still_masked(value: Computed, stored: Stored) -> Computed:
    """Return an array in memory of which a mask chooses elements, so that loops over it are split as before."""
    mask, _, y = value.choice  # type: ignore[misc]
    number = isinstance(y, Computed) and y.number is not None
    return _keep_masked(mask, stored, y if number else stored)


def _keep_masked(mask: Computed, stored: Value, y: Value) -> Any:
    """Return what lies in memory, of which it is known what a mask chooses: elsewhere it is y."""
    if mask.mask is None or not isinstance(stored, Stored):
        return stored
    choice = (mask, stored, y)
    compute = lambda w, index: choose(w, choice, index, stored.at)
    found = Computed(stored.shape, stored.t, compute, [stored], 0, stored.bounds, choice)
    found.choice = choice
    found.remake = lambda parts, shape: _keep_masked(*parts)
    return found
