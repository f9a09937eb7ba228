"""Programs of a device that are recorded as a whole: from the third call on, all their launches are one.

A backend offers that as ``Replay`` (`fad.backends.cuda_graphs`). What asks the device for a number cannot be recorded,
and where little is launched, or much would be copied, the program runs as it was written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from fad import config
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.programs.graph import ARRAY, Equation, Graph, has_effects

FEWEST, MOST = 4, 10_000  # launches of a program that is recorded
WORTH = 1 << 20  # bytes that are copied into a recording and out of it in less than the time of one launch
_RECORDINGS = 2  # of one program: the second takes all arguments from anywhere


class Replays:
    """The recordings of one program, and the decision whether there are any."""

    def __init__(self, graph: Graph, function: Callable, backend: Any, launches: int, called_with: set):
        self.function = function
        self.make = backend.Replay
        self.array_type = backend.array_type
        self.launches = launches
        self.numbers = {k: graph.types[i].dtype for k, i in enumerate(graph.inputs) if graph.types[i].kind != ARRAY}
        self.why_not = _refusal(graph, launches, called_with)
        self.seen: list | None = None  # where the arguments of the call before were
        self.moving: set[int] = set()
        self.made = 0
        self.replay: Any = None
        self.lock = threading.Lock()

    def note(self) -> str:
        if self.why_not:
            return f"launches are not recorded: {self.why_not}"
        if self.replay is None:
            return "launches are recorded in the next calls"
        return f"launches are replayed as one, from a recording of {self.replay.nbytes()} bytes"

    def __call__(self, xs: list) -> list | None:
        """Return the results of a call, or None where the program is to run as it was written."""
        if self.why_not or not config.device_graphs.get():
            return None
        arrays = [k for k in range(len(xs)) if k not in self.numbers]
        if any(type(xs[k]) is not self.array_type for k in arrays):
            return None
        replay = self.replay
        if replay is None or not replay.serves(xs):
            with self.lock:
                replay = self._look(xs, arrays)
        return None if replay is None else replay(xs)

    def _look(self, xs: list, arrays: list[int]) -> Any:
        """Make a recording for arguments that come from where these and those of the call before were, or None yet."""
        places = [self.make.find(xs[k]) for k in arrays]
        seen, self.seen = self.seen, places
        if seen is None:
            return None
        self.moving.update(k for k, a, b in zip(arrays, seen, places, strict=True) if a != b)
        if self.made:
            self.moving.update(arrays)
        self.replay = None
        copied = sum(xs[k].nbytes for k in self.moving)
        if copied > self.launches * WORTH:
            self.why_not = f"{copied} bytes of arguments would be copied for {self.launches} launches"
        elif self.made == _RECORDINGS:
            self.why_not = "the arguments are elsewhere, or lie otherwise, in each call"
        else:
            self.made += 1
            try:
                self.replay = self.make(self.function, xs, self.moving, self.numbers)
            except Exception as error:  # the call runs without it, and raises what is the program's own
                self.why_not = f"{type(error).__name__}: {error}"
        return self.replay


def _refusal(graph: Graph, launches: int, called_with: set) -> str:
    """Return why a program cannot be recorded, or is not worth it, or an empty string."""
    if not FEWEST <= launches <= MOST:
        return f"there are {launches}"
    if any(_asks(eq) for eq in graph.equations):
        return "a loop, a branch or a question waits for a number of the device"
    if any(map(has_effects, graph.equations)):
        return "the program does more than compute"
    for i in graph.inputs:
        t = graph.types[i]
        if t.kind != ARRAY and (id(graph), i) in called_with:
            return "a number is given to an operation that is no kernel"
        if t.kind == ARRAY and t.home is None:
            return "an argument is an array of the host"
    return ""


def _asks(eq: Equation) -> bool:
    """Return whether an operation, or one of its body, waits for a number of the device."""
    if eq.is_guard or eq.prim.archetype == "branch":
        return True
    if eq.prim.archetype != "loop":
        return False
    loop = Loop(eq)
    return loop.has_condition or loop.stop != "length" or any(map(_asks, loop.body.equations))


def count_launches(eq: Equation) -> int:
    """Return how many launches an operation is, about: those of all steps of a loop."""
    if eq.prim.archetype == "loop":
        return (eq.params["length"] or 1) * sum(map(count_launches, eq.params["body"].equations))
    return int(not eq.is_view and not eq.is_guard)
