"""Cotangents that are not plain arrays: one that knows its structural zeros, and one that lives at an index.

Both exist only between two records of a backward sweep; no user ever sees one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import backend_of, made_like
from fad.core.tracer import Tracer


class Masked:
    """A cotangent that is zero *by selection* where `live` is false, as `where` makes them.

    An elementwise rule multiplies a cotangent by a partial derivative, and on a lane that was not selected the
    partial may be infinite: ``where(x > 0, sqrt(x), 0)`` at 0. There 0 * inf must be 0, for the value was never used,
    while everywhere else 0 * inf stays what NumPy makes of it. So the mask travels with the cotangent.
    """

    __slots__ = ("value", "live")

    def __init__(self, value: Any, live: Any):
        self.value = value
        self.live = live

    def times(self, partial: Any, saved: tuple) -> Masked:
        """Return the cotangent times a partial derivative, zero where not live."""
        with np.errstate(all="ignore"):
            product = self.value * partial(*saved)
        return Masked(np.where(self.live, product, 0.0), self.live)


class Indexed:
    """A cotangent of shape `shape` that is zero but for ``at index: values``, one pair per indexing operation.

    A loop over ``x[t]`` makes T of these. On arrays they are added into one buffer as they come;
    on tracers they are collected, and summed by one operation: linear cost at every order of derivative.
    """

    __slots__ = ("shape", "dtype", "entries", "add")

    def __init__(self, shape: tuple, dtype: Any, index: Any, values: Any, add: Any):
        self.shape = shape
        self.dtype = dtype
        self.entries = [(index, values)]
        self.add = add  # (shape, dtype, entries) -> array, for traced values

    def is_plain(self) -> bool:
        """Tell whether no tracer is among the values and indices."""
        if len(self.entries) == 1:
            index, values = self.entries[0]
            return type(values) is not Tracer and (type(index) is not tuple or not _has_tracer(index))
        return all(
            type(values) is not Tracer and not any(type(i) is Tracer for i in _parts(index))
            for index, values in self.entries
        )

    def add_to(self, buffer: Any) -> Any:
        """Add plain entries into an array that the caller owns."""
        for index, values in self.entries:
            if is_basic(index):
                buffer[index] += values
            else:
                backend_of(buffer).scatter_add(buffer, index, values)
        return buffer

    def dense(self) -> Any:
        if self.is_plain():
            return self.add_to(made_like(np.zeros_like, self.entries[0][1], self.shape, self.dtype))
        return self.add(self.shape, self.dtype, self.entries)


def _has_tracer(index: tuple) -> bool:
    return any(type(part) is Tracer for part in index)


def _parts(index: Any) -> tuple:
    return index if type(index) is tuple else (index,)


_BASIC = (int, slice, type(None), type(Ellipsis))


def is_basic(index: Any) -> bool:
    """Tell whether an index selects every element at most once, by slices and integers alone."""
    return all(type(part) in _BASIC or issubclass(type(part), np.integer) for part in _parts(index))


def densify(ct: Any) -> Any:
    """Return a cotangent as a plain array or tracer."""
    if type(ct) is Masked:
        return ct.value
    return ct.dense() if type(ct) is Indexed else ct
