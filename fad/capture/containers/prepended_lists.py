"""Lists and deques in front of whose elements each step of a loop puts one: ``us.insert(0, step(us[0]))``.

What is put there are the elements of a list that grows, in the other order. A step may read the first elements.
"""

from __future__ import annotations

import collections
from typing import Any

from fad.capture.body.context import refuse
from fad.capture.body.values import STANDING
from fad.capture.containers.growing_lists import GrowingList


class PrependedList:
    """Stands for a list or deque in a step: it takes what is put in front, and gives the first elements."""

    __slots__ = ("rows", "changed", "_inserts")

    def __init__(self, plain: Any, name: Any):
        self.rows = GrowingList([*reversed(plain)], name)
        self.changed = False  # looks show nothing more of it
        self._inserts = type(plain) is list

    def insert(self, place: Any, x: Any) -> None:
        """Put an element in front."""
        if type(place) is not int or place != 0 or not self._inserts:
            refuse(f"it inserts into {self.rows.name} at another place than the first one")
        self.rows.append(x)

    def appendleft(self, x: Any) -> None:
        """Put an element in front of those of a deque."""
        if self._inserts:
            self._refuse()
        self.rows.append(x)

    def __getitem__(self, place: Any) -> Any:
        if type(place) is not int:
            self._refuse()
        return self.rows[-place - 1]

    def length(self) -> Any:
        """Return how many elements there are."""
        return self.rows.length()

    def __bool__(self) -> bool:
        return bool(self.rows)

    def fill(self, plain: list | collections.deque, elements: list) -> list:
        """Put in front of a list or deque what steps have put there; return it."""
        if isinstance(plain, list):
            plain[:0] = elements[::-1]
        else:
            plain.extendleft(elements)
        return elements

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it uses {self.rows.name}, in front of which it puts elements, otherwise than by the first ones")

    __iter__ = __len__ = __contains__ = __add__ = __radd__ = __mul__ = __eq__ = __setitem__ = __delitem__ = _refuse
    __reversed__ = __array__ = __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


STANDING.add(PrependedList)
