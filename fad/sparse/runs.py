"""Runs of one function for one matrix: each finds the arrays from outside as the first one found them.

A sparse derivative runs its function for the places, for the passes and for what compares them. What the function
writes into arrays from outside must come once, and no run may see what another one wrote.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from fad.core.runs.overlay_needs import needs_of
from fad.core.tracing.trace import Trace
from fad.core.tracing.views import finding_writes
from fad.transforms.arguments.undo_writes import outside


class Runs:
    """What the runs of a function write into arrays from outside, where its code writes at all."""

    __slots__ = ("writes", "earlier", "written", "kept")

    def __init__(self, fun: Callable):
        self.writes = bool(needs_of(fun).spaces)
        self.earlier = outside(fun)
        self.written = finding_writes()
        self.kept: list = []  # the arrays that the last run wrote; its own ones die with it

    def wrap(self, fun: Callable) -> Callable:
        """Return a function as one of which a run first undoes what the run before has written."""
        if not self.writes:
            return fun

        def run(*args: Any) -> Any:
            self._undo()
            with finding_writes(undoable=True, since=Trace().birth) as self.written:
                y = fun(*args)
            self.kept = [(weakref.ref(root), then) for root, then in self.written.found]
            self.written.found = []
            return y

        return run

    def _undo(self) -> None:
        self.earlier.undo()
        self.written.found = [(root, then) for kept, then in self.kept if (root := kept()) is not None]
        self.written.undo()
