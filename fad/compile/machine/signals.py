"""Ctrl-C in native code: the memory through which long loops look at the clock, and ask Python ten times a second.

Python notes a signal and runs its handler later, between two steps of its own, which a native loop does not have. So
the loop takes the interpreter's lock, runs handlers that wait, and if one raised puts the exception away and
returns; the caller raises it there. Looking at the clock costs a few nanoseconds and asking a fraction of a
microsecond, so loops of cheap steps look once in many steps.

A *watch* is ten words of memory, one for each program; see `WORDS`. Were it one for all, a thread of tiny steps would
ask each time it is due, and Python answers the main thread alone. A *pace* is three words of one loop: how many
steps are left before the next look, how many lie between two looks, and when the last one was.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

WORDS = ("glance", "clock", "ensure", "check", "fetch", "release", "due", "type", "value", "traceback")
_PYTHON = {
    "ensure": "PyGILState_Ensure",
    "check": "PyErr_CheckSignals",
    "fetch": "PyErr_Fetch",
    "release": "PyGILState_Release",
}
CLOCK = 6  # Linux's coarse monotonic clock; on macOS the same number is the monotonic one


class Watch:
    """The memory of one program's watch: a program runs in one thread at a time, and only the main one gets answers."""

    def __init__(self) -> None:
        self.memory = python().words.copy()
        self.address: int = self.memory.ctypes.data
        self.raised: BaseException | None = None  # in a call of Python from native code, rather than by its look

    def raise_again(self) -> None:
        """Raise what a handler raised while native code ran."""
        if self.raised is not None:
            why, self.raised = self.raised, None
            raise why
        place = WORDS.index("type")
        kind, value, traceback = (int(x) or None for x in self.memory[place : place + 3])
        self.memory[place : place + 3] = 0
        python().restore(kind, value, traceback)
        raise AssertionError("native code stopped without an exception")


class _Python:
    """What a watch begins as: the functions of Python that it asks, and the clock.

    Where they cannot be had, loops run to their end.
    """

    def __init__(self) -> None:
        self.words = np.zeros(len(WORDS), np.int64)
        self.keep: list[Any] = []
        self.works = False
        try:
            clock = ctypes.CDLL(None).clock_gettime
            python = ctypes.PyDLL(None)
            functions = {word: getattr(python, name) for word, name in _PYTHON.items()}
            self.restore = python.PyErr_Restore
            time = np.zeros(2, np.int64)
            self.works = clock(CLOCK, ctypes.c_void_p(time.ctypes.data)) == 0
        except (AttributeError, OSError, TypeError):
            return
        self.restore.argtypes, self.restore.restype = [ctypes.c_void_p] * 3, None
        for word, function in {"clock": clock, **functions}.items():
            self.words[WORDS.index(word)] = ctypes.cast(function, ctypes.c_void_p).value or 0
            self.keep.append(function)


@functools.cache
def python() -> _Python:
    return _Python()
