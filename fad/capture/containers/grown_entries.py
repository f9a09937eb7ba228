"""What the steps of a loop append to a list: elements, and what inner loops append, in stacks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.capture.body.objects import close_objects, is_known_alone, open_objects
from fad.capture.body.places import Attribute, content
from fad.capture.body.state import as_leaf, fresh, is_handle, is_state
from fad.capture.body.values import as_number
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer, outcome
from fad.ops.layout.elements import note_element
from fad.staging.mixed_types import note_number


class Entry:
    """What a step appends to a list at one place, if it does: an element, or those of an inner loop, in stacks."""

    __slots__ = ("value", "taken", "count", "numbers")

    def __init__(self, value: Any, taken: Any, count: int | None = None, numbers: Any = None):
        self.value = value
        self.taken = taken  # whether this step appends it: traced, where an if decides
        self.count = count  # None of one element
        self.numbers = numbers  # of stacks: which leaves are Python's numbers

    def is_like(self, other: Entry) -> bool:
        """Return whether another entry holds elements of the same parts, with Python's numbers in the same places."""
        same = tree.structure(self.numbers) == tree.structure(other.numbers)
        return same and tree.leaves(self.numbers) == tree.leaves(other.numbers)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return 1 if self.count is None else self.count


class Row(NamedTuple):
    """What a step appends to a list at one place as a value, and whether it does; None if it is sure to."""

    value: Any
    taken: Any


def find_row(entry: Entry, sure: bool) -> Row:
    """Return what a step appends to a list, as it is at its end."""
    place = Attribute(entry, "value")
    x = open_objects(content(place))
    if not is_state(x):
        refuse("it appends something to a list that is no array or number")
    outside = () if entry.count is not None else tree.leaves(x)  # what inner loops append has been stacked
    if any(type(leaf) is np.ndarray or (is_handle(leaf) and not leaf.shape) for leaf in outside):
        refuse("it appends an array from outside, or one without axes, to a list")
    if not is_known_alone(place):
        refuse("it appends an object to a list that may have another name")
    return Row(tree.map(as_leaf, x), None if sure else entry.taken)


def ask_taken(row: Row, entry: Entry, n: int) -> Any:
    """Return for n steps and each element of an entry whether the step appends it: a question to the values."""
    shape = (n, entry.size)
    return np.ones(shape, bool) if row.taken is None else outcome(row.taken).reshape(shape)


def make_element(rows: Any, numbers: Any, place: tuple[int, ...]) -> Any:
    """Return what one of the steps has appended, all given in stacks; `numbers` says which are Python's."""

    def take(y: Any, number: bool) -> Any:
        x = fresh(as_number(y[place]) if number else y[place])
        note_element(x, y, place)
        note_number(x)
        return x

    return close_objects(tree.map(take, rows, numbers))


def view_element(value: Any, numbers: Any, place: tuple[int, ...]) -> Any:
    """Return what a step has appended, of what is given in stacks, to which a write into it goes."""
    return close_objects(tree.map(lambda y, number: as_number(y[place]) if number else y[place], value, numbers))


def are_alike(rows: list[Row], entries: list[Entry]) -> bool:
    """Return whether what steps append at several places is of one type, so that one array can hold it."""
    if not all(map(entries[0].is_like, entries)):
        return False
    columns = zip(*[tree.leaves(row.value) for row in rows], strict=True)
    return all(len({_type_of_one(y, entry) for y, entry in zip(ys, entries, strict=True)}) == 1 for ys in columns)


def _type_of_one(y: Any, entry: Entry) -> tuple:
    return y.shape[1 if entry.count is None else 2 :], y.dtype


def join_rows(rows: list[Row], entries: list[Entry], n: Any, most: int) -> Entry:
    """Return what n steps of an inner loop append, at most so many, as what the step around appends at one place."""
    total = sum(entry.size for entry in entries)
    if not are_alike(rows, entries):
        refuse("an inner loop appends things of several types to a list")

    def join(*stacks: Any) -> Any:
        parts = [
            y if entry.count is not None else np.expand_dims(y, 1) for y, entry in zip(stacks, entries, strict=True)
        ]
        return np.concatenate(parts, axis=1).reshape((most * total, *parts[0].shape[2:]))

    taken: Any = True
    if any(row.taken is not None for row in rows):
        shown = [
            np.ones((most, entry.size), bool) if row.taken is None else np.reshape(row.taken, (most, entry.size))
            for row, entry in zip(rows, entries, strict=True)
        ]
        taken = np.concatenate(shown, axis=1).reshape(most * total)
    if type(n) is Tracer:
        runs = np.less(np.arange(most * total), n * total)
        taken = runs if taken is True else np.logical_and(taken, runs)
    return Entry(tree.map(join, *[row.value for row in rows]), taken, most * total, entries[0].numbers)


def take_elements(rows: list[Row], entries: list[Entry], n: int) -> list:
    """Return what n steps have appended to a list, in Python's order."""
    if not entries:
        return []
    taken = [ask_taken(row, entry, n) for row, entry in zip(rows, entries, strict=True)]
    places = np.argwhere(np.concatenate(taken, axis=1)).tolist()
    if len(entries) > 1 and are_alike(rows, entries):
        whole, each = join_rows(rows, entries, n, n), sum(entry.size for entry in entries)
        return [make_element(whole.value, whole.numbers, (k * each + place,)) for k, place in places]
    of = [(row.value, entry, c) for row, entry in zip(rows, entries, strict=True) for c in range(entry.size)]
    found = []
    for k, place in places:
        value, entry, c = of[place]
        found.append(make_element(value, entry.numbers, (k,) if entry.count is None else (k, c)))
    return found


def take_rows(rows: list[Row], entries: list[Entry], n: int) -> Any:
    """Return what n steps have appended to an array, in Python's order, as one array."""
    whole = join_rows(rows, entries, n, n).value
    taken = np.concatenate([ask_taken(row, entry, n) for row, entry in zip(rows, entries, strict=True)], axis=1)
    return whole if taken.all() else whole[np.flatnonzero(taken)]


def elements_of(entry: Entry) -> list:
    """Return the elements of an entry of a step that is looked at."""
    if entry.count is None:
        return [entry.value]
    return [make_element(entry.value, entry.numbers, (c,)) for c in range(entry.count)]


def repeat_entries(entries: list[Entry], steady: bool, n: int) -> Entry:
    """Return what n steps of an inner loop append, of which one is looked at: only the types count."""
    first, total, trace = entries[0], n * sum(entry.size for entry in entries), current().trace  # type: ignore[union-attr]
    value = open_objects(first.value)

    def stack(y: Any) -> Any:
        shown = np.asarray(example(y))
        return trace.new(np.zeros((total, *shown.shape[0 if first.count is None else 1 :]), shown.dtype))

    numbers = tree.map(is_number, value) if first.count is None else first.numbers
    return Entry(tree.map(stack, value), True if steady else trace.new(np.zeros(total, bool)), total, numbers)


def is_number(x: Any) -> bool:
    """Return whether a value is a number of Python's, and not of NumPy's."""
    return example(x).__class__ in (bool, int, float, complex)  # of those that stand for one, too
