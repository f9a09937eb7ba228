"""The NumPy backend: arrays in host memory."""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

name = "numpy"
array_type: type = np.ndarray
avoided: frozenset = frozenset()


def owns(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def from_host(x: Any) -> np.ndarray:
    return np.asarray(x)


def to_host(x: Any) -> np.ndarray:
    return x


def scatter_add(target: np.ndarray, index: Any, values: Any) -> None:
    """Add `values` into `target` at `index`, in place, counting repeated positions as often as they occur."""
    np.add.at(target, index, values)


@functools.cache
def scipy_function(name: str) -> Callable | None:
    """Return SciPy's function of a name below ``scipy``, or None where SciPy is not installed."""
    module, _, function = name.partition(".")
    try:
        return getattr(importlib.import_module(f"scipy.{module}"), function)
    except ImportError:
        return None


def synchronize() -> None:
    """Wait until all work has finished; on the host it always has."""


def timer() -> Any:
    """Start a clock: it is stopped by calling it, and what that returns gives the seconds between the two."""
    start = time.perf_counter()

    def stop() -> Callable:
        seconds = time.perf_counter() - start
        return lambda: seconds

    return stop
