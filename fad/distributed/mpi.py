"""Ranks that are processes of MPI, through mpi4py.

A collective is one call of MPI's. A thread of each rank looks at the clock: a rank that waits in one collective for
longer than the time-out ends the whole run, with a message that says where it waited, and so does an error that
nobody caught.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.util.dtlib import to_numpy_dtype

from fad.distributed.communicator import METHODS, Communicator, contiguous, reduce
from fad.distributed.errors import MismatchError
from fad.introspect.frames import is_machinery

ENDED = 75
"""The exit status of a run that was ended because a rank waited longer than the time-out."""
_OPS = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN, "prod": MPI.PROD}


def _extreme(larger: np.ufunc) -> Any:
    """Return NumPy's maximum or minimum as an operation of MPI's, whose own lose NaNs and know no complex numbers."""

    def merge(a: Any, b: Any, datatype: Any) -> None:
        if len(a):
            dtype = to_numpy_dtype(datatype)
            x, y = np.frombuffer(a, dtype), np.frombuffer(b, dtype)
            larger(x, y, out=y)

    return MPI.Op.Create(merge, commute=True)


_INEXACT_OPS = {**_OPS, "max": _extreme(np.maximum), "min": _extreme(np.minimum)}
_WIDER = {np.dtype(np.float16): np.dtype(np.float32)}  # MPI has no numbers of 16 bits


class _Request:
    """A collective of MPI's that was begun; it keeps the arrays that MPI reads and writes."""

    __slots__ = ("comm", "kept", "out", "requests")

    def __init__(self, comm: MPIRank, requests: list, out: Any, kept: Any):
        self.comm = comm
        self.requests = requests
        self.out = out
        self.kept = kept

    def wait(self) -> Any:
        comm = self.comm
        comm.since = time.monotonic()
        try:
            MPI.Request.Waitall(self.requests)
        finally:
            comm.since = 0.0
        return self.out


class MPIRank(Communicator):
    """One rank of MPI's world, on a communicator of fad's own: messages of other libraries never meet fad's."""

    engine = "mpi"

    def __init__(self, timeout: float, deterministic: bool):
        self.mpi = MPI.COMM_WORLD.Dup()
        super().__init__(self.mpi.Get_rank(), self.mpi.Get_size(), timeout, deterministic)
        self.since = 0.0  # when the collective began in which this rank is, or zero
        self.control: Any = None
        if self.size > 1:
            threading.Thread(target=self._look_at_the_clock, name="fad.distributed clock", daemon=True).start()
            self._end_all_on_errors()
        atexit.register(self.close)

    def run(self, name: str, x: Any, **params: Any) -> Any:
        self.since = time.monotonic()
        self.calls += 1
        self.nbytes += x.nbytes
        if self.sequence is not None:
            self.sequence.compare(name, x, params)
        try:
            if type(x) is np.ndarray and x.flags.c_contiguous and x.dtype.isnative:
                return getattr(self, METHODS[name])(x, **params)
            return self._found(getattr(self, METHODS[name])(contiguous(x), **params), x)
        finally:
            self.since = 0.0

    def progress(self) -> None:
        self.mpi.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG)

    # --- the end of a run -------------------------------------------------------------------------------------------

    def _look_at_the_clock(self) -> None:
        while True:
            time.sleep(max(0.05, min(1.0, self.timeout / 10)))
            since = self.since
            if since and time.monotonic() - since > self.timeout:
                self.abort(
                    f"rank {int(self.rank)} of {self.size} has waited for the others for more than "
                    f"{self.timeout:g} s, at {_line_of_main_thread()}: a rank is gone, or calls other collectives "
                    "(to see which, set "
                    "FAD_DISTRIBUTED_DEBUG=1). The run ends on all ranks"
                )

    def abort(self, message: str) -> None:
        print(f"fad.distributed: {message}", file=sys.stderr, flush=True)
        self.mpi.Abort(ENDED)
        os._exit(ENDED)

    def _end_all_on_errors(self) -> None:
        """Let an error that nobody catches end the run on every rank: the others would wait for this one."""
        before = sys.excepthook

        def report(kind: type, error: BaseException, where: Any) -> None:
            before(kind, error, where)  # type: ignore[arg-type]
            sys.stdout.flush()
            message = f"fad.distributed: rank {int(self.rank)} of {self.size} failed; the run ends on all ranks"
            print(message, file=sys.stderr, flush=True)
            self.mpi.Abort(1)

        sys.excepthook = report

    # --- collectives --------------------------------------------------------------------------------------------------

    def _all_reduce(self, x: Any, op: str) -> Any:
        if self.deterministic:
            return self._reduce_in_order(x, op)
        if x.dtype.itemsize == 2 and x.dtype in _WIDER:
            return self._all_reduce(x.astype(_WIDER[x.dtype]), op).astype(x.dtype)
        if x.dtype.char == "?":  # MPI has no largest of them
            return self._all_reduce(x.view(np.uint8), op).view(np.bool_)
        out = np.empty_like(x)
        self.mpi.Allreduce(x, out, (_INEXACT_OPS if x.dtype.kind in "fc" else _OPS)[op])
        return out

    def _start_all_reduce(self, x: Any, op: str) -> Any:
        out = np.empty_like(x)
        return _Request(self, [self.mpi.Iallreduce(x, out, _OPS[op])], out, x)

    def _broadcast(self, x: Any, root: int) -> Any:
        out = np.array(x)
        self.mpi.Bcast(_bytes(out), root)
        return out

    def _start_broadcast(self, x: Any, root: int) -> Any:
        return _Request(self, [self.mpi.Ibcast(_bytes(x), root)], x, None)

    def _reduce(self, x: Any, root: int) -> Any:
        if self.deterministic:
            y = self._reduce_in_order(x, "sum")
            return y if self.rank == root else np.zeros_like(x)
        out = np.zeros_like(x)
        self.mpi.Reduce(x, out if self.rank == root else None, MPI.SUM, root)
        return out

    def _all_gather(self, x: Any) -> Any:
        out = np.empty((self.size, *x.shape), x.dtype)
        self.mpi.Allgather(_bytes(x), _bytes(out))
        return out

    def _start_all_gather(self, x: Any) -> Any:
        out = np.empty((self.size, *x.shape), x.dtype)
        return _Request(self, [self.mpi.Iallgather(_bytes(x), _bytes(out))], out, x)

    def _gather(self, x: Any, root: int) -> Any:
        out = np.zeros((self.size, *x.shape), x.dtype)
        self.mpi.Gather(_bytes(x), _bytes(out) if self.rank == root else None, root)
        return out

    def _reduce_scatter(self, x: Any) -> Any:
        if self.deterministic:
            return reduce(self._all_to_all(x), "sum")
        out = np.empty(x.shape[1:], x.dtype)
        self.mpi.Reduce_scatter_block(x, out, MPI.SUM)
        return out

    def _start_reduce_scatter(self, x: Any) -> Any:
        out = np.empty(x.shape[1:], x.dtype)
        return _Request(self, [self.mpi.Ireduce_scatter_block(x, out, MPI.SUM)], out, x)

    def _scatter(self, x: Any, root: int) -> Any:
        out = np.empty(x.shape[1:], x.dtype)
        self.mpi.Scatter(_bytes(x) if self.rank == root else None, _bytes(out), root)
        return out

    def _all_to_all(self, x: Any) -> Any:
        out = np.empty_like(x)
        self.mpi.Alltoall(_bytes(x), _bytes(out))
        return out

    def _start_all_to_all(self, x: Any) -> Any:
        out = np.empty_like(x)
        return _Request(self, [self.mpi.Ialltoall(_bytes(x), _bytes(out))], out, x)

    def _permute(self, x: Any, pairs: Sequence) -> Any:
        return self._start_permute(x, pairs).wait()

    def _start_permute(self, x: Any, pairs: Sequence) -> Any:
        out = np.zeros_like(x)
        waiting = [self.mpi.Irecv(_bytes(out), a, 0) for a, b in pairs if b == self.rank]
        waiting += [self.mpi.Isend(_bytes(x), b, 0) for a, b in pairs if a == self.rank]
        return _Request(self, waiting, out, x)

    def _send(self, x: Any, dest: int, tag: int) -> Any:
        self.mpi.Send(_bytes(x), dest, tag + 1)
        return np.zeros((), x.dtype)

    def _start_send(self, x: Any, dest: int, tag: int) -> Any:
        return _Request(self, [self.mpi.Isend(_bytes(x), dest, tag + 1)], np.zeros((), x.dtype), x)

    def _recv(self, x: Any, source: int, tag: int) -> Any:
        out = np.empty_like(x)
        status = MPI.Status()
        message = self.mpi.Mprobe(source, tag + 1, status)
        sent = status.Get_count(MPI.BYTE)
        message.Recv(_bytes(out if sent == x.nbytes else np.empty(sent, np.uint8)))
        if sent != x.nbytes:
            raise MismatchError(
                f"rank {int(self.rank)} expects {x.dtype}{list(x.shape)}, {x.nbytes} bytes, of rank {source}, and was "
                f"sent {sent} bytes"
            )
        return out

    def _start_recv(self, x: Any, source: int, tag: int) -> Any:
        return _Request(self, [self.mpi.Irecv(_bytes(x), source, tag + 1)], x, None)

    def _barrier(self, x: Any) -> Any:
        self.mpi.Barrier()
        return x.copy()

    def exchange(self, value: Any) -> list:
        self.since = time.monotonic()
        found = self.mpi.allgather(value)
        self.since = 0.0
        return found


def _bytes(x: Any) -> Any:
    """Return the bytes of an array as MPI takes them: for collectives that move numbers and compute with none."""
    return [x.reshape(-1).view(np.uint8), MPI.BYTE]


def _line_of_main_thread() -> str:
    """Return the line of the user's at which the main thread is."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    found = [f for f in traceback.extract_stack(frame) if not is_machinery(f.filename)]
    return f"{found[-1].filename}, line {found[-1].lineno}" if found else "an unknown line"
