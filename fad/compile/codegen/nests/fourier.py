"""Fourier transforms within a loop nest, of real and imaginary parts that lie apart: Stockham's passes, in vectors.

A pass with radix r reads r places that are as far apart as possible and writes their transforms beside each other, so
that the last pass leaves all frequencies in their order (Stockham's algorithm, as in Van Loan, Computational Frameworks
for the Fast Fourier Transform, 1992, section 1.7). Neighbours are read together, and written together.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np

from fad.compile.codegen.llvm.builder import Emitter, constant, vector
from fad.compile.codegen.nests.arrays import loops, put, spread_lanes
from fad.compile.codegen.nests.body import Body
from fad.compile.codegen.nests.values import Stored, Value, make_view
from fad.compile.codegen.nests.writer import Index, TooMuch, Writer
from fad.compile.ir.lowered_ops import find_radices
from fad.compile.ir.types import BYTES, F32, F64
from fad.compile.machine.cpu import register_bytes
from fad.core.programs.graph import Equation

Pair = tuple[str, str]  # the parts of a complex number, or of a vector of them


def emit_fourier(body: Body, eq: Equation) -> None:
    """Write the transforms along the last axis of an array."""
    w, t, shape = body.w, body.type(eq.outs[0]), body.shape(eq.outs[0])
    *lead, n = shape
    radices = find_radices(n)
    operands = [body.operand(i, shape) for i in eq.ins]
    places = [body.place(o) for o in eq.outs]
    written = places[0].buffers | places[1].buffers
    if t not in (F64, F32) or radices is None or any(getattr(x, "buffers", frozenset()) & written for x in operands):
        raise TooMuch("a Fourier transform of this length or dtype has no machine code")
    between = [[body.memory.new((n,), t) for _ in "ri"] for _ in radices[1:3]]
    passes = _plan_passes(body, radices, n, t, 1 if eq.params["inverse"] else -1, eq.params["scale"])
    with loops(w, tuple(lead)) as at:
        source = [_read_row(body, x, at) for x in operands]
        for k, one in enumerate(passes):
            target = between[k % 2] if k + 1 < len(passes) else [_row(w, place, at) for place in places]
            _Writing(w, t, one, source, target).write()
            source = target
    body.values.update(zip(eq.outs, places, strict=True))


def _row(w: Writer, x: Value, at: tuple) -> Value:
    n = x.shape[-1]  # type: ignore[union-attr]
    return make_view(w, x, (n,), [*[("at", i) for i in at], ("axis", 0, 0, 1)])


def _read_row(body: Body, x: Value, at: tuple) -> Stored:
    """Return a row of an operand, in memory and without gaps."""
    row = _row(body.w, x, at)
    if isinstance(row, Stored) and row.strides == (BYTES[row.t],):
        return row
    copy = body.memory.new(row.shape, row.t)  # type: ignore[union-attr]
    put(body.w, row, copy)
    return copy


# --- passes ----------------------------------------------------------------------------------------------------------


class Pass(NamedTuple):
    """One pass: `groups` of `stride` neighbours, each of which is one of `radix` parts of the array."""

    radix: int
    groups: int
    stride: int
    lanes: int
    sign: int
    scale: float
    turns: list  # real and imaginary parts of factors for parts 1, 2 ..., by group or by neighbour; none in a last pass


def _plan_passes(body: Body, radices: list[int], n: int, t: str, sign: int, scale: float) -> list[Pass]:
    passes, left, stride = [], n, 1
    for k, r in enumerate(radices):
        count = left // r
        lanes = _count_lanes(stride, count, t)
        turns = _find_turns(body, r, left, stride if stride < lanes else 1, sign, t) if count > 1 else []
        passes.append(Pass(r, count, stride, lanes, sign, scale if k + 1 == len(radices) else 1.0, turns))
        left, stride = count, stride * r
    return passes


def _count_lanes(stride: int, count: int, t: str) -> int:
    """Return how many neighbours are computed at a time: whole groups, or a whole part of a group."""
    lanes = max(register_bytes(), 16) // BYTES[t]
    while lanes > 1 and ((stride * count) % lanes or (stride % lanes and lanes % stride)):
        lanes //= 2
    return lanes


def _find_turns(body: Body, r: int, left: int, repeats: int, sign: int, t: str) -> list:
    powers = np.arange(1, r)[:, None] * np.repeat(np.arange(left // r), repeats)
    factors = np.exp(sign * 2j * np.pi * powers / left)
    dtype = np.float64 if t == F64 else np.float32
    return [body.memory.constant(np.ascontiguousarray(part, dtype)) for part in (factors.real, factors.imag)]


class _Writing:
    """Writes a pass from two arrays to two others."""

    def __init__(self, w: Writer, t: str, plan: Pass, source: list, target: list):
        self.w, self.t, self.plan, self.source, self.target = w, t, plan, source, target
        self.wide = vector(t, plan.lanes) if plan.lanes > 1 else t

    def write(self) -> None:
        w, (r, count, stride, lanes, *_) = self.w, self.plan
        with ExitStack() as stack:
            loop = lambda n: 0 if n == 1 else stack.enter_context(w.loop(n))
            if stride < lanes:
                start = w.times(loop(count * stride // lanes), lanes)
                self._write_vector(start, start, w.times(start, r))
                return
            group = loop(count)
            inside = w.times(loop(stride // lanes), lanes)
            start, end = (w.plus(inside, w.times(group, stride * k)) for k in (1, r))
            self._write_vector(start, group, end)

    def _write_vector(self, start: Index, turn: Index, end: Index) -> None:
        """Write what is read from a place on to another one; `turn` says where the factors are."""
        r, count, stride, *_ = self.plan
        self.w.fresh_names += 1
        self.e = Emitter(f"q{self.w.fresh_names}_", self.plan.lanes)
        self.e.lines, self.e.needs = self.w.lines, self.w.needs
        found = [self._load(self.w.plus(start, k * count * stride)) for k in range(r)]
        found = self._transform(found)
        if self.plan.turns:
            found = [found[0], *[self._turn(found[j], j, turn) for j in range(1, r)]]
        if self.plan.scale != 1.0:
            scale = constant(self.plan.scale, self.t)
            found = [(self.e.mul(x, scale, self.t), self.e.mul(y, scale, self.t)) for x, y in found]
        for part, place in enumerate(self.target):
            parts = [pair[part] for pair in found]
            if stride < self.plan.lanes:
                self._store(self._interleave(parts), place, end, r * self.plan.lanes)
            else:
                for j, x in enumerate(parts):
                    self._store(x, place, self.w.plus(end, j * stride), self.plan.lanes)
        self.w.loaded = {}

    # --- memory -------------------------------------------------------------------------------------------------------

    def _load(self, at: Index) -> Pair:
        places = [x.address(self.w, (at,)) for x in self.source]
        re, im = [self.w.fresh(f"load {self.wide}, ptr {place}, align {BYTES[self.t]}") for place in places]
        return re, im

    def _store(self, x: str, place: Stored, at: Index, n: int) -> None:
        wide = vector(self.t, n) if n > 1 else self.t
        self.w.do(f"store {wide} {x}, ptr {place.address(self.w, (at,))}, align {BYTES[self.t]}")

    def _interleave(self, parts: list[str]) -> str:
        """Return what belongs beside each other, of all parts, as one vector."""
        r, stride, lanes = self.plan.radix, self.plan.stride, self.plan.lanes
        joined, size = self._join(parts)
        order = []
        for k in range(r * lanes):
            group, rest = divmod(k, r * stride)
            part, place = divmod(rest, stride)
            order.append(part * lanes + group * stride + place)
        mask = f"{vector('i32', len(order))} <{', '.join(f'i32 {k}' for k in order)}>"
        v = vector(self.t, size)
        return self.w.new(f"shufflevector {v} {joined}, {v} poison, {mask}")

    def _join(self, parts: list[str]) -> tuple[str, int]:
        size = self.plan.lanes
        while len(parts) > 1:
            parts = [*parts, "poison"] if len(parts) % 2 else parts
            v, every = vector(self.t, size), ", ".join(f"i32 {k}" for k in range(2 * size))
            mask = f"{vector('i32', 2 * size)} <{every}>"
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.w.new(f"shufflevector {v} {a}, {v} {b}, {mask}") for a, b in pairs]
            size *= 2
        return parts[0], size

    # --- arithmetic ---------------------------------------------------------------------------------------------------

    def _turn(self, x: Pair, j: int, at: Index) -> Pair:
        """Multiply by the factor of part j."""
        factors = []
        for table in self.plan.turns:
            place = table.address(self.w, (j - 1, at))
            if self.plan.stride < self.plan.lanes:
                factors.append(self.w.fresh(f"load {self.wide}, ptr {place}, align {BYTES[self.t]}"))
            else:
                number = self.w.fresh(f"load {self.t}, ptr {place}")
                lanes = self.plan.lanes
                factors.append(spread_lanes(self.w, self.t, number, lanes) if lanes > 1 else number)
        (a, b), (c, d) = x, factors
        e, t = self.e, self.t
        re = e.call("fma", a, c, e.neg(e.mul(b, d, t), t), t=t)
        return re, e.call("fma", a, d, e.mul(b, c, t), t=t)

    def _add(self, x: Pair, y: Pair) -> Pair:
        return self.e.add(x[0], y[0], self.t), self.e.add(x[1], y[1], self.t)

    def _subtract(self, x: Pair, y: Pair) -> Pair:
        return self.e.sub(x[0], y[0], self.t), self.e.sub(x[1], y[1], self.t)

    def _transform(self, x: list[Pair]) -> list[Pair]:
        """Return the transform of a few numbers."""
        if len(x) == 2:
            return [self._add(*x), self._subtract(*x)]
        if len(x) == 4:
            even, odd = self._transform(x[::2]), self._transform(x[1::2])
            below, above = self._quarter(even[1], odd[1])
            return [self._add(even[0], odd[0]), below, self._subtract(even[0], odd[0]), above]
        return self._transform_odd(x)

    def _quarter(self, x: Pair, y: Pair) -> tuple[Pair, Pair]:
        """Return x + i y and x - i y for an inverse transform, and the two exchanged for the other."""
        e, t = self.e, self.t
        plus = e.sub(x[0], y[1], t), e.add(x[1], y[0], t)
        minus = e.add(x[0], y[1], t), e.sub(x[1], y[0], t)
        return (plus, minus) if self.plan.sign > 0 else (minus, plus)

    def _transform_odd(self, x: list[Pair]) -> list[Pair]:
        """Return the transform of an odd number of numbers: frequencies j and r - j differ in the sign of one sum."""
        r, e, t = len(x), self.e, self.t
        half = range(1, (r + 1) // 2)
        sums = {k: self._add(x[k], x[r - k]) for k in half}
        differences = {k: self._subtract(x[k], x[r - k]) for k in half}
        found = [x[0]] * r
        for k in half:
            found[0] = self._add(found[0], sums[k])
        for j in half:
            even, odd = x[0], x[0]
            for k in half:
                angle = 2 * math.pi * (j * k % r) / r
                cosine, sine = constant(math.cos(angle), t), constant(math.sin(angle), t)
                (a, b), (c, d) = sums[k], differences[k]
                even = e.call("fma", a, cosine, even[0], t=t), e.call("fma", b, cosine, even[1], t=t)
                turned = e.mul(c, sine, t), e.mul(d, sine, t)
                odd = turned if k == 1 else self._add(odd, turned)
            found[j], found[r - j] = self._quarter(even, odd)
        return found
