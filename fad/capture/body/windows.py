"""Lists and deques of many numbers that each step moves on: delay lines and long windows, each one array to the loop.

Of few elements each is a part of the state by itself (`places.Elements`). Of many numbers the state is an array of all,
and what a step leaves is mostly made of the array that it was given: all of it but the first number, and a new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.capture.body.places import Elements
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer
from fad.ops.layout.elements import note_element
from fad.ops.places.creation import array
from fad.staging.mixed_types import note_mixed

_FEW = 64  # elements that are carried each by itself
_MANY = 4096  # of which no array is made
_REAL = frozenset({int, float, np.float64, np.int64})  # integers only until a step has put another number there


class _Numbers:
    """The numbers of a window: as they are, or as an array of all."""

    __slots__ = ("elements", "stack")

    def __init__(self, elements: Iterable[Any] = (), stack: Any = None):
        self.elements = tuple(elements)
        self.stack = stack

    def __len__(self) -> int:
        return len(self.elements) if self.stack is None else self.stack.shape[0]

    def join(self) -> Any:
        """Return an array of all."""
        if self.stack is not None:
            return self.stack
        kinds, body = {example(x).__class__ for x in self.elements}, current()
        if not kinds <= (_REAL if body is None or body.trial else _REAL - {np.int64}):
            refuse("it puts something else than floating-point numbers into a long list or deque")
        if kinds & {int, float}:
            note_mixed()
        made = array(list(self.elements))
        return made if type(made) is Tracer else np.array(made)


def _flatten(x: _Numbers) -> tuple:
    stack = x.join()
    return (stack,), (stack.dtype, stack.shape)


tree.register_node(_Numbers, _flatten, lambda _, values: _Numbers(stack=values[0]))


class Window(Elements):
    """All elements of a long list or deque as an array, from which their types do not differ for long."""

    __slots__ = ()

    @property
    def cell_contents(self) -> Any:
        """The elements."""
        return _Numbers(self.holder)

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self.holder.clear()
        if value.stack is None:
            self.holder.extend(value.elements)
            return
        for k in range(value.stack.shape[0]):
            x = value.stack[k]
            note_element(x, value.stack, (k,))
            self.holder.append(x)


def find_window(x: Any) -> Elements:
    """Return the place that the elements of a list or deque are, which a step moves."""
    n = getattr(x, "maxlen", None) or len(x)
    if n <= _FEW:
        return Elements(x)
    if n > _MANY or any(np.ndim(y) or example(y).__class__ not in _REAL for y in x):
        refuse(f"it changes a {type(x).__name__} of more than {_FEW} elements, which are not all numbers")
    return Window(x)
