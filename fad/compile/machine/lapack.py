"""LAPACK: the addresses of its routines in the library that NumPy itself runs, and the space that they ask for.

NumPy's answers have signs and phases that another library may choose otherwise, so no other one will do.
"""

from __future__ import annotations

import ctypes
import functools
import sys

import numpy as np

from fad.compile.machine.blas import Library, load_numpys


@functools.cache
def _library() -> Library | None:
    """Return the library, if it does what native programs take for granted; they pass integers as 64 bits."""
    found = load_numpys() if sys.byteorder == "little" else None
    return found if found is not None and _is_right(found) else None


def pointer(routine: str) -> int | None:
    """Return the address of a routine, by its name in Fortran."""
    found = _library()
    return found.address(routine) if found else None


def ask_for_space(routine: str, *before: str | int | None, behind: tuple[int | None, ...] = ()) -> tuple[int, int]:
    """Return how many numbers, and how many integers, a routine of double precision wants for itself.

    Arguments are letters and sizes, and None for arrays: those before the space for numbers, and those behind its size,
    the first of which is the space for integers.
    """
    address = pointer(routine)
    assert address is not None
    numbers, integers = np.zeros(1), np.zeros(1, np.int64)
    ended = _call(address, *before, numbers, -1, *((integers, *behind[1:]) if behind else ()))
    assert ended == 0
    return max(1, int(numbers[0])), max(1, int(integers[0]))


def _call(address: int, *arguments: np.ndarray | str | int | None) -> int:
    """Call a routine; return the last argument that it takes, which says how it ended."""
    given = [ord(x) if isinstance(x, str) else x for x in (*arguments, 0)]
    kept = [np.zeros(1, np.int64) if x is None else np.array([x], np.int64) if type(x) is int else x for x in given]
    letters = [ctypes.c_int64(1) for x in arguments if isinstance(x, str)]  # lengths, which Fortran passes of texts
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in kept]  # type: ignore[union-attr]
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), *[ctypes.c_int64] * len(letters))(address)
    call(*pointers, *letters)
    return int(kept[-1][0])  # type: ignore[index]


def _is_right(library: Library) -> bool:
    """Return whether a routine does what its name says, in the way that native programs call it."""
    address = library.address("dsyevd")
    if not address:
        return False
    a, values, space, places = np.array([[2.0, 1.0], [1.0, 2.0]]), np.zeros(2), np.zeros(64), np.zeros(32, np.int64)
    ended = _call(address, "V", "L", 2, a, 2, values, space, 64, places, 32)
    return ended == 0 and bool(np.allclose(values, [1.0, 3.0]))
