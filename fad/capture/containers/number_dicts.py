"""Dictionaries of numbers whose keys a loop computes: ``d[k] = d.get(k, 0.0) + x``, ``if n in memo``, ``D[i - 1, j]``.

Keys are integers, or tuples of them, and it is known between which numbers those lie that the steps set. So an array
holds the value of each, and another one says the how manyeth key it is, -1 where it is not there. Behind the loop that
is asked, and the dictionary gets its items in their order. If all keys are there before the loop, no more can come,
and the first array will do. A key of which it is not known that it is there is looked up at a place that no array has:
then Python runs the call, and raises its error, or sets the item.
"""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np

from fad.capture.body.context import current, refuse
from fad.capture.body.keyed_looks import Uses, bounds_of, default_of
from fad.capture.body.values import STANDING, as_number
from fad.control_flow.bodies.intervals import fits
from fad.control_flow.bodies.subgraph import example
from fad.core.handles.buffers import buffer
from fad.core.programs.graph import type_of
from fad.core.tracing.tracer import Tracer, outcome
from fad.core.tracing.views import Memory
from fad.ops.places.creation import array
from fad.staging.may_raise import note_try
from fad.staging.mixed_types import MixedTypes, note_mixed, note_number

_LARGEST = 1 << 20  # places for keys
_NUMBERS = frozenset({int, float, np.float64})  # that may be in one array
_DTYPES = {frozenset({int}): np.dtype(np.int64), frozenset({bool}): np.dtype(np.bool_)}


class Unsuitable(Exception):
    """No array can stand for a list or dictionary."""


class NumberDict:
    """Stands for a dictionary of numbers in a step."""

    __slots__ = (
        "dtype", "_plain", "_name", "_uses", "_box", "_kinds", "_values", "_order", "_count", "_sides", "_size",
        "_default",
    )  # fmt: skip

    def __init__(self, plain: dict, name: Any, uses: Uses):
        self._plain = plain
        self._name = name
        self._uses = uses  # what the last look has shown
        self._default = default_of(plain)
        self._make()

    def _make(self) -> None:
        """Make arrays for what the last look has shown, and begin another one."""
        uses, plain = self._uses, self._plain
        self._box, self._kinds = uses.box, frozenset(uses.kinds)
        dtype = _DTYPES.get(self._kinds, np.dtype(np.float64) if self._kinds <= _NUMBERS else None)
        if self._box is None or not self._kinds or dtype is None:
            raise Unsuitable(f"of the keys of {self._name} it is not known between which integers they are")
        self.dtype = dtype
        if not all(fits(x, dtype) for x in plain.values()):
            raise Unsuitable(f"{self._name} has integers that are too large for a floating-point number")
        if len(self._kinds) > 1:
            note_mixed()
        self._sides = [high - low + 1 for low, high in self._box]
        self._size = math.prod(self._sides)
        if self._size > _LARGEST:
            raise Unsuitable(f"the keys of {self._name} lie too far from each other")
        places = {self._find(key)[0]: x for key, x in plain.items()}
        made = array([places.get(k, uses.show_value()) for k in range(self._size)])
        self._values = _as_handle(made if made.dtype == dtype else made.astype(dtype))
        order = np.full(self._size, -1)
        order[list(places)] = np.arange(len(places))
        full = len(places) == self._size
        self._order: Any = None if full else _as_handle(order)
        self._count: Any = None if full else _as_handle(np.array([len(places)]))
        if not full and current() is not None:
            raise Unsuitable(f"it puts items into {self._name} in a step of another loop")
        self._uses = Uses(plain)
        self._uses.box, self._uses.classes, self._uses.single = self._box, uses.classes, uses.single

    def take_change(self) -> bool:
        """Make other arrays if the last look has shown more keys or numbers of other types; return whether it has."""
        if (self._uses.box, self._uses.kinds) == (self._box, self._kinds):
            self._uses.kinds = Uses(self._plain).kinds
            return False
        self._make()
        return True

    def fill(self) -> None:
        """Put what the loop has left into the dictionary, in the order in which keys came."""
        for key in list(self._plain) if self._order is None else self._ask_keys():
            found = self._values[self._find(key)[0]]
            if len(self._kinds) > 1 and type(found) is not Tracer:
                raise MixedTypes  # nothing is traced, and so nobody would ask later of which type it is
            found = as_number(found) if self._is_pythons() else found
            note_number(found)
            self._plain[key] = found

    def _ask_keys(self) -> list:
        """Return the keys that there are, those of before as they were: a question to the values at hand."""
        order = outcome(self._order)
        places = np.argsort(order, kind="stable")[np.count_nonzero(order < 0) + len(self._plain) :]
        parts = np.unravel_index(places, self._sides)
        parts = [part + low for part, (low, _) in zip(parts, self._box, strict=True)]  # type: ignore[arg-type]
        of_python = [int in classes for classes in self._uses.classes]
        columns = [part.tolist() if p else list(part) for part, p in zip(parts, of_python, strict=True)]
        new = columns[0] if self._uses.single else zip(*columns, strict=True)
        return [*self._plain, *new]

    # --- what steps do with it ------------------------------------------------------------------------------------

    def _find(self, key: Any) -> tuple[Any, Any]:
        """Return the place of a key in the arrays, and whether it has one, which may be traced: else it is any."""
        place: Any = 0
        inside: Any = True
        for part, (low, high) in zip(self._uses.parts_of(key), self._box, strict=True):  # type: ignore[arg-type]
            least, most = bounds_of(part)
            place = place * (high - low + 1) + (part - low)
            if (most is not None and most < low) or (least is not None and least > high):
                return 0, False
            if least is None or least < low or most is None or most > high:
                within = np.logical_and(np.greater_equal(part, low), np.less_equal(part, high))
                inside = within if inside is True else np.logical_and(inside, within)
        return (place if inside is True else np.where(inside, place, 0)), inside

    def _is_pythons(self) -> bool:
        return np.float64 not in self._kinds

    def _take(self, place: Any) -> Any:
        found = self._values[place]
        return as_number(found) if self._is_pythons() else found

    def contains(self, key: Any) -> Any:
        """Return whether a key is there."""
        place, inside = self._find(key)
        if inside is False or self._order is None:
            return inside if type(inside) is bool else as_number(inside)
        there = np.greater_equal(self._order[place], 0)
        return as_number(there if inside is True else np.logical_and(there, inside))

    def __getitem__(self, key: Any) -> Any:
        if self._default is not None:
            is_counter = type(self._plain) is collections.Counter
            return self.get(key, self._default) if is_counter else self.setdefault(key, self._default)
        there = self.contains(key)
        if there is False:
            refuse(f"it takes an item of {self._name} that is not there")
        return self._take(self._place_if(there, self._find(key)[0]))

    def _place_if(self, there: Any, place: Any) -> Any:
        """Return a place, one that no array has where a key is not there: then the program may be recorded again."""
        if there is True:
            return place
        note_try()
        return np.where(there, place, self._size)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the item of a key, or the default if there is none."""
        there = self.contains(key)
        if there is False:
            return default
        found = self._take(self._find(key)[0])
        return found if there is True else self._select(there, found, default)

    def _select(self, there: Any, found: Any, default: Any) -> Any:
        kinds = {example(x).__class__ for x in (found, default)}
        if np.shape(example(default)) or not (kinds <= _NUMBERS or kinds == {bool}):
            refuse(f"it takes an item of {self._name}, or something else than a number of its type")
        if len(kinds) > 1:
            note_mixed()
            if not fits(default, self.dtype) or not fits(found, type_of(example(default)).dtype):
                refuse(f"it takes an item of {self._name}, or an integer that may be too large for one")
        chosen = np.where(there, found, default)[()]
        return chosen if np.float64 in kinds else as_number(chosen)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the item of a key, which is set to the default if there is none."""
        found = self.get(key, default)
        self[key] = found
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        body: Any = current()
        self._uses.add_key(key)
        self._uses.add_value(value)
        place, inside = self._find(key)
        if not self._uses.kinds <= self._kinds or inside is False:
            if not body.trial:
                refuse(f"it sets items of {self._name} in one step otherwise than in another")
            return  # the next look has arrays for it
        if not fits(value, self.dtype):
            refuse(f"it puts an integer into {self._name} that may be too large for a floating-point number")
        self._values[self._place_if(inside, place)] = value
        if self._order is not None:
            before = self._order[place]
            new = np.less(before, 0)
            self._order[place] = np.where(new, self._count[0], before)
            self._count[0] += np.where(new, 1, 0)

    def length(self) -> Any:
        """Return how many items there are."""
        return len(self._plain) if self._order is None else as_number(self._count[0])

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it uses the dictionary {self._name} otherwise than item by item")

    __iter__ = __len__ = __contains__ = __eq__ = __bool__ = __delitem__ = __or__ = __ior__ = __reversed__ = _refuse
    __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


STANDING.add(NumberDict)


def _as_handle(x: Any) -> Tracer:
    if type(x) is Tracer:
        return x
    made = buffer(np.array(x))
    made.memory = Memory()
    return made
