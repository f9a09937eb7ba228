"""Pushes and pops of a native program: rows that copy values onto a stack, whose memory grows, and back."""

from __future__ import annotations

from fad.compile.codegen.llvm.stacks import pop_module, push_module
from fad.compile.codegen.program import Program
from fad.compile.ir.slice_writes import data_address
from fad.compile.machine.stack_memory import REALLOC, StackMemory
from fad.compile.schedule.fusion import Step


def add_push(program: Program, step: Step) -> None:
    """Add the row of a push: below, above, and where each value lies."""
    eq = step.equations[0]
    values = [program.table.contiguous(i) for i in eq.ins[1:]]
    program.failing(eq)  # if there is no memory
    program.table.begin_row("stack_push", push_module)
    _write_row(program, eq.params["memory"], eq.ins[0], eq.outs[0], values)


def add_pop(program: Program, step: Step) -> None:
    """Add the row of a pop: below, above, and where each value is to lie."""
    eq = step.equations[0]
    program.table.begin_row("stack_pop", pop_module)
    _write_row(program, eq.params["memory"], eq.outs[0], eq.ins[0], list(eq.outs[1:]))


def _write_row(program: Program, memory: StackMemory, below: int, above: int, values: list[int]) -> None:
    table = program.table
    table.words += [data_address(memory.words), REALLOC, memory.record]
    table.point_to(below)
    table.point_to(above)
    table.words.append(len(values))
    for i, (offset, t) in zip(values, memory.parts, strict=True):
        table.point_to(i)
        table.words += [offset, t.nbytes]
