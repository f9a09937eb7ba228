"""Lists of arrays into which a loop puts others by its counter: ``layers[i % 2] = step(layers[(i + 1) % 2])``.

In the steps one array with an axis more stands for the list, and behind the loop that gets arrays of its own. So what a
step puts in, or takes out, is a copy. That nobody can tell as long as no array is written while the list knows it, too:
a step that does is refused, and behind the loop it is noted which arrays may be one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.capture.body.element_tables import is_table
from fad.capture.body.held_arrays import HeldArrays
from fad.capture.body.labels import is_label
from fad.capture.body.state import is_handle
from fad.capture.body.values import STANDING, as_number
from fad.capture.containers.grown_entries import make_element
from fad.control_flow.bodies.subgraph import example
from fad.core.handles.buffers import buffer
from fad.core.programs.graph import type_of
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import Memory
from fad.ops.places.creation import array
from fad.staging.mixed_types import note_mixed, note_number


class ArrayList:
    """Stands for a list of arrays of one shape in a step, or of lists and tuples of such and of numbers."""

    __slots__ = ("held", "_changed", "_size", "_structure", "_stacks", "_plain")

    def __init__(self, x: list, name: Any):
        self.held = HeldArrays(name, x)
        self._changed = False  # whether the last look has shown numbers of another kind
        self._size = len(x)
        self._structure = tree.structure(x[0])
        columns = [list(column) for column in zip(*map(tree.leaves, x), strict=True)]
        self._plain = [not any(is_handle(y) or _is_scalar(y) for y in column) for column in columns]
        self._stacks = [_stack(column) for column in columns]
        if any(_is_scalar(y) is plain for column, plain in zip(columns, self._plain, strict=True) for y in column):
            note_mixed()

    def __getitem__(self, index: Any) -> Any:
        if type(index) is slice:
            return [self[k] for k in range(self._size)[index]]
        found = [stack[index] for stack in self._stacks]
        found = [y.copy() if y.shape else y for y in found]
        found = [as_number(y) if plain else y for y, plain in zip(found, self._plain, strict=True)]
        for y in found:
            self.held.note(y)
            note_number(y)
        return tree.unflatten(self._structure, found)

    def __setitem__(self, index: Any, value: Any) -> None:
        leaves, structure = tree.flatten(value)
        if type(index) is slice or structure != self._structure:
            refuse(f"it puts something else into a list than {self.held}")
        for k, (x, stack) in enumerate(zip(leaves, self._stacks, strict=True)):
            if np.shape(example(x)) != stack.shape[1:] or type_of(example(x)).dtype != stack.dtype:
                refuse(f"it puts an array of another shape or dtype into a list than {self.held}")
            if type(x) is np.ndarray:
                refuse("it puts an array from outside into a list")
            self._admit(k, x)
            self.held.note(x)
            stack[index] = x

    def _admit(self, k: int, x: Any) -> None:
        """Note that a number is NumPy's where all were Python's, or is Python's where others are NumPy's."""
        if np.shape(example(x)) or self._plain[k] is not _is_scalar(x):
            return
        note_mixed()
        if self._plain[k]:
            if not current().trial:  # type: ignore[union-attr]
                refuse("it puts NumPy's numbers into a list in one step, and Python's in another")
            self._plain[k], self._changed = False, True

    def take_change(self) -> bool:
        """Return whether the last look has shown numbers of another kind, and forget it."""
        changed, self._changed = self._changed, False
        return changed

    def fill(self, plain: list) -> None:
        """Put what the loop has left into the list."""
        stacks, numbers = tree.unflatten(self._structure, self._stacks), tree.unflatten(self._structure, self._plain)
        plain[:] = [make_element(stacks, numbers, (k,)) for k in range(self._size)]

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator:
        return (self[k] for k in range(self._size))

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it uses {self.held} otherwise than element by element")

    __contains__ = __add__ = __radd__ = __iadd__ = __mul__ = __eq__ = __delitem__ = __reversed__ = _refuse
    __array__ = __lt__ = __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


STANDING.add(ArrayList)


def can_stand_for(x: list) -> bool:
    """Return whether one array can stand for each part of the elements of a list into which a loop puts others."""
    leaves = tree.leaves(x)
    plain = any(type(y) is np.ndarray or is_label(y) for y in leaves)  # nobody shall miss the writes into the former
    return is_table(x) and not plain and any(type(y) is Tracer and y.shape for y in leaves)


def _is_scalar(x: Any) -> bool:
    """Return whether a value is a number of NumPy's, and not of Python's."""
    shown = example(x)
    return not np.shape(shown) and shown.__class__ not in (bool, int, float, complex)


def _stack(column: list) -> Tracer:
    made = array(column)
    if type(made) is not Tracer:
        made = buffer(np.array(made))
        made.memory = Memory()
    return made
