"""Ranks that are processes of MPI, through mpi4py.

A collective is one call of MPI's. A thread of each rank looks at the clock: a rank that waits in one collective for
longer than the time-out ends the whole run, with a message that says where it waited, and so does an error that
nobody caught.
"""

from __future__ import annotations

import atexit
import functools
import math
import os
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.util.dtlib import to_numpy_dtype

from fad.distributed.communicator import METHODS, OPERATIONS, Communicator, contiguous, reduce
from fad.distributed.errors import DistributedError, MismatchError
from fad.errors import UnsupportedInputError
from fad.introspect.frames import is_machinery

ENDED = 75
"""The exit status of a run that was ended because a rank waited longer than the time-out."""
EXCHANGED = 1 << 14
"""Bytes from which on two ranks reduce by sending each other their arrays.

MPI's own reduction sends halves forth and back, through memory that it allocates in each call: for arrays of 77 kB it
takes twice the time, for 8 MB five times (``benchmarks/distributed.py``). Smaller arrays it sends in one message.
"""
SHARED = 1 << 20
"""Bytes up to which they do so through memory that both share, where they run on one machine: half the time again."""
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


class _Message(_Request):
    """An array that is on its way from another rank, the first of the requests, and one to another."""

    __slots__ = ()

    def complete(self) -> None:
        _receive(self.comm, self.out, self.out.nbytes, self.requests[0].Wait)
        MPI.Request.Waitall(self.requests[1:])


def _receive(comm: MPIRank, x: Any, nbytes: int, receive: Callable, *args: Any) -> None:
    """Receive a message that stands for an array, by a function of MPI's; raise if it is of another size."""
    status = MPI.Status()
    try:
        receive(*args, status)
    except MPI.Exception as error:
        if error.Get_error_class() != MPI.ERR_TRUNCATE:
            raise
        raise _mismatch(comm, x, status.source, "more bytes") from None
    if (sent := status.Get_count(MPI.BYTE)) != nbytes:
        raise _mismatch(comm, x, status.source, f"{sent} bytes")


def _mismatch(comm: MPIRank, x: Any, source: int, sent: str) -> MismatchError:
    return MismatchError(
        f"rank {int(comm.rank)} expects {x.dtype}{list(x.shape)}, {x.nbytes} bytes, of rank {source}, and was sent "
        f"{sent}"
    )


def _explained(comm: MPIRank, name: str, x: Any, error: Any) -> DistributedError:
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
        requests = [comm.mpi.Irecv(_bytes(out), other, _REDUCE), comm.mpi.Isend(_bytes(theirs), other, _REDUCE)]
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


class _Window:
    """Memory that two ranks of one machine share: each writes its array there, and reads the other's.

    There are two places for each rank, used in turn: in the one the other may still be reading, when this rank has
    heard of it that the array after that is there, it no longer does.
    """

    def __init__(self, comm: MPIRank):
        self.comm = comm
        self.window = MPI.Win.Allocate_shared(2 * SHARED, comm=comm.mpi)
        self.window.Lock_all(MPI.MODE_NOCHECK)
        places: Any = [self.window.Shared_query(r)[0] for r in (int(comm.rank), 1 - comm.rank)]
        self.own, self.others = (np.frombuffer(place, np.uint8) for place in places)
        self.start = 0
        self.sent, self.received = np.zeros((2, 4), np.int64)  # bytes, where they start, and the dtype
        other = 1 - comm.rank
        self.messages = [self.sent, MPI.INT64_T], other, _REDUCE, [self.received, MPI.INT64_T], other, _REDUCE

    def exchange(self, x: Any) -> Any:
        """Give the other rank an array; return a view of its own, until the next but one is exchanged."""
        self.start = SHARED - self.start
        np.ndarray(x.shape, x.dtype, self.own, self.start)[...] = x
        self.sent[:] = x.nbytes, self.start, ord(x.dtype.kind), x.dtype.itemsize
        self.window.Sync()
        _receive(self.comm, x, self.sent.nbytes, self.comm.mpi.Sendrecv, *self.messages)
        self.window.Sync()
        nbytes, start, kind, itemsize = self.received.tolist()
        if (nbytes, kind, itemsize) != (x.nbytes, ord(x.dtype.kind), x.dtype.itemsize):
            sent = np.dtype(f"{chr(kind)}{itemsize}")
            raise _mismatch(self.comm, x, 1 - self.comm.rank, f"{nbytes} bytes, {sent}[{nbytes // itemsize}]")
        return np.ndarray(x.shape, x.dtype, self.others, start)


_HEAD = 64  # bytes
_PACKED = 1 << 15
"""Bytes up to which `send` copies an array behind its head, into one message; a larger one is a message of its own."""


@functools.lru_cache(256)
def _head_of(dtype: np.dtype, shape: tuple) -> bytes:
    """Return dtype and shape as `send` sends them before an array: the first four lengths, and a checksum of all."""
    lengths = (*shape, 0, 0, 0, 0)[:4]
    nbytes, check = math.prod(shape) * dtype.itemsize, zlib.crc32(f"{dtype}{shape}".encode())
    kind = ord(dtype.kind) + (len(shape) << 8)
    return np.array([nbytes, check, kind, dtype.itemsize, *lengths], np.int64).tobytes()


def _read_head(head: bytes) -> tuple[int, str]:
    nbytes, _, number, size, *lengths = np.frombuffer(head, np.int64).tolist()
    kind, ndim = chr(number & 255), number >> 8
    dtype = np.dtype(f"{kind}{size // 4 if kind == 'U' else size}")  # of text, the number of characters
    return nbytes, f"{dtype}{lengths[:ndim]}, {nbytes} bytes"  # of many axes, the first four


def _send_with_head(comm: Any, x: Any, dest: int, tag: int) -> None:
    content, head = _bytes(x), _head_of(x.dtype, x.shape)
    if x.nbytes <= _PACKED:
        comm.Send([head + content[0].tobytes(), MPI.BYTE], dest, tag)
    else:
        comm.Send([head, MPI.BYTE], dest, tag)
        comm.Send(content, dest, tag)


def _receive_with_head(comm: Any, x: Any, source: int, tag: int) -> tuple[bytes, Any]:
    """Receive the head of a message and an array like x; None for the array if the head is another."""
    status = MPI.Status()
    message = comm.Mprobe(source, tag, status)
    packed = np.empty(status.Get_count(MPI.BYTE), np.uint8)
    message.Recv([packed, MPI.BYTE])
    head = packed[:_HEAD].tobytes()
    fits = head == _head_of(x.dtype, x.shape)
    nbytes = x.nbytes if fits else _read_head(head)[0]
    if nbytes > _PACKED:
        out = np.empty(x.shape, x.dtype) if fits else np.empty(nbytes, np.uint8)
        comm.Recv(_bytes(out), source, tag)
        return head, out if fits else None
    return head, packed[_HEAD:].view(x.dtype).reshape(x.shape).copy() if fits else None


class MPIRank(Communicator):
    """One rank of MPI's world, on a communicator of fad's own: messages of other libraries never meet fad's."""

    engine = "mpi"

    def __init__(self, timeout: float, deterministic: bool):
        self.mpi = MPI.COMM_WORLD.Dup()
        super().__init__(self.mpi.Get_rank(), self.mpi.Get_size(), timeout, deterministic)
        self.since = 0.0  # when the collective began in which this rank is, or zero
        self.window: Any = NotImplemented  # the memory that two ranks share, once it is known whether they can
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
            return self._found(getattr(self, METHODS[name])(contiguous(x), **params), x)
        except MPI.Exception as error:
            raise _explained(self, name, x, error) from error
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
        if theirs.nbytes <= SHARED and (window := self._share_memory()) is not None:
            return _reduce_pair(self, mine, window.exchange(theirs), op)
        out, other = np.empty_like(mine), 1 - self.rank
        messages = _bytes(theirs), other, _REDUCE, _bytes(out), other, _REDUCE
        _receive(self, mine, mine.nbytes, self.mpi.Sendrecv, *messages)
        return _reduce_pair(self, mine, out, op, out)

    def _share_memory(self) -> _Window | None:
        """Return the memory that both ranks share; None if they run on two machines."""
        if self.window is NotImplemented:
            near = self.mpi.Split_type(MPI.COMM_TYPE_SHARED)
            self.window = _Window(self) if near.Get_size() == 2 else None
            near.Free()
        return self.window

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
        self.mpi.Bcast(_bytes(out), root)
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
        coming = [self.mpi.Irecv(_bytes(out), a, _PERMUTE) for a, b in pairs if b == self.rank]
        going = [self.mpi.Isend(_bytes(x), b, _PERMUTE) for a, b in pairs if a == self.rank]
        return (_Message if coming else _Request)(self, coming + going, out, x)

    def _send(self, x: Any, dest: int, tag: int) -> Any:
        if self.sequence is not None:
            self.sequence.announce(x, dest, tag)
        _send_with_head(self.mpi, x, dest, tag + _SEND)
        return np.zeros((), x.dtype)

    def _recv(self, x: Any, source: int, tag: int) -> Any:
        announced = None if self.sequence is None else self.sequence.hear(source, tag)
        head, out = _receive_with_head(self.mpi, x, source, tag + _SEND)
        if out is None:
            line = "" if announced is None else f", at {announced[2]}"
            raise _mismatch(self, x, source, _read_head(head)[1] + line)
        return out

    def _barrier(self, x: Any) -> Any:
        self.mpi.Barrier()
        return x.copy()

    def exchange(self, value: Any) -> list:
        self.since = time.monotonic()
        found = self.mpi.allgather(value)
        self.since = 0.0
        return found


def _bytes(x: Any) -> Any:
    """Return the bytes of an array as MPI takes them: for what moves numbers and computes with none."""
    if x.dtype.hasobject:
        raise UnsupportedInputError(f"ranks send each other plain data, and were given an array of {x.dtype}")
    return [x.reshape(-1).view(np.uint8), MPI.BYTE]


def _line_of_main_thread() -> str:
    """Return the line of the user's at which the main thread is."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    found = [f for f in traceback.extract_stack(frame) if not is_machinery(f.filename)]
    return f"{found[-1].filename}, line {found[-1].lineno}" if found else "an unknown line"
