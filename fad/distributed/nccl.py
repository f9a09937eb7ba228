"""Ranks with one NVIDIA GPU each, through CuPy's NCCL (`cupy.cuda.nccl`).

The processes are started as those of MPI, and MPI, where it is, carries the identifier by which NCCL's ranks find each
other; without it there is a world of one. Collectives are put on CuPy's current stream, so they are in order with
kernels and nobody waits on the host: the non-blocking forms are the blocking ones. Arrays of the host are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from cupy.cuda import nccl

from fad.distributed.communicator import Communicator, is_launched
from fad.distributed.errors import DistributedError

_OPS = {"sum": nccl.NCCL_SUM, "prod": nccl.NCCL_PROD, "max": nccl.NCCL_MAX, "min": nccl.NCCL_MIN}
_TYPES = {
    "b": nccl.NCCL_INT8, "B": nccl.NCCL_UINT8, "?": nccl.NCCL_UINT8, "i": nccl.NCCL_INT32, "I": nccl.NCCL_UINT32,
    "l": nccl.NCCL_INT64, "q": nccl.NCCL_INT64, "L": nccl.NCCL_UINT64, "Q": nccl.NCCL_UINT64,
    "e": nccl.NCCL_FLOAT16, "f": nccl.NCCL_FLOAT32, "d": nccl.NCCL_FLOAT64,
}  # fmt: skip


class NCCLRank(Communicator):
    """One rank of NCCL; the GPU of rank r is number r of those that the process sees, counted round."""

    engine = "nccl"

    def __init__(self, timeout: float, deterministic: bool):
        self.mpi = _mpi()
        rank, size = (0, 1) if self.mpi is None else (self.mpi.Get_rank(), self.mpi.Get_size())
        super().__init__(rank, size, timeout, deterministic)
        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
        known = nccl.get_unique_id() if rank == 0 else None
        self.nccl = nccl.NcclCommunicator(size, known if self.mpi is None else self.mpi.bcast(known), rank)

    @staticmethod
    def _facts(x: Any) -> tuple[Any, int, int]:
        """Return an array without gaps, the number of its elements, and NCCL's number of their type."""
        if not isinstance(x, cupy.ndarray):
            raise DistributedError("NCCL moves arrays of a GPU: fad.device_put(x), or init(engine='mpi')")
        x = cupy.ascontiguousarray(x)
        if x.dtype.kind == "c":
            return x, 2 * x.size, _TYPES[x.real.dtype.char]
        return x, x.size, _TYPES[x.dtype.char]

    @property
    def _stream(self) -> int:
        return cupy.cuda.get_current_stream().ptr

    def _all_reduce(self, x: Any, op: str) -> Any:
        if self.deterministic or (x.dtype.kind == "c" and op != "sum"):
            return self._reduce_in_order(x, op)
        x, n, kind = self._facts(x)
        out = cupy.empty_like(x)
        self.nccl.allReduce(x.data.ptr, out.data.ptr, n, kind, _OPS[op], self._stream)
        return out

    def _reduce_in_order(self, x: Any, op: str) -> Any:
        parts = self._all_gather(x)
        how = {"sum": cupy.add, "max": cupy.maximum, "min": cupy.minimum, "prod": cupy.multiply}[op]
        total = parts[0].copy()
        for part in parts[1:]:
            total = how(total, part)
        return total

    def _broadcast(self, x: Any, root: int) -> Any:
        x, n, kind = self._facts(x)
        out = x.copy()
        self.nccl.broadcast(x.data.ptr, out.data.ptr, n, kind, root, self._stream)
        return out

    def _reduce(self, x: Any, root: int) -> Any:
        x, n, kind = self._facts(x)
        out = cupy.zeros_like(x)
        self.nccl.reduce(x.data.ptr, out.data.ptr, n, kind, nccl.NCCL_SUM, root, self._stream)
        return out if self.rank == root else cupy.zeros_like(x)

    def _all_gather(self, x: Any) -> Any:
        x, n, kind = self._facts(x)
        out = cupy.empty((self.size, *x.shape), x.dtype)
        self.nccl.allGather(x.data.ptr, out.data.ptr, n, kind, self._stream)
        return out

    def _gather(self, x: Any, root: int) -> Any:
        y = self._all_gather(x)
        return y if self.rank == root else cupy.zeros_like(y)

    def _reduce_scatter(self, x: Any) -> Any:
        x, n, kind = self._facts(x)
        out = cupy.empty(x.shape[1:], x.dtype)
        self.nccl.reduceScatter(x.data.ptr, out.data.ptr, n // self.size, kind, nccl.NCCL_SUM, self._stream)
        return out

    def _scatter(self, x: Any, root: int) -> Any:
        return self._broadcast(x, root)[int(self.rank)].copy()

    def _exchange(self, sends: Sequence, receives: Sequence) -> None:
        """Send and receive (array, rank) at once."""
        nccl.groupStart()
        for x, rank in sends:
            x, n, kind = self._facts(x)
            self.nccl.send(x.data.ptr, n, kind, rank, self._stream)
        for x, rank in receives:
            _, n, kind = self._facts(x)
            self.nccl.recv(x.data.ptr, n, kind, rank, self._stream)
        nccl.groupEnd()

    def _all_to_all(self, x: Any) -> Any:
        x = cupy.ascontiguousarray(x)
        out = cupy.empty_like(x)
        self._exchange([(x[r], r) for r in range(self.size)], [(out[r], r) for r in range(self.size)])
        return out

    def _permute(self, x: Any, pairs: Sequence) -> Any:
        x = cupy.ascontiguousarray(x)
        out = cupy.zeros_like(x)
        sends = [(x, b) for a, b in pairs if a == self.rank]
        self._exchange(sends, [(out, a) for a, b in pairs if b == self.rank])
        return out

    def _send(self, x: Any, dest: int, tag: int) -> Any:
        self._exchange([(cupy.ascontiguousarray(x), dest)], [])
        return cupy.zeros((), x.dtype)

    def _recv(self, x: Any, source: int, tag: int) -> Any:
        out = cupy.empty_like(x, order="C")
        self._exchange([], [(out, source)])
        return out

    def _barrier(self, x: Any) -> Any:
        y = self._all_reduce(cupy.zeros(1), "sum")
        cupy.cuda.get_current_stream().synchronize()
        return np.asarray(x).dtype.type(float(y[0]))

    def is_same(self, code: int) -> bool:
        return len(set(self.exchange(code))) == 1

    def exchange(self, value: Any) -> list:
        return [value] if self.mpi is None else self.mpi.allgather(value)


def _mpi() -> Any:
    """Return MPI's world if the process was started as one of several, or None."""
    if not is_launched():
        return None
    from mpi4py import MPI

    return MPI.COMM_WORLD.Dup()
