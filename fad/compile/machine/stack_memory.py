"""The memory of a native program's stack: records of one size, one behind the other, in memory that grows.

It belongs to one program, which runs one call at a time, and is kept from call to call. Native code and Python both
push and pop: where a loop's body has an operation without a kernel, NumPy runs its steps.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from fad.core.programs.graph import Type

_ALIGNED = 16
_realloc = ctypes.pythonapi.PyMem_RawRealloc  # it needs no lock of the interpreter's
_realloc.restype, _realloc.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
_free = ctypes.pythonapi.PyMem_RawFree
_free.restype, _free.argtypes = None, (ctypes.c_void_p,)
REALLOC = ctypes.cast(_realloc, ctypes.c_void_p).value or 0


class StackMemory:
    """Records of values of some types; `words` holds the address, and for how many records there is memory."""

    def __init__(self, types: list[Type]):
        self.parts: list[tuple[int, Type]] = []  # (offset in a record, type)
        self.record = 0
        for t in types:
            self.parts.append((self.record, t))
            self.record += -(-t.nbytes // _ALIGNED) * _ALIGNED
        self.words = np.zeros(2, np.int64)
        weakref.finalize(self, _release, self.words)

    @property
    def nbytes(self) -> int:
        return int(self.words[1]) * self.record

    def push(self, depth: int, values: tuple) -> int:
        """Write values behind the first `depth` records, and return how many there are then."""
        if depth >= self.words[1]:
            address = _realloc(int(self.words[0]) or None, 2 * (depth + 1) * self.record)
            if not address:
                raise MemoryError(f"no memory for {2 * (depth + 1)} records of {self.record} bytes")
            self.words[:] = address, 2 * (depth + 1)
        for place, x in zip(self._places(depth), values, strict=True):
            place[...] = x
        return depth + 1

    def pop(self, depth: int) -> tuple:
        """Return how many records lie below the last of `depth`, and the values of that."""
        return (depth - 1, *[place.copy() for place in self._places(depth - 1)])

    def _places(self, k: int) -> list[np.ndarray]:
        raw: Any = (ctypes.c_uint8 * self.record).from_address(int(self.words[0]) + k * self.record)
        return [np.ndarray(t.shape, t.dtype, raw, offset) for offset, t in self.parts]


def _release(words: np.ndarray) -> None:
    _free(int(words[0]) or None)
