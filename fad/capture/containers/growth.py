"""What grows in the steps of one loop: lists to which they append, and arrays that they make longer.

In the steps something stands for each, which gathers what they append. Behind the loop the list gets the elements, and
the array is joined with the rows.
"""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fad import tree
from fad.capture.body.context import bind_result, current, refuse
from fad.capture.body.held_arrays import HeldArrays
from fad.capture.body.objects import count_held
from fad.capture.body.places import Attribute, Cell, Item, Variable, bind_name, content, is_exclusive
from fad.capture.body.state import fresh, is_handle
from fad.capture.containers.growing_arrays import GrowingArray, find_axis, let_grow, let_grow_inside
from fad.capture.containers.growing_dicts import FilledList, GrowingDict
from fad.capture.containers.growing_lists import GrowingList, Last, Length
from fad.capture.containers.grown_entries import (
    Entry,
    Row,
    elements_of,
    find_row,
    is_number,
    join_rows,
    repeat_entries,
    take_elements,
    take_rows,
)
from fad.capture.containers.prepended_lists import PrependedList
from fad.capture.rewriting.sites import Loop


class _Grown(NamedTuple):
    """A place that is bound to something that grows."""

    cell: Cell
    plain: Any  # what it is bound to outside of the steps: a list or array, or what stands for one in an outer loop
    growing: GrowingList  # what takes the elements in the steps
    stands: Any  # what the place is bound to in them

    @property
    def outer(self) -> GrowingList | None:
        """What takes the elements in the steps of an outer loop, if it grows in these."""
        if type(self.plain) in (GrowingArray, GrowingDict, FilledList):
            return self.plain.rows
        return self.plain if type(self.plain) is GrowingList else None


def _is_in_vain(x: _Grown) -> bool:
    """Return whether a look could not be made with what stands for a list or dictionary that steps fill."""
    if type(x.stands) is FilledList:
        return type(x.plain) is list
    return type(x.plain) is dict and not x.growing.missed


def _shape_of(x: Any) -> Any:
    """Return an array of the shape and type of another one that holds nothing; None if it is none."""
    known = is_handle(x) or type(x) is np.ndarray
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if known else None


class Growth:
    """What grows in the steps of one loop, by the names or the parts of objects that are bound to it."""

    def __init__(self, site: Loop, cells: dict[Any, Cell]):
        self.known: dict[Any, _Grown] = {}
        self._steps: int | None = None  # how many the loop takes at most, if that is known
        # Whether it is known, or can be asked, how many steps there are.
        self.allowed = current() is None or (site.kind == "for" and not site.leaves)
        self._arrays = {name: cells[name] for name in site.joined if name in cells}
        self._shapes = {name: _shape_of(content(cell)) for name, cell in self._arrays.items()}
        self.appended: dict[Any, list] = {}  # what the last step that was run has appended
        self.rows: dict[Any, list] = {}  # the same as values
        self._entries: dict[Any, list[Entry]] = {}  # the same as it stood in the step, or of how many and which types
        self._steady: dict[Any, bool] = {}  # whether the step is sure to append all that
        around = current()
        self._inside = around is not None  # then nobody can be asked how many elements there are
        for name in site.appended:
            if name in site.rebound:
                continue  # it is a list of each step's own, or carried as a value
            x = content(cells[name]) if name in cells else None
            if type(x) is GrowingList:
                inner = GrowingList([], name, x)
                self.known[name] = _Grown(cells[name], x, inner, inner)
            elif name in cells and (around is None or id(x) in around.made):
                del x
                self.add(name, cells[name])
        for name in site.prepended if not self._inside else ():
            if name in cells:
                self._add_prepended(name, cells[name])
        self._fillable: dict[int, Any] = {}  # names of what steps may fill, by its identity
        self._filled: dict[int, Any] = {}  # what a look has shown to be filled: a place, and its direction
        for name in site.filled:
            if name in cells:
                self._add_filled(name, cells[name])
        for name, cell in self._arrays.items():
            y = content(cell)
            if type(y) is GrowingArray:
                inside = let_grow_inside(y, name)
                self.known[name] = _Grown(cell, y, inside.rows, inside)

    def add(self, name: Any, cell: Cell) -> bool:
        """Let what a place is bound to grow, if it is a list that nobody else knows; return whether it is."""
        if name in self.known or type(content(cell)) is not list or not is_exclusive(cell, count_held(cell)):
            return False
        plain = content(cell)
        growing = GrowingList(plain, name)
        self.known[name] = _Grown(cell, plain, growing, growing)
        return True

    def _add_prepended(self, name: Any, cell: Cell) -> None:
        """Let grow in front what a name is bound to, if it is a list or deque that nobody else knows."""
        x = content(cell)
        if type(x) is list or (type(x) is collections.deque and x.maxlen is None):
            del x
            if is_exclusive(cell, count_held(cell)):
                stands = PrependedList(content(cell), name)
                self.known[name] = _Grown(cell, content(cell), stands.rows, stands)

    def _add_filled(self, name: Any, cell: Cell) -> None:
        """Note that a dictionary or list may be filled that a name is bound to, and that nobody else knows."""
        if type(content(cell)) in (GrowingDict, FilledList):
            x = content(cell)
            inner = GrowingList([], name, x.rows)
            self.known[name] = _Grown(cell, x, inner, x.fill_inside(inner))
        elif type(content(cell)) in (dict, list) and not self._inside and is_exclusive(cell, count_held(cell)):
            self._fillable[id(content(cell))] = name

    def fill(self, cells: dict[Any, Cell]) -> bool:
        """Let be filled of what the last look has shown it; return whether there is anything."""
        filled = {key for key in self._filled.keys() & self._fillable.keys() if self._filled[key] is not None}
        for key in filled:
            name = self._fillable.pop(key)
            if name not in self.known:
                plain = content(cells[name])
                stands = (GrowingDict if type(plain) is dict else FilledList).of(plain, name, *self._filled[key])
                self.known[name] = _Grown(cells[name], plain, stands.rows, stands)
        return bool(filled)

    def note_steps(self, n: Any) -> None:
        """Note how many steps the loop takes at most."""
        self._steps = n if type(n) is int else None
        for x in self.known.values():
            x.growing.preallocated.steps = self._steps

    def find_capacity(self) -> int | None:
        """Return for how many steps arrays of all elements have places; None if there are none."""
        return self._steps if any(x.growing.preallocated.held is not None for x in self.known.values()) else None

    def held(self) -> dict[HeldArrays, list]:
        """Return what the lists hold for which there are arrays of all elements, with the lists."""
        arrays = [(x.growing.preallocated, x.plain) for x in self.known.values()]
        return {x.held: plain for x, plain in arrays if x.held is not None}

    def preallocate(self) -> bool:
        """Make arrays of the elements that the last look has read otherwise than as the last ones."""
        self.note_steps(self._steps)
        made = [x.growing.preallocated.make(x.growing.rate) for x in self.known.values()]
        return any(made)

    def unfill(self) -> bool:
        """Let nothing be filled any more of which one look could not be made so; return whether there was anything."""
        found = [name for name, x in self.known.items() if _is_in_vain(x)]
        for name in found:
            del self.known[name]
        return bool(found)

    def join(self, name: Any, before: Any, now: Any) -> bool:
        """Let the array that a name is bound to grow, if a step makes it longer; return whether it does."""
        part = type(name) in (Attribute, Item, Variable)
        if not (part or name in self._arrays) or not self.allowed or (self._inside and part):
            return False
        if not is_handle(now) or not (is_handle(before) or type(before) is np.ndarray):
            return False
        axis = find_axis(before, now)
        if axis is None:
            return False
        stands = let_grow(before, name, axis, part)
        self.known[name] = _Grown(name if part else self._arrays[name], before, stands.rows, stands)
        return True

    def find_renewed(self) -> set:
        """Return the parts of objects that are arrays that grow; refuse a step that leaves one bound to another."""
        found = {name for name, x in self.known.items() if type(x.stands) is GrowingArray and name is x.cell}
        for name in found:
            x = content(name)
            if type(x) is not GrowingArray or x.rows is not self.known[name].growing:
                refuse(f"it binds {name} to another array than the one that it makes longer")
        return found

    @contextlib.contextmanager
    def growing(self, body: Any, number: Any) -> Iterator[None]:
        """Let the lists be what a step appends to for the length of a block, if it is in a body."""
        if body is None:
            yield
            return
        held, body.held = body.held, [*body.held, *self.held()]
        outer, body.grown = body.grown, {} if self.allowed else None
        around, body.growing = body.growing, [*body.growing]
        fillable, filled = body.fillable, body.filled
        body.fillable, body.filled = fillable | (self._fillable.keys() if self.allowed else set()), {}
        try:
            for x in self.known.values() if self.allowed else ():
                x.growing.begin(body, number)
                bind_name(x.cell, x.stands)
                body.growing.append(x.growing)
            yield
        finally:
            body.grown, body.growing, body.held = outer, around, held
            for x in self.held():
                x.known.clear()
            self._filled = body.filled
            body.fillable, body.filled = fillable, filled | body.filled
            for x in self.known.values():
                x.growing.begin(None, None)
                bind_name(x.cell, x.plain)
                if isinstance(x.cell, Attribute | Item | Variable):
                    body.changed.pop(x.cell, None)  # it is bound to what it was

    def look(self) -> tuple[bool, list[Last | Length]]:
        """Return whether a first look showed something new, and the elements and lengths that are to be carried."""
        self.note_appended()
        changed = False
        wanted: list[Last | Length] = []
        for name, (_, _, growing, _) in self.known.items():
            if growing.body is None:  # it is new: the step did not append to it
                continue
            found = growing.count(), growing.is_steady()
            changed = changed or found != (growing.rate, growing.steady) or growing.preallocated.changed
            growing.rate, growing.steady, growing.preallocated.changed = *found, False
            wanted += [Last(growing, name, k) for k in growing.find_wanted()]
            if growing.counts and growing.start is None:
                wanted.append(Length(growing))
            growing.counts = False
        if None in current().filled.values():  # type: ignore[union-attr]
            refuse("it reads elements of a list at places that differ from step to step, and binds others")
        for x in self.known.values():
            if isinstance(x.stands, GrowingDict | PrependedList):
                changed, x.stands.changed = changed or x.stands.changed, False
        return self.preallocate() or changed or bool(wanted), wanted

    def count_missing(self) -> Callable[[], int] | None:
        """Return what counts the elements that there are up to those that a step has asked for; None if none miss."""
        for x in self.known.values():
            if wanted := x.growing.missed:
                return lambda x=x, wanted=wanted: min(len(content(x.cell)), wanted)  # type: ignore[misc]
        return None

    def note_appended(self) -> None:
        """Note what the step that was run has appended, before it has gone."""
        for name, (_, _, growing, _) in self.known.items():
            self.appended[name] = [entry.value for entry in growing.entries]
            self._entries[name], self._steady[name] = growing.entries, growing.is_steady()

    def forget_appended(self) -> None:
        """Forget what was noted, so that nobody here holds it."""
        self.appended, self._entries = {}, {}

    def find_rows(self) -> None:
        """Note what a step has appended as it is at its end; refuse a step that appends more than the one looked at."""
        self.check_known()
        for name, (_, _, growing, _) in self.known.items():
            if (growing.rate, growing.steady) != (growing.count(), growing.is_steady()):
                refuse(f"it appends to {name} in one step and not in another")
            self._check_countable(name)
            rows = [find_row(entry, k in growing.sure) for k, entry in enumerate(growing.entries)]
            self.rows[name] = rows
            self._entries[name] = [
                Entry(None, None, entry.count, tree.map(is_number, row.value) if entry.count is None else entry.numbers)
                for entry, row in zip(growing.entries, rows, strict=True)
            ]

    def check_known(self) -> None:
        """Refuse code that has read other elements than a first look did."""
        for name, (_, _, growing, _) in self.known.items():
            if growing.wanted or growing.counts:
                refuse(f"it reads {name} in one step otherwise than in another")

    def _check_countable(self, name: Any) -> None:
        if self._inside and self.known[name].outer is None and not self._steady[name]:
            refuse(f"it appends to {name} in an if, and is within another loop")

    def allow_masked(self, most: int | None) -> None:
        """Let the lists of loops around grow alone, for only these may have elements that some steps lack."""
        self.known = {name: x for name, x in self.known.items() if x.outer is not None}
        self.allowed = self.allowed and type(most) is int

    def repeat(self, n: Any, fixed: bool) -> None:
        """Let each list hold as many elements as n steps append, or at most, those of the one that was run again."""
        for name, x in self.known.items():
            self._check_countable(name)
            entries = self._entries[name]
            if x.outer is None:
                x.plain.extend([y for entry in entries for y in elements_of(entry)] * n)
            elif entries:
                x.outer.add(repeat_entries(entries, self._steady[name] and fixed, n))
        for name in self._arrays.keys() - self.known.keys() if fixed else ():
            self._repeat_join(self._arrays[name], self._shapes[name], n)

    def _repeat_join(self, cell: Cell, before: Any, n: int) -> None:
        """Let an array that a step made longer be as long as n steps make it."""
        now = content(cell)
        axis = find_axis(before, now) if before is not None and is_handle(now) else None
        if axis is not None:
            shape = [*before.shape]
            shape[axis] += n * (now.shape[axis] - shape[axis])
            bind_name(cell, fresh(current().trace.new(np.zeros(shape, now.dtype))))  # type: ignore[union-attr]

    def extend(self, rows: dict[Any, list[Row]], n: Any, most: Any) -> None:
        """Append to the lists what n steps do, at most so many, given it in stacks; make the arrays longer by it."""
        for name, found in rows.items():
            cell, plain, _, stands = self.known[name]
            outer, entries = self.known[name].outer, self._entries[name]
            if outer is not None:
                joined = [join_rows(found, entries, n, most)] if entries else []
                self.appended[name] = [entry.value for entry in joined]
                for entry in joined:
                    outer.add(entry)
            elif type(stands) is GrowingArray:
                self.appended[name] = []
                if entries:
                    bind_result(cell, stands.put_behind(plain, take_rows(found, entries, n)))
            elif isinstance(stands, GrowingDict | PrependedList):
                self.appended[name] = stands.fill(plain, take_elements(found, entries, n))
            else:
                before = len(plain)
                plain += take_elements(found, entries, n)
                self.appended[name] = plain[before:]


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
