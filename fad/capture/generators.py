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

from fad.capture.calls import make_helpers, note_grown
from fad.capture.context import current, reporting_as
from fad.capture.convert import convert_function, is_users
from fad.capture.iterables import sequence
from fad.capture.outcomes import Outcome, note_end
from fad.capture.places import Variable, bind_name, cells_of, content
from fad.capture.sequences import sequence_of
from fad.capture.sites import Loop
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

    def convert(self) -> tuple[Callable | None, str]:
        """Return the function that calls another one where the generator yields, or None and why there is none."""
        return convert_function(self.function, make_helpers[0], everywhere=current() is not None, generates=True)


def call_generator(f: Any) -> Any:
    """Return what a loop calls for what it runs over: of a generator function of the user's its code is kept."""
    inner = f.__func__ if type(f) is types.MethodType else f
    if not is_recording() or type(inner) is not types.FunctionType or not is_users(inner):
        return f
    if inner.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE) != inspect.CO_GENERATOR:
        return f
    return lambda *args, **kwargs: Generated(f, args, kwargs)


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


_WRITTEN: dict[Any, Callable] = {
    enumerate: _enumerate, map: _map, filter: _filter, itertools.accumulate: _accumulate,
}  # fmt: skip


def generate(f: Any) -> Any:
    """Return one of Python's functions that make what loops run over, where a generator can be run in its place."""
    written = _WRITTEN.get(f) if f.__class__ in (type, types.BuiltinFunctionType) and is_recording() else None
    if written is None:
        return sequence(f)

    def make(*args: Any, **kwargs: Any) -> Any:
        try:
            given = inspect.signature(written).bind(*args, **kwargs)
        except TypeError:  # several things to map, say
            return sequence(f)(*args, **kwargs)
        xs = given.arguments["xs"]
        whole = type(xs) is Generated or (f in (filter, itertools.accumulate) and sequence_of(xs) is not None)
        if not whole or (f is filter and args[0] is None):
            return sequence(f)(*args, **kwargs)
        return Generated(written, args, kwargs)

    return make


def run_generated(site: Loop, made: Generated, run: Callable, body: Callable) -> None:
    """Run a converted generator with the body of a loop over it."""
    kept, around = {*site.carried, *site.behind}, current()
    if around is not None and around.shared is not None:  # those of a function that the step calls are its own
        around.made |= {id(cell): cell for cell in cells_of(body).values() if id(cell) not in around.shared}

    def take(item: Any, body: Callable) -> None:
        inside = current()
        if inside is None:
            body(item)
            return
        cells = {name: cell for name, cell in cells_of(body).items() if name in site.names}
        for name in cells.keys() & kept:
            inside.note_change(Variable(cells[name], name))
        note_grown(inside, [Variable(cells_of(body)[name], name) for name in site.appended])
        before = {name: content(cells[name]) for name in cells.keys() - kept}
        outcome: Outcome | None = body(item)
        for name, x in before.items():  # nobody reads them in the next step
            bind_name(cells[name], x)
        note_end(outcome)

    with reporting_as(site.file, site.line):
        run(*made.args, **made.kwargs, _fad_take=take, _fad_body=body)
