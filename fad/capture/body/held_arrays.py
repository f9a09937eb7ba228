"""Which arrays a list knows for which one array stands in the steps of a loop: what is put in, or taken out, is a copy.

That nobody can tell as long as no array is written while the list knows it, too. So a step that does is refused. Behind
it the list counts as one more name for what has been put in, or taken out (`aliases.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.capture.body.state import is_handle, is_written
from fad.core.handles.buffers import buffer
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import contents_of, root_of


class HeldArrays:
    """The arrays that one list has had since the loop began."""

    __slots__ = ("before", "known", "_name", "_any")

    def __init__(self, name: Any, x: Any):
        self.before = [root_of(y) for y in tree.leaves(x) if is_handle(y)]  # those in the list before the loop
        self.known: list[tuple[Tracer, Any]] = []  # what steps have put in or taken out, and how often it was written
        self._name = name
        self._any = buffer(np.zeros(1))  # stands for any of them behind an inner loop or a branch

    def __str__(self) -> str:
        return f"what the list {self._name} holds"

    def note(self, x: Any) -> None:
        """Note what is put in, or a copy of what is taken out."""
        if is_handle(x) and x.shape:
            self.known.append((root_of(x), contents_of(x)))

    def check(self, since: int) -> list[Tracer]:
        """Return the arrays that were put in or taken out; refuse a step that has written into one, or one before."""
        known = self.known[since:]
        if any(contents_of(x) != writes for x, writes in known) or any(map(is_written, self.before)):
            refuse(f"it writes into an array that is, or was, {self}")
        return [x for x, _ in known]

    def forget(self, since: int, trace: Any) -> None:
        """Forget the arrays of a trace that is done, so that nobody here holds them; count the writes into others."""
        others = [x for x, _ in self.known[since:] if x.owner is not trace]
        self.known[since:] = [(x, contents_of(x)) for x in others]

    def left(self, plain: Any) -> list[Tracer]:
        """Return the arrays that are in the list behind a loop or branch: behind an inner one, what stands for them."""
        return [self._any] if plain is None else [x for x in tree.leaves(plain) if is_handle(x)]


Marks = list[tuple[HeldArrays, int]]


def mark_lists() -> Marks:
    """Return what lists hold for which arrays stand, and how much there was where the code that runs began."""
    body = current()
    return [] if body is None else [(x, len(x.known)) for x in body.held]


def held_since(marks: Marks) -> dict[Any, list[Tracer]]:
    """Return what code has put into lists, or taken out; refuse code that has written into it."""
    return {x: x.check(since) for x, since in marks}
