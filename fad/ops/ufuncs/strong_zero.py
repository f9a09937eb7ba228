"""The derivative of what overflows: times a cotangent that is zero it is zero, a *strong zero*.

Where an exponential overflowed and the result is finite all the same, nothing depends on it any more: of
``1 / (1 + np.exp(-x))`` at -1000 the derivative is 0, though the chain rule makes it 0 times infinity. Poles are
another matter (`fad.transforms.reverse.slopes`): of ``1 / (1 / x)`` at 0 it is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.core.primitives.archetypes import fit, make_elementwise
from fad.core.primitives.cotangent import Masked, Selection
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.values import traces_of
from fad.core.tracing.views import unwrap

OVERFLOWING: set[Callable] = set()
"""The partial derivatives that are infinite only where an operand is too large, or infinite itself."""

_DOUBLE = np.dtype(float)


def have_strong_zeros(*prims: Primitive) -> None:
    """Let operations of one operand that overflow have strong zeros in reverse mode."""
    for prim in prims:
        (partial,) = prim.partials or ()
        OVERFLOWING.add(partial)
        prim.vjp = (_make_vjp(partial),)


def _make_vjp(partial: Callable) -> Callable:
    def vjp(ct: Any, y: Any, x: Any) -> Any:
        return fit(multiply_strongly(ct, partial(y, x)), x.shape, x.dtype)

    return vjp


def multiply_strongly(g: Any, slope: Any) -> Any:
    """Return a cotangent times such a derivative."""
    strong = _may_be_infinite(slope)
    if type(g) is Masked:
        with np.errstate(all="ignore"):
            return g.with_product(strong_multiply(g.value, slope) if strong else g.value * slope)
    return strong_multiply(g, slope) if strong else g * slope


def _may_be_infinite(slope: Any) -> bool:
    if getattr(slope, "dtype", _DOUBLE).kind != "f":  # a complex exponential has no limit
        return False
    if any(trace.compiled for trace in traces_of(slope)):
        return True
    slope = unwrap(slope)
    return not is_on_device(slope) and has_overflow(slope)  # to look at a device's would wait for it


def has_overflow(x: Any) -> bool:
    """Return whether an element is infinite or NaN, or nearly: the sum of their squares tells it."""
    return not sum_of_squares(x) < math.inf


def sum_of_squares(x: Any) -> Any:
    """Return the sum of the squares of all elements, infinite if it overflows."""
    if type(x) is np.ndarray:
        return abs(np.vdot(x, x))
    size = float(abs(x))  # Python's product overflows in silence
    return size * size


# --- the product ------------------------------------------------------------------------------------------------------


def _strong_product(g: Any, slope: Any) -> Any:
    with np.errstate(invalid="ignore"):
        product = g * slope
    return np.where(_is_strong(g, slope), np.zeros_like(product), product)[()]


def _is_strong(g: Any, slope: Any) -> Any:
    return np.logical_and(np.isinf(slope), np.equal(g, 0))


def _by_cotangent(_z: Any, g: Any, slope: Any) -> Selection:
    return Selection(np.logical_not(_is_strong(g, slope)), slope)


def _by_slope(_z: Any, g: Any, slope: Any) -> Selection:
    return Selection(np.logical_not(_is_strong(g, slope)), g)


strong_multiply = make_elementwise(
    "strong_multiply", _strong_product, (_by_cotangent, _by_slope),
    lower="(0.0 if {0} == 0.0 and fabs({1}) == 1e999 else {0} * {1})",
)  # fmt: skip
