"""The trace of a body that is run once to see what it does, before it is recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fad.control_flow.bodies.subgraph import BodyTrace
from fad.core.tracing.tracer import Tracer


class TrialTrace(BodyTrace):
    """The trace of a body that is run to see what it does; nothing is made of what it writes down."""

    __slots__ = ("branches", "decides", "inner_work", "plain")

    def __init__(self) -> None:
        super().__init__()
        self.branches = 0  # of which a value says which way is taken
        self.decides = False  # whether a value says which way is taken, be it of an expression
        self.inner_work = 0  # operations of further steps of inner loops
        self.plain: set[int] = set()  # inner loops that could not do without the number of their step, by identity

    @contextlib.contextmanager
    def repeat(self, steps: int) -> Iterator[Tracer]:
        """Count what a block does as often as a loop's steps; give a number for the step."""
        before, work = len(self.equations), self.inner_work
        yield self.new(0)
        once = len(self.equations) - before + self.inner_work - work
        self.inner_work += max(0, steps - 1) * once
