"""The type to which the results of the two ways of an ``if`` are converted, which one operation gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.capture.body.context import refuse
from fad.capture.body.state import as_leaf
from fad.control_flow.bodies.intervals import fits
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer
from fad.staging.mixed_types import note_mixed

NUMBERS = (bool, int, float, complex)


def find_common(a: Any, b: Any) -> Any:
    """Return an example of the type to which two values are converted; raises where there is none."""
    if a is None or b is None:
        raise ValueError("None and something else")
    if is_on_device(a) or is_on_device(b):
        raise ValueError("arrays of a device, which is asked which way the program goes")
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape:
        raise ValueError(f"arrays of shapes {x.shape} and {y.shape}")
    if type(a) is type(b) and x.dtype == y.dtype:
        return np.zeros_like(x) if type(a) is np.ndarray else type(a)(0)
    note_mixed()
    weak = [v for v in (a, b) if type(v) in NUMBERS]
    strong = [v for v in (a, b) if type(v) not in NUMBERS]
    if not strong:  # Python's numbers
        if bool in map(type, weak):
            raise ValueError("a bool and a number")
        if complex in map(type, weak):
            raise ValueError("a real number and a complex one")
        return type(a)(0) + type(b)(0)
    dtypes = {v.dtype for v in strong}
    if len(dtypes) > 1:
        raise ValueError(f"dtypes {x.dtype} and {y.dtype}")
    dtype = dtypes.pop()
    if weak:
        fits = np.result_type(weak[0], np.zeros((), dtype)) == dtype and dtype in (
            np.float64,
            np.complex128,
            np.asarray(weak[0]).dtype,
        )
        if not fits:
            raise ValueError(f"a Python number and dtype {dtype}")
    return np.zeros(x.shape, dtype) if any(type(v) is np.ndarray for v in (a, b)) else np.zeros((), dtype)[()]


def convert_leaf(x: Any, t: Any) -> Any:
    """Return a leaf in the type of an example."""
    x = as_leaf(x)
    mine = example(x)
    if type(mine) is type(t) and np.asarray(mine).dtype == np.asarray(t).dtype:
        return x
    if not fits(x, np.asarray(t).dtype):
        refuse("an if leaves an integer, which may be too large for a floating-point number, or such a number")
    if type(t) in (float, complex):
        return x * type(t)(1)
    dtype = np.asarray(t).dtype
    if type(x) is not Tracer:
        found = np.asarray(x, dtype)
        return found if type(t) is np.ndarray else found[()]
    return np.positive(x).astype(dtype) if x.dtype != bool else np.logical_or(x, np.bool_(False))
