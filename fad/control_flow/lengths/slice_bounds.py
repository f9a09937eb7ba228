"""Slices whose bounds a loop's body computes: where they start and how long they are, by NumPy's rules for bounds.

A bound may be negative or lie beyond the end. What `intervals` knows of it decides which of these cases can occur, so
that ``x[:k]`` within a loop over ``range(n)`` costs no operation at all.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from fad.control_flow.bodies.axis_positions import places
from fad.control_flow.bodies.intervals import form_of
from fad.control_flow.bodies.subgraph import BodyTrace, Unrecordable
from fad.core.tracing.ended_runs import end_run
from fad.core.tracing.tracer import Tracer


class Axis:
    """An axis of which a part is used: `length` elements from `start` on, of the `size` that it has in memory."""

    __slots__ = ("size", "start", "length")

    def __init__(self, size: int, start: Any, length: Any):
        self.size = size
        self.start = start
        self.length = length

    def mask(self) -> Any:
        """Return for each place on the axis whether it is one of the part."""
        stop = self.start + self.length
        inside: Any = True
        if fixed_integer(self.start) != 0:
            inside = self.start <= places(self.size)
        if fixed_integer(stop) != self.size:
            before = places(self.size) < stop
            inside = before if inside is True else np.logical_and(inside, before)
        return np.ones(self.size, bool) if inside is True else inside

    @property
    def may_be_empty(self) -> bool:
        least = form_of(self.length).least
        return least is None or least < 1


def fixed_integer(x: Any) -> int | None:
    """Return the value of an integer that is loop-invariant, None if it may differ."""
    return form_of(x).fixed


def same(x: Any, y: Any) -> bool:
    """Return whether two integers are equal in every step."""
    return (form_of(x) - form_of(y)).fixed == 0


def at_least(x: Any, low: Any) -> Any:
    """Return the maximum of two integers: one of them, where it is known which."""
    over = form_of(x) - form_of(low)
    if over.least is not None and over.least >= 0:
        return x
    return low if over.most is not None and over.most <= 0 else np.maximum(x, low)


def at_most(x: Any, high: Any) -> Any:
    """Return the minimum of two integers: one of them, where it is known which."""
    over = form_of(x) - form_of(high)
    if over.most is not None and over.most <= 0:
        return x
    return high if over.least is not None and over.least >= 0 else np.minimum(x, high)


def counted_from_the_end(x: Any, n: Any) -> Any:
    """Return an index or bound of an axis of n elements with those below zero counted from the end."""
    form = form_of(x)
    if form.least is not None and form.least >= 0:
        return x
    return x + n if form.most is not None and form.most < 0 else np.where(x < 0, x + n, x)


def bounds(part: slice, n: Any) -> tuple[Any, Any, int]:
    """Return (start, length, step) of a slice of n elements, where n and the bounds may be traced."""
    step = 1 if part.step is None else operator.index(part.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, n) if step > 0 else (-1, n - 1)

    def bound(x: Any, default: Any) -> Any:
        if x is None:
            return default
        x = _integer(x)
        return at_least(at_most(counted_from_the_end(x, n), high), low)

    start, stop = bound(part.start, low if step > 0 else high), bound(part.stop, high if step > 0 else low)
    between = at_least(stop - start if step > 0 else start - stop, 0)
    return start, between if abs(step) == 1 else (between + (abs(step) - 1)) // abs(step), step


def _integer(x: Any) -> Any:
    """Return a bound as an integer of 64 bits; one that is traced must be a number of an integer dtype."""
    if type(x) is Tracer and not x.shape and x.dtype.kind in "iu":
        if x.dtype == np.uint64:
            x = np.minimum(x, np.uint64(np.iinfo(np.int64).max))
        return x if x.dtype == np.int64 else x.astype(np.int64)
    return operator.index(x)


def is_index(part: Any) -> bool:
    """Return whether a part of an index is one integer, traced or not."""
    if type(part) is Tracer:
        return not part.shape and part.dtype.kind in "iu"
    return type(part) is int or isinstance(part, np.integer)


def by_axis(index: Any, ndim: int) -> list:
    """Return the parts of an index with the Ellipsis, and what is left out at the end, written out as slices."""
    parts = list(index) if type(index) is tuple else [index]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    rest = [slice(None)] * (ndim - used)
    at = next((k for k, part in enumerate(parts) if part is Ellipsis), None)
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    return [*parts, *rest] if at is None else [*parts[:at], *rest, *parts[at + 1 :]]


def refuse(values: Any, why: str) -> NoReturn:
    """Give up the recording of the body that computes some of the values: its loop runs step by step."""
    traces = [x.owner for x in values if type(x) is Tracer and isinstance(x.owner, BodyTrace)]
    if not traces:
        raise TypeError(why)
    trace = max(traces, key=lambda trace: trace.birth)
    end_run(trace, Unrecordable(trace, why))
