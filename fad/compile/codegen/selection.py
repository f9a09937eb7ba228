"""Instruction selection: what an operation becomes, in one table of rules `(kind, matches, emit)`.

A rule's ``matches(graph, eq)`` says whether an operation is of its kind, and ``emit(program, step)`` adds the rows of
such a step to the program's table, or returns a function to be called between the rows. The first rule that matches
counts. Elementwise operations with a template come before all rules: they are fused into loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fad.compile.codegen.axis_ops import add_row, is_row
from fad.compile.codegen.control_flow import native_branch, native_loop
from fad.compile.codegen.convolution import add_convolution, is_convolution
from fad.compile.codegen.fused_loops import add_loop, add_sum
from fad.compile.codegen.gather_scatter import add_lookup, is_lookup
from fad.compile.codegen.guards import add_guard
from fad.compile.codegen.matmul import add_product
from fad.compile.codegen.nests.checked_values import is_checked
from fad.compile.codegen.nests.lapack import is_decomposition
from fad.compile.codegen.nests.linear_algebra import is_small
from fad.compile.codegen.nests.row import native_nest
from fad.compile.codegen.nests.sorting import sorts_rows
from fad.compile.codegen.numpy_calls import as_one_call, numpy_call
from fad.compile.codegen.program import Program
from fad.compile.codegen.slices import add_slices
from fad.compile.codegen.special_functions import add_special, is_special
from fad.compile.codegen.stacks import add_pop, add_push
from fad.compile.ir.expressions import template
from fad.compile.ir.lowered_ops import ADDED_PRODUCT, BLOCK_PRODUCT, COMPLEX, FOURIER, PIECES, REDUCTIONS
from fad.compile.ir.slice_writes import left_out
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.legalize.places.place_stacks import NATIVE_POP, NATIVE_PUSH
from fad.compile.schedule.fusion import Step
from fad.core.primitives.cotangent import is_basic
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import concatenate_p, reshape_p
from fad.ops.places.indexing import scatter_p
from fad.ops.products.contraction import matmul
from fad.ops.reductions.reduction import sum_p

_REAL = (np.dtype(float), np.dtype(np.float32))
_COUNTED = (np.dtype(bool), np.dtype(np.int32), np.dtype(np.int64))
_OF_NESTS = (is_small, sorts_rows, is_decomposition, is_checked)
Emit = Callable[[Program, Step], Callable | None]


class Rule(NamedTuple):
    """What some operations become: the kind of their step, which they are, and how its rows are written."""

    kind: str
    matches: Callable[[Graph, Equation], bool]
    emit: Emit


def _is_guard(graph: Graph, eq: Equation) -> bool:
    return eq.is_guard


def _is_in_slices(graph: Graph, eq: Equation) -> bool:
    """Whether an operation only copies or adds whole arrays into slices of its result."""
    out = graph.types[eq.outs[0]]
    if eq.prim is COMPLEX:
        return bool(out.size)
    if eq.prim not in PIECES or out.dtype not in LLVM_TYPE or 0 in out.shape:
        return False
    if any(graph.types[i].dtype != out.dtype for i in eq.ins):
        return False
    if eq.prim is scatter_p:
        indices = eq.params["indices"]
        return all(map(is_basic, indices)) and (out.dtype in _REAL or left_out(indices, out.shape) is not None)
    if out.dtype not in _REAL and eq.prim.adds:
        return False
    return eq.prim is concatenate_p or _is_basic(eq.params["template"])


def _is_basic(index: tuple) -> bool:
    return all(type(p) is not str for p in index)


def _is_view(graph: Graph, eq: Equation) -> bool:
    return eq.is_view


def _is_sum(graph: Graph, eq: Equation) -> bool:
    if eq.prim not in REDUCTIONS or not eq.params["axis"]:
        return False
    x, out = graph.types[eq.ins[0]], graph.types[eq.outs[0]]
    if out.dtype in _REAL:
        return x.dtype == out.dtype and bool(x.size)
    return eq.prim is sum_p and out.dtype == np.int64 and x.dtype in _COUNTED and bool(x.size)


def _is_matmul(graph: Graph, eq: Equation) -> bool:
    out = graph.types[eq.outs[0]].dtype
    if eq.prim in (ADDED_PRODUCT, BLOCK_PRODUCT):
        return out in _REAL
    return eq.prim is matmul and out in _REAL and all(graph.types[i].dtype == out for i in eq.ins)


def _or_in_numpy(add: Callable[[Program, Equation], bool]) -> Emit:
    """Return how a step of one operation is emitted that NumPy runs where ``add(program, eq)`` cannot."""

    def emit_step(program: Program, step: Step) -> Callable | None:
        eq = step.equations[0]
        return None if add(program, eq) else numpy_call(program, eq)

    return emit_step


def _is_along_axis(graph: Graph, eq: Equation) -> bool:
    return is_row(graph, eq) or is_special(graph, eq)


def _add_along_axis(program: Program, eq: Equation) -> bool:
    return add_row(program, eq) or add_special(program, eq)


def _is_nest(graph: Graph, eq: Equation) -> bool:
    """Whether a loop nest does the operation: linear algebra, Fourier transforms, sorting."""
    return eq.prim is FOURIER or any(is_one(graph, eq) for is_one in _OF_NESTS)


def _is_control_flow(graph: Graph, eq: Equation) -> bool:
    return eq.prim.archetype in ("loop", "branch")


def _add_control_flow(program: Program, step: Step) -> Callable | None:
    eq = step.equations[0]
    if (native_loop if eq.prim.archetype == "loop" else native_branch)(program, eq):
        program.counts[eq.prim.name] = program.counts.get(eq.prim.name, 0) + 1
        return None
    return numpy_call(program, as_one_call(program, eq))


def _call(program: Program, step: Step) -> Callable | None:
    """Call NumPy; but a view that has no memory of its own to show is a copy."""
    eq = step.equations[0]
    copied = eq.prim is reshape_p and program.table.reshape(eq)
    return None if copied else numpy_call(program, eq)


def _is_elementwise(graph: Graph, eq: Equation) -> bool:
    return 0 not in graph.types[eq.outs[0]].shape and template(graph, eq, graph.constants) is not None


RULES = (
    Rule("guard", _is_guard, add_guard),
    Rule("loop", _is_elementwise, add_loop),
    Rule("convolution", lambda graph, eq: is_convolution(eq), _or_in_numpy(add_convolution)),
    Rule("pieces", _is_in_slices, add_slices),
    Rule("lookup", is_lookup, _or_in_numpy(add_lookup)),
    Rule("view", _is_view, lambda program, step: None),
    Rule("sum", _is_sum, add_sum),
    Rule("matmul", _is_matmul, _or_in_numpy(add_product)),
    Rule("row", _is_along_axis, _or_in_numpy(_add_along_axis)),
    Rule("nest", _is_nest, _or_in_numpy(native_nest)),
    Rule("control", _is_control_flow, _add_control_flow),
    Rule("push", lambda graph, eq: eq.prim is NATIVE_PUSH, add_push),
    Rule("pop", lambda graph, eq: eq.prim is NATIVE_POP, add_pop),
    Rule("call", lambda graph, eq: True, _call),
)
_EMIT = {rule.kind: rule.emit for rule in RULES}
_UNFUSED = tuple([rule for rule in RULES if rule.kind != "loop"])


def kind_of(graph: Graph, eq: Equation) -> str:
    """Return the kind of an operation that is not fused into a loop."""
    return next(rule.kind for rule in _UNFUSED if rule.matches(graph, eq))


def emit(program: Program, step: Step) -> Callable | None:
    """Add a step to a program's table; return a function instead if it is a NumPy call."""
    return _EMIT[step.kind](program, step)
