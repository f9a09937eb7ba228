"""autograd.tracer's public names."""

from __future__ import annotations

from fad.compat.autograd.extend import notrace_primitive, primitive
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop_gradient

__all__ = ["getval", "isbox", "notrace_primitive", "primitive"]

getval = stop_gradient


def isbox(x: object) -> bool:
    """Return whether a value is being traced.

    >>> isbox(1.0)
    False
    """
    return type(x) is Tracer
