"""Adaptive Runge-Kutta methods in fad's operations, with SciPy's coefficients and step control.

Written as a user would, in plain NumPy: `jit` captures its loop as it captures theirs. Time runs as a fraction of the
interval, so that the ends may be traced. Step sizes are chosen from numbers, and are constants to every derivative; in
a ``vmap`` the largest error of all batch elements decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate as si

from fad.capture.rewriting.convert import CAPTURED
from fad.core.handles.buffers import buffer
from fad.core.tracing.values import stop_gradient
from fad.core.tracing.views import snapshot
from fad.errors import DerivativeError
from fad.scipy.special.build import number

CAPTURED.add(__name__)
EXPLICIT = {"RK23": si.RK23, "RK45": si.RK45, "DOP853": si.DOP853}
_SPACING = 10 * np.finfo(float).eps
_TOO_SMALL = (
    "solve_ivp could not complete the integration: the required step is smaller than the spacing of numbers. The "
    "solution may have a singularity, or the equation be stiff: use method='Radau'"
)


class Problem(NamedTuple):
    """What a solution is computed of: ``slope(s, y)``, the right-hand side for time counted in fractions, and how."""

    slope: Callable
    span: float  # the length of the interval in units of time
    rk: Any
    rtol: Any
    atol: Any
    largest: float  # the largest step


def pose(field: Callable, t0: Any, t1: Any, method: str, rtol: Any, atol: Any, max_step: float) -> Problem:
    """Return the initial value problem ``dy/dt = field(t, y)`` from t0 to t1 for an explicit method."""
    length = t1 - t0
    span = np.max(np.abs(number(length)))
    rtol = np.maximum(rtol, 100 * np.finfo(float).eps)
    largest = 1.0 if max_step == np.inf else min(1.0, max_step / float(span))
    return Problem(lambda s, y: field(t0 + length * s, y) * length, span, EXPLICIT[method], rtol, atol, largest)


def integrate(problem: Problem, y0: Any, first_step: float | None) -> tuple[list, list, int]:
    """Return the ends of all steps, as fractions of the interval, the states there, and how many slopes it took."""
    s, y = 0.0, y0
    k = problem.slope(s, y)
    h = choose_first_step(problem, y, k, first_step)
    ends: list = [s]
    states: list = [y0]
    slopes, rejected = 1 + (first_step is None), False
    while s < 1.0:
        h = limit_step(problem, s, h)
        if h < _SPACING:
            raise DerivativeError(_TOO_SMALL)
        new, ks = take_step(problem, s, y, k, h)
        slopes += len(ks) - 1
        error = estimate_error(problem, h, y, new, ks)
        accepted = error < 1.0
        if accepted:
            s, y, k = find_end(s, h), new, ks[-1]
            ends.append(s)
            states.append(y)
        h = h * find_factor(problem, error, rejected)
        rejected = not accepted
    return ends, states, slopes


def integrate_at(
    problem: Problem, y0: Any, first_step: float | None, fractions: Any, until_last: bool
) -> tuple[Any, int]:
    """Return the states at some fractions of the interval, in their order, and how many slopes it took.

    `until_last` of them, what comes behind is not computed.
    """
    numbers = number(fractions)
    count = len(numbers)
    states = buffer(np.zeros((count, len(y0)), dtype=y0.dtype))  # into which traced values may be written
    s, y = 0.0, y0
    k = problem.slope(s, y)
    h = choose_first_step(problem, y, k, first_step)
    slopes, rejected, at = 1 + (first_step is None), False, 0
    while s < 1.0 and not (until_last and at == count):
        h = limit_step(problem, s, h)
        if h < _SPACING:
            raise DerivativeError(_TOO_SMALL)
        new, ks = take_step(problem, s, y, k, h)
        slopes += len(ks) - 1
        error = estimate_error(problem, h, y, new, ks)
        accepted = error < 1.0
        end = find_end(s, h) if accepted else s
        due = accepted and at < count and (numbers[at] <= end or end == 1.0)
        terms = find_interpolant(problem, s, h, y, new, ks) if due else [np.zeros_like(y)] * count_terms(problem)
        while accepted and at < count and (numbers[at] <= end or end == 1.0):
            states[at] = interpolate(problem, terms, y, (fractions[at] - s) / h)
            at += 1
        h = h * find_factor(problem, error, rejected)
        if accepted:
            s, y, k = end, new, ks[-1]
        rejected = not accepted
    return snapshot(states), slopes


def choose_first_step(problem: Problem, y: Any, k: Any, first_step: float | None) -> Any:
    """Return the first step, the user's or an estimated one."""
    return find_first_step(problem, y, k) if first_step is None else first_step / problem.span


def limit_step(problem: Problem, s: Any, h: Any) -> Any:
    """Return a step that is not too large, nor leads over the end."""
    return np.minimum(np.minimum(h, problem.largest), 1.0 - s)[()]


def find_end(s: Any, h: Any) -> Any:
    """Return where a step ends: at the end of the interval, if rounding alone is between them."""
    return np.where(1.0 - (s + h) < 1e-14, 1.0, s + h)[()]


def take_step(problem: Problem, s: Any, y: Any, k: Any, h: Any) -> tuple[Any, list]:
    """Return the new state and the slopes of all stages, the last one at the new state."""
    rk = problem.rk
    ks = [k]
    for i in range(1, len(rk.C)):
        ks.append(problem.slope(s + float(rk.C[i]) * h, y + h * combine(rk.A[i], ks)))
    new = y + h * combine(rk.B, ks)
    return new, [*ks, problem.slope(s + h, new)]


def combine(weights: Any, ks: list) -> Any:
    """Return the sum of slopes times weights, of those that are not zero."""
    terms = [float(w) * k for w, k in zip(weights, ks, strict=False) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def find_mean_square(problem: Problem, error: Any, y: Any, new: Any) -> Any:
    """Return the mean square of an error in units of the tolerance, for every batch element."""
    error, y, new = stop_gradient(error), stop_gradient(y), stop_gradient(new)
    scaled = number(np.abs(error / (problem.atol + problem.rtol * np.maximum(np.abs(y), np.abs(new)))))
    return np.mean(scaled * scaled, axis=-1)


def find_norm(problem: Problem, error: Any, y: Any, new: Any) -> Any:
    """Return the root mean square of an error in units of the tolerance, the worst of all batch elements."""
    return np.max(np.sqrt(find_mean_square(problem, error, y, new)))


def estimate_error(problem: Problem, h: Any, y: Any, new: Any, ks: list) -> Any:
    """Return the norm of the estimated error of a step."""
    rk = problem.rk
    ks = [stop_gradient(k) for k in ks]
    if rk is not si.DOP853:
        return find_norm(problem, h * combine(rk.E, ks), y, new)
    fifth = find_mean_square(problem, combine(rk.E5, ks), y, new)
    both = fifth + 0.01 * find_mean_square(problem, combine(rk.E3, ks), y, new)
    return np.max(h * np.where(both == 0, 0.0, fifth / np.sqrt(np.where(both == 0, 1.0, both))))


def find_factor(problem: Problem, error: Any, rejected: bool) -> Any:
    """Return by how much an error lets a step grow, which it does not right after one was rejected, or shrink."""
    exponent = -1.0 / (problem.rk.error_estimator_order + 1)
    most = np.where(np.logical_and(rejected, error < 1.0), 1.0, 10.0)
    factor = np.where(error == 0.0, most, np.minimum(most, 0.9 * np.where(error == 0.0, 1.0, error) ** exponent))
    return np.where(error >= 0.0, np.maximum(0.2, factor), 0.2)[()]  # of NaN the smallest


def find_first_step(problem: Problem, y: Any, k: Any) -> Any:
    """Return the first step by the formulas of Hairer, Norsett and Wanner (II.4), which count in units of time."""
    span = problem.span
    d0, d1 = find_norm(problem, y, y, y), find_norm(problem, k, y, y) / span
    tiny = np.logical_or(d0 < 1e-5, d1 < 1e-5)
    h0 = np.minimum(np.where(tiny, 1e-6, 0.01 * d0 / np.where(tiny, 1.0, d1)), span)
    ahead = stop_gradient(problem.slope(h0 / span, stop_gradient(y + (h0 / span) * k)) - k)
    steep = np.maximum(d1, find_norm(problem, ahead, y, y) / span / h0)
    flat = steep <= 1e-15
    grown = (0.01 / np.where(flat, 1.0, steep)) ** (1 / (problem.rk.error_estimator_order + 1))
    h1 = np.where(flat, np.maximum(1e-6, h0 * 1e-3), grown)
    return np.minimum(np.minimum(100 * h0 / span, h1 / span), problem.largest)


def find_interpolant(problem: Problem, s: Any, h: Any, y: Any, new: Any, ks: list) -> list:
    """Return the terms of the method's own interpolation within a step."""
    rk = problem.rk
    if rk is not si.DOP853:
        return [h * combine(weights, ks) for weights in rk.P.T]
    ks = list(ks)
    for row, c in zip(rk.A_EXTRA, rk.C_EXTRA, strict=True):
        ks.append(problem.slope(s + float(c) * h, y + h * combine(row, ks)))
    change, first, last = new - y, h * ks[0], h * ks[rk.n_stages]
    return [change, first - change, 2.0 * change - last - first, *[h * combine(row, ks) for row in rk.D]]


def count_terms(problem: Problem) -> int:
    """Return how many terms the interpolation has."""
    return 3 + len(problem.rk.D) if problem.rk is si.DOP853 else problem.rk.P.shape[1]


def interpolate(problem: Problem, terms: list, y: Any, x: Any) -> Any:
    """Return the state within a step at a fraction of it, by Horner's scheme."""
    total: Any = 0.0
    for i, term in reversed(list(enumerate(terms))):
        odd = i % 2 and problem.rk is si.DOP853
        total = (total + term) * (1.0 - x if odd else x)
    return y + total


def find_fractions(times: Any, t0: Any, length: Any) -> Any:
    """Return times as fractions of the interval of integration; raise if they are not in order, or outside it."""
    fractions = (times - t0) / length
    numbers = number(fractions)
    if numbers.ndim != 1:
        raise DerivativeError("solve_ivp under vmap takes one t_eval for all batch elements, and one t_span with it")
    if np.any(np.diff(numbers) < 0) or np.any((numbers < -1e-14) | (numbers > 1 + 1e-14)):
        raise ValueError("Values in `t_eval` are not within `t_span`, or not properly sorted.")
    return fractions
