"""Dictionaries that each step of a loop fills by its counter: ``memo[n] = memo[n - 1] + memo[n - 2]``.

What is put in are the elements of a list that grows. Where the keys are known to follow one another a step may read the
last values, as it may of a list. Otherwise the keys are gathered beside the values, and nothing is read; behind the
loop it is asked which keys they are.
"""

from __future__ import annotations

from typing import Any

from fad.capture.context import current, refuse
from fad.capture.growing_lists import GrowingList
from fad.capture.values import STANDING
from fad.control_flow.intervals import interval
from fad.control_flow.subgraph import example
from fad.core.tracer import Tracer, outcome
from fad.ops.creation import array


class GrowingDict:
    """Stands for a dictionary in a step: it takes values by keys that are integers, and gives the last ones."""

    __slots__ = ("rows", "follows", "changed", "_first")

    def __init__(self, rows: GrowingList, keys: list | None):
        """`keys` are those that there are before the loop; None in the steps of an inner loop."""
        self.rows = rows
        self._first: int | None = keys[0] if keys else None  # None while it is not known
        self.follows = keys is not None and (not keys or keys == list(range(keys[0], keys[0] + len(keys))))
        self.changed = False  # whether the last look has shown that they do not

    def __setitem__(self, key: Any, value: Any) -> None:
        if not all(map(_is_integer, key if type(key) is tuple else (key,))):
            refuse(f"it sets an item of {self.rows.name} by a key that is no integer of Python's")
        if self.follows and not self._is_next(key):
            if not current().trial:  # type: ignore[union-attr]
                refuse(f"it sets items of {self.rows.name} by keys that follow one another in some steps alone")
            self.follows, self.changed = False, True
        self.rows.append(value if self.follows else (key, value))

    def _is_next(self, key: Any) -> bool:
        """Return whether a key is known to be the one behind the last."""
        rows = self.rows
        if type(key) is tuple or not rows.steady:
            return False
        if rows.rate is None:
            return True  # in a first look any key may be
        least, most = interval(key - rows.length())
        if self._first is None and least == most:
            self._first = least
        return least == most == self._first is not None

    def __getitem__(self, key: Any) -> Any:
        if not self.follows or type(key) is tuple:
            self._refuse()
        place = key if self._first is None else key - self._first
        if type(place) is int and place < 0:
            self._refuse()
        return self.rows[place]

    def length(self) -> Any:
        """Return how many items there are."""
        return self.rows.length() if self.follows else self._refuse()

    def fill(self, plain: dict, elements: list) -> list:
        """Put what steps have set into the dictionary; return the values."""
        if self.follows:
            first = len(plain) + (self._first or 0)
            plain.update(enumerate(elements, first))
            return elements
        keys = [key for key, _ in elements]
        if elements and type(keys[0]) is tuple:
            keys = list(zip(*map(_ask, zip(*keys, strict=True)), strict=True))
        else:
            keys = _ask(keys)
        for key, (_, value) in zip(keys, elements, strict=True):
            plain[key] = value
        return [value for _, value in elements]

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it reads {self.rows.name}, into which it puts items, otherwise than by the last keys")

    __iter__ = __len__ = __contains__ = __eq__ = __bool__ = __delitem__ = __or__ = __ior__ = _refuse
    __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


STANDING.add(GrowingDict)


def _is_integer(key: Any) -> bool:
    return example(key).__class__ is int and not (type(key) is Tracer and key.shape)


def _ask(keys: Any) -> list:
    """Return integers of Python's as they are for the values at hand: a question to the values."""
    return outcome(array(list(keys))).tolist()
