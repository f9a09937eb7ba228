"""Linear programs: the vertex that SciPy finds, and its derivative by the constraints that hold it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize as so

from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.values import stop_gradient
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.optimize.common import (
    OptimizeResult,
    as_float,
    check_convergence,
    derivatives_of,
    message_of,
    run,
    solve_dense,
)
from fad.scipy.special.build import number
from fad.transforms.implicit import implicit_root


def linprog(
    c: Any, A_ub: Any = None, b_ub: Any = None, A_eq: Any = None, b_eq: Any = None, bounds: Any = (0, None),
    method: str = "highs", callback: Any = None, options: Any = None, x0: Any = None, integrality: Any = None,
) -> OptimizeResult:  # fmt: skip
    """Minimise ``c @ x`` where ``A_ub @ x <= b_ub``, ``A_eq @ x == b_eq`` and `bounds` hold, by SciPy's ``linprog``.

    The solution is a vertex, which the constraints that hold there determine: it is differentiable in `A_ub`, `b_ub`,
    `A_eq`, `b_eq` and `bounds`, and constant in `c`; the least value is differentiable in all of them, and the
    marginals too.

    Parameters
    ----------
    c : array (n,)
        The coefficients of what is minimised.
    A_ub, b_ub : array (m, n) and (m,), optional
        Inequalities.
    A_eq, b_eq : array (k, n) and (k,), optional
        Equations, which must not depend on each other.
    bounds : pair, or one for each unknown
        The least and the greatest value, of which None is none.
    method, callback, options, x0
        As in SciPy; the solvers of HiGHS have derivatives.
    integrality : None
        Whole numbers are for plain arguments.

    Returns
    -------
    OptimizeResult
        ``x``, ``fun`` the least value, ``slack`` and ``con`` of the constraints, ``ineqlin``, ``eqlin``, ``lower`` and
        ``upper`` with their ``residual`` and ``marginals``, ``success``, and SciPy's other entries.

    Raises
    ------
    DerivativeError
        if a derivative is taken and no vertex was found, several points are as good, or more constraints meet in it
        than hold it.
    NotImplementedError
        if something is traced, and `integrality` is given or the method is not one of HiGHS.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import linprog
    >>> a = np.array([[1.0, 1.0], [1.0, 3.0]])
    >>> fad.grad(lambda b: linprog([-1.0, -2.0], a, b).fun)(np.array([4.0, 6.0])).round(9)
    array([-0.5, -0.5])
    """
    if not has_tracer((c, A_ub, b_ub, A_eq, b_eq, bounds)):
        return so.linprog(c, A_ub, b_ub, A_eq, b_eq, bounds, method, callback, options, x0, integrality)
    if integrality is not None and np.any(integrality):
        raise NotImplementedError("linprog with integrality has whole numbers for solutions, which jump: drop it")
    if not method.startswith("highs"):
        raise NotImplementedError(f"linprog of traced values takes method='highs', not {method!r}")
    c = as_float(as_array(c)).reshape(-1)
    n = c.shape[0]
    a, b = _rows(A_ub, b_ub, n)
    e, f = _rows(A_eq, b_eq, n)
    low, high = _ends(bounds, n)

    def solver(c: Any, a: Any, b: Any, e: Any, f: Any, low: Any, high: Any) -> tuple:
        found = so.linprog(c, a, b, e, f, np.stack([low, high], axis=1), method, callback, options)
        return _describe(found, n + a.shape[0] + e.shape[0] + 2 * n, n - e.shape[0]), found

    z, success, report = run(solver, c, a, b, e, f, low, high)
    proper, z = z[-1], z[:-1]
    cuts = np.cumsum([n, a.shape[0], e.shape[0], n])
    finite = [np.where(np.isfinite(stop_gradient(end)), end, 0.0) for end in (low, high)]
    marginals = np.split(stop_gradient(z), cuts)

    def equation(z: Any) -> Any:
        x, of_a, of_e, of_low, of_high = np.split(z, cuts)
        return np.concatenate([
            c - of_a @ a - of_e @ e - of_low - of_high,
            np.where(marginals[1] != 0, a @ x - b, of_a), e @ x - f,
            np.where(marginals[3] != 0, x - finite[0], of_low), np.where(marginals[4] != 0, x - finite[1], of_high),
        ])  # fmt: skip

    order = derivatives_of(equation(z))
    check_convergence(success, z, order, message_of(report), "scipy.optimize.linprog")
    if order and not np.all(number(proper) == 1.0):
        raise DerivativeError(
            "the solution of this linear program has no derivative: several points are as good, or more constraints "
            "meet in it than hold it, so that it moves differently to each side. Remove redundant constraints, or add "
            "a small convex term and use fad.scipy.optimize.minimize"
        )
    x, *marginals = np.split(implicit_root(equation, z, solve_dense), cuts)
    result = OptimizeResult(report)
    result.update(x=x, fun=c @ x, slack=b - a @ x, con=f - e @ x)
    residuals = result.slack, result.con, x - low, high - x
    for name, residual, marginal in zip(("ineqlin", "eqlin", "lower", "upper"), residuals, marginals, strict=True):
        result[name] = OptimizeResult(residual=residual, marginals=marginal)
    result.success = bool(success) if type(success) is np.ndarray and not success.ndim else success
    return result


def _rows(a: Any, b: Any, n: int) -> tuple:
    """Return the rows and the ends of constraints, which may be none."""
    a = np.zeros((0, n)) if a is None else as_float(as_array(a.toarray() if hasattr(a, "toarray") else a))
    b = np.zeros(0) if b is None else as_float(as_array(b)).reshape(-1)
    if a.ndim != 2 or a.shape != (b.shape[0], n):
        raise ValueError(f"constraints of {n} unknowns must have rows and ends that fit, not {a.shape} and {b.shape}")
    return a, b


def _ends(bounds: Any, n: int) -> tuple:
    """Return the least and the greatest values of the unknowns, infinite where there is none."""
    pairs: Any
    if bounds is None:
        pairs = [(0, None)] * n
    elif hasattr(bounds, "shape"):
        pairs = [[row[0], row[1]] for row in np.broadcast_to(bounds, (n, 2))]
    elif len(bounds) == 2 and not any(hasattr(end, "__len__") and np.ndim(end) for end in bounds):
        pairs = [bounds] * n
    else:
        pairs = list(bounds) * (n if len(bounds) == 1 else 1)
    if len(pairs) != n:
        raise ValueError(f"bounds must be a pair, or one for each of the {n} unknowns")
    low = [-np.inf if pair[0] is None else as_float(as_array(pair[0])) for pair in pairs]
    high = [np.inf if pair[1] is None else as_float(as_array(pair[1])) for pair in pairs]
    return np.stack(low), np.stack(high)


def _describe(found: Any, size: int, free: int) -> Any:
    """Return the solution, its marginals without what is rounding, and whether just as many constraints hold it."""
    if found.x is None or found.get("ineqlin") is None:
        return np.full(size + 1, np.nan)
    groups = [found.ineqlin, found.lower, found.upper]
    scale = max([1e-300, *[np.abs(g.marginals).max(initial=0.0) for g in (*groups, found.eqlin)]])
    holding, met = 0, 0
    for group in groups:
        marginals = np.asarray(group.marginals)
        marginals[np.abs(marginals) < 1e-9 * scale] = 0.0
        group.marginals = marginals
        holding += np.count_nonzero(marginals)
        with np.errstate(invalid="ignore"):
            met += np.count_nonzero(np.abs(group.residual) < 1e-9 * (1.0 + np.abs(found.x).max()))
    proper = float(holding == free and met == free)
    parts = (found.x, found.ineqlin.marginals, found.eqlin.marginals, found.lower.marginals, found.upper.marginals)
    return np.concatenate([*parts, [proper]])
