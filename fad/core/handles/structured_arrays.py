"""Structured arrays behind handles: one for each field, for NumPy's own hold plain numbers alone.

A program may keep its particles in ``np.zeros(n, dtype=[("x", float), ("v", float)])`` and write traced values into the
fields. Where that failed, the function runs again, and what NumPy makes of such a dtype is a `StructuredArray`: its
fields are handles (`fad.core.handles.buffers`), and what is done to elements is done to each field.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.core.handles.buffers import buffer, plain
from fad.core.tracing.tracer import Tracer, any_of, stack_list, stop
from fad.core.tracing.views import Memory, layout, owner, root_of, unwrap
from fad.errors import MissingRuleError
from fad.introspect.reachable import INSIDE

# NumPy's functions that take structured arrays; `fad.core.handles.structured_functions` fills it.
FUNCTIONS: dict[Callable, Callable] = {}
_IN_PLACE = {"byteswap", "partition", "put", "resize", "setfield", "setflags", "itemset"}


def is_structured(x: Any) -> bool:
    """Return whether something is a structured array of NumPy's whose fields have memory of their own."""
    return type(x) is np.ndarray and bool(x.dtype.names) and not _has_overlaps(x.dtype)


def _has_overlaps(dtype: np.dtype) -> bool:
    """Return whether two fields lie in the same bytes."""
    places = sorted((found[1], found[0].itemsize) for found in map(dtype.fields.__getitem__, dtype.names))  # type: ignore
    return any(start + size > after for (start, size), (after, _) in itertools.pairwise(places))


class StructuredArray:
    """What stands for a structured array while a transform runs."""

    __slots__ = ("_dtype", "parts")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None
    __fad_function__ = True  # a traced array leaves NumPy's functions to this class

    def __init__(self, dtype: np.dtype, parts: list):
        self._dtype = dtype
        self.parts = parts

    @property
    def dtype(self) -> np.dtype:
        return self._dtype

    @property
    def fields(self) -> dict[str, Any]:
        """The arrays of the fields, by the names that these have now."""
        return dict(zip(self._dtype.names or (), self.parts, strict=True))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray

    # --- what an array says of itself ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        field = self.parts[0]
        return field.shape[: field.ndim - len(self.dtype[0].shape)]

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

    def __str__(self) -> str:
        shown = self._show()
        return repr(self) if shown is None else str(shown)

    def _show(self) -> np.ndarray | None:
        """Return NumPy's array of the numbers behind traced values; None for those of a batch."""
        out = np.empty(self.shape, self.dtype)
        for name, field in self.fields.items():
            found = field._show() if type(field) is StructuredArray else unwrap(field)
            if found is None or np.shape(found) != out[name].shape:
                return None
            out[name] = found
        return out

    def __copy__(self) -> StructuredArray:
        return self.copy()

    # --- elements and fields ------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            return self._field(key)
        if type(key) is list and key and type(key[0]) is str:
            return StructuredArray(self.dtype[key], [self._field(name) for name in key])
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
        parts = split_fields(value, self.dtype)
        if type(value) is StructuredArray and any(map(self._shares, parts)):
            parts = [part.copy() for part in parts]  # one field may be written before it is read
        for field, part in zip(self.parts, parts, strict=True):
            field[key] = part

    def _shares(self, part: Any) -> bool:
        """Return whether an array may be, or be a view of, one of the fields."""
        if type(part) is StructuredArray:
            return any(map(self._shares, part.parts))
        return any(_root(part) is _root(field) for field in _leaves(self))

    def _field(self, name: str) -> Any:
        if name not in (self._dtype.names or ()):
            raise ValueError(f"no field of name {name}")  # as NumPy says it
        return self.parts[self._dtype.names.index(name)]  # type: ignore[union-attr]

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
        return StructuredArray(self.dtype, list(map(function, self.parts)))

    # --- methods ------------------------------------------------------------------------------------------------

    def copy(self, order: str = "C") -> StructuredArray:
        if order in ("K", "A"):
            order = "F" if self.lies_in_fortrans_order() else "C"
        made = open_structured(np.empty(self.shape, self.dtype, order))  # type: ignore[call-overload]
        made[...] = self
        return made

    def lies_in_fortrans_order(self) -> bool:
        plain = layout(next(_leaves(self)))
        strides = plain.strides[: self.ndim]
        return self.ndim > 1 and list(strides) == sorted(strides) and strides[0] != strides[-1]

    def convert(self, dtype: Any = None, copy: Any = True, order: Any = "K", **options: Any) -> Any:
        """Return what ``np.array`` makes of it."""
        if dtype is not None and np.dtype(dtype) != self.dtype:
            return np.array(self.plain(), dtype, copy=copy, order=order, **options)
        return self.copy(order or "K") if copy else self

    # Views of all fields: the axes of what one element holds stand behind these.

    @property
    def T(self) -> StructuredArray:
        return self.transpose()

    def transpose(self, *axes: Any) -> StructuredArray:
        axes = axes[0] if len(axes) == 1 and not _is_integer(axes[0]) else axes
        n = self.ndim
        axes = tuple(range(n))[::-1] if not axes else tuple(axis % n for axis in axes)
        return self._map(lambda field: field.transpose((*axes, *range(n, field.ndim))))

    def swapaxes(self, axis1: int, axis2: int) -> StructuredArray:
        axes = list(range(self.ndim))
        axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
        return self.transpose(axes)

    def squeeze(self, axis: Any = None) -> StructuredArray:
        if axis is not None:
            raise no_such("squeeze(axis)")
        return self[tuple([0 if n == 1 else slice(None) for n in self.shape])] if 1 in self.shape else self

    def fill(self, value: Any) -> None:
        self[...] = value

    def reshape(self, *shape: Any, order: str = "C") -> StructuredArray:
        shape = shape[0] if len(shape) == 1 and not _is_integer(shape[0]) else shape
        if order in ("A", "K"):
            order = "F" if self.lies_in_fortrans_order() else "C"
        wanted = np.broadcast_to(0, self.shape).reshape(shape).shape
        if order == "F" and self.ndim > 1:
            return self.T.reshape(wanted[::-1]).T
        behind = [self.dtype[name].shape for name in self.dtype.names or ()]
        parts = [part.reshape((*wanted, *own)) for part, own in zip(self.parts, behind, strict=True)]
        return StructuredArray(self.dtype, parts)

    def ravel(self, order: str = "C") -> StructuredArray:
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> StructuredArray:
        return self.ravel(order).copy()

    def argsort(self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
        """Return the places of the elements in order: by the fields named, then by the others."""
        if self.ndim != 1:
            raise no_such("sorting along an axis")
        known = tree.map(lambda x: plain(stop(x)), self)  # NumPy's, if all is known
        if type(known) is np.ndarray:
            return np.argsort(known, axis, kind, order, stable=stable)
        first = [order] if type(order) is str else list(order or ())
        names = [*first, *[name for name in self.fields if name not in first]]
        fields = [self.fields[name] for name in names]
        numbers = list(itertools.takewhile(lambda x: x.ndim == 1 and type(x) is not StructuredArray, fields))
        places = np.lexsort(tuple(reversed(numbers))) if numbers else None
        if len(numbers) < len(fields) and (places is None or any_of(_find_ties(numbers, places))):
            raise no_such(f"sorting by {names[len(numbers)]!r}, which holds arrays,")  # NumPy compares their bytes
        return places

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
        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **kwargs)
        opened: list = []
        found = function(*_open_all(args, opened), **_open_all(kwargs, opened))
        return _no_view(found, opened, function.__name__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a structured array has no attribute {name!r}")
        if name in _IN_PLACE:
            raise no_such(name)
        plain = self.__array__()
        found = _no_view(getattr(plain, name), [plain], name)
        return (lambda *args, **kwargs: _no_view(found(*args, **kwargs), [plain], name)) if callable(found) else found


class Record:
    """One element of a structured array, which is written through it."""

    __slots__ = ("_array", "_key")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: StructuredArray, key: tuple):
        self._array = array
        self._key = key

    shape: tuple = ()
    ndim, size = 0, 1

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.void

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

    def __str__(self) -> str:
        shown = self._array._show()
        return repr(self) if shown is None or Tracer in map(type, self._key) else str(shown[self._key])

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
        handle.memory = Memory()
        handle.memory.outside = outside
        handle.memory.lies_as = x
        return handle

    return StructuredArray(y.dtype, [open_field(y[name]) for name in y.dtype.names or ()])


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
        return [stack_list(x) if _has_tracer(x) else np.array(x) for x in columns]
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


def _find_ties(keys: list, places: Any) -> Any:
    """Return where neighbours are alike in all keys, when they are in order."""
    columns = [stop(key)[places] for key in keys]
    return functools.reduce(np.logical_and, [column[1:] == column[:-1] for column in columns])


def _has_tracer(x: Any) -> bool:
    return type(x) is Tracer or (type(x) in (list, tuple) and any(map(_has_tracer, x)))


def _is_integer(part: Any) -> bool:
    if type(part) is Tracer:
        return part.shape == () and part.dtype.kind in "iu"
    return issubclass(type(part), (int, np.integer)) and type(part) is not bool


def _is_mask(part: Any) -> bool:
    return getattr(getattr(part, "dtype", None), "kind", "") == "b"


def _open_all(x: Any, opened: list) -> Any:
    """Return arguments with NumPy's arrays, which are noted, in the place of structured ones."""
    if type(x) is StructuredArray:
        opened.append(x.__array__())
        return opened[-1]
    if type(x) in (tuple, list):
        return type(x)([_open_all(y, opened) for y in x])
    return {name: _open_all(value, opened) for name, value in x.items()} if type(x) is dict else x


def _no_view(found: Any, opened: list, name: str) -> Any:
    """Return what NumPy gives for plain arrays; raise for a view of them, which would not see what is written later."""
    for y in found if type(found) in (tuple, list) else (found,):
        if isinstance(getattr(y, "base", y), np.ndarray) and any(np.may_share_memory(y, x) for x in opened):
            raise no_such(name)
    return found


def no_such(what: str) -> MissingRuleError:
    return MissingRuleError(
        f"{what} of a structured array is not there in a transform: do it with each field, p['x'], or with places, "
        "p[np.argsort(p['x'])]"
    )


def _leaves(x: StructuredArray) -> Iterator:
    """Walk over the arrays of all fields, those of fields of fields as well."""
    for part in x.parts:
        if type(part) is StructuredArray:
            yield from _leaves(part)
        else:
            yield part


def _root(x: Any) -> Any:
    return root_of(x) if type(x) is Tracer else owner(x) if type(x) is np.ndarray else x


def _build(dtype: np.dtype, fields: list) -> Any:
    """Return fields as one array: NumPy's where all are plain, as what leaves a transform is."""
    whole = StructuredArray(dtype, list(fields))
    return whole.plain() if all(type(x) is np.ndarray for x in fields) else whole


def _build_record(dtype: np.dtype, values: list) -> Any:
    """Return a record of NumPy's, or a tuple where a value is traced."""
    known = all(issubclass(type(x), (np.ndarray, np.generic)) for x in values)
    return np.array(tuple(values), dtype)[()] if known else tuple(values)


INSIDE[StructuredArray] = lambda x: x.parts
INSIDE[Record] = lambda x: (x._array,)
tree.register_node(StructuredArray, lambda x: (x.parts, x.dtype), _build)
tree.register_node(Record, lambda x: (list(x), x.dtype), _build_record)
