"""A loop nest as one row of a native program: its function, and the addresses that it gets."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.module import NEST, Module
from fad.compile.codegen.nests.body import Body, Memory, Order, llvm_type, note_integers, number_of
from fad.compile.codegen.nests.control import emit_any
from fad.compile.codegen.nests.values import Stored, Value, spread, whole
from fad.compile.codegen.nests.writer import Number, TooMuch, Writer
from fad.compile.codegen.program import Program
from fad.compile.ir.slice_writes import data_address
from fad.compile.passes.constants import as_uniform
from fad.core.programs.graph import Equation


def native_nest(program: Program, eq: Equation, large: bool = False) -> bool:
    """Put a loop, with all loops in it, into the table of a program as one function; false if it is not fit.

    With `large`, the arrays of one operation may have more elements than a kernel of its own should do.
    """
    writer = Writer(large)
    memory = Memory(writer)
    try:
        _write(program, eq, memory)
    except TooMuch:
        return False
    text = writer.function(memory.pointers)
    name = f"n{hashlib.sha256(text.encode()).hexdigest()[:20]}"
    if writer.fails:
        program.failing(eq)
    program.table.begin_row(name, lambda: Module(text.replace("@NAME", f"@{name}"), NEST))
    program.nests.append(memory.taken_over)
    words = program.table.words
    words.append(program.watch.address)
    for what in memory.given:
        if type(what) is int:
            program.table.point_to(what)
        else:
            words.append(_keep_memory(program, *what))
    return True


def _write(program: Program, eq: Equation, memory: Memory) -> None:
    """Write the function: operands are read, the loop runs, and numbers are written to where results belong."""
    w, graph = memory.w, program.graph
    results = {o: memory.pointer(o) for o in eq.outs}
    places: dict[int, Stored] = {}
    given: dict[int, Value] = {}
    over: dict[int, int] = {}
    for o in eq.outs:
        if graph.types[o].shape:
            places[o] = whole(results[o], graph.types[o].shape, llvm_type(graph.types[o].dtype))
    for i in dict.fromkeys(eq.ins):
        mine = next((o for o in eq.outs if eq.ins.count(i) == 1 and program.memory.in_place(i, o)), None)
        if mine is None:
            given[i] = _operand(program, memory, i)
        else:
            over[mine] = i
            t = llvm_type(graph.types[i].dtype)
            given[i] = places[mine] if mine in places else Number(w.read(t, results[mine].pointer), t)
    alone = graph.replace(inputs=list(given), constants={}, equations=[eq], outputs=list(eq.outs))
    order = Order(alone, [])
    order.over = over
    owned = {b for o in over if o in places for b in places[o].buffers}
    body = Body(memory, order, given, dict(places), owned)
    for o, value in zip(eq.outs, body.write(emit_any), strict=True):
        if isinstance(value, Number):
            w.write(value.t, value.name, results[o].pointer)


def _operand(program: Program, memory: Memory, i: int) -> Value:
    t, array = llvm_type(program.graph.types[i].dtype), program.memory.at[i]
    if i in program.graph.constants:
        number = as_uniform(np.asarray(program.graph.constants[i]))
        if number is not None:
            return spread(number_of(number, t), program.graph.types[i].shape)
    buffer = memory.pointer(i)
    if program.graph.types[i].shape:
        found = Stored(frozenset((buffer,)), buffer.pointer, 0, array.shape, array.strides, t)
        if i in program.graph.constants:
            note_integers(found, np.asarray(program.graph.constants[i]))
        return found
    return Number(memory.w.read(t, buffer.pointer), t)


def _keep_memory(program: Program, kind: str, what: Any) -> int:
    """Return the address of memory that is kept as long as the program: space for an array, or a constant."""
    array = np.ascontiguousarray(what) if kind == "constant" else np.zeros(what + 64, np.uint8)
    program.table.kept.append(array)
    address = data_address(array)
    return address if kind == "constant" else address + -address % 64
