"""``np.lib.stride_tricks.as_strided`` of traced arrays: a view by strides shows elements, taken by their places.

NumPy asks no protocol there, so that programs have this function by the overlay (`fad.core.runs.overlay`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fad.core.handles.buffers import Taken
from fad.core.runs.overlay import replace
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import layout
from fad.ops.places.functional_updates import At

_of_numpy = np.lib.stride_tricks.as_strided


@functools.wraps(_of_numpy)
def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    if type(x) is not Tracer:
        return _of_numpy(x, shape, strides, subok, writeable)
    shape = x.shape if shape is None else tuple(map(int, shape))
    strides = _choose_strides(x, shape) if strides is None else tuple(map(int, strides))
    if len(shape) != len(strides):
        raise ValueError("mismatch in length of strides and shape")
    if any(n < 0 for n in shape):
        raise ValueError("negative dimensions are not allowed")
    return (_written if writeable else _read)(x, shape=shape, strides=strides)


def _choose_strides(x: Any, shape: tuple) -> tuple:
    """Return the strides that NumPy takes for a shape: those of C's order where the array itself lies so."""
    if not x.flags.c_contiguous:
        return x.strides
    return tuple([x.itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape))])


def _take(x: Any, shape: tuple, strides: tuple) -> Any:
    kept, places = _find_places(x, shape, strides)
    lead = x.shape[:kept]
    parts = x.reshape(*lead, math.prod(x.shape[kept:]))
    return parts[(slice(None),) * kept + (places,)]


def _put_back(x: Any, y: Any, shape: tuple, strides: tuple) -> Any:
    """Return an array with the elements that a view shows replaced by `y`: each is shown once."""
    _, places = _find_places(x, shape, strides, keeps_axes=False)
    places = places.reshape(-1)
    if len(np.unique(places)) < len(places):
        raise ValueError(
            "a view by as_strided that shows elements of a traced array several times is read-only, for NumPy does not "
            "say which of several values is left. Write into the array itself, or into a copy of the view"
        )
    return At(x.reshape(-1))[places].set(y.reshape(-1)).reshape(x.shape)


def _find_places(x: Any, shape: tuple, strides: tuple, keeps_axes: bool = True) -> tuple[int, np.ndarray]:
    """Return how many leading axes a view has in common with its array, and places in the flat rest of the array.

    The common axes are no part of the places, which are few so for windows along the last axis of an array of many.
    """
    own = layout(x)
    kept = _count_common(own, shape, strides) if keeps_axes else 0
    places = _search(own, kept, shape, strides)
    if places is None and kept:
        kept, places = 0, _search(own, 0, shape, strides)
    if places is None:
        raise ValueError(
            f"as_strided with shape {shape} and strides {strides} reaches outside of the traced array of shape "
            f"{x.shape} and strides {own.strides}, or between its elements; take a view of the whole array"
        )
    return kept, places


def _count_common(own: np.ndarray, shape: tuple, strides: tuple) -> int:
    kept = 0
    for of_own, of_view in zip(
        zip(own.shape, own.strides, strict=True), zip(shape, strides, strict=True), strict=False
    ):
        if of_own != of_view:
            break
        kept += 1
    return kept


def _search(own: np.ndarray, kept: int, shape: tuple, strides: tuple) -> np.ndarray | None:
    """Return the places of a view's elements in a flat part of an array, at the same distances there; or None."""
    distances = _measure(own.shape[kept:], own.strides[kept:]).reshape(-1)
    wanted = _measure(shape[kept:], strides[kept:])
    if not wanted.size:
        return wanted
    order = np.argsort(distances, kind="stable")
    found = np.searchsorted(distances, wanted, sorter=order)
    if found.max() == len(order):
        return None
    places = order[found]
    return places if np.array_equal(distances[places], wanted) else None


def _measure(shape: tuple, strides: tuple) -> np.ndarray:
    """Return how far from the first element each element lies in memory, in bytes."""
    distances = np.zeros((), np.intp)
    for n, step in zip(shape, strides, strict=True):
        distances = distances[..., None] + step * np.arange(n)
    return distances


_read = Taken(_take, functools.partial(_of_numpy, writeable=False))
_written = Taken(_take, _of_numpy, _put_back)

replace("lib.stride_tricks.as_strided", as_strided)
