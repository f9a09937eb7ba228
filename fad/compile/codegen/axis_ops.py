"""Operations along one axis with a kernel of their own: accumulations, products, positions of extremes, searches."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fad.compile.codegen.llvm import scan
from fad.compile.codegen.program import Program
from fad.compile.ir.lowered_ops import NOT_NEGATIVE, PLACE
from fad.compile.ir.types import F32, F64, INTEGERS, LLVM_TYPE
from fad.compile.legalize.integer_overflow import CHECK
from fad.core.graph import Equation, Graph

_NUMBERS = (F64, F32, *INTEGERS)
_REAL = (F64, F32)
_ACCUMULATED = {np.add: "add", np.multiply: "multiply", np.maximum: "maximum", np.minimum: "minimum"}
_POSITIONS = {"position_of_max": "maximum", "position_of_min": "minimum"}


def is_row(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation has a kernel here."""
    return _plan(graph, eq) is not None


def _plan(graph: Graph, eq: Equation) -> tuple[str, Callable, tuple[int, ...]] | None:
    """Return the name of a kernel, its text, and the extents P, N and Q; None if there is none."""
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)]
    kinds = [LLVM_TYPE.get(t.dtype) for t in types]
    t, name, p = kinds[0], eq.prim.name, eq.params
    if t not in _NUMBERS or any(x.size == 0 for x in types):
        return None
    shape = types[0].shape
    if name == "search_sorted":
        if kinds[1] != t or len(shape) != 1:
            return None
        right = p["side"] == "right"
        title = f"search_{t}_{'right' if right else 'left'}"
        return title, lambda: scan.search_module(title, t, right), (types[1].size, types[0].size, 1)
    if name in _POSITIONS and kinds[-1] == "i64":
        extents = _extents(shape, (p["axis"],))
        title = f"{name}_{t}"
        return title, lambda: scan.position_module(title, _POSITIONS[name], t), extents
    if name == PLACE.name:
        n = types[1].size
        return f"place_{t}", lambda: scan.place_module(f"place_{t}", t), (n, types[0].size // n, 1)
    if any(k != t for k in kinds[1:]) and name == CHECK.name:
        return None
    if kinds[-1] != t:
        return None
    if name == CHECK.name and (kinds[0] == "i64" or p["how"] == "nonzero"):
        title = f"check_{p['how']}_{t}"
        return title, lambda: scan.check_module(title, t, p["how"]), (1, 1, 1)
    if name == NOT_NEGATIVE.name:
        return f"negative_{t}", lambda: scan.negative_module(f"negative_{t}", t), (1, types[0].size, 1)
    how = eq.prim.combines  # of floating-point numbers, sums and extrema are loops that are fused
    if how == "multiply" or (how not in ("", "add") and t in INTEGERS):
        axis = p["axis"]
        if not axis or axis != tuple(range(axis[0], axis[-1] + 1)):
            return None
        title = f"fold_{how}_{t}"
        return title, lambda: scan.fold_module(title, how, t), _extents(shape, axis)
    if name in ("cumsum_along", "accumulation"):
        op = "add" if name == "cumsum_along" else _ACCUMULATED.get(p["ufunc"])
        extents = _extents(shape, (p["axis"],))
        one = extents[2] == 1
        title = f"accumulate_{op}_{t}{'_one' if one else ''}"
        return None if op is None else (title, lambda: scan.accumulation_module(title, op, t, one), extents)
    if name == "linear_recurrence" and t in _REAL and kinds[1] == t and types[1].shape == shape:
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
    if eq.prim.name in ("search_sorted", "linear_recurrence"):  # the second one is run along
        arrays = arrays[::-1]
    if eq.prim in (NOT_NEGATIVE, CHECK):
        program.failing(Equation(eq.prim, eq.ins, {}, (eq.params["of"],)))
    program.table.begin_row(name, text)
    program.table.words += extents
    for i in (arrays[0], eq.outs[0], *arrays[1:]):
        program.table.point_to(i)
    return True
