"""Memory that two ranks of one machine share: each writes its array there, and reads the other's."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from mpi4py import MPI

from fad.distributed.communicator import Communicator
from fad.distributed.messages import mismatch

PLACE = 1 << 20
"""Bytes of the longest array that goes through it."""
_HEAD = 256  # bytes before the places: what the arrays are, and after them, in a line of the cache of its own,
_COUNT = 16  # in the unit of 8 bytes: how many arrays this rank has written
_let_others_run = getattr(os, "sched_yield", lambda: time.sleep(0))  # the other rank, where both share a core


class Window:
    """Two places for each rank, used in turn, and before them what is in them and how many arrays have been written.

    A rank has written its array when it has raised its count. In the place of the array before the last the other no
    longer reads, when it has written the last one.
    """

    def __init__(self, comm: Communicator, mpi: Any, tag: int):
        self.comm, self.mpi, self.tag = comm, mpi, tag
        self.other = 1 - int(comm.rank)
        self.window = MPI.Win.Allocate_shared(_HEAD + 2 * PLACE, comm=mpi)
        self.window.Lock_all(MPI.MODE_NOCHECK)
        memory: Any = [self.window.Shared_query(rank)[0] for rank in (int(comm.rank), self.other)]
        self.own, self.others = memory
        self.head, self.others_head = [np.frombuffer(m, np.int64, _HEAD // 8).data for m in (self.own, self.others)]
        self.head[_COUNT] = 0
        self.count = 0
        self.lent: Any = None
        mpi.Barrier()  # nobody reads the count before it is there

    def lend(self, size: int, dtype: np.dtype) -> Any:
        """Return a vector in the place of the next array: written there, it is exchanged without being copied."""
        self.lent = np.ndarray(size, dtype, self.own, _start(self.count + 1))
        return self.lent

    def exchange(self, x: Any) -> Any:
        """Give the other rank an array; return a view of its own, until the next but one is exchanged."""
        count, dtype = self.count + 1, x.dtype
        start = _start(count)
        if x is not self.lent:
            np.ndarray(x.shape, dtype, self.own, start)[...] = x
        self.lent = None
        what = (x.nbytes << 16) + (dtype.itemsize << 8) + ord(dtype.kind)
        self.head[count & 1] = what
        self.window.Sync()
        self.head[_COUNT] = self.count = count
        self._wait(x)
        self.window.Sync()
        if (given := self.others_head[count & 1]) != what:
            nbytes, sent = given >> 16, np.dtype(f"{chr(given & 255)}{given >> 8 & 255}")
            raise mismatch(self.comm, x, self.other, f"{nbytes} bytes, {sent}[{nbytes // sent.itemsize}]")
        return np.ndarray(x.shape, dtype, self.others, start)

    def _wait(self, x: Any) -> None:
        """Wait until the other rank has written as many arrays; meanwhile MPI moves what was begun."""
        count, theirs = self.count, self.others_head
        for _ in range(100):
            if theirs[_COUNT] >= count:
                return
        while theirs[_COUNT] < count:
            if self.mpi.Iprobe(self.other, self.tag) and theirs[_COUNT] < count:
                self._refuse(x)
            _let_others_run()

    def _refuse(self, x: Any) -> None:
        """Answer a rank that sends its array in a message instead: it is of another size."""
        status = MPI.Status()
        self.mpi.Probe(self.other, self.tag, status)
        sent = np.empty(status.Get_count(MPI.BYTE), np.uint8)
        self.mpi.Sendrecv([self.head, MPI.BYTE], self.other, self.tag, [sent, MPI.BYTE], self.other, self.tag)
        self.head[_COUNT] = self.count = self.count - 1
        raise mismatch(self.comm, x, self.other, f"{sent.nbytes} bytes")


def _start(count: int) -> int:
    """Return where in a rank's memory an array has its place, by its number."""
    return _HEAD + PLACE * (count & 1)
