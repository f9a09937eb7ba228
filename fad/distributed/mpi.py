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

from fad.distributed.communicator import METHODS, OPERATIONS, Communicator, contiguous, reduce
from fad.distributed.errors import DistributedError, MismatchError
from fad.distributed.messages import as_bytes, mismatch, read_head, receive, receive_with_head, send_with_head
from fad.distributed.window import PLACE, Window
from fad.introspect.frames import is_machinery

ENDED = 75
"""The exit status of a run that was ended because a rank waited longer than the time-out."""
EXCHANGED = 1 << 14
"""Bytes from which on two ranks reduce by sending each other their arrays.

MPI's own reduction sends halves forth and back, through memory that it allocates in each call: for arrays of 77 kB it
takes twice the time, for 8 MB five times (``benchmarks/distributed.py``). Smaller arrays it sends in one message.
Where both run on one machine, arrays of up to `PLACE` bytes go through memory that they share: half the time again.
"""
_PERMUTE, _REDUCE, _SEND = range(3)  # tags: those of `send` go on from the last
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
_STAND_INS = {"e": np.float32, "?": np.uint8}  # MPI has no floats of 16 bits, and no largest of two bools
_OPS_OF = {
    **dict.fromkeys(np.typecodes["AllInteger"], _OPS),
    **dict.fromkeys(np.typecodes["AllFloat"].replace("e", ""), _INEXACT_OPS),
}


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
            self.complete()
        finally:
            comm.since = 0.0
        return self.out

    def complete(self) -> None:
        MPI.Request.Waitall(self.requests)

    def is_done(self) -> bool:
        return all(request.Get_status() for request in self.requests)


class _Message(_Request):
    """An array that is on its way from another rank, the first of the requests, and one to another."""

    __slots__ = ()

    def complete(self) -> None:
        receive(self.comm, self.out, self.out.nbytes, self.requests[0].Wait)
        MPI.Request.Waitall(self.requests[1:])


def _explain_error(comm: MPIRank, name: str, x: Any, error: Any) -> DistributedError:
    """Return what an error of MPI's means for a program: mostly that ranks gave arrays of different sizes."""
    what = error.Get_error_string().partition(",")[0].partition("\n")[0]
    return (MismatchError if error.Get_error_class() == MPI.ERR_TRUNCATE else DistributedError)(
        f"{name} of {x.dtype}{list(x.shape)} failed on rank {int(comm.rank)}, and MPI says: {what}. Other ranks may "
        "have given arrays of another size, or called something else: FAD_DISTRIBUTED_DEBUG=1 compares that and names "
        "the lines"
    )


class _Exchange(_Message):
    """A reduction of two ranks that was begun: each sends the other an array, and adds what it is sent to its own."""

    __slots__ = ("mine", "op")

    def __init__(self, comm: MPIRank, mine: Any, theirs: Any, op: str):
        out, other = np.empty_like(mine), 1 - int(comm.rank)
        requests = [comm.mpi.Irecv(as_bytes(out), other, _REDUCE), comm.mpi.Isend(as_bytes(theirs), other, _REDUCE)]
        super().__init__(comm, requests, out, theirs)
        self.mine = mine
        self.op = op

    def wait(self) -> Any:
        other = super().wait()
        return _reduce_pair(self.comm, self.mine, other, self.op, other)


def _reduce_pair(comm: MPIRank, mine: Any, theirs: Any, op: str, out: Any = None) -> Any:
    """Reduce what two ranks have, in the order of the ranks: the same bits on both."""
    pair = (theirs, mine) if comm.rank else (mine, theirs)
    return OPERATIONS[op](*pair, out=out)


class MPIRank(Communicator):
    """One rank of MPI's world, on a communicator of fad's own: messages of other libraries never meet fad's."""

    engine = "mpi"

    def __init__(self, timeout: float, deterministic: bool):
        self.mpi = MPI.COMM_WORLD.Dup()
        super().__init__(self.mpi.Get_rank(), self.mpi.Get_size(), timeout, deterministic)
        self.since = 0.0  # when the collective began in which this rank is, or zero
        self.window = self._share_memory()
        if self.size > 1:
            threading.Thread(target=self._look_at_the_clock, name="fad.distributed clock", daemon=True).start()
            self._end_all_on_errors()
        atexit.register(self.close)

    def run(self, name: str, x: Any, says: tuple = (), **params: Any) -> Any:
        self.since = time.monotonic()
        self.calls += 1
        self.nbytes += x.nbytes
        if self.sequence is not None:
            self.sequence.compare(name, x, {**params, **dict(says)})
        try:
            if type(x) is np.ndarray and x.flags.c_contiguous and x.dtype.isnative:
                return getattr(self, METHODS[name])(x, **params)
            return self._as_given(getattr(self, METHODS[name])(contiguous(x), **params), x)
        except MPI.Exception as error:
            raise _explain_error(self, name, x, error) from error
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

    def _exchanges(self, x: Any) -> bool:
        return self.size == 2 and x.nbytes >= EXCHANGED

    def _exchange(self, mine: Any, theirs: Any, op: str) -> Any:
        """Do at once what `_Exchange` begins."""
        if self.window is not None and theirs.nbytes <= PLACE:
            return _reduce_pair(self, mine, self.window.exchange(theirs), op)
        out, other = np.empty_like(mine), 1 - self.rank
        messages = as_bytes(theirs), other, _REDUCE, as_bytes(out), other, _REDUCE
        receive(self, mine, mine.nbytes, self.mpi.Sendrecv, *messages)
        return _reduce_pair(self, mine, out, op, out)

    def _share_memory(self) -> Window | None:
        """Return the memory that two ranks share; None if they run on two machines."""
        if self.size != 2:
            return None
        near = self.mpi.Split_type(MPI.COMM_TYPE_SHARED)
        size = near.Get_size()
        near.Free()
        return Window(self, self.mpi, _REDUCE) if size == 2 else None

    def lend(self, size: int, dtype: np.dtype) -> Any:
        if self.window is not None and EXCHANGED <= size * dtype.itemsize <= PLACE:
            return self.window.lend(size, dtype)
        return super().lend(size, dtype)

    def _all_reduce(self, x: Any, op: str) -> Any:
        if self._exchanges(x):
            return self._exchange(x, x, op)
        if self.deterministic:
            return self._reduce_in_order(x, op)
        known = _OPS_OF.get(x.dtype.char)
        if known is None:
            dtype = _STAND_INS[x.dtype.char]
            return self._all_reduce(x.astype(dtype), op).astype(x.dtype)
        out = x.copy()
        self.mpi.Allreduce(MPI.IN_PLACE, out, known[op])
        return out

    def _start_all_reduce(self, x: Any, op: str) -> Any:
        if self._exchanges(x):
            return _Exchange(self, x, x, op)
        out = np.empty_like(x)
        return _Request(self, [self.mpi.Iallreduce(x, out, _OPS[op])], out, x)

    def _broadcast(self, x: Any, root: int) -> Any:
        out = np.array(x)
        self.mpi.Bcast(as_bytes(out), root)
        return out

    def _reduce(self, x: Any, root: int) -> Any:
        if self.deterministic:
            y = self._reduce_in_order(x, "sum")
            return y if self.rank == root else np.zeros_like(x)
        out = np.zeros_like(x)
        self.mpi.Reduce(x, out if self.rank == root else None, MPI.SUM, root)
        return out

    def _all_gather(self, x: Any) -> Any:
        out = np.empty((self.size, *x.shape), x.dtype)
        self.mpi.Allgather(as_bytes(x), as_bytes(out))
        return out

    def _start_all_gather(self, x: Any) -> Any:
        out = np.empty((self.size, *x.shape), x.dtype)
        return _Request(self, [self.mpi.Iallgather(as_bytes(x), as_bytes(out))], out, x)

    def _gather(self, x: Any, root: int) -> Any:
        out = np.zeros((self.size, *x.shape), x.dtype)
        self.mpi.Gather(as_bytes(x), as_bytes(out) if self.rank == root else None, root)
        return out

    def _reduce_scatter(self, x: Any) -> Any:
        if self._exchanges(x):
            return self._exchange(x[int(self.rank)], x[1 - int(self.rank)], "sum")
        if self.deterministic:
            return reduce(self._all_to_all(x), "sum")
        out = np.empty(x.shape[1:], x.dtype)
        self.mpi.Reduce_scatter_block(x, out, MPI.SUM)
        return out

    def _start_reduce_scatter(self, x: Any) -> Any:
        if self._exchanges(x):
            return _Exchange(self, x[int(self.rank)], x[1 - int(self.rank)], "sum")
        out = np.empty(x.shape[1:], x.dtype)
        return _Request(self, [self.mpi.Ireduce_scatter_block(x, out, MPI.SUM)], out, x)

    def _scatter(self, x: Any, root: int) -> Any:
        out = np.empty(x.shape[1:], x.dtype)
        self.mpi.Scatter(as_bytes(x) if self.rank == root else None, as_bytes(out), root)
        return out

    def _all_to_all(self, x: Any) -> Any:
        out = np.empty_like(x)
        self.mpi.Alltoall(as_bytes(x), as_bytes(out))
        return out

    def _start_all_to_all(self, x: Any) -> Any:
        out = np.empty_like(x)
        return _Request(self, [self.mpi.Ialltoall(as_bytes(x), as_bytes(out))], out, x)

    def _permute(self, x: Any, pairs: Sequence) -> Any:
        return self._start_permute(x, pairs).wait()

    def _start_permute(self, x: Any, pairs: Sequence) -> Any:
        out = np.zeros_like(x)
        coming = [self.mpi.Irecv(as_bytes(out), a, _PERMUTE) for a, b in pairs if b == self.rank]
        going = [self.mpi.Isend(as_bytes(x), b, _PERMUTE) for a, b in pairs if a == self.rank]
        return (_Message if coming else _Request)(self, coming + going, out, x)

    def _send(self, x: Any, dest: int, tag: int) -> Any:
        if self.sequence is not None:
            self.sequence.announce(x, dest, tag)
        send_with_head(self.mpi, x, dest, tag + _SEND)
        return np.zeros((), x.dtype)

    def _recv(self, x: Any, source: int, tag: int) -> Any:
        announced = None if self.sequence is None else self.sequence.hear(source, tag)
        head, out = receive_with_head(self.mpi, x, source, tag + _SEND)
        if out is None:
            line = "" if announced is None else f", at {announced[2]}"
            raise mismatch(self, x, source, read_head(head)[1] + line)
        return out

    def _barrier(self, x: Any) -> Any:
        self.mpi.Barrier()
        return x.copy()

    def exchange(self, value: Any) -> list:
        self.since = time.monotonic()
        found = self.mpi.allgather(value)
        self.since = 0.0
        return found


def _line_of_main_thread() -> str:
    """Return the line of the user's at which the main thread is."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    found = [f for f in traceback.extract_stack(frame) if not is_machinery(f.filename)]
    return f"{found[-1].filename}, line {found[-1].lineno}" if found else "an unknown line"
