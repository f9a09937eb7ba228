"""Learning-rate schedules: functions from the number of steps done to a rate. Give one to an optimiser as ``lr=``."""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable
from typing import Any

from fad.ops.python import python_functions as _functions
from fad.ops.python import python_math as _math

Schedule = Callable[[float], float]
# Also of the traced step of a compiled update.
_cos = _functions.stand_for_operation(math.cos, _math.OPERATIONS["cos"], _math.take_real)


class _Named:
    """A schedule that says in its repr how it was made, and is pickled as that."""

    __slots__ = ("_rate", "_how")

    def __init__(self, rate: Schedule, how: tuple[str, tuple, dict]):
        self._rate = rate
        self._how = how

    def __call__(self, step: float) -> float:
        return self._rate(step)

    def __repr__(self) -> str:
        name, args, kwargs = self._how
        settings = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
        return f"<fad.optim.schedules.{name}({', '.join(settings)})>"

    def __reduce__(self) -> tuple:
        return _make, self._how


def _make(name: str, args: tuple, kwargs: dict) -> Schedule:
    return globals()[name](*args, **kwargs)


def _label(make: Callable[..., Schedule]) -> Callable[..., Schedule]:
    """Return the same function, whose schedules say with which settings they were made."""

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Schedule:
        return _Named(make(*args, **kwargs), (make.__name__, args, kwargs))

    return made


@_label
def constant(value: float) -> Schedule:
    """Return the schedule that is `value` always.

    Parameters
    ----------
    value : float
        The rate.

    Returns
    -------
    callable
        From the number of steps done to the rate.

    Examples
    --------
    >>> constant(0.1)
    <fad.optim.schedules.constant(0.1)>
    """
    return lambda step: value


@_label
def linear(start: float, end: float, steps: int) -> Schedule:
    """Return the schedule that goes from `start` to `end` in a straight line over `steps` steps, and stays there.

    Parameters
    ----------
    start, end : float
        The first and the last rate.
    steps : int
        After how many steps the last one is reached.

    Returns
    -------
    callable
        From the number of steps done to the rate.

    Examples
    --------
    >>> linear(1.0, 0.0, 4)(1)
    0.75
    """
    return lambda step: start + (end - start) * min(step / steps, 1.0)


@_label
def cosine(start: float, steps: float, end: float = 0.0) -> Schedule:
    """Return the schedule that falls from `start` to `end` along half a cosine over `steps` steps, and stays there.

    Parameters
    ----------
    start, end : float
        The first and the last rate.
    steps : float
        After how many steps the last one is reached.

    Returns
    -------
    callable
        From the number of steps done to the rate.

    Examples
    --------
    >>> round(cosine(1.0, 4)(2), 12)
    0.5
    """
    return lambda step: end + (start - end) * 0.5 * (1.0 + _cos(math.pi * min(step / steps, 1.0)))


@_label
def exponential(start: float, factor: float, every: int = 1) -> Schedule:
    """Return the schedule ``start factor^(step / every)``.

    Parameters
    ----------
    start : float
        The first rate.
    factor : float
        What it is multiplied by.
    every : int
        After how many steps.

    Returns
    -------
    callable
        From the number of steps done to the rate.

    Examples
    --------
    >>> exponential(1.0, 0.5)(2)
    0.25
    """
    return lambda step: start * factor ** (step / every)


@_label
def step_decay(start: float, factor: float, every: int) -> Schedule:
    """Return the schedule that is multiplied by `factor` after each `every` steps.

    Parameters
    ----------
    start : float
        The first rate.
    factor : float
        What it is multiplied by.
    every : int
        After how many steps.

    Returns
    -------
    callable
        From the number of steps done to the rate.

    Examples
    --------
    >>> [step_decay(1.0, 0.5, 2)(i) for i in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    return lambda step: start * factor ** (step // every)


@_label
def warmup(steps: int, then: Schedule | float) -> Schedule:
    """Return a schedule that rises in a straight line to that of `then` over `steps` steps; `then` starts after them.

    Parameters
    ----------
    steps : int
        How long the rate rises.
    then : schedule or float
        What follows.

    Returns
    -------
    callable
        From the number of steps done to the rate.

    Examples
    --------
    >>> [warmup(2, 1.0)(i) for i in range(4)]
    [0.5, 1.0, 1.0, 1.0]
    """
    after = then if callable(then) else constant(then)
    return lambda step: after(0) * (step + 1) / steps if step < steps else after(step - steps)


@_label
def joined(schedules: list[Schedule], boundaries: list[int]) -> Schedule:
    """Return schedules one after another: each starts again at its boundary.

    Parameters
    ----------
    schedules : list of schedules
        One after another.
    boundaries : list of int
        The steps at which the next one begins.

    Returns
    -------
    callable
        From the number of steps done to the rate.

    Raises
    ------
    ValueError
        if there are not one boundary fewer than schedules, in increasing order.

    Examples
    --------
    >>> [joined([constant(1.0), constant(0.1)], [2])(i) for i in range(4)]
    [1.0, 1.0, 0.1, 0.1]
    """
    if len(schedules) != len(boundaries) + 1 or sorted(boundaries) != list(boundaries):
        raise ValueError("n schedules need n - 1 boundaries in increasing order")
    starts = [0, *boundaries]

    def at(step: float) -> float:
        i = bisect.bisect_right(boundaries, step)
        return schedules[i](step - starts[i])

    return at


@_label
def one_cycle(peak: float, steps: int, warm: float = 0.3, start: float = 25.0, end: float = 1e4) -> Schedule:
    """Return a rise from ``peak/start`` to `peak` over the first part `warm` of the steps, then a fall to
    ``peak/start/end`` in the last one; both along half a cosine (L. Smith and N. Topin, 2018), as PyTorch has it.

    Parameters
    ----------
    peak : float
        The highest rate.
    steps : int
        How many there are.
    warm : float
        The part of them in which the rate rises.
    start, end : float
        What the peak is divided by at first, and again at last.

    Returns
    -------
    callable
        From the number of steps done to the rate.

    Examples
    --------
    >>> [round(one_cycle(1.0, 11)(i), 3) for i in (0, 1, 10)]
    [0.04, 0.422, 0.0]
    """
    top = max(warm * steps - 1.0, 0.0)  # the step with the highest rate, which may lie between two
    low, lowest = peak / start, peak / start / end

    def at(step: float) -> float:
        if step <= top:
            return cosine(low, top, peak)(step) if top else peak
        return cosine(peak, steps - 1.0 - top, lowest)(step - top)

    return at
