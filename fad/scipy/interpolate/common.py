"""Shared by ``fad.scipy.interpolate``: trees of arrays, and the contract's view of a class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import like
from fad.core.primitives.primitive import public
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.ops.places.taking import searchsorted


class Curve:
    """An interpolant: a tree whose leaves are the arrays named in `_arrays`; all else about it is constant."""

    _arrays: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        def flatten(curve: Any) -> tuple:
            rest = tuple((k, v) for k, v in sorted(vars(curve).items()) if k not in cls._arrays)
            return [getattr(curve, name) for name in cls._arrays], (cls, rest)

        def unflatten(kind: Any, leaves: Any) -> Any:
            curve = object.__new__(kind[0])
            vars(curve).update(kind[1])
            vars(curve).update(zip(cls._arrays, leaves, strict=True))
            return curve

        if cls._arrays:
            tree.register_node(cls, flatten, unflatten)


def double(x: Any) -> Any:
    """Return numbers in double precision: all of scipy.interpolate computes in it."""
    x = as_array(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def together(*xs: Any) -> list:
    """Return arrays in double precision, those of the host where one of a device is."""
    found = [double(x) for x in xs]
    for x in found:
        found = [like(x, y) for y in found]
    return found


def piece(knots: Any, x: Any, low: int, high: int) -> Any:
    """Return which interval between knots each number lies in, between two of them; the last one is closed."""
    return np.clip(searchsorted(knots, stop_gradient(x), "right") - 1, low, high)


def wrap(x: Any, start: Any, end: Any) -> Any:
    """Bring numbers into one period."""
    return start + (x - start) % (end - start)


def place(y: Any, x_ndim: int, axis: int) -> Any:
    """Move the axes of the points, which stand in front, to where the interpolated axis was."""
    if axis == 0:
        return y
    order = [*range(x_ndim, x_ndim + axis), *range(x_ndim), *range(x_ndim + axis, y.ndim)]
    return np.transpose(y, order)


def contract_with(name: str, theirs: Callable, samples: Callable, **notes: Any) -> Callable:
    """Hold a function that uses a class to the contract, with the same use of SciPy's class as its reference."""
    return public(theirs, name=f"scipy.interpolate.{name}", samples=samples, **notes)
