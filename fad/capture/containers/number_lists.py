"""Lists of numbers that a loop reads or writes by its counter: in its steps an array stands for each.

``dp[i] = dp[i - 1] * x`` of a list writes into an array that the loop carries, and behind the loop the list gets its
numbers. A list whose elements the steps only read is an array from outside to them. Lists of lists of one length are
arrays with two axes. Python's integers have no end: a program finds out while it runs if 64 bits do not hold them.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import current, refuse
from fad.capture.body.element_tables import ElementTable, holders_in, is_table
from fad.capture.body.held_arrays import HeldArrays
from fad.capture.body.keyed_looks import DICTIONARIES, Uses
from fad.capture.body.objects import is_known_alone, is_openable, knows_arrays_alone
from fad.capture.body.places import Cell, Item, Variable, bind_name, cells_of, content, find_part
from fad.capture.body.values import STANDING, as_number, note_touched
from fad.capture.containers.array_lists import ArrayList, can_stand_for
from fad.capture.containers.number_dicts import NumberDict, Unsuitable
from fad.capture.containers.row_lists import RowList, WrittenRows, begins_with_array, can_be_rows
from fad.capture.rewriting.convert import is_users
from fad.control_flow.bodies.intervals import fits
from fad.control_flow.bodies.subgraph import example
from fad.core.handles.buffers import buffer
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import Memory
from fad.ops.places.creation import array
from fad.staging.mixed_types import note_mixed, note_number
from fad.staging.record import is_found_by_name
from fad.staging.record_trace import is_traceable

# Of numbers that may be in one list, and what their array holds; floating-point numbers may have integers among them.
_REAL = frozenset({int, float, np.float64})
_DTYPES = {frozenset({int}): np.dtype(np.int64), frozenset({bool}): np.dtype(np.bool_)}
_KINDS = _REAL | {bool}
_WHOLE = np.dtype(np.int64)


def _numbers_in(x: list) -> list | None:
    """Return the numbers in a list, or in lists of one length; None if there is anything else in it."""
    if x and all(type(row) is list for row in x):
        rows = [_numbers_in(row) for row in x]
        if any(row is None or len(row) != len(x[0]) or type(y[0]) is list for row, y in zip(rows, x, strict=True)):
            return None
        return [y for row in rows for y in row or ()]
    if not all(type(y) is Tracer or is_traceable(y) for y in x):
        return None
    shown = [None if type(y) is Tracer and y.shape else example(y) for y in x]
    return shown if shown and _kinds_of(shown) <= _KINDS else None


def _is_of_numbers(x: Any) -> bool:
    return type(x) is list and _numbers_in(x) is not None


def lists_in(x: Any) -> list:
    """Return the lists in nested lists and tuples."""
    if type(x) not in (list, tuple):
        return []
    return [*([x] if type(x) is list else []), *(y for part in x for y in lists_in(part))]


def _kinds_of(numbers: list) -> set[type]:
    """Return the types of numbers, and of those that stand for numbers of Python's these."""
    return {x.__class__ for x in numbers}


def _dtype_for(kinds: set[type]) -> np.dtype | None:
    """Return what an array holds that stands for numbers of some types; None if there is none."""
    return _DTYPES.get(frozenset(kinds), np.dtype(np.float64) if kinds <= _REAL else None)


class NumberList:
    """Stands for a list of numbers in a step: an array, or a row of one, whose elements are numbers."""

    __slots__ = ("_array", "_name", "_kind")

    def __init__(self, x: Any, name: str, kind: _Kind):
        self._array = x
        self._name = name
        self._kind = kind

    def __getitem__(self, index: Any) -> Any:
        if type(index) is slice:
            return self._copy_part(index)
        found = self._array[index]
        if found.shape:
            return NumberList(found, self._name, self._kind)
        return as_number(found) if self._kind.plain else found

    def __setitem__(self, index: Any, value: Any) -> None:
        given = _numbers_in(value) if type(value) is list else [example(value)]
        body: Any = current()
        if self._kind.table is not None and body.trial:
            note_touched(self._kind.table, body).append(example(value) if given is None else given[0])
            return
        if given is None or type(index) is slice or self._kind.table is not None:
            refuse(f"it changes the list {self._name} otherwise than number by number")
        if _dtype_for(_kinds_of(given)) not in (self._kind.dtype, *([_WHOLE] if self._kind.dtype.kind == "f" else [])):
            refuse(f"it puts a number of another type into the list {self._name}")
        if not fits(value, self._kind.dtype):
            refuse(f"it puts an integer into the list {self._name} that may be too large for a floating-point number")
        self._kind.admit(given, self._name)
        self._array[index] = array(value) if type(value) is list else value

    def copy(self) -> NumberList:
        """Return a list of the step's own."""
        return self._copy_part(slice(None))

    def _copy_part(self, index: slice) -> NumberList:
        bounds = (index.start, index.stop, index.step)
        if self._array.ndim > 1 or not all(x is None or type(x) is int for x in bounds):
            refuse(f"it takes a part of the list {self._name} that differs from step to step, or has lists in it")
        return NumberList(self._array[index].copy(), self._name, _Kind(self._kind.plain, self._kind.dtype, None))

    def take_change(self) -> bool:
        """Return whether the last look has shown numbers of another type, and forget it."""
        changed, self._kind.changed = self._kind.changed, False
        return changed

    @property
    def dtype(self) -> np.dtype:
        """What the array holds that stands for the list."""
        return self._kind.dtype

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator:
        return (self[k] for k in range(len(self)))

    def _refuse(self, *_: Any) -> Any:
        refuse(f"it uses the list {self._name} otherwise than number by number")

    __contains__ = __add__ = __radd__ = __iadd__ = __mul__ = __eq__ = __delitem__ = __reversed__ = _refuse
    __array__ = __lt__ = __repr__ = __format__ = __getattr__ = _refuse
    __hash__ = object.__hash__


class _Kind:
    """Whether the numbers of a list are Python's, and whether steps write them, as far as looks have shown."""

    __slots__ = ("plain", "dtype", "changed", "table")

    def __init__(self, plain: bool, dtype: np.dtype, table: list | None):
        self.plain = plain
        self.dtype = dtype  # of the array
        self.changed = False  # since the last look
        self.table = table  # the list, if steps only read it

    def admit(self, numbers: list, name: str) -> None:
        """Note what is put into the list; refuse what no look has shown."""
        if self.plain and np.float64 in _kinds_of(numbers):
            if not current().trial:  # type: ignore[union-attr]
                refuse(f"it puts NumPy's numbers into the list {name} in one step, and Python's in another")
            self.plain, self.changed = False, True
            note_mixed()


STANDING.add(NumberList)


class NumberLists:
    """The lists that arrays stand for in the steps of one loop."""

    def __init__(self, cells: dict[Any, Cell]):
        self._own = {name: cell for name, cell in _places_of(cells) if _may_be_written(cell)}
        # Those of which nobody else knows the arrays.
        arrays = {name: cell for name, cell in self._own.items() if begins_with_array(content(cell))}
        self._alone = {name for name, cell in arrays.items() if knows_arrays_alone(cell)}
        self._written: dict[Any, tuple[Cell, Any, NumberList | ArrayList | NumberDict | RowList]] = {}
        self._unfilled: list[list] = []  # of arrays, of which a look has come to a place where there is none yet
        # Those that are read alone, by identity.
        self._tables: dict[int, tuple[Any, NumberList | ElementTable | NumberDict]] = {}

    @contextlib.contextmanager
    def standing(self, body: Any) -> Iterator[None]:
        """Let arrays stand for the lists for the length of a block, if it is in a body."""
        if body is None:
            yield
            return
        outer, sources, held = body.tables, body.sources, body.held
        body.unfilled, body.held = self._unfilled, [*held, *self.held()]
        try:
            body.tables = outer | self._tables
            body.sources = sources | {id(part): part for x, _ in self._tables.values() for part in holders_in(x)}
            for cell, _, stands in self._written.values():
                bind_name(cell, stands)
            yield
        finally:
            body.tables, body.sources, body.held = outer, sources, held
            for x in self.held():
                x.known.clear()
            for cell, plain, stands in self._written.values():
                bind_name(cell, plain)
                if type(stands) is RowList:
                    stands.forget_taken()

    def look(self, touched: dict[int, tuple[Any, list]], bound: set[int]) -> bool:
        """Let arrays stand for the lists that a step has read or written by a traced place; return whether any is new.

        `touched` has for each list examples of what was written; `bound` are the lists, by identity, of which the step
        binds items by constant places.
        """
        changed = False
        for _, _, stands in self._written.values():
            changed = stands.take_change() or changed
        for x, values in touched.values():
            if any(type(y) is Tracer and y.owner.dead for y in tree.leaves(x)):
                raise Unsuitable("by a counter it reads or writes a list that each step makes")
            if type(values) is WrittenRows:
                self._add_rows(x, bound)
                continue
            if type(values) is Uses:
                values.sets = values.sets or id(x) in bound
                self._add_dict(x, values)
                continue
            if any(id(part) in bound for part in holders_in(x)):
                if not (values or _is_of_numbers(x)):  # what is read is what the step has bound
                    continue
                values.append(example(tree.leaves(x)[0]))  # its kind is none that the list does not have
            if values:
                self._add(x, values)
        for key, (x, values) in touched.items():
            if not isinstance(values, list) or values or any(id(part) in bound for part in holders_in(x)):
                continue
            if not _is_of_numbers(x):
                if not is_table(x):
                    raise Unsuitable("by a counter it reads a list whose rows are of several lengths or types")
                self._tables[key] = (x, ElementTable(x))
            elif not any(_holds(plain, x) for _, plain, _ in self._written.values()):
                self._tables[key] = (x, _stand_for(x, "that it reads", [], x))
        return changed or bool(touched)

    def _add(self, x: list, values: list) -> None:
        name = next((name for name, cell in self._own.items() if _holds(content(cell), x)), None)
        if name is None:
            raise Unsuitable("by a counter it writes into a list that may have another name")
        cell, known = self._own[name], self._written.get(name)
        if known is None:
            arrays = content(cell) is x and can_stand_for(x)
            known = (cell, content(cell), ArrayList(x, name) if arrays else _stand_for(content(cell), name, values))
        self._written[name] = known
        self._tables.pop(id(content(cell)), None)

    def _add_rows(self, x: Any, bound: set[int]) -> None:
        """Let an array stand for a list or tuple of arrays of which the steps write one by a traced place."""
        name = next((name for name, cell in self._own.items() if content(cell) is x), None)
        if id(x) in bound or name not in self._alone or not can_be_rows(x):
            raise Unsuitable("by a counter it writes into an array of a list that may have another name")
        self._written[name] = (self._own[name], x, RowList(x, name))

    def _add_dict(self, x: dict, uses: Uses) -> None:
        """Let arrays stand for a dictionary that the steps read or write by traced keys."""
        self._tables.pop(id(x), None)
        if not uses.sets:
            self._tables[id(x)] = (x, NumberDict(x, f"a {type(x).__name__}", uses))
            return
        name = next((name for name, cell in self._own.items() if content(cell) is x), None)
        if name is None:
            raise Unsuitable("it sets items of a dictionary that may have another name, by keys that it computes")
        self._written[name] = (self._own[name], x, NumberDict(x, name, uses))

    def hold_integers(self) -> bool:
        """Return whether steps write integers of Python's, which may leave the 64 bits of an array's."""
        numbers = [x for _, _, x in self._written.values() if isinstance(x, NumberList | NumberDict)]
        return any(x.dtype == _WHOLE for x in numbers)

    def find_unfilled(self) -> list | None:
        """Return a list of which a look has come to a place where no array is yet."""
        return self._unfilled[0] if self._unfilled else None

    def held(self) -> dict[HeldArrays, list]:
        """Return what the lists of arrays hold, with the lists."""
        return {x.held: plain for _, plain, x in self._written.values() if type(x) is ArrayList}

    def forget(self) -> None:
        """Let go of the arrays that stand for lists: one that lives on is to a body around an array from outside."""
        self._written, self._tables = {}, {}

    def finish(self) -> None:
        """Let the lists that the steps wrote into hold what the loop made of them."""
        for _, plain, stands in self._written.values():
            if isinstance(stands, ArrayList | RowList):
                stands.fill(plain)
            elif type(stands) is NumberDict:
                stands.fill()
            else:
                _fill(plain, stands)


def _find_closed(cells: dict[Any, Cell]) -> dict[Variable, Cell]:
    """Return the variables of functions in variables, and of those that they may call in their turn."""
    found: dict[Variable, Cell] = {}
    waiting, known = [*cells.values()], {id(cell) for cell in cells.values()}
    while waiting:
        f = content(waiting.pop())
        if type(f) is types.FunctionType and is_users(f):
            new = {Variable(cell, name): cell for name, cell in cells_of(f).items() if id(cell) not in known}
            found |= new
            waiting += new.values()
            known |= set(map(id, new.values()))
    return found


def _places_of(cells: dict[Any, Cell]) -> Iterator[tuple[Any, Cell]]:
    """Give the variables that are lists or dictionaries, and the parts of objects and dictionaries that are.

    The variables are the loop's, and those of functions in its variables, which it may call: ``if n in memo`` of one.
    """
    for name, cell in {**cells, **_find_closed(cells)}.items():
        x = content(cell)
        own = type(x) in (list, tuple) or (type(x) in DICTIONARIES and not any(type(y) is list for y in x.values()))
        if own:
            del x  # so that it is known to the variable alone
            yield name, cell
            continue
        parts = x if type(x) is dict else vars(x) if is_openable(x) else {}
        for key in [key for key, y in parts.items() if type(y) is list or type(y) in DICTIONARIES]:
            place = Item(x, key) if type(x) is dict else find_part(x, key)
            if place is not None and not is_found_by_name(x):
                yield place, place


def _may_be_written(cell: Cell) -> bool:
    """Return whether nobody else knows the list in a place, nor a body around, and it is none from outside."""
    around = current()
    mine = around is None or id(content(cell)) in around.made
    return mine and is_known_alone(cell) and not is_found_by_name(content(cell))


def _holds(x: list, row: list) -> bool:
    """Return whether a list is another one, or has it as a row."""
    return x is row or any(y is row for y in x)


def _stand_for(x: list, name: str, values: list, table: list | None = None) -> NumberList:
    """Return what stands for a list into which some values are written, or for a table."""
    found = _numbers_in(x)
    kinds = _kinds_of([*(found or ()), *values])
    dtype = _dtype_for(kinds)
    if found is None or dtype is None:
        raise Unsuitable(f"by a counter it reads or writes the list {name}, which has not only numbers of one type")
    if not all(fits(y, dtype) for y in found):
        raise Unsuitable(f"the list {name} has integers that are too large for a floating-point number")
    if len(kinds) > 1:
        note_mixed()
    made = array(x)
    if type(made) is not Tracer:
        made = buffer(np.array(made, dtype))
        made.memory = Memory()
    elif made.dtype != dtype:
        made = made.astype(dtype)
    return NumberList(made, name, _Kind(np.float64 not in kinds, dtype, table))


def _fill(plain: list, stands: Any) -> None:
    for k, x in enumerate(stands):
        if type(x) is NumberList:
            _fill(plain[k], x)
        else:
            note_number(x)
            plain[k] = x
