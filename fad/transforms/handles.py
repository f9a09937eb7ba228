"""Arrays from outside that a function finds by name, behind handles: as they were before it ran."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from fad.core.memory import contents_of, point, snapshot
from fad.core.tracer import Tracer
from fad.introspect.reachable import reached


class Handles:
    """The traced arrays that a function reaches, and what they stand for when it is to run."""

    __slots__ = ("kept",)

    def __init__(self, fun: Callable):
        found = [x for x in reached(fun) if type(x) is Tracer and not x.trace.dead]
        self.kept = [(x, contents_of(x), snapshot(x)) for x in found]

    def written(self) -> bool:
        """Return whether one of the arrays was written since."""
        return any(contents_of(x) != before for x, before, _ in self.kept)

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Let the handles stand for the length of a block for what they stood for then."""
        now = [(x, x.value, x.trace, x.info, x.memory) for x, _, _ in self.kept]
        try:
            for x, _, then in self.kept:
                point(x, snapshot(then))
                x.memory = None
            yield
        finally:
            for x, *state in now:
                x.value, x.trace, x.info, x.memory = state
