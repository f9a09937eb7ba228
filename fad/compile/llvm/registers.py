"""Loops over single numbers: the whole loop is one function, and its state stays in registers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.groups import node_facts
from fad.compile.llvm.emit import BOOL, BYTES, LLVM_TYPE, Emitter, constant
from fad.compile.llvm.templates import emit, template
from fad.compile.llvm.vectors import SCALAR
from fad.compile.repeated import Loop
from fad.core.graph import Graph

LONGEST = 400  # operations of a body


def fits(loop: Loop) -> bool:
    """Tell whether a body computes with single numbers alone, by operations that have templates."""
    body = loop.body
    if len(body.equations) > LONGEST:
        return False
    values = [*body.inputs, *body.constants, *(o for eq in body.equations for o in eq.outs)]
    if any(body.types[i].shape != () or body.types[i].dtype not in LLVM_TYPE for i in values):
        return False
    return all(template(body, eq, body.constants) is not None for eq in body.equations)


class _Writer:
    """Writes the function; its words are the limit, the addresses of count and done, and those of all values."""

    def __init__(self, loop: Loop, strides: list[int]):
        self.loop = loop
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
        loop, graph = self.loop, self.loop.body
        kind = {i: LLVM_TYPE[t.dtype] for i, t in enumerate(graph.types) if t.dtype in LLVM_TYPE}
        named = {i: (constant(np.asarray(c).item(), kind[i]), kind[i]) for i, c in graph.constants.items()}
        head = self.lines
        head += ["  %limit0 = load i64, ptr %W"]
        self.word = 1
        count, done = self.pointer("count"), self.pointer("done")
        for k, i in enumerate(loop.const_inputs):
            named[i] = (f"%k{k}", kind[i])
            head += self.load(kind[i], self.pointer(f"kp{k}"), f"%k{k}")
        first = []
        for k, i in enumerate(loop.carry_inputs):
            head += self.load(kind[i], self.pointer(f"ip{k}"), f"%i{k}")
            named[i] = (f"%c{k}", kind[i])
            first.append(f"%i{k}")
        xs = [self.pointer(f"xp{k}") for k in range(len(loop.xs))]
        ends = [self.pointer(f"op{k}") for k in range(len(loop.carry))]
        ys = [self.pointer(f"yp{k}") for k in range(len(loop.ys))]
        if loop.stop == "count":
            head.append(f"  %limit = load i64, ptr {count}")
        else:
            head.append("  %limit = add i64 %limit0, 0")
        position = "%p" if loop.reverse else "%t"
        if loop.indexed:
            named[loop.index_input] = (position, "i64")
        loads: list[str] = []
        for k, (i, x) in enumerate(zip(loop.x_inputs, xs, strict=True)):
            loads += [f"  %xo{k} = mul i64 {position}, {self.strides[k]}"]
            loads += [f"  %xa{k} = getelementptr i8, ptr {x}, i64 %xo{k}", *self.load(kind[i], f"%xa{k}", f"%x{k}")]
            named[i] = (f"%x{k}", kind[i])
        body = self.step(graph, named)
        stores: list[str] = []
        if ys:
            stores += [f"  %over = icmp sgt i64 {position}, {loop.length - 1}"]
            stores += [f"  %place = select i1 %over, i64 {loop.length - 1}, i64 {position}"]
        for k, (v, y) in enumerate(zip(loop.ys, ys, strict=True)):
            name, t = named[v]
            stores += [f"  %yo{k} = mul i64 %place, {BYTES[t]}", f"  %ya{k} = getelementptr i8, ptr {y}, i64 %yo{k}"]
            stores += self.store(t, name, f"%ya{k}", f"%ya{k}")
        phis = [
            f"  %c{k} = phi {kind[i]} [{first[k]}, %entry], [{named[v][0]}, %step]"
            for k, (i, v) in enumerate(zip(loop.carry_inputs, loop.carry_outputs, strict=True))
        ]
        go = "%within" if loop.stop != "cond" else "%going"
        lines = [
            "define i32 @NAME(ptr noalias %W) {", "entry:", *head, "  %last = sub i64 %limit, 1", "  br label %test",
            "test:", "  %t = phi i64 [0, %entry], [%t1, %step]", *phis, "  %within = icmp slt i64 %t, %limit",
        ]  # fmt: skip
        if loop.stop == "cond":
            lines.append("  %going = and i1 %within, %c0")
        lines += [f"  br i1 {go}, label %step, label %out", "step:"]
        if loop.reverse:
            lines.append("  %p = sub i64 %last, %t")
        lines += [*loads, *body, *stores, "  %t1 = add i64 %t, 1", "  br label %test", "out:"]
        for k, (i, end) in enumerate(zip(loop.carry_inputs, ends, strict=True)):
            lines += self.store(kind[i], f"%c{k}", end, f"%e{k}")
        if loop.stop == "cond":
            lines.append(f"  store i64 %t, ptr {done}")
        return "\n".join([SCALAR, *sorted(self.e.needs), *lines, "  ret i32 0", "}", ""])


def function(loop: Loop, strides: list[int]) -> tuple[str, Callable[[], str]]:
    """Return the name and the module of the function that runs a loop."""
    text = _Writer(loop, strides).text()
    name = f"r{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    return name, lambda: text.replace("@NAME", f"@{name}")


def words(build: Any, loop: Loop, eq: Any, forever: int) -> None:
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
    for i in (*loop.consts, *loop.carry, *loop.xs, *eq.outs[:m], *eq.outs[m : m + len(loop.ys)]):
        address(i)
