"""Products of matrices whose rows and columns lie anywhere: what a convolution is, with no window copied out.

Where an element lies is a sum of offsets, one per index, and the offsets stand in tables. Only along the innermost
index, that of a vector's elements, arrays are contiguous. Two forms do for a convolution and its derivatives:

    product  C[q, m, v] = sum over k of A[q, m, k] B[q, k, v]
    dots     C[g, m, j] = sum over q, v of A[g, m, q, v] B[g, j, q, v]
"""

from __future__ import annotations

from fad.compile.codegen.llvm.builder import constant, vector
from fad.compile.codegen.llvm.module import Module
from fad.compile.ir.types import BYTES, F64
from fad.compile.machine.cpu import register_bytes

# Words of a row. A table holds the offsets of A, B and C, of those that its index belongs to, one after the other.
PRODUCT = ("A", "B", "C", "Tq", "Q", "Tm", "M", "Tk", "K", "V")
DOTS = ("A", "B", "C", "Tg", "G", "Tm", "M", "Tj", "J", "Tq", "Q", "V")


def _words(names: tuple) -> list[str]:
    lines = []
    for k, name in enumerate(names):
        kind = "ptr" if name in ("A", "B", "C") or name.startswith("T") else "i64"
        lines += [f"  %w{name} = getelementptr i64, ptr %W, i64 {k}", f"  %{name} = load {kind}, ptr %w{name}"]
    return lines


def _entry(table: str, index: str, names: tuple, tag: str = "") -> list[str]:
    """Read an entry of a table: ``%names[k]tag`` are its offsets."""
    lines = [f"  %e{table}{tag} = mul i64 {index}, {len(names)}"]
    lines.append(f"  %p{table}{tag}0 = getelementptr i64, ptr %{table}, i64 %e{table}{tag}")
    for k, name in enumerate(names):
        at = f"%p{table}{tag}{k}"
        if k:
            lines.append(f"  {at} = getelementptr i64, ptr %p{table}{tag}0, i64 {k}")
        lines.append(f"  %{name}{tag} = load i64, ptr {at}")
    return lines


def _offset_pointer(new: str, base: str, offset: str) -> str:
    return f"  %{new} = getelementptr i8, ptr %{base}, i64 %{offset}"


class _Vectors:
    """The vector instructions of one type."""

    def __init__(self, t: str):
        self.t, self.size = t, BYTES[t]
        self.n = register_bytes() // self.size
        self.v, self.m = vector(t, self.n), vector("i1", self.n)
        suffix = f"v{self.n}{'f64' if t == F64 else 'f32'}"
        self.load, self.store = f"@llvm.masked.load.{suffix}.p0", f"@llvm.masked.store.{suffix}.p0"
        self.fma, self.sum = f"@llvm.fma.{suffix}", f"@llvm.vector.reduce.fadd.{suffix}"

    def declare(self) -> list[str]:
        v, m = self.v, self.m
        return [
            f"declare {v} {self.load}(ptr, i32, {m}, {v})", f"declare void {self.store}({v}, ptr, i32, {m})",
            f"declare {v} {self.fma}({v}, {v}, {v})", f"declare {self.t} {self.sum}({self.t}, {v})",
            "declare i64 @llvm.umin.i64(i64, i64)",
        ]  # fmt: skip

    def mask(self, at: str, tag: str) -> list[str]:
        """Set the mask of the elements from `at` on that are below V."""
        v, zero = vector("i64", self.n), f"{vector('i32', self.n)} zeroinitializer"
        return [
            f"  %left{tag} = sub i64 %V, {at}", f"  %le{tag} = insertelement {v} poison, i64 %left{tag}, i64 0",
            f"  %lv{tag} = shufflevector {v} %le{tag}, {v} poison, {zero}",
            f"  %mask{tag} = icmp sgt {v} %lv{tag}, <{', '.join(f'i64 {k}' for k in range(self.n))}>",
        ]  # fmt: skip

    def read(self, name: str, at: str, tag: str) -> str:
        mask = f"i32 {self.size}, {self.m} %mask{tag}"
        return f"  %{name} = call {self.v} {self.load}(ptr %{at}, {mask}, {self.v} zeroinitializer)"

    def spread(self, name: str, number: str) -> list[str]:
        zero = f"{vector('i32', self.n)} zeroinitializer"
        return [
            f"  %{name}e = insertelement {self.v} poison, {self.t} %{number}, i64 0",
            f"  %{name} = shufflevector {self.v} %{name}e, {self.v} poison, {zero}",
        ]

    def multiply(self, name: str, a: str, b: str, total: str) -> str:
        return f"  %{name} = call {self.v} {self.fma}({self.v} %{a}, {self.v} %{b}, {self.v} %{total})"


def _next(i: str, more: str, bound: str, again: str, out: str, step: int = 1) -> list[str]:
    return [
        f"  %{more} = add i64 %{i}, {step}", f"  %{more}q = icmp ult i64 %{more}, %{bound}",
        f"  br i1 %{more}q, label %{again}, label %{out}",
    ]  # fmt: skip


def product_name(t: str, rows: int, columns: int) -> str:
    return f"windows{rows}x{columns}_{t}"


def product_module(t: str, rows: int, columns: int) -> Module:
    """Return the product in blocks of some rows and some vectors of columns; the last block repeats the last row."""
    x = _Vectors(t)
    block = [(r, c) for r in range(rows) for c in range(columns)]
    lines = [f"define i32 @{product_name(t, rows, columns)}(ptr %W) {{", "entry:", *_words(PRODUCT)]
    lines += ["  %last = sub i64 %M, 1", "  %none = icmp eq i64 %K, 0", "  br label %q"]
    lines += ["q:", "  %iq = phi i64 [0, %entry], [%iq1, %qe]", *_entry("Tq", "%iq", ("aq", "bq", "cq"))]
    lines += [
        _offset_pointer("Aq", "A", "aq"),
        _offset_pointer("Bq", "B", "bq"),
        _offset_pointer("Cq", "C", "cq"),
        "  br label %v",
    ]
    lines += ["v:", "  %iv = phi i64 [0, %q], [%iv1, %ve]"]
    for c in range(columns):
        lines += [f"  %iv_{c} = add i64 %iv, {c * x.n}", *x.mask(f"%iv_{c}", str(c))]
    lines += [f"  %Bv = getelementptr {t}, ptr %Bq, i64 %iv", f"  %Cv = getelementptr {t}, ptr %Cq, i64 %iv"]
    lines += ["  br label %m", "m:", "  %im = phi i64 [0, %v], [%im1, %store]"]
    for r in range(rows):
        lines += [f"  %u{r} = add i64 %im, {r}", f"  %row{r} = call i64 @llvm.umin.i64(i64 %u{r}, i64 %last)"]
        lines += _entry("Tm", f"%row{r}", ("am", "cm"), f"_{r}")
        lines += [_offset_pointer(f"A{r}", "Aq", f"am_{r}"), _offset_pointer(f"C{r}", "Cv", f"cm_{r}")]
    lines += ["  br i1 %none, label %store, label %k", "k:", "  %ik = phi i64 [0, %m], [%ik1, %k]"]
    lines += [f"  %s{r}_{c} = phi {x.v} [zeroinitializer, %m], [%n{r}_{c}, %k]" for r, c in block]
    lines += [*_entry("Tk", "%ik", ("ak", "bk")), _offset_pointer("Bk", "Bv", "bk")]
    for c in range(columns):
        lines += [f"  %Bk{c} = getelementptr i8, ptr %Bk, i64 {c * x.n * x.size}", x.read(f"b{c}", f"Bk{c}", str(c))]
    for r in range(rows):
        lines += [
            _offset_pointer(f"Ak{r}", f"A{r}", "ak"),
            f"  %a{r} = load {t}, ptr %Ak{r}",
            *x.spread(f"x{r}", f"a{r}"),
        ]
        lines += [x.multiply(f"n{r}_{c}", f"x{r}", f"b{c}", f"s{r}_{c}") for c in range(columns)]
    lines += [*_next("ik", "ik1", "K", "k", "store"), "store:"]
    lines += [f"  %t{r}_{c} = phi {x.v} [zeroinitializer, %m], [%n{r}_{c}, %k]" for r, c in block]
    for r, c in block:
        lines += [
            f"  %C{r}_{c} = getelementptr i8, ptr %C{r}, i64 {c * x.n * x.size}",
            f"  call void {x.store}({x.v} %t{r}_{c}, ptr %C{r}_{c}, i32 {x.size}, {x.m} %mask{c})",
        ]
    lines += [*_next("im", "im1", "M", "m", "ve", rows), "ve:", *_next("iv", "iv1", "V", "v", "qe", columns * x.n)]
    lines += ["qe:", *_next("iq", "iq1", "Q", "q", "done"), "done:", "  ret i32 0", "}", *x.declare(), ""]
    return Module("\n".join(lines))


def dots_name(t: str, rows: int, columns: int) -> str:
    return f"windows_dots{rows}x{columns}_{t}"


def dots_module(t: str, rows: int, columns: int) -> Module:
    """Return the sums of products in blocks of some rows of A and some of B; the last blocks repeat the last row."""
    x = _Vectors(t)
    block = [(r, c) for r in range(rows) for c in range(columns)]
    lines = [f"define i32 @{dots_name(t, rows, columns)}(ptr %W) {{", "entry:", *_words(DOTS)]
    lines += [f"  %totals = alloca {x.v}, i64 {len(block)}", f"  %places = alloca ptr, i64 {len(block)}"]
    lines += ["  %lastm = sub i64 %M, 1", "  %lastj = sub i64 %J, 1", "  br label %g"]
    lines += ["g:", "  %ig = phi i64 [0, %entry], [%ig1, %ge]", *_entry("Tg", "%ig", ("ag", "bg", "cg"))]
    lines += [
        _offset_pointer("Ag", "A", "ag"),
        _offset_pointer("Bg", "B", "bg"),
        _offset_pointer("Cg", "C", "cg"),
        "  br label %m",
    ]
    for i, count, out, side, names in (("m", rows, "g", "A", ("am", "cm")), ("j", columns, "m", "B", ("bj", "cj"))):
        lines += [f"{i}:", f"  %i{i} = phi i64 [0, %{out}], [%i{i}1, %{i}e]"]
        for r in range(count):
            lines += [f"  %u{i}{r} = add i64 %i{i}, {r}"]
            lines += [f"  %row{i}{r} = call i64 @llvm.umin.i64(i64 %u{i}{r}, i64 %last{i})"]
            lines += _entry(f"T{i}", f"%row{i}{r}", names, f"_{r}")
            lines.append(_offset_pointer(f"{side}{i}{r}", f"{side}g", f"{names[0]}_{r}"))
        lines += [f"  br label %{'j' if i == 'm' else 'q'}"]
    lines += ["q:", "  %iq = phi i64 [0, %j], [%iq1, %qe]"]
    lines += [f"  %q{r}_{c} = phi {x.v} [zeroinitializer, %j], [%n{r}_{c}, %qe]" for r, c in block]
    lines += [*_entry("Tq", "%iq", ("aq", "bq")), "  br label %v", "v:", "  %iv = phi i64 [0, %q], [%iv1, %v]"]
    lines += [f"  %s{r}_{c} = phi {x.v} [%q{r}_{c}, %q], [%n{r}_{c}, %v]" for r, c in block]
    lines += [*x.mask("%iv", ""), f"  %ov = mul i64 %iv, {x.size}"]
    lines += ["  %oa = add i64 %aq, %ov", "  %ob = add i64 %bq, %ov"]
    for c in range(columns):
        lines += [_offset_pointer(f"Bv{c}", f"Bj{c}", "ob"), x.read(f"b{c}", f"Bv{c}", "")]
    for r in range(rows):
        lines += [_offset_pointer(f"Av{r}", f"Am{r}", "oa"), x.read(f"a{r}", f"Av{r}", "")]
        lines += [x.multiply(f"n{r}_{c}", f"a{r}", f"b{c}", f"s{r}_{c}") for c in range(columns)]
    lines += [*_next("iv", "iv1", "V", "v", "qe", x.n), "qe:", *_next("iq", "iq1", "Q", "q", "sums"), "sums:"]
    for k, (r, c) in enumerate(block):
        lines += [
            f"  %kt{k} = getelementptr {x.v}, ptr %totals, i64 {k}", f"  store {x.v} %n{r}_{c}, ptr %kt{k}",
            f"  %oc{k} = add i64 %cm_{r}, %cj_{c}", _offset_pointer(f"C{k}", "Cg", f"oc{k}"),
            f"  %kp{k} = getelementptr ptr, ptr %places, i64 {k}", f"  store ptr %C{k}, ptr %kp{k}",
        ]  # fmt: skip
    lines += [
        "  br label %t", "t:", "  %it = phi i64 [0, %sums], [%it1, %t]",
        f"  %kt = getelementptr {x.v}, ptr %totals, i64 %it", f"  %total = load {x.v}, ptr %kt",
        f"  %number = call reassoc {t} {x.sum}({t} {constant(-0.0, t)}, {x.v} %total)",
        "  %kp = getelementptr ptr, ptr %places, i64 %it", "  %place = load ptr, ptr %kp",
        f"  store {t} %number, ptr %place", "  %it1 = add i64 %it, 1", f"  %it1q = icmp ult i64 %it1, {len(block)}",
        "  br i1 %it1q, label %t, label %je", "je:",
    ]  # fmt: skip
    lines += [*_next("ij", "ij1", "J", "j", "me", columns), "me:", *_next("im", "im1", "M", "m", "ge", rows)]
    lines += ["ge:", *_next("ig", "ig1", "G", "g", "done"), "done:", "  ret i32 0", "}", *x.declare(), ""]
    return Module("\n".join(lines))
