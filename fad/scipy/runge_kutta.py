"""Adaptive Runge-Kutta methods in fad's operations, with SciPy's coefficients and step control."""

from __future__ import annotations

import numpy as np
import scipy.integrate as si

from fad.core.values import stop_gradient
from fad.errors import DerivativeError
from fad.scipy.special.build import number

EXPLICIT = {"RK23": si.RK23, "RK45": si.RK45, "DOP853": si.DOP853}


class Stepper:
    """An embedded Runge-Kutta pair with SciPy's step control, on traced values.

    Time runs as a fraction of the interval, so that the ends may be traced. Step sizes are chosen from numbers and are
    constants to every derivative; in a ``vmap`` the largest error of all batch elements decides.
    """

    def __init__(self, field, t0, t1, y0, method, rtol, atol, max_step, first_step):
        self.field, self.t0, self.y0 = field, t0, y0
        self.length = t1 - t0
        self.span = float(np.max(np.abs(number(self.length))))
        self.rk = EXPLICIT[method]
        self.rtol, self.atol = np.maximum(rtol, 100 * np.finfo(float).eps), atol
        self.largest = min(1.0, max_step / self.span) if self.span else 1.0
        self.first_step = first_step
        self.nfev = 0

    def slope(self, s, y):
        """Return dy/ds, the right-hand side for time counted in fractions."""
        self.nfev += 1
        return self.field(self.t0 + self.length * s, y) * self.length

    def mean_square(self, error, y, new):
        """Return the mean square of an error in units of the tolerance, for every batch element."""
        error, y, new = (stop_gradient(x) for x in (error, y, new))
        scaled = number(np.abs(error / (self.atol + self.rtol * np.maximum(np.abs(y), np.abs(new)))))
        return np.mean(scaled * scaled, axis=-1)

    def norm(self, error, y, new):
        """Return the root mean square of an error in units of the tolerance, the worst of all batch elements."""
        return float(np.sqrt(self.mean_square(error, y, new)).max())

    def error(self, h, y, new, ks):
        """Return the norm of the estimated error of a step."""
        ks = [stop_gradient(k) for k in ks]
        if self.rk is not si.DOP853:
            return self.norm(h * _combine(self.rk.E, ks), y, new)
        fifth, third = (self.mean_square(_combine(e, ks), y, new) for e in (self.rk.E5, self.rk.E3))
        both = fifth + 0.01 * third
        return float(h * np.where(both == 0, 0.0, fifth / np.sqrt(np.where(both == 0, 1.0, both))).max())

    def first(self, k):
        if self.first_step is not None:
            return min(self.first_step / self.span, self.largest)
        y, span = self.y0, self.span  # the formulas of Hairer, Norsett and Wanner (II.4), in units of time
        d0, d1 = self.norm(y, y, y), self.norm(k, y, y) / span
        h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, span)
        ahead = stop_gradient(self.slope(h0 / span, stop_gradient(y + (h0 / span) * k)) - k)
        steep = max(d1, self.norm(ahead, y, y) / span / h0)
        h1 = max(1e-6, h0 * 1e-3) if steep <= 1e-15 else (0.01 / steep) ** (1 / (self.rk.error_estimator_order + 1))
        return min(100 * h0 / span, h1 / span, self.largest)

    def step(self, s, y, k, h):
        """Return the new state and the slopes of all stages, the last one at the new state."""
        ks = [k]
        for row, c in zip(self.rk.A[1:], self.rk.C[1:], strict=True):
            ks.append(self.slope(s + c * h, y + h * _combine(row, ks)))
        new = y + h * _combine(self.rk.B, ks)
        ks.append(self.slope(s + h, new))
        return new, ks

    def interpolant(self, s, h, y, new, ks):
        """Return the state within a step as a function of the fraction of it that has passed."""
        if self.rk is not si.DOP853:
            return lambda x: y + h * sum((_polynomial(row, x) * k for row, k in zip(self.rk.P, ks, strict=True)), 0.0)
        ks = list(ks)
        for row, c in zip(self.rk.A_EXTRA, self.rk.C_EXTRA, strict=True):
            ks.append(self.slope(s + c * h, y + h * _combine(row, ks)))
        change, first, last = new - y, h * ks[0], h * ks[self.rk.n_stages]
        terms = [change, first - change, 2.0 * change - last - first, *[h * _combine(row, ks) for row in self.rk.D]]

        def at(x):
            total = 0.0
            for i, term in enumerate(reversed(terms)):
                total = (total + term) * (1.0 - x if i % 2 else x)
            return y + total

        return at

    def solve(self, t_eval, until_last=False):
        """Return times and states, the times in front; `until_last` of them, what comes behind is not computed."""
        out = _Output(self, t_eval)
        s, y = 0.0, self.y0
        k = self.slope(s, y)
        h = self.first(k)
        exponent = -1.0 / (self.rk.error_estimator_order + 1)
        rejected = False
        while s < 1.0 and not (until_last and out.is_complete()):
            h = min(h, self.largest, 1.0 - s)
            if h < 10 * np.finfo(float).eps:
                raise DerivativeError(
                    "solve_ivp could not complete the integration: the required step is smaller than the spacing of "
                    "numbers. The solution may have a singularity, or the equation be stiff: use method='Radau'"
                )
            new, ks = self.step(s, y, k, h)
            error = self.error(h, y, new, ks)
            factor = 10.0 if error == 0 else min(10.0, 0.9 * error**exponent)
            if not error < 1.0:
                h *= max(0.2, factor) if error == error else 0.2
                rejected = True
                continue
            reached = 1.0 if 1.0 - (s + h) < 1e-14 else s + h
            out.add(s, h, reached, y, new, ks)
            s, y, k = reached, new, ks[-1]
            h *= min(1.0, factor) if rejected else factor
            rejected = False
        return out.result()


def _combine(weights, ks):
    terms = [float(w) * k for w, k in zip(weights, ks, strict=False) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _polynomial(coefficients, x):
    """Return ``c[0] x + c[1] x**2 + ...``."""
    total = 0.0
    for c in coefficients[::-1]:
        total = (total + float(c)) * x
    return total


class _Output:
    """Collects the solution: at every step, or at the times requested, by the method's own interpolation."""

    def __init__(self, stepper, t_eval):
        self.stepper = stepper
        self.times = t_eval
        if self.times is None:
            self.ts, self.ys = [stepper.t0], [stepper.y0]
            return
        self.ys, self.at = [], 0
        self.fractions, self.plain = fractions_of(self.times, stepper.t0, stepper.length)

    def add(self, s, h, reached, y, new, ks):
        if self.times is None:
            self.ts.append(self.stepper.t0 + self.stepper.length * reached)
            self.ys.append(new)
            return
        inside = None
        while self.at < len(self.plain) and (self.plain[self.at] <= reached or reached == 1.0):
            inside = inside or self.stepper.interpolant(s, h, y, new, ks)
            self.ys.append(inside((self.fractions[self.at] - s) / h))
            self.at += 1

    def is_complete(self):
        return self.times is not None and self.at == len(self.plain)

    def result(self):
        times = np.stack(self.ts) if self.times is None else self.times
        if not self.ys:
            return times, np.zeros((0, *self.stepper.y0.shape), dtype=self.stepper.y0.dtype)
        return times, np.stack(self.ys)


def fractions_of(times, t0, length):
    """Return times as fractions of the interval of integration, as they came and as numbers."""
    fractions = (times - t0) / length
    numbers = number(fractions)
    if numbers.ndim != 1:
        raise DerivativeError("solve_ivp under vmap takes one t_eval for all batch elements, and one t_span with it")
    if np.any(np.diff(numbers) < 0) or np.any((numbers < -1e-14) | (numbers > 1 + 1e-14)):
        raise ValueError("Values in `t_eval` are not within `t_span`, or not properly sorted.")
    return fractions, numbers
