"""Decompositions within a loop nest, by LAPACK's own routines: eigenvalues and vectors, singular values, QR.

The routines are those of the library that NumPy runs, and are called as NumPy calls them, so that signs and phases of
vectors are NumPy's. Where a routine does not come to its end the function is left, and NumPy has the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fad.compile.codegen.llvm.builder import c
from fad.compile.codegen.nests.arrays import loops, put
from fad.compile.codegen.nests.body import Body
from fad.compile.codegen.nests.values import Computed, Stored, Value, element, make_view
from fad.compile.codegen.nests.writer import Number, TooMuch, Writer
from fad.compile.ir.types import F64, I64
from fad.compile.machine import lapack
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph
from fad.ops.linalg import decompositions, eigen, singular

_REAL = (np.dtype(float), np.dtype(np.float32))  # both are decomposed in double precision, as in NumPy


class Decomposition(NamedTuple):
    """The routines that an operation calls, and the function that writes these calls."""

    routines: tuple[str, ...]
    write: Callable[[_Stack], None]


def is_decomposition(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation decomposes real matrices, by routines that are to be had."""
    t = graph.types[eq.ins[0]] if eq.prim in LAPACK else None
    if t is None or t.dtype not in _REAL or not t.size:
        return False
    return all(lapack.pointer(name) for name in LAPACK[eq.prim].routines)


def emit_decomposition(body: Body, eq: Equation) -> None:
    """Write a decomposition, for each matrix of a stack."""
    if not is_decomposition(body.graph, eq):
        raise TooMuch(f"{eq.prim.name} of these matrices has no machine code")
    LAPACK[eq.prim].write(_Stack(body, eq))


class _Stack:
    """The matrices, and where what becomes of them is to be."""

    def __init__(self, body: Body, eq: Equation):
        self.body, self.w, self.params = body, body.w, eq.params
        self.outs = eq.outs
        *self.lead, self.rows, self.columns = body.shape(eq.ins[0])
        self.places = {k: body.place(o) for k, o in enumerate(eq.outs) if o in body.order.last or o in body.places}
        self.x = body.in_memory(eq.ins[0])
        if any(getattr(self.x, "buffers", frozenset()) & place.buffers for place in self.places.values()):
            self.x = body.copied(self.x)

    def new(self, *shape: int, t: str = F64) -> Stored:
        return self.body.memory.new(shape, t)

    def function(self, routine: str) -> str:
        """Return a routine to call, whose address is a constant of the program."""
        address = np.array([lapack.pointer(routine)], np.int64)
        return self.w.fresh(f"load ptr, ptr {self.body.memory.pointer(('constant', address)).pointer}")

    def call(self, function: str, *arguments: Stored | str | int) -> None:
        """Write the call of a routine: all arguments by their addresses, and a last one that says how it ended."""
        w, pointers, ended = self.w, [], self.w.slot(I64)
        for x in arguments:
            if isinstance(x, Stored):
                pointers.append(x.address(w, (0,) * len(x.shape)))
            else:
                pointers.append(w.slot(I64))
                w.do(f"store i64 {ord(x) if isinstance(x, str) else x}, ptr {pointers[-1]}")
        w.do(f"store i64 0, ptr {ended}")
        lengths = ["i64 1" for x in arguments if isinstance(x, str)]  # which Fortran passes of texts
        w.do(f"call void {function}({', '.join([*[f'ptr {p}' for p in (*pointers, ended)], *lengths])})")
        w.loaded = {}
        w.require(w.compare("==", w.fresh(f"load i32, ptr {ended}"), "0", "i32"))

    def each(self, write: Callable[[Value, dict[int, Stored]], None]) -> None:
        """Write what is done for one matrix, which is given with the places of its results that are read."""
        with loops(self.w, tuple(self.lead)) as at:
            results = {k: _part(self.w, place, at) for k, place in self.places.items()}
            write(_part(self.w, self.x, at), results)  # type: ignore[arg-type]
        self.w.loaded = {}
        for k, place in self.places.items():
            self.body.values[self.outs[k]] = place


def _part(w: Writer, x: Value, at: tuple) -> Value:
    """Return the matrix, or the row, of a stack at an index."""
    shape = x.shape[len(at) :]  # type: ignore[union-attr]
    return make_view(w, x, shape, [*[("at", i) for i in at], *[("axis", d, 0, 1) for d in range(len(shape))]])


def _transpose(w: Writer, x: Value) -> Value:
    m, n = x.shape  # type: ignore[union-attr]
    return make_view(w, x, (n, m), [("axis", 1, 0, 1), ("axis", 0, 0, 1)])


def _put(w: Writer, x: Value, place: Stored) -> None:
    """Write an array to a place, in the place's precision."""
    if x.t != place.t:
        source = x
        convert = lambda w, index: Number(w.cast(element(w, source, index).name, source.t, place.t), place.t)
        x = Computed(place.shape, place.t, convert, [source], 1)
    put(w, x, place)


# Matrices are transposed in LAPACK's memory: a Stored of shape (n, m) is one with m rows there.


def _eigh(s: _Stack) -> None:
    w, n = s.w, s.rows
    job, uplo = "V" if 1 in s.places else "N", s.params["uplo"]
    numbers, integers = lapack.ask_for_space("dsyevd", job, uplo, n, None, n, None, behind=(None, -1))
    a, values, space, places = s.new(n, n), s.new(n), s.new(numbers), s.new(integers, t=I64)
    function = s.function("dsyevd")

    def one(x: Value, results: dict[int, Stored]) -> None:
        _put(w, _transpose(w, x), a)
        s.call(function, job, uplo, n, a, n, values, space, numbers, places, integers)
        if 0 in results:
            _put(w, values, results[0])
        if 1 in results:
            _put(w, _transpose(w, a), results[1])

    s.each(one)


def _svd(s: _Stack) -> None:
    w, m, n = s.w, s.rows, s.columns
    k = min(m, n)
    job = "N" if s.places.keys() <= {1} else "A" if s.params["full"] else "S"
    left, right = {"N": (1, 1), "A": (m, n), "S": (k, k)}[job]  # vectors on either side
    u, vh = (s.new(1, 1), s.new(1, 1)) if job == "N" else (s.new(left, m), s.new(n, right))
    ldu = 1 if job == "N" else m
    numbers, _ = lapack.ask_for_space("dgesdd", job, m, n, None, m, None, None, ldu, None, right, behind=(None,))
    a, values, space, places = s.new(n, m), s.new(k), s.new(numbers), s.new(8 * k, t=I64)
    function = s.function("dgesdd")

    def one(x: Value, results: dict[int, Stored]) -> None:
        _put(w, _transpose(w, x), a)
        s.call(function, job, m, n, a, m, values, u, ldu, vh, right, space, numbers, places)
        found = {0: _transpose(w, u), 1: values, 2: _transpose(w, vh)}
        for which, place in results.items():
            _put(w, found[which], place)

    s.each(one)


def _qr(s: _Stack) -> None:
    w, m, n = s.w, s.rows, s.columns
    k = min(m, n)
    wide = m if s.params.get("mode") == "complete" and m > n else k  # columns of q
    first, _ = lapack.ask_for_space("dgeqrf", m, n, None, m, None)
    second, _ = lapack.ask_for_space("dorgqr", m, wide, k, None, m, None)
    numbers = max(first, second, n)
    a, taus, space = s.new(max(n, wide), m), s.new(k), s.new(numbers)
    factor, gather = s.function("dgeqrf"), s.function("dorgqr")

    def upper(w: Writer, index: tuple) -> Number:
        i, j = index
        below = w.new(f"icmp sgt i64 {i}, {j}")
        return Number(w.select(below, c(0.0), element(w, a, (j, i)).name), F64)

    def one(x: Value, results: dict[int, Stored]) -> None:
        _put(w, _transpose(w, x), _rows(w, a, n))
        s.call(factor, m, n, a, m, taus, space, numbers)
        if 1 in results:
            _put(w, Computed((wide, n), F64, upper, [a], 1), results[1])
        if 0 in results:
            s.call(gather, m, wide, k, a, m, taus, space, numbers)
            _put(w, _transpose(w, _rows(w, a, wide)), results[0])

    s.each(one)


def _rows(w: Writer, a: Stored, n: int) -> Stored:
    """Return the first rows of an array."""
    return make_view(w, a, (n, a.shape[1]), [("axis", 0, 0, 1), ("axis", 1, 0, 1)])  # type: ignore[return-value]


LAPACK: dict[Primitive, Decomposition] = {
    **dict.fromkeys((eigen.eigh_p, eigen.eigh_known_p), Decomposition(("dsyevd",), _eigh)),
    **dict.fromkeys((singular.svd_p, singular.svd_known_p), Decomposition(("dgesdd",), _svd)),
    **dict.fromkeys((decompositions.qr_p, decompositions.qr_rule_p), Decomposition(("dgeqrf", "dorgqr"), _qr)),
}
