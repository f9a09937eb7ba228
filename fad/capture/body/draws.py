"""Random numbers that the steps of a loop draw: they are drawn before the loop, for all steps in their order.

A generator may be drawn from where no call shows it, in a property, or a sort's key. What those are, is seen by their
states.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fad.capture.body.context import current, refuse
from fad.capture.body.values import as_number, take_outside
from fad.core.handles.random_sources import GeneratorStates, draw_scaled, is_scaled
from fad.introspect.reachable import Walk, is_library

_MOST = 200  # things that are looked at, from the step on
_MOST_BYTES = 1 << 28  # of what all steps draw
_PLAIN = (int, float, bool, str, type(None))
_DRAWING = frozenset({
    "beta", "binomial", "chisquare", "choice", "exponential", "gamma", "geometric", "gumbel", "integers", "laplace",
    "logistic", "lognormal", "normal", "pareto", "poisson", "power", "rand", "randint", "randn", "random",
    "random_sample", "rayleigh", "standard_cauchy", "standard_exponential", "standard_gamma", "standard_normal",
    "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull",
})  # fmt: skip
_FILLING = frozenset({"random", "standard_exponential", "standard_gamma", "standard_normal"})  # an array given to them


def states_reached(functions: Iterable[Callable]) -> GeneratorStates:
    """Return the states of the generators that functions reach."""
    return GeneratorStates(Walk(functions, _MOST))


# --- what each step draws -------------------------------------------------------------------------------------------


class _Draw(NamedTuple):
    """A call by which each step draws."""

    source: Any
    name: str
    args: tuple
    kwargs: dict

    def is_like(self, other: _Draw) -> bool:
        """Return whether another call draws the same."""
        same = self.source is other.source and self.name == other.name and self.kwargs.keys() == other.kwargs.keys()
        pairs = [*zip(self.args, other.args, strict=False), *((x, other.kwargs[k]) for k, x in self.kwargs.items())]
        return same and len(self.args) == len(other.args) and all(_is_same(x, y) for x, y in pairs)

    def run(self, source: Any) -> Any:
        """Return what a generator gives for the call: a plain number or array."""
        return getattr(_class_of(source), self.name)(source, *self.args, **self.kwargs)


class StepDraws:
    """What the steps of one loop draw: each the same, by the same calls in the same order."""

    def __init__(self) -> None:
        self.calls: list[_Draw] = []
        self._numbers: list[bool] = []  # which of them give numbers of Python's
        self._bytes = 0  # of what a step draws
        self._number: Any = None  # of the step
        self._place = 0  # of the next call in the step
        self._drawn: list[np.ndarray] | None = None  # for each call what all steps get
        self._states = GeneratorStates(())  # of the generators, before it was drawn for all steps

    @contextlib.contextmanager
    def drawing(self, body: Any, number: Any) -> Iterator[None]:
        """Let the step of a number draw for the length of a block, if it is in a body."""
        if body is not None and body.alone:
            body.draws, self._number, self._place = self, number, 0
            if self._drawn is None:
                self.calls, self._numbers, self._bytes = [], [], 0
        try:
            yield
        finally:
            if body is not None:
                body.draws = None

    def take(self, call: _Draw) -> Any:
        """Return what a call gives in the step that is run."""
        body, k = current(), self._place
        self._place += 1
        if self._drawn is None:  # it is looked at
            shown = call.run(_copy(call.source))
            if (type(shown) is np.ndarray and not shown.shape) or np.asarray(shown).dtype.kind not in "biufc":
                refuse("it draws an array without axes, or what is no number")
            self.calls.append(call)
            self._numbers.append(type(shown) in (bool, int, float))
            self._bytes += np.asarray(shown).nbytes
            return body.trace.new(shown)  # type: ignore[union-attr]
        if k >= len(self.calls) or not self.calls[k].is_like(call):
            refuse("it draws other random numbers in one step than in another")
        found = take_outside(self._drawn[k], self._number)
        return as_number(found) if self._numbers[k] else found

    def check_complete(self) -> None:
        """Refuse a step that has drawn less than the one that was looked at."""
        if self._place < len(self.calls):
            refuse("it draws other random numbers in one step than in another")

    def find_refusal(self, n: Any) -> str | None:
        """Return why it cannot be drawn for n steps before the loop; None if it can."""
        if self.calls and type(n) is not int:
            return "it draws random numbers, and it is not known how often"
        return "it draws many random numbers" if self.calls and n * self._bytes > _MOST_BYTES else None

    def draw(self, n: int) -> None:
        """Draw for n steps."""
        if not self.calls:
            return
        self._states = GeneratorStates([call.source for call in self.calls])
        rows = [[call.run(call.source) for call in self.calls] for _ in range(n)]
        self._drawn = [np.array(column) for column in zip(*rows, strict=True)]

    def put_back(self) -> None:
        """Let the generators be as before it was drawn for all steps."""
        self._states.put_back()
        self._drawn = None


def draw_in_step(source: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Return what a generator gives a step of the loop that is captured."""
    body = current()
    if body is None:
        return getattr(source, name)(*args, **kwargs)
    if is_scaled(name, args, kwargs) and "out" not in kwargs:
        standard = lambda name, size: draw_in_step(source, name, size=size)
        return draw_scaled(name, args, kwargs, standard)
    draws = None if body.level or body.ways else body.draws
    plain = all(_is_plain(x) for x in (*args, *kwargs.values())) and is_library(type(source).__module__)
    fills = "out" in kwargs or (name in _FILLING and any(type(x) is np.ndarray for x in args[1:]))
    if draws is None or name not in _DRAWING or not plain or fills:
        refuse(f"it draws random numbers, by {name}")
    return draws.take(_Draw(source, name, args, kwargs))


def is_generator(x: Any) -> bool:
    """Return whether something is one of NumPy's generators, or of a class that is derived from theirs."""
    return "numpy.random" in sys.modules and isinstance(x, (np.random.Generator, np.random.RandomState))


def _class_of(source: Any) -> type:
    return np.random.Generator if isinstance(source, np.random.Generator) else np.random.RandomState


def _copy(source: Any) -> Any:
    """Return a generator that draws what another one is going to."""
    if isinstance(source, np.random.Generator):
        return np.random.Generator(copy.deepcopy(source.bit_generator))
    return np.random.RandomState(copy.deepcopy(source._bit_generator))


def _is_plain(x: Any) -> bool:
    """Return whether an argument is no traced value, and holds none."""
    return type(x) in _PLAIN or type(x) is np.ndarray or (type(x) in (tuple, list) and all(map(_is_plain, x)))


def _is_same(x: Any, y: Any) -> bool:
    if type(x) in (tuple, list):
        return type(x) is type(y) and len(x) == len(y) and all(map(_is_same, x, y))
    return x is y or (type(x) is type(y) and type(x) in _PLAIN and x == y)
