"""The debug mode: before each collective the ranks tell each other what they are about to call, and where.

Ranks that call different things would wait for each other for ever, or add up what does not belong together. Here both
lines are named, and so is a rank that does not come at all. It costs one small message for each collective.
"""

from __future__ import annotations

import ast
import time
from typing import Any

import numpy as np

from fad.distributed.errors import DistributedError, MismatchError
from fad.introspect.frames import user_line

_BYTES = 1024
_OF_TWO = ("send", "recv")


class Sequence:
    """Compares the calls of the ranks of MPI on a communicator of its own."""

    def __init__(self, comm: Any):
        self.comm = comm
        self.control = comm.mpi.Dup()
        self.messages = comm.mpi.Dup()  # what `send` is about to send; the tags are the user's
        self.closed = False

    def compare(self, name: str, x: Any, params: dict) -> None:
        if name in _OF_TWO or self.closed:
            return
        shape = () if name == "barrier" else tuple(x.shape)
        self._tell((name, shape, str(x.dtype), tuple(sorted(params.items()))), user_line())

    def announce(self, x: Any, dest: int, tag: int) -> None:
        """Let a rank know what the message is that this one sends it next, and where."""
        self.messages.send((str(x.dtype), x.shape, user_line()), dest, tag)

    def hear(self, source: int, tag: int) -> tuple:
        """Return what a rank sends this one: (dtype, shape, line)."""
        return self.messages.recv(source=source, tag=tag)

    def close(self) -> None:
        if not self.closed:
            self._tell(("end", (), "", ()), "the end of its program")
            self.closed = True

    def _tell(self, call: tuple, line: str) -> None:
        given = np.zeros(_BYTES, np.uint8)
        text = repr((*call, line[: _BYTES // 3])).encode()[:_BYTES]
        given[: len(text)] = np.frombuffer(text, np.uint8)
        found = np.zeros((self.comm.size, _BYTES), np.uint8)
        arrived = np.zeros(self.comm.size, bool)
        from mpi4py import MPI

        requests = [self.control.Irecv([found[r], MPI.BYTE], r) for r in range(self.comm.size)]
        sent = [self.control.Isend([given, MPI.BYTE], r) for r in range(self.comm.size)]
        end = time.monotonic() + self.comm.timeout
        while not arrived.all():
            arrived[:] = [done or request.Test() for done, request in zip(arrived, requests, strict=True)]
            if not arrived.all() and time.monotonic() > end:
                self.closed = True
                missing = [int(r) for r in np.flatnonzero(~arrived)]
                raise DistributedError(
                    f"rank {int(self.comm.rank)} has waited in {call[0]} for the ranks {missing} for "
                    f"{self.comm.timeout:g} s, at {line}"
                )
        MPI.Request.Waitall(sent)
        calls = {r: _read(row) for r, row in enumerate(found)}
        if any(found_call[:4] != calls[0][:4] for found_call in calls.values()):
            self.closed = True
            raise MismatchError(difference(calls))


def _read(row: np.ndarray) -> tuple:
    text = bytes(row).rstrip(b"\0").decode(errors="replace")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):  # too long, and cut
        return (text, (), "", (), "")


def difference(calls: dict[int, tuple]) -> str:
    """Say what each rank called, (name, shape, dtype, parameters, line), where they differ."""
    lines = []
    for rank, (name, shape, dtype, params, line) in sorted(calls.items()):
        given = ", ".join(f"{k}={v!r}" for k, v in params)
        what = f"{name}({dtype}{list(shape)}{', ' + given if given else ''})" if name != "end" else "nothing more"
        lines.append(f"rank {rank}: {what} at {line}")
    return (
        "the ranks call different things, where all must call the same collectives in the same order, on arrays of one "
        "shape and dtype:\n  " + "\n  ".join(lines)
    )
