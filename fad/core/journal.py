"""What operations with effects gave in a run that was given up, so that the run in its place does not do them again.

A program of `jit` whose guard fails is given up in its middle, and another path takes its place; native code that met a
number it cannot hold is repeated in NumPy; and a function whose program or recording raised is run without jit. The
second run does on the same values what the first one did, up to there. A message that has been sent must not be sent
again: other ranks wait for it once.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from fad.core.graph import GuardFailed


class _Journal(threading.local):
    done: list | None = None  # results, in their order; None while nobody keeps them
    next = 0  # how many of them this run has been given
    start = 0  # how many there were when the innermost program began
    running = False


JOURNAL = _Journal()
_EFFECTS = "_fad_effects"  # the name under which an error carries the results of the run that it ended


class _Raised:
    """The result of an effect that raised an error, which its repetition raises as well."""

    __slots__ = ("error",)

    def __init__(self, error: Exception):
        self.error = error

    def again(self) -> Any:
        raise self.error


def once(effect: Callable, *args: Any, **params: Any) -> Any:
    """Run an effect and return its result, or return what it gave in the run whose place this one takes."""
    journal = JOURNAL
    if journal.done is None:
        return effect(*args, **params)
    if journal.next == len(journal.done):
        if not journal.running:
            return effect(*args, **params)
        try:
            y = effect(*args, **params)
        except Exception as error:
            journal.done.append(_Raised(error))
            journal.next += 1
            raise
        journal.done.append(y)
        journal.next += 1
        return y
    y = journal.done[journal.next]
    journal.next += 1
    if journal.next == len(journal.done) and not journal.running:
        journal.done = None
    return y.again() if type(y) is _Raised else y


def journaled(run: Callable) -> Callable:
    """Return a program that keeps the results of its effects until the outermost one has come to its end."""

    @functools.wraps(run)
    def keep(*args: Any, **kwargs: Any) -> Any:
        journal = JOURNAL
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
                journal.done = None
            raise
        finally:
            journal.start = before
            if outermost:
                journal.running = False
        if outermost:
            journal.done = None
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
    return journaled(run)(*args, **kwargs)
