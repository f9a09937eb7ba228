"""NumPy's own sorts, as native programs call them: by the addresses that NumPy's C interface gives of them.

Where elements are equal their order is the algorithm's affair, and NumPy's differs from CPU to CPU; so no other sort
puts them where NumPy does. The functions need no lock of Python's: they are given numbers, and no objects.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

# Places in NumPy's tables, which stay what they are: numpy/__multiarray_api.h and PyArray_ArrFuncs in ndarraytypes.h.
_GET_FUNCTIONS = 365
_BEFORE_SORTS = 33  # pointers: 21 conversions, and those of 12 other things
_KINDS = 3  # quicksort, heapsort, stable; NumPy runs the first for the second as well, from 2.4 on
_TRIED = (3, 40, 700)  # lengths of arrays on which both are compared with NumPy


class Sorts(NamedTuple):
    """Addresses of ``sort(elements, n, null)`` and ``argsort(elements, order, n, null)``, which work in place."""

    sort: int
    argsort: int


@functools.cache
def find_sorts(dtype: np.dtype, kind: str | None) -> Sorts | None:
    """Return the sorts of a dtype by one of NumPy's kinds; None where they are not to be had."""
    if dtype.kind not in "fi" or not dtype.isnative:
        return None
    try:
        table = _functions_of(dtype)
    except (AttributeError, ImportError, OSError, TypeError, ValueError):
        return None
    for at in range(_BEFORE_SORTS, _BEFORE_SORTS + _KINDS):
        sort, argsort = table[at], table[at + _KINDS]
        if sort and argsort and _is_right(Sorts(sort, argsort), dtype, kind):
            return Sorts(sort, argsort)
    return None


def _functions_of(dtype: np.dtype) -> ctypes.Array:
    """Return the functions that NumPy has for a dtype: its `PyArray_ArrFuncs`."""
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        raise ImportError("the table of functions is another one")
    from numpy._core._multiarray_umath import _ARRAY_API  # type: ignore[attr-defined]

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    interface = ctypes.cast(get(_ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(interface[_GET_FUNCTIONS])(dtype)
    return (ctypes.c_void_p * (_BEFORE_SORTS + 2 * _KINDS)).from_address(address)


def _is_right(found: Sorts, dtype: np.dtype, kind: Any) -> bool:
    """Return whether both do what NumPy does, equal elements included."""
    argument, length = ctypes.c_void_p, ctypes.c_ssize_t
    sort = ctypes.CFUNCTYPE(ctypes.c_int, argument, length, argument)(found.sort)
    argsort = ctypes.CFUNCTYPE(ctypes.c_int, argument, argument, length, argument)(found.argsort)
    for n in _TRIED:
        x = (np.arange(n) * 7 % 11 - 5).astype(dtype)
        y, order = x.copy(), np.arange(n)
        sort(y.ctypes.data, n, None)
        argsort(x.ctypes.data, order.ctypes.data, n, None)
        if y.tobytes() != np.sort(x, kind=kind).tobytes() or (order != np.argsort(x, kind=kind)).any():
            return False
    return True
