"""Names that steps bind to long lists of numbers, ``row = new``: such a list is one array to the loop.

Of few numbers each is a part of the state by itself. What a step leaves is mostly a list whose numbers are those of one
array in their order, which the elements know (`ops/layout/elements.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import tree
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer
from fad.ops.layout.elements import note_element
from fad.ops.places.creation import array
from fad.staging.mixed_types import note_mixed

_FEW = 64  # numbers that are carried each by itself


class _Stacked:
    """The numbers of a list, as they are or as an array; then all are scalars of NumPy's."""

    __slots__ = ("elements", "stack")

    def __init__(self, elements: list | None, stack: Any):
        self.elements = elements
        self.stack = stack


def _flatten(x: _Stacked) -> tuple:
    if x.stack is None:
        made = array(x.elements)
        x.stack = made if type(made) is Tracer else np.array(made)
    return (x.stack,), np.shape(x.stack)


tree.register_node(_Stacked, _flatten, lambda _, values: _Stacked(None, values[0]))


def stack_numbers(x: Any) -> Any:
    """Return a long list of floating-point numbers as one array, and anything else as it is."""
    if type(x) is not list or len(x) <= _FEW or any(type(y) not in (Tracer, float, np.float64) for y in x):
        return x
    kinds = {None if type(y) is Tracer and y.shape else example(y).__class__ for y in x}
    if not kinds <= {float, np.float64}:
        return x
    if float in kinds:
        note_mixed()
    return _Stacked(x, None)


def list_numbers(x: Any) -> Any:
    """Return a list that was one array as a list again, a new one."""
    if type(x) is not _Stacked:
        return x
    return [_take(x, k) for k in range(np.shape(x.stack)[0])]


def _take(x: _Stacked, k: int) -> Any:
    found = x.stack[k]
    if type(found) is Tracer:
        note_element(found, x.stack, (k,))
    return found
