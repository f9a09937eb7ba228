"""What operations with effects gave in a run that was given up, so that the run in its place does not do them again.

A program of `jit` whose guard fails is given up in its middle, and another path takes its place; native code that met a
number it cannot hold is repeated in NumPy; a function whose program or recording raised is run without jit; and one
whose write failed runs again under NumPy's overlay. The second run does on the same values what the first one did, up
to there. A message that has been sent must not be sent again: other ranks wait for it once.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.programs.graph import GuardFailed
from fad.core.tracing.views import RUNS


class _Journal(threading.local):
    done: list | None = None  # results, in their order; None while nobody keeps them
    next = 0  # how many of them this run has been given; 0 while nobody keeps them
    start = 0  # how many there were when the innermost program began
    running = False  # whether results are kept: until the outermost program, or transform, has come to its end


JOURNAL = _Journal()
_EFFECTS = "_fad_effects"  # the name under which an error carries the results of the run that it ended


class _Raised:
    """The result of an effect that raised an error, which its repetition raises as well."""

    __slots__ = ("error",)

    def __init__(self, error: Exception):
        self.error = error

    def again(self) -> Any:
        raise self.error


class _Placed:
    """Where an operation with an effect stands on a trace, or in what else outlives the run that put it there."""

    __slots__ = ("trace", "where")

    def __init__(self, trace: Any, where: Any):
        self.trace = trace
        self.where = where


def once(effect: Callable, *args: Any, **params: Any) -> Any:
    """Run an effect and return its result, or return what it gave in the run whose place this one takes."""
    journal = JOURNAL
    if not journal.running and RUNS.depth:
        keep_for_transforms()
    if journal.done is None:
        return effect(*args, **params)
    found, y = _next_of(None)
    if not found:
        try:
            y = effect(*args, **params)
        except Exception as error:
            _keep(_Raised(error))
            raise
        _keep(_own(y))
        return y
    if journal.next == len(journal.done) and not journal.running:
        forget()
    return y.again() if type(y) is _Raised else _own(y)


def effect_place(trace: Any, where: Any) -> Any:
    """Return where an operation with an effect stands on a trace: where the run put it whose place this one takes.

    There it has all that it depends on. Another record of it would be run, too, when the trace is swept or compiled.
    """
    if not JOURNAL.running:
        if not RUNS.depth:
            return where
        keep_for_transforms()
    found, entry = _next_of(trace)
    if found:
        return entry.where
    _keep(_Placed(trace, where))
    return where


def _next_of(trace: Any) -> tuple[bool, Any]:
    """Return whether the run whose place this one takes left another result of an effect, or place on a trace; and it.

    What it left on traces that it made itself is passed by.
    """
    journal = JOURNAL
    done: list = journal.done  # type: ignore[assignment]
    for k in range(journal.next, len(done)):
        entry = done[k]
        if (entry.trace is trace) if type(entry) is _Placed else trace is None:
            if k != journal.next:
                done.insert(journal.next, done.pop(k))
            journal.next += 1
            return True, entry
    return False, None


def _keep(entry: Any) -> None:
    journal = JOURNAL
    journal.done.insert(journal.next, entry)  # type: ignore[union-attr]
    journal.next += 1


def _own(y: Any) -> Any:
    """Return a result that may be written into by the run that it is given to, and is kept for another one."""
    return y.copy() if RUNS.depth and hasattr(y, "copy") and not isinstance(y, np.generic) else y


def keep_for_transforms() -> None:
    """Keep the results of effects until the outermost transform that is running has come to its end."""
    journal = JOURNAL
    journal.running = RUNS.effects = True
    journal.done = journal.done or []


def forget() -> None:
    """Keep results no longer."""
    journal = JOURNAL
    journal.done = None
    journal.next = 0
    journal.running = RUNS.effects = False


def with_journal(run: Callable) -> Callable:
    """Return a program that keeps the results of its effects until the outermost one has come to its end."""

    @functools.wraps(run)
    def keep(*args: Any, **kwargs: Any) -> Any:
        journal = JOURNAL
        if not journal.running and RUNS.depth:
            keep_for_transforms()
        outermost, before = not journal.running, journal.start
        if outermost:
            journal.done = journal.done or []
            journal.next = 0
            journal.running = True
        journal.start = start = journal.next
        try:
            out = run(*args, **kwargs)
        except GuardFailed:
            journal.next = start
            if outermost:
                journal.done = journal.done or None
            raise
        except BaseException as error:
            setattr(error, _EFFECTS, (journal.done, start))
            if outermost:
                forget()
            raise
        finally:
            journal.start = before
            if outermost:
                journal.running = False
        if outermost:
            forget()
        return out

    return keep


def rewind() -> None:
    """Let what runs next take the place of the innermost program, from its start on."""
    JOURNAL.next = JOURNAL.start


def from_the_start(run: Callable) -> Callable:
    """Return a program that takes the place of the one that is running."""

    def repeat(*args: Any) -> Any:
        rewind()
        return run(*args)

    return repeat


def run_instead(error: BaseException, run: Callable, *args: Any, **kwargs: Any) -> Any:
    """Run a function in the place of a program that raised."""
    done, start = error.__dict__.pop(_EFFECTS, (None, 0))
    if done is None:  # it had no effects
        return run(*args, **kwargs)
    if JOURNAL.running:
        JOURNAL.next = start
    else:
        JOURNAL.done = done
    return with_journal(run)(*args, **kwargs)
