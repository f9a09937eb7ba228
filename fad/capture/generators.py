"""Loops over generators of the user's: the generator's own loop is captured, with the body of the other at ``yield``.

``for t, y in trajectory(y0): total += y`` does what the generator's code does, with the body in place of each
``yield``, if the body does not jump out and no handler of the generator's is around. What the body binds are variables
of another function, as those that a called function declares nonlocal.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from fad.capture.calls import make_helpers, note_grown
from fad.capture.context import current
from fad.capture.convert import convert_function, is_users
from fad.capture.outcomes import Outcome, note_end
from fad.capture.places import Variable, bind_name, cells_of, content
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


def run_generated(site: Loop, made: Generated, run: Callable, body: Callable) -> None:
    """Run a converted generator with the body of a loop over it."""
    kept = {*site.carried, *site.behind}

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

    run(*made.args, **made.kwargs, _fad_take=take, _fad_body=body)
