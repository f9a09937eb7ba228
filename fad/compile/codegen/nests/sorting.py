"""Sorting within a loop nest, along the last axis: by NumPy's own functions, which put equal elements where it does.

An order is a permutation of the places of a row, so nothing that it looks up is out of range.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fad.compile.codegen.nests.arrays import loops, put
from fad.compile.codegen.nests.body import Body
from fad.compile.codegen.nests.values import Computed, Stored, Value, element, make_view, reads_elsewhere
from fad.compile.codegen.nests.writer import Index, Number, TooMuch, Writer
from fad.compile.ir.lowered_ops import SORTED
from fad.compile.ir.types import BYTES, I64, LLVM_TYPE
from fad.compile.machine.numpy_sorts import find_sorts
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph
from fad.ops.ordering.sorting import argsort_p, permute_back_p, permute_p

_DTYPES = tuple(map(np.dtype, (float, np.float32, np.int64, np.int32)))


def sorts_rows(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation sorts along the last axis, or permutes by such an order."""
    if eq.prim not in SORTING:
        return False
    t = graph.types[eq.ins[0]]
    if t.dtype not in LLVM_TYPE or not t.size or eq.params.get("axis", len(t.shape) - 1) != len(t.shape) - 1:
        return False
    if eq.prim in (permute_p, permute_back_p):
        return graph.types[eq.ins[1]].dtype == np.int64 and graph.types[eq.ins[1]].shape == t.shape
    return t.dtype in _DTYPES and find_sorts(t.dtype, eq.params["kind"]) is not None


def emit_sorting(body: Body, eq: Equation) -> None:
    """Write an operation of the table below."""
    if not sorts_rows(body.graph, eq):
        raise TooMuch(f"{eq.prim.name} of these operands has no machine code")
    SORTING[eq.prim](body, eq)


def _function(body: Body, eq: Equation, argsort: bool) -> str:
    """Return the sort to call, whose address is a constant of the program."""
    found = find_sorts(body.graph.types[eq.ins[0]].dtype, eq.params["kind"])
    assert found is not None
    address = np.array([found.argsort if argsort else found.sort], np.int64)
    return body.w.fresh(f"load ptr, ptr {body.memory.pointer(('constant', address)).pointer}")


def _row(w: Writer, x: Value, at: tuple) -> Value:
    n = x.shape[-1]  # type: ignore[union-attr]
    return make_view(w, x, (n,), [*[("at", i) for i in at[:-1]], ("axis", 0, 0, 1)])


def _is_row_whole(place: Stored) -> bool:
    return place.shape[-1] == 1 or place.strides[-1] == BYTES[place.t]


def _sort(body: Body, eq: Equation) -> None:
    w, (o,), shape = body.w, eq.outs, body.shape(eq.outs[0])
    x, place, n = body.operand(eq.ins[0], shape), body.place(o), shape[-1]
    whole = place if _is_row_whole(place) else body.memory.new(shape, place.t)
    put(w, body.copied(x) if reads_elsewhere(x, whole) else x, whole)
    function = _function(body, eq, argsort=False)
    with loops(w, (*shape[:-1], 1)) as at:
        w.fresh(f"call i32 {function}(ptr {whole.address(w, at)}, i64 {n}, ptr null)")
    w.loaded = {}
    if whole is not place:
        put(w, whole, place)
    body.values[o] = place


def _argsort(body: Body, eq: Equation) -> None:
    w, (o,), shape = body.w, eq.outs, body.shape(eq.outs[0])
    x, n = body.operand(eq.ins[0], shape), shape[-1]
    place = body.place(o)
    whole = place if _is_row_whole(place) and body.type(o) == I64 else body.memory.new(shape, I64)
    if isinstance(x, Computed) or not _is_row_whole(x):  # type: ignore[arg-type]
        x = body.copied(x)
    assert isinstance(x, Stored)
    function = _function(body, eq, argsort=True)
    with loops(w, (*shape[:-1], 1)) as at:
        put(w, Computed((n,), I64, lambda w, index: _number(index[0]), [], 0), _row(w, whole, at))  # type: ignore[arg-type]
        rows = f"ptr {x.address(w, at)}, ptr {whole.address(w, at)}"
        w.fresh(f"call i32 {function}({rows}, i64 {n}, ptr null)")
    w.loaded = {}
    if whole is not place:
        put(w, whole, place)
    body.values[o] = place


def _number(i: Index) -> Number:
    return Number(str(i), I64)


def _place_in(w: Writer, order: Value, index: tuple) -> tuple:
    """Return where an order says that the element at an index comes from, or goes to."""
    return (*index[:-1], element(w, order, index).name)


def _permute(body: Body, eq: Equation) -> None:
    (o,), shape = eq.outs, body.shape(eq.outs[0])
    x, order = body.in_memory(eq.ins[0]), body.operand(eq.ins[1], shape)
    compute: Callable = lambda w, index: element(w, x, _place_in(w, order, index))
    body.give(o, Computed(shape, body.type(o), compute, [x, order], 1, aligned=[order]))


def _permute_back(body: Body, eq: Equation) -> None:
    w, (o,), shape = body.w, eq.outs, body.shape(eq.outs[0])
    place = body.place(o)
    x, order = [body.operand(i, shape) for i in eq.ins]
    x, order = [body.copied(v) if getattr(v, "buffers", frozenset()) & place.buffers else v for v in (x, order)]
    with loops(w, shape) as index:
        w.write(place.t, element(w, x, index).name, place.address(w, _place_in(w, order, index)))
    body.values[o] = place


SORTING: dict[Primitive, Callable[[Body, Equation], None]] = {
    SORTED: _sort, argsort_p: _argsort, permute_p: _permute, permute_back_p: _permute_back,
}  # fmt: skip
