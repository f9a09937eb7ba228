"""Loops over a few single numbers: the whole loop is one function, and its state stays in registers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.expand import Expanded, expanded
from fad.compile.groups import node_facts
from fad.compile.llvm.emit import BOOL, BYTES, LLVM_TYPE, Emitter, constant
from fad.compile.llvm.interrupts import STOPPED
from fad.compile.llvm.templates import emit, template
from fad.compile.llvm.vectors import SCALAR
from fad.compile.repeated import Loop
from fad.core.graph import Graph

_GLANCE = 4096  # steps, of a microsecond at most, between two looks at the clock


def fits(loop: Loop) -> Expanded | None:
    """Return a body as operations on single numbers, if it is small and all of them have templates."""
    body = loop.body
    values = [*body.inputs, *body.constants, *(o for eq in body.equations for o in eq.outs)]
    if any(body.types[i].dtype not in LLVM_TYPE for i in values):
        return None
    found = expanded(body)
    if found is None or any(template(found.graph, eq, found.graph.constants) is None for eq in found.graph.equations):
        return None
    return found


class _Writer:
    """Writes the function; its words are the limit, the addresses of count, done and watch, and those of all values."""

    def __init__(self, loop: Loop, body: Expanded, strides: list[int]):
        self.loop = loop
        self.body = body
        self.strides = strides
        self.e = Emitter("z")
        self.e.slow = True  # the C library's functions are right for every argument
        self.lines: list[str] = []
        self.word = 0

    def pointer(self, name: str) -> str:
        self.lines.append(f"  %p_{name} = getelementptr i64, ptr %W, i64 {self.word}")
        self.lines.append(f"  %{name} = load ptr, ptr %p_{name}")
        self.word += 1
        return f"%{name}"

    def element(self, lines: list[str], pointer: str, k: int, t: str, name: str) -> str:
        """Return a pointer to an element of an array."""
        if not k:
            return pointer
        lines.append(f"  {name} = getelementptr i8, ptr {pointer}, i64 {k * BYTES[t]}")
        return name

    def load(self, t: str, pointer: str, name: str) -> list[str]:
        if t == BOOL:
            return [f"  {name}_b = load i8, ptr {pointer}", f"  {name} = icmp ne i8 {name}_b, 0"]
        return [f"  {name} = load {t}, ptr {pointer}"]

    def store(self, t: str, value: str, pointer: str, name: str) -> list[str]:
        if t == BOOL:
            return [f"  {name}_y = zext i1 {value} to i8", f"  store i8 {name}_y, ptr {pointer}"]
        return [f"  store {t} {value}, ptr {pointer}"]

    def step(self, graph: Graph, named: dict[int, tuple[str, str]]) -> list[str]:
        """Return the instructions of a step, and name its values."""
        e = self.e
        for eq in graph.equations:
            text = template(graph, eq, graph.constants)
            assert text is not None
            work, read, selects = node_facts(graph, eq, text)
            for new, old in enumerate(read):
                text = text.replace(f"{{{old}}}", f"{{{new}}}")
            t = LLVM_TYPE[graph.types[eq.outs[0]].dtype]
            value = emit(e, text, [named[eq.ins[k]] for k in read], work, selects)
            named[eq.outs[0]] = (e.cast(value, BOOL if t == BOOL else work, t), t)
        lines, e.lines = e.lines, []
        return lines

    def text(self) -> str:
        loop, graph = self.loop, self.body.graph
        kind = [LLVM_TYPE[t.dtype] for t in graph.types]
        named = {i: (constant(np.asarray(c).item(), kind[i]), kind[i]) for i, c in graph.constants.items()}
        c, m = len(loop.consts), len(loop.carry)
        start = c + loop.indexed
        inputs, outputs = self.body.inputs, self.body.outputs
        carry = [i for some in inputs[start : start + m] for i in some]
        new = [v for some in outputs[:m] for v in some]
        head = self.lines
        head.append("  %limit0 = load i64, ptr %W")
        self.word = 1
        count, done, watch = self.pointer("count"), self.pointer("done"), self.pointer("watch")
        for k, some in enumerate(inputs[:c]):
            self.read(head, self.pointer(f"kp{k}"), some, kind, f"%k{k}_")
            named.update((i, (f"%k{k}_{n}", kind[i])) for n, i in enumerate(some))
        first: list[str] = []
        for k, some in enumerate(inputs[start : start + m]):
            self.read(head, self.pointer(f"ip{k}"), some, kind, f"%i{k}_")
            first += [f"%i{k}_{n}" for n in range(len(some))]
        named.update((i, (f"%c{n}", kind[i])) for n, i in enumerate(carry))
        xs = [self.pointer(f"xp{k}") for k in range(len(loop.xs))]
        ends = [self.pointer(f"op{k}") for k in range(m)]
        ys = [self.pointer(f"yp{k}") for k in range(len(loop.ys))]
        head.append(f"  %limit = load i64, ptr {count}" if loop.stop == "count" else "  %limit = add i64 %limit0, 0")
        position = "%p" if loop.reverse else "%t"
        if loop.indexed:
            named[inputs[c][0]] = (position, "i64")
        loads: list[str] = []
        for k, (some, x) in enumerate(zip(inputs[start + m :], xs, strict=True)):
            loads += [f"  %xo{k} = mul i64 {position}, {self.strides[k]}"]
            loads += [f"  %xa{k} = getelementptr i8, ptr {x}, i64 %xo{k}"]
            self.read(loads, f"%xa{k}", some, kind, f"%x{k}_")
            named.update((i, (f"%x{k}_{n}", kind[i])) for n, i in enumerate(some))
        body = self.step(graph, named)
        stores = self.stacked(ys, outputs[m:], named, position)
        go = "%within" if loop.stop != "cond" else "%going"
        lines = [
            "define i32 @NAME(ptr noalias %W) {", "entry:", *head, "  %last = sub i64 %limit, 1", "  br label %far",
            "far:", "  %t0 = phi i64 [0, %entry], [%t, %glance]",
            *[f"  %f{n} = phi {kind[i]} [{first[n]}, %entry], [%c{n}, %glance]" for n, i in enumerate(carry)],
            f"  %far0 = add i64 %t0, {_GLANCE}", "  %near = icmp slt i64 %far0, %limit",
            "  %stop = select i1 %near, i64 %far0, i64 %limit", "  br label %test",
            "test:", "  %t = phi i64 [%t0, %far], [%t1, %step]",
            *[
                f"  %c{n} = phi {kind[i]} [%f{n}, %far], [{named[v][0]}, %step]"
                for n, (i, v) in enumerate(zip(carry, new, strict=True))
            ],
            "  %within = icmp slt i64 %t, %stop",
        ]  # fmt: skip
        if loop.stop == "cond":
            lines.append("  %going = and i1 %within, %c0")
        lines += [f"  br i1 {go}, label %step, label %pause", "step:"]
        if loop.reverse:
            lines.append("  %p = sub i64 %last, %t")
        lines += [*loads, *body, *stores, "  %t1 = add i64 %t, 1", "  br label %test", "pause:"]
        lines += ["  %left = icmp slt i64 %t, %limit"]
        lines += [f"  %more = and i1 %left, {'true' if loop.stop != 'cond' else '%c0'}"]
        lines += [
            "  br i1 %more, label %glance, label %out", "glance:", f"  %glancep = load ptr, ptr {watch}",
            f"  %signal = call i32 %glancep(ptr {watch}, ptr null)", "  %on = icmp eq i32 %signal, 0",
            "  br i1 %on, label %far, label %halt", "halt:", f"  ret i32 {STOPPED}", "out:",
        ]  # fmt: skip
        at = 0
        for k, (some, end) in enumerate(zip(inputs[start : start + m], ends, strict=True)):
            self.write(
                lines, end, [f"%c{at + n}" for n in range(len(some))], kind[some[0]] if some else BOOL, f"%e{k}_"
            )
            at += len(some)
        if loop.stop == "cond":
            lines.append(f"  store i64 %t, ptr {done}")
        return "\n".join([SCALAR, *sorted(self.e.needs), *lines, "  ret i32 0", "}", ""])

    def read(self, lines: list[str], pointer: str, some: list[int], kind: list[str], name: str) -> None:
        for n, i in enumerate(some):
            place = self.element(lines, pointer, n, kind[i], f"{name}{n}_p")
            lines += self.load(kind[i], place, f"{name}{n}")

    def write(self, lines: list[str], pointer: str, values: list[str], t: str, name: str) -> None:
        for n, value in enumerate(values):
            place = self.element(lines, pointer, n, t, f"{name}{n}_p")
            lines += self.store(t, value, place, f"{name}{n}")

    def stacked(self, ys: list[str], outputs: list, named: dict, position: str) -> list[str]:
        """Return the instructions that store what a step adds to the stacks."""
        if not ys:
            return []
        most = self.loop.length - 1
        lines = [
            f"  %over = icmp sgt i64 {position}, {most}",
            f"  %place = select i1 %over, i64 {most}, i64 {position}",
        ]
        for k, (some, y) in enumerate(zip(outputs, ys, strict=True)):
            t = named[some[0]][1] if some else BOOL
            lines += [f"  %yo{k} = mul i64 %place, {BYTES[t] * len(some)}"]
            lines += [f"  %ya{k} = getelementptr i8, ptr {y}, i64 %yo{k}"]
            self.write(lines, f"%ya{k}", [named[v][0] for v in some], t, f"%y{k}_")
        return lines


def function(loop: Loop, body: Expanded, strides: list[int]) -> tuple[str, Callable[[], str]]:
    """Return the name and the module of the function that runs a loop."""
    text = _Writer(loop, body, strides).text()
    name = f"r{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    return name, lambda: text.replace("@NAME", f"@{name}")


def words(build: Any, loop: Loop, eq: Any, operands: list[int], forever: int) -> None:
    """Write the row of arguments."""
    m = len(loop.carry)

    def address(i: int) -> None:
        build.words.append(build.address(i, len(build.words)))

    build.words.append(loop.length if loop.stop == "length" else forever)
    if loop.stop == "count":
        address(eq.ins[loop.count])
    else:
        build.words.append(0)
    if loop.stop == "cond":
        address(eq.outs[-1])
    else:
        build.words.append(0)
    build.words.append(build.watch.address)
    for i in (*operands, *eq.outs[: m + len(loop.ys)]):
        address(i)
