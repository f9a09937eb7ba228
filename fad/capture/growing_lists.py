"""Lists to which each step of a loop appends: what stands for one in a step, and what becomes of it behind the loop.

What the steps append is stacked as a result of the loop, and behind it the list gets the rows. A step may read the last
elements, ``ys[-1]``, which are carried from step to step, and in a loop over numbers also ``ys[i - 1]``, if that is
as far from the end in all steps. Whatever else it asks of the list ends the capture.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fad import tree
from fad.capture.context import current, refuse
from fad.capture.objects import close_objects, count_held, is_known_alone, open_objects
from fad.capture.places import UNBOUND, Attribute, Cell, bind_name, content, is_exclusive
from fad.capture.sites import Loop
from fad.capture.state import as_leaf, fresh, is_handle, is_state, type_example
from fad.capture.values import STANDING, as_number
from fad.control_flow.intervals import interval
from fad.control_flow.subgraph import example
from fad.core.tracer import Tracer, outcome


class Row(NamedTuple):
    """What a step appends to a list at one place as a value, and whether it does; None if it is sure to."""

    value: Any
    taken: Any


class Entry:
    """What a step appends to a list at one place, if it does."""

    __slots__ = ("value", "taken")

    def __init__(self, value: Any, taken: Any):
        self.value = value
        self.taken = taken  # whether this step appends it: traced, where an if decides


class GrowingList:
    """Stands for a list in a step: it takes what is appended, and gives its last elements."""

    __slots__ = (
        "_plain", "name", "body", "level", "ways", "entries", "end", "sure", "tail", "wanted", "number", "rate",
        "steady",
    )  # fmt: skip

    def __init__(self, plain: list, name: Any):
        self._plain = plain
        self.name = name
        self.body: Any = None  # of the step that is run
        self.tail: dict[int, Any] = {}  # the last elements before the step that are carried, by their distance
        self.wanted: set[int] = set()  # those that are not carried, and that the step has read
        self.rate: int | None = None  # how many elements a step appends, once one has been run
        self.steady = True  # whether each step appends all of these
        self.begin(None, None)

    def begin(self, body: Any, number: Any) -> None:
        """Begin the step of a number; of none, if there is no body."""
        self.body = body
        self.level, self.ways = (0, 0) if body is None else (body.level, body.ways)
        self.number = number
        self.entries: list[Entry] = []  # what this step appends, or may append
        self.end = 0  # of the entries before the place where the step is
        self.sure: frozenset[int] = frozenset()  # the places of those that it has appended whichever way it went

    def append(self, x: Any) -> None:
        """Append an element."""
        body = current()
        while body is not self.body and body.around is not None and not body.level:  # type: ignore[union-attr]
            body = body.around  # type: ignore[union-attr]
        if body is not self.body or body.level != self.level:
            refuse(f"it appends to {self.name} in an inner loop")
        if current() is body and body.ways == self.ways:
            self.entries.append(Entry(x, True))
        else:
            self._append_in_way(x)
        self.sure |= {self.end}
        self.end += 1

    def _append_in_way(self, x: Any) -> None:
        """Let one way of an if append an element: of its entry that is a change, like that of an attribute."""
        if self.end == len(self.entries):
            made = Entry(close_objects(type_example(open_objects(x))), False)
            self.body.made[id(made)] = made  # behind the if nobody else sees it
            self.entries.append(made)
        entry, body = self.entries[self.end], current()
        if body is self.body:  # a look at the step, which leaves what either way does
            entry.value, entry.taken = x, body.trace.new(False)
            return
        for place, value in ((Attribute(entry, "value"), x), (Attribute(entry, "taken"), True)):
            body.note_change(place)  # type: ignore[union-attr]
            bind_name(place, value)

    def is_steady(self) -> bool:
        """Return whether the step has appended all its entries, whichever way it went."""
        return len(self.sure) == len(self.entries)

    def last(self, distance: int) -> Any:
        """Return the element at so many places from the end, 1 for the last one; UNBOUND if there is none."""
        if self.body is None:
            return self._plain[-distance] if distance <= len(self._plain) else UNBOUND
        return self._last_of(self.end, distance)

    def _last_of(self, end: int, distance: int) -> Any:
        """Return the element at so many places from the end of the first entries."""
        if not end:
            return self._before(distance)
        entry = self.entries[end - 1]
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
        found = np.where(taken, x, y)[()]
        return as_number(found) if _is_number(x) and _is_number(y) else found

    def _before(self, distance: int) -> Any:
        """Return the element at so many places from the end of the list before the step."""
        if distance in self.tail:
            return self.tail[distance]
        if distance > len(self._plain):
            return UNBOUND
        self.wanted.add(distance)
        return self._plain[-distance]

    def find_wanted(self) -> list[int]:
        """Return the distances of the elements that are to be carried besides those that are, and forget them.

        What is far from the end before a step was nearer to it before the step before.
        """
        wanted = {*self.wanted, *self.tail}
        rate = self.rate if self.steady else 1
        wanted |= {k for far in wanted for k in range(far, 0, -rate) if rate}  # type: ignore[operator]
        self.wanted = set()
        return sorted(wanted - self.tail.keys())

    def length(self) -> Any:
        """Return how many elements there are now."""
        known = len(self._plain) + self.end
        if self.rate is None:  # the first look does not know how many the steps before have appended
            return self.body.trace.new(known)
        if not self.steady:
            refuse(f"it asks for the length of {self.name}, to which it appends in an if")
        return as_number(self.number * self.rate) + known if self.rate else known

    def __getitem__(self, index: Any) -> Any:
        if type(index) is slice:
            first, last, step = index.start, index.stop, index.step
            if type(first) is not int or first >= 0 or last is not None or step not in (None, 1):
                refuse(f"it takes a part of {self.name}, to which it appends")
            return [self._find(k) for k in range(-first, 0, -1)]
        if type(index) is int and index >= 0 and index < len(self._plain):
            return self._plain[index]
        return self._find(-index if type(index) is int and index < 0 else self._distance(index))

    def _find(self, distance: int) -> Any:
        found = self.last(distance)
        if found is UNBOUND:
            refuse(f"it reads an element of {self.name} that only later steps have")
        return found

    def _distance(self, index: Any) -> int:
        """Return how far a place is from the end of the list, the same in all steps."""
        if type(index) is Tracer and not index.shape and index.dtype.kind in "iu":
            if self.rate is None:
                return 1  # in a first look any element does
            (least, most), first = interval(self.length() - index), interval(index)[0]
            if least is not None and least == most and least > 0 and first is not None and first >= 0:
                return least
        return refuse(f"it reads an element of {self.name} at no constant distance from its end")

    def __bool__(self) -> bool:
        return bool(self._plain or self.sure) or self._refuse()

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it reads {self.name}, to which it appends, as a whole")

    __iter__ = __len__ = __contains__ = __add__ = __radd__ = __iadd__ = __mul__ = __eq__ = _refuse
    __setitem__ = __delitem__ = __reversed__ = __array__ = __lt__ = __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


STANDING.add(GrowingList)


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


class GrowingLists:
    """The lists to which the steps of one loop append, by their names or the parts of objects that they are."""

    def __init__(self, site: Loop, cells: dict[Any, Cell]):
        self.known: dict[Any, tuple[Cell, list, GrowingList]] = {}
        # Whether it is known, or can be asked, how many steps there are.
        self.allowed = current() is None or (site.kind == "for" and not site.leaves)
        self.appended: dict[Any, list] = {}  # what the last step that was run has appended
        self.rows: dict[Any, list] = {}  # the same as values
        self._numbers: Any = {}  # which of these are Python's numbers
        around = current()
        self._inside = around is not None  # then nobody can be asked how many elements there are
        for name in site.appended:
            if name in cells and (around is None or id(content(cells[name])) in around.made):
                self.add(name, cells[name])

    def add(self, name: Any, cell: Cell) -> bool:
        """Let what a place is bound to grow, if it is a list that nobody else knows; return whether it is."""
        if name in self.known or type(content(cell)) is not list or not is_exclusive(cell, count_held(cell)):
            return False
        plain = content(cell)
        self.known[name] = (cell, plain, GrowingList(plain, name))
        return True

    @contextlib.contextmanager
    def growing(self, body: Any, number: Any) -> Iterator[None]:
        """Let the lists be what a step appends to for the length of a block, if it is in a body."""
        if body is None:
            yield
            return
        outer, body.grown = body.grown, {} if self.allowed else None
        around, body.growing = body.growing, [*body.growing]
        try:
            for cell, _, growing in self.known.values() if self.allowed else ():
                growing.begin(body, number)
                bind_name(cell, growing)
                body.growing.append(growing)
            yield
        finally:
            body.grown, body.growing = outer, around
            for cell, plain, growing in self.known.values():
                growing.begin(None, None)
                bind_name(cell, plain)

    def look(self) -> tuple[bool, list[Last]]:
        """Return whether a first look showed something new, and the elements that are to be carried."""
        self.note_appended()
        changed, wanted = False, []
        for name, (_, _, growing) in self.known.items():
            found = len(growing.entries), growing.is_steady()
            changed = changed or found != (growing.rate, growing.steady)
            growing.rate, growing.steady = found
            wanted += [Last(growing, name, k) for k in growing.find_wanted()]
        return changed or bool(wanted), wanted

    def note_appended(self) -> None:
        """Note what the step that was run has appended, before it has gone."""
        self.appended = {name: [e.value for e in growing.entries] for name, (_, _, growing) in self.known.items()}

    def find_rows(self) -> None:
        """Note what a step has appended as it is at its end; refuse a step that appends more than the one looked at."""
        self.check_known()
        for name, (_, _, growing) in self.known.items():
            if (growing.rate, growing.steady) != (len(growing.entries), growing.is_steady()):
                refuse(f"it appends to {name} in one step and not in another")
            self._check_countable(growing)
        self.rows = {
            name: [_find_row(entry, k in growing.sure) for k, entry in enumerate(growing.entries)]
            for name, (_, _, growing) in self.known.items()
        }
        self._numbers = tree.map(_is_number, self.rows)

    def check_known(self) -> None:
        """Refuse code that has read other elements than a first look did."""
        for name, (_, _, growing) in self.known.items():
            if growing.wanted:
                refuse(f"it reads {name} in one step otherwise than in another")

    def _check_countable(self, growing: GrowingList) -> None:
        if self._inside and not growing.is_steady():
            refuse(f"it appends to {growing.name} in an if, and is within another loop")

    def repeat(self, n: int) -> None:
        """Let each list hold as many elements as n steps append, those of the one that was run over and over."""
        for name, (_, plain, growing) in self.known.items():
            self._check_countable(growing)
            plain += self.appended[name] * n

    def extend(self, rows: dict[Any, list], n: int) -> None:
        """Append to the lists what all steps do, given it in stacks."""
        for name, values in rows.items():
            plain, numbers = self.known[name][1], self._numbers[name]
            before = len(plain)
            taken = [outcome(row.taken) if row.taken is not None else np.ones(n, bool) for row in values]
            for k, j in np.argwhere(np.stack(taken, axis=1)).tolist() if values else ():
                plain.append(_make_element(values[j].value, numbers[j].value, k))
            self.appended[name] = plain[before:]


def _make_element(rows: Any, numbers: Any, k: int) -> Any:
    """Return what one of the steps has appended, all given in stacks; `numbers` says which are Python's."""
    found = tree.map(lambda y, number: as_number(y[k]) if number else y[k], rows, numbers)
    return close_objects(fresh(found))


def _find_row(entry: Entry, sure: bool) -> Row:
    """Return what a step appends to a list, as it is at its end."""
    place = Attribute(entry, "value")
    x = open_objects(content(place))
    if not is_state(x):
        refuse("it appends something to a list that is no array or number")
    if any(type(leaf) is np.ndarray or (is_handle(leaf) and not leaf.shape) for leaf in tree.leaves(x)):
        refuse("it appends an array from outside, or one without axes, to a list")
    if not is_known_alone(place):
        refuse("it appends an object to a list that may have another name")
    return Row(tree.map(as_leaf, x), None if sure else entry.taken)


def _is_number(x: Any) -> bool:
    """Return whether a value is a number of Python's, and not of NumPy's."""
    return example(x).__class__ in (bool, int, float, complex)  # of those that stand for one, too


class Ways:
    """The lists to which the ways of an ``if`` append: each way begins where they end before it."""

    def __init__(self) -> None:
        body = current()
        self._before = [(x, x.end, x.sure) for x in (() if body is None else body.growing)]
        self._ends = [end for _, end, _ in self._before]  # behind the way that appends most
        self._sure: list[list[frozenset]] = [[] for _ in self._before]  # of each way

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Let a block be one of the ways."""
        for x, end, sure in self._before:
            x.end, x.sure = end, sure
        yield
        for k, (x, _, _) in enumerate(self._before):
            self._ends[k] = max(self._ends[k], x.end)
            self._sure[k].append(x.sure)

    def finish(self) -> None:
        """Go on behind the ways: there are the elements of each, and those that all append are there for sure."""
        for k, (x, _, _) in enumerate(self._before):
            x.end, x.sure = self._ends[k], frozenset.intersection(*self._sure[k])
