"""Functions whose results loops run over, with elements known by their numbers: range, zip, product and others."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad.capture.body.context import current, is_staged, refuse
from fad.capture.body.values import as_number, getitem
from fad.capture.callees.calls import prepare_call
from fad.capture.choices.branches import choose
from fad.capture.iteration.sequences import Sequence, number_at, sequence_of
from fad.control_flow.bodies.intervals import interval
from fad.core.handles.iterators import fromiter, ndenumerate
from fad.core.tracing.tracer import Tracer

_MANY = 1_000_000  # combinations of which no table is made


class Reiterable:
    """What ``enumerate``, ``zip`` or ``reversed`` give of things that may be run over again."""

    __slots__ = ("what", "_make")

    def __init__(self, what: str, make: Callable):
        self.what = what
        self._make = make

    def __iter__(self) -> Iterator:
        return iter(self._make())


class Endless(Reiterable):
    """What ``itertools.count``, ``cycle`` or ``repeat`` give: elements known by number, of which there is no last."""

    __slots__ = ("element",)

    def __init__(self, what: str, make: Callable, element: Callable):
        super().__init__(what, make)
        self.element = element


def _make_reiterable(f: Callable, *args: Any, **options: Any) -> Any:
    """Return what one of these functions gives, to be run over as often as it is wanted where that can be."""
    if any(hasattr(type(x), "__next__") for x in args):
        return f(*args, **options)
    return Reiterable(f.__name__, lambda: f(*args, **options))


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
        lambda k: number_at(start, step, k),
        lambda: range(*map(operator.index, (start, stop, step))),
    )


def _sign(step: Any) -> int:
    """Return 1 or -1 for what a range counts by, and 0 where it may be zero or of either sign."""
    least, most = interval(step) if type(step) is Tracer else (step, step)
    return 1 if least is not None and least > 0 else -1 if most is not None and most < 0 else 0


def _enumerate(x: Any, start: int = 0) -> Any:
    found = sequence_of(x)
    if found is None:
        return _make_reiterable(enumerate, x, start)
    return Sequence(found.length, lambda k: (number_at(start, 1, k), found.element(k)), lambda: enumerate(found, start))


def _zip(*xs: Any, **options: Any) -> Any:
    found: list[Any] = [x if type(x) is Endless else sequence_of(x) for x in xs]
    lengths = [None if s is None else s.length for s in found if type(s) is not Endless]
    several = len(set(lengths)) > 1 or len(lengths) < len(found)
    if not lengths or any(type(n) is not int for n in lengths) or (options.get("strict") and several):
        return _make_reiterable(zip, *xs, **options)

    def element(k: Any) -> tuple:
        return tuple([s.element(k) for s in found])

    return Sequence(min(lengths), element, lambda: zip(*found, strict=False))  # type: ignore[type-var]


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
    found = [sequence_of(x) for x in xs]
    if not xs or any(s is None or type(s.length) is not int for s in found):
        return _make_reiterable(map, prepare_call(f), *xs)

    def element(k: Any) -> Any:
        return prepare_call(f)(*[s.element(k) for s in found])  # type: ignore[union-attr]  # as the body may call it

    return Sequence(min([s.length for s in found]), element, lambda: map(prepare_call(f), *found))  # type: ignore[union-attr, arg-type]


def _product(*xs: Any, repeat: int = 1) -> Any:
    found = [sequence_of(x) for x in xs] * repeat
    lengths = [None if s is None else s.length for s in found]
    if not found or any(type(n) is not int for n in lengths):
        return _make_reiterable(itertools.product, *xs, repeat=repeat)

    def element(k: Any) -> tuple:
        return tuple([s.element(i) for s, i in zip(found, _unravel(k, lengths), strict=True)])  # type: ignore[union-attr, arg-type]

    return Sequence(math.prod(lengths), element, lambda: itertools.product(*found))  # type: ignore[arg-type]


def _unravel(k: Any, lengths: list[int]) -> list:
    """Return the place along each axis of the element of a number."""
    strides = [math.prod(lengths[i + 1 :]) for i in range(len(lengths))]
    first, *others = [k if stride == 1 else k // stride for stride in strides]
    return [first, *[i % n for i, n in zip(others, lengths[1:], strict=True)]]


def _combine(choose: Callable, count: Callable, x: Any, r: Any = None) -> Any:
    """Return what a function of itertools chooses of some elements: the places of those of each choice are a table."""
    found = sequence_of(x)
    known = found is not None and type(found.length) is int
    r = found.length if known and r is None else r  # type: ignore[union-attr]
    if not known or type(r) is not int or r < 1 or not 0 < count(found.length, r) <= _MANY:  # type: ignore[union-attr]
        return _make_reiterable(choose, x, r)
    table = np.array(list(choose(range(found.length), r)))  # type: ignore[union-attr]

    def element(k: Any) -> tuple:
        return tuple([found.element(as_number(getitem(table, (k, j)))) for j in range(r)])  # type: ignore[union-attr]

    return Sequence(len(table), element, lambda: choose(found, r))


def _chain(*xs: Any) -> Any:
    found: list[Any] = [sequence_of(x) for x in xs if type(x) not in (list, tuple) or x]
    if not found or any(s is None or type(s.length) is not int or not s.length for s in found):
        return _make_reiterable(itertools.chain, *xs)

    def element(k: Any, first: int = 0) -> Any:
        here, behind = found[first], first + 1
        if behind == len(found):
            return here.element(k)
        last, others = here.length - 1, k - here.length  # each way is recorded for all k, and stays within its own
        return choose(
            k <= last,
            lambda: here.element(as_number(np.minimum(k, last)) if type(k) is Tracer else k),
            lambda: element(as_number(np.maximum(others, 0)) if type(k) is Tracer else others, behind),
        )

    return Sequence(sum(s.length for s in found), element, lambda: itertools.chain(*found))


def _count(start: Any = 0, step: Any = 1) -> Any:
    if any(type(x) is not int for x in (start, step)):  # floating-point numbers are added up, and rounded
        return _make_reiterable(itertools.count, start, step)
    return Endless("count", lambda: itertools.count(start, step), lambda k: number_at(start, step, k))


def _cycle(x: Any) -> Any:
    found = sequence_of(x) if type(x) in (list, tuple, range) else None  # of others it keeps what was in them first
    if found is None or not found.length:
        return _make_reiterable(itertools.cycle, x)
    return Endless("cycle", lambda: itertools.cycle(found), lambda k: found.element(k % found.length))


def _repeat(x: Any, *times: Any) -> Any:
    if not times:
        return Endless("repeat", lambda: itertools.repeat(x), lambda k: x)
    if type(times[0]) is not int:
        return _make_reiterable(itertools.repeat, x, *times)
    return Sequence(max(times[0], 0), lambda k: x, lambda: itertools.repeat(x, *times))


def _slice(x: Any, *bounds: Any) -> Any:
    found: Any = x if type(x) is Endless else sequence_of(x)
    part = slice(*bounds) if 1 <= len(bounds) <= 3 else slice(-1)
    start, step = (0 if part.start is None else part.start), (1 if part.step is None else part.step)
    last = None if type(found) is Endless else getattr(found, "length", None)
    stop: Any = last if part.stop is None else part.stop
    if found is None or any(type(n) is not int or n < 0 for n in (start, step, stop)) or not step:
        return _make_reiterable(itertools.islice, x, *bounds)
    if type(found) is not Endless and type(last) is not int:
        return _make_reiterable(itertools.islice, x, *bounds)
    numbers = range(start, stop if last is None else min(stop, last), step)
    return Sequence(
        len(numbers), lambda k: found.element(number_at(start, step, k)), lambda: itertools.islice(found, *bounds)
    )


def _index(*shape: Any) -> Any:
    lengths = list(shape[0] if len(shape) == 1 and type(shape[0]) is tuple else shape)
    if not lengths or any(type(n) is not int for n in lengths):
        return _make_reiterable(np.ndindex, *shape)
    return Sequence(math.prod(lengths), lambda k: tuple(_unravel(k, lengths)), lambda: np.ndindex(*lengths))


def _enumerate_places(x: Any) -> Any:
    if type(x) not in (Tracer, np.ndarray) or not x.shape or x.dtype.kind not in "fcbiu":
        return _make_reiterable(ndenumerate, x)
    places = _index(*x.shape)

    def element(k: Any) -> tuple:
        place = places.element(k)
        return place, getitem(x, place)

    return Sequence(places.length, element, lambda: ndenumerate(x))


def elements_of(x: Any) -> Any:
    """Return ``x.flat``, of a traced array as elements known by their numbers."""
    if type(x) is not Tracer or not x.shape:
        return x.flat
    return Sequence(x.size, lambda k: getitem(np.ravel(x), k), lambda: x.flat)


_OWN: dict[Any, Callable] = {
    range: _range, enumerate: _enumerate, zip: _zip, reversed: _reverse, map: _map, itertools.pairwise: _pair,
    itertools.count: _count, itertools.cycle: _cycle, itertools.repeat: _repeat, itertools.islice: _slice,
    itertools.product: _product, np.ndindex: _index, itertools.chain: _chain,
    itertools.combinations: functools.partial(_combine, itertools.combinations, math.comb),
    itertools.permutations: functools.partial(_combine, itertools.permutations, math.perm),
    itertools.combinations_with_replacement: functools.partial(
        _combine, itertools.combinations_with_replacement, lambda n, r: math.comb(n + r - 1, r)
    ),
    **dict.fromkeys((np.ndenumerate, ndenumerate), _enumerate_places),
}  # fmt: skip
_OF_ITERATORS = (
    itertools.pairwise, itertools.product, itertools.combinations, itertools.permutations,
    itertools.combinations_with_replacement,
)  # fmt: skip
# Functions that take all that a generator gives, by name; NumPy's has another for traced values.
TAKING: dict[str, tuple] = {
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
    if f not in (zip, enumerate, reversed, *_OF_ITERATORS):
        return lambda *args, **kwargs: items(prepare_call(f)(*args, **kwargs))
    return lambda *args, **kwargs: f(*map(items, args), **kwargs)


def items(x: Any) -> Any:
    """Return what code of a body runs over step by step; refuse what it would use up."""
    if current() is not None and hasattr(type(x), "__next__"):
        refuse(f"it draws from a {type(x).__name__}, which gives other elements the next time")
    return x
