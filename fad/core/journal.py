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
    depth = 0  # how many programs are running, one in place of the other


JOURNAL = _Journal()


def once(effect: Callable, *args: Any, **params: Any) -> Any:
    """Run an effect and return its result, or return what it gave in the run whose place this one takes."""
    journal = JOURNAL
    if journal.done is None:
        return effect(*args, **params)
    if journal.next == len(journal.done):
        y = effect(*args, **params)
        if journal.depth:
            journal.done.append(y)
            journal.next += 1
        return y
    y = journal.done[journal.next]
    journal.next += 1
    if journal.next == len(journal.done) and not journal.depth:
        journal.done = None
    return y


def journaled(run: Callable) -> Callable:
    """Return a program that keeps the results of its effects until it has come to its end."""

    @functools.wraps(run)
    def kept(*args: Any) -> Any:
        journal = JOURNAL
        if journal.done is None:
            journal.done = []
        journal.next = 0
        journal.depth += 1
        try:
            out = run(*args)
        except GuardFailed:
            if journal.depth == 1:
                journal.next = 0
                journal.done = journal.done or None
            raise
        except BaseException:
            journal.done = None
            raise
        finally:
            journal.depth -= 1
        if not journal.depth:
            journal.done = None
        return out

    return kept
