"""What operations with effects gave in a run that was given up, so that the run in its place does not do them again.

A program of `jit` whose guard fails is given up in its middle, and another path takes its place; native code that met a
number it cannot hold is repeated in NumPy. The second run does on the same values what the first one did, up to there.
A message that has been sent must not be sent again: other ranks wait for it once.
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
    running = False


JOURNAL = _Journal()


def once(effect: Callable, *args: Any, **params: Any) -> Any:
    """Run an effect and return its result, or return what it gave in the run whose place this one takes."""
    journal = JOURNAL
    if journal.done is None:
        return effect(*args, **params)
    if journal.next == len(journal.done):
        y = effect(*args, **params)
        if journal.running:
            journal.done.append(y)
            journal.next += 1
        return y
    y = journal.done[journal.next]
    journal.next += 1
    if journal.next == len(journal.done) and not journal.running:
        journal.done = None
    return y


def journaled(run: Callable) -> Callable:
    """Return a program that keeps the results of its effects until it has come to its end."""

    @functools.wraps(run)
    def keep(*args: Any) -> Any:
        journal = JOURNAL
        if journal.running:  # a part of the program that is running
            return run(*args)
        if journal.done is None:
            journal.done = []
        journal.next = 0
        journal.running = True
        try:
            out = run(*args)
        except GuardFailed:
            journal.next = 0
            journal.done = journal.done or None
            raise
        except BaseException:
            journal.done = None
            raise
        finally:
            journal.running = False
        journal.done = None
        return out

    return keep


def from_the_start(run: Callable) -> Callable:
    """Return a program that takes the place of the one that is running, from its start on."""

    def repeat(*args: Any) -> Any:
        JOURNAL.next = 0
        return run(*args)

    return repeat
