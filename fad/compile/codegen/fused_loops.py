"""Fused loops: a group of elementwise operations, and the sums of what it computes, as one kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fad.compile.codegen.numpy_calls import one_by_one
from fad.compile.codegen.program import Program
from fad.compile.ir.kernel import Node
from fad.compile.ir.lowered_ops import REDUCTIONS
from fad.compile.ir.types import I64, LLVM_TYPE
from fad.compile.legalize.layouts.conv_layout import MOST_AXES
from fad.compile.schedule.fusion import Step
from fad.compile.schedule.split_reductions import in_stages
from fad.compile.schedule.steps import node_facts
from fad.ops.reductions.reduction import sum_p

_SHORT_ROW, _LONG_ROW = 16, 64  # elements of a row that is slow to begin, and of one that is not


def add_loop(program: Program, step: Step) -> Callable | None:
    """Add the kernel of a group of elementwise operations."""
    nodes, types, operands, numbers = _nodes(program, step.equations, step.templates)
    outs = sorted(step.members)
    if not outs:
        return None
    arrays = [program.memory.at[i] for i in operands] + [program.memory.at[o] for o in outs]
    extents, strides = program.table.layout(step.shape, arrays)
    if len(extents) > MOST_AXES:
        return one_by_one(program, step)
    operands, extents, strides = _lengthen_rows(program, operands, extents, strides)
    program.table.add_loop(nodes, types, operands, outs, [numbers[o] for o in outs], extents, strides)
    return None


def _lengthen_rows(program: Program, operands: list, extents: tuple, strides: tuple) -> tuple:
    """Make one row of several short ones, if only what is the same in all rows does not run on from one to the next.

    Such an operand, of the few numbers of a row, is written out for as many rows as become one.
    """
    if len(extents) < 2 or not 1 < extents[-1] < _SHORT_ROW:
        return operands, extents, strides
    *lead, rows, n = extents
    together = max(r for r in range(1, min(rows, _LONG_ROW // n) + 1) if rows % r == 0)
    same = [k for k, s in enumerate(strides) if s[-2] == 0 and s[-1]]
    runs_on = all(s[-2] == n * s[-1] for k, s in enumerate(strides) if k not in same)
    if not same or not runs_on or same[-1] >= len(operands) or together * n < _SHORT_ROW or rows < 4 * together:
        return operands, extents, strides
    operands = list(operands)
    longer = [(*s[:-2], s[-2] * together, s[-1]) for s in strides]
    for k in same:
        shape = (*[m if s else 1 for m, s in zip(lead, strides[k], strict=False)], together, n)
        row = np.lib.stride_tricks.as_strided(program.memory.at[operands[k]], shape, strides[k], writeable=False)
        operands[k] = program.table.copy_view(row, operands[k])
        steps = program.memory.at[operands[k]].strides
        longer[k] = (*[s if m > 1 else 0 for m, s in zip(shape[:-2], steps, strict=False)], 0, steps[-1])
    return operands, (*lead, rows // together, together * n), tuple(longer)


def add_sum(program: Program, step: Step) -> Callable | None:
    """Add the kernel of a reduction, with the elementwise operations that it is fused with."""
    inside = len(step.templates)
    sums = step.equations[inside:]
    eq = sums[0]
    axis = eq.params["axis"]
    outs = [s.outs[0] for s in sums]
    shape = program.graph.types[eq.ins[0]].shape
    if inside:
        nodes, types, operands, numbers = _nodes(program, step.equations[:inside], step.templates)
    else:
        nodes, types, operands, numbers = (), (), [eq.ins[0]], {eq.ins[0]: 0}
    stored = sorted(step.members.difference(outs))
    values = [numbers[o] for o in stored]
    for s in sums:
        values.append(numbers[s.ins[0]])
        if program.graph.types[s.ins[0]].dtype != program.graph.types[s.outs[0]].dtype:  # booleans are counted
            nodes = (*nodes, Node("{0}", (values[-1],), I64, False))
            types = (*types, I64)
            values[-1] = len(operands) + len(nodes) - 1
    start, stop = axis[0], axis[-1] + 1
    if axis == tuple(range(start, stop)):
        flat = [1 if d in axis else n for d, n in enumerate(shape)]
        arrays = [program.memory.at[i] for i in (*operands, *stored)]
        arrays += [np.broadcast_to(program.memory.at[o].reshape(flat), shape) for o in outs]
        extents, strides = program.table.layout(shape, arrays, kept=(start, stop))
        summed = [k for k, (s, n) in enumerate(zip(strides[-1], extents, strict=True)) if s == 0]
        inner = stop == len(shape)
        if inner:
            summed = [k for k in summed if k == len(extents) - 1 or extents[k] > 1]
        else:
            summed = [k for k in summed if k < len(extents) - 1 or extents[k] > 1]
        if len(extents) <= MOST_AXES and summed:
            combines = "" if eq.prim is sum_p else f" {REDUCTIONS[eq.prim].name}"
            how = ("inner" if inner else f"axis{summed[-1]}") + combines
            targets, steps, rest = in_stages(program.memory, outs, extents, strides, summed)
            everything = [*stored, *targets]
            program.table.add_loop(nodes, types, operands, everything, values, extents, steps, how, len(stored))
            for part, o, lengths, moves, k in rest:
                how = ("inner" if inner else f"axis{k}") + combines
                program.table.add_loop((), (), [part], [o], [0], lengths, moves, how)
            return None
    return one_by_one(program, step)


def _nodes(program: Program, equations: list, templates: list) -> tuple:
    """Return the nodes of a fused group, its operands in order, and the number of each value."""
    graph = program.graph
    made = {eq.outs[0] for eq in equations}
    operands: list[int] = []
    seen: dict[int, int] = {}
    for eq, text in zip(equations, templates, strict=True):
        for k in node_facts(graph, eq, text)[1]:
            i = eq.ins[k]
            if i not in made and i not in seen:
                seen[i] = len(operands)
                operands.append(i)
    nodes, types = [], []
    for n, (eq, text) in enumerate(zip(equations, templates, strict=True)):
        work, read, selects = node_facts(graph, eq, text)
        for new, old in enumerate(read):
            if new != old:
                text = text.replace(f"{{{old}}}", f"{{{new}}}")
        nodes.append(Node(text, tuple(seen[eq.ins[k]] for k in read), work, selects))
        types.append(LLVM_TYPE[graph.types[eq.outs[0]].dtype])
        seen[eq.outs[0]] = len(operands) + n
    return tuple(nodes), tuple(types), operands, seen
