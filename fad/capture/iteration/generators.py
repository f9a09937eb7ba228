"""Loops over generators of the user's: the generator's own loop is captured, with the body of the other at ``yield``.

``for t, y in trajectory(y0): total += y`` does what the generator's code does, with the body in place of each
``yield``, if the body does not jump out and no handler of the generator's is around. What the body binds are variables
of another function, as those that a called function declares nonlocal.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fad.capture.body.context import current, reporting_as
from fad.capture.body.outcomes import Outcome, ended_by, note_end
from fad.capture.body.places import Variable, bind_name, cells_of, content
from fad.capture.callees.calls import make_helpers, note_grown
from fad.capture.callees.resumable import Resumable, is_generator_function, make_resumable
from fad.capture.iteration.iterables import TAKING, Endless, sequence
from fad.capture.iteration.sequences import sequence_of
from fad.capture.rewriting.convert import convert_function
from fad.capture.rewriting.sites import Loop
from fad.capture.rewriting.yields import BREAKS, RUNS
from fad.ops.python.python_functions import StandIn
from fad.staging.record import is_recording


class Generated:
    """What a call of a generator function gives to a loop."""

    __slots__ = ("function", "args", "kwargs")

    def __init__(self, function: Any, args: tuple, kwargs: dict):
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def __iter__(self) -> Iterator:
        return self.function(*self.args, **self.kwargs)

    def convert(self, form: str) -> tuple[Callable | None, str]:
        """Return the function that calls another one where the generator yields, or None and why there is none."""
        return convert_function(self.function, make_helpers[0], everywhere=current() is not None, generates=form)


def call_generator(f: Any) -> Any:
    """Return what a loop calls for what it runs over: of a generator function of the user's its code is kept."""
    if not is_recording() or not is_generator_function(f):
        return f
    return lambda *args, **kwargs: Generated(f, args, kwargs)


def is_builtin(name: str, f: Any, *generating: Any) -> bool:
    """Return whether a program is recorded, and a function is what Python, or NumPy, calls by a name.

    What it is given may be a call of another one, which has to be a generator function.
    """
    own = is_recording() and any(f is own or (type(f) is StandIn and f == own) for own in TAKING[name])
    return own and all(map(is_generator_function, generating))


def as_generated(x: Any) -> Any:
    """Return what a loop runs over, of an object whose ``__iter__`` is a generator function that one's code."""
    if type(x) is Resumable:
        return Generated(_draw, (x,), {}) if not x.closed else ()
    run = getattr(type(x), "__iter__", None)
    if type(x) is Generated or type(run) is not types.FunctionType or not is_generator_function(run):
        return x
    return Generated(types.MethodType(run, x), (), {})


# --- functions that give one element for another, written as generators -----------------------------------------------


def _enumerate(xs: Iterable, start: Any = 0) -> Iterator:
    k = start
    for x in xs:
        yield k, x
        k += 1


def _filter(f: Any, xs: Iterable) -> Iterator:
    for x in xs:
        if f(x):
            yield x


def _map(f: Any, xs: Iterable) -> Iterator:
    for x in xs:
        yield f(x)


def _accumulate(xs: Iterable, f: Any = operator.add, *, initial: Any = None) -> Iterator:
    total: Any = itertools.accumulate if initial is None else initial
    if initial is not None:
        yield initial
    for x in xs:
        total = x if total is itertools.accumulate else f(total, x)
        yield total


def _takewhile(f: Any, xs: Iterable) -> Iterator:
    for x in xs:
        if not f(x):
            break
        yield x


def _draw(g: Iterator) -> Iterator:
    while True:
        yield next(g)


def _slice(xs: Iterable, start: Any, stop: Any, step: Any) -> Iterator:
    k = 0
    for x in xs:
        if k >= start and (k - start) % step == 0:
            yield x
        k += 1  # noqa: SIM113  it is state of the loop
        if k == stop:
            break


def _zip(xs: Iterable, element: Callable, before: Any, behind: Any) -> Iterator:
    k = 0
    for x in xs:
        if k == behind:  # which is seen when the generator has been drawn from
            break
        yield element(k, x)
        k += 1  # noqa: SIM113  it is state of the loop
        if k == before:
            break


_WRITTEN: dict[Any, Callable] = {
    enumerate: _enumerate, map: _map, filter: _filter, itertools.accumulate: _accumulate,
    itertools.takewhile: _takewhile,
}  # fmt: skip
_OF_ALL = (filter, itertools.accumulate, itertools.takewhile)  # that run as generators over numbered elements, too


def _bind_slice(xs: Any, *bounds: Any) -> Generated | None:
    """Return ``islice(xs, *bounds)`` of a generator, if it gives anything."""
    part = slice(*bounds) if type(xs) is Generated and 1 <= len(bounds) <= 3 else slice(0)
    start, step = (0 if part.start is None else part.start), (1 if part.step is None else part.step)
    known = all(type(n) is int and n >= 0 for n in (start, step - 1, part.stop or 0)) and part.stop != 0
    if not known or (part.stop is not None and part.stop <= start):
        return None
    return Generated(_slice, (xs, start, part.stop, step), {})


def _bind_zip(*xs: Any, **options: Any) -> Generated | None:
    """Return ``zip`` of generators and of things whose elements are known by number.

    The first generator is run, and the others are drawn from.
    """
    places = [k for k, x in enumerate(xs) if type(x) is Generated]
    if not places or options:
        return None
    at = places[0]
    found = [x if k == at or type(x) is Endless else _as_numbered(x) for k, x in enumerate(xs)]
    lengths = [None if type(x) is Endless else getattr(x, "length", 0) for x in found]
    if any(n is not None for n in lengths[places[-1] :]) and len(places) > 1:
        return None  # where that ends the others have been drawn from once more
    before, behind = (min([n for n in ns if n is not None], default=None) for ns in (lengths[:at], lengths[at + 1 :]))
    if None in found or before == 0 or not {type(before), type(behind)} <= {int, type(None)}:
        return None

    def element(k: Any, y: Any) -> tuple:
        return tuple([y if x is xs[at] else x.element(k) for x in found])

    return Generated(_zip, (xs[at], element, before, behind), {})


def _as_numbered(x: Any) -> Any:
    """Return something as elements known by number, a generator as what gives its next one; None if it cannot be."""
    if type(x) is not Generated:
        return sequence_of(x)
    if x.function is _draw:
        (g,) = x.args
    else:
        make = make_resumable(x.function, make_helpers[0])
        g = None if make is None else make(*x.args, **x.kwargs)
    return None if g is None else Endless("generator", lambda: g, lambda _: next(g))


_BOUND: dict[Any, Callable] = {itertools.islice: _bind_slice, zip: _bind_zip}


def _as_drawn(x: Any) -> Any:
    return as_generated(x) if type(x) is Resumable else x


def generate(f: Any) -> Any:
    """Return one of Python's functions that make what loops run over, where a generator can be run in its place."""
    known = f.__class__ in (type, types.BuiltinFunctionType) and is_recording()
    written, bind = (_WRITTEN.get(f), _BOUND.get(f)) if known else (None, None)
    if bind is not None:
        return lambda *args, **kwargs: bind(*map(_as_drawn, args), **kwargs) or sequence(f)(*args, **kwargs)
    if written is None:
        return sequence(f)

    def make(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(_as_drawn, args))
        try:
            given = inspect.signature(written).bind(*args, **kwargs)
        except TypeError:  # several things to map, say
            return sequence(f)(*args, **kwargs)
        xs = given.arguments["xs"]
        whole = type(xs) is Generated or (f in _OF_ALL and sequence_of(xs) is not None)
        if not whole or (f is filter and args[0] is None):
            return sequence(f)(*args, **kwargs)
        return Generated(written, args, kwargs)

    return make


def run_generated(site: Loop, made: Generated, run: Callable, body: Callable, form: str) -> Outcome | None:
    """Run a converted generator with the body of a loop over it; return how the loop ended."""
    kept, around = {*site.carried, *site.behind}, current()
    if around is not None and around.shared is not None:  # those of a function that the step calls are its own
        around.made |= {id(cell): cell for cell in cells_of(body).values() if id(cell) not in around.shared}

    def take(item: Any, body: Callable) -> Outcome | None:
        inside = current()
        if inside is None:
            return body(item)
        cells = {name: cell for name, cell in cells_of(body).items() if name in site.names}
        for name in cells.keys() & kept:
            inside.note_change(Variable(cells[name], name))
        note_grown(inside, [Variable(cells_of(body)[name], name) for name in site.appended])
        before = {name: content(cells[name]) for name in cells.keys() - kept}
        outcome: Outcome | None = body(item)
        for name, x in before.items():  # nobody reads them in the next step
            bind_name(cells[name], x)
        if form == RUNS or (form == BREAKS and site.raises):
            note_end(outcome)
        return outcome

    with reporting_as(site.file, site.line):
        return ended_by(run(*made.args, **made.kwargs, _fad_take=take, _fad_body=body))
