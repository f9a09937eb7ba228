"""Ctrl-C in native code: long loops look at the clock now and then, and ask Python ten times a second.

Python notes a signal and runs its handler later, between two steps of its own, which a native loop does not have. So
the loop takes the interpreter's lock, asks for handlers that wait, and if one raised puts the exception away and
returns; the caller raises it there. Looking at the clock costs a few nanoseconds and asking a fraction of a
microsecond, so loops of cheap steps look once in many steps.

A *watch* is ten words of memory, one for each program; see `_WORDS`. Were it one for all, a thread of tiny steps would
ask each time it is due, and Python answers the main thread alone. A *pace* is three words of one loop: how many
steps are left before the next look, how many lie between two looks, and when the last one was.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

_WORDS = ("glance", "clock", "ensure", "check", "fetch", "release", "due", "type", "value", "traceback")
_PYTHON = {
    "ensure": "PyGILState_Ensure",
    "check": "PyErr_CheckSignals",
    "fetch": "PyErr_Fetch",
    "release": "PyGILState_Release",
}
_CLOCK = 6  # Linux's coarse monotonic clock; on macOS the same number is the monotonic one
_BETWEEN = 100_000_000  # ns between two questions
_SLOW = 10_000_000  # ns between two looks above which a loop looks more often
_MOST = 64  # steps between two looks
STOPPED = 2  # what a native function returns that was interrupted; 1 is a question answered differently

NEVER = f"""define i32 @glance(ptr %S, ptr %R) {{
entry:
  %paced = icmp ne ptr %R, null
  br i1 %paced, label %pace, label %out
pace:
  store i64 {_MOST}, ptr %R
  br label %out
out:
  ret i32 0
}}
"""


def glance_text() -> str:
    """Return the function that looks at the clock, and asks Python if it is time: of a watch, and a pace or null."""
    if not _python().works:
        return NEVER
    fields = [f"  %{w}_at = getelementptr i64, ptr %S, i64 {k}" for k, w in enumerate(_WORDS)]
    fields += [f"  %{w} = load ptr, ptr %{w}_at" for w in _WORDS[1:6]]
    head = "\n".join(fields)
    return f"""define i32 @glance(ptr %S, ptr %R) {{
entry:
  %time = alloca [2 x i64]
{head}
  %c = call i32 %clock(i32 {_CLOCK}, ptr %time)
  %nano_at = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %nano = load i64, ptr %nano_at
  %billions = mul i64 %seconds, 1000000000
  %now = add i64 %billions, %nano
  %paced = icmp ne ptr %R, null
  br i1 %paced, label %pace, label %look
pace:
  %between_at = getelementptr i64, ptr %R, i64 1
  %last_at = getelementptr i64, ptr %R, i64 2
  %between = load i64, ptr %between_at
  %last = load i64, ptr %last_at
  %gone = sub i64 %now, %last
  %slow = icmp sgt i64 %gone, {_SLOW}
  %half = lshr i64 %between, 1
  %twice = shl i64 %between, 1
  %next = select i1 %slow, i64 %half, i64 %twice
  %few = call i64 @llvm.smin.i64(i64 %next, i64 {_MOST})
  %some = call i64 @llvm.smax.i64(i64 %few, i64 1)
  store i64 %some, ptr %R
  store i64 %some, ptr %between_at
  store i64 %now, ptr %last_at
  br label %look
look:
  %due = load atomic i64, ptr %due_at monotonic, align 8
  %early = icmp slt i64 %now, %due
  br i1 %early, label %out, label %ask
ask:
  %later = add i64 %now, {_BETWEEN}
  store atomic i64 %later, ptr %due_at monotonic, align 8
  %lock = call i32 %ensure()
  %code = call i32 %check()
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %on, label %stop
on:
  call void %release(i32 %lock)
  br label %out
stop:
  call void %fetch(ptr %type_at, ptr %value_at, ptr %traceback_at)
  call void %release(i32 %lock)
  ret i32 {STOPPED}
out:
  ret i32 0
}}
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""


def look(on: str, count: str, stop: str) -> str:
    """Return the end of a step of native code that looks at the clock each 32 steps, ``%watch`` being the watch."""
    return f"""  %lately = and i64 {count}, 31
  %busy = icmp ne i64 %lately, 0
  br i1 %busy, label %{on}, label %glance
glance:
  %glancep = load ptr, ptr %watch
  %signal = call i32 %glancep(ptr %watch, ptr null)
  %stopped = icmp ne i32 %signal, 0
  br i1 %stopped, label %{stop}, label %{on}"""


class Watch:
    """The memory of one program's watch: a program runs in one thread at a time, and only the main one gets answers."""

    def __init__(self) -> None:
        self.memory = _python().words.copy()
        self.address: int = self.memory.ctypes.data

    def raise_again(self) -> None:
        """Raise what a handler raised while native code ran."""
        place = _WORDS.index("type")
        kind, value, traceback = (int(x) or None for x in self.memory[place : place + 3])
        self.memory[place : place + 3] = 0
        _python().restore(kind, value, traceback)
        raise AssertionError("native code stopped without an exception")


class _Python:
    """What a watch begins as: the functions of Python that it asks, and the clock.

    Where they cannot be had, loops run to their end.
    """

    def __init__(self) -> None:
        self.words = np.zeros(len(_WORDS), np.int64)
        self.keep: list[Any] = []
        self.works = False
        try:
            clock = ctypes.CDLL(None).clock_gettime
            python = ctypes.PyDLL(None)
            functions = {word: getattr(python, name) for word, name in _PYTHON.items()}
            self.restore = python.PyErr_Restore
            time = np.zeros(2, np.int64)
            self.works = clock(_CLOCK, ctypes.c_void_p(time.ctypes.data)) == 0
        except (AttributeError, OSError, TypeError):
            return
        self.restore.argtypes, self.restore.restype = [ctypes.c_void_p] * 3, None
        for word, function in {"clock": clock, **functions}.items():
            self.words[_WORDS.index(word)] = ctypes.cast(function, ctypes.c_void_p).value
            self.keep.append(function)


@functools.cache
def _python() -> _Python:
    return _Python()
