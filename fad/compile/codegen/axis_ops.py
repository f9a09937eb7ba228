"""Operations along one axis with a kernel of their own: accumulations, products, positions of extremes, searches."""

from __future__ import annotations

import math
from collections.abc import Callable

from fad.compile.codegen.llvm import scan
from fad.compile.codegen.llvm.number_checks import OF_ONE_NUMBER
from fad.compile.codegen.program import Program
from fad.compile.ir.lowered_ops import NOT_NEGATIVE, PLACE
from fad.compile.ir.types import F32, F64, INTEGERS, LLVM_TYPE
from fad.compile.legalize.numbers.integer_overflow import CHECK
from fad.core.programs.graph import Equation, Graph
from fad.ops.places.taking import searchsorted_p
from fad.ops.reductions.flat_reductions import argmax_p, argmin_p
from fad.ops.reductions.scans import accumulate_p, cumsum_p, recur_p
from fad.ops.ufuncs.elementwise import add, maximum, minimum, multiply

_NUMBERS = (F64, F32, *INTEGERS)
_REAL = (F64, F32)
_ACCUMULATED = {p.forward: p.name for p in (add, multiply, maximum, minimum)}
_POSITIONS = {argmax_p: maximum.name, argmin_p: minimum.name}


def is_row(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation has a kernel here."""
    return _plan(graph, eq) is not None


def _plan(graph: Graph, eq: Equation) -> tuple[str, Callable, tuple[int, ...]] | None:
    """Return the name of a kernel, its text, and the extents P, N and Q; None if there is none."""
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)]
    kinds = [LLVM_TYPE.get(t.dtype) for t in types]
    t, prim, p = kinds[0], eq.prim, eq.params
    if t not in _NUMBERS or any(x.size == 0 for x in types):
        return None
    shape = types[0].shape
    if prim is searchsorted_p:
        if kinds[1] != t or len(shape) != 1:
            return None
        right = p["side"] == "right"
        title = f"search_{t}_{'right' if right else 'left'}"
        return title, lambda: scan.search_module(title, t, right), (types[1].size, types[0].size, 1)
    if prim in _POSITIONS and kinds[-1] == "i64":
        extents = _extents(shape, (p["axis"],))
        title = f"{prim.name}_{t}"
        return title, lambda: scan.position_module(title, _POSITIONS[prim], t), extents
    if prim is PLACE:
        n = types[1].size
        return f"place_{t}", lambda: scan.place_module(f"place_{t}", t), (n, types[0].size // n, 1)
    if any(k != t for k in kinds[1:]) and prim is CHECK:
        return None
    if kinds[-1] != t:
        return None
    if prim is CHECK and (kinds[0] == "i64" or p["how"] in OF_ONE_NUMBER):
        title = f"check_{p['how']}_{t}"
        return title, lambda: scan.check_module(title, t, p["how"]), (1, 1, 1)
    if prim is NOT_NEGATIVE:
        return f"negative_{t}", lambda: scan.negative_module(f"negative_{t}", t), (1, types[0].size, 1)
    combines = prim.combines  # of floating-point numbers, sums and extrema are loops that are fused
    if combines is multiply or (combines not in (None, add) and t in INTEGERS):
        axis = p["axis"]
        if not axis or axis != tuple(range(axis[0], axis[-1] + 1)):
            return None
        title = f"fold_{combines.name}_{t}"
        return title, lambda: scan.fold_module(title, combines.name, t), _extents(shape, axis)
    if prim in (cumsum_p, accumulate_p):
        op = add.name if prim is cumsum_p else _ACCUMULATED.get(p["ufunc"])
        extents = _extents(shape, (p["axis"],))
        one = extents[2] == 1
        title = f"accumulate_{op}_{t}{'_one' if one else ''}"
        return None if op is None else (title, lambda: scan.accumulation_module(title, op, t, one), extents)
    if prim is recur_p and t in _REAL and kinds[1] == t and types[1].shape == shape:
        title = f"recur_{t}{'_back' if p['reverse'] else ''}"
        return title, lambda: scan.recurrence_module(title, t, p["reverse"]), _extents(shape, (p["axis"],))
    return None


def _extents(shape: tuple, axis: tuple) -> tuple[int, ...]:
    first, last = axis[0], axis[-1] + 1
    return math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:])


def add_row(program: Program, eq: Equation) -> bool:
    """Add an operation along an axis to a program's table."""
    plan = _plan(program.graph, eq)
    if plan is None:
        return False
    name, text, extents = plan
    arrays = [program.table.contiguous(i) for i in eq.ins]
    if eq.prim in (searchsorted_p, recur_p):  # the second one is run along
        arrays = arrays[::-1]
    if eq.prim in (NOT_NEGATIVE, CHECK):
        program.failing(Equation(eq.prim, eq.ins, {}, (eq.params["of"],)))
    program.table.begin_row(name, text)
    program.table.words += extents
    for i in (arrays[0], eq.outs[0], *arrays[1:]):
        program.table.point_to(i)
    return True
