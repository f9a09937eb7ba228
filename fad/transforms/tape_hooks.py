"""Reverse mode under observation: which line made each record, and what each rule does in the backward pass.

A `Watcher` is asked around the rule of every record of a backward pass, on the flat tape and on the eager graph alike.
Without one nothing is noted: the traces are then the ordinary ones.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import FunctionType
from typing import Any, cast

import numpy as np

from fad.core.primitives.cotangent import Indexed, densify
from fad.core.tracing.views import unwrap
from fad.introspect.frames import show_place, user_place
from fad.transforms.arguments.check import root
from fad.transforms.reverse.backward_sweep import sweep
from fad.transforms.reverse.overwrites import VIEW
from fad.transforms.reverse.slopes import Steep, find_care, parents_of
from fad.transforms.reverse.tape import BOTH, CALL, EFFECT, INDEX, MULTI, ONE_OF_TWO, PRODUCT, RERUN, UNARY, WRITE
from fad.transforms.vjp import WritingVJPTrace, make_trace

_ARRAY = sys.getsizeof(np.ndarray(0))  # bytes of an array besides its numbers
_RECORD = 512  # bytes that a record takes at most, with the numbers in it
_SMALL = frozenset({int, float, np.float64, type(None), FunctionType})
_SAVES_NOTHING = (CALL, RERUN, INDEX, VIEW)


class Note:
    """What is known of a record: the operation, the user's line, and the shapes and values that it saved."""

    __slots__ = ("name", "place", "shape", "saved")

    def __init__(self, name: str, place: str, shape: tuple, saved: list):
        self.name = name
        self.place = place
        self.shape = shape
        self.saved = saved


class Watcher:
    """Subclasses override what they want to see."""

    def backward(self, note: Note, cts: list, run: Callable) -> None:
        """Called for each rule: ``run()`` runs it, and returns the cotangents that the operands hold afterwards."""
        run()

    def finish_tape(self, trace: WatchedTrace) -> None:
        """Called when a watched trace has finished recording."""


current: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[Watcher]:
    """Let a watcher see every backward pass of the block."""
    tokens = current.set(watcher), make_trace.set(WatchedTrace)
    try:
        yield watcher
    finally:
        make_trace.reset(tokens[1])
        current.reset(tokens[0])


class WatchedTrace(WritingVJPTrace):
    """Reverse mode that notes the operation and the line of every record."""

    __slots__ = ("notes", "kept", "busy")

    def __init__(self) -> None:
        super().__init__()
        self.notes: dict[int, tuple] = {}
        self.kept: Any = None
        self.busy = False

    def finish(self) -> None:
        self.kept = self.tape
        super().finish()
        watcher = current.get()
        if watcher is not None:
            watcher.finish_tape(self)

    def _note(self, name: str, run: Callable) -> Any:
        """Run a method that records, and note what it recorded; methods that call one another note once."""
        if self.busy:
            return run()
        n = len(self.tape)
        self.busy = True
        try:
            out = run()
        finally:
            self.busy = False
        if len(self.tape) > n:
            first = out[0] if type(out) in (tuple, list) else out
            self.notes[n] = (name, user_place(), getattr(first, "shape", ()))
        return out

    def unary(self, prim, x):
        return self._note(prim.name, lambda: WritingVJPTrace.unary(self, prim, x))

    def both(self, prim, x, y):
        return self._note(prim.name, lambda: WritingVJPTrace.both(self, prim, x, y))

    def left(self, prim, x, b):
        return self._note(prim.name, lambda: WritingVJPTrace.left(self, prim, x, b))

    def right(self, prim, a, y):
        return self._note(prim.name, lambda: WritingVJPTrace.right(self, prim, a, y))

    def index(self, prim, x, index):
        return self._note(prim.name, lambda: WritingVJPTrace.index(self, prim, x, index))

    def process(self, prim, args, params):
        return self._note(prim.name, lambda: WritingVJPTrace.process(self, prim, args, params))

    def call(self, parents, outs, pullback):
        return self._note("custom rule", lambda: WritingVJPTrace.call(self, parents, outs, pullback))

    def rerun(self, run, values, care):
        return self._note("checkpoint", lambda: WritingVJPTrace.rerun(self, run, values, care))

    def note(self, i: int, record: tuple) -> Note:
        name, place, shape = self.notes.get(i, ("?", None, ()))
        return Note(name, show_place(place), shape, find_saved_in(record))

    def sweep(self, tape, cts, own, stop, keep, care=None, steep=None):
        watcher = current.get() or Watcher()
        if care is None:
            care = find_care(tape)
        steep = steep or Steep(tape, care)
        for i in range(len(tape) - 1, stop - 1, -1):
            record = tape[i]
            if record is None:
                continue
            if record[0] in (WRITE, VIEW):
                sweep(cast(list, Beginning(tape, i + 1)), cts, own, i, keep, care, steep)
                continue
            if record[0] != EFFECT and not _has_cotangent(record, cts, i):
                continue
            positions = parents_of(record)
            note = self.note(i, record)
            # A checkpoint appends to the tape; the records above are spent, so going over them again does nothing.
            window = tape if record[0] == RERUN else Beginning(tape, i + 1)

            def run(window=window, i=i, positions=positions):
                sweep(window, cts, own, i, keep, care, steep)
                return [cts[p] for p in positions]

            watcher.backward(note, [c for c in cts[i : i + _width(record)] if c is not None], run)


class Beginning:
    """The beginning of a tape, seen as a whole one."""

    __slots__ = ("tape", "n")

    def __init__(self, tape: list, n: int):
        self.tape = tape
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return self.tape[i]

    def __setitem__(self, i: int, record: Any) -> None:
        self.tape[i] = record


def _width(record: tuple) -> int:
    kind = record[0]
    return len(record[3]) if kind == MULTI else record[3] if kind in (CALL, RERUN) else 1


def _has_cotangent(record: tuple, cts: list, i: int) -> bool:
    return any(c is not None for c in cts[i : i + _width(record)])


def find_saved_in(record: tuple) -> list:
    """Return the arrays that a record of the flat tape holds on to."""
    kind = record[0]
    if kind in _SAVES_NOTHING:
        return []
    if kind == WRITE:  # what stood in the place, and the array
        return [x for x in (record[5], record[7]) if type(x) is np.ndarray]
    found: list = []
    start = {UNARY: 3, ONE_OF_TWO: 3, BOTH: 5, PRODUCT: 4}.get(kind, 3)
    for item in record[start : start + 3] if kind in (UNARY, ONE_OF_TWO, BOTH, PRODUCT) else record[3:5]:
        found += item if type(item) is tuple else [item]
    return [x for x in map(plain, found) if type(x) is not tuple and hasattr(x, "nbytes") and hasattr(x, "ndim")]


def saved_bytes(records: list) -> int:
    """Return about how many bytes some records keep: their arrays, each counted once, and themselves."""
    owners = {id(x): x for record in records if record is not None for x in map(root, find_saved_in(record))}
    return sum(map(sys.getsizeof, records)) + sum(
        x.nbytes + _ARRAY if hasattr(x, "nbytes") else sys.getsizeof(x) for x in owners.values()
    )


def saved_at_most(records: list) -> float:
    """Return a bound of `saved_bytes` that is found in less time; infinite if an array is no plain one."""
    total: float = _RECORD * len(records)
    for record in records:
        if record is not None and record[0] not in _SAVES_NOTHING:
            for x in record:
                if type(x) not in _SMALL:
                    total += _bound(x)
    return total


def _bound(x: Any) -> float:
    kind = type(x)
    if kind is np.ndarray:
        return _ARRAY + getattr(x if x.base is None else x.base, "nbytes", math.inf)
    if kind is tuple:
        return sum(map(_bound, x))
    if kind in _SMALL:
        return 0
    return math.inf if hasattr(x, "nbytes") and not isinstance(x, np.generic) else 0


def plain(x: Any) -> Any:
    """Return the numbers behind a cotangent or a traced value."""
    x = densify(x) if type(x) is not Indexed or x.is_plain() else x.entries[0][1]
    return unwrap(x)


def has_nan(x: Any) -> bool:
    x = plain(x)
    return x is not None and hasattr(x, "dtype") and x.dtype.kind in "fc" and bool(np.isnan(x).any())


def describe(x: Any) -> str:
    """Return shape, dtype and range of values, in a few words."""
    x = plain(x)
    if not hasattr(x, "dtype"):
        return repr(x)
    if not x.size:
        return f"shape {x.shape}, {x.dtype}, empty"
    if x.dtype.kind == "c":
        return f"shape {x.shape}, {x.dtype}"
    with np.errstate(all="ignore"):
        low, high = (np.nanmin(x), np.nanmax(x)) if not np.isnan(x).all() else (np.nan, np.nan)
    return f"shape {x.shape}, {x.dtype}, from {float(low):.4g} to {float(high):.4g}"
