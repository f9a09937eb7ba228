"""All functions of NumPy as ones that take lists of traced values, and whose results are handles.

The overlay (`fad.core.runs.overlay`) has handles from the functions that are there to make arrays. Any other may make
the array that a program then writes a traced value into: ``np.cos([0.0, 1.0])``, ``np.hanning(5)``,
``np.linalg.inv(a)``. And ufuncs and the functions of submodules make arrays of lists before they ask a protocol:
``np.exp([x, y])``, ``np.linalg.norm([x, y])``. A function that failed so with the overlay in place runs once more with
these.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from fad.core.handles.makers import of_lists, wrap_result
from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.array_likes import open_array_like
from fad.core.tracing.numpy_dispatch import FUNCTIONS
from fad.core.tracing.tracer import Tracer, stack_list

_REPEATING = ("broadcast_to", "broadcast_arrays")
_SUBMODULES = ("linalg", "fft", "polynomial", "emath")


def build(module: types.ModuleType) -> dict[int, Any]:
    """Return what stands for NumPy and its parts, by their ids: `module` is the overlay."""
    wrap = wrap_result
    wide = types.ModuleType("numpy", np.__doc__)
    vars(wide).update(vars(module))
    found: dict[int, Any] = {id(np): wide}
    for name, f in _wrap_functions(vars(module), wrap):
        vars(wide)[name] = f
        found[id(getattr(np, name))] = f
    for name in ("mgrid", "ogrid"):
        vars(wide)[name] = found[id(getattr(np, name))] = _Grid(getattr(np, name), wrap)
    for name in _SUBMODULES:
        own = getattr(np, name)
        vars(wide)[name] = _submodule(own, wrap, found)
    return found


def _submodule(own: types.ModuleType, wrap: Callable, found: dict[int, Any]) -> types.ModuleType:
    wide = types.ModuleType(own.__name__, own.__doc__)
    vars(wide).update(vars(own))
    found[id(own)] = wide
    for name, f in _wrap_functions(vars(own), wrap):
        vars(wide)[name] = found[id(vars(own)[name])] = f
    for name, part in vars(own).items():
        if type(part) is types.ModuleType and part.__name__ == f"{own.__name__}.{name}" and not name.startswith("_"):
            vars(wide)[name] = _submodule(part, wrap, found)
    return wide


def _wrap_functions(names: dict[str, Any], wrap: Callable) -> Iterator[tuple[str, Any]]:
    for name, f in names.items():
        if name.startswith("_") or name == "array":  # np.array of the overlay makes handles where one can be written
            continue
        if isinstance(f, np.ufunc):
            yield name, _Ufunc(f, wrap)
        elif type(f) in (types.FunctionType, types.BuiltinFunctionType, type(np.sum)):
            taking = _of_handles(f, wrap) if name in _REPEATING else of_lists(f) if f in FUNCTIONS else f
            yield name, _function(taking, wrap)


def _function(f: Callable, wrap: Callable) -> Callable:
    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _wrap_new(f(*args, **kwargs), (*args, *kwargs.values()), wrap)

    return call


def _of_handles(f: Callable, wrap: Callable) -> Callable:
    """Return a function whose results nobody may write as one that is given handles: copies of results are handles."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        arrays = args if f is np.broadcast_arrays else args[:1]
        handles = [x if isinstance(x, (np.ndarray, Tracer)) else wrap(np.asarray(x)) for x in map(_stack, arrays)]
        return f(*handles, *args[len(handles) :], **kwargs)

    return call


def _stack(x: Any) -> Any:
    return stack_list(x) if has_tracer((x,)) else open_array_like(x)


def _stacking(f: Callable) -> Callable:
    """Return a ufunc, or a method of one, that takes lists of traced values as arrays of them."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return f(*map(_stack, args), **kwargs)

    return call


def _at(at: Callable) -> Callable:
    """Return ``at`` of a ufunc as one that takes lists of traced values; a tuple of places is an index as it is."""

    def call(a: Any, indices: Any, *values: Any) -> Any:
        return at(a, indices, *map(_stack, values))

    return call


def _wrap_new(y: Any, given: Iterable, wrap: Callable) -> Any:
    """Return new arrays behind handles; what is a view of what was given stays, and so does what nobody may write."""
    if type(y) in (tuple, list):
        return type(y)([_wrap_new(x, given, wrap) for x in y])
    if type(y) is not np.ndarray or not y.flags.writeable or not _is_numpys_memory(y):
        return y
    return y if any(np.may_share_memory(y, x) for x in _arrays_of(given)) else wrap(y)


def _is_numpys_memory(y: np.ndarray) -> bool:
    """Return whether an array lies in memory of NumPy's, and not in a buffer that others see written."""
    root: Any = y
    while type(root) is np.ndarray and root.base is not None:
        root = root.base
    return isinstance(root, np.ndarray)


def _arrays_of(given: Iterable) -> Iterator[np.ndarray]:
    for x in given:
        if isinstance(x, np.ndarray):
            yield x
        elif type(x) in (tuple, list):
            yield from _arrays_of(x)


class _Ufunc:
    """A ufunc of NumPy that takes lists of traced values, and whose results are handles."""

    __slots__ = ("_ufunc", "_wrap")

    def __init__(self, ufunc: np.ufunc, wrap: Callable):
        self._ufunc = ufunc
        self._wrap = wrap

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _function(_stacking(self._ufunc), self._wrap)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._ufunc, name)
        if name in ("reduce", "accumulate", "reduceat", "outer"):
            return _function(_stacking(found), self._wrap)
        return _at(found) if name == "at" else found

    def __repr__(self) -> str:
        return repr(self._ufunc)


class _Grid:
    """``np.mgrid`` or ``np.ogrid``, whose arrays are handles."""

    __slots__ = ("_grid", "_wrap")

    def __init__(self, grid: Any, wrap: Callable):
        self._grid = grid
        self._wrap = wrap

    def __getitem__(self, key: Any) -> Any:
        return _wrap_new(self._grid[key], (), self._wrap)
