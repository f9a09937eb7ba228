"""Functional updates ``x.at[i].set(v)``: a changed copy of an array, which stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitives.primitive import Primitive, has_tracer
from fad.core.tracing.tracer import Tracer, add_methods, bind
from fad.core.tracing.views import unwrap
from fad.ops.places.indexing import as_full_value, getitem_p, index_add_p, index_set_p, pick, split_index, updated_dtype


class At:
    """``x.at[i]``: what gives a changed copy of an array, and leaves the array as it is."""

    __slots__ = ("_x",)

    def __init__(self, x: Any):
        self._x = x

    def __getitem__(self, index: Any) -> Place:
        return Place(self._x, index)


class Place:
    """``x.at[i]``: get, set, add, subtract, multiply, divide, power, min, max, apply."""

    __slots__ = ("_x", "_index")

    def __init__(self, x: Any, index: Any):
        self._x = x
        self._index = index

    def _bind(self, prim: Primitive, v: Any) -> Any:
        x, v = self._operands(v)
        template, arrays = split_index(self._index)
        v = as_full_value(x, v, arrays, template)
        return bind(prim, x, v, *[like(x, a) for a in arrays], template=template)

    def _operands(self, v: Any) -> tuple:
        x = self._x
        if not hasattr(v, "dtype"):
            v = np.stack(v) if type(v) in (list, tuple) and has_tracer(v) else like(x, np.asarray(v))
        fits = x.dtype.kind == "c" or (x.dtype.kind == "f" and v.dtype.kind != "c")
        dtype = x.dtype if fits or type(v) is not Tracer else updated_dtype(x.dtype, v)
        return (x if x.dtype == dtype else x.astype(dtype)), (v if v.dtype == dtype else v.astype(dtype))

    def get(self) -> Any:
        """Return ``x[i]``."""
        return pick(self._x, self._index)

    def set(self, v: Any) -> Any:
        """Return a copy of x with ``x[i] = v``; of several values for one place the last is kept."""
        if _is_traced_mask(self._index, self._x) and np.size(v) == 1:
            x, v = self._operands(v)
            return np.where(self._index, v.reshape(()), x)
        return self._bind(index_set_p, v)

    def add(self, v: Any) -> Any:
        """Return a copy of x with v added at i, once for each time a place occurs in i."""
        return self._bind(index_add_p, v)

    def subtract(self, v: Any) -> Any:
        """Return a copy of x with v subtracted at i, once for each time a place occurs in i."""
        return self.add(np.negative(v))

    def multiply(self, v: Any) -> Any:
        """Return a copy of x with ``x[i]`` multiplied by v."""
        return self.set(self._unique() * v)

    def divide(self, v: Any) -> Any:
        """Return a copy of x with ``x[i]`` divided by v."""
        return self.set(self._unique() / v)

    def power(self, v: Any) -> Any:
        """Return a copy of x with ``x[i]`` raised to the power of v."""
        return self.set(self._unique() ** v)

    def apply(self, f: Callable) -> Any:
        """Return a copy of x with ``f(x[i])`` at i."""
        return self.set(f(self._unique()))

    def min(self, v: Any) -> Any:
        """Return a copy of x with ``x[i]`` lowered to at most v."""
        return self.set(np.minimum(self._unique(), v))

    def max(self, v: Any) -> Any:
        """Return a copy of x with ``x[i]`` raised to at least v."""
        return self.set(np.maximum(self._unique(), v))

    def _unique(self) -> Any:
        x = self._x
        template, arrays = split_index(self._index)
        if arrays:
            places = bind(getitem_p, like(x, np.arange(x.size).reshape(x.shape)), *arrays, template=template)
            n = places.size
            rows = np.sort(unwrap(places).reshape(-1, n), axis=1) if n else unwrap(places).reshape(1, 0)
            if (rows[:, 1:] == rows[:, :-1]).any():
                raise IndexError("all of at[i] but set, add and subtract needs an index that names each place once")
        return self.get()


def _is_traced_mask(index: Any, x: Any) -> bool:
    """Return whether an index is one traced mask of the array's own shape: then no batch need be split."""
    return type(index) is Tracer and index.dtype.kind == "b" and index.shape == x.shape


add_methods(at=property(At))
