"""Assembling: the steps of a program, one after the other, become rows of its table, or NumPy calls between them."""

from __future__ import annotations

from fad.compile.codegen.program import Program
from fad.compile.codegen.python_rows import add_python_call
from fad.compile.codegen.selection import emit


def assemble(program: Program) -> None:
    """Write a program's table: all but the addresses of functions."""
    table, start = program.table, 0
    for step in program.memory.steps:
        before = len(table.rows)
        call = emit(program, step)
        if call is not None and program.memory.within:
            add_python_call(program, step, call)
        elif call is not None:
            if before > start:
                program.parts.append(("run", start, before))
            start = len(table.rows)
            program.parts.append(("call", call, step))
    if len(table.rows) > start:
        program.parts.append(("run", start, len(table.rows)))
