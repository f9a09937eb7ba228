"""NumPy's functions and methods that change an array: copyto, put, fill_diagonal, ``ufunc.at``, sort and others."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.handles.buffers import Taken
from fad.core.primitives.primitive import answer
from fad.core.tracing.array_likes import STAND_FOR_ARRAYS
from fad.core.tracing.conversions import written_into
from fad.core.tracing.numpy_dispatch import UFUNC_METHODS
from fad.core.tracing.numpy_versions import SINCE_2_5
from fad.core.tracing.tracer import Tracer, add_methods, outcome, strong, tracer, up_to_date
from fad.core.tracing.views import RUNS, is_array, layout, point, refuse, root_of, snapshot
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array, normalize_axis, reshape
from fad.ops.places.functional_updates import At
from fad.ops.places.writing import assign, check_order, refuse_complex, write


def _target(x: Any, name: str) -> Tracer:
    """Return the array that a function is to change; raise if it cannot take what would be written."""
    if type(x) is Tracer and is_array(x):
        return x
    if type(x) is np.ndarray:
        raise refuse(written_into("a plain array, which cannot carry a derivative"))
    raise TypeError(f"{name} changes an array in place, but was given a {type(x).__name__} to change")


def copyto(dst, src, casting="same_kind", where=True):
    """Copy values into an array, where a mask is true."""
    if _target(dst, "copyto") is src:  # NumPy does not look at the mask then
        return
    if type(src) in (int, float, complex, bool):
        given = np.asarray(src).dtype
        if not np.can_cast(given, dst.dtype, casting):
            raise TypeError(f"Cannot cast scalar from {given!r} to {dst.dtype!r} according to the rule {casting!r}")
    else:
        src = strong(as_array(src))
        extra = src.ndim - dst.ndim
        if extra > 0 and set(src.shape[:extra]) == {1}:  # as an assignment to an item takes them
            src = src.reshape(src.shape[extra:])
    where = where if where is True else as_array(where)
    if np.ndim(where) > dst.ndim:
        raise ValueError(f"could not broadcast where mask from shape {np.shape(where)} into shape {dst.shape}")
    assign(dst, src, casting, where, name="positive")


def _repeat(v: Any, n: int) -> Any:
    """Return values as `put` and `place` take them: repeated until there are n, and no more of them."""
    v = np.ravel(as_array(v))
    if not v.shape[0] or v.shape[0] == n:
        return v
    return v[:n] if v.shape[0] > n else np.resize(v, (n,))


def put(a, ind, v, mode="raise"):
    """Set elements of the flattened array; of a NumPy scalar this changes a copy."""
    if type(a) is Tracer and not is_array(a):
        return
    a = _target(a, "put")
    places = np.ravel(as_array(ind))
    if places.shape[0] and not a.size:
        raise IndexError("cannot replace elements of an empty array")
    if mode == "wrap":
        places = places % a.size
    elif mode == "clip":
        places = np.clip(places, 0, a.size - 1)
    else:
        places = _count_from_the_end(places, a.size)
    refuse_complex(a, v)
    v = _repeat(v, places.shape[0])
    if v.shape[0]:
        _write_flat(a, places, v)


def _count_from_the_end(places: Any, size: int) -> Any:
    """Return indices of the elements of an array with the negative ones counted from its end."""
    if size and (np.any(places < -size) or np.any(places >= size)):
        wrong = next(p for p in places if not -size <= p < size)
        raise IndexError(f"index {wrong} is out of bounds for axis 0 with size {size}")
    return np.where(places < 0, places + size, places)


def _write_flat(a: Tracer, index: Any, v: Any) -> None:
    """Write into an array by indices of its elements in C order, whatever its layout."""
    if not a.ndim:
        write(a, Ellipsis, v[-1] if np.ndim(v) else v)
        return
    write(a, np.unravel_index(index, a.shape) if a.ndim != 1 else index, v)


def putmask(a, mask, values):
    """Set elements where a mask is true, to the values at the same places."""
    a = _target(a, "putmask")
    refuse_complex(a, values)
    values = as_array(values)
    values = np.reshape(_repeat(values, a.size), a.shape) if np.size(values) > 1 else values
    assign(a, as_array(values), "unsafe", np.reshape(mask, a.shape))


def place(arr, mask, vals):
    """Set elements where a mask is true, to the values in turn."""
    arr = _target(arr, "place")
    if np.size(mask) != arr.size:
        raise ValueError("place: mask and data must be the same size")
    places = np.flatnonzero(mask)
    refuse_complex(arr, vals)
    vals = as_array(vals)
    if np.size(vals) == 0 and len(places):
        raise ValueError("Cannot insert from an empty array!")
    if len(places):
        _write_flat(arr, places, _repeat(vals, len(places)))


def put_along_axis(arr, indices, values, axis):
    """Set elements along an axis, at indices of the array's own rank."""
    arr = _target(arr, "put_along_axis")
    if axis is None:
        return _write_flat(arr, np.ravel(indices), np.ravel(as_array(values)))
    axis = normalize_axis(axis, arr.ndim)
    if np.ndim(indices) != arr.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    shape = (1,) * arr.ndim
    index = [
        indices if k == axis else np.arange(n).reshape(shape[:k] + (n,) + shape[k + 1 :])
        for k, n in enumerate(arr.shape)
    ]
    write(arr, tuple(index), values)


def fill_diagonal(a, val, wrap=False):
    """Fill the main diagonal."""
    if np.ndim(a) < 2:
        raise ValueError("array must be at least 2-d")
    a = _target(a, "fill_diagonal")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    if a.ndim == 2:
        step = a.shape[1] + 1
        flat = np.arange(0, a.size if wrap else a.shape[1] * a.shape[1], step)
        flat = flat[flat < a.size]
    else:
        flat = np.arange(0, a.size, 1 + int(np.cumprod(a.shape[:-1]).sum()))
    if len(flat):
        check_order(a, flat, val)
        refuse_complex(a, val)
        _write_flat(a, flat, _repeat(val, len(flat)))


def ufunc_at(ufunc: Any, a: Any, indices: Any, *b: Any) -> None:
    """Apply a ufunc to elements in place, once for each time that an element occurs among the indices."""
    a = _target(a, f"{ufunc.__name__}.at")
    v = as_array(b[0]) if ufunc is np.add or ufunc is np.subtract else None
    if v is not None and np.can_cast(np.result_type(a.dtype, v.dtype), a.dtype, "same_kind"):  # else each sum is cast
        try:
            new = At(snapshot(a))[indices].add(v if ufunc is np.add else -v)
        except ValueError:
            snapshot(a)[indices]  # NumPy looks first whether the places exist: this raises if they do not
            raise
        assign(a, new, "same_kind", name=ufunc.__name__)
        return
    times = At(np.zeros(a.shape, np.intp))[indices].add(1)
    if (times > 1).any():
        _apply_one_by_one(ufunc, a, indices, b)
    else:
        write(a, indices, ufunc(snapshot(a)[indices], *b))


def _apply_one_by_one(ufunc: Any, a: Tracer, indices: Any, b: tuple) -> None:
    """Apply a ufunc at indices that name some element more than once: in turn, each on what the one before left."""
    parts = indices if type(indices) is tuple else (indices,)
    places = tuple([outcome(i) if type(i) is Tracer else i for i in parts])  # each step is another write
    chosen = np.arange(a.size).reshape(a.shape)[places]
    values = [np.broadcast_to(snapshot(v) if type(v) is Tracer else as_array(v), chosen.shape) for v in b]
    for k in np.ndindex(chosen.shape):
        at = np.unravel_index(chosen[k], a.shape)
        write(a, at, ufunc(a[at], *[v[k] for v in values]))


CHANGING = (np.copyto, np.put, np.putmask, np.place, np.put_along_axis, np.fill_diagonal)
for _function in CHANGING:
    answer(_function, globals()[_function.__name__])
UFUNC_METHODS.update({
    (f, "at"): (lambda a, indices, *b, _f=f: ufunc_at(_f, a, indices, *b))
    for f in {f for f in vars(np).values() if isinstance(f, np.ufunc) and f.nout == 1 and f.nin < 3}
})  # fmt: skip


def _fill(self, value):
    """Fill the array with a number."""
    if np.ndim(value):
        raise ValueError("setting an array element with a sequence.")
    if is_array(self):  # and no NumPy scalar, of which this changes a copy
        write(self, Ellipsis, value)


def _sort(self, axis=-1, kind=None, order=None, *, stable=None):
    """Sort the array in place."""
    assign(self, np.sort(self, axis=axis, kind=kind, order=order, stable=stable))


def _partition(self, kth, axis=-1, kind="introselect", order=None):
    """Sort the array in part, in place."""
    assign(self, np.partition(self, kth, axis=axis))


def _put(self, indices, values, mode="raise"):
    """Set elements of the flattened array."""
    put(self, indices, values, mode)


class Flat:
    """The elements of an array in C order, ``x.flat``: to be read, iterated over and written."""

    __slots__ = ("base", "_rest")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, base: Any):
        self.base = base
        self._rest: Any = None

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Any:
        self._rest = iter(np.ravel(self.base)) if self._rest is None else self._rest
        return next(self._rest)

    def __getitem__(self, index: Any) -> Any:
        x = np.ravel(self.base)[index]
        return snapshot(x) if type(x) is Tracer else x

    def __setitem__(self, index: Any, value: Any) -> None:
        if type(index) is Tracer:
            index = outcome(index)  # a mask, or places that depend on no derivative
        places = np.arange(self.base.size)[index]
        value = as_array(value)
        if np.size(places) and np.size(value) and is_array(self.base):
            check_order(self.base, np.ravel(places), value)
            v = np.reshape(_repeat(value, np.size(places)), np.shape(places)) if value.ndim else value
            _write_flat(self.base, places, v)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.ravel(self.base).__array__(*args, **kwargs)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(_open_flat, inputs), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        return function(*map(_open_flat, args), **{name: _open_flat(x) for name, x in kwargs.items()})

    def copy(self) -> Any:
        return snapshot(np.ravel(self.base))

    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = (
        lambda self, other, compare=compare: compare(np.ravel(self.base), other)
        for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    )


def _open_flat(x: Any) -> Any:
    """Return the array that a flat iterator runs over, as a vector, and what is no such iterator as it is."""
    if type(x) in (list, tuple):
        return type(x)(map(_open_flat, x))
    return np.ravel(x.base) if type(x) is Flat else x


STAND_FOR_ARRAYS[Flat] = _open_flat


def _view_read_only(x: np.ndarray) -> np.ndarray:
    y = x.view()
    y.flags.writeable = False
    return y


_protected = Taken(snapshot, _view_read_only)


def _set_writeable(x: Tracer, value: bool) -> None:
    """Do ``x.flags.writeable = value``: a protected array is a view, to be read, of what it was."""
    protected = type(x.memory) is tuple and x.memory[1] is _protected
    if value and protected:
        before = up_to_date(x.memory[0])
        point(x, before)
        x.memory = before.memory
    elif not value and not protected:
        _become_view(x, _protected)


def _set_flags(self: Tracer, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
    """Say whether the array may be written, as NumPy's method does."""
    for name, value in (("aligned", align), ("writebackifcopy", uic)):
        if value is not None:
            setattr(self.flags, name, value)
    if write is not None:
        self.flags.writeable = write


class Flags:
    """How a traced array lies in memory, ``x.flags``: to be read, and to let the array be read alone."""

    __slots__ = ("_array", "_plain")

    def __init__(self, x: Tracer):
        object.__setattr__(self, "_array", x)
        object.__setattr__(self, "_plain", _read_layout(x).flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __getitem__(self, name: str) -> Any:
        return self._plain[name]

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)  # raises as NumPy does where there is no such flag
        if name != "writeable":
            raise MissingRuleError(
                f"x.flags.{name} cannot be set on a traced array: a traced array's memory is not its value"
            )
        _set_writeable(self._array, bool(value))
        object.__setattr__(self, "_plain", _read_layout(self._array).flags)

    def __setitem__(self, name: str, value: Any) -> None:
        self[name]
        setattr(self, {"W": "writeable", "A": "aligned", "X": "writebackifcopy"}.get(name, name.lower()), value)

    def __eq__(self, other: Any) -> bool:
        return self._plain == (other._plain if type(other) is Flags else other)

    def __repr__(self) -> str:
        return repr(self._plain)


def _set_flat(self, v):
    refuse_complex(self, v)
    write(self, Ellipsis, np.reshape(_repeat(v, self.size), self.shape))


def _set_part(name: str) -> Any:
    def set_part(self: Tracer, value: Any) -> None:
        if name == "imag" and self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        if not is_array(self):
            raise AttributeError(f"attribute '{name}' of 'numpy.generic' objects is not writable")
        part = getattr(self, name)
        if SINCE_2_5:
            refuse_complex(part, value)
        write(part, Ellipsis, strong(as_array(value)))  # of any dtype

    return set_part


def _delete(self: Tracer, index: Any) -> None:
    raise ValueError("cannot delete array elements")


def assign_shape(self: Tracer, shape: Any) -> None:
    """Do ``x.shape = shape``: an array that has one name, and no view knows, becomes a view of what it was."""
    alone = sys.getrefcount(self) <= _HELD
    y = snapshot(reshape(self, shape))
    if y.shape == self.shape or not self.size:
        self.memory = None if self.size == 0 else self.memory  # without elements it is a view of nothing
        point(self, y)
    elif alone:
        _become_view(self, lambda x: reshape(x, shape))
    else:
        raise AttributeError(
            "x.shape = ... changes how a traced array lies in memory, which something else knows by another name or a "
            "view; write x = x.reshape(shape), a view of the same array"
        )


def _become_view(x: Tracer, view: Callable) -> None:
    before = tracer(x.wrapped, x.owner, x.info)
    before.memory = x.memory
    y = view(before)
    if type(y.memory) is not tuple:
        raise AttributeError("incompatible shape for in-place modification; write x = x.reshape(shape), which copies")
    point(x, y)
    x.memory = y.memory


class _Held:
    """What counts the references to an object of which an attribute is set, while it is set: one name has it."""

    def _count(self, found: list) -> None:
        found.append(sys.getrefcount(self))

    shape = property(None, _count)


def _count_held() -> int:
    found: list[int] = []
    x = _Held()
    x.shape = found
    return found[0]


_HELD = _count_held()


def _set_dtype(self: Tracer, dtype: Any) -> None:
    if np.dtype(dtype) != self.dtype:
        raise AttributeError(
            "x.dtype = ... reads the memory of a traced array as other numbers, of which there is no derivative; write "
            "x = x.astype(dtype), which converts them"
        )


def _set_strides(self: Tracer, strides: Any) -> None:
    raise AttributeError(
        "x.strides = ... changes how a traced array lies in memory; write x = x.T, x[::2] or what else the strides are "
        "of, or np.lib.stride_tricks.sliding_window_view(x, n)"
    )


def _base(self: Tracer) -> Any:
    """The array that this one is a view of, or None."""
    RUNS.laid_out = True
    return root_of(self) if type(self.memory) is tuple else None


def _read_layout(self: Tracer) -> Any:
    RUNS.laid_out = True
    return layout(self)


def _of_arrays(name: str) -> property:
    """Return an attribute that NumPy's arrays have, and its scalars do not."""
    attribute = getattr(Tracer, name)

    def get(self: Tracer) -> Any:
        if self.shape or is_array(self):
            return attribute.__get__(self, Tracer)
        raise AttributeError(f"'numpy.{self.dtype.name}' object has no attribute '{name}'")

    return property(get, doc=attribute.__doc__)


_METHODS = vars(Tracer)
add_methods(
    base=property(_base),
    strides=property(
        lambda self: _read_layout(self).strides, _set_strides, doc="The steps in memory on each axis, in bytes."
    ),
    dtype=_METHODS["dtype"].setter(_set_dtype),
    flags=property(Flags, doc="How the array lies in memory."),
    setflags=_set_flags,
    shape=_METHODS["shape"].setter(assign_shape),
    real=_METHODS["real"].setter(_set_part("real")),
    imag=_METHODS["imag"].setter(_set_part("imag")),
    flat=property(Flat, _set_flat),
    fill=_fill,
    sort=_sort,
    partition=_partition,
    put=_put,
    __delitem__=_delete,
)
for _name in ("dot", "mT", "partition", "argpartition"):
    setattr(Tracer, _name, _of_arrays(_name))
