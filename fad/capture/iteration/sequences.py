"""What a loop runs over, with elements known by their numbers: ranges, arrays, lists of numbers and of rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.capture.body.element_tables import ElementTable, holders_in, is_small, is_table
from fad.capture.body.values import as_number, getitem, holds_numbers
from fad.capture.containers.array_lists import ArrayList
from fad.capture.containers.growing_lists import GrowingList
from fad.capture.containers.number_lists import NumberList, lists_in
from fad.capture.containers.row_lists import RowList
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer
from fad.ops.layout.elements import begins_apart, join_elements
from fad.ops.places.creation import array
from fad.staging.mixed_types import note_number

_MANY = 16  # elements of a list from which on a loop over it may be worth an array of them
_FEW_PARTS = 8  # arrays and numbers that a list of many elements is joined of


class Sequence:
    """Elements known by their numbers: how many, which one stands at a number, and how Python would run over them."""

    __slots__ = ("length", "element", "plain")

    def __init__(self, length: Any, element: Callable, plain: Any):
        self.length = length
        self.element = element
        self.plain = plain

    def __iter__(self) -> Iterator:
        return iter(self.plain() if callable(self.plain) else self.plain)


def sequence_of(x: Any) -> Sequence | None:
    """Return something that a loop runs over as a sequence, or None if its elements have no numbers."""
    if type(x) is Sequence:
        return x
    if type(x) is range:
        return Sequence(len(x), lambda k: number_at(x.start, x.step, k), x)
    if (type(x) is np.ndarray and x.ndim and x.dtype.kind in "fcbiu") or (type(x) is Tracer and x.shape):
        return Sequence(x.shape[0], lambda k: getitem(x, k), x)
    if type(x) is str:
        return Sequence(len(x), lambda k: getitem(x, k), x)
    if type(x) in (NumberList, ArrayList, RowList):
        return Sequence(len(x), lambda k: x[k], x)
    if type(x) is GrowingList and x.is_whole():
        return Sequence(x.length(), x.at, x)
    if (column := _column(x)) is not None:
        return Sequence(len(x), _unless_changed(column, x), x)
    if type(x) not in (list, tuple) or not x:
        return None
    records = _records(x) if type(x[0]) in (list, tuple) else None
    return _elements(x) if records is None else records


def number_at(start: Any, step: Any, k: Any) -> Any:
    """Return the number at place k of a range, by no more operations than it takes."""
    distance = k if type(step) is int and step == 1 else k * step
    return distance if type(start) is int and start == 0 else start + distance


def _column(x: Any) -> Callable | None:
    """Return what gives the number at a place of a list, if an array can stand for that."""
    if holds_numbers(x):
        return lambda k: getitem(x, k)
    if type(x) not in (list, tuple) or begins_apart(x, _FEW_PARTS + 1) or not all(map(_is_single, x)):
        return None  # mostly at once: a loop may run over a long list, and look at its first element alone
    kinds, joined = {example(y).__class__ for y in x}, join_elements(list(x))
    if joined is None or len(joined) > _FEW_PARTS or len(kinds) > 1:
        return None
    whole, plain = array(list(x)), kinds <= {bool, int, float, complex}

    def element(k: Any) -> Any:
        found = as_number(whole[k]) if plain else whole[k]
        note_number(found)
        return found

    return element


def _is_single(x: Any) -> bool:
    """Return whether something is one number, of a type that an array can have."""
    return not x.shape if type(x) is Tracer else isinstance(x, (bool, float, complex, np.generic))


def _records(x: Any) -> Sequence | None:
    """Return rows of plain numbers as a sequence, if each has the numbers of the others' types at the same places."""
    rows = [tree.flatten(row) for row in x]
    structure = rows[0][1]
    if not structure.num_leaves or any(found != structure for _, found in rows):
        return None
    columns = [_column(list(column)) for column in zip(*[leaves for leaves, _ in rows], strict=True)]
    if any(column is None for column in columns):
        return None

    sources = {id(y): y for y in lists_in(x)}

    def element(k: Any) -> Any:
        row = tree.unflatten(structure, [column(k) for column in columns])  # type: ignore[misc]
        body = current()
        if body is not None:
            body.sources |= sources
            body.lent += lists_in(row)  # they are the rows' stand-ins, and shall not be known to others for long
        return row

    return Sequence(len(x), _unless_changed(element, x), x)


def _elements(x: Any) -> Sequence | None:
    """Return a list of arrays of one shape, or of rows that have such, as a sequence, if it is long."""
    if len(x) < _MANY or not is_table(x) or not is_small(x):
        return None
    tables: list[ElementTable] = []  # made when the first element is taken: a short loop takes none
    sources = {id(y): y for y in holders_in(x)}

    def element(k: Any) -> Any:
        body = current()
        if body is not None and any(type(y) is Tracer and y.owner is body.trace for y in tree.leaves(x)):
            return ElementTable(x)[k]  # what the step has made of them
        if not tables:
            tables.append(ElementTable(x))
        if body is not None:
            body.sources |= sources
            body.tables = {**body.tables, id(x): (x, tables[0])}
        return tables[0][k]

    return Sequence(len(x), _unless_changed(element, x), x)


def _unless_changed(element: Callable, x: Any) -> Callable:
    """Return what gives the elements of a list, if that holds what it held: an array stands for it as it was."""
    before = tree.leaves(x)

    def check_and_take(k: Any) -> Any:
        now = tree.leaves(x)
        if current() is not None and (len(now) != len(before) or any(map(operator.is_not, now, before))):
            refuse("it changes a list that it runs over")
        return element(k)

    return check_and_take
