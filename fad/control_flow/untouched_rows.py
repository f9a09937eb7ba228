"""Reads of what no step has written yet: they are reads of the array as it was before the loop.

``for i in range(n): B[i] += A[i + 1 :, i] @ B[i + 1 :]`` writes one row of B in each step, and reads rows that are
written later. Read from the array before the loop they are no part of the state: nothing is kept of them for the
backward pass, and their cotangents are added up beside the state's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.control_flow.counters import Counters, Place
from fad.core.graph import Equation, Graph

_LATER = {"less": (1, False), "less_equal": (0, False), "greater": (1, True), "greater_equal": (0, True)}


def read_from_the_start(captured: list, leaves: list, params: dict) -> tuple[list, dict]:
    """Let a body read from arrays before the loop what no earlier step has written; return what it captures then."""
    if not params["index"] or params["stop"] != "length":
        return captured, params
    body, c = params["body"], params["consts"]
    counters = Counters(body, body.inputs[c])
    work = _Rewrite(body, counters, dict(zip(body.inputs, captured, strict=False)), params)
    start = c + 1
    found = []
    for k, leaf in enumerate(leaves):
        i = body.inputs[start + k]
        before = work.copy_of(i)
        if before is not None:
            found.append((before, leaf))
    if not found:
        return captured, params
    inputs = [*body.inputs[:c], *[i for i, _ in found], *body.inputs[c:]]
    graph = work.graph().replace(inputs=inputs)
    return [*captured, *[x for _, x in found]], {**params, "body": graph, "consts": c + len(found)}


class _Rewrite:
    def __init__(self, body: Graph, counters: Counters, given: dict[int, Any], params: dict):
        self.body, self.counters, self.given, self.params = body, counters, given, params
        self.types, self.equations = list(body.types), list(body.equations)
        self.made = {o: eq for eq in body.equations for o in eq.outs}

    def graph(self) -> Graph:
        return self.body.replace(types=self.types, equations=self.equations)

    def copy_of(self, start: int) -> int | None:
        """Let the steps read a new input where they read of array `start` what is written later; return that input."""
        versions, place = {start}, None
        for eq in self.equations:
            touched = [i for i in eq.ins if i in versions]
            if not touched or eq.prim.name in ("getitem", "where_select", "permute", "reshape_to"):
                continue
            found = self.counters.place(eq, 2) if eq.prim.name in ("index_set", "index_add") else None
            if found is None or eq.ins[0] not in versions or place not in (None, found):
                return None  # it may be written elsewhere
            place = found
            versions.update(eq.outs)
        if place is None or self._end(start) not in versions:
            return None
        new, changed = len(self.types), False
        for k, eq in enumerate(self.equations):
            if eq.prim.name != "where_select" or len(eq.ins) != 3:
                continue
            mask, x, other = eq.ins
            if x in versions and self.types[x].shape == self.types[eq.outs[0]].shape and self._is_later(mask, x, place):
                self.equations[k] = Equation(eq.prim, (mask, new, other), eq.params, eq.outs, eq.place)
                changed = True
        if not changed:
            return None
        self.types.append(self.types[start])
        return new

    def _end(self, start: int) -> int:
        first = self.params["consts"] + 1
        return self.body.outputs[self.body.inputs.index(start) - first]

    def _is_later(self, mask: int, x: int, place: Place) -> bool:
        """Return whether a mask chooses places of an array alone that steps to come write."""
        axis = place.axis - len(self.types[x].shape)  # counted from behind
        while True:
            eq = self.made.get(mask)
            if eq is None:
                return False
            if eq.prim.name == "logical_and":
                return any(self._is_later(i, x, place) for i in eq.ins)
            if eq.prim.name != "reshape_to":
                break
            (i,), shape = eq.ins, self.types[eq.outs[0]].shape
            if len(self.types[i].shape) != 1 or -axis > len(shape) or shape[axis] != self.types[i].shape[0]:
                return False
            axis, mask = -1, i
        if axis != -1 or len(self.types[mask].shape) != 1 or eq.prim.name not in _LATER:
            return False
        beyond, swapped = _LATER[eq.prim.name]
        counter, places = eq.ins[::-1] if swapped else eq.ins  # counter < places, or counter <= places
        ascending = (place.step == 1) != self.params["reverse"]
        if not ascending:
            counter, places = places, counter
        known, first = self.counters.known.get(counter), self._first_of(places)
        if known is None or first is None or known[1] != place.step:
            return False
        ahead = known[0] - place.first if ascending else place.first - known[0]
        return ahead + beyond - (first if ascending else -first) >= 1

    def _first_of(self, i: int) -> int | None:
        """Return where an array begins that counts upwards by one; None if it is another one."""
        x = self.given.get(i)
        if type(x) is not np.ndarray or x.ndim != 1 or not x.size or x.dtype.kind != "i":
            return None
        return int(x[0]) if np.array_equal(x, np.arange(x[0], x[0] + x.size)) else None
