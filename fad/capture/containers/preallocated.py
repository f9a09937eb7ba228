"""The elements of a list that grows as an array preallocated for all that the steps append: ``np.mean(ys)``.

A loop carries the array beside the list. Each step writes there what it appends, and what it reads is the part that
counts so far, or one of its elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.capture.body.context import current, refuse
from fad.capture.body.element_tables import is_table
from fad.capture.body.held_arrays import HeldArrays
from fad.capture.body.values import as_number
from fad.capture.containers.grown_entries import Entry, is_number
from fad.control_flow.bodies.intervals import interval
from fad.control_flow.bodies.subgraph import example
from fad.core.handles.buffers import buffer
from fad.core.programs.graph import type_of
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import Memory
from fad.ops.places.creation import array
from fad.staging.mixed_types import note_mixed, note_number

_LARGEST = 1 << 26  # bytes


class Preallocated:
    """An array of the elements of one list, and of zeros where later steps put theirs; none until a step reads it."""

    __slots__ = ("held", "steps", "wanted", "changed", "_plain", "_name", "_array", "_numbers")

    def __init__(self, plain: Any, name: Any):
        self.steps: int | None = None  # how many steps the loop takes at most
        self.wanted = False  # whether a look has read it while there was none
        self.changed = False  # whether the last look has shown numbers of another kind
        self._plain = plain
        self._name = name
        self._array: Any = None
        self.held: HeldArrays | None = None  # what the list knows, if there is an array
        self._numbers = False  # whether all elements are numbers of Python's

    def is_wanted(self) -> bool:
        """Return whether there is an array, or one can be made after this look."""
        self.wanted = self._array is not None or (self.steps is not None and current().trial)  # type: ignore[union-attr]
        return self.wanted

    def check(self) -> None:
        """Refuse to read before the array is made; a look is run again with it."""
        if self._array is None:
            refuse(f"it reads {self._name}, to which it appends, as a whole")

    def make(self, rate: int | None) -> bool:
        """Make the array, if it is wanted and not as long as all steps at a rate fill it; return whether it was."""
        length = len(self._plain) + (self.steps or 0) * (1 if rate is None else rate)
        if not self.wanted or not self._can_be_made(length) or (self._array is not None and len(self) == length):
            return False
        if self._array is None and type(self._plain) is list:
            self._numbers = all(map(is_number, self._plain))
            if not self._numbers and any(map(is_number, self._plain)):
                note_mixed()
        self.held = HeldArrays(self._name, self._plain)
        elements = array(self._plain) if type(self._plain) is list else self._plain
        zeros = np.zeros((length - elements.shape[0], *elements.shape[1:]), elements.dtype)
        made = np.concatenate([elements, zeros])
        self._array = made.copy() if type(made) is Tracer else buffer(np.array(made))
        if self._array.memory is None:
            self._array.memory = Memory()
        return True

    def __len__(self) -> int:
        return self._array.shape[0]

    def _can_be_made(self, length: int) -> bool:
        plain = self._plain
        if not len(plain):
            return False
        first = np.asarray(example(plain[0]))
        whole = type(plain) is not list or (is_table(plain) and not isinstance(plain[0], (list, tuple, dict, str)))
        return whole and first.dtype.kind in "fc" and first.nbytes * length <= _LARGEST

    def put(self, new: Entry, length: Callable) -> None:
        """Put what a step appends behind the elements that there are."""
        if self._array is None:
            return
        x, stands = new.value, self._array
        if np.shape(example(x)) != stands.shape[1:] or type_of(example(x)).dtype != stands.dtype:
            refuse(f"it appends something of another shape or dtype to {self._name}")
        if self._numbers and not is_number(x):
            note_mixed()
            if not current().trial:  # type: ignore[union-attr]
                refuse(f"it appends NumPy's numbers to {self._name} in one step, and Python's in another")
            self._numbers, self.changed = False, True
        elif not self._numbers and is_number(x):
            note_mixed()
        if type(self._plain) is list:
            self.held.note(x)  # type: ignore[union-attr]
        stands[length()] = x

    def part(self, length: Any, copy: bool) -> Any:
        """Return the elements that there are."""
        found = self._array[:length]
        return np.copy(found) if copy else found

    def take(self, index: Any, length: Any) -> Any:
        """Return the element at a place; one that is not there is not in the array either."""
        least = interval(index)[0]
        place = index if least is not None and least >= 0 else np.where(index < 0, index + length, index)
        found = self._array[np.where(np.logical_and(place >= 0, place < length), place, len(self))]
        if found.shape:
            found = found.copy()
            self.held.note(found)  # type: ignore[union-attr]
            return found
        found = as_number(found) if self._numbers else found
        note_number(found)
        return found
