"""Constraints of a minimum, and the equations of Karush, Kuhn and Tucker that give it a derivative.

Every constraint is read as numbers ``c(x)`` between a lower and an upper end, which are equal for an equation. At a
minimum the slope of the objective is the sum of the slopes of the active rows, each times its multiplier: with the
active rows at their ends these are as many equations as there are unknowns and multipliers.

Source: J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition, Springer (2006), section 12.3; of the
derivative: A. V. Fiacco, "Introduction to Sensitivity and Stability Analysis in Nonlinear Programming" (1983).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as so

from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.host import plain as value
from fad.scipy.optimize.common import Problem, as_float, ravel
from fad.transforms.jacobian import jacobian
from fad.transforms.vjp import vjp

_NEAR = 1e-4  # how far from its end, against the unknowns, a row may be that holds the minimum


class LinearConstraint:
    """``lb <= A @ x <= ub``, for `minimize`; all three may be traced.

    Parameters
    ----------
    A : array (m, n)
        One row for each constraint.
    lb, ub : array (m,)
        The ends; equal ones make an equation, infinite ones none.
    keep_feasible : bool
        Whether a solver is to stay between them, as in SciPy.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import LinearConstraint, minimize
    >>> def nearest(a):  # of all numbers that add up to a, those of the least squares
    ...     return minimize(lambda x: np.sum(x**2), np.zeros(2), constraints=LinearConstraint(np.ones((1, 2)), a, a)).x
    >>> fad.jacobian(nearest)(3.0).round(6)
    array([0.5, 0.5])
    """

    def __init__(self, A: Any, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False):
        self.A, self.lb, self.ub, self.keep_feasible = as_array(A), as_array(lb), as_array(ub), keep_feasible


def _multiply(a: Any, x: Any) -> Any:
    return (a.reshape(1, -1) if a.ndim == 1 else a) @ x


def _read(constraint: Any) -> tuple:
    """Return a constraint as a function and its ends."""
    if isinstance(constraint, dict):
        high = {"eq": 0.0, "ineq": np.inf}[constraint["type"].lower()]
        args = constraint.get("args", ())
        function = functools.partial(_call, constraint["fun"], args) if args else constraint["fun"]
        return function, 0.0, high
    if isinstance(constraint, (so.LinearConstraint, LinearConstraint)):
        return functools.partial(_multiply, constraint.A), as_float(constraint.lb), as_float(constraint.ub)
    return constraint.fun, as_float(constraint.lb), as_float(constraint.ub)


def _give_way(slope: Callable, x: Any, row: Any, step: float) -> float:
    """Return how far a row's number moves with a minimum that it no longer pushes by one times its slope."""
    length = np.sqrt(np.sum(row**2))
    if length == 0:
        return np.inf
    curvature = np.sqrt(np.sum((slope(x + step / length * row) - slope(x)) ** 2)) / step
    return length**2 / curvature if 0 < curvature < np.inf else np.inf


def _call(function: Callable, args: tuple, x: Any) -> Any:
    return function(x, *args)


class Constraints:
    """What holds a minimum: the constraints given to `minimize`, and its bounds."""

    def __init__(self, given: Any, low: Any, high: Any):
        self.given = list(given) if isinstance(given, (list, tuple)) else [given]
        parts = [_read(constraint) for constraint in self.given]
        self.problem = Problem(lambda x: [(ravel(as_float(f(x))), low, high) for f, low, high in parts], (), ())
        self.low, self.high = low, high

    @property
    def held(self) -> list:
        return self.problem.held

    def for_solver(self, held: Any) -> list:
        """Return the constraints for SciPy, of plain numbers; where they hold traced ones fad gives their slopes."""
        at = self.problem.at(held)
        made = []
        for k, constraint in enumerate(self.given):
            function = functools.partial(lambda k, x: value(at(x)[k][0]), k)
            slope = functools.partial(lambda k, x: value(jacobian(lambda x: at(x)[k][0])(x)), k)
            if isinstance(constraint, dict):
                new = {**constraint, "fun": function, "args": ()}
                if "jac" in constraint:
                    jac, args = constraint["jac"], tuple(constraint.get("args", ()))
                    new["jac"] = functools.partial(lambda jac, args, x: value(jac(x, *args)), jac, args)
                made.append(new | {"jac": slope} if held else new)
            elif isinstance(constraint, so.LinearConstraint):
                made.append(constraint)
            else:
                low, high = (value(end) for end in at(np.zeros_like(self.low))[k][1:])
                names = ("jac", "hess", "keep_feasible", "finite_diff_rel_step", "finite_diff_jac_sparsity")
                options = {name: getattr(constraint, name) for name in names if hasattr(constraint, name)}
                options |= {"jac": slope} if held or "jac" not in options else {}
                made.append(so.NonlinearConstraint(function, low, high, **options))
        return made

    def rows(self, held: Any = None) -> Callable:
        """Return the function of the unknowns that gives all rows, which are 0 at an end and else positive.

        And which of them are equations, of which the upper end has no row of its own.
        """
        at = self.problem.at(held)

        def evaluate(x: Any) -> tuple[Any, Any]:
            parts, equal = [], []
            for c, low, high in [*at(x), (x, self.low, self.high)]:
                same = np.broadcast_to(stop_gradient(as_float(low)) == stop_gradient(as_float(high)), c.shape)
                parts += [c - low, np.where(same, np.inf, high - c)]
                equal += [same, np.zeros(c.shape, bool)]
            return np.concatenate(parts), np.concatenate(equal)

        return evaluate

    def find_multipliers(self, slope: Callable, x: Any, held: Any) -> Any:
        """Return the rows' multipliers at a minimum, 0 for those that do not hold it; all of plain numbers.

        A row holds it if without the row the minimum would lie further off than the row's end is.
        """
        rows = self.rows(held)
        (at, equal), slopes = (value(y) for y in rows(x)), value(jacobian(lambda x: rows(x)[0])(x))
        scale = 1.0 + np.abs(x).max(initial=0.0)
        near = np.flatnonzero(equal | (at <= _NEAR * scale))
        found = np.zeros(at.shape)
        if len(near):
            least = np.where(equal[near], -np.inf, 0.0)
            found[near] = so.lsq_linear(slopes[near].T, slope(x), (least, np.inf), tol=1e-12).x
        weight = np.full(at.shape, scale / max(np.abs(found).max(initial=0.0), 1e-300))
        for k in near:
            weight[k] = min(weight[k], _give_way(slope, x, slopes[k], _NEAR * scale))
        return np.where(equal | (found * weight > np.maximum(at, 1e-9 * scale)), found, 0.0)

    def make_equation(self, slope: Callable, z: Any, n: int) -> Callable:
        """Return the equations of the `n` unknowns and the multipliers behind them, whose solution is `z`."""
        rows = self.rows()
        multipliers = stop_gradient(z)[n:]

        def equation(z: Any) -> Any:
            x, given = z[:n], z[n:]
            at, pull = vjp(lambda x: rows(x)[0], x)
            active = rows(x)[1] | (multipliers != 0)
            return np.concatenate([slope(x) - pull(np.where(active, given, 0.0))[0], np.where(active, at, given)])

        return equation
