"""Learning-rate schedules: functions from the number of steps done to a rate. Give one to an optimiser as ``lr=``."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable

Schedule = Callable[[int], float]


def constant(value: float) -> Schedule:
    """Return the schedule that is `value` always."""
    return lambda step: value


def linear(start: float, end: float, steps: int) -> Schedule:
    """Return the schedule that goes from `start` to `end` in a straight line over `steps` steps, and stays there.

    >>> linear(1.0, 0.0, 4)(1)
    0.75
    """
    return lambda step: start + (end - start) * min(step / steps, 1.0)


def cosine(start: float, steps: float, end: float = 0.0) -> Schedule:
    """Return the schedule that falls from `start` to `end` along half a cosine over `steps` steps, and stays there.

    >>> round(cosine(1.0, 4)(2), 12)
    0.5
    """
    return lambda step: end + (start - end) * 0.5 * (1.0 + math.cos(math.pi * min(step / steps, 1.0)))


def exponential(start: float, factor: float, every: int = 1) -> Schedule:
    """Return the schedule ``start factor^(step / every)``."""
    return lambda step: start * factor ** (step / every)


def step_decay(start: float, factor: float, every: int) -> Schedule:
    """Return the schedule that is multiplied by `factor` after each `every` steps.

    >>> [step_decay(1.0, 0.5, 2)(i) for i in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    return lambda step: start * factor ** (step // every)


def warmup(steps: int, then: Schedule | float) -> Schedule:
    """Return a schedule that rises in a straight line to that of `then` over `steps` steps; `then` starts after them.

    >>> [warmup(2, 1.0)(i) for i in range(4)]
    [0.5, 1.0, 1.0, 1.0]
    """
    after = then if callable(then) else constant(then)
    return lambda step: after(0) * (step + 1) / steps if step < steps else after(step - steps)


def joined(schedules: list[Schedule], boundaries: list[int]) -> Schedule:
    """Return schedules one after another: each starts anew at its boundary.

    >>> [joined([constant(1.0), constant(0.1)], [2])(i) for i in range(4)]
    [1.0, 1.0, 0.1, 0.1]
    """
    if len(schedules) != len(boundaries) + 1 or sorted(boundaries) != list(boundaries):
        raise ValueError("n schedules need n - 1 boundaries in increasing order")
    starts = [0, *boundaries]

    def at(step: int) -> float:
        i = bisect.bisect_right(boundaries, step)
        return schedules[i](step - starts[i])

    return at


def one_cycle(peak: float, steps: int, warm: float = 0.3, start: float = 25.0, end: float = 1e4) -> Schedule:
    """Return a rise from ``peak/start`` to `peak` over the first part `warm` of the steps, then a fall to
    ``peak/start/end`` in the last one; both along half a cosine (L. Smith and N. Topin, 2018), as PyTorch has it.

    >>> [round(one_cycle(1.0, 11)(i), 3) for i in (0, 1, 10)]
    [0.04, 0.422, 0.0]
    """
    top = max(warm * steps - 1.0, 0.0)  # the step with the highest rate, which may lie between two
    low, lowest = peak / start, peak / start / end

    def at(step: int) -> float:
        if step <= top:
            return cosine(low, top, peak)(step) if top else peak
        return cosine(peak, steps - 1.0 - top, lowest)(step - top)

    return at
