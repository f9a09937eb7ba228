"""NumPy's functions that make arrays: fad.numpy makes them on the default backend, and as handles in a transform.

Programs for any array library have `fad.numpy` from ``x.__array_namespace__()``, and write traced values into what its
functions make. Where a transform has the overlay (`fad.core.runs.overlay`) for its function's modules, that are handles
here as they are there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import backends
from fad.core.handles.makers import MAKERS as WRITABLE
from fad.core.handles.makers import wrap_made
from fad.core.tracing.views import RUNS

MAKERS = (
    "arange", "array", "asarray", "asanyarray", "ascontiguousarray", "bartlett", "blackman", "empty", "eye",
    "fromfunction", "full", "geomspace", "hamming", "hanning", "identity", "indices", "kaiser", "linspace", "logspace",
    "ones", "tri", "zeros",
)  # fmt: skip


def place(make: Callable) -> Callable:
    """Return a function whose NumPy arrays go to the default backend; arrays of a device stay where they are."""

    @functools.wraps(make)
    def create(*args: Any, **kwargs: Any) -> Any:
        if args and backends.behind(args[0]).name != "numpy" and make.__name__ in _CONVERTERS:
            dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
            return args[0] if dtype is None else args[0].astype(dtype)
        made = make(*args, **kwargs)
        return made if backends.is_numpy_default() or type(made) is not np.ndarray else backends.device_put(made)

    return create


_CONVERTERS = ("array", "asarray", "asanyarray", "ascontiguousarray")


def make_writable(make: Callable) -> Callable:
    """Return a function whose arrays are handles while a transform needs that; a converter's own argument stays."""

    @functools.wraps(make)
    def create(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        if not RUNS.buffers or (make.__name__ in _CONVERTERS and args and made is args[0]):
            return made
        return wrap_made(made)

    return create


def makers(namespace: dict) -> dict:
    """Return the makers of a namespace of NumPy's names: placed, and of handles while a transform needs them."""
    placed = {name: place(namespace[name]) for name in MAKERS if name in namespace}
    writable = {name: namespace[name] for name in WRITABLE if name in namespace} | placed
    return {name: make_writable(make) for name, make in writable.items()}
