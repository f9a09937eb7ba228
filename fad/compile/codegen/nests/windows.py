"""Windows: slices of a fixed length that begin anywhere, ``x[i : i + 3, j : j + 3]``, are views of an array.

They are recorded as index arrays that count upwards, each along an axis of its own. Nothing is looked up: where such
an array begins and ends is checked, and what it takes lies at even steps.
"""

from __future__ import annotations

import math

import numpy as np

from fad.compile.codegen.nests.body import Body
from fad.compile.codegen.nests.ramps import find_ramp
from fad.compile.codegen.nests.values import Source, Value, bounds_of, element, shape_of
from fad.compile.ir.types import I64
from fad.core.programs.graph import Equation
from fad.ops.layout.index_layout import index_layout


def window_of(body: Body, eq: Equation, first: int, shape: tuple) -> tuple[tuple, list[Source]] | None:
    """Return the shape of what an index takes of an array of a shape, and where each element comes from.

    None if its arrays, from operand `first` on, do not count, or if there are none.
    """
    given, template = [body.values[i] for i in eq.ins[first:]], eq.params["template"]
    lead = np.broadcast_shapes(*map(shape_of, given))
    if not lead or 0 in lead or any(body.type(i) != I64 for i in eq.ins[first:]):
        return None
    if any(math.prod(shape_of(x)) > 1 and find_ramp(x) is None for x in given):
        return None
    arrays = [np.empty(shape_of(x), np.intp) for x in given]
    _, position, in_front = index_layout(template, arrays, len(shape))
    rest = len(shape) - sum(part is not Ellipsis and part is not None for part in template)
    dots = next((k for k, part in enumerate(template) if part is Ellipsis), len(template))
    parts = (*template[:dots], *[slice(None)] * rest, *template[dots + 1 :])
    result: list[int] = [*lead] if in_front else []
    sources: list[Source] = []
    values = iter(given)
    for part in parts:
        if type(part) in (str, int) and len(result) == position:
            result += lead
        size = shape[len(sources)] if part is not None else 0
        if part is None:
            result.append(1)
        elif type(part) is slice:
            start, stop, step = part.indices(size)
            sources.append(("axis", len(result), start, step))
            result.append(len(range(start, stop, step)))
        elif type(part) is int:
            sources.append(("at", part % size))
        else:
            sources.append(_source(body, next(values), position + len(lead), size))
    return tuple(result), sources


def _source(body: Body, x: Value, end: int, size: int) -> Source:
    """Return where the elements along an axis come from; the axes of the index arrays end before axis `end`."""
    w, shape, (low, high) = body.w, shape_of(x), bounds_of(x)
    n = math.prod(shape)
    if n == 1:
        return "at", w.position(element(w, x, (0,) * len(shape)), size)
    ramp = find_ramp(x)
    assert ramp is not None
    if low is None or high is None or low < 0 or high >= size:
        for place in (0, n - 1):
            w.require(w.new(f"icmp ult i64 {ramp.at(w, place)}, {size}"))
    axis = next(d for d, m in enumerate(shape) if m != 1)
    return "axis", end - len(shape) + axis, ramp.start, ramp.step
