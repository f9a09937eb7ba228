"""Innermost loops written for vectors: a few elements at a time, of which the last ones are masked.

LLVM can find the vectors in a scalar loop by itself. But that search, and the scalar copy of the loop that it leaves
for the last elements, are most of the time that a kernel takes to compile; and short rows run in that copy. Written
as vectors a kernel needs no optimisation, only code generation.

The body, which has no branches, comes from the same emitter as that of a scalar loop, with a width.
"""

from __future__ import annotations

from typing import Any

from fad.compile.codegen.llvm.builder import constant, splat, vector
from fad.compile.codegen.llvm.extremes import Extremes
from fad.compile.codegen.llvm.math.single import OF_SINGLE
from fad.compile.codegen.llvm.partial_vectors import (
    COUNTS_LEFT,
    SUFFIX,
    count_left,
    declare_masked_store,
    load_apart,
    load_left,
    masks_stores,
    store_apart,
    store_left,
    store_masked,
    store_some,
)
from fad.compile.ir.expressions import called_polynomials, is_heavy
from fad.compile.ir.types import BOOL, BYTES, F64, I32, I64
from fad.compile.machine.cpu import register_bytes


def width(kernel: Any) -> int:
    """Return how many elements a kernel's innermost loop computes at a time; 1 if it is left to LLVM."""
    size = register_bytes()
    if not size:
        return 1
    every = (*kernel.types, *kernel.node_types)
    bools = any(every[kernel.outs[n]] == BOOL for n in kernel.spread)
    bools = bools or any(t == BOOL and m == "s" for t, m in zip(kernel.types, kernel.modes, strict=True))
    bools = bools or (size < 64 and BOOL in every)
    if bools:  # bytes are not gathered, and masked only by the newer instructions
        return 1
    n = size // element_bytes(kernel)
    if masks_stores():  # of the long vectors, one is enough for a single polynomial and for elements that lie apart
        return n if kernel.apart or sum(is_heavy(node.template) for node in kernel.nodes) == 1 else 2 * n
    return 2 * n  # a polynomial waits for its own steps: two vectors side by side do not


def element_bytes(kernel: Any) -> int:
    """Return the bytes of the longest numbers that a kernel computes with; those of one number a row do not count."""
    rows = [t for t, mode in zip(kernel.types, kernel.modes, strict=True) if mode in "cs"]
    double = any(t in (F64, I64) for t in (*rows, *kernel.node_types))
    double = double or any(not called_polynomials(node.template) <= OF_SINGLE.keys() for node in kernel.nodes)
    return 8 if double else 4


class Lanes:
    """The vectors of one kernel: loads, stores and masks of `n` elements."""

    def __init__(self, w: Any, tag: str, n: int):
        self.w = w
        self.tag = tag
        self.n = n
        self.inner = w.k.rank - 1
        self.gathers = "s" in w.k.modes or bool(w.k.spread)  # where each element of a vector lies is asked then, too
        self.present = f"%m{tag}"  # the mask of those elements of a vector that there are
        self.apart = w.k.apart or not masks_stores()  # whether elements that lie apart are loaded one by one

    def need(self, name: str, out: str, args: str) -> str:
        self.w.e.needs.add(f"declare {out} @{name}({args})")
        return f"@{name}"

    def splats(self) -> list[str]:
        """Make vectors of the operands that are one number along a row."""
        lines = []
        for k, (t, mode) in enumerate(zip(self.w.k.types, self.w.k.modes, strict=True)):
            if mode in "u0":
                scalar = f"%v{k}" if mode == "u" else f"%v{self.tag}_{k}"
                name = self.w.e.renamed[scalar] = f"%V{self.tag}_{k}"
                lines += self.spread_out(name, t, scalar)
        return lines

    def spread_out(self, name: str, t: str, scalar: str) -> list[str]:
        v = vector(t, self.n)
        return [
            f"  {name}_e = insertelement {v} poison, {t} {scalar}, i64 0",
            f"  {name} = shufflevector {v} {name}_e, {v} poison, {vector('i32', self.n)} zeroinitializer",
        ]

    def begin_step(self, bound: str) -> list[str]:
        """Load the operands of a vector of elements from %j on, as many as there are before a bound."""
        if masks_stores() and self.gathers:
            return [*self.mask(self.present, bound), *(self.count_left(bound) if self.apart else ()), *self.loads("cs")]
        return [*self.count_left(bound), *self._load_rows(bound), *self.loads("s")]

    def mask(self, name: str, bound: str) -> list[str]:
        """Number the elements of a vector from %j on, and compare them with a bound."""
        tag, v = self.tag, vector(I64, self.n)
        return [
            *self.spread_out(f"%jj{tag}", I64, f"%j{tag}"), *self.spread_out(f"%nn{tag}", I64, bound),
            f"  %lane{tag} = add {v} %jj{tag}, <{', '.join(f'i64 {k}' for k in range(self.n))}>",
            f"  {name} = icmp ult {v} %lane{tag}, %nn{tag}",
        ]  # fmt: skip

    def count_left(self, bound: str) -> list[str]:
        self.w.e.needs.add(COUNTS_LEFT)
        return count_left(self.tag, bound, f"%j{self.tag}", self.n)

    def _load_rows(self, bound: str) -> list[str]:
        """Load elements that lie side by side, and find the mask: without one where a vector is full."""
        tag, sign = self.tag, I64 if element_bytes(self.w.k) == 8 else I32
        signs = vector(sign, self.n)
        whole, left, joined, truths = [], self.mask(f"%some{tag}", bound), [], []
        for k, t in self._operands("c"):
            name = f"%v{tag}_{k}"
            read, kind, ask = self._read(name, t)
            v = vector(kind, self.n)
            place, find = self._place(f"{name}_w", kind, f"%row{tag}_{k}", "")
            whole += [*find, f"  {name}_w = load {v}, ptr {place}, align {BYTES[t]}, !alias.scope !2"]
            left += self._load_masked(f"{name}_l", kind, f"%row{tag}_{k}", "", f"%some{tag}")
            joined.append(f"  {read} = phi {v} [{name}_w, %whole{tag}], [{name}_l, %left{tag}]")
            truths += ask
        return [
            f"  br i1 %full{tag}, label %whole{tag}, label %left{tag}",
            f"whole{tag}:", *whole, f"  br label %loaded{tag}",
            f"left{tag}:", *left, f"  %wide{tag} = sext {vector(BOOL, self.n)} %some{tag} to {signs}",
            f"  br label %loaded{tag}", f"loaded{tag}:", *joined,
            f"  %there{tag} = phi {signs} [{splat(sign, '-1', self.n)}, %whole{tag}], [%wide{tag}, %left{tag}]",
            f"  {self.present} = icmp slt {signs} %there{tag}, zeroinitializer", *truths,
        ]  # fmt: skip

    def _operands(self, modes: str) -> list[tuple[int, str]]:
        """Return the numbers and types of the operands that lie in one of some ways."""
        return [(k, t) for k, t in enumerate(self.w.k.types) if self.w.k.modes[k] in modes]

    def _read(self, name: str, t: str) -> tuple[str, str, list[str]]:
        """Return the name and type that a value is read as, and the line that makes truths of bytes."""
        if t != BOOL:
            return name, t, []
        return f"{name}_b", "i8", [f"  {name} = icmp ne {vector('i8', self.n)} {name}_b, zeroinitializer"]

    def loads(self, modes: str) -> list[str]:
        lines, tag = [], self.tag
        for k, t in self._operands(modes):
            stride = f"%t_{k}_{self.inner}" if self.w.k.modes[k] == "s" else ""
            lines += self.load(f"%v{tag}_{k}", t, f"%row{tag}_{k}", stride)
        return lines

    def load(self, name: str, t: str, row: str, stride: str) -> list[str]:
        loaded, kind, ask = self._read(name, t)
        if stride and self.apart:
            return [*self._load_all_or_some(loaded, kind, row, stride), *ask]
        return [*self._load_masked(loaded, kind, row, stride), *ask]

    def _load_masked(self, name: str, t: str, row: str, stride: str, where: str = "") -> list[str]:
        v, mask = vector(t, self.n), vector("i1", self.n)
        place, lines = self._place(name, t, row, stride)
        how, pointer, p = ("gather", vector("ptr", self.n), f"v{self.n}p0") if stride else ("load", "ptr", "p0")
        called = self.need(f"llvm.masked.{how}.v{self.n}{SUFFIX[t]}.{p}", v, f"{pointer}, i32, {mask}, {v}")
        given = f"{pointer} {place}, i32 {BYTES[t]}, {mask} {where or self.present}, {v} zeroinitializer"
        return [*lines, f"  {name} = call {v} {called}({given}), !alias.scope !2"]

    def _load_all_or_some(self, name: str, t: str, row: str, stride: str) -> list[str]:
        """Load elements that lie apart: all of a vector one by one, or those that are left."""
        tag, v, block, note = self.tag, vector(t, self.n), name.removeprefix("%"), ", !alias.scope !2"
        every, some = f"{name}_every", f"{name}_some"
        if masks_stores():
            rest = self._load_masked(some, t, row, stride)
        else:
            function, call = load_left(some, t, self.n, f"{name}_g", stride, f"%rest{tag}", note)
            self.w.e.needs.add(function)
            rest = [call]
        return [
            *self._find(name, row, stride), f"  br i1 %full{tag}, label %{block}_all, label %{block}_rest",
            f"{block}_all:", *load_apart(every, t, self.n, f"{name}_g", stride, note),
            f"  br label %{block}_end", f"{block}_rest:", *rest, f"  br label %{block}_end", f"{block}_end:",
            f"  {name} = phi {v} [{every}, %{block}_all], [{some}, %{block}_rest]",
        ]  # fmt: skip

    def _find(self, name: str, row: str, stride: str) -> list[str]:
        """Find where the elements of a vector begin in a row."""
        far = f"  {name}_far = mul i64 %j{self.tag}, {stride}"
        return [far, f"  {name}_g = getelementptr i8, ptr {row}, i64 {name}_far"]

    def _place(self, name: str, kind: str, row: str, stride: str) -> tuple[str, list[str]]:
        if not stride:
            return f"{name}_g", [f"  {name}_g = getelementptr {kind}, ptr {row}, i64 %j{self.tag}"]
        v = vector(I64, self.n)
        return f"{name}_g", [
            *self.spread_out(f"{name}_t", I64, stride), f"  {name}_o = mul {v} %lane{self.tag}, {name}_t",
            f"  {name}_g = getelementptr i8, ptr {row}, {v} {name}_o",
        ]  # fmt: skip

    def store(self, value: str, t: str, n: int) -> list[str]:
        """Store the n-th result's elements."""
        k, tag = self.w.k, self.tag
        number = len(k.modes) + n
        stride = f"%t_{number}_{self.inner}" if n in k.spread else ""
        kind, name, lines = ("i8" if t == BOOL else t), f"%w{tag}_{n}", []
        if t == BOOL:
            lines.append(f"  {name}_b = zext {vector(BOOL, self.n)} {value} to {vector(kind, self.n)}")
            value = f"{name}_b"
        row, note = f"%row{tag}_{number}", ", !noalias !2"
        if stride:
            some = self._store_all_or_some if self.apart else self._scatter
            return [*lines, *some(name, value, kind, row, stride, note)]
        place, more = self._place(name, kind, row, "")
        if masks_stores():
            self.w.e.needs.add(declare_masked_store(kind, self.n))
            return [*lines, *more, store_masked(value, kind, self.n, place, f"%m{tag}", note)]
        return [*lines, *more, *store_some(name.removeprefix("%"), value, kind, self.n, place, tag, note)]

    def _store_all_or_some(self, name: str, value: str, t: str, row: str, stride: str, note: str) -> list[str]:
        """Store elements apart: all of a vector one by one, or those that are left."""
        block, tag = name.removeprefix("%"), self.tag
        if masks_stores():
            rest = self._scatter(f"{name}_left", value, t, row, stride, note)
        else:
            function, call = store_left(value, t, self.n, f"{name}_g", stride, f"%rest{tag}", note)
            self.w.e.needs.add(function)
            rest = [call]
        return [
            *self._find(name, row, stride), f"  br i1 %full{tag}, label %{block}_all, label %{block}_rest",
            f"{block}_all:", *store_apart(f"{name}_every", value, t, self.n, f"{name}_g", stride, note),
            f"  br label %{block}_end", f"{block}_rest:", *rest, f"  br label %{block}_end", f"{block}_end:",
        ]  # fmt: skip

    def _scatter(self, name: str, value: str, t: str, row: str, stride: str, note: str) -> list[str]:
        """Store the elements that are left under a mask, apart."""
        v, pointers, mask = vector(t, self.n), vector("ptr", self.n), vector("i1", self.n)
        place, lines = self._place(name, t, row, stride)
        called = self.need(
            f"llvm.masked.scatter.v{self.n}{SUFFIX[t]}.v{self.n}p0", "void", f"{v}, {pointers}, i32, {mask}"
        )
        given = f"{v} {value}, {pointers} {place}, i32 {BYTES[t]}, {mask} %m{self.tag}"
        return [*lines, f"  call void {called}({given}){note}"]

    def combine(self, t: str, a: str, b: str) -> str:
        v = vector(t, self.n)
        if self.w.k.how == "add":
            return f"{'add' if t == I64 else 'fadd'} {v} {a}, {b}"
        called = self.need(f"llvm.{self.w.k.how}.v{self.n}{SUFFIX[t]}", v, f"{v}, {v}")
        return f"call {v} {called}({v} {a}, {v} {b})"

    def add_up(self, t: str, a: str) -> str:
        """Add up the lanes of a vector."""
        v = vector(t, self.n)
        if t == I64:
            return f"call {t} {self.need(f'llvm.vector.reduce.add.v{self.n}i64', t, v)}({v} {a})"
        called = self.need(f"llvm.vector.reduce.fadd.v{self.n}{SUFFIX[t]}", t, f"{t}, {v}")
        return f"call reassoc {t} {called}({t} {constant(-0.0, t)}, {v} {a})"

    def body(self) -> tuple[list[str], list[tuple[str, str]], str]:
        """Return the instructions of one step, the results' values, and the boolean of a bound passed, if any."""
        w, e, tag = self.w, self.w.e, self.tag
        lines, found = w.body(tag, loads=False)
        start = len(e.lines)
        far = [e.compare(">", e.call("fabs", x), constant(limit, F64)) for x, limit in e.limit if not e.slow]
        lines = lines + e.lines[start:]
        del e.lines[start:]
        values = [(e.operand(v, t), t) for v, t in found]
        if not far:
            return lines, values, ""
        v = vector(BOOL, self.n)
        called = self.need(f"llvm.vector.reduce.or.v{self.n}i1", BOOL, v)
        passed = far[0]
        for k, x in enumerate(far[1:]):
            lines.append(f"  %far{tag}_{k} = or {v} {passed}, {x}")
            passed = f"%far{tag}_{k}"
        lines += [
            f"  %hits{tag} = and {v} {passed}, %m{tag}", f"  %hit{tag} = call i1 {called}({v} %hits{tag})",
            f"  %passed{tag} = or i1 %bad_phi{tag}, %hit{tag}",
        ]  # fmt: skip
        return lines, values, f"%passed{tag}"


def _keep_bound(passed: str, tag: str) -> list[str]:
    """Remember behind a row that a bound was passed in it."""
    if not passed:
        return []
    return [
        f"  %wasbad{tag} = load i1, ptr %bad", f"  %nowbad{tag} = or i1 %wasbad{tag}, {passed}",
        f"  store i1 %nowbad{tag}, ptr %bad",
    ]  # fmt: skip


def plain_loop(w: Any, tag: str, n: int) -> list[str]:
    """Compute a row and store it, or add it to what is there."""
    k, lanes = w.k, Lanes(w, tag, n)
    lines = [f"  br label %pre{tag}", f"pre{tag}:", *lanes.splats()]
    body, values, passed = lanes.body()
    lines += [f"  br label %J{tag}", f"J{tag}:", f"  %j{tag} = phi i64 [0, %pre{tag}], [%jn{tag}, %K{tag}]"]
    if passed:
        lines.append(f"  %bad_phi{tag} = phi i1 [false, %pre{tag}], [{passed}, %K{tag}]")
    lines += [*lanes.begin_step(f"%n_{lanes.inner}"), *body]
    for m, (value, t) in enumerate(values):
        if k.summed >= 0 and m >= k.stored:
            old, v = f"%old{tag}_{m}", vector(t, n)
            lines += lanes.load(old, t, f"%row{tag}_{len(k.modes) + m}", "")
            lines += [
                f"  %first{tag}_{m} = icmp eq i64 %i{k.summed}{tag}, 0",
                f"  %base{tag}_{m} = select i1 %first{tag}_{m}, {v} {splat(t, w.neutral(t), n)}, {v} {old}",
                f"  %sum{tag}_{m} = {lanes.combine(t, f'%base{tag}_{m}', value)}",
            ]
            value = f"%sum{tag}_{m}"
        lines += lanes.store(value, t, m)
    lines += [
        f"  br label %K{tag}", f"K{tag}:", f"  %jn{tag} = add i64 %j{tag}, {n}",
        f"  %jq{tag} = icmp ult i64 %jn{tag}, %n_{lanes.inner}",
        f"  br i1 %jq{tag}, label %J{tag}, label %after{tag}", f"after{tag}:",
    ]  # fmt: skip
    return lines + _keep_bound(passed, tag)


def sum_loop(w: Any, tag: str, n: int, chunk: int, finish: Any) -> list[str]:
    """Reduce a row in chunks; ``finish(name, t)`` gives the lines that take a chunk's result into the whole's."""
    k, lanes = w.k, Lanes(w, tag, n)
    lines = [f"  br label %pre{tag}", f"pre{tag}:", *lanes.splats()]
    body, values, passed = lanes.body()
    sums = [(f"{tag}{m}", value, t) for m, (value, t) in enumerate(values) if m >= k.stored]
    extremes = {t: Extremes(k.how, t, n, lanes.need) for *_, t in sums} if k.how != "add" else {}
    last = f"%Z{sums[-1][0]}" if extremes else f"%D{tag}"  # the block behind a chunk
    lines += [
        f"  br label %C{tag}", f"C{tag}:", f"  %from{tag} = phi i64 [0, %pre{tag}], [%to{tag}, {last}]",
    ]  # fmt: skip
    for s, _, t in sums:
        zero = w.neutral(t)
        lines.append(f"  %total{s} = phi {t} [{zero}, %pre{tag}], [%total2{s}, {last}]")
        if k.how == "add" and t != I64:
            lines.append(f"  %comp{s} = phi {t} [{zero}, %pre{tag}], [%comp2{s}, {last}]")
    if passed:
        lines.append(f"  %bad_row{tag} = phi i1 [false, %pre{tag}], [{passed}, {last}]")
    lines += [
        f"  %far{tag} = add i64 %from{tag}, {chunk}", f"  %over{tag} = icmp ugt i64 %far{tag}, %n_{lanes.inner}",
        f"  %to{tag} = select i1 %over{tag}, i64 %n_{lanes.inner}, i64 %far{tag}", f"  br label %J{tag}", f"J{tag}:",
        f"  %j{tag} = phi i64 [%from{tag}, %C{tag}], [%jn{tag}, %K{tag}]",
    ]  # fmt: skip
    for s, _, t in sums:
        v = vector(t, n)
        lines.append(f"  %acc{s} = phi {v} [{splat(t, w.neutral(t), n)}, %C{tag}], [%next{s}, %K{tag}]")
        if extremes:
            lines += extremes[t].begin(s, f"%C{tag}", f"%K{tag}")
    if passed:
        lines.append(f"  %bad_phi{tag} = phi i1 [%bad_row{tag}, %C{tag}], [{passed}, %K{tag}]")
    lines += [*lanes.begin_step(f"%to{tag}"), *body]
    for m, (value, t) in enumerate(values[: k.stored]):
        lines += lanes.store(value, t, m)
    for s, value, t in sums:
        v = vector(t, n)
        masked = f"select {vector(BOOL, n)} %m{tag}, {v} {value}, {v} {splat(t, w.neutral(t), n)}"
        lines.append(f"  %in{s} = {masked}")
        if extremes:
            lines += extremes[t].step(s, f"%in{s}")
        else:
            lines.append(f"  %next{s} = {lanes.combine(t, f'%acc{s}', f'%in{s}')}")
    lines += [
        f"  br label %K{tag}", f"K{tag}:", f"  %jn{tag} = add i64 %j{tag}, {n}",
        f"  %jq{tag} = icmp ult i64 %jn{tag}, %to{tag}",
        f"  br i1 %jq{tag}, label %J{tag}, label %D{tag}", f"D{tag}:",
    ]  # fmt: skip
    end = f"%D{tag}"
    for s, _, t in sums:
        if extremes:
            lines += extremes[t].finish(s, end)
            end = f"%Z{s}"
        else:
            lines.append(f"  %acc2{s} = {lanes.add_up(t, f'%next{s}')}")
        lines += finish(t, s)
    lines += [
        f"  %cq{tag} = icmp ult i64 %to{tag}, %n_{lanes.inner}", f"  br i1 %cq{tag}, label %C{tag}, label %after{tag}",
        f"after{tag}:",
    ]  # fmt: skip
    for m, (s, _, t) in enumerate(sums):
        lines.append(f"  store {t} %total2{s}, ptr %row{tag}_{len(k.modes) + k.stored + m}, !noalias !2")
    return lines + _keep_bound(passed, tag)
