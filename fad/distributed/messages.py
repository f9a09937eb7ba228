"""Messages from one process of MPI to another: an array as bytes, with a head that says its dtype and shape."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from fad.distributed.communicator import Communicator
from fad.distributed.errors import MismatchError
from fad.errors import UnsupportedInputError


def as_bytes(x: Any) -> Any:
    """Return the bytes of an array as MPI takes them: for what moves numbers and computes with none."""
    if x.dtype.hasobject:
        raise UnsupportedInputError(f"ranks send each other plain data, and were given an array of {x.dtype}")
    return [x.reshape(-1).view(np.uint8), MPI.BYTE]


def receive(comm: Communicator, x: Any, nbytes: int, receive: Callable, *args: Any) -> None:
    """Receive a message that stands for an array, by a function of MPI's; raise if it is of another size."""
    status = MPI.Status()
    try:
        receive(*args, status)
    except MPI.Exception as error:
        if error.Get_error_class() != MPI.ERR_TRUNCATE:
            raise
        raise mismatch(comm, x, status.source, "more bytes") from None
    if (sent := status.Get_count(MPI.BYTE)) != nbytes:
        raise mismatch(comm, x, status.source, f"{sent} bytes")


def mismatch(comm: Communicator, x: Any, source: int, sent: str) -> MismatchError:
    return MismatchError(
        f"rank {int(comm.rank)} expects {x.dtype}{list(x.shape)}, {x.nbytes} bytes, of rank {source}, and was sent "
        f"{sent}"
    )


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


def read_head(head: bytes) -> tuple[int, str]:
    nbytes, _, number, size, *lengths = np.frombuffer(head, np.int64).tolist()
    kind, ndim = chr(number & 255), number >> 8
    dtype = np.dtype(f"{kind}{size // 4 if kind == 'U' else size}")  # of text, the number of characters
    return nbytes, f"{dtype}{lengths[:ndim]}, {nbytes} bytes"  # of many axes, the first four


def send_with_head(comm: Any, x: Any, dest: int, tag: int) -> None:
    content, head = as_bytes(x), _head_of(x.dtype, x.shape)
    if x.nbytes <= _PACKED:
        comm.Send([head + content[0].tobytes(), MPI.BYTE], dest, tag)
    else:
        comm.Send([head, MPI.BYTE], dest, tag)
        comm.Send(content, dest, tag)


def receive_with_head(comm: Any, x: Any, source: int, tag: int) -> tuple[bytes, Any]:
    """Receive the head of a message and an array like x; None for the array if the head is another."""
    status = MPI.Status()
    message = comm.Mprobe(source, tag, status)
    packed = np.empty(status.Get_count(MPI.BYTE), np.uint8)
    message.Recv([packed, MPI.BYTE])
    head = packed[:_HEAD].tobytes()
    fits = head == _head_of(x.dtype, x.shape)
    nbytes = x.nbytes if fits else read_head(head)[0]
    if nbytes > _PACKED:
        out = np.empty(x.shape, x.dtype) if fits else np.empty(nbytes, np.uint8)
        comm.Recv(as_bytes(out), source, tag)
        return head, out if fits else None
    return head, packed[_HEAD:].view(x.dtype).reshape(x.shape).copy() if fits else None
