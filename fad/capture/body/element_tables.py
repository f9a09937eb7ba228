"""Lists, tuples and dictionaries of which a loop reads elements by a place that it computes: ``xs[i // 100]``.

All elements have the same parts, which are arrays of one shape, or numbers of one type. Of each part one array holds
those of all elements, side by side, and what the place gives is taken of these. The elements are read only: a write
into one is refused, as is one into an array that is an element. A name that keeps one may know any of them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.capture.body.labels import Label, is_label, number_of
from fad.capture.body.state import is_handle, is_written
from fad.control_flow.bodies.intervals import interval
from fad.control_flow.bodies.subgraph import example, to_number_p
from fad.core.handles.buffers import buffer
from fad.core.programs.graph import ARRAY, NUMBER, type_of
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.views import Memory, contents_of, layout, root_of, snapshot
from fad.ops.places.creation import array
from fad.staging.mixed_types import note_mixed, note_number
from fad.staging.record_trace import is_traceable

_SMALL = 1 << 24  # bytes of a list over which a loop runs


class ElementTable:
    """Stands for a list, tuple or dictionary that steps read by places that they compute."""

    __slots__ = ("_first", "_size", "_structure", "_columns", "_plain", "_kinds")

    def __init__(self, x: Any):
        elements, self._first = _elements_of(x), min(x) if type(x) is dict else None
        self._size = len(elements)
        self._structure = tree.structure(elements[0])
        columns = [[*column] for column in zip(*map(tree.leaves, elements), strict=True)]
        self._kinds = [type(column[0]) if is_label(column[0]) else None for column in columns]  # of labels
        columns = [
            column if kind is None else list(map(number_of, column))
            for column, kind in zip(columns, self._kinds, strict=True)
        ]
        self._plain = [all(type_of(example(y)).kind == NUMBER for y in column) for column in columns]
        if any(map(_is_mixed, columns)):
            note_mixed()
        self._columns = [_join(column) for column in columns]

    def __getitem__(self, index: Any) -> Any:
        place = index if self._first is None else self._find_key(index)
        found = [column[place] for column in self._columns]
        found = [bind(to_number_p, y) if plain else y for y, plain in zip(found, self._plain, strict=True)]
        for y in found:
            note_number(y)
        found = [y if kind is None else Label(kind, y) for y, kind in zip(found, self._kinds, strict=True)]
        element = tree.unflatten(self._structure, found)
        body = current()
        if body is not None:
            body.lent += holders_in(element)  # they stand for others, and nobody may keep them
        return element

    def _find_key(self, key: Any) -> Any:
        """Return the place of a key, one that is not there where a dictionary has no such key."""
        place = key - self._first
        low = interval(place)[0]
        return place if low is not None and low >= 0 else np.where(place < 0, self._size, place)

    def arrays(self) -> list[Tracer]:
        """Return the arrays that the elements are taken of, but of numbers."""
        return [x for x in self._columns if x.ndim > 1]


def is_small(x: Any) -> bool:
    """Return whether the arrays in a list are few bytes, so that they may be copied whether that is of use or not."""
    return sum(type_of(example(y)).nbytes for y in tree.leaves(x) if not is_label(y)) <= _SMALL


def is_table(x: Any) -> bool:
    """Return whether an array can stand for each part of the elements of a list, tuple or dictionary."""
    if type(x) not in (list, tuple, dict) or not x:
        return False
    if type(x) is dict and not (all(type(key) is int for key in x) and max(x) - min(x) == len(x) - 1):
        return False
    elements = _elements_of(x)
    structure = tree.structure(elements[0])
    if not structure.num_leaves or not _is_plain_structure(elements[0]):
        return False
    if any(tree.structure(y) != structure for y in elements[1:]):
        return False
    return all(map(_is_column, zip(*map(tree.leaves, elements), strict=True)))


def _elements_of(x: Any) -> list:
    return [x[key] for key in sorted(x)] if type(x) is dict else list(x)


def _is_plain_structure(x: Any) -> bool:
    """Return whether an element is an array or number, or made of such by lists, tuples and dictionaries alone."""
    if type(x) is list or (isinstance(x, tuple) and (type(x) is tuple or hasattr(x, "_fields"))):
        return all(map(_is_plain_structure, x))
    if type(x) is dict:
        return all(map(_is_plain_structure, x.values()))
    return type(x) is Tracer or is_label(x) or (is_traceable(x) and not isinstance(x, str))


def _is_column(column: tuple) -> bool:
    """Return whether the same part of all elements can be in one array."""
    if any(map(is_label, column)):
        return all(map(is_label, column)) and len(set(map(type, column))) == 1
    if not all(type(y) is Tracer or is_traceable(y) for y in column):
        return False
    if _is_mixed(column):
        return True
    types = [type_of(example(y)) for y in column]
    if any(t.key() != types[0].key() for t in types) or types[0].dtype.kind not in "biufc":
        return False
    return types[0].kind != ARRAY or (bool(types[0].shape) and all(map(_lies_in_order, column)))


def _is_mixed(column: Iterable) -> bool:
    """Return whether some numbers of a column are Python's and others NumPy's: all are scalars of NumPy's then."""
    return {example(y).__class__ for y in column} == {float, np.float64}


def _lies_in_order(x: Any) -> bool:
    plain = layout(x) if type(x) is Tracer else x
    return type(plain) is not np.ndarray or plain.ndim < 2 or plain.flags.c_contiguous


def _join(column: list) -> Tracer:
    """Return an array of the same part of all elements, into which nobody may write."""
    made = array(column)
    made = snapshot(made) if type(made) is Tracer else buffer(np.array(made))
    made.memory = Memory()
    made.memory.outside = True
    return made


def holders_in(x: Any) -> list:
    """Return the lists and dictionaries in an element."""
    parts = x.values() if type(x) is dict else x if isinstance(x, (list, tuple)) else ()
    mine = [x] if type(x) in (list, dict) else []
    return mine + [y for part in parts for y in holders_in(part)]


def check_elements(values: Iterable[Any]) -> None:
    """Refuse a step that writes into an element of a table, or leaves a plain one, or what may be one, among values."""
    if any(is_written(y) for _, elements in _elements_by_table() for y in elements or ()):
        refuse("it writes into an array of a list or dictionary whose elements it reads by a counter")
    passing = current().passing  # type: ignore[union-attr]
    if any(contents_of(y) != writes for _, arrays in passing for y, writes in arrays):
        refuse("it writes into an array of a list or dictionary of which it has read an element by a counter")
    plain = {id(x) for x, elements in _elements_by_table() if elements is None}
    if plain:
        left = (root_of(x) for value in values for x in tree.leaves(value) if is_handle(x))
        if any(id(x) in plain for x in itertools.chain(left, *current().aliased)):  # type: ignore[union-attr]
            refuse("it keeps a plain array of a list or dictionary whose elements it reads by a counter")


def elements_behind(x: Tracer) -> list[Tracer] | None:
    """Return the arrays of which one may be what was taken of an array of a table; None for any other array."""
    return next((elements for y, elements in _elements_by_table() if y is x), None)


def _elements_by_table() -> Iterator[tuple[Tracer, list[Tracer] | None]]:
    """Give the arrays that elements are taken of, each with the elements themselves; None where one is plain."""
    for x, table in current().tables.values():  # type: ignore[union-attr]
        if type(table) is ElementTable:
            leaves = [y for y in tree.leaves(x) if np.ndim(example(y))]
            elements = None if np.ndarray in map(type, leaves) else [root_of(y) for y in leaves]
            yield from ((y, elements) for y in table.arrays())
    for table, _ in current().passing:  # type: ignore[union-attr]
        yield from ((y, None) for y in table.arrays())


def take_passing(x: Any, index: Any, body: Any) -> Any:
    """Return an element of a list as it is in the middle of a step.

    In Python that is an array of the list: so neither may be written from there on.
    """
    table = ElementTable(x)
    arrays = [*table.arrays(), *(root_of(y) for y in tree.leaves(x) if is_handle(y))]
    body.passing.append((table, [(y, contents_of(y)) for y in arrays]))
    return table[index]


def unknown_element(x: Any, body: Any) -> Any:
    """Return an element like another one, of which a first look does not know what it is."""

    def forget(y: Any) -> Any:
        return Label(type(y), body.trace.new(np.int64(0))) if is_label(y) else body.trace.new(example(y))

    return tree.map(forget, x)


def look_up(table: dict, key: Any) -> Any:
    """Return ``table[key]`` by a label, or a tuple with some, of values that can be in one array."""
    wanted = key if type(key) is tuple else (key,)
    kinds = [x.kind if type(x) is Label else example(x).__class__ for x in wanted]
    rows = [(other if type(key) is tuple else (other,), value) for other, value in table.items()]
    rows = [(row, value) for row, value in rows if type(row) is tuple and list(map(type, row)) == kinds]
    values = [value for _, value in rows]
    if not is_table(values):
        refuse(f"it takes an item of a {type(table).__name__} by a key that differs from step to step")
    place: Any = np.int64(len(rows))  # which is none, as of a key that is not there
    for k, (row, _) in enumerate(rows):
        same = [x == y for x, y in zip(wanted, row, strict=True)]
        place = np.where(functools.reduce(np.logical_and, same), np.int64(k), place)
    return ElementTable(values)[place]
