"""Lists of arrays of which a loop writes one by its counter: ``u[new][1:-1] = u[old][1:-1] + ...``, buffers in turn.

If nobody else knows the list or its arrays, and no step puts another array into it, these are the rows of an array. In
the steps one stands for the list, and its elements are views of it. Behind the loop the arrays get what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fad.capture.body.context import Body, refuse
from fad.capture.body.state import is_handle, is_written
from fad.capture.body.values import STANDING
from fad.core.handles.buffers import buffer
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import Memory, is_outside, root_of
from fad.ops.places.creation import array


class WrittenRows:
    """What is noted of a list in a look that writes into one of its elements, in place of what is put into it."""


class RowList:
    """Stands for a list or tuple of arrays in a step."""

    __slots__ = ("_rows", "_name", "_taken")

    def __init__(self, x: Any, name: Any):
        self._name = name
        self._taken: list[tuple[Any, Any]] = []  # elements of which `u[k] += v` may bind the places to what they are
        made = array(list(x))
        if type(made) is not Tracer:
            made = buffer(np.array(made))
            made.memory = Memory()
        self._rows = made

    def __getitem__(self, index: Any) -> Any:
        if type(index) is slice:
            return [self[k] for k in range(len(self))[index]]
        found = self._rows[index]
        self._taken.append((index, found))
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        if not any(place is index and found is value for place, found in self._taken):
            refuse(f"it puts an array into {self._name}, and writes into others of it")

    def forget_taken(self) -> None:
        """Forget the elements that a step has taken."""
        self._taken.clear()

    def take_change(self) -> bool:
        """Return that looks show nothing more of it."""
        return False

    def fill(self, plain: Any) -> None:
        """Let the arrays in the list hold what the loop has left."""
        for k, x in enumerate(plain):
            x[...] = self._rows[k]

    def __len__(self) -> int:
        return self._rows.shape[0]

    def __iter__(self) -> Iterator:
        return (self[k] for k in range(len(self)))

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it uses {self._name}, into whose arrays it writes, otherwise than array by array")

    __contains__ = __add__ = __radd__ = __iadd__ = __mul__ = __eq__ = __delitem__ = __reversed__ = _refuse
    __array__ = __lt__ = __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


STANDING.add(RowList)


def can_be_rows(x: Any) -> bool:
    """Return whether the elements of a list are arrays of one shape and type, into which a loop may write."""
    if not all(is_handle(y) and y.shape and not is_outside(root_of(y)) for y in x):
        return False
    return len({(y.shape, y.dtype) for y in x}) == 1


def begins_with_array(x: Any) -> bool:
    """Return whether the first element of a list or tuple is an array."""
    return type(x) in (list, tuple) and len(x) > 0 and is_handle(x[0]) and bool(x[0].shape)


def note_written_rows(body: Body) -> bool:
    """Note lists of which the look has written into an element that it took by a traced place; return whether any."""
    found = {id(x): (x, WrittenRows()) for x, element in body.rows if is_written(root_of(element))}
    body.touched.update(found)
    body.rows.clear()
    return bool(found)
