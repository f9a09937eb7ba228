"""Loops and branches in a native program: their bodies are flat programs of their own, run by native drivers.

A body's inputs and outputs lie outside of its memory: the driver writes their addresses into the words of its kernels,
before the loop for what stays, before each step for what moves. The state has two places, read and written by turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fad.compile.codegen.llvm import scalar_loop
from fad.compile.codegen.llvm.control_drivers import BRANCH, LOOP, branch_module, loop_module
from fad.compile.codegen.nests.row import native_nest
from fad.compile.codegen.program import Program
from fad.compile.ir.lowered_ops import copy_p
from fad.compile.ir.slice_writes import data_address
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.legalize.places.place_stacks import NATIVE_PUSH
from fad.compile.schedule.buffers import Body
from fad.control_flow.bodies.loop_layout import Inputs, Loop, Outputs
from fad.core.programs.graph import Equation, Graph, Type
from fad.core.programs.rewriter import Rewriting

_FOREVER = 2**62


def apart(graph: Graph) -> Graph:
    """Let every output be computed by an operation of its own, so that each can have a place of its own."""
    work, outputs = Rewriting(graph), []
    work.equations += graph.equations
    made = {o: eq for eq in graph.equations for o in eq.outs}
    seen: set[int] = set()
    for v in graph.outputs:
        eq = made.get(v)
        if eq is None or v in seen or eq.prim.view is not None:
            t = work.types[v]
            v = work.apply(copy_p, (v,), {}, Type(t.shape, t.dtype, t.kind))
        seen.add(v)
        outputs.append(v)
    return work.finish().replace(outputs=outputs)


def _has_rows(program: Program, eq: Equation, bodies: Iterable[Graph]) -> bool:
    """Return whether a loop or branch can be a row: no value is an object, and what must be copied has kernels."""
    graph = program.graph
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)] + [t for body in bodies for t in body.types]
    if any(t.dtype.kind == "O" for t in types):
        return False
    copied = [graph.types[i] for i in eq.ins if not program.memory.at[i].flags.c_contiguous]
    pushes = [(body, e) for body in bodies for e in body.equations if e.prim is NATIVE_PUSH]
    copied += [body.types[i] for body, e in pushes for i in e.ins[1:]]
    return all(t.dtype in LLVM_TYPE for t in copied)


class Row:
    """The row of a loop or branch in the table: which words depend on bodies, known when all is linked."""

    def __init__(self, program: Program, head: tuple):
        self.program = program
        self.names = head
        self.start = len(program.table.words)
        program.table.words += [0] * len(head)
        self.numbers: dict[Any, int] = {}
        self.kept: list = []

    def set(self, name: str, value: int) -> None:
        self.program.table.words[self.start + self.names.index(name)] = value

    def set_address(self, name: str, i: int) -> None:
        word = self.start + self.names.index(name)
        self.program.table.words[word] = self.program.memory.address(i, word)

    def operand(self, i: int) -> int:
        """Return the number of an address in the row: that of a value."""
        if i not in self.numbers:
            self.numbers[i] = len(self.numbers)
            self.program.table.point_to(i)
        return self.numbers[i]

    def spare(self, nbytes: int) -> int:
        """Return the number of the address of memory of its own."""
        memory = np.zeros(max(8, nbytes) + 64, np.uint8)
        self.kept.append(memory)
        number = self.numbers[("spare", len(self.kept))] = len(self.numbers)
        self.program.table.words.append(data_address(memory) + -data_address(memory) % 64)
        return number

    def table(self, rows: list) -> int:
        """Return the address of a table of words."""
        table = np.array([w for row in rows for w in row] or [0], np.int64)
        self.kept.append(table)
        return data_address(table)


def patches(body: Any, i: int, even: int, odd: int, offset: int = 0, stride: int = 0, last: int = _FOREVER) -> list:
    """Return how the words of a body that point into value `i` are written."""
    start = data_address(body.code.arguments)
    place = body.memory.places.get(body.memory.base[i])
    slots = place.slots if place is not None else ()
    return [(start + 8 * word, even, odd, offset + more, stride, last) for word, more in slots]


def native_loop(program: Program, eq: Equation) -> bool:
    """Put a loop into the table of a program; false if it has values that no row can have."""
    loop = Loop(eq)
    if not _has_rows(program, eq, [loop.body]):
        return False
    small = scalar_loop.fits(loop)
    if small is not None:
        consts, carry, xs = _operands(program, loop)
        name, text = scalar_loop.function(loop, small, [program.memory.at[i].strides[0] for i in xs])
        if scalar_loop.may_fail(small):
            program.failing(eq)
        program.table.begin_row(name, text)
        scalar_loop.words(program, loop, [*consts, *carry, *xs], _FOREVER, small)
        program.nests.append(0)
        return True
    if native_nest(program, eq):
        return True
    graph = apart(loop.body)
    states = list(zip(loop.carry_inputs, Outputs.split(graph.outputs, eq.params).carry, strict=True))
    until = loop.has_condition  # the driver reads the first of the state in both of its places
    body = program.inner(graph, Body(loop.index_input, tuple(states[until:])))
    if body.fallbacks and native_nest(program, eq, large=True):
        return True
    consts, carry, xs = _operands(program, loop)
    if body.fails:
        program.failing(eq)
    program.table.begin_row("loop", loop_module)
    row, results = Row(program, LOOP), loop.results
    pairs = []  # the two places of each part of the state lie beside each other in the row; or it has one place
    for o, ends in zip(results.carry, states, strict=True):
        a = row.operand(o)
        pairs.append((a, a if body.memory.in_place(*ends) else row.spare(graph_bytes(program.graph, o))))
    places = _Places(
        carries=[
            (row.operand(i), a, b, graph_bytes(program.graph, o))
            for i, (a, b), o in zip(carry, pairs, results.carry, strict=True)
            if a != b or not program.memory.in_place(i, o)
        ],
        pairs=pairs,
        consts=[row.operand(i) for i in consts],
        xs=[(row.operand(i), program.memory.at[i].strides[0]) for i in xs],
        stacks=[row.operand(o) for o in results.ys],
    )
    _set_head(program, row, loop, pairs)
    program.add_bodies([body], lambda: _fill_row(row, loop, body, places))
    return True


class _Places(NamedTuple):
    """Numbers of addresses in a loop's row: the state and its two places, what stays, what moves with its stride."""

    carries: list[tuple]
    pairs: list[tuple[int, int]]
    consts: list[int]
    xs: list[tuple[int, int]]
    stacks: list[int]


def _operands(program: Program, loop: Loop) -> tuple[list[int], list[int], list[int]]:
    """Return the values that a loop reads, without gaps in memory; rows of what it runs along may lie apart."""
    consts = [program.table.contiguous(i) for i in loop.consts]
    carry = [program.table.contiguous(i) for i in loop.carry]
    return consts, carry, [program.table.contiguous(i, rows=True) for i in loop.xs]


def _set_head(program: Program, row: Row, loop: Loop, pairs: list) -> None:
    """Write how often a loop runs, and what tells it to stop."""
    row.set("watch", program.watch.address)
    row.set("limit", loop.length if loop.stop == "length" else _FOREVER)
    if loop.stop == "count":
        row.set_address("count", loop.count)
    row.set("until", pairs[0][0] if loop.has_condition else -1)
    row.set("reverse", int(loop.reverse))
    for o in loop.results.steps:
        row.set_address("done", o)


def _fill_row(row: Row, loop: Loop, body: Any, places: _Places) -> None:
    """Write where a body's table is, and how its words are written before the loop and before each step."""
    graph = body.graph
    inputs, outputs = Inputs.split(graph.inputs, loop.params), Outputs.split(graph.outputs, loop.params)
    once = [p for i, k in zip(inputs.consts, places.consts, strict=True) for p in patches(body, i, k, k)]
    moving: list = []
    for i, v, (a, b) in zip(inputs.carry, outputs.carry, places.pairs, strict=True):
        if a == b:
            once += patches(body, i, a, a)
        else:
            moving += patches(body, i, a, b)
            moving += patches(body, v, b, a)
    for i, (k, stride) in zip(inputs.xs, places.xs, strict=True):
        moving += patches(body, i, k, k, 0, stride)
    for v, k in zip(outputs.ys, places.stacks, strict=True):
        moving += patches(body, v, k, k, 0, graph_bytes(graph, v), loop.length - 1)
    row.set("functions", data_address(body.code.functions))
    row.set("arguments", data_address(body.code.pointers))
    row.set("rows", len(body.table.rows))
    for i in inputs.number:
        row.set("index", body.memory.addresses[i])
    carries = sorted(places.carries, key=lambda c: c[1] == c[2])
    row.set("turning", sum(a != b for _, a, b, _ in carries))
    for name, count, rows in (
        ("once", "onces", once), ("patches", "patched", moving), ("carries", "carried", carries),
    ):  # fmt: skip
        row.set(name, row.table(rows))
        row.set(count, len(rows))


def native_branch(program: Program, eq: Equation) -> bool:
    """Put a branch into the table of a program; false if it has values that no row can have."""
    index, graphs = eq.ins[0], eq.params["branches"]
    width = {np.dtype(bool): 8, np.dtype(np.int64): 64}.get(program.graph.types[index].dtype)
    if not width or not _has_rows(program, eq, graphs):
        return False
    bodies = [program.inner(apart(g), Body()) for g in graphs]
    operands = [program.table.contiguous(i) for i in eq.ins[1:]]
    if any(body.fails for body in bodies):
        program.failing(eq)
    program.table.begin_row("branch", branch_module)
    row = Row(program, BRANCH)
    row.set_address("index", index)
    row.set("width", width)
    row.set("watch", program.watch.address)
    row.set("branches", len(bodies))
    numbers = [row.operand(i) for i in operands]
    results = [row.operand(o) for o in eq.outs]

    def fill() -> None:
        table = []
        for body in bodies:
            graph = body.graph
            ends = [*zip(graph.inputs, numbers, strict=True), *zip(graph.outputs, results, strict=True)]
            once = [p for i, k in ends for p in patches(body, i, k, k)]
            code, rows = body.code, len(body.table.rows)
            table.append((data_address(code.functions), data_address(code.pointers), rows, row.table(once), len(once)))
        row.set("bodies", row.table(table))

    program.add_bodies(bodies, fill)
    return True


def graph_bytes(graph: Graph, i: int) -> int:
    return graph.types[i].nbytes
