"""Events of differential equations, and solutions at any time: derivatives of where SciPy finds them.

SciPy solves once on plain numbers and says when each event happens. Its time is the root of the event along the
differentiable solution, so it has the derivative that the implicit function theorem gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as si

from fad.core.tracing.values import stop_gradient
from fad.scipy.host import plain
from fad.scipy.special.build import number
from fad.transforms.implicit import implicit_root

Solve = Callable[..., Any]
"""``solve(times, end)``: the states at traced times, in front; the integration may stop at `end`, if it is given."""


def solve_with_events(
    solve: Solve, field: Callable, y0: Any, span: tuple, times: Any, events: list[Callable], method: str, options: dict
) -> Any:
    """Return SciPy's result, whose times and states of the solution and of the events are differentiable."""
    t0, t1 = span
    start, end = float(number(t0)), float(number(t1))
    given = None if times is None else number(times)
    found = si.solve_ivp(
        lambda t, y: plain(field(np.float64(t), y.copy())),
        (start, end),
        number(y0),
        method,
        given,
        events=[_on_numbers(e) for e in events] or None,
        **options,
    )
    if not found.success:
        return found
    sign = 1 if start <= end else -1
    stop = sign * max((sign * ts).max() for ts in found.t_events if len(ts)) if found.status == 1 else None
    numbers, owner = _in_order(found.t_events or [], sign)
    happened = _times_of_events(lambda ts: solve(ts, stop), numbers, [events[k] for k in owner])
    if times is None:
        times = t0 + (t1 - t0) * ((found.t - start) / ((end - start) or 1.0))
        if stop is not None:
            times = np.concatenate([times[:-1], happened[-1:]])
    else:
        times = times[: len(found.t)]
    asked = np.concatenate([times, happened])
    order = np.argsort(sign * number(asked), kind="stable")
    states = solve(asked[order], stop)[np.argsort(order)]
    states = _with_numbers(states, [*found.y.T, *_rows_of(found, owner)])
    found.t, found.y = times, states[: len(found.t)].T
    if events:
        places = [np.flatnonzero(owner == k) for k in range(len(events))]
        found.t_events = [happened[at] if len(at) else np.array([]) for at in places]
        found.y_events = [states[len(times) + at] if len(at) else np.array([]) for at in places]
    return found


class DenseSolution:
    """The solution as a function of time: what ``sol`` of a result is. Each call solves the equation once more."""

    def __init__(self, solve: Solve, t0: Any, t1: Any):
        self.solve, self.t0, self.t1 = solve, t0, t1
        self.t_min, self.t_max = np.minimum(t0, t1), np.maximum(t0, t1)

    def __call__(self, t: Any) -> Any:
        """Return the state at a time, or a column for each of several."""
        times = np.reshape(t if hasattr(t, "dtype") else np.asarray(t), -1) + 0.0
        sign = 1 if number(self.t0) <= number(self.t1) else -1
        order = np.argsort(sign * number(times), kind="stable")
        states = self.solve(times[order])[np.argsort(order)]
        return states.T if np.ndim(t) else states[0]


def _on_numbers(event: Callable) -> Callable:
    """Return an event for SciPy, which has its direction and says whether it ends the integration."""

    def of_numbers(t: float, y: np.ndarray) -> Any:
        return plain(event(np.float64(t), y.copy()))

    for name in ("terminal", "direction"):
        if hasattr(event, name):
            setattr(of_numbers, name, getattr(event, name))
    return of_numbers


def _in_order(t_events: list, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of all events one after the other, and which event each is of."""
    numbers = np.concatenate([np.array([]), *t_events])
    owner = np.repeat(np.arange(len(t_events)), [len(ts) for ts in t_events])
    order = np.argsort(sign * numbers, kind="stable")
    return numbers[order], owner[order]


def _times_of_events(states_at: Callable, numbers: np.ndarray, events: list[Callable]) -> Any:
    """Return the times of events, differentiable as roots of the events along the solution."""
    if not len(numbers):
        return numbers

    def residual(times: Any) -> Any:
        states = states_at(times)
        return np.stack([np.reshape(e(times[k], states[k]), ()) for k, e in enumerate(events)])

    return implicit_root(residual, numbers, lambda slope, y: y / slope(np.ones(len(numbers))))


def _rows_of(found: Any, owner: np.ndarray) -> list:
    """Return the states at the events, in the order of their times."""
    rows = [iter(ys) for ys in found.y_events or []]
    return [next(rows[k]) for k in owner]


def _with_numbers(states: Any, rows: list) -> Any:
    """Return states with their derivatives and the numbers that SciPy found."""
    return np.array(rows) + (states - stop_gradient(states))
