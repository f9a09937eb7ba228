"""Gathers and scatters by integer arrays: rows looked up, added up or written at places known at run time only.

An index of a few neighbouring integer arrays among whole slices, ``x[:, i, j]``, has three groups of axes: those before
the arrays, those of the arrays, and those behind. Each group runs evenly through memory or the operation is left to
NumPy. Integers and other slices beside the arrays, ``x[i, 1:-1, 3]``, take a view of x first. An index out of range
stops the program, and NumPy is asked for its error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fad.compile.codegen.llvm.guards_and_gathers import KNOWN, lookup_module
from fad.compile.codegen.program import Program
from fad.compile.ir.slice_writes import data_address
from fad.compile.ir.types import BYTES, LLVM_TYPE
from fad.compile.passes.constants import is_fixed
from fad.compile.schedule.strides import collapse
from fad.core.programs.graph import Equation, Graph
from fad.ops.places.indexing import getitem_p, scatter_p

_INDEX = {np.dtype(np.int64): "i64", np.dtype(np.int32): "i32"}
_LETTER = {"i64": "i", "i32": "n", KNOWN: "k"}
_ADDED = (np.dtype(float), np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.int32))
MOST_ARRAYS = 3
_KNOWN = np.dtype(np.uint32)  # of index arrays that were looked at when the program was compiled
_FEWEST_KNOWN, _MOST_KNOWN = 1 << 10, 1 << 31  # of their elements, and of the axis that they index


def is_lookup(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation indexes by integer arrays in a way that native code can."""
    out = graph.types[eq.outs[0]]
    if (eq.prim.indexed is None and eq.prim is not scatter_p) or out.dtype not in LLVM_TYPE:
        return False
    if eq.prim is scatter_p:
        (index, *more) = eq.params["indices"]
        arrays = [p for p in index if isinstance(p, np.ndarray)] if type(index) is tuple else []
        template: Any = tuple("array" if isinstance(p, np.ndarray) else p for p in index) if arrays else ()
        fine = not more and all(a.dtype in _INDEX and a.size for a in arrays) and out.dtype in _ADDED
        values, single = eq.ins, not any(a.ndim for a in arrays)
        shape = out.shape
    else:
        template = eq.params["template"]
        first = eq.prim.indexed
        fine = all(graph.types[i].dtype in _INDEX for i in eq.ins[first:])
        fine = fine and (not eq.prim.adds or out.dtype in _ADDED)
        values, single = eq.ins[:first], not any(graph.types[i].shape for i in eq.ins[first:])
        shape = graph.types[eq.ins[0]].shape
    fine = fine and all(graph.types[i].dtype == out.dtype for i in values)
    some = out.size > 0 and all(graph.types[i].size > 0 for i in eq.ins)  # a kernel looks up one row at least
    return fine and some and _arrange_index(template, shape, single) is not None


class _Arranged(NamedTuple):
    """How an index is done: a view, its axes in another order, and where the axes of the index arrays are then."""

    view: tuple
    axes: tuple
    before: int
    steps: int

    def of(self, x: np.ndarray) -> np.ndarray:
        return x[self.view].transpose(self.axes)


def _arrange_index(template: tuple, shape: tuple, single: bool) -> _Arranged | None:
    """Return how an index is done, None if it cannot be; `single`: its arrays are single numbers, without axes."""
    if any(p is None for p in template) or not 1 <= sum(type(p) is str for p in template) <= MOST_ARRAYS:
        return None
    advanced = [k for k, p in enumerate(template) if type(p) is str or type(p) is int]
    if not single and advanced != list(range(advanced[0], advanced[-1] + 1)):
        return None  # NumPy puts the axes of the arrays in front, also where an Ellipsis between them is no axis
    at = next((k for k, p in enumerate(template) if p is Ellipsis), len(template))
    rest = len(shape) - sum(p is not Ellipsis for p in template)
    template = (*template[:at], *[slice(None)] * rest, *template[at + 1 :])
    view = tuple([slice(None) if type(p) is str else p for p in template])
    if 0 in np.broadcast_to(False, shape)[view].shape:
        return None
    left = [type(p) is str for p in template if type(p) is not int]
    arrays = [k for k, is_array in enumerate(left) if is_array]
    before = 0 if single else arrays[0]  # single numbers have no axes, wherever they stand
    others = [k for k, is_array in enumerate(left) if not is_array]
    return _Arranged(view, (*others[:before], *arrays, *others[before:]), before, len(arrays))


def add_lookup(program: Program, eq: Equation) -> bool:
    """Add the rows of a lookup to a program's table; false if its arrays do not run evenly through memory."""
    o, at = eq.outs[0], program.memory.at
    if eq.prim is getitem_p:
        x, *numbers = eq.ins
        plan = _plan(program, eq.params["template"], (at[x], x), (at[o], o), _arrays(program, numbers))
        if plan is None:
            return False
        _emit(program, eq, "take", plan)
        return True
    if eq.prim is scatter_p:
        v = eq.ins[0]
        template = tuple("array" if isinstance(p, np.ndarray) else p for p in eq.params["indices"][0])
        arrays = [(np.asarray(p), None) for p in eq.params["indices"][0] if isinstance(p, np.ndarray)]
        start, how = (np.zeros((), program.memory.at[o].dtype), None), "add"
    else:
        x, v, *numbers = eq.ins
        template, arrays = eq.params["template"], _arrays(program, numbers)
        start, how = (program.memory.at[x], x), "add" if eq.prim.adds else "set"
    plan = _plan(program, template, (program.memory.at[o], o), (program.memory.at[v], v), arrays)
    if plan is None or not (program.memory.in_place(start[1], o) or program.table.copy(start, o)):
        return False
    _emit(program, eq, how, plan)
    return True


def _arrays(program: Program, numbers: list) -> list:
    return [(program.memory.at[i], i) for i in numbers]


def _narrow(program: Program, places: np.ndarray, i: int | None, n: int) -> tuple[np.ndarray, int | None]:
    """Return an index array of an axis of n; a large constant as places in half of the memory, which need no check."""
    known = (i is None or i in program.graph.constants) and is_fixed(places)
    if places.size < _FEWEST_KNOWN or n > _MOST_KNOWN or not known:
        return places, i
    key = id(places), n
    if key not in program.known_places:
        program.table.kept.append(places)
        inside = -n <= places.min() and places.max() < n
        program.known_places[key] = np.where(places < 0, places + n, places).astype(_KNOWN) if inside else places
    found = program.known_places[key]
    return (found, None) if found.dtype == _KNOWN else (places, i)


def _plan(program: Program, template: tuple, x: tuple, y: tuple, arrays: list) -> tuple | None:
    """Return the extents and strides of the three groups of axes of the indexed array x and the other one, y."""
    shape = np.broadcast_shapes(*[i.shape for i, _ in arrays])
    way = _arrange_index(template, x[0].shape, not any(i.ndim for i, _ in arrays))
    assert way is not None
    a, b, before, count = way.of(x[0]), y[0], way.before, way.steps
    x = (a, x[1])
    full = (*a.shape[:before], *shape, *a.shape[before + count :])
    if b.ndim > len(full):
        return None
    b = np.broadcast_to(b, full)
    middle, behind = before + len(shape), before + count
    arrays = [_narrow(program, i, value, n) for (i, value), n in zip(arrays, a.shape[before:], strict=False)]
    indices = [np.broadcast_to(i, shape) for i, _ in arrays]
    if len(collapse(shape, tuple([i.strides for i in indices]), ())[0]) != 1:
        arrays = [program.table.expand(i, value, shape) for i, value in arrays]
        indices = [i for i, _ in arrays]
    if len(collapse(shape, (b.strides[before:middle],), ())[0]) != 1:
        b, value = program.table.expand(b, y[1], full)
        y = (b, value)
    groups = [
        collapse(a.shape[:before], (a.strides[:before], b.strides[:before]), ()),
        collapse(shape, (b.strides[before:middle], *[i.strides for i in indices]), ()),
        collapse(a.shape[behind:], (a.strides[behind:], b.strides[middle:]), ()),
    ]
    (extents, (first, second)) = groups[2]
    if len(extents) == 2 and not before:  # the group before the arrays is free
        groups[0], groups[2] = [((extents[k],), ((first[k],), (second[k],))) for k in (0, 1)]
    if any(len(extents) != 1 for extents, _ in groups):
        return None
    looked = [(a.shape[before + k], a.strides[before + k]) for k in range(count)]
    return x, y, arrays, groups, looked


def _emit(program: Program, eq: Equation, how: str, plan: tuple) -> None:
    (a, x), (b, y), arrays, groups, looked = plan
    (p, ((ap,), (bp,))), (n, ((bn,), *steps)), (q, ((aq,), (bq,))) = groups
    t = LLVM_TYPE[a.dtype]
    even = aq == bq == BYTES[t] and q[0] > 1
    single = q[0] == 1
    kinds = tuple([KNOWN if array.dtype == _KNOWN else _INDEX[array.dtype] for array, _ in arrays])
    of = "".join([_LETTER[kind] for kind in kinds])
    name = f"look_{how}_{t}_{of}{'_even' if even else '_one' if single else ''}"
    if set(kinds) != {KNOWN}:
        program.failing(eq)
    program.table.begin_row(name, lambda: lookup_module(name, how, t, kinds, even, single))
    words = program.table.words
    for extent in (p, n, q):
        words.append(extent[0])
    for array, value, strides in ((a, x, (ap, aq)), (b, y, (bp, bn, bq))):
        _append_address(program, array, value)
        words += strides
    for (array, value), (step,), (limit, stride) in zip(arrays, steps, looked, strict=True):
        _append_address(program, array, value)
        words += [step, limit, stride]


def _append_address(program: Program, array: np.ndarray, value: int | None) -> None:
    """Append the address of an array, which is a value of the program, or a constant that was expanded for this row."""
    at, words = data_address(array), program.table.words
    if value is None:
        program.table.kept.append(array)
        words.append(at)
    else:
        words.append(program.memory.address_in(value, len(words), at))
