"""Questions to a value that may be traced: the plain value behind it, its derivatives' order, itself as a constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, outcome, stop
from fad.core.tracing.views import copy_layout, snapshot
from fad.errors import TreeMismatchError
from fad.typing import PyTree


def traces_of(x: Any) -> Iterator[Trace]:
    """Return the traces that a value is inside, the youngest first."""
    while type(x) is Tracer:
        yield x.owner
        x = x.wrapped


def number_behind(x: Any) -> Any:
    """Return what is behind a tracer, a number of Python's as one of its types."""
    while type(x) is Tracer:
        x = x.owner.lower(x)
    return x


def class_of_element(x: Any) -> type:
    """Return the class of ``x[0]``: NumPy's arrays of one axis have scalars for elements, a device's have arrays."""
    cls: type = x.__class__
    return x.dtype.type if cls is np.ndarray and x.ndim == 1 else cls


def depth(x: Any) -> int:
    """Return how many derivatives are being taken of a value: the orders of the differentiating traces it is inside."""
    return sum(trace.order for trace in traces_of(x) if type(trace).stop is Trace.stop)


def most_derivatives(x: Any) -> int:
    """Return how many derivatives are taken of a value at most: of one in a loop's body, all that are under way."""
    return sum(trace.order for trace in traces_of(x) if type(trace).stop is Trace.stop or not trace.answers)


def has_derivative(x: Any) -> bool:
    """Return whether a derivative is taken of a value: for a step that would lose it.

    The body of a loop does not know while it is recorded. If one is under way, it asks for the value, as an `if` does:
    the steps run one by one then, where each knows.
    """
    if not depth(x) and most_derivatives(x):
        outcome(x)
    return depth(x) > 0


def may_ask(x: Any) -> bool:
    """Return whether a program may ask for a value, as `if` does: that of a loop's body differs from step to step."""
    return all(trace.answers for trace in traces_of(x))


def stop_gradient(value: PyTree) -> PyTree:
    """Return the same tree with every differentiating tracer replaced by the value it stands for.

    The result is a constant for ``grad``, ``vjp``, ``jvp`` and everything built on them; batching is kept.

    Parameters
    ----------
    value : array, number or tree of them
        What is to count as a constant.

    Returns
    -------
    the same value
        Without a derivative in any transform.

    Examples
    --------
    >>> import fad
    >>> fad.grad(lambda x: x * fad.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return tree.map(_stop_apart, value)


def strip_derivatives(value: PyTree) -> PyTree:
    """Return what `stop_gradient` does, but for plain arrays, which are themselves and not copies."""
    return tree.map(stop, value)


def _stop_apart(x: Any) -> Any:
    """Return a leaf as a constant in memory of its own, plain or not: a write into one is not seen in the other."""
    if type(x) is np.ndarray:
        return copy_layout(x)
    y = stop(x)
    return snapshot(y) if type(y) is Tracer else y


def stop_older(x: Any, birth: float) -> Any:
    """Stop the gradient of a value for the traces that were made before a birth number, and for no other."""
    return stop(x) if type(x) is Tracer and x.owner.birth < birth else x


def same_structure(expected: Any, given: Any, what: str) -> None:
    if expected != given:
        raise TreeMismatchError(f"{what} must have the structure {expected}, but has {given}")


def is_zero(x: Any) -> bool:
    """Return whether an array is zero everywhere; what np.empty finds in memory may raise NumPy's flags when asked."""
    with np.errstate(invalid="ignore"):
        return not np.any(x)
