"""Reading and writing by traced places: what brackets mean in a body, whose counters are traced Python integers."""

from __future__ import annotations

import collections
import operator
from typing import Any, NoReturn

import numpy as np

from fad import tree
from fad.capture.body.context import Body, current, is_staged, refuse
from fad.capture.body.element_tables import ElementTable, is_table, look_up, take_passing, unknown_element
from fad.capture.body.keyed_looks import DICTIONARIES, Uses, look_at_change, look_at_item, look_for, note_uses
from fad.capture.body.labels import Label
from fad.capture.body.objects import close_objects, open_objects
from fad.capture.body.places import Item, find_item
from fad.capture.body.windows import find_window
from fad.control_flow.bodies.intervals import interval
from fad.control_flow.bodies.subgraph import example, to_number_p
from fad.control_flow.lengths.padded import PaddedArray
from fad.control_flow.lengths.traced_masks import SelectedElements
from fad.core.handles.buffers import buffer
from fad.core.handles.structured_arrays import Record, StructuredArray
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.views import Memory
from fad.ops.places.creation import array

_UPDATES = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv, "Pow": operator.ipow,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "MatMult": operator.imatmul, "BitAnd": operator.iand,
    "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift, "RShift": operator.irshift,
}  # fmt: skip
# What is, or stands for, arrays and lists.
STANDING: set[type] = {Tracer, PaddedArray, SelectedElements, StructuredArray, Record}
_IN_PLACE = {name: f"__{f.__name__.strip('_')}__" for name, f in _UPDATES.items()}


def _is_traced(index: Any) -> bool:
    """Return whether an index holds a traced place or a traced bound."""
    for part in index if type(index) is tuple else (index,):
        if type(part) in (Tracer, PaddedArray):
            return True
        if type(part) is slice and Tracer in (type(part.start), type(part.stop), type(part.step)):
            return True
    return False


def getitem(x: Any, index: Any) -> Any:
    """Return ``x[index]``."""
    body = current()
    if type(x) is dict and Label in map(type, index if type(index) is tuple else (index,)):
        return look_up(x, index)
    if body is None or type(x) in STANDING or not _is_traced(index):
        if body is not None and type(x) is collections.defaultdict and index not in x and id(x) not in body.made:
            body.note_change(Item(x, index))
        return note_made(x[index]) if type(x) is list and type(index) is slice else x[index]
    if type(x) is np.ndarray:
        return _outside(x)[index]
    if type(index) is Tracer and holds_numbers(x):
        return as_number(_outside(np.array(x))[index])
    if type(index) is Tracer and type(x) is str and x:
        return ElementTable(tuple(x))[index]
    if type(index) is Tracer and type(x) in (list, tuple, dict):
        return _read_element(x, index, body)
    return _read_item(x, index, body) if type(x) in DICTIONARIES else _refuse_place(x)


def _refuse_place(x: Any) -> NoReturn:
    refuse(f"it takes or sets an element of a {type(x).__name__} at a place that differs from step to step")


def _read_element(x: Any, index: Tracer, body: Body) -> Any:
    """Return an element of a list of which the steps read others: an array stands for it, from the second look on."""
    if id(x) in body.tables:
        return body.tables[id(x)][1][index]
    if type(x) is list and _may_be_filled(x, body) and body.trial:  # the place that is bound is what counts
        body.filled.setdefault(id(x), None)
        element = open_objects(x[example(index)])
        return close_objects(tree.map(lambda y: body.trace.new(example(y)), element))
    _note_filled(x, index, body)
    if not x and type(x) is not dict:
        refuse(f"it takes an element of an empty {type(x).__name__}")
    if type(x) is list and _has_numbers(x):
        return _read_number(x, index, body)
    if _is_unfilled(x):
        body.unfilled.append(x)
    if type(x) is dict and (_is_looked_at(x, body) or not is_table(x)):
        return _read_item(x, index, body)
    if not is_table(x):
        _refuse_place(x)
    if _is_passing(x, body) or any(type(y) is Tracer and y.owner is body.trace for y in tree.leaves(x)):
        found = take_passing(x, index, body)
        if body.trial and not _is_passing(x, body):
            _note_row(x, found, body)
        return found
    if not body.trial:
        _refuse_place(x)
    body.touched.setdefault(id(x), (x, []))
    found = unknown_element(next(iter(x.values())) if type(x) is dict else x[0], body)
    _note_row(x, found, body)
    return found


def _read_item(x: dict, key: Any, body: Body) -> Any:
    """Return an item of a dictionary for which arrays stand from the second look on."""
    if id(x) in body.tables:
        return body.tables[id(x)][1][key]
    _note_filled(x, key, body)
    _check_look(x, body)
    return look_at_item(x, key, body)


def _check_look(x: dict, body: Body) -> None:
    """Refuse to read or set an item of a dictionary by a traced key but in a look at a loop around which it is made."""
    if not body.trial or _is_passing(x, body):
        _refuse_place(x)


def _is_looked_at(x: Any, body: Body) -> bool:
    """Return whether the look has shown that arrays are to stand for a dictionary."""
    return id(x) in body.touched and type(body.touched[id(x)][1]) is Uses


def get_item(x: dict, key: Any, default: Any = None) -> Any:
    """Return ``x.get(key, default)``."""
    body = current()
    if body is None or not _is_traced(key):
        return x.get(key, default)
    if id(x) in body.tables and type(body.tables[id(x)][1]) is not ElementTable:
        return body.tables[id(x)][1].get(key, default)
    _check_look(x, body)
    return look_for(x, key, default, body)


def set_default(x: dict, key: Any, default: Any = None) -> Any:
    """Return ``x.setdefault(key, default)``."""
    body = current()
    if body is None or not _is_traced(key):
        if key not in x:
            setitem(default, x, key)
        return x[key]
    found = get_item(x, key, default)
    setitem(default, x, key)
    return found


def has_key(x: dict, key: Any) -> Any:
    """Return ``key in x``."""
    body = current()
    if body is None or not _is_traced(key):
        return key in x
    if id(x) in body.tables and type(body.tables[id(x)][1]) is not ElementTable:
        return body.tables[id(x)][1].contains(key)
    _check_look(x, body)
    note_uses(x, body).parts_of(key)
    return body.trace.new(False)


def _may_be_filled(x: Any, body: Body) -> bool:
    return id(x) in body.fillable and not (type(x) is list and _has_numbers(x)) and not _is_looked_at(x, body)


def _note_filled(x: Any, index: Any, body: Body) -> None:
    """Note that a step reads or sets an item by a traced place, if loops may fill what has it; it is run again."""
    if _may_be_filled(x, body):
        body.filled[id(x)] = index, _find_direction(index, body)
        refuse(f"it reads or sets items of a {type(x).__name__} by places that differ from step to step")


def _find_direction(index: Any, body: Body) -> int:
    """Return 1, or -1 where places go down by one from step to step, as far as the number of the step tells."""
    number = body.numbers[-1] if body.numbers else None
    if type(index) is not Tracer or type(number) is not Tracer:
        return 1
    least, most = interval(index + number)
    return -1 if least is not None and least == most else 1


def _note_row(x: Any, found: Any, body: Body) -> None:
    """Note what a look is given for an element, which it may write into."""
    if type(found) is Tracer and found.shape and type(x) is not dict:
        body.rows.append((x, found))


def _is_unfilled(x: Any) -> bool:
    """Return whether a list has places for arrays at which there are none yet, ``[None] * n``."""
    return type(x) is list and any(y is None for y in x)


def _read_number(x: list, index: Tracer, body: Body) -> Any:
    """Return a number in a list, or in lists in it."""
    kinds = {example(y).__class__ for y in x} if all(map(_may_be_element, x)) else set()
    if len(kinds) == 1 and _is_passing(x, body):  # of one step: what is in it now, counts
        found = array(x)[index]
        return as_number(found) if kinds <= {int, float} else found
    if body.trial and id(x) in body.made_around and kinds == {float, np.float64}:  # all will be scalars
        return body.trace.new(np.float64(0.0))
    note_touched(x, body)
    found = x[0]
    return found if type(found) is list else body.trace.new(example(found))


def _is_passing(x: Any, body: Body) -> bool:
    """Return whether a list is one of this step alone."""
    return id(x) in body.made or id(x) in body.made_around or any(x is y for y in body.lent)


def note_touched(x: list, body: Body) -> list:
    """Note that a look has come to an element of a list by a traced place; return examples of what was written."""
    if _is_unfilled(x):
        body.unfilled.append(x)
    may_stand = all(map(_may_be_element, tree.leaves(x))) or is_table(x)
    if not body.trial or _is_passing(x, body) or _is_unfilled(x) or not may_stand:
        _refuse_place(x)
    return body.touched.setdefault(id(x), (x, []))[1]


def _has_numbers(x: list) -> bool:
    """Return whether a list has numbers alone, or lists of them."""
    return all(_has_numbers(y) if type(y) is list else _may_be_element(y) for y in x)


def _may_be_element(x: Any) -> bool:
    """Return whether a value may be in a list that an array stands for, as far as its type tells."""
    return not x.shape if type(x) is Tracer else isinstance(x, (float, int))


def holds_numbers(x: Any) -> bool:
    """Return whether something is a list of Python's floats, or of its integers: one that an array can stand for."""
    return type(x) in (list, tuple) and set(map(type, x)) in ({float}, {int}) and np.array(x).dtype.char in "dl"


def _outside(x: np.ndarray) -> Tracer:
    """Return a handle on a plain array from outside, so that a write into a view of it is an error."""
    handle = buffer(x)
    handle.memory = Memory()
    handle.memory.outside = True
    return handle


def take_outside(x: np.ndarray, index: Any) -> Any:
    """Return an element or row of a plain array from outside at a traced place, as an array of its own."""
    found = _outside(x)[index]
    return found.copy() if found.shape else found


def note_made(x: Any) -> Any:
    """Return an object that the code makes: in a body, what is done to it nobody else sees."""
    body = current()
    if body is not None and type(x) is not Tracer:
        body.made[id(x)] = x
    return x


def setitem(value: Any, x: Any, index: Any) -> None:
    """Do ``x[index] = value``."""
    body = current()
    if body is not None and type(x) not in STANDING and id(x) not in body.made:
        if type(x) is np.ndarray:
            refuse("it writes into a plain array from outside of the loop, or one that no derivative can pass through")
        if _is_traced(index):
            _note_filled(x, index, body)
        if type(x) is list and type(index) is Tracer and body.trial and id(x) in body.made_around:
            _forget_elements(x, value, body)
            return
        if type(x) is list and type(index) is Tracer:
            note_touched(x, body).append(tree.map(example, value))
            return
        if _is_traced(index):
            if type(x) not in DICTIONARIES:
                _refuse_place(x)
            _check_look(x, body)
            look_at_change(x, index, value, body)
            return
        if type(x) is list and type(index) is slice and id(x) not in body.windows:
            _set_elements(value, x, index)
            return
        place = find_window(x) if id(x) in body.windows else find_item(x, index)
        if place is None:
            refuse(f"it changes a {type(x).__name__}")
        body.note_change(place)
    x[index] = value


def _forget_elements(x: list, value: Any, body: Body) -> None:
    """Let the elements of a list that the step itself has made be unknown: an inner loop writes one by a counter."""
    known = [z for y in (*x, value) for z in [tree.map(example, y)]]
    kinds = [[z.__class__ for z in tree.leaves(y)] for y in known]
    shown = known[-1] if {z for of in kinds for z in of} != {float, np.float64} else np.float64(0.0)
    if not is_table(x) or any(tree.structure(y) != tree.structure(shown) for y in known):
        _refuse_place(x)
    x[:] = [tree.map(body.trace.new, shown) for _ in x]


def _set_elements(value: Any, x: list, index: slice) -> None:
    """Do ``x[index] = value`` of a list that keeps its length, one element after the other."""
    places = range(*index.indices(len(x)))
    if type(value) not in (list, tuple) or len(value) != len(places):
        refuse("it changes a list by a slice, to which it may give another length")
    for place, y in zip(places, [*value], strict=True):
        setitem(y, x, place)


def update_by_operator(name: str, x: Any, value: Any) -> Any:
    """Return what ``x += value`` binds to x."""
    if current() is not None and type(x) not in STANDING and hasattr(type(x), _IN_PLACE[name]):
        refuse(f"it changes a {type(x).__name__} in place")
    return _UPDATES[name](x, value)


def as_number(x: Any) -> Any:
    """Return a traced integer as a traced Python number, whose dtype does not count in promotion."""
    return bind(to_number_p, x)


def to_boolean(x: Any) -> Any:
    """Return a traced value as a condition: a boolean without axes."""
    if x.size != 1:
        refuse("it converts an array to a boolean")
    if x.dtype != bool:
        x = np.not_equal(x, 0)
    return x.reshape(()) if x.shape else x


def is_question(x: Any) -> bool:
    """Return whether a condition differs from step to step."""
    return is_staged(x)
