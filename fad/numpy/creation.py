"""NumPy's functions that make arrays from nothing or from lists: fad.numpy makes them on the default backend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import backends

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


def makers(namespace: dict) -> dict:
    """Return the makers of a namespace of NumPy's names, placed."""
    return {name: place(namespace[name]) for name in MAKERS if name in namespace}
