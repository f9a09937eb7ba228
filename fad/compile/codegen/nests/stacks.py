"""Pushes and pops within a loop nest: what a loop without a known number of steps keeps, in memory that grows."""

from __future__ import annotations

import numpy as np

from fad.compile.codegen.nests.body import Body, llvm_type
from fad.compile.codegen.nests.values import Buffer, Stored, contiguous
from fad.compile.codegen.nests.writer import Index, Number, TooMuch
from fad.compile.ir.types import I64
from fad.compile.machine.stack_memory import REALLOC, StackMemory
from fad.core.programs.graph import Equation, Type

_REALLOC = np.array([REALLOC], np.int64)


def emit_push(body: Body, eq: Equation) -> None:
    """Write values behind the last record, in more memory if need be; leave the function if there is none."""
    w, memory = body.w, eq.params["memory"]
    depth, words = _depth(body, eq.ins[0]), _words(body, memory)
    capacity = w.new(f"getelementptr i64, ptr {words}, i64 1")
    above = w.plus(depth, 1)
    full = w.fresh(f"icmp sge i64 {depth}, {w.fresh(f'load i64, ptr {capacity}')}")
    grow, copy = w.label(), w.label()
    w.do(f"br i1 {full}, label %{grow}, label %{copy}")
    w.begin(grow)
    with w.block():
        records = w.fresh(f"shl i64 {above}, 1")
        wanted = w.fresh(f"mul i64 {records}, {memory.record}")
        function = w.fresh(f"load ptr, ptr {body.memory.pointer_to(_REALLOC).pointer}")
        old = w.fresh(f"load ptr, ptr {words}")
        new = w.fresh(f"call ptr {function}(ptr {old}, i64 {wanted})")
        w.require(w.fresh(f"icmp ne ptr {new}, null"))
        w.do(f"store ptr {new}, ptr {words}")
        w.do(f"store i64 {records}, ptr {capacity}")
    w.do(f"br label %{copy}")
    w.begin(copy)
    record = _record(body, words, memory, depth)
    for i, (offset, t) in zip(eq.ins[1:], memory.parts, strict=True):
        value, place = body.values[i], _part(body, record, offset, t)
        if isinstance(value, Number):
            w.write(value.t, value.name, place.pointer)
        else:
            body.put(value, place)
    w.loaded = {}
    body.values[eq.outs[0]] = Number(str(above), I64)


def emit_pop(body: Body, eq: Equation) -> None:
    """Read the values of the last record."""
    w, memory = body.w, eq.params["memory"]
    depth = w.plus(_depth(body, eq.ins[0]), -1)
    record = _record(body, _words(body, memory), memory, depth)
    below, *outs = eq.outs
    body.values[below] = Number(str(depth), I64)
    for o, (offset, t) in zip(outs, memory.parts, strict=True):
        part = _part(body, record, offset, t)
        if t.shape:
            body.values[o] = body.stored(part, body.place(o))
            continue
        body.values[o] = Number(w.read(part.t, part.pointer), part.t)
        if o in body.places:
            body.put(body.values[o], body.places[o])


def _depth(body: Body, i: int) -> Index:
    depth = body.values[i]
    if not isinstance(depth, Number) or depth.t != I64:
        raise TooMuch("the number of records is no integer of 64 bits")
    return depth.name


def _words(body: Body, memory: StackMemory) -> str:
    """Return the address of the words that say where the records are, and for how many there is memory."""
    return body.memory.pointer_to(memory.words).pointer


def _record(body: Body, words: str, memory: StackMemory, number: Index) -> str:
    """Return the address of a record."""
    w = body.w
    return w.advance(w.fresh(f"load ptr, ptr {words}"), w.times(number, memory.record))


def _part(body: Body, record: str, offset: int, t: Type) -> Stored:
    """Return a value of a record as an array in memory."""
    kind, pointer = llvm_type(t.dtype), body.w.advance(record, offset)
    return Stored(frozenset((Buffer(record),)), pointer, 0, t.shape, contiguous(t.shape, kind), kind)
