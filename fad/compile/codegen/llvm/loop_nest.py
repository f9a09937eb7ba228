"""Kernels: one loop nest around a fused expression, with shapes and strides given at run time.

A kernel takes one pointer to a row of 64-bit words: the extents, outermost first, and then for every operand and result
its address and the strides (in bytes) that are not known from its mode. So one kernel serves every shape.
"""

from __future__ import annotations

import math

from fad.compile.codegen.llvm.builder import CannotWiden, Emitter, constant
from fad.compile.codegen.llvm.expressions import emit
from fad.compile.codegen.llvm.module import SCALAR, Module
from fad.compile.codegen.llvm.simd import plain_loop, sum_loop, width
from fad.compile.ir.kernel import Kernel, Node, facts
from fad.compile.ir.types import BOOL, F64, I64

CHUNK = 1024  # elements that a sum adds up before the partial sums are added with compensation


def _memory(t: str) -> str:
    return "i8" if t == BOOL else t


class _Writer:
    def __init__(self, kernel: Kernel, slow: bool, width: int = 1):
        self.k = kernel
        self.width = width
        self.e = Emitter("u" if slow else "t", width)
        self.e.slow = slow
        self.words = {w: i for i, w in enumerate(kernel.words())}
        self.lines: list[str] = []

    def neutral(self, t: str) -> str:
        """Return what a reduction begins with."""
        return constant({"add": 0.0, "maximum": -math.inf, "minimum": math.inf}[self.k.how], t)

    def entry(self) -> list[str]:
        lines = []
        for key, i in self.words.items():
            name = "_".join(map(str, key))
            lines.append(f"  %a_{name} = getelementptr i64, ptr %A, i64 {i}")
            lines.append(f"  %{name} = load {'ptr' if key[0] == 'p' else 'i64'}, ptr %a_{name}, !alias.scope !2")
        for k, mode in enumerate(self.k.modes):
            if mode == "u":
                lines += self.load(k, f"%p_{k}", f"%v{k}")
        return lines

    def load(self, k: int, pointer: str, name: str) -> list[str]:
        t = self.k.types[k]
        if t == BOOL:
            return [
                f"  {name}_b = load i8, ptr {pointer}, !alias.scope !2",
                f"  {name} = icmp ne i8 {name}_b, 0",
            ]
        return [f"  {name} = load {t}, ptr {pointer}, !alias.scope !2"]

    def row(self, k: int, tag: str) -> list[str]:
        """Compute the address of the row that the innermost loop runs over."""
        before, lines = f"%p_{k}", []
        for d in range(self.k.rank - 1):
            if ("t", k, d) in self.words:
                lines.append(f"  %o{tag}_{k}_{d} = mul i64 %i{d}{tag}, %t_{k}_{d}")
                lines.append(f"  %r{tag}_{k}_{d} = getelementptr i8, ptr {before}, i64 %o{tag}_{k}_{d}")
                before = f"%r{tag}_{k}_{d}"
        lines.append(f"  %row{tag}_{k} = getelementptr i8, ptr {before}, i64 0")
        return lines

    def body(self, tag: str, loads: bool = True) -> tuple[list[str], list[tuple[str, str]]]:
        """Return the instructions of one innermost step, and the values and types of the results."""
        k, e = self.k, self.e
        inner = k.rank - 1
        start = len(e.lines)
        names = []
        loaded: list[str] = []
        for n, (t, mode) in enumerate(zip(k.types, k.modes, strict=True)):
            names.append((f"%v{n}" if mode == "u" else f"%v{tag}_{n}", t))
            if not loads:
                continue
            if mode == "c":
                loaded.append(f"  %g{tag}_{n} = getelementptr {_memory(t)}, ptr %row{tag}_{n}, i64 %j{tag}")
            elif mode == "s":
                loaded.append(f"  %s{tag}_{n} = mul i64 %j{tag}, %t_{n}_{inner}")
                loaded.append(f"  %g{tag}_{n} = getelementptr i8, ptr %row{tag}_{n}, i64 %s{tag}_{n}")
            if mode in "cs":
                loaded += self.load(n, f"%g{tag}_{n}", f"%v{tag}_{n}")
        for node, t in zip(k.nodes, k.node_types, strict=True):
            operands = [names[a] for a in node.args]
            value = emit(e, node.template, operands, node.work, node.selects)
            names.append((e.cast(value, _natural(node, t), t), t))
        lines = loaded + e.lines[start:]
        del e.lines[start:]
        return lines, [names[o] for o in k.outs]


def _natural(node: Node, out: str) -> str:
    """Return the type of a template's value: the working type, but a boolean for comparisons."""
    return BOOL if out == BOOL else node.work


def _hoist(w: _Writer, tag: str) -> list[str]:
    lines = []
    for n, mode in enumerate(w.k.modes):
        if mode == "0":
            lines += w.load(n, f"%row{tag}_{n}", f"%v{tag}_{n}")
    return lines


def kernel_module(kernel: Kernel) -> Module:
    """Return the LLVM module of one kernel, as text: in vectors where they can be written, or a loop of scalars."""
    n = width(kernel)
    if n > 1:
        try:
            return Module(_text(kernel, n))
        except CannotWiden:
            pass
    return Module(_text(kernel, 1), SCALAR)


def _text(kernel: Kernel, n: int) -> str:
    fast = _Writer(kernel, slow=False, width=n)
    nest = _nest(fast, "f")
    limited = bool(fast.e.limit)
    parts = [f"define i32 @{facts(kernel)[0]}(ptr noalias %A) {{", "entry:", *fast.entry()]
    if limited:
        parts.append("  %bad = alloca i1\n  store i1 false, ptr %bad")
    parts += nest
    needs = set(fast.e.needs)
    if limited:
        slow = _Writer(kernel, slow=True)
        parts += ["  %isbad = load i1, ptr %bad", "  br i1 %isbad, label %again, label %done", "again:"]
        parts += _nest(slow, "s")
        parts += ["  br label %done", "done:"]
        needs |= slow.e.needs
    parts += ["  ret i32 0", "}"]
    meta = ["!0 = !{!0}", "!1 = !{!1, !0}", "!2 = !{!1}"]
    return "\n".join([*sorted(needs), *parts, *meta, ""])


def _nest(w: _Writer, tag: str) -> list[str]:
    k = w.k
    outer = k.rank - 1
    operands = [n for n, m in enumerate(k.modes) if m != "u"]
    results = range(len(k.modes), len(k.modes) + len(k.outs))
    lines = []
    before = "here" + tag
    lines += [f"  br label %{before}", f"{before}:"]
    for d in range(outer):
        lines += [
            f"  br label %L{d}{tag}", f"L{d}{tag}:",
            f"  %i{d}{tag} = phi i64 [0, %{before}], [%i{d}n{tag}, %E{d}{tag}]",
        ]  # fmt: skip
        before = f"L{d}{tag}"
    for n in (*operands, *results):
        lines += w.row(n, tag)
    lines += _hoist(w, tag)
    lines += _row_loop(w, tag)
    for d in reversed(range(outer)):
        lines += [
            f"  br label %E{d}{tag}", f"E{d}{tag}:", f"  %i{d}n{tag} = add i64 %i{d}{tag}, 1",
            f"  %q{d}{tag} = icmp ult i64 %i{d}n{tag}, %n_{d}",
            f"  br i1 %q{d}{tag}, label %L{d}{tag}, label %X{d}{tag}",
            f"X{d}{tag}:",
        ]  # fmt: skip
    return lines


def _row_loop(w: _Writer, tag: str) -> list[str]:
    inner = w.k.reduce.startswith("inner")
    if w.width == 1:
        return _sum_loop(w, tag) if inner else _plain_loop(w, tag)
    if inner:
        return sum_loop(w, tag, w.width, CHUNK, lambda t, s: _finish_chunk(w, t, s))
    return plain_loop(w, tag, w.width)


def _limits(w: _Writer, tag: str) -> tuple[list[str], list[str], list[str]]:
    """Return the pieces that notice, over a whole row, an argument beyond a polynomial's bound."""
    if not w.e.limit or w.e.slow:
        return [], [], []
    e = w.e
    start = len(e.lines)
    found = f"%bad_phi{tag}"
    value = found
    for x, limit in e.limit:
        far = e.compare(">", e.call("fabs", x), constant(limit, F64))
        value = e.new(f"or i1 {value}, {far}")
    lines = e.lines[start:]
    del e.lines[start:]
    head = [value]
    tail = [
        f"  %wasbad{tag} = load i1, ptr %bad", f"  %nowbad{tag} = or i1 %wasbad{tag}, {value}",
        f"  store i1 %nowbad{tag}, ptr %bad",
    ]  # fmt: skip
    return head, lines, tail


def _plain_loop(w: _Writer, tag: str) -> list[str]:
    k = w.k
    inner = k.rank - 1
    body, values = w.body(tag)
    head, check, tail = _limits(w, tag)
    lines = [f"  br label %pre{tag}", f"pre{tag}:", f"  br label %J{tag}", f"J{tag}:"]
    lines.append(f"  %j{tag} = phi i64 [0, %pre{tag}], [%jn{tag}, %J{tag}]")
    if head:
        lines.append(f"  %bad_phi{tag} = phi i1 [false, %pre{tag}], [{head[0]}, %J{tag}]")
    lines += body + check
    for n, (value, t) in enumerate(values):
        place = f"%w{tag}_{n}"
        lines += _place(w, n, t, tag)
        if k.summed >= 0 and n >= k.stored:
            lines += [
                f"  %old{tag}_{n} = load {t}, ptr {place}, !noalias !2",
                f"  %first{tag}_{n} = icmp eq i64 %i{k.summed}{tag}, 0",
                f"  %base{tag}_{n} = select i1 %first{tag}_{n}, {t} {w.neutral(t)}, {t} %old{tag}_{n}",
                f"  %sum{tag}_{n} = {_combine(w, t, f'%base{tag}_{n}', value)}",
            ]
            value = f"%sum{tag}_{n}"
        lines += _store(value, t, n, tag)
    lines += [
        f"  %jn{tag} = add i64 %j{tag}, 1", f"  %jq{tag} = icmp ult i64 %jn{tag}, %n_{inner}",
        f"  br i1 %jq{tag}, label %J{tag}, label %after{tag}", f"after{tag}:",
    ]  # fmt: skip
    return lines + tail


def _place(w: _Writer, n: int, t: str, tag: str) -> list[str]:
    """Find where the n-th result's element of one innermost step is stored."""
    number, place = len(w.k.modes) + n, f"%w{tag}_{n}"
    if n in w.k.spread:
        return [
            f"  {place}_o = mul i64 %j{tag}, %t_{number}_{w.k.rank - 1}",
            f"  {place} = getelementptr i8, ptr %row{tag}_{number}, i64 {place}_o",
        ]
    return [f"  {place} = getelementptr {_memory(t)}, ptr %row{tag}_{number}, i64 %j{tag}"]


def _store(value: str, t: str, n: int, tag: str) -> list[str]:
    lines = []
    if t == BOOL:
        lines.append(f"  %byte{tag}_{n} = zext i1 {value} to i8")
        value = f"%byte{tag}_{n}"
    return [*lines, f"  store {_memory(t)} {value}, ptr %w{tag}_{n}, !noalias !2"]


def _combine(w: _Writer, t: str, a: str, b: str, flags: str = "") -> str:
    if w.k.how == "add":
        return f"add {t} {a}, {b}" if t == I64 else f"fadd {flags}{t} {a}, {b}"
    name = f"llvm.{w.k.how}.{'f64' if t == F64 else 'f32'}"
    w.e.needs.add(f"declare {t} @{name}({t}, {t})")
    return f"call {t} @{name}({t} {a}, {t} {b})"


def _finish_chunk(w: _Writer, t: str, s: str) -> list[str]:
    """Take a chunk's result, acc2, into the whole row's."""
    if w.k.how == "add" and t != I64:
        return _add_compensated(t, s)
    return [f"  %total2{s} = {_combine(w, t, f'%total{s}', f'%acc2{s}')}"]


def _add_compensated(t: str, tag: str) -> list[str]:
    """Add a chunk's sum to the total, and remember what rounding lost."""
    return [
        f"  %y{tag} = fsub {t} %acc2{tag}, %comp{tag}", f"  %total2{tag} = fadd {t} %total{tag}, %y{tag}",
        f"  %back{tag} = fsub {t} %total2{tag}, %total{tag}", f"  %comp1{tag} = fsub {t} %back{tag}, %y{tag}",
        # where the total is infinite the compensation would be NaN
        f"  %finite{tag} = fcmp ord {t} %comp1{tag}, %comp1{tag}",
        f"  %comp2{tag} = select i1 %finite{tag}, {t} %comp1{tag}, {t} {constant(0, t)}",
    ]  # fmt: skip


def _sum_loop(w: _Writer, tag: str) -> list[str]:
    """Reduce a row in chunks; the chunks' sums are added with Kahan's compensation."""
    k = w.k
    inner = k.rank - 1
    body, values = w.body(tag)
    head, check, tail = _limits(w, tag)
    sums = [(f"{tag}{n}", value, t, w.neutral(t)) for n, (value, t) in enumerate(values) if n >= k.stored]
    lines = [
        f"  br label %pre{tag}", f"pre{tag}:", f"  br label %C{tag}", f"C{tag}:",
        f"  %from{tag} = phi i64 [0, %pre{tag}], [%to{tag}, %D{tag}]",
    ]  # fmt: skip
    for s, _, t, zero in sums:
        lines.append(f"  %total{s} = phi {t} [{zero}, %pre{tag}], [%total2{s}, %D{tag}]")
        if k.how == "add" and t != I64:
            lines.append(f"  %comp{s} = phi {t} [{zero}, %pre{tag}], [%comp2{s}, %D{tag}]")
    if head:
        lines.append(f"  %bad_row{tag} = phi i1 [false, %pre{tag}], [{head[0]}, %D{tag}]")
    lines += [
        f"  %far{tag} = add i64 %from{tag}, {CHUNK}", f"  %over{tag} = icmp ugt i64 %far{tag}, %n_{inner}",
        f"  %to{tag} = select i1 %over{tag}, i64 %n_{inner}, i64 %far{tag}", f"  br label %J{tag}", f"J{tag}:",
        f"  %j{tag} = phi i64 [%from{tag}, %C{tag}], [%jn{tag}, %J{tag}]",
    ]  # fmt: skip
    lines += [f"  %acc{s} = phi {t} [{zero}, %C{tag}], [%acc2{s}, %J{tag}]" for s, _, t, zero in sums]
    if head:
        lines.append(f"  %bad_phi{tag} = phi i1 [%bad_row{tag}, %C{tag}], [{head[0]}, %J{tag}]")
    lines += body + check
    for n, (value, t) in enumerate(values[: k.stored]):
        lines += _place(w, n, t, tag) + _store(value, t, n, tag)
    for s, value, t, _ in sums:
        lines.append(f"  %acc2{s} = {_combine(w, t, f'%acc{s}', value, 'reassoc ')}")
    lines += [
        f"  %jn{tag} = add i64 %j{tag}, 1", f"  %jq{tag} = icmp ult i64 %jn{tag}, %to{tag}",
        f"  br i1 %jq{tag}, label %J{tag}, label %D{tag}", f"D{tag}:",
    ]  # fmt: skip
    for s, _, t, _ in sums:
        lines += _finish_chunk(w, t, s)
    lines += [
        f"  %cq{tag} = icmp ult i64 %to{tag}, %n_{inner}", f"  br i1 %cq{tag}, label %C{tag}, label %after{tag}",
        f"after{tag}:",
    ]  # fmt: skip
    for n, (s, _, t, _) in enumerate(sums):
        number = len(k.modes) + k.stored + n
        lines.append(f"  store {t} %total2{s}, ptr %row{tag}_{number}, !noalias !2")
    return lines + tail
