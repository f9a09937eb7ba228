"""Arrays from outside that a function finds by name, behind handles: as they were before it ran."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fad import tree
from fad.core.handles.buffers import LOST, PLAIN, blank
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import RUNS, Memory, contents_of, is_outside, point, root_of, snapshot
from fad.introspect.reachable import reach

_versions = itertools.count(1 << 40, 1 << 20)  # of arrays for the length of a block, unlike those of any other


class Handles:
    """The traced arrays among those that a function reaches, and what they stand for when it is to run.

    Of a view that is the array that it was taken from, so that in a block it is taken again.
    """

    __slots__ = ("kept", "written")

    def __init__(self, found: Iterable):
        self.kept: list[tuple] = []
        self.written: dict[int, Tracer] = {}  # the arrays that were written in a block
        self.add(found)

    def add(self, found: Iterable) -> None:
        """Add arrays as they are now, but those that are among them already."""
        known = {id(x) for x, _, _ in self.kept}
        roots = {id(root): root for x in found if type(x) is Tracer for root in (root_of(x),) if not root.owner.dead}
        self.kept += [(x, contents_of(x), _as_now(x)) for key, x in roots.items() if key not in known]

    def were_written(self) -> bool:
        """Return whether one of the arrays was written since."""
        return any(contents_of(x) != before for x, before, _ in self.kept)

    @contextlib.contextmanager
    def restore(self) -> Iterator[None]:
        """Let the handles stand for the length of a block for what they stood for then."""
        now = [(x, x.wrapped, x.owner, x.info, x.memory) for x, _, _ in self.kept]
        versions = [_stand(x, then) for x, _, then in self.kept]
        try:
            yield
        finally:
            for (x, *state), version in zip(now, versions, strict=True):
                if contents_of(x) != (version, 0):
                    self.written[id(x)] = x
                x.wrapped, x.owner, x.info, x.memory = state


def _as_now(x: Tracer) -> Any:
    """Return what an array stands for now, whatever is written into it: a plain one copied once while it stays so."""
    if x.owner is LOST:
        return blank(x)
    return PLAIN.freeze(x) if x.owner is PLAIN and not is_outside(x) else snapshot(x)


def _stand(x: Tracer, then: Any) -> int:
    """Let a handle stand for what it stood for then; return its version."""
    memory = Memory()
    memory.version = next(_versions)
    if type(then) is Tracer:
        point(x, snapshot(then))
    else:
        x.wrapped, x.owner, x.info = then, PLAIN, None
        memory.borrowed = True
    x.memory = memory
    return memory.version


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
