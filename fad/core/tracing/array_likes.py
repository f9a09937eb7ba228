"""Objects of a program that stand for arrays: NumPy takes what their ``__array__`` gives, which is no traced array.

Where a traced array meets one, or one is written into an array, it is opened here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import DEVICE_ARRAYS
from fad.core.tracing.numpy_dispatch import FUNCTIONS
from fad.introspect.reachable import TRACED

# What gives the array that an object of fad's own stands for, by the object's class: NumPy would read a plain one.
STAND_FOR_ARRAYS: dict[type, Callable] = {}


@functools.lru_cache(1 << 10)
def gives_array(kind: type) -> bool:
    """Return whether objects of a class leave it to NumPy to open them.

    Those that answer NumPy's functions themselves do not, as arrays of a device and quantities.
    """
    if issubclass(kind, (np.ndarray, np.generic)) or not hasattr(kind, "__array__"):
        return False
    return not (hasattr(kind, "__array_function__") or hasattr(kind, "__array_ufunc__"))


def open_array_like(x: Any) -> Any:
    """Return the array that an object stands for, traced or not, and anything else as it is."""
    kind: Any = type(x)
    if kind in STAND_FOR_ARRAYS:
        return STAND_FOR_ARRAYS[kind](x)
    if not gives_array(kind) or kind in DEVICE_ARRAYS:
        return x
    y = x.__array__()
    return y if type(y) is np.ndarray or type(y) in TRACED else x


def open_operand(x: Any, beside: Any) -> Any:
    """Return what a traced operand is combined with: a list as an array, an object as the array it stands for.

    Objects of a higher priority than arrays stay what they are: NumPy's operators leave the operation to them. So do
    those beside a number, for Python's numbers leave it to any object.
    """
    kind: Any = type(x)
    if kind in (list, tuple):
        return FUNCTIONS[np.array](x)
    if not gives_array(kind) or not beside.shape or getattr(kind, "__array_priority__", 0) > 0:
        return x
    return open_array_like(x)
