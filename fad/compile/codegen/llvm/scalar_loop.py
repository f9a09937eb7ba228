"""Loops over a few single numbers: the whole loop is one function, and its state stays in registers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.builder import Emitter, constant
from fad.compile.codegen.llvm.expressions import emit
from fad.compile.codegen.llvm.interrupt_check import STOPPED
from fad.compile.codegen.llvm.module import SCALAR, Module
from fad.compile.codegen.llvm.number_checks import OF_ONE_NUMBER
from fad.compile.ir.expressions import template
from fad.compile.ir.slice_writes import data_address
from fad.compile.ir.types import BOOL, BYTES, LLVM_TYPE
from fad.compile.legalize.layouts.scalarize import Expanded, expand_body
from fad.compile.legalize.places.place_stacks import NATIVE_POP, NATIVE_PUSH, ON_STACKS
from fad.compile.machine.stack_memory import REALLOC
from fad.compile.schedule.steps import node_facts
from fad.control_flow.bodies.loop_layout import Inputs, Loop, Outputs
from fad.core.programs.graph import Equation, Graph

_GLANCE = 4096  # steps, of a microsecond at most, between two looks at the clock


def fits(loop: Loop) -> Expanded | None:
    """Return a body as operations on single numbers, if it is small and all of them have templates."""
    body = loop.body
    values = [*body.inputs, *body.constants, *(o for eq in body.equations for o in eq.outs)]
    if any(body.types[i].dtype not in LLVM_TYPE for i in values):
        return None
    found = expand_body(body)
    if found is None:
        return None
    without = [eq for eq in found.graph.equations if template(found.graph, eq, found.graph.constants) is None]
    others = [eq for eq in without if eq.prim.archetype != "check"]
    return found if not others or others == _stacks(found.graph)[:1] else None


def _stacks(graph: Graph) -> list[Equation]:
    return [eq for eq in graph.equations if eq.prim in ON_STACKS]


def may_fail(body: Expanded) -> bool:
    """Return whether a body pushes, for which there may be no memory, or checks its numbers."""
    return any(eq.prim is NATIVE_PUSH or eq.prim.archetype == "check" for eq in body.graph.equations)


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
        self.holds: list[str] = []  # what must hold of a step's numbers, or the program runs in NumPy
        self.memory: list[str] = []  # of the stack that a step pushes onto or pops from, and how it grows

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
            if eq.prim in ON_STACKS:
                self.on_a_stack(eq, graph, named)
                continue
            if eq.prim.archetype == "check":
                (x, kind) = named[eq.ins[0]]
                self.holds.append(OF_ONE_NUMBER[eq.params["how"]](e, x, kind))
                continue
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

    def on_a_stack(self, eq: Equation, graph: Graph, named: dict[int, tuple[str, str]]) -> None:
        """Write a step's push or pop: the memory has been made large enough for a stretch of steps."""
        push, memory, lines = eq.prim is NATIVE_PUSH, eq.params["memory"], self.e.lines
        depth = named[eq.ins[0]][0]
        lines.append(f"  %depth = {'add' if push else 'sub'} i64 {depth}, 1")
        lines.append(f"  %record = mul i64 {depth if push else '%depth'}, {memory.record}")
        named[eq.outs[0]] = "%depth", "i64"
        rest = iter(eq.ins[1:] if push else eq.outs[1:])
        for k, (offset, t) in enumerate(memory.parts):
            some = [next(rest) for _ in range(t.size)]
            lines.append(f"  %so{k} = add i64 %record, {offset}")
            lines.append(f"  %sp{k} = getelementptr i8, ptr %base, i64 %so{k}")
            kind = LLVM_TYPE[t.dtype]
            if push:
                self.write(lines, f"%sp{k}", [named[i][0] for i in some], kind, f"%s{k}_")
            else:
                for n, i in enumerate(some):
                    place = self.element(lines, f"%sp{k}", n, kind, f"%s{k}_{n}_p")
                    lines += self.load(kind, place, f"%s{k}_{n}")
                    named[i] = f"%s{k}_{n}", kind

    def grow_stack(self, carry: list[int]) -> list[str]:
        """Return the instructions before a stretch of steps that make the memory of the stack large enough for it."""
        found = _stacks(self.body.graph)
        if not found:
            return ["  br label %ready", "ready:"]
        eq = found[0]
        if eq.prim is NATIVE_POP:
            return ["  br label %ready", "ready:", f"  %base = load ptr, ptr {self.memory[0]}"]
        below = f"%f{carry.index(eq.ins[0])}"
        return [
            "  %stretch = sub i64 %stop, %t0", f"  %most = add i64 {below}, %stretch",
            f"  %capacityp = getelementptr i64, ptr {self.memory[0]}, i64 1", "  %capacity = load i64, ptr %capacityp",
            "  %full = icmp sgt i64 %most, %capacity", "  br i1 %full, label %grow, label %ready", "grow:",
            f"  %old = load ptr, ptr {self.memory[0]}", "  %records = shl i64 %most, 1",
            f"  %wanted = mul i64 %records, {eq.params['memory'].record}",
            f"  %new = call ptr {self.memory[1]}(ptr %old, i64 %wanted)", "  %none = icmp eq ptr %new, null",
            "  br i1 %none, label %fail, label %grown", "fail:", "  ret i32 1", "grown:",
            f"  store ptr %new, ptr {self.memory[0]}", "  store i64 %records, ptr %capacityp", "  br label %ready",
            "ready:", f"  %base = load ptr, ptr {self.memory[0]}",
        ]  # fmt: skip

    def text(self) -> str:
        loop, graph = self.loop, self.body.graph
        kind = [LLVM_TYPE[t.dtype] for t in graph.types]
        named = {i: (constant(np.asarray(c).item(), kind[i]), kind[i]) for i, c in graph.constants.items()}
        inputs, outputs = Inputs.split(self.body.inputs, loop.params), Outputs.split(self.body.outputs, loop.params)
        carry, new = [i for some in inputs.carry for i in some], [v for some in outputs.carry for v in some]
        count, done, watch, first = self.operands(inputs.consts, inputs.carry, kind, named)
        named.update((i, (f"%c{n}", kind[i])) for n, i in enumerate(carry))
        arrays = {"x": len(inputs.xs), "o": len(inputs.carry), "y": len(outputs.ys)}
        xs, ends, ys = ([self.pointer(f"{x}p{k}") for k in range(n)] for x, n in arrays.items())
        if _stacks(graph):
            self.memory = [self.pointer("memory"), self.pointer("realloc")]
        limit = f"load i64, ptr {count}" if loop.stop == "count" else "add i64 %limit0, 0"
        self.lines.append(f"  %limit = {limit}")
        position = "%p" if loop.reverse else "%t"
        named.update((i, (position, "i64")) for (i,) in inputs.number)
        loads = self.elements(xs, inputs.xs, kind, named, position)
        body = self.step(graph, named)
        stores = self.store_on_stacks(ys, outputs.ys, named, position)
        kinds = [kind[i] for i in carry]
        step = [*loads, *body, *stores]
        lines = self.around(step, first, [named[v][0] for v in new], kinds, watch, self.grow_stack(carry))
        at = 0
        for k, (some, end) in enumerate(zip(inputs.carry, ends, strict=True)):
            values = [f"%c{at + n}" for n in range(len(some))]
            self.write(lines, end, values, kind[some[0]] if some else BOOL, f"%e{k}_")
            at += len(some)
        if loop.has_condition:
            lines.append(f"  store i64 %t, ptr {done}")
        return "\n".join([*sorted(self.e.needs), *lines, "  ret i32 0", "}", ""])

    def operands(self, consts: list, states: list, kind: list[str], named: dict) -> tuple[str, str, str, list[str]]:
        """Read what stays and the first state; return the pointers to count, done and watch, and the state's names."""
        self.lines.append("  %limit0 = load i64, ptr %W")
        self.word = 1
        count, done, watch = self.pointer("count"), self.pointer("done"), self.pointer("watch")
        for k, some in enumerate(consts):
            self.read(self.lines, self.pointer(f"kp{k}"), some, kind, f"%k{k}_")
            named.update((i, (f"%k{k}_{n}", kind[i])) for n, i in enumerate(some))
        first: list[str] = []
        for k, some in enumerate(states):
            self.read(self.lines, self.pointer(f"ip{k}"), some, kind, f"%i{k}_")
            first += [f"%i{k}_{n}" for n in range(len(some))]
        return count, done, watch, first

    def elements(self, xs: list[str], inputs: list, kind: list[str], named: dict, position: str) -> list[str]:
        """Return the instructions that read a step's elements of what the loop runs along, and name them."""
        lines: list[str] = []
        for k, (some, x) in enumerate(zip(inputs, xs, strict=True)):
            lines += [f"  %xo{k} = mul i64 {position}, {self.strides[k]}"]
            lines += [f"  %xa{k} = getelementptr i8, ptr {x}, i64 %xo{k}"]
            self.read(lines, f"%xa{k}", some, kind, f"%x{k}_")
            named.update((i, (f"%x{k}_{n}", kind[i])) for n, i in enumerate(some))
        return lines

    def around(self, step: list, first: list, new: list, kinds: list, watch: str, grown: list) -> list[str]:
        """Return the function up to where its loop is over: stretches of steps, and a look at the clock after each."""
        asks = self.loop.has_condition
        lines = [
            "define i32 @NAME(ptr noalias %W) {", "entry:", *self.lines, "  %last = sub i64 %limit, 1",
            "  br label %far", "far:", "  %t0 = phi i64 [0, %entry], [%t, %glance]",
            *[f"  %f{n} = phi {t} [{first[n]}, %entry], [%c{n}, %glance]" for n, t in enumerate(kinds)],
            f"  %far0 = add i64 %t0, {_GLANCE}", "  %near = icmp slt i64 %far0, %limit",
            "  %stop = select i1 %near, i64 %far0, i64 %limit", *grown, "  br label %test",
            "test:", "  %t = phi i64 [%t0, %ready], [%t1, %step]",
            *[f"  %c{n} = phi {t} [%f{n}, %ready], [{new[n]}, %step]" for n, t in enumerate(kinds)],
            "  %within = icmp slt i64 %t, %stop",
        ]  # fmt: skip
        if asks:
            lines.append("  %going = and i1 %within, %c0")
        lines += [f"  br i1 {'%going' if asks else '%within'}, label %step, label %pause", "step:"]
        if self.loop.reverse:
            lines.append("  %p = sub i64 %last, %t")
        return [
            *lines, *step, "  %t1 = add i64 %t, 1", *self.end_step(), "pause:", "  %left = icmp slt i64 %t, %limit",
            f"  %more = and i1 %left, {'%c0' if asks else 'true'}",
            "  br i1 %more, label %glance, label %out", "glance:", f"  %glancep = load ptr, ptr {watch}",
            f"  %signal = call i32 %glancep(ptr {watch}, ptr null)", "  %on = icmp eq i32 %signal, 0",
            "  br i1 %on, label %far, label %halt", "halt:", f"  ret i32 {STOPPED}", "out:",
        ]  # fmt: skip

    def end_step(self) -> list[str]:
        """Return the instructions that go on to the next step, or leave the loop where a check does not hold."""
        if not self.holds:
            return ["  br label %test"]
        lines, every = [], self.holds[0]
        for k, holds in enumerate(dict.fromkeys(self.holds[1:])):
            lines.append(f"  %holds{k} = and i1 {every}, {holds}")
            every = f"%holds{k}"
        return [*lines, f"  br i1 {every}, label %test, label %beyond", "beyond:", "  ret i32 1"]

    def read(self, lines: list[str], pointer: str, some: list[int], kind: list[str], name: str) -> None:
        for n, i in enumerate(some):
            place = self.element(lines, pointer, n, kind[i], f"{name}{n}_p")
            lines += self.load(kind[i], place, f"{name}{n}")

    def write(self, lines: list[str], pointer: str, values: list[str], t: str, name: str) -> None:
        for n, value in enumerate(values):
            place = self.element(lines, pointer, n, t, f"{name}{n}_p")
            lines += self.store(t, value, place, f"{name}{n}")

    def store_on_stacks(self, ys: list[str], outputs: list, named: dict, position: str) -> list[str]:
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


def function(loop: Loop, body: Expanded, strides: list[int]) -> tuple[str, Callable[[], Module]]:
    """Return the name and the module of the function that runs a loop."""
    text = _Writer(loop, body, strides).text()
    name = f"r{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    return name, lambda: Module(text.replace("@NAME", f"@{name}"), SCALAR)


def words(program: Any, loop: Loop, operands: list[int], forever: int, body: Expanded) -> None:
    """Write the row of arguments."""
    results = loop.results

    def address(i: int) -> None:
        program.table.point_to(i)

    program.table.words.append(loop.length if loop.stop == "length" else forever)
    if loop.stop == "count":
        address(loop.count)
    else:
        program.table.words.append(0)
    if loop.has_condition:
        address(results.steps[0])
    else:
        program.table.words.append(0)
    program.table.words.append(program.watch.address)
    for i in (*operands, *results.carry, *results.ys):
        address(i)
    for stack in _stacks(body.graph):
        program.table.words += [data_address(stack.params["memory"].words), REALLOC]
