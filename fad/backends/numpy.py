"""The NumPy backend: arrays in host memory."""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

name = "numpy"
array_type: type = np.ndarray
avoided: frozenset = frozenset()
_LONG, _MOST = 512, 64  # indices, and vectors that they go into, for which `scatter_add` takes one vector at a time


def owns(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def from_host(x: Any) -> np.ndarray:
    return np.asarray(x)


def to_host(x: Any) -> np.ndarray:
    return x


def arange(n: int, dtype: Any) -> np.ndarray:
    return np.arange(n, dtype=dtype)


def scatter_add(target: np.ndarray, index: Any, values: Any) -> None:
    """Add `values` into `target` at `index`, in place, counting repeated positions as often as they occur.

    NumPy takes a tenth of the time where a vector of indices goes into a vector, so that one array of indices into
    several vectors is given for each of them, and a mask of all elements by the positions of those that it names.
    """
    mask = index[0] if type(index) is tuple and len(index) == 1 else index
    if type(mask) is np.ndarray and mask.dtype == bool and mask.shape == target.shape and target.flags.c_contiguous:
        np.add.at(target.reshape(-1), np.flatnonzero(mask), np.ravel(values))
        return
    found = _vectors(target, index)
    if found is None:
        np.add.at(target, index, values)
        return
    part, axis, indices = found
    shape, end = part.shape, axis + indices.ndim
    values = np.broadcast_to(values, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))
    values = values.transpose(*range(axis), *range(end, values.ndim), *range(axis, end))
    vectors, line = part.transpose(*range(axis), *range(axis + 1, part.ndim), axis), indices.reshape(-1)
    for k in np.ndindex(vectors.shape[:-1]):
        np.add.at(vectors[k], line, values[k].reshape(-1))


def _vectors(target: np.ndarray, index: Any) -> tuple[np.ndarray, int, np.ndarray] | None:
    """Return the part of an array that slices name, an axis of it and the indices into that; None for other indices."""
    places = index if type(index) is tuple else (index,)
    arrays = [x for x in places if type(x) is np.ndarray]
    if len(arrays) != 1 or arrays[0].dtype.kind not in "iu" or arrays[0].size < _LONG:
        return None
    if not all(type(x) in (slice, np.ndarray, type(Ellipsis)) for x in places):
        return None
    part = target[tuple([slice(None) if type(x) is np.ndarray else x for x in places])]
    before = [type(x) for x in places[: [type(x) for x in places].index(np.ndarray)]]
    axis = len(before) + (target.ndim - len(places) if type(Ellipsis) in before else 0)
    return (part, axis, arrays[0]) if part.size <= _MOST * part.shape[axis] else None


@functools.cache
def scipy_function(name: str) -> Callable | None:
    """Return SciPy's function of a name below ``scipy``, or None where SciPy is not installed."""
    module, _, function = name.partition(".")
    try:
        return getattr(importlib.import_module(f"scipy.{module}"), function)
    except ImportError:
        return None


def synchronize() -> None:
    """Wait until all work has finished; on the host it always has."""


def timer() -> Any:
    """Start a clock: it is stopped by calling it, and what that returns gives the seconds between the two."""
    start = time.perf_counter()

    def stop() -> Callable:
        seconds = time.perf_counter() - start
        return lambda: seconds

    return stop
