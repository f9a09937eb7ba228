"""Arrays that each step of a loop makes longer: ``path = np.append(path, x)``.

Python makes an array in every step. Here the rows are gathered as the elements of a list are to which steps append, and
behind the loop they are put behind the array that there was before it. In a step an object stands for the array. It
takes what NumPy's functions put behind it, gives its last rows, and refuses all else. It stays the same object while
it grows: the text tells that nobody in the loop keeps the array as it was before (`names.find_joined`). For parts of
objects, ``self.path = np.append(self.path, x)``, no text tells that. There each join gives another object, and one that
has been made longer is not read any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.capture.body.context import refuse
from fad.capture.body.values import STANDING
from fad.capture.containers.growing_lists import GrowingList
from fad.capture.containers.grown_entries import Entry
from fad.capture.rewriting.names import SUMMARIES
from fad.core.handles.buffers import buffer


class GrowingArray:
    """Stands for an array in a step: its rows are the elements of a list that grows."""

    __slots__ = ("_rows", "_end", "axis", "_none")

    def __init__(self, rows: GrowingList, none: Any, axis: int, end: int | None = None):
        self._rows = rows
        self._end = end  # how often the step had made it longer when this was made; None where it stays the same object
        self.axis = axis  # along which it grows
        self._none = none  # an array like it without rows

    @property
    def rows(self) -> GrowingList:
        """Its rows, if this is the array as it is now."""
        if self._end not in (None, self._rows.end):
            refuse(f"it reads {self._rows.name} as it was before it was made longer")
        return self._rows

    def join(self, f: Callable, first: Any, *args: Any, **options: Any) -> GrowingArray:
        """Put behind the array what a function of NumPy's puts behind one without rows."""
        self._add(f(self._none if first is self else (self._none, *first[1:]), *args, **options))
        return self if self._end is None else GrowingArray(self._rows, self._none, self.axis, self._rows.end)

    def put_behind(self, plain: Any, rows: Any) -> Any:
        """Return an array with rows behind it."""
        return np.concatenate([plain, np.moveaxis(rows, 0, self.axis)], self.axis)

    def _add(self, block: Any) -> None:
        wanted = self._none
        if block.ndim != wanted.ndim or block.dtype != wanted.dtype:
            refuse(f"it makes of {self.rows.name} an array of another dtype or number of axes")
        rows = np.moveaxis(block, self.axis, 0)
        one_by_one = self.rows.outermost().preallocated.held is not None  # what is read as a whole takes each by itself
        if len(rows) == 1 or one_by_one:
            for row in rows:
                self.rows.append(row)
        elif len(rows):
            self.rows.add(Entry(rows, True, len(rows), False))

    def __getitem__(self, index: Any) -> Any:
        places = list(index) if type(index) is tuple else [index]
        if any(type(x) is slice and not _is_of_last(x) for x in places[self.axis :][:1]):
            return self.whole(True)[index]
        if len(places) <= self.axis or any(x is None or x is Ellipsis for x in places):
            self._refuse()
        place = places[self.axis]
        found = self.rows[place]
        if type(place) is not slice:
            del places[self.axis]
            return found[tuple(places)] if places else found
        places[self.axis] = slice(None)
        return np.stack(found, self.axis)[tuple(places)] if found else self._none[tuple(places)]

    def whole(self, copy: bool) -> Any:
        """Return the array as it is now, one of its own or one that is read at once."""
        return np.moveaxis(self.rows.as_array(copy), 0, self.axis) if self.axis else self.rows.as_array(copy)

    def length(self) -> Any:
        """Return how long the first axis is."""
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._none.ndim

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self._none.dtype

    @property
    def shape(self) -> tuple:
        """How long each axis is."""
        found = list(self._none.shape)
        found[self.axis] = self.rows.length()
        return tuple(found)

    @property
    def size(self) -> Any:
        """How many elements there are."""
        each = self._none.shape[: self.axis] + self._none.shape[self.axis + 1 :]
        return self.rows.length() * int(np.prod(each)) if each else self.rows.length()

    def __getattr__(self, name: str) -> Any:
        if name not in SUMMARIES:
            self._refuse()
        return getattr(self.whole(False), name)

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it reads {self.rows.name}, which it makes longer, as a whole")

    __iter__ = __len__ = __contains__ = __add__ = __radd__ = __mul__ = __eq__ = __bool__ = _refuse
    __setitem__ = __array__ = __array_ufunc__ = __array_function__ = _refuse
    __lt__ = __repr__ = __format__ = _refuse
    __hash__ = object.__hash__


STANDING.add(GrowingArray)


def growing_operand(first: Any) -> GrowingArray | None:
    """Return the array that grows that a function is given first, or as the first of several; None if it is none."""
    if type(first) in (list, tuple) and first:
        first = first[0]
    return first if type(first) is GrowingArray else None


def _is_of_last(x: slice) -> bool:
    """Return whether a slice takes a known number of the last elements."""
    return type(x.start) is int and x.start < 0 and x.stop is None and x.step in (None, 1)


def find_axis(before: Any, now: Any) -> int | None:
    """Return the axis along which an array is longer than another one; None if it is no longer one of its kind."""
    if before.ndim != now.ndim or before.dtype != now.dtype:
        return None
    longer = [k for k, (m, n) in enumerate(zip(before.shape, now.shape, strict=True)) if m != n]
    return longer[0] if len(longer) == 1 and before.shape[longer[0]] < now.shape[longer[0]] else None


def let_grow(x: Any, name: Any, axis: int, renewed: bool) -> GrowingArray:
    """Return what stands for an array in the steps that make it longer along an axis, as another object each time."""
    none = buffer(np.zeros([0 if k == axis else n for k, n in enumerate(x.shape)], x.dtype))
    return GrowingArray(GrowingList(np.moveaxis(x, axis, 0), name), none, axis, 0 if renewed else None)


def let_grow_inside(x: GrowingArray, name: Any) -> GrowingArray:
    """Return what stands in the steps of an inner loop for what an outer one's steps make longer."""
    return GrowingArray(GrowingList([], name, x.rows), x._none, x.axis)

