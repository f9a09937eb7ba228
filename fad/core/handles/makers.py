"""NumPy's functions that make arrays as ones that make handles while a transform runs (`fad.core.handles.buffers`)."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import DEVICE_ARRAYS, default, is_numpy_default
from fad.core.handles import structured_functions  # noqa: F401  fills the table of functions
from fad.core.handles.buffers import buffer
from fad.core.handles.structured_arrays import StructuredArray, is_structured, make_structured, open_structured
from fad.core.primitives.primitive import has_tracer, on_device
from fad.core.tracing.array_likes import gives_array, open_array_like
from fad.core.tracing.numpy_dispatch import FUNCTIONS
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import RUNS, Memory, is_array, is_writeable, snapshot

MAKERS = (
    "zeros", "empty", "ones", "full", "eye", "identity", "arange", "linspace", "logspace", "geomspace", "tri", "diag",
    "zeros_like", "empty_like", "ones_like", "full_like", "copy", "array", "fromfunction", "indices", "tile", "repeat",
    "outer", "vander", "meshgrid", "concatenate", "stack", "hstack", "vstack", "loadtxt", "genfromtxt",
)  # fmt: skip


def maker(make: Callable) -> Callable:
    """Return a function of NumPy that makes arrays as one that makes handles on them while a transform runs."""

    @functools.wraps(make)
    def create(*args: Any, **kwargs: Any) -> Any:
        if not RUNS.buffers:
            return make(*args, **kwargs)
        args = tuple(map(_open_traced, args))
        if make is np.array and args and type(args[0]) is StructuredArray:
            return args[0].convert(*args[1:], **kwargs)
        if make is np.array and args and (dtype := _read_structured_dtype(args, kwargs)) and has_tracer(args[:1]):
            return make_structured(args[0], dtype)
        traced = FUNCTIONS.get(make)
        values = (*args, *kwargs.values())
        of_others = has_tracer(values) or (bool(DEVICE_ARRAYS) and on_device(args))
        if traced is None or not of_others or (make is np.array and not _is_numeric(args[1:], kwargs)):
            traced = make
        y = traced(*args, **kwargs)
        # What has no elements takes no traced value: it stays NumPy's, for programs that ask type(np.array([])).
        return y if make is np.array and args and type(args[0]) is list and not args[0] else wrap_made(y)

    return create


def _open_traced(x: Any) -> Any:
    """Return the traced array that an object of the user's gives NumPy for itself, also in a list; else `x`.

    A deque, of which NumPy makes an array as well, is a list here.
    """
    x = list(x) if type(x) is collections.deque else x
    if type(x) in (list, tuple):
        kinds = set(map(type, x))
        nested = any(map(gives_array, kinds)) or not kinds.isdisjoint((list, tuple))
        return type(x)(map(_open_traced, x)) if nested else x  # a tuple may be a record
    y = open_array_like(x)
    return y if type(y) is Tracer else x


def _is_numeric(args: tuple, kwargs: dict) -> bool:
    """Return whether a conversion is to numbers or objects: the argument behind the array is its dtype."""
    dtype = args[0] if args else kwargs.get("dtype")
    return dtype is None or np.dtype(dtype).kind in "fcbiuO"


def _read_structured_dtype(args: tuple, kwargs: dict) -> np.dtype | None:
    """Return the dtype that ``np.array`` is given, if it has fields."""
    given = args[1] if len(args) > 1 else kwargs.get("dtype")
    if not issubclass(type(given), (list, str, np.dtype)):
        return None
    dtype = np.dtype(given)
    return None if dtype.names is None else dtype


def wrap_result(y: Any) -> Any:
    """Return what any function of NumPy's made behind a handle, or several where it has fields."""
    return open_structured(y) if is_structured(y) and RUNS.structured and is_numpy_default() else wrap_made(y)


def wrap_made(y: Any) -> Any:
    """Return an array that user code made behind a handle, if the transform that runs needs that."""
    if type(y) is np.ndarray and RUNS.buffers and y.dtype.kind in "fcbiu":
        if not is_numpy_default():
            return buffer(default().from_host(y))
        return buffer(y if y.base is None and is_writeable(y) else y.copy("K"))
    if type(y) in DEVICE_ARRAYS and RUNS.buffers:
        return buffer(y if y.base is None else y.copy())
    if type(y) is Tracer and not y.shape and y.memory is None:
        y.memory = Memory()  # an array without axes, and no NumPy scalar
    return y


class Grid:
    """``np.mgrid`` and ``np.ogrid``, whose arrays are made where new arrays are."""

    def __init__(self, grid: Any):
        self.grid = grid

    def __getitem__(self, key: Any) -> Any:
        y = self.grid[key]
        if is_numpy_default():
            return y
        return wrap_made(y) if type(y) is np.ndarray else tuple(map(wrap_made, y))


def converter(convert: Callable) -> Callable:
    """Return a function of NumPy that hands arrays through as one that hands handles through."""

    @functools.wraps(convert)
    def converted(a: Any, *args: Any, **kwargs: Any) -> Any:
        if not RUNS.buffers or type(a) is np.ndarray:
            return convert(a, *args, **kwargs)
        if type(a) is StructuredArray:
            return a.convert(*args, **{"copy": None, **kwargs})
        a = _open_traced(a)
        if has_tracer((a,)) and _is_numeric(args, kwargs):
            y = FUNCTIONS[convert](a, *args, **kwargs)
            return wrap_made(snapshot(y)) if type(y) is Tracer and not is_array(y) else y
        y = convert(a, *args, **kwargs)
        return wrap_made(y) if type(a) in (list, tuple) else y

    return converted


def of_lists(function: Callable) -> Callable:
    """Return a function of NumPy that takes lists of traced values, too, which NumPy does not dispatch on.

    Neither does it on most keyword arguments: ``np.average(x, weights=ws)``, ``np.pad(x, 1, constant_values=c)``.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if RUNS.buffers:
            args = tuple(map(_open_traced, args))
            kwargs = {name: _open_traced(x) for name, x in kwargs.items()}
        in_lists = [x for x in args if type(x) in (list, tuple)]
        if RUNS.depth and (has_tracer(in_lists) or (kwargs and has_tracer(kwargs.values()))):
            return FUNCTIONS[function](*args, **kwargs)
        return function(*args, **kwargs)

    return call
