"""Lists to which each step of a loop appends: what stands for one in a step.

What the steps append is stacked as a result of the loop, and behind it the list gets the rows (`growth.py`). A step
may read the last elements, ``ys[-1]``, which are carried from step to step, and in a loop over numbers also
``ys[i - 1]``, if that is as far from the end in all steps. A step that reads others, ``ys[len(ys) // 2]``, or all of
them, ``np.mean(ys)``, has them in an array preallocated for all that the steps append, from the next look on
(`preallocated.py`). Whatever else it asks of the list ends the capture.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.capture.body.objects import close_objects, open_objects
from fad.capture.body.places import UNBOUND, Attribute, bind_name
from fad.capture.body.state import is_handle, is_state, type_example
from fad.capture.body.values import STANDING, as_number
from fad.capture.containers.grown_entries import Entry, is_number, view_element
from fad.capture.containers.preallocated import Preallocated
from fad.control_flow.bodies.intervals import assume, interval
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer
from fad.staging.mixed_types import note_mixed

_MANY = 1 << 40  # steps, where it is not known how many there are


class GrowingList:
    """Stands for a list in a step: it takes what is appended, and gives its last elements."""

    __slots__ = (
        "_plain", "name", "body", "level", "ways", "entries", "end", "sure", "tail", "wanted", "number", "rate",
        "steady", "start", "counts", "missed", "preallocated", "_outer",
    )  # fmt: skip

    def __init__(self, plain: Any, name: Any, outer: GrowingList | None = None):
        self._plain = plain
        self._outer = outer  # for which it stands in the steps of an inner loop
        self.name = name
        self.body: Any = None  # of the step that is run
        self.tail: dict[int, Any] = {}  # the last elements before the step that are carried, by their distance
        self.wanted: set[int] = set()  # those that are not carried, and that the step has read
        self.rate: int | None = None  # how many elements a step appends, once one has been run
        self.steady = True  # whether each step appends all of these
        self.start: Any = None  # how many elements there are before the step, if that is carried
        self.counts = False  # whether the step has asked for that while it is not
        self.preallocated = Preallocated(plain, name)
        self.missed = 0  # how many elements there have to be before the loop for what it has asked for
        self.begin(None, None)

    @property
    def before(self) -> int:
        """How many elements there are before the loop."""
        return len(self._plain)

    def begin(self, body: Any, number: Any) -> None:
        """Begin the step of a number; of none, if there is no body."""
        self.body = body
        self.level: int = 0 if body is None else body.level
        self.ways: int = 0 if body is None else body.ways
        self.number = number
        self.entries: list[Entry] = []  # what this step appends, or may append
        self.end = 0  # of the entries before the place where the step is
        self.sure: frozenset[int] = frozenset()  # the places of those that it has appended whichever way it went

    def append(self, x: Any) -> None:
        """Append an element."""
        self.add(Entry(x, True))

    def extend(self, xs: Any) -> None:
        """Append some elements."""
        if type(xs) not in (list, tuple):
            refuse(f"it extends {self.name} by a {type(xs).__name__}")
        for x in xs:
            self.append(x)

    def __iadd__(self, xs: Any) -> GrowingList:  # type: ignore[misc]
        self.extend(xs)
        return self

    def add(self, new: Entry) -> None:
        """Append what is at one place of a step."""
        body = current()
        while body is not self.body and body.around is not None and not body.level:  # type: ignore[union-attr]
            body = body.around  # type: ignore[union-attr]
        if body is not self.body or body.level != self.level:
            refuse(f"it appends to {self.name} in an inner loop")
        if new.count is None:  # what an inner loop appends it has put there
            self.outermost().preallocated.put(new, self.length)
        if current() is body and body.ways == self.ways:  # type: ignore[union-attr]
            self.entries.append(new)
        else:
            self._add_in_way(new)
        if new.taken is True:
            self.sure |= {self.end}
        self.end += 1

    def _add_in_way(self, new: Entry) -> None:
        """Let one way of an if append something: of its entry that is a change, like that of an attribute."""
        while self.end < len(self.entries) and self.entries[self.end].count != new.count:
            self.end += 1  # of the other way
        taken = new.taken if new.count is None or new.taken is not True else np.ones(new.count, bool)
        if self.end == len(self.entries):
            value = close_objects(type_example(open_objects(new.value)))
            made = Entry(value, type_example(taken), new.count, new.numbers)
            self.body.made[id(made)] = made  # behind the if nobody else sees it
            self.entries.append(made)
        entry, body = self.entries[self.end], current()
        if not entry.is_like(new):
            refuse(f"it appends numbers of Python's and of NumPy's to {self.name}")
        if body is self.body:  # a look at the step, which leaves what either way does: nothing that was known before
            fresh_value = tree.map(lambda leaf: body.trace.new(example(leaf)), open_objects(new.value))
            entry.value, entry.taken = close_objects(fresh_value), body.trace.new(type_example(taken))
            return
        for place, value in ((Attribute(entry, "value"), new.value), (Attribute(entry, "taken"), taken)):
            body.note_change(place)  # type: ignore[union-attr]
            bind_name(place, value)

    def count(self) -> int:
        """Return how many elements the step has appended, or may have."""
        return sum(entry.size for entry in self.entries)

    def is_steady(self) -> bool:
        """Return whether the step has appended all its entries, whichever way it went."""
        return len(self.sure) == len(self.entries)

    def last(self, distance: int) -> Any:
        """Return the element at so many places from the end, 1 for the last one; UNBOUND if there is none."""
        if self.body is None:
            return self._first(distance)
        return self._last_of(self.end, distance)

    def _last_of(self, end: int, distance: int) -> Any:
        """Return the element at so many places from the end of the first entries."""
        if not end:
            return self._before(distance)
        entry = self.entries[end - 1]
        if entry.count is not None:
            if entry.taken is not True or end - 1 not in self.sure:
                refuse(f"it reads an element of {self.name}, to which an inner loop appends")
            if distance > entry.count:
                return self._last_of(end - 1, distance - entry.count)
            return view_element(entry.value, entry.numbers, (entry.count - distance,))
        chosen = entry.value if distance == 1 else self._last_of(end - 1, distance - 1)
        if end - 1 in self.sure:
            return chosen
        other = self._last_of(end - 1, distance)
        if chosen is UNBOUND or other is UNBOUND:
            return UNBOUND
        return self._select(entry.taken, chosen, other)

    def _select(self, taken: Any, x: Any, y: Any) -> Any:
        """Return one number or another, as the step has appended one or not."""
        if any(not is_state(z) or type(z) in (list, tuple, dict) or np.ndim(z) or is_handle(z) for z in (x, y)):
            refuse(f"it reads an element of {self.name}, to which it appends in an if, that is no number")
        kinds = {example(z).__class__ for z in (x, y)}
        if len(kinds) > 1 and not kinds <= {float, np.float64}:
            refuse(f"it reads an element of {self.name}, whose numbers are of several types")
        if len(kinds) > 1:
            note_mixed()
        found = np.where(taken, x, y)[()]
        return as_number(found) if is_number(x) and is_number(y) else found

    def _before(self, distance: int) -> Any:
        """Return the element at so many places from the end of the list before the step."""
        if distance in self.tail:
            return self.tail[distance]
        found = self._first(distance)
        if found is not UNBOUND:
            self.wanted.add(distance)
        return found

    def _first(self, distance: int) -> Any:
        """Return the element at so many places from the end before the loop."""
        if self._outer is not None:
            return self._outer.last(distance)
        return self._plain[-distance] if distance <= len(self._plain) else UNBOUND

    def find_wanted(self) -> list[int]:
        """Return the distances of the elements that are to be carried besides those that are, and forget them.

        What is far from the end before a step was nearer to it before the step before.
        """
        wanted = {*self.wanted, *self.tail}
        rate = self.rate if self.steady else 1
        wanted |= {k for far in wanted for k in range(far, 0, -rate)} if rate else set()
        self.wanted = set()
        return sorted(wanted - self.tail.keys())

    def outermost(self) -> GrowingList:
        """Return what stands for the list in the outermost loop, itself where that is this one."""
        return self if self._outer is None else self._outer.outermost()

    def length(self) -> Any:
        """Return how many elements there are now."""
        entries = self.entries[: self.end]
        before = len(self._plain) if self._outer is None else self._outer.length()
        if self.body is None:
            return before
        if self.start is not None:
            return self._count_from(self.start, entries)
        known = before + sum(entry.size for entry in entries)
        if self.rate is None:  # the first look does not know how many the steps before have appended
            found = self.body.trace.new(example(known))
            assume(found, known, known + max(self.preallocated.steps or 0, 1))
            return found
        if not self.steady and self._outer is not None:
            refuse(f"it asks for the length of {self.name}, to which an inner loop appends in an if")
        if not self.steady:
            self.counts = True
            found = self.body.trace.new(example(known))
            self.assume_bounds(found)
            return found
        return as_number(self.number * self.rate) + known if self.rate else known

    def assume_bounds(self, length: Any) -> None:
        """Note between which numbers a length is that the loop carries."""
        assume(length, self.before, self.before + (self.rate or 1) * (self.preallocated.steps or _MANY) + 1)

    def _count_from(self, start: Any, entries: list[Entry]) -> Any:
        """Return a number of elements and how many of some entries there are."""
        for k, entry in enumerate(entries):
            if k in self.sure:
                start = start + entry.size
            elif entry.count is None:
                start = as_number(np.add(start, entry.taken))
            else:
                start = as_number(np.add(start, np.sum(entry.taken)))
        return start

    def __getitem__(self, index: Any) -> Any:
        if type(index) is slice:
            first, last, step = index.start, index.stop, index.step
            if type(first) is not int or first >= 0 or last is not None or step not in (None, 1):
                refuse(f"it takes a part of {self.name}, to which it appends")
            return [self._find(k) for k in range(-first, 0, -1)]  # the first tells how many are missing
        if type(index) is int and index >= 0 and index < len(self._plain):
            return self._plain[index]
        distance = -index if type(index) is int and index < 0 else self._distance(index)
        return self.at(index) if distance is None else self._find(distance)

    def at(self, index: Any) -> Any:
        """Return the element at a place that no constant distance from the end is."""
        self._check_known_whole()
        return self.outermost().preallocated.take(index, self.length())

    def is_whole(self) -> bool:
        """Return whether its elements can be run over; where an array has to be made first, the look is run again."""
        if current() is None:
            return False
        self._check_known_whole()
        return True

    def as_array(self, copy: bool = True) -> Any:
        """Return all elements there are now as an array, one of its own or one that is read at once."""
        self._check_known_whole()
        return self.outermost().preallocated.part(self.length(), copy)

    def _check_known_whole(self) -> None:
        first = self.outermost()
        if not first.preallocated.is_wanted():
            self._refuse()
        first.missed = first.missed or int(not len(first._plain))
        first.preallocated.check()

    def _find(self, distance: int) -> Any:
        found = self.last(distance)
        if found is UNBOUND:
            self.missed = max(self.missed, distance)
            refuse(f"it reads an element of {self.name} that only later steps have")
        return found

    def _distance(self, index: Any) -> int | None:
        """Return how far a place is from the end of the list, if that is the same in all steps."""
        if type(index) is Tracer and not index.shape and index.dtype.kind in "iu":
            if self.rate is None:
                return 1  # in a first look any element does
            (least, most), first = interval(self.length() - index), interval(index)[0]
            if least is not None and least == most and least > 0:
                if first is not None and first >= 0:
                    return least
                self.missed = 1  # behind the first steps it may be a place
                refuse(f"it reads an element of {self.name} that only later steps have")
            return None
        return refuse(f"it reads an element of {self.name} at no constant distance from its end")

    def __bool__(self) -> bool:
        self.missed = int(not (self._plain or self.sure))
        return not self.missed or self._refuse()

    def truth(self) -> Any:
        """Return whether there is any element, as a condition."""
        return True if self._plain or self.sure else np.greater(self.length(), 0)

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it reads {self.name}, to which it appends, as a whole")

    __iter__ = __len__ = __contains__ = __add__ = __radd__ = __mul__ = __eq__ = _refuse
    __setitem__ = __delitem__ = __reversed__ = __array__ = __lt__ = __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


STANDING.add(GrowingList)


def truth_of(x: Any) -> Any:
    """Return a condition: of a list that grows, whether there is anything in it."""
    return x.truth() if type(x) is GrowingList else x


class Last:
    """The element of a growing list at some distance from its end, as a place of the loop's state."""

    __slots__ = ("_list", "_distance", "_name")

    def __init__(self, growing: GrowingList, name: Any, distance: int):
        self._list = growing
        self._name = name
        self._distance = distance

    @property
    def cell_contents(self) -> Any:
        """What the element is; ValueError if there is none."""
        found = self._list.last(self._distance)
        if found is UNBOUND:
            raise ValueError
        return found

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self._list.tail[self._distance] = value

    @cell_contents.deleter
    def cell_contents(self) -> None:
        self._list.tail.pop(self._distance, None)

    def __str__(self) -> str:
        return f"{self._name}[-{self._distance}]"


class Length:
    """The length of a growing list as a place of the loop's state, where an ``if`` decides what is appended."""

    __slots__ = ("_list",)

    def __init__(self, growing: GrowingList):
        self._list = growing

    @property
    def cell_contents(self) -> Any:
        """How many elements there are."""
        return self._list.length()

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self._list.start = value
        self._list.assume_bounds(value)

    @cell_contents.deleter
    def cell_contents(self) -> None:
        self._list.start = None

    def __str__(self) -> str:
        return f"len({self._list.name})"
