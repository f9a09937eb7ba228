"""NumPy's functions that make, join, turn and sort structured arrays, on what stands for these in a transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fad.core.structured_arrays import FUNCTIONS, StructuredArray, no_such, open_structured


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


def _sharing(function: Callable) -> Callable:
    """Return a question about the memory of two arrays as one about that of all fields."""
    fields = lambda x: list(x.fields.values()) if type(x) is StructuredArray else [x]
    return lambda a, b, max_work=None: any(function(x, y) for x in fields(a) for y in fields(b))


FUNCTIONS.update({
    np.may_share_memory: _sharing(np.may_share_memory),
    np.shares_memory: _sharing(np.shares_memory),
    np.zeros_like: _like(np.zeros_like),
    np.empty_like: _like(np.empty_like),
    np.ones_like: _like(np.ones_like),
    np.copy: lambda a, order="K", subok=False: a.copy(order),
    np.concatenate: _concatenate,
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
})
