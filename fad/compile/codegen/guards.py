"""Guards: a value that the recorded program converted to a Python number must give the same number again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fad.compile.codegen.llvm.guards_and_gathers import guard_module
from fad.compile.codegen.numpy_calls import getter
from fad.compile.codegen.program import Program
from fad.compile.schedule.fusion import Step
from fad.core.programs.graph import GuardFailed, ask, same_outcome

_GUARDED = (np.dtype(bool), np.dtype(np.int64))


def add_guard(program: Program, step: Step) -> Callable | None:
    """Add the row that compares a number with what it was; or return the function that asks an array."""
    eq = step.equations[0]
    i = eq.ins[0]
    t = program.graph.types[i]
    want = eq.params["outcome"]
    position = program.position[id(eq)]
    if t.shape == () and type(want) in (bool, int) and t.dtype in _GUARDED:
        width = 8 if t.dtype.kind == "b" else 64
        if (width == 8) == (type(want) is bool):
            program.failing(eq)
            program.table.begin_row(f"guard_{width}", lambda: guard_module(width))
            program.table.point_to(i)
            program.table.words.append(int(want))
            return None
    at = program.memory.at
    convert = eq.params["convert"]
    get = getter(program, i)

    def check():
        found = ask(get(at), convert)
        if not same_outcome(want, found):
            raise GuardFailed(eq, position, found)

    return check
