"""What a loop runs over, by place: ranges, arrays, lists of numbers, zip, enumerate, reversed of those."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.capture.calls import prepare_call
from fad.capture.context import current, is_staged, refuse
from fad.capture.number_lists import NumberList, lists_in
from fad.capture.values import as_number, getitem, holds_numbers
from fad.control_flow.intervals import interval
from fad.control_flow.subgraph import example
from fad.core.iterators import fromiter
from fad.core.tracer import Tracer
from fad.ops.creation import array
from fad.ops.elements import join_elements
from fad.ops.python_functions import StandIn
from fad.staging.mixed_types import note_number
from fad.staging.record import is_recording

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


class Reiterable:
    """What ``enumerate``, ``zip`` or ``reversed`` give of things that may be run over again."""

    __slots__ = ("what", "_make")

    def __init__(self, what: str, make: Callable):
        self.what = what
        self._make = make

    def __iter__(self) -> Iterator:
        return iter(self._make())


def _make_reiterable(f: Callable, *args: Any, **options: Any) -> Any:
    """Return what one of these functions gives, to be run over as often as it is wanted where that can be."""
    if any(hasattr(type(x), "__next__") for x in args):
        return f(*args, **options)
    return Reiterable(f.__name__, lambda: f(*args, **options))


def sequence_of(x: Any) -> Sequence | None:
    """Return something that a loop runs over as a sequence, or None if its elements have no numbers."""
    if type(x) is Sequence:
        return x
    if type(x) is range:
        return Sequence(len(x), lambda k: _number(x.start, x.step, k), x)
    if (type(x) is np.ndarray and x.ndim and x.dtype.kind in "fcbiu") or (type(x) is Tracer and x.shape):
        return Sequence(x.shape[0], lambda k: getitem(x, k), x)
    if type(x) is NumberList:
        return Sequence(len(x), lambda k: x[k], x)
    if (column := _column(x)) is not None:
        return Sequence(len(x), column, x)
    return _records(x) if type(x) in (list, tuple) and x and type(x[0]) in (list, tuple) else None


def _column(x: Any) -> Callable | None:
    """Return what gives the number at a place of a list, if an array can stand for that."""
    if holds_numbers(x):
        return lambda k: getitem(x, k)
    if type(x) not in (list, tuple) or not all(_is_single(y) for y in x):
        return None
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

    return Sequence(len(x), element, x)


def _range(*bounds: Any) -> Any:
    """``range``, of bounds that may differ from step to step."""
    if not any(map(is_staged, bounds)):
        return range(*bounds)
    start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if any(type(x) is Tracer and (x.shape or x.dtype.kind not in "iu") for x in (start, stop, step)):
        return refuse("it runs over a range whose bounds are no integers")
    sign = _sign(step)
    if not sign:
        return refuse("it runs over a range whose step differs from step to step")
    distance, width = (stop - start, step) if sign > 0 else (start - stop, -step)
    return Sequence(
        np.maximum(distance if type(width) is int and width == 1 else (distance + (width - 1)) // width, 0),
        lambda k: _number(start, step, k),
        lambda: range(*map(operator.index, (start, stop, step))),
    )


def _sign(step: Any) -> int:
    """Return 1 or -1 for what a range counts by, and 0 where it may be zero or of either sign."""
    least, most = interval(step) if type(step) is Tracer else (step, step)
    return 1 if least is not None and least > 0 else -1 if most is not None and most < 0 else 0


def _number(start: Any, step: Any, k: Any) -> Any:
    """Return the number at place k of a range, by no more operations than it takes."""
    distance = k if type(step) is int and step == 1 else k * step
    return distance if type(start) is int and start == 0 else start + distance


def _enumerate(x: Any, start: int = 0) -> Any:
    found = sequence_of(x)
    if found is None:
        return _make_reiterable(enumerate, x, start)
    return Sequence(found.length, lambda k: (_number(start, 1, k), found.element(k)), lambda: enumerate(found, start))


def _zip(*xs: Any, **options: Any) -> Any:
    found = [sequence_of(x) for x in xs]
    lengths = [None if s is None else s.length for s in found]
    if not xs or any(type(n) is not int for n in lengths) or (options.get("strict") and len(set(lengths)) > 1):
        return _make_reiterable(zip, *xs, **options)

    def element(k: Any) -> tuple:
        return tuple([s.element(k) for s in found])  # type: ignore[union-attr]

    return Sequence(min(lengths), element, lambda: zip(*found, strict=False))  # type: ignore[type-var, arg-type]


def _reverse(x: Any) -> Any:
    found = sequence_of(x)
    if found is None or type(found.length) is not int:
        return _make_reiterable(reversed, x)
    last = found.length - 1
    return Sequence(found.length, lambda k: found.element(last - k), lambda: reversed(x if x is not found else list(x)))


def _pair(x: Any) -> Any:
    found = sequence_of(x)
    if found is None or type(found.length) is not int:
        return _make_reiterable(itertools.pairwise, x)
    return Sequence(
        max(found.length - 1, 0), lambda k: (found.element(k), found.element(k + 1)), lambda: itertools.pairwise(found)
    )


def _map(f: Callable, *xs: Any) -> Any:
    call, found = prepare_call(f), [sequence_of(x) for x in xs]
    if not xs or any(s is None or type(s.length) is not int for s in found):
        return _make_reiterable(map, call, *xs)

    def element(k: Any) -> Any:
        return call(*[s.element(k) for s in found])  # type: ignore[union-attr]

    return Sequence(min([s.length for s in found]), element, lambda: map(call, *found))  # type: ignore[union-attr, arg-type]


_OWN: dict[Any, Callable] = {
    range: _range, enumerate: _enumerate, zip: _zip, reversed: _reverse, itertools.pairwise: _pair, map: _map,
}  # fmt: skip
# Functions that take all that a generator gives, by name; NumPy's has another for traced values.
_TAKING: dict[str, tuple] = {
    **{f.__name__: (f,) for f in (sum, max, min, any, all, list, tuple, sorted, math.prod)},
    "fromiter": (np.fromiter, fromiter),
}


def sequence(f: Any) -> Any:
    """Return one of Python's functions that make what loops run over as one whose elements are known by number."""
    try:
        return _OWN.get(f, f)
    except TypeError:
        return f


def iterate_over(f: Any) -> Any:
    """Return what a comprehension calls for its elements: zip or enumerate of what gives the same ones every time."""
    if f not in (zip, enumerate, reversed, itertools.pairwise):
        return lambda *args, **kwargs: items(prepare_call(f)(*args, **kwargs))
    return lambda *args, **kwargs: f(*map(items, args), **kwargs)


def is_builtin(name: str, f: Any) -> bool:
    """Return whether a program is recorded, and a function is what Python, or NumPy, calls by a name."""
    return is_recording() and any(f is own or (type(f) is StandIn and f == own) for own in _TAKING[name])


def items(x: Any) -> Any:
    """Return what code of a body runs over step by step; refuse what it would use up."""
    if current() is not None and hasattr(type(x), "__next__"):
        refuse(f"it draws from a {type(x).__name__}, which gives other elements the next time")
    return x
