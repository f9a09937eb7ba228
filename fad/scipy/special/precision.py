"""In what precision formulas for a device are evaluated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like


def in_double(function: Callable) -> Callable:
    """Let a function of real or complex numbers work in double precision, and give its operands' precision."""

    @functools.wraps(function)
    def run(*xs, **params):
        near = next(x for x in xs if hasattr(x, "dtype") and x.dtype.kind in "fc")
        dtype = np.result_type(*[x.dtype if hasattr(x, "dtype") else x for x in xs])
        double = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
        return function(*[_place(x, near, double) for x in xs], **params).astype(dtype)

    return run


def _place(x: Any, near: Any, dtype: np.dtype) -> Any:
    return x.astype(dtype) if hasattr(x, "astype") else like(near, np.asarray(x, dtype))
