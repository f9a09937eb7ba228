"""Joins, scattered slices and functional updates: whole arrays copied or added into slices of a result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fad.compile.codegen.numpy_calls import numpy_call
from fad.compile.codegen.program import Program
from fad.compile.ir.lowered_ops import COMPLEX
from fad.compile.ir.slice_writes import left_out, outside, with_ellipsis
from fad.compile.legalize.layouts.conv_layout import MOST_AXES
from fad.compile.schedule.fusion import Step
from fad.ops.arrangement.structural import concatenate_p
from fad.ops.places.indexing import scatter_p


def add_slices(program: Program, step: Step) -> Callable | None:
    """Copy or add arrays into slices of a result: joins, scattered slices, functional updates."""
    eq = step.equations[0]
    o = eq.outs[0]
    target = program.memory.at[o]
    writes = []  # (array, value it belongs to or None, place in the target, add)
    if eq.prim is concatenate_p:
        start, axis = 0, eq.params["axis"]
        for i in eq.ins:
            stop = start + program.memory.at[i].shape[axis]
            writes.append((program.memory.at[i], i, (slice(None),) * axis + (slice(start, stop),), False))
            start = stop
    elif eq.prim is COMPLEX:
        for i, part in zip(eq.ins, (target.real, target.imag), strict=True):
            writes.append((program.memory.at[i], i, part, False))
    elif eq.prim is scatter_p:
        indices = eq.params["indices"]
        rest = left_out(indices, target.shape)
        apart = rest is not None
        rest = outside(indices[0], target.shape) if rest is None else rest
        zero = np.zeros((), target.dtype)
        program.table.kept.append(zero)
        writes += [(zero, None, index, False) for index in rest]
        adds = [n > 0 and not apart for n in range(len(indices))]
        writes += [(program.memory.at[i], i, index, add) for i, index, add in zip(eq.ins, indices, adds, strict=True)]
    else:
        if not program.memory.in_place(eq.ins[0], o):
            writes.append((program.memory.at[eq.ins[0]], eq.ins[0], (), False))
        writes.append((program.memory.at[eq.ins[1]], eq.ins[1], eq.params["template"], eq.prim.adds))
    places = [index if type(index) is np.ndarray else target[with_ellipsis(index)] for _, _, index, _ in writes]
    layouts = [
        program.table.layout(place.shape, [source, place]) for (source, *_), place in zip(writes, places, strict=True)
    ]
    if any(len(extents) > MOST_AXES for extents, _ in layouts):
        return numpy_call(program, eq)
    for (source, i, index, add), place, (extents, strides) in zip(writes, places, layouts, strict=True):
        if place.size and not program.memory.is_there(i, o, index):
            program.table.write(source, i, place, o, add, extents, strides)
    return None
