"""Dictionaries and lists that each step of a loop fills by its counter: ``memo[n] = memo[n - 1] + memo[n - 2]``.

What is put in are the elements of a list that grows. Where the keys are known to follow one another, upward or
downward (``us[t] = step(us[t + 1])``), a step may read the last values, as it may of a list. Otherwise
the keys are gathered beside the values, and nothing is read; behind the loop it is asked which keys they are.
"""

from __future__ import annotations

import itertools
from typing import Any

from fad.capture.body.context import current, refuse
from fad.capture.body.values import STANDING
from fad.capture.containers.growing_lists import GrowingList
from fad.control_flow.bodies.intervals import interval
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer, outcome
from fad.ops.places.creation import array


class GrowingDict:
    """Stands for a dictionary in a step: it takes values by keys that are integers, and gives the last ones."""

    __slots__ = ("rows", "follows", "changed", "_first", "_sign")

    def __init__(self, rows: GrowingList, first: int | None, follows: bool, sign: int = 1):
        self.rows = rows
        self.follows = follows  # whether the keys are known to follow one another
        self.changed = False  # whether the last look has shown that they do not
        self._first = first  # of the keys before the loop; None while it is not known
        self._sign = sign  # of the distance from a key to the next one

    @classmethod
    def of(cls, plain: dict, name: Any, key: Any, sign: int) -> GrowingDict:
        """Return what stands for a dictionary in the steps of a loop, of which one has come to a traced key."""
        keys = list(plain)
        follows = all(type(k) is int for k in keys) and all(b - a == sign for a, b in itertools.pairwise(keys))
        return cls(GrowingList(list(plain.values()), name), keys[0] if keys else None, follows, sign)

    def fill_inside(self, rows: GrowingList) -> GrowingDict:
        """Return what stands for it in the steps of an inner loop, of whose keys all are asked for."""
        self.changed, self.follows = self.changed or self.follows, False
        return GrowingDict(rows, None, False)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not all(map(_is_integer, key if type(key) is tuple else (key,))):
            refuse(f"it sets an item of {self.rows.name} by a key that is no integer of Python's")
        if self.follows and not self._is_next(key):
            if not current().trial:  # type: ignore[union-attr]
                refuse(f"it sets items of {self.rows.name} by keys that follow one another in some steps alone")
            self.follows, self.changed = False, True
            if self.rows.preallocated.held is not None:
                self._refuse()
        self.rows.append(value if self.follows else (key, value))

    def _is_next(self, key: Any) -> bool:
        """Return whether a key is known to be the one behind the last."""
        rows = self.rows
        if type(key) is tuple or not rows.steady:
            return False
        if rows.rate is None:
            return True  # in a first look any key may be
        least, most = interval(key - rows.length() if self._sign > 0 else key + rows.length())
        if self._first is None and least == most:
            self._first = least
        return least == most == self._first is not None

    def __getitem__(self, key: Any) -> Any:
        if not self.follows or type(key) is tuple:
            self._refuse()
        place = key if self._first is None else (key - self._first) * self._sign
        least = interval(place)[0] if type(place) is Tracer else place
        if least is None or least < 0:  # of a list it would be one of the last places
            self._refuse()
        return self.rows[place]

    def length(self) -> Any:
        """Return how many items there are."""
        return self.rows.length() if self.follows else self._refuse()

    def fill(self, plain: Any, elements: list) -> list:
        """Put what steps have set into the dictionary or list; return the values."""
        if self.follows:
            for k, value in enumerate(elements, self.rows.before):
                plain[(self._first or 0) + self._sign * k] = value
            return elements
        for key, (_, value) in zip(_ask([key for key, _ in elements]), elements, strict=True):
            plain[key] = value
        return [value for _, value in elements]

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it reads {self.rows.name}, into which it puts items, otherwise than by the last keys")

    __iter__ = __len__ = __contains__ = __eq__ = __bool__ = __delitem__ = __or__ = __ior__ = _refuse
    __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


class FilledList(GrowingDict):
    """Stands for a list whose places the steps bind: ``us = [None] * n``, and ``us[i + 1] = step(us[i])``."""

    __slots__ = ("_size",)

    def __init__(self, rows: GrowingList, first: int | None, follows: bool, size: int, sign: int = 1):
        super().__init__(rows, first, follows, sign)
        self._size = size

    @classmethod
    def of(cls, plain: list, name: Any, key: Any, sign: int) -> FilledList:  # type: ignore[override]
        """Return what stands for a list in the steps of a loop, of which one has come to a traced place."""
        size, (least, most) = len(plain), (0, None) if type(key) is not Tracer else interval(key)
        if sign < 0:
            last = plain[size if most is None else most + 1 :]
            return cls(GrowingList(last[::-1], name), size - 1, True, size, -1)
        return cls(GrowingList(plain[: max(least or 0, 0)], name), 0, True, size)

    def fill_inside(self, rows: GrowingList) -> GrowingDict:
        """Return what stands for it in the steps of an inner loop, of whose places all are asked for."""
        super().fill_inside(rows)
        return FilledList(rows, None, False, self._size)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key + self._size if type(key) is int and key < 0 else key)

    def __setitem__(self, key: Any, value: Any) -> None:
        least, most = interval(key) if type(key) is Tracer else (key, key)
        if type(least) is not int or most is None or least < 0 or most >= self._size:
            refuse(f"it sets an element of {self.rows.name} at a place that may not be there")
        super().__setitem__(key, value)

    def length(self) -> int:
        """Return how many elements there are, which stays the same."""
        return self._size


STANDING |= {GrowingDict, FilledList}


def _is_integer(key: Any) -> bool:
    return example(key).__class__ is int and not (type(key) is Tracer and key.shape)


def _ask(keys: list) -> list:
    """Return keys, integers of Python's or tuples of some, as they are for the values at hand: a question to these."""
    parts = [part for key in keys for part in (key if type(key) is tuple else (key,))]
    known = iter(outcome(array(parts)).tolist())
    return [tuple([next(known) for _ in key]) if type(key) is tuple else next(known) for key in keys]
