"""Threads for large loops: a small pool of native ones, to which a program hands the parts of one loop.

A loop is cut into parts by its size alone, so what it computes does not depend on how many threads there are. The
caller's thread takes parts, too, and goes on when all are done. A worker waits for the next loop awake for a moment and
then asleep. Threads are started by the first large loop of a process, and again by the first one after a fork.

A pool is eight cache lines of memory; see `WORDS`. ``ticket`` counts the parts that nobody has taken yet: who takes it
down from a positive number owns a part, and the loop is not over before that part is done. So a worker that comes late
finds nothing or something right.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

import numpy as np

# name -> byte in the pool; what is written often has a cache line of its own
WORDS = {
    "ticket": 0, "done": 64, "sleepers": 128, "hush": 144, "callers": 152, "before": 160, "busy": 192, "started": 200,
    "wanted": 208, "code": 256, "rows": 264, "size": 272, "count": 280, "create": 320, "detach": 328, "lock": 336,
    "unlock": 344, "wait": 352, "wake": 360, "yield": 368, "get_threads": 376, "set_threads": 384, "mutex": 512,
    "condition": 768,
}  # fmt: skip
_BYTES = 1024
_LIBRARY = {
    "create": "pthread_create", "detach": "pthread_detach", "lock": "pthread_mutex_lock",
    "unlock": "pthread_mutex_unlock", "wait": "pthread_cond_wait", "wake": "pthread_cond_broadcast",
    "yield": "sched_yield",
}  # fmt: skip


def count_threads() -> int:
    """Return how many threads large loops may use: FAD_NUM_THREADS, OMP_NUM_THREADS, or the CPUs of this process."""
    for name in ("FAD_NUM_THREADS", "OMP_NUM_THREADS"):
        first = os.environ.get(name, "").split(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Pool:
    """The memory of the pool of this process; without threads in the C library, a pool of none."""

    def __init__(self) -> None:
        raw = np.zeros(_BYTES + 64, np.uint8)
        shift = -raw.ctypes.data % 64
        self.memory = raw[shift : shift + _BYTES].view(np.int64)
        self.address = raw.ctypes.data + shift
        self.keep = raw
        self.posix: Any = None
        try:
            self.posix = ctypes.CDLL(None)
            for word, name in _LIBRARY.items():
                function = ctypes.cast(getattr(self.posix, name), ctypes.c_void_p)
                self.memory[WORDS[word] // 8] = function.value or 0
            self.make_locks()
        except (AttributeError, OSError, TypeError):  # no POSIX threads here: loops run in the caller's
            return
        self.memory[WORDS["wanted"] // 8] = count_threads() - 1
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def make_locks(self) -> None:
        for name, word in (("pthread_mutex_init", "mutex"), ("pthread_cond_init", "condition")):
            getattr(self.posix, name)(ctypes.c_void_p(self.address + WORDS[word]), None)

    def silences(self, get_threads: int, set_threads: int) -> None:
        """Set where BLAS reads and sets its own number of threads; see `quiet_call`."""
        self.memory[WORDS["get_threads"] // 8] = get_threads
        self.memory[WORDS["set_threads"] // 8] = set_threads

    def forget(self) -> None:
        """Start again without threads: a forked process has only the one that forked."""
        self.memory[: WORDS["wanted"] // 8] = 0
        self.make_locks()


@functools.cache
def pool() -> Any:
    return _Pool()


def set_threads(n: int) -> int:
    """Let large loops use `n` threads from now on, in the whole process; return how many it was before."""
    words = pool().memory
    place = WORDS["wanted"] // 8
    before = int(words[place]) + 1
    words[place] = max(0, n - 1)
    return before
