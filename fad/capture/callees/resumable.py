"""Generators of which code draws one element after the other: ``g = swinging(x)``, and ``next(g)`` in a loop.

A generator that ends in ``while True`` with one ``yield`` is two functions that share its variables: what its step does
before it yields, and what behind. To draw is to call the latter, and then the former. So its variables are state of a
loop that draws, as are those that a called function declares nonlocal.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from fad.capture.body.context import current, refuse
from fad.capture.body.places import Variable, bind_name, cells_of
from fad.capture.body.unseen import find_variables
from fad.capture.rewriting.convert import convert_function, is_users
from fad.capture.rewriting.helpers import HELPERS
from fad.capture.rewriting.yields import RESUMED
from fad.staging.record import is_recording


def is_generator_function(f: Any) -> bool:
    """Return whether something is a generator function of the user's, or a method that is one."""
    inner = f.__func__ if type(f) is types.MethodType else f
    if type(inner) is not types.FunctionType or not is_users(inner):
        return False
    return inner.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE) == inspect.CO_GENERATOR


def make_resumable(f: Any, make_helpers: Callable) -> Callable | None:
    """Return what makes generators from which a loop can draw, for a generator function; None if there is nothing."""
    if not is_recording() or not is_generator_function(f):
        return None
    begin, _ = convert_function(f, make_helpers, everywhere=True, generates=RESUMED)
    return None if begin is None else lambda *args, **kwargs: Resumable(f, begin, args, kwargs)


class Resumable:
    """A generator, drawn from by the two functions that its step is."""

    __slots__ = ("closed", "_begin", "_inner", "_parts", "_started")

    def __init__(self, f: Any, begin: Callable, args: tuple, kwargs: dict):
        f(*args, **kwargs)  # which raises where the arguments are others than it takes
        self._inner: Any = f.__func__ if type(f) is types.MethodType else f
        self._begin = lambda: begin(*args, **kwargs)
        self._parts: tuple[Callable, Callable] | None = None  # what a step does before it yields, and behind
        self._started = types.CellType()  # bound when it has been drawn from
        self.closed = False
        body = current()
        if body is not None:
            body.made |= {id(self): self, id(self._started): self._started}

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return types.GeneratorType

    def __iter__(self) -> Resumable:
        return self

    def __next__(self) -> Any:
        if self.closed:
            raise StopIteration
        return self._start() if self._parts is None else self._resume(*self._parts)

    def send(self, _: Any) -> Any:
        """Draw; what is sent is not read."""
        return next(self)

    def throw(self, error: Any, *_: Any) -> Any:
        """Raise an error where the generator is, which nothing there catches."""
        self.closed = True
        raise error

    def close(self) -> None:
        """End the generator."""
        self.closed = True

    def _start(self) -> Any:
        body = current()
        self._note_nonlocals()
        parts = self._begin()
        if body is None:
            self._parts = parts
        elif id(self) in body.made:  # what it binds is as new as itself
            self._parts = parts
            body.made |= {id(cell): cell for cell in self._own_cells(*parts)}
        else:  # a first step has to be run: what the next one does is something else
            place = Variable(self._started, "a generator")
            body.note_change(place)
            bind_name(place, 0.0)
        return parts[0]()

    def _resume(self, before: Callable, behind: Callable) -> Any:
        body = current()
        if body is not None:
            for name, cell in cells_of(before, behind).items():
                if self._binds(name):
                    body.note_change(Variable(cell, name))
        self._note_nonlocals()
        behind()
        return before()

    def _note_nonlocals(self) -> None:
        body = current()
        if body is not None:
            for place in find_variables(self._inner):
                body.note_change(place)

    def _binds(self, name: str) -> bool:
        return name != HELPERS and name not in self._inner.__code__.co_freevars

    def _own_cells(self, before: Callable, behind: Callable) -> list:
        return [cell for name, cell in cells_of(before, behind).items() if self._binds(name)]


def draw_next(g: Any, *default: Any) -> Any:
    """Return ``next(g)``."""
    if type(g) is not Resumable and current() is not None:
        refuse("it calls next of what gives other elements the next time")
    return next(g, *default)
