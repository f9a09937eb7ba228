"""What a run does to tangents, step by step: where another run does the same, its derivative has the same places.

The places of a matrix depend on the values of the inputs through what a run decides alone: which operations it runs,
on what, and at which indices. Of a product with a constant array the numbers do not matter. So a run that repeats the
program of another one, which was looked at and checked, needs no check of its own.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer


class ProgramChanged(Exception):
    """A run does otherwise than the run did of which the places are known."""


@dataclass(eq=False)
class Program:
    """What is known of the passes of a plan."""

    steps: dict | None = None  # of those from the right and from the left, of a run that was checked
    loops: bool = False  # whether a pass runs what only `vmap` does for many vectors at once


@dataclass(eq=False)
class Watch:
    """One call that runs the passes of a plan: it is compared with the program that is known, or noted as that."""

    program: Program
    comparing: bool
    noting: bool
    steps: dict = field(default_factory=dict)
    plain: bool = True  # whether no traced value is among the steps, so that a program of `jit` always runs them so

    def meet(self, side: str, steps: list) -> None:
        """Compare the steps of a run, or note them."""
        known = self.program.steps if self.comparing else self.steps
        if known is None or (side in known and not _are_same(steps, known[side])):
            self.program.steps = None
            self.miss()
        elif self.noting and side not in known:
            known[side] = _freeze(steps)
            self.plain = self.plain and not _has_traced(steps)

    def miss(self) -> None:
        """Answer a run that cannot be compared."""
        if self.comparing:
            raise ProgramChanged
        self.noting = False

    def close(self) -> None:
        """Know the program from now on: its places were checked."""
        if self.noting:
            self.program.steps = self.steps


def _are_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b) or kind is Tracer:
        return False
    if kind is tuple or kind is list:
        return len(a) == len(b) and (all(map(operator.is_, a, b)) or all(map(_are_same, a, b)))
    if kind is dict:
        return a.keys() == b.keys() and all(_are_same(a[k], b[k]) for k in a)
    if kind is np.ndarray:
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


def _has_traced(x: Any) -> bool:
    kind = type(x)
    if kind is tuple or kind is list:
        return any(map(_has_traced, x))
    if kind is dict:
        return any(map(_has_traced, x.values()))
    return kind is Tracer


def _freeze(x: Any) -> Any:
    """Return steps with copies of their arrays, into which somebody may write; a traced value is like no other."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind(map(_freeze, x))
    if kind is dict:
        return {k: _freeze(v) for k, v in x.items()}
    if kind is Tracer:
        return object()
    return x.copy() if kind is np.ndarray else x
