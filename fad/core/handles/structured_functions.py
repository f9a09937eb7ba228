"""NumPy's functions that make, join, turn and sort structured arrays, on what stands for these in a transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fad.core.handles.structured_arrays import FUNCTIONS, StructuredArray, no_such, open_structured


def _like(function: Callable) -> Callable:
    """Return a function that makes an array like another as one of structured arrays."""

    def make(a: StructuredArray, *args: Any, **kwargs: Any) -> Any:
        own = np.empty(a.shape, a.dtype, "F" if a.lies_in_fortrans_order() else "C")
        y = function(own, *args, **kwargs)
        return open_structured(y) if y.dtype.names is not None else y

    return make


def _concatenate(arrays: Any, axis: int | None = 0) -> StructuredArray:
    arrays = [x if type(x) is StructuredArray else open_structured(np.asarray(x)) for x in arrays]
    dtype = np.result_type(*[x.dtype for x in arrays])
    if any(x.dtype != dtype for x in arrays):
        raise no_such("joining of several dtypes")
    if axis is None:
        arrays, axis = [x.ravel() for x in arrays], 0
    empty = np.concatenate([np.broadcast_to(0, x.shape) for x in arrays], axis)
    axis = axis % empty.ndim
    columns = zip(*[x.parts for x in arrays], strict=True)
    return StructuredArray(dtype, [np.concatenate(parts, axis) for parts in columns])


def _fail(what: str) -> NoReturn:
    raise no_such(what)


def _sort(a: StructuredArray, axis: int = -1, kind: Any = None, order: Any = None) -> StructuredArray:
    return a[a.argsort(axis, kind, order)]


def _move(function: Callable) -> Callable:
    """Return a function that moves elements as one of structured arrays: it moves their places."""

    def move(a: StructuredArray, *args: Any, **kwargs: Any) -> StructuredArray:
        return a.ravel()[function(np.arange(a.size).reshape(a.shape), *args, **kwargs)]

    return move


def _stack(arrays: Any, axis: int = 0) -> StructuredArray:
    if axis:
        raise no_such("np.stack along another axis than 0")
    return _concatenate([x[None] for x in arrays])


def _where(condition: Any, x: Any, y: Any) -> StructuredArray:
    x, y = (z if type(z) is StructuredArray else open_structured(np.asarray(z)) for z in (x, y))
    if x.dtype != y.dtype:
        raise no_such("np.where of two dtypes")
    made: Any = np.zeros_like(x) if x.shape == np.broadcast_shapes(x.shape, y.shape, np.shape(condition)) else None
    if made is None:
        raise no_such("np.where that makes an array longer")
    made[...] = y
    for part, wanted in zip(made.parts, x.parts, strict=True):
        behind = (1,) * (part.ndim - made.ndim)
        part[...] = np.where(np.reshape(condition, (*np.shape(condition), *behind)), wanted, part)
    return made


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
    np.copy: lambda a, order="K", subok=False: a.copy(order),
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.vstack: lambda tup: _concatenate([x[None] if x.ndim == 1 else x for x in tup]),
    np.where: _where,
    np.compress: lambda condition, a, axis=None: a[np.compress(condition, np.arange(a.size))],
    **{f: _move(f) for f in (np.roll, np.repeat, np.take, np.tile, np.delete, np.resize)},
    np.append: lambda arr, values, axis=None: _concatenate([arr, values], axis),
    np.transpose: lambda a, axes=None: a.transpose(*(() if axes is None else (axes,))),
    np.swapaxes: lambda a, axis1, axis2: a.swapaxes(axis1, axis2),
    np.squeeze: lambda a, axis=None: a.squeeze(axis),
    np.atleast_1d: lambda *xs: xs[0] if len(xs) == 1 and xs[0].ndim else _fail("atleast_1d"),
    np.flip: lambda m, axis=None: m[(slice(None, None, -1),) * m.ndim] if axis is None else _fail("flip along an axis"),
    np.hstack: _concatenate,
    np.sort: _sort,
    np.argsort: lambda a, axis=-1, kind=None, order=None: a.argsort(axis, kind, order),
    np.reshape: lambda a, shape, order="C": a.reshape(shape, order=order),
    np.ravel: lambda a, order="C": a.ravel(order),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
}
FUNCTIONS.update(_FUNCTIONS)
