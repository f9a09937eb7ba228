"""Structured arrays behind handles: one for each field, for NumPy's own hold plain numbers alone.

A program may keep its particles in ``np.zeros(n, dtype=[("x", float), ("v", float)])`` and write traced values into the
fields. Where that failed, the function runs again, and what NumPy makes of such a dtype is a `StructuredArray`: its
fields are handles (`fad.core.buffers`), and what is done to elements is done to each field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.core.buffers import buffer, plain
from fad.core.tracer import Tracer, stack_list, stop
from fad.core.views import Memory
from fad.introspect.reachable import INSIDE

_IN_PLACE = {"byteswap", "partition", "put", "resize", "setfield", "setflags", "itemset"}


def is_structured(x: Any) -> bool:
    """Return whether something is a structured array of NumPy's."""
    return type(x) is np.ndarray and x.dtype.names is not None


class StructuredArray:
    """What stands for a structured array while a transform runs."""

    __slots__ = ("dtype", "fields")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, dtype: np.dtype, fields: dict[str, Any]):
        self.dtype = dtype
        self.fields = fields

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray

    # --- what an array says of itself ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        name, field = next(iter(self.fields.items()))
        return field.shape[: field.ndim - len(self.dtype[name].shape)]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"StructuredArray({self.fields!r}, dtype={self.dtype})"

    def __copy__(self) -> StructuredArray:
        return self.copy()

    # --- elements and fields ------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            return self._field(key)
        if type(key) is list and key and type(key[0]) is str:
            return StructuredArray(self.dtype[key], {name: self._field(name) for name in key})
        key = self._expand(key)
        if len(key) == self.ndim and all(map(_is_integer, key)):
            check_bounds(key, self.shape)
            return Record(self, key)
        return self._map(lambda field: field[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is str:
            field = self._field(key)
            if value is not field:  # as ``p["x"] += v`` ends
                field[...] = value
            return
        if type(key) is list and key and type(key[0]) is str:
            self[key][...] = value
            return
        key = self._expand(key)
        for field, part in zip(self.fields.values(), split_fields(value, self.dtype), strict=True):
            field[key] = part

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            raise ValueError(f"no field of name {name}")  # as NumPy says it
        return self.fields[name]

    def _expand(self, key: Any) -> tuple:
        """Return an index as a tuple without an ellipsis: fields that hold arrays have more axes behind these."""
        key = key if type(key) is tuple else (key,)
        places = [i for i, part in enumerate(key) if part is Ellipsis]
        if not places:
            return key
        (i,) = places
        taken = sum(getattr(part, "ndim", 1) if _is_mask(part) else part is not None for part in key) - 1
        return (*key[:i], *[slice(None)] * (self.ndim - taken), *key[i + 1 :])

    def _map(self, function: Callable) -> StructuredArray:
        return StructuredArray(self.dtype, {name: function(field) for name, field in self.fields.items()})

    # --- methods ------------------------------------------------------------------------------------------------

    def copy(self, order: str = "C") -> StructuredArray:
        return self._map(lambda field: field.copy())

    def fill(self, value: Any) -> None:
        self[...] = value

    def reshape(self, *shape: Any, order: str = "C") -> StructuredArray:
        shape = shape[0] if len(shape) == 1 and not _is_integer(shape[0]) else shape
        shape = np.broadcast_to(0, self.shape).reshape(shape).shape
        behind = {name: self.dtype[name].shape for name in self.fields}
        fields = {name: field.reshape((*shape, *behind[name]), order=order) for name, field in self.fields.items()}
        return StructuredArray(self.dtype, fields)

    def ravel(self, order: str = "C") -> StructuredArray:
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> StructuredArray:
        return self.ravel(order).copy()

    def argsort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
        """Return the places of the elements in order: by the fields named, then by the others."""
        if self.ndim != 1:
            raise NotImplementedError("a structured array of several axes cannot be sorted in a transform")
        known = tree.map(lambda x: plain(stop(x)), self)  # NumPy's, if all is known
        if type(known) is np.ndarray:
            return np.argsort(known, axis, kind, order, stable=stable)
        first = [order] if type(order) is str else list(order or ())
        keys = []
        for name in [*first, *[name for name in self.fields if name not in first]]:
            if self.fields[name].ndim > 1 or type(self.fields[name]) is StructuredArray:
                break  # NumPy compares the bytes of arrays
            keys.append(self.fields[name])
        return np.lexsort(tuple(reversed(keys)))

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        self[...] = self[self.argsort(axis, kind, order, stable=stable)]

    def tolist(self) -> list:
        return [x.tolist() for x in self]

    def __eq__(self, other: Any) -> Any:
        return self.plain() == (other.plain() if type(other) is StructuredArray else other)

    def __ne__(self, other: Any) -> Any:
        return self.plain() != (other.plain() if type(other) is StructuredArray else other)

    # --- as one of NumPy's --------------------------------------------------------------------------------------

    def plain(self) -> np.ndarray:
        """Return NumPy's array of the same numbers; raise if one is traced."""
        out = np.empty(self.shape, self.dtype)
        for name, field in self.fields.items():
            out[name] = field.plain() if type(field) is StructuredArray else np.asarray(field)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        out = self.plain() if dtype is None else self.plain().astype(dtype)
        out.flags.writeable = bool(copy)  # a write into what should be the array itself is an error
        return out

    def __array_function__(self, function: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        if function in _FUNCTIONS:
            return _FUNCTIONS[function](*args, **kwargs)
        return function(*_open_all(args), **_open_all(kwargs))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _IN_PLACE:
            raise AttributeError(f"a structured array has no {name} in a transform")
        return getattr(self.__array__(), name)


class Record:
    """One element of a structured array, which is written through it."""

    __slots__ = ("_array", "_key")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: StructuredArray, key: tuple):
        self._array = array
        self._key = key

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    def _name(self, key: Any) -> str:
        return key if type(key) is str else self._array.dtype.names[key]  # type: ignore[index]

    def __getitem__(self, key: Any) -> Any:
        if type(key) is list:
            return Record(self._array[key], self._key)
        return self._array[self._name(key)][self._key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[self._name(key)][self._key] = value

    def __len__(self) -> int:
        return len(self._array.fields)

    def __iter__(self) -> Iterator:
        return (self[name] for name in self._array.fields)

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __eq__(self, other: Any) -> Any:
        return self.__array__() == (other.__array__() if type(other) is Record else other)

    def copy(self) -> Record:
        own = open_structured(np.zeros((), self.dtype))
        own[()] = tuple(self)
        return own[()]

    def tolist(self) -> tuple:
        return tuple([x if type(x) is Tracer else x.tolist() for x in self])

    item = tolist

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self._array.plain()[self._key] if dtype is None else self._array.plain()[self._key].astype(dtype)


def open_structured(y: np.ndarray, own: bool = True, outside: bool = False) -> StructuredArray:
    """Return what stands for a structured array: on its memory, if it is not to have its own.

    Traced values cannot be written into memory from `outside`.
    """

    def open_field(x: np.ndarray) -> Any:
        if x.dtype.names is not None:
            return open_structured(x, own, outside)
        if x.dtype.kind not in "fcbiu":
            return x
        handle = buffer(x.copy() if own else x)  # without the gaps that the other fields leave
        if outside:
            handle.memory = Memory()
            handle.memory.outside = True
        return handle

    return StructuredArray(y.dtype, {name: open_field(y[name]) for name in y.dtype.names or ()})


def make_structured(rows: Any, dtype: np.dtype) -> StructuredArray:
    """Return a structured array of records, which are tuples, in nested lists: what ``np.array(rows, dtype)`` makes."""
    shape, row = [], rows
    while type(row) is list:
        shape.append(len(row))
        row = row[0] if row else ()
    y = open_structured(np.zeros(tuple(shape), dtype))
    for place in np.ndindex(*shape):
        row = rows
        for i in place:
            row = row[i]
        y[place] = row
    return y


def split_fields(value: Any, dtype: np.dtype) -> list:
    """Return what is assigned to each field of a structured dtype where a value is assigned to elements."""
    names = dtype.names or ()
    if type(value) in (StructuredArray, Record):
        return [value[name] for name in value.dtype.names]  # type: ignore[union-attr]
    if isinstance(value, (np.ndarray, np.void)) and type(value) is not Tracer and value.dtype.names is not None:
        return [value[name] for name in value.dtype.names]
    if type(value) is list and value and type(value[0]) is tuple:
        columns = [list(column) for column in zip(*value, strict=True)]
        return [stack_list(x) if any(type(y) is Tracer for y in x) else np.array(x) for x in columns]
    if type(value) is tuple:
        if len(value) != len(names):
            raise ValueError(f"could not assign tuple of length {len(value)} to structure with {len(names)} fields.")
        return list(value)
    return [value] * len(names)


def check_bounds(places: tuple, shape: tuple) -> None:
    """Raise NumPy's error for a place that an array does not have, as far as places are known."""
    for axis, (k, n) in enumerate(zip(places, shape, strict=True)):
        if type(k) is not Tracer and not -n <= k < n:
            raise IndexError(f"index {k} is out of bounds for axis {axis} with size {n}")


def _is_integer(part: Any) -> bool:
    if type(part) is Tracer:
        return part.shape == () and part.dtype.kind in "iu"
    return issubclass(type(part), (int, np.integer)) and type(part) is not bool


def _is_mask(part: Any) -> bool:
    return getattr(getattr(part, "dtype", None), "kind", "") == "b"


def _open_all(x: Any) -> Any:
    """Return arguments with NumPy's arrays in the place of structured ones."""
    if type(x) is StructuredArray:
        return x.__array__()
    if type(x) in (tuple, list):
        return type(x)(map(_open_all, x))
    return {name: _open_all(value) for name, value in x.items()} if type(x) is dict else x


# --- NumPy's functions of elements ------------------------------------------------------------------------------------


def _like(function: Callable) -> Callable:
    """Return a function that makes an array like another as one of structured arrays."""

    def make(a: StructuredArray, *args: Any, **kwargs: Any) -> Any:
        y = function(np.empty((), a.dtype), *args, **{"shape": a.shape, **kwargs})
        return open_structured(y) if y.dtype.names is not None else y

    return make


def _concatenate(arrays: Any, axis: int = 0) -> StructuredArray:
    arrays = [x if type(x) is StructuredArray else open_structured(np.asarray(x)) for x in arrays]
    names = arrays[0].fields
    return StructuredArray(arrays[0].dtype, {n: np.concatenate([x.fields[n] for x in arrays], axis) for n in names})


def _sort(a: StructuredArray, axis: int = -1, kind: Any = None, order: Any = None) -> StructuredArray:
    return a[a.argsort(axis, kind, order)]


def _sharing(function: Callable) -> Callable:
    """Return a question about the memory of two arrays as one about that of all fields."""
    fields = lambda x: list(x.fields.values()) if type(x) is StructuredArray else [x]
    return lambda a, b, max_work=None: any(function(x, y) for x in fields(a) for y in fields(b))


_FUNCTIONS: dict[Callable, Callable] = {
    np.may_share_memory: _sharing(np.may_share_memory),
    np.shares_memory: _sharing(np.shares_memory),
    np.zeros_like: _like(np.zeros_like),
    np.empty_like: _like(np.empty_like),
    np.ones_like: _like(np.ones_like),
    np.copy: lambda a, order="K", subok=False: a.copy(),
    np.concatenate: _concatenate,
    np.append: lambda arr, values, axis=None: _concatenate([arr.ravel(), values]),
    np.hstack: _concatenate,
    np.sort: _sort,
    np.argsort: lambda a, axis=-1, kind=None, order=None: a.argsort(axis, kind, order),
    np.reshape: lambda a, shape, order="C": a.reshape(shape, order=order),
    np.ravel: lambda a, order="C": a.ravel(order),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
}


def _build(dtype: np.dtype, fields: list) -> Any:
    """Return fields as one array: NumPy's where all are plain, as what leaves a transform is."""
    whole = StructuredArray(dtype, dict(zip(dtype.names or (), fields, strict=True)))
    return whole.plain() if all(type(x) is np.ndarray for x in fields) else whole


INSIDE[StructuredArray] = lambda x: x.fields.values()
INSIDE[Record] = lambda x: (x._array,)
tree.register_node(StructuredArray, lambda x: (list(x.fields.values()), x.dtype), _build)
