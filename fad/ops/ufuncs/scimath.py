"""numpy.emath: roots, logarithms and inverse functions that answer with complex numbers where no real one exists.

Whether they do depends on the values, so batch elements that disagree are split, as a Python ``if`` splits them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import outcome
from fad.ops.arrangement.structural import as_array


def _widen(x: Any, leaves: Callable) -> Any:
    """Return x, as complex numbers if one of them leaves the domain of real results."""
    x = as_array(x)
    if x.dtype.kind == "c" or not outcome(np.any(leaves(x))):
        return x
    return x.astype(np.result_type(x.dtype, np.complex64))


def _negative(x: Any) -> Any:
    return x < 0


def _beyond_one(x: Any) -> Any:
    return np.abs(x) > 1


_SHAPES = "ValueError: The operands cannot be broadcast against each other."


def _make(name: str, leaves: Callable) -> Callable:
    def function(x):
        return getattr(np, name)(_widen(x, leaves))

    at = 2.0 if leaves is _beyond_one else -4.0
    doc = f"""Return {name} of numbers, complex where the real function is not defined.

    >>> fad.numpy.emath.{name}({at}).round(3)
    {getattr(np.emath, name)(at).round(3)!r}
    """
    low, high = (0.2, 0.9) if leaves is _beyond_one else (0.2, 2.0)
    return public(
        getattr(np.emath, name),
        name=f"emath.{name}",
        doc=doc,
        samples=lambda s: [call(s.real(3, low=low, high=high)), call(s.real(4, low=-3.0, high=-1.2)), call(0.5)],
    )(function)


sqrt, log, log2, log10 = (_make(name, _negative) for name in ("sqrt", "log", "log2", "log10"))
arccos, arcsin, arctanh = (_make(name, _beyond_one) for name in ("arccos", "arcsin", "arctanh"))


@public(
    np.emath.logn,
    name="emath.logn",
    samples=lambda s: [call(s.positive(), s.positive(3)), call(2.0, s.real(3, low=-2.0, high=-0.5))],
    raises=_SHAPES,
)
def logn(n, x):
    """Return the logarithm to base n, complex where x or n is negative.

    >>> fad.numpy.emath.logn(2.0, 8.0)
    np.float64(3.0)
    """
    return np.log(_widen(x, _negative)) / np.log(_widen(n, _negative))


@public(
    np.emath.power,
    name="emath.power",
    samples=lambda s: [call(s.positive(3), s.real(3)), call(s.real(3, low=-2.0, high=-0.5), s.real())],
    raises=_SHAPES,
)
def power(x, p):
    """Raise x to a power, with complex results where x is negative.

    >>> fad.numpy.emath.power(-1.0, 0.5).round(6)
    np.complex128(1j)
    """
    p = as_array(p)
    p = p * 1.0 if p.dtype.kind == "i" and outcome(np.any(p < 0)) else p
    return np.power(_widen(x, _negative), p)
