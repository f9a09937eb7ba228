"""Loops that NumPy runs for as long as native code would take to be there.

How many steps a ``while`` takes is not known before it has run. In a program that runs once NumPy begins; a loop that
has not ended after so many operations is given up, and compiled.
"""

from __future__ import annotations

from typing import Any

from fad.compile.passes.loop_bodies import is_control
from fad.compile.targets.numpy_program import NumPyProgram, Writer
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.programs.graph import Graph, has_effects

_LIKE_ONE = 1000  # elements that NumPy computes, or copies, in the time of one call


class TakesTooLong(BaseException):
    """A program has run as many operations as it may. Not an Exception: what it calls may catch those."""


class LimitedWriter(Writer):
    """Writes a program whose loops count what they run."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.left = limit
        self.space["spend"] = self.spend

    def spend(self, operations: float) -> None:
        self.left -= operations
        if self.left < 0:
            raise TakesTooLong

    def begin_step(self, loop: Loop) -> list[str]:
        return [f"spend({1.0 + sum([cost_of(loop.body, eq) for eq in loop.body.equations if not is_control(eq)])})"]


def cost_of(graph: Graph, eq: Any) -> float:
    """Return what an operation costs: one of a large array takes as long as many calls."""
    return 1.0 + sum([graph.types[o].size for o in eq.outs]) / _LIKE_ONE


def run_within(graph: Graph, operands: list, limit: float) -> list | None:
    """Run a program by NumPy; return None if that takes more operations than the limit, or may not be tried."""
    if any(map(has_effects, graph.equations)):
        return None  # which would happen twice
    try:
        return NumPyProgram(graph, LimitedWriter(limit))(operands)
    except TakesTooLong:
        return None
