"""Between which bounds integers of a body lie: the counters of loops, and what is computed from them.

Reverse mode of an inner loop needs room for all its steps, whose number may depend on the counter of an outer one.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.control_flow.subgraph import BodyTrace
from fad.core.tracer import Tracer

Interval = tuple  # (least, most), None where there is no bound
UNKNOWN = (None, None)
_COPIES = frozenset({"to_number", "to_scalar", "convert", "copy", "positive"})
_known: ContextVar[tuple] = ContextVar("counters", default=())


@contextlib.contextmanager
def counting(x: Any, least: int | None, most: int | None) -> Iterator[None]:
    """Say for the length of a block between which bounds a counter lies."""
    token = _known.set((*_known.get(), (x, (least, most))))
    try:
        yield
    finally:
        _known.reset(token)


def interval_of(x: Any) -> Interval:
    """Return the least and the most that an integer can be."""
    if type(x) is not Tracer:
        return (int(x), int(x)) if np.ndim(x) == 0 else UNKNOWN
    for counter, bounds in _known.get():
        if counter is x or (counter.trace is x.trace and counter.info == x.info):
            return bounds
    return _Reading(x.trace).of(x.info) if isinstance(x.trace, BodyTrace) else UNKNOWN


class _Reading:
    """A look through the equations of a body that is being recorded."""

    def __init__(self, trace: Any):
        self.trace = trace
        self.made = {o: eq for eq in trace.equations for o in eq.outs}
        self.outer = {number: x for x, number in trace.captured}
        self.counters = {c.info: bounds for c, bounds in _known.get() if c.trace is trace}
        self.seen: dict[int, Interval] = {}

    def of(self, number: int) -> Interval:
        if number not in self.seen:
            self.seen[number] = UNKNOWN
            self.seen[number] = self._look(number)
        return self.seen[number]

    def _look(self, number: int) -> Interval:
        if number in self.counters:
            return self.counters[number]
        if number in self.trace.constants:
            c = self.trace.constants[number]
            return interval_of(c) if np.ndim(c) == 0 and np.asarray(c).dtype.kind in "biu" else UNKNOWN
        if number in self.outer:
            x = self.outer[number]
            return interval_of(x) if np.ndim(x) == 0 else UNKNOWN
        eq = self.made.get(number)
        if eq is None:
            return UNKNOWN
        return computed(eq.prim.name.removeprefix("python_"), [self.of(i) for i in eq.ins])


def computed(name: str, xs: list[Interval]) -> Interval:
    """Return the bounds of what an operation on integers gives, from those of its operands."""
    if name in _COPIES:
        return xs[0]
    if name == "negative":
        least, most = xs[0]
        return (None if most is None else -most, None if least is None else -least)
    if len(xs) != 2:
        return UNKNOWN
    (a, b), (c, d) = xs
    if name == "minimum":
        tops = [x for x in (b, d) if x is not None]
        return (None if a is None or c is None else min(a, c), min(tops) if tops else None)
    if name == "maximum":
        ends = [x for x in (a, c) if x is not None]
        return (max(ends) if ends else None, None if b is None or d is None else max(b, d))
    if name == "add":
        return (None if a is None or c is None else a + c, None if b is None or d is None else b + d)
    if name == "subtract":
        return (None if a is None or d is None else a - d, None if b is None or c is None else b - c)
    if name == "remainder" and c is not None and c > 0 and d is not None:
        return (0, d - 1)
    if None in (a, b, c, d):
        return UNKNOWN
    if name == "multiply":
        corners = [x * y for x, y in itertools.product((a, b), (c, d))]
        return (min(corners), max(corners))
    if name == "floor_divide" and c > 0:
        corners = [x // y for x, y in itertools.product((a, b), (c, d))]
        return (min(corners), max(corners))
    return UNKNOWN
