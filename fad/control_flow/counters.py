"""What a loop's body does with the number of its step: the integers that follow from it, and where they point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fad.control_flow.subgraph import to_number_p
from fad.core.graph import Equation, Graph
from fad.ops.index_layout import ARRAY


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


class Counters:
    """The integers of a body that follow from the number of the step: ``first + step * t``, the step 1 or -1."""

    def __init__(self, body: Graph, index: int):
        self.body = body
        self.known: dict[int, tuple[int, int]] = {index: (0, 1)} if index >= 0 else {}
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
        return (int(c), 0) if c is not None and not np.ndim(c) and np.asarray(c).dtype.kind == "i" else None

    def place(self, eq: Equation, first: int) -> Place | None:
        """Return where an index with a counter in it points; None if there is none, or more than one."""
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
        return found
