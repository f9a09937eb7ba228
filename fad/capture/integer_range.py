"""Whether Python's integers in a captured loop stay within 64 bits: they have no end, and those of a program do.

The bounds of the state are followed through one step, and from that through all of them.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.control_flow.intervals import interval
from fad.control_flow.loop_layout import Inputs, Operands
from fad.control_flow.subgraph import example, to_number_p
from fad.core.graph import NUMBER, Graph
from fad.core.primitive import Primitive
from fad.ops.conversion import astype_p
from fad.ops.elementwise import maximum, minimum
from fad.staging.record import to_scalar_p

Interval = tuple  # (least, most), None where there is no bound
UNKNOWN = (None, None)
_COPIES = frozenset({to_number_p, to_scalar_p, astype_p})
_END = 1 << 62
_MANY = 1 << 40  # more steps than any loop takes
_FAR = 1 << 50


def bound_result(prim: Primitive, xs: list[Interval]) -> Interval:
    """Return the bounds of what an operation on integers gives, from those of its operands."""
    symbol = prim.symbol
    if prim in _COPIES or symbol == "pos":
        return xs[0]
    if symbol == "neg":
        least, most = xs[0]
        return (None if most is None else -most, None if least is None else -least)
    if len(xs) != 2:
        return UNKNOWN
    (a, b), (c, d) = xs
    if prim is minimum:
        tops = [x for x in (b, d) if x is not None]
        return (None if a is None or c is None else min(a, c), min(tops) if tops else None)
    if prim is maximum:
        ends = [x for x in (a, c) if x is not None]
        return (max(ends) if ends else None, None if b is None or d is None else max(b, d))
    if symbol == "+":
        return (None if a is None or c is None else a + c, None if b is None or d is None else b + d)
    if symbol == "-":
        return (None if a is None or d is None else a - d, None if b is None or c is None else b - c)
    if symbol == "%" and c is not None and c > 0 and d is not None:
        return (0, d - 1)
    if None in (a, b, c, d):
        return UNKNOWN
    if symbol == "**" and c >= 0 and a >= 0 and d < 64:
        return (a**c, b**d)
    if symbol == "<<" and c >= 0 and a >= 0 and d < 64:
        return (a << c, b << d)
    if symbol == "*":
        corners = [x * y for x, y in itertools.product((a, b), (c, d))]
        return (min(corners), max(corners))
    if symbol == "//" and c > 0:
        corners = [x // y for x, y in itertools.product((a, b), (c, d))]
        return (min(corners), max(corners))
    return UNKNOWN


def integers_fit(params: dict, first: list[Interval], most: int | None) -> bool:
    """Return whether Python's integers in a loop stay within 64 bits, given those that its state begins with."""
    return _after(params, first, [], most) is not None


def state_interval(x: Any) -> Interval:
    """Return the bounds of what a state begins with."""
    y = example(x)
    known = np.ndim(x) == 0 and not is_on_device(y) and np.asarray(y).dtype.kind in "iu"
    return interval(x) if known else UNKNOWN


def _after(params: dict, first: list[Interval], consts: list[Interval], most: int | None) -> list[Interval] | None:
    """Return the bounds of a loop's state behind it; None if Python's integers may leave 64 bits."""
    body, carries = params["body"], params["carries"]
    inputs = Inputs.split(body.inputs, params)
    whole = [k for k, i in enumerate(inputs.carry) if _is_whole(body, i)]
    steps = most if most is not None else params["length"] or _MANY
    counter = [(0, steps - 1) for _ in inputs.number]
    given = Inputs(consts or [UNKNOWN] * len(inputs.consts), counter, [], [UNKNOWN] * len(inputs.xs))

    def step(state: list[Interval]) -> list[Interval] | None:
        return bounds_through(body, given._replace(carry=state).join())

    def wide(by: int) -> list[Interval]:
        return [(least - by, top + by) if k in whole else UNKNOWN for k, (least, top) in enumerate(begin)]

    begin: list[Any] = [_fill_bounds(first[k]) if k in whole else UNKNOWN for k in range(carries)]
    near = step(wide(0))
    if near is None:
        return None
    if all(_within(near[k], begin[k]) for k in whole):
        return [begin[k] if k in whole else near[k] for k in range(carries)]
    joined = [_union(begin[k], near[k]) if k in whole else UNKNOWN for k in range(carries)]
    again = None if any(None in joined[k] for k in whole) else step(joined)
    if again is not None and all(_within(again[k], joined[k]) for k in whole):
        return [joined[k] if k in whole else near[k] for k in range(carries)]
    far = step(wide(_FAR))
    if far is None:
        return None
    found = list(near)
    for k in whole:
        least, top = begin[k]
        (a, b), (c, d) = near[k], far[k]
        if None in (a, b, c, d) or (a - least, b - top) != (c - least + _FAR, d - top - _FAR):
            return None  # it grows by more than the same number in each step
        found[k] = (least + min(0, a - least) * steps, top + max(0, b - top) * steps)
        if not -_END < found[k][0] <= found[k][1] < _END:
            return None
    return found


def _is_whole(graph: Graph, number: int) -> bool:
    t = graph.types[number]
    return t.kind == NUMBER and t.dtype.kind == "i"


def _fill_bounds(x: Interval) -> tuple[int, int]:
    """Return bounds for an integer of which none are known: it is an argument, and those have fewer bits."""
    least, most = x
    return (-(1 << 40) if least is None else least, 1 << 40 if most is None else most)


def _within(x: Interval, y: Interval) -> bool:
    return None not in x and y[0] <= x[0] and x[1] <= y[1]


def _union(x: Interval, y: Interval) -> Interval:
    least = None if x[0] is None or y[0] is None else min(x[0], y[0])
    return (least, None if x[1] is None or y[1] is None else max(x[1], y[1]))


def bounds_through(graph: Graph, ins: list[Interval]) -> list[Interval] | None:
    """Return the bounds of a graph's outputs from those of its inputs; None if a Python integer may leave 64 bits."""
    known: dict[int, Interval] = dict(zip(graph.inputs, ins, strict=True))
    for number, c in graph.constants.items():
        if np.ndim(c) == 0 and not is_on_device(c) and np.asarray(c).dtype.kind in "biu":
            known[number] = (int(c), int(c))
    for eq in graph.equations:
        given = [known.get(i, UNKNOWN) for i in eq.ins]
        found = _through(eq, given)
        if found is None:
            return None
        for o, bounds in zip(eq.outs, found, strict=True):
            if _is_whole(graph, o) and any(x is not None and abs(x) >= _END for x in bounds):
                return None
            known[o] = bounds
    return [known.get(o, UNKNOWN) for o in graph.outputs]


def _through(eq: Any, given: list[Interval]) -> list[Interval] | None:
    if eq.prim.archetype == "branch":
        ways = [bounds_through(graph, given[1:]) for graph in eq.params["branches"]]
        if any(way is None for way in ways):
            return None
        return [functools.reduce(_union, column) for column in zip(*ways, strict=True)]  # type: ignore[arg-type]
    if eq.prim.archetype == "loop" and "cut" not in eq.params:  # a loop, and not the gradient of one
        operands = Operands.split(given, eq.params)
        state = _after(eq.params, operands.carry, operands.consts, eq.params["length"])
        return None if state is None else [*state, *[UNKNOWN] * (len(eq.outs) - len(state))]
    return [bound_result(eq.prim, given)] if len(eq.outs) == 1 and given else [UNKNOWN] * len(eq.outs)
