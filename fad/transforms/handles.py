"""Arrays from outside that a function finds by name, behind handles: as they were before it ran."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fad import tree
from fad.core.memory import RUNS, contents_of, point, snapshot
from fad.core.tracer import Tracer
from fad.introspect.reachable import reach


class Handles:
    """The traced arrays among those that a function reaches, and what they stand for when it is to run."""

    __slots__ = ("kept",)

    def __init__(self, found: Iterable):
        traced = [x for x in found if type(x) is Tracer and not x.owner.dead]
        self.kept = [(x, contents_of(x), snapshot(x)) for x in traced]

    def were_written(self) -> bool:
        """Return whether one of the arrays was written since."""
        return any(contents_of(x) != before for x, before, _ in self.kept)

    @contextlib.contextmanager
    def restore(self) -> Iterator[None]:
        """Let the handles stand for the length of a block for what they stood for then."""
        now = [(x, x.value, x.owner, x.info, x.memory) for x, _, _ in self.kept]
        try:
            for x, _, then in self.kept:
                point(x, snapshot(then))
                x.memory = None
            yield
        finally:
            for x, *state in now:
                x.value, x.owner, x.info, x.memory = state


def closes_over_tracer(fun: Callable) -> bool:
    """Return whether a function holds traced values, which a recording of it could not."""
    if RUNS.buffers and any(type(x) is Tracer for x in reach(fun)):  # arrays that may be written between the calls
        return True
    for cell in getattr(fun, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # a cell that is still empty
            continue
        if type(value) is Tracer or (type(value) in (tuple, list, dict) and _holds_tracer(value)):
            return True
    return False


def _holds_tracer(value: Any) -> bool:
    return any(type(x) is Tracer for x in tree.leaves(value))
