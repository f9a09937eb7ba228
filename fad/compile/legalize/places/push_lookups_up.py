"""Cheap elementwise operations whose result is only looked up, done on the rows that are looked up.

``(x + b)[i]`` is ``x[i] + b`` where `b` is the same for all rows: no table of the sums is stored, and what is looked up
of `x` is added to in the loop that reads it.
"""

from __future__ import annotations

from collections import defaultdict

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import is_heavy, templates
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph
from fad.core.programs.rewriter import rename
from fad.ops.layout.index_layout import ARRAY
from fad.ops.places.indexing import getitem_p

_SMALLEST = 1 << 12  # elements of a table from which on it is worth while
_MOST = 4  # times as many elements may be looked up as the table has


def push_lookups_up(graph: Graph) -> Graph:
    """Look rows up before what is done to all of them."""
    if not any(_looked_up_axis(graph, eq) is not None for eq in graph.equations):
        return graph
    moved = _find_moved(graph)
    if not moved:
        return graph
    work = Builder(graph)
    now: dict[int, int] = {}  # what is read instead of a result

    def compute(i: int, eq: Equation) -> int:
        """Write what is looked up of a value; the lookup itself, which may fail, keeps its result's number."""
        made = moved.get(i)
        if made is None:
            work.equations.append(Equation(getitem_p, (i, *eq.ins[1:]), eq.params, eq.outs, eq.place))
            return eq.outs[0]
        full = _full_operand(graph, made)
        found = compute(full, eq) if full is not None else i
        return work.clone(made, [found if x == full else x for x in made.ins], graph.types[eq.outs[0]].shape)

    for eq in graph.equations:
        if eq.prim is getitem_p and eq.ins[0] in moved:
            work.place = eq.place
            now[eq.outs[0]] = compute(eq.ins[0], eq)
        else:
            work.equations.append(rename(eq, now))
    outputs = [now.get(i, i) for i in graph.outputs]
    return drop_dead(work.finish().replace(outputs=outputs))


def _looked_up_axis(graph: Graph, eq: Equation) -> int | None:
    """Return the axis of which an operation looks some places up, by numbers in one row; None if it is another one."""
    if eq.prim is not getitem_p or len(eq.ins) != 2:
        return None
    index, template = graph.types[eq.ins[1]], eq.params["template"]
    if len(index.shape) != 1 or index.dtype.kind not in "iu" or any(p not in (ARRAY, slice(None)) for p in template):
        return None
    return template.index(ARRAY)


def _find_moved(graph: Graph) -> dict[int, Equation]:
    """Return the operations that are done on what is looked up, by their results."""
    readers: dict[int, list[Equation]] = defaultdict(list)
    for eq in graph.equations:
        for i in eq.ins:
            readers[i].append(eq)
    text_of, outputs = templates(graph), {*graph.outputs}
    asked = {i for eq in graph.equations if not eq.outs for i in eq.ins}  # by guards, which are known by themselves
    moved: dict[int, Equation] = {}
    axis_of: dict[int, int] = {}
    read: dict[int, int] = {}  # how many elements of a value are looked up
    for eq in reversed(graph.equations):
        full = _full_operand(graph, eq)
        if full is None or eq.outs[0] in outputs or (text := text_of(eq)) is None or is_heavy(text):
            continue
        (o,) = eq.outs
        axes = {
            axis_of[r.outs[0]] if r.outs and r.outs[0] in moved else _axis_read(graph, r, o, asked)
            for r in readers[o]
        }  # fmt: skip
        axis = axes.pop() if len(axes) == 1 else None
        if axis is None or not _is_even(graph, eq, full, axis):
            continue
        read[o] = sum([read.get(r.outs[0], graph.types[r.outs[0]].size) for r in readers[o]])
        if read[o] <= _MOST * graph.types[o].size:
            moved[o], axis_of[o] = eq, axis
    return moved


def _axis_read(graph: Graph, eq: Equation, i: int, asked: set[int]) -> int | None:
    """Return the axis along which an operation looks value i up, whose result nothing may need by its number."""
    free = eq.ins[0] == i and i not in eq.ins[1:] and asked.isdisjoint(eq.outs)
    return _looked_up_axis(graph, eq) if free else None


def _full_operand(graph: Graph, eq: Equation) -> int | None:
    """Return the operand of a large result that has its shape and dtype, if no other one has the shape."""
    if len(eq.outs) != 1 or graph.types[eq.outs[0]].size < _SMALLEST:
        return None
    t = graph.types[eq.outs[0]]
    full = {i for i in eq.ins if graph.types[i].shape == t.shape}
    return full.pop() if len(full) == 1 and all(graph.types[i].dtype == t.dtype for i in full) else None


def _is_even(graph: Graph, eq: Equation, full: int, axis: int) -> bool:
    """Return whether all operands but one are the same all along an axis."""
    rank = len(graph.types[eq.outs[0]].shape)
    shapes = [graph.types[i].shape for i in eq.ins if i != full]
    return all(len(s) < rank - axis or s[axis - rank] == 1 for s in shapes)
