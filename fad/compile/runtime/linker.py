"""Linking: the functions of a program get addresses, and its table becomes arrays that a native driver runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.interrupt_check import glance_module
from fad.compile.codegen.llvm.worker_pool import pool_module
from fad.compile.codegen.program import Program
from fad.compile.runtime import entry_point, jit_engine

# What programs need besides their kernels: the entry point, the look at the clock, the pool of threads.
SUPPORT: dict[str, Callable] = {**entry_point.RUNTIME, "glance": glance_module, "pool_run": pool_module}


class Code:
    """A linked table: functions, the words of all their rows, where each row begins, and what is run in which order."""

    __slots__ = ("functions", "arguments", "pointers", "runs")

    def __init__(self, program: Program, found: dict[str, int]):
        table = program.table
        self.arguments = np.array(table.words or [0], np.int64)
        start = self.arguments.ctypes.data
        self.functions = np.array([found[name] for name, _ in table.rows] or [0], np.uint64)
        for word, name in table.late:
            self.arguments[word] = found[name]
        self.pointers = np.array([start + 8 * word for _, word in table.rows] or [0], np.int64)
        self.runs: list[tuple[Any, Any, Any]] = []  # (address of a row of the driver, its first row) | (None, function)
        for part in program.parts:
            if part[0] == "run":
                _, a, b = part
                starts = (self.functions.ctypes.data + 8 * a, self.pointers.ctypes.data + 8 * a)
                row = np.array([*starts, b - a, program.watch.address], np.int64)
                self.runs.append((row.ctypes.data, a, row))
            else:
                self.runs.append((None, part[1], part[2]))


def prepare() -> None:
    """Compile, or load, what every program needs, whatever it computes."""
    jit_engine.addresses(SUPPORT)


def link(program: Program) -> None:
    """Compile what a program's table calls, and fill in the addresses, of its bodies first."""
    found = jit_engine.addresses({**program.table.kernels, **SUPPORT})
    program.watch.memory[0] = found["glance"]
    _fill(program, found)


def _fill(program: Program, found: dict[str, int]) -> None:
    for body in program.bodies:
        _fill(body, found)
    for fill in program.when_linked:
        fill()
    program.code = Code(program, found)
