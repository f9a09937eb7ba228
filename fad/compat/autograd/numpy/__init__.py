"""autograd.numpy: NumPy's names. Those of :mod:`fad.numpy` first, the rest are NumPy's own."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as _np

import fad.numpy as _fnp
from fad.compat.autograd.extend import notrace_primitive as _notrace
from fad.core.tracing.tracer import Tracer as ArrayBox  # what autograd calls its traced array

_PARTS = ("fft", "linalg", "random")
# Integer types that turn traced numbers into plain integers, for a program that computes places: `np.int64(x)`.
_INTEGERS = {
    name: type(name, (getattr(_np, name),), {"__new__": _notrace(getattr(_np, name).__new__)})
    for name in ("int8", "int16", "int32", "int64", "intp", "int_")
}


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return matrices with the last axis of `D` on their diagonals; autograd knows ``axis1=-1, axis2=-2`` alone.

    >>> make_diagonal(_np.array([1.0, 2.0]), axis1=-1, axis2=-2)
    array([[1., 0.],
           [0., 2.]])
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal takes offset=0, axis1=-1, axis2=-2 alone, as in autograd")
    return D[..., None] * _np.eye(D.shape[-1], dtype=D.dtype)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return NumPy's ``where``, whose arguments autograd lets be named; of Python's numbers and lists it makes those.

    >>> where(condition=[True, False], x=1.0, y=2.0)
    [1.0, 2.0]
    """
    if x is None and y is None:
        return _fnp.where(condition)
    result = _fnp.where(condition, x, y)
    return result if any(map(_has_arrays, (condition, x, y))) else result.tolist()


def _has_arrays(x: Any) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_has_arrays, x))
    return isinstance(x, _np.ndarray | _np.generic | ArrayBox)


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _INTEGERS:
        return _INTEGERS[name]
    return getattr(_fnp, name) if hasattr(_fnp, name) else getattr(_np, name)


def __dir__() -> list[str]:
    return sorted({*dir(_fnp), *_PARTS, "make_diagonal"})
