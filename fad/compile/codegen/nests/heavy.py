"""Functions that polynomials compute, of the arrays of a nest: several elements at a time, in vectors.

A polynomial takes as long for a vector as for a number. Each is a function of its own, for LLVM to compile once. Where
an argument is beyond what the polynomials are good for, the elements of its vector are computed one by one, by the C
library.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable

from fad.compile.codegen.llvm.builder import Emitter, constant, vector
from fad.compile.codegen.llvm.expressions import emit
from fad.compile.codegen.nests.arrays import loops, spread_lanes
from fad.compile.codegen.nests.values import Computed, Stored, Value, element
from fad.compile.codegen.nests.writer import Index, Number, Writer
from fad.compile.ir.types import BOOL, BYTES, F64
from fad.compile.machine.cpu import register_bytes

_WRITTEN_OUT = 32  # elements that are computed without a loop


def is_masked(x: Value) -> bool:
    """Return whether a mask says of a value where it is wanted."""
    return isinstance(x, Computed) and (x.mask is not None or x.choice is not None)


class Function:
    """A template that is applied to the elements of operands, which have the shape of its result."""

    def __init__(self, w: Writer, text: str, operands: list[Value], work: str, selects: bool, t: str):
        self.w, self.text, self.operands = w, text, operands
        self.work, self.selects, self.t = work, selects, t

    def write(self, place: Stored, one: Callable[[tuple], Number]) -> None:
        """Write all elements to a place; ``one(index)`` is how a single one is computed."""
        shape = place.shape
        size = math.prod(shape)
        lanes = (register_bytes() or 16) // 8
        lanes *= 1 if size <= lanes else 2  # the steps of a polynomial wait for each other: two registers do not
        self.lanes = lanes
        self.name = self._define()
        if size <= _WRITTEN_OUT:
            every = list(itertools.product(*map(range, shape)))
            for start in range(0, len(every), lanes):
                self._write_vector(every[start : start + lanes], place, one)
            return
        *outer, n = shape
        with loops(self.w, tuple(outer)) as index:
            if n >= lanes:
                with self.w.loop(n // lanes) as step:
                    start = self.w.times(step, lanes)
                    self._write_vector([(*index, self.w.plus(start, k)) for k in range(lanes)], place, one)
            if n % lanes:
                self._write_vector([(*index, k) for k in range(n - n % lanes, n)], place, one)

    def _write_vector(self, indices: list[tuple], place: Stored, one: Callable) -> None:
        w, n = self.w, len(indices)
        if n == 1:
            w.write(place.t, one(indices[0]).name, place.address(w, indices[0]))
            return
        operands = [(self._widen(self._read(x, indices), x.t, n), x.t) for x in self.operands]
        pair = f"{{{vector(self.t, self.lanes)}, i1}}"
        given = ", ".join(f"{vector(t, self.lanes)} {name}" for name, t in operands)
        found = w.fresh(f"call {pair} @{self.name}({given})")
        value = w.new(f"extractvalue {pair} {found}, 0")
        near, far, end = w.label(), w.label(), w.label()
        w.do(f"br i1 {w.new(f'extractvalue {pair} {found}, 1')}, label %{far}, label %{near}")
        w.begin(far)
        with w.block():
            for index in indices:
                w.write(place.t, one(index).name, place.address(w, index))
        w.do(f"br label %{end}")
        w.begin(near)
        with w.block():
            self._store(value, indices, place)
        w.do(f"br label %{end}")
        w.begin(end)

    def _define(self) -> str:
        """Write the function of vectors, which also says whether an argument is too far; return its name."""
        e = Emitter("v", self.lanes)
        types = [x.t for x in self.operands]
        names = [(f"%x{k}", t) for k, t in enumerate(types)]
        found = emit(e, self.text, names, self.work, self.selects)
        value = e.operand(e.cast(found, BOOL if self.t == BOOL else self.work, self.t), self.t)
        far = _find_far(e) if e.limit else "false"
        wide, params = vector(self.t, self.lanes), ", ".join(f"{vector(t, self.lanes)} {x}" for x, t in names)
        pair = f"{{{wide}, i1}}"
        body = [
            *e.lines, f"%r0 = insertvalue {pair} poison, {wide} {value}, 0",
            f"%r1 = insertvalue {pair} %r0, i1 {far}, 1", f"ret {pair} %r1",
        ]  # fmt: skip
        name = f"f{hashlib.sha256(' '.join([params, *body]).encode()).hexdigest()[:20]}"
        self.w.needs |= e.needs
        # on one line, so that modules that are compiled together share it
        self.w.needs.add(f"define internal {pair} @{name}({params}) noinline {{ {' '.join(map(str.strip, body))} }}")
        return name

    def _widen(self, x: str, t: str, n: int) -> str:
        """Return a vector of all lanes, of which the last ones repeat an element if there are not as many."""
        if n == self.lanes:
            return x
        lanes = ", ".join(f"i32 {min(k, n - 1)}" for k in range(self.lanes))
        wide = vector(t, n)
        return self.w.new(f"shufflevector {wide} {x}, {wide} poison, {vector('i32', self.lanes)} <{lanes}>")

    def _read(self, x: Value, indices: list[tuple]) -> str:
        """Return elements of an operand as a vector."""
        w, n = self.w, len(indices)
        wide = vector(x.t, n)
        if isinstance(x, Number):
            return spread_lanes(w, x.t, x.name, n)
        if isinstance(x, Stored) and x.t != BOOL and _is_run(x, indices):
            return w.fresh(f"load {wide}, ptr {x.address(w, indices[0])}, align {BYTES[x.t]}")
        found = "poison"
        for k, index in enumerate(indices):
            found = w.new(f"insertelement {wide} {found}, {x.t} {element(w, x, index).name}, i64 {k}")
        return found

    def _store(self, value: str, indices: list[tuple], place: Stored) -> None:
        w, n, wide = self.w, len(indices), vector(place.t, self.lanes)
        if place.t == BOOL or not _is_run(place, indices):
            for k, index in enumerate(indices):
                w.write(place.t, w.new(f"extractelement {wide} {value}, i64 {k}"), place.address(w, index))
            return
        if n < self.lanes:
            lanes = ", ".join(f"i32 {k}" for k in range(n))
            value = w.new(f"shufflevector {wide} {value}, {wide} poison, {vector('i32', n)} <{lanes}>")
        w.do(f"store {vector(place.t, n)} {value}, ptr {place.address(w, indices[0])}, align {BYTES[place.t]}")
        w.loaded = {}


def _find_far(e: Emitter) -> str:
    """Return whether any argument is beyond a polynomial's bound."""
    far = [e.compare(">", e.call("fabs", x), constant(limit, F64)) for x, limit in e.limit]
    total, v = far[0], vector(BOOL, e.width)
    for x in far[1:]:
        total = e.new(f"or {v} {total}, {x}")
    name = f"@llvm.vector.reduce.or.v{e.width}i1"
    e.needs.add(f"declare i1 {name}({v})")
    return e.new(f"call i1 {name}({v} {total})")


def _is_run(x: Stored, indices: list[tuple]) -> bool:
    """Return whether elements lie one behind the other."""
    if x.is_contiguous():
        return True  # indices follow each other
    first: tuple[Index, ...] = indices[0]
    return x.strides[-1] == BYTES[x.t] and all(index[:-1] == first[:-1] for index in indices)
