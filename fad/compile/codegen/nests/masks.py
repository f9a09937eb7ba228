"""Loops over one axis, split where a mask changes: ``where(i < k, x, y)`` is x in one stretch and y in the other.

A slice whose length depends on a counter is an array of full size of which a mask says what counts. A loop over it
needs no mask where it is split at the ends of the slice, and no steps where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from fad.compile.codegen.llvm.builder import constant
from fad.compile.codegen.nests.values import Computed, Mask, Stored, Value, shape_of
from fad.compile.codegen.nests.writer import Index, Number, Writer
from fad.core.graph import Equation

_COMPARISONS = {"less": (0, False), "less_equal": (1, False), "greater": (0, True), "greater_equal": (1, True)}
_SHORTEST = 16  # elements up to which a loop is written out, not split


def mask_of(w: Writer, eq: Equation, operands: list[Value], numbers: list[Value]) -> Mask | None:
    """Return where an operation's result of one axis is true, if that is a range.

    `numbers` are the operands as they were before they were broadcast.
    """
    name = eq.prim.name
    known = [x.mask for x in operands if isinstance(x, Computed) and x.mask is not None]
    if name == "logical_not" and known:
        return known[0]._replace(inside=not known[0].inside)
    if name == "logical_and" and len(known) == 2:
        return _both(w, *known)
    if name not in _COMPARISONS or len(numbers) != 2:
        return None
    closed, swapped = _COMPARISONS[name]
    left, right = numbers[::-1] if swapped else numbers  # left < right, or left <= right
    n = shape_of(operands[0])[0]
    if _counts(left) and isinstance(right, Number):
        return Mask(0, w.plus(right.index, closed - left.first))  # type: ignore[union-attr, operator]
    if _counts(right) and isinstance(left, Number):
        return Mask(w.plus(left.index, 1 - closed - right.first), n)  # type: ignore[union-attr, operator]
    return None


def _counts(x: Value) -> bool:
    return isinstance(x, Stored) and x.first is not None and x.step == 1


def _both(w: Writer, a: Mask, b: Mask) -> Mask | None:
    if a == b:
        return a
    if not (a.inside and b.inside):
        return None
    return Mask(w.greatest(a.low, b.low), w.least(a.high, b.high))


class Stretch(NamedTuple):
    """A part of an axis in which it is known what some masks are."""

    start: Index
    length: Index
    masks: dict[Computed, bool]

    def resolve(self, value: Value) -> Value:
        """Return what a value is in this stretch, as far as masks choose it."""
        while isinstance(value, Computed) and value.choice is not None and value.choice[0] in self.masks:
            mask, x, y = value.choice
            value = x if self.masks[mask] else y
        return value

    def is_zero(self, value: Value) -> bool:
        """Return whether a value is zero in all of the stretch, whatever a mask leaves beside it."""
        value = self.resolve(value)
        return isinstance(value, Computed) and value.number is not None and value.number.name == constant(0, value.t)


def stretches(w: Writer, n: int, *values: Value) -> list[Stretch]:
    """Return the parts of an axis of n places, split where masks in some values change."""
    masks = _masks_in(values)
    if n <= _SHORTEST or not masks:
        return [Stretch(0, n, {})]
    low, high, _ = masks[0].mask  # type: ignore[misc]
    mine = [m for m in masks if m.mask[:2] == (low, high)]  # type: ignore[index]
    start = w.least(w.greatest(low, 0), n)
    end = w.least(w.greatest(high, start), n)
    parts = [(0, start, False), (start, w.minus(end, start), True), (end, w.minus(n, end), False)]
    return [
        Stretch(first, count, {m: m.mask.inside == inside for m in mine})  # type: ignore[union-attr]
        for first, count, inside in parts
        if count != 0
    ]


def _masks_in(values: tuple) -> list[Computed]:
    """Return the masks that choose in values, where these are read at the index of the loop."""
    found: dict[Computed, None] = {}
    seen: set[int] = set()
    waiting = list(values)
    while waiting:
        x = waiting.pop(0)
        if not isinstance(x, Computed) or id(x) in seen:
            continue
        seen.add(id(x))
        if x.choice is not None and x.choice[0].mask is not None:
            found[x.choice[0]] = None
        waiting += x.aligned
    return list(found)


@contextmanager
def along(w: Writer, stretch: Stretch, chains: int = 1) -> Iterator[Index]:
    """Write a loop over a stretch; give the position along the axis."""
    with w.loop(stretch.length, chains=chains) as j:
        i = w.plus(j, stretch.start)
        before = w.assumed
        w.assumed = {**before, **{(m, (i,)): known for m, known in stretch.masks.items()}}
        try:
            yield i
        finally:
            w.assumed = before


def choose(w: Writer, choice: tuple, index: tuple, otherwise: Callable) -> Number:
    """Return the element of the value that a mask chooses, if it is known which."""
    mask, x, y = choice
    known = w.assumed.get((mask, index))
    return otherwise(w, index) if known is None else (x if known else y).at(w, index)


def still_masked(value: Computed, stored: Stored) -> Computed:
    """Return an array in memory of which a mask chooses elements, so that loops over it are split as before."""
    mask, _, y = value.choice  # type: ignore[misc]
    number = isinstance(y, Computed) and y.number is not None
    choice = (mask, stored, y if number else stored)
    found = Computed(
        value.shape, value.t, lambda w, index: choose(w, choice, index, stored.at), [stored], 0, stored.bounds,
        (mask, *choice[1:]),
    )  # fmt: skip
    found.choice = choice
    return found
