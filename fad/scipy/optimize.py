"""``scipy.optimize``, differentiable through the solution: SciPy solves, fad gives it derivatives, and the equation that the
solution satisfies gives the derivative of the solution.

Unknowns are arrays or pytrees. What the functions depend on is passed in ``args`` (or held in their closure), and the
solution is differentiable with respect to it, to any order. It does not depend on the starting point.
A solver that did not converge returns its result with a warning, as its ``success`` says;
the derivative there is refused, for there is no equation to take it from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as so

from fad import tree
from fad.core.tracer import stop_gradient
from fad.errors import DerivativeError
from fad.scipy.special.build import number
from fad.transforms.custom import Call
from fad.transforms.grad import grad, value_and_grad
from fad.transforms.implicit import depth, implicit_root
from fad.transforms.jacobian import hvp, jacobian

__all__ = ["OptimizeResult", "brentq", "fixed_point", "least_squares", "minimize", "newton", "root", "root_scalar"]

OptimizeResult = so.OptimizeResult


# --- what all of them share -----------------------------------------------------------------------------------------


def _flat(function: Callable, x0: Any) -> tuple[Any, Callable, Callable]:
    """Return the flat starting point, the function of flat unknowns, and the map back to the structure of `x0`."""
    flat, unravel = tree.ravel(tree.map(_as_float, stop_gradient(x0)))

    def of_flat(x, *args):
        return function(unravel(x), *args)

    return flat, of_flat, unravel


def _as_float(x: Any) -> Any:
    return x if hasattr(x, "dtype") and x.dtype.kind in "fc" else np.asarray(x, dtype=float)


def _ravel(y: Any) -> Any:
    return tree.ravel(y)[0] if not hasattr(y, "ndim") or y.ndim != 1 else y


def _converged(success: Any, solution: Any, order: int, message: str, what: str) -> None:
    """Warn of a solver that did not converge, or refuse if derivatives of what it returned were to be taken."""
    if np.all(number(success)):
        return
    if order:
        raise DerivativeError(
            f"{what} did not converge ({message}), so what it returned satisfies no equation from which a derivative could "
            "be taken. Start nearer, allow more iterations or a looser tolerance, or use fad.stop_gradient on the arguments"
        )
    warnings.warn(f"{what} did not converge: {message}", RuntimeWarning, stacklevel=4)


def _order(values: Any) -> int:
    return max((depth(x) for x in tree.leaves(values)), default=0)


def _solve_dense(slope: Callable, y: Any) -> Any:
    """Solve ``slope(x) = y`` for a vector, by the matrix of the slope, held constant where its own derivative is not used."""
    matrix = jacobian(slope)(stop_gradient(y))
    try:
        return np.linalg.solve(matrix, y)
    except np.linalg.LinAlgError as error:
        raise DerivativeError(
            "the solution has no derivative: the Jacobian of its equation is singular there (a double root, or a flat "
            "valley of the objective). Remove the redundant unknown, or regularise the problem"
        ) from error


class _Plain:
    """Runs a solver on plain arrays, lane by lane under vmap, and keeps what it reported."""

    def __init__(self, solver: Callable, structure: Any):
        self.solver = solver
        self.structure = structure
        self.report: Any = None

    def run(self, *leaves: Any) -> list:
        x, self.report = self.solver(*tree.unflatten(self.structure, leaves))
        return [np.asarray(x), np.asarray(bool(self.report.get("success", True)))]

    def batch(self, size: int, batched: list, values: list) -> tuple[list, list]:
        lanes = [
            Call(self.name, self.run, batch=self.batch)(
                *[v[i] if b else v for v, b in zip(values, batched, strict=True)]
            )
            for i in range(size)
        ]
        return [np.stack(column) for column in zip(*lanes, strict=True)], [True, True]

    name = "scipy.optimize"


def _run(solver: Callable, *operands: Any) -> tuple[Any, Any, Any]:
    """Run ``solver(*operands) -> (x, report)`` on the values of the operands; return x, success and the report."""
    leaves, structure = tree.flatten(stop_gradient(operands))
    plain = _Plain(solver, structure)
    x, success = Call(plain.name, plain.run, batch=plain.batch)(
        *[np.asarray(v) if not hasattr(v, "dtype") else v for v in leaves]
    )
    return x, success, plain.report


# --- systems of equations -------------------------------------------------------------------------------------------


def root(
    fun: Callable, x0: Any, args: tuple = (), method: str = "hybr", jac: Any = True, tol: float | None = None,
    options: dict | None = None,
) -> OptimizeResult:  # fmt: skip
    """Solve ``fun(x, *args) = 0`` by ``scipy.optimize.root``, with fad's Jacobian.

    Parameters
    ----------
    fun : callable
        Function of the unknowns; its result has as many numbers as they have.
    x0 : array or pytree
        Where to start.
    args : tuple
        What the solution depends on and is differentiable in.
    method, tol, options
        As in SciPy. Methods that need no Jacobian are given none.
    jac : bool
        False lets SciPy use its own finite differences.

    Returns
    -------
    OptimizeResult
        ``x`` in the structure of `x0`, ``fun`` at the solution, ``success``, ``message`` and SciPy's other entries.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a solution that was not found, or at which the Jacobian is singular.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import root
    >>> fad.grad(lambda a: root(lambda x, a: x * x - a, np.array([1.0]), (a,)).x[0])(4.0).round(9)
    np.float64(0.25)
    """
    flat, of_flat, unravel = _flat(fun, x0)

    def residual(x, *args):
        return _ravel(of_flat(x, *args))

    def solver(x, args):
        values = {"jac": lambda x: jacobian(residual)(x, *args)} if jac and method in ("hybr", "lm") else {}
        found = so.root(lambda x: residual(x, *args), x, method=method, tol=tol, options=options, **values)
        return found.x, found

    x, success, report = _run(solver, flat, args)
    return _finished(x, success, report, lambda x: residual(x, *args), unravel, "scipy.optimize.root", of_flat, args)


def _finished(x, success, report, equation, unravel, what, of_flat, args):
    """Make a result differentiable by its equation, and put it in the caller's structure."""
    order = _order(equation(x))
    _converged(success, x, order, str(report.get("message", "")).strip(), what)
    x = implicit_root(equation, x, _solve_dense)
    result = OptimizeResult(report)
    result.x = unravel(x)
    result.fun = of_flat(x, *args)
    result.success = success if np.ndim(success) else bool(success) if type(success) is np.ndarray else success
    return result


def fixed_point(
    func: Callable, x0: Any, args: tuple = (), xtol: float = 1e-8, maxiter: int = 500, method: str = "del2"
) -> Any:
    """Return x with ``func(x, *args) = x``, found by ``scipy.optimize.fixed_point``; differentiable in `args`.

    Raises RuntimeError, as SciPy does, if the iteration did not converge.

    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import fixed_point
    >>> fad.grad(lambda a: fixed_point(lambda x, a: np.sqrt(x + a), 1.0, (a,)))(2.0).round(9)
    np.float64(0.333333333)
    """
    flat, of_flat, unravel = _flat(func, x0)

    def image(x, *args):
        return _ravel(of_flat(x, *args))

    def solver(x, args):
        return so.fixed_point(lambda x: image(x, *args), x, xtol=xtol, maxiter=maxiter, method=method), {}

    x, _, _ = _run(solver, flat, args)
    return unravel(implicit_root(lambda x: image(x, *args) - x, x, _solve_dense))


# --- minima ---------------------------------------------------------------------------------------------------------

_WITH_GRADIENT = {"cg", "bfgs", "newton-cg", "l-bfgs-b", "tnc", "slsqp", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr"}  # fmt: skip
_WITH_PRODUCT = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_WITH_HESSIAN = {"dogleg", "trust-exact"}


def minimize(
    fun: Callable, x0: Any, args: tuple = (), method: str | None = None, bounds: Any = None, constraints: Any = (),
    tol: float | None = None, callback: Callable | None = None, options: dict | None = None,
) -> OptimizeResult:  # fmt: skip
    """Minimise ``fun(x, *args)`` by ``scipy.optimize.minimize``, with fad's gradient and Hessian products.

    The minimum satisfies ``grad fun = 0`` in its free components; those that lie on a bound stay there.

    Parameters
    ----------
    fun : callable
        Scalar function of the unknowns.
    x0 : array or pytree
        Where to start.
    args : tuple
        What the minimum depends on and is differentiable in.
    method, bounds, constraints, tol, callback, options
        As in SciPy; the unknowns are flattened for bounds and constraints.

    Returns
    -------
    OptimizeResult
        ``x`` in the structure of `x0`, ``fun`` the minimum, ``jac`` the gradient there, and SciPy's other entries.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a minimum that was not found, is flat, or is held by `constraints`.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import minimize
    >>> def nearest(a):
    ...     return minimize(lambda x, a: np.sum((x - a) ** 2) + np.sum(x**4), np.ones(2), (a,), tol=1e-8).x
    >>> a = np.array([3.0, 6.0])   # where x = 1 and about 1.3
    >>> fad.jacobian(nearest)(a)[0].round(5) + 0.0
    array([0.14286, 0.     ])
    """
    flat, of_flat, unravel = _flat(fun, x0)

    def objective(x, *args):
        return of_flat(x, *args).reshape(())

    name = (method or ("slsqp" if constraints else "l-bfgs-b" if bounds is not None else "bfgs")).lower()

    def solver(x, args):
        def value(x):
            return objective(x, *args)

        values: dict = {}
        if name in _WITH_GRADIENT:
            values["jac"] = True
        if name in _WITH_PRODUCT:
            values["hessp"] = lambda x, p: hvp(value, (x,), (p,))[1]
        if name in _WITH_HESSIAN:
            values["hess"] = lambda x: jacobian(grad(value))(x)
        f = value_and_grad(value) if name in _WITH_GRADIENT else value
        found = so.minimize(
            f,
            x,
            method=name,
            bounds=bounds,
            constraints=constraints,
            tol=tol,
            callback=callback,
            options=options,
            **values,
        )
        return found.x, found

    x, success, report = _run(solver, flat, args)
    slope = _gradient(objective, args)
    free = _free(x, bounds)

    def equation(x):
        g = slope(x)
        return g if free is None else np.where(free, g, x - stop_gradient(x))

    if constraints and _order(slope(x)):
        raise DerivativeError(
            "the minimum is held by constraints, and fad has its derivative for bounds only. Put the constraints into "
            "the objective, or solve the conditions of Karush, Kuhn and Tucker with fad.scipy.optimize.root"
        )
    result = _finished(x, success, report, equation, unravel, "scipy.optimize.minimize", of_flat, args)
    result.jac = unravel(stop_gradient(slope(x)))
    return result


def _gradient(objective: Callable, args: tuple) -> Callable:
    return lambda x: grad(objective)(x, *args)


def _free(x: Any, bounds: Any) -> Any:
    """Return which unknowns lie off their bounds, or None if there are none."""
    if bounds is None:
        return None
    if isinstance(bounds, so.Bounds):
        low, high = np.broadcast_to(bounds.lb, x.shape), np.broadcast_to(bounds.ub, x.shape)
    else:
        low = np.array([-np.inf if b[0] is None else b[0] for b in bounds])
        high = np.array([np.inf if b[1] is None else b[1] for b in bounds])
    return (x > low) & (x < high)


def least_squares(
    fun: Callable, x0: Any, args: tuple = (), bounds: Any = (-np.inf, np.inf), method: str = "trf", ftol: float = 1e-8,
    xtol: float = 1e-8, gtol: float = 1e-8, x_scale: Any = 1.0, loss: str = "linear", f_scale: float = 1.0,
    max_nfev: int | None = None,
) -> OptimizeResult:  # fmt: skip
    """Minimise half the sum of squares of ``fun(x, *args)`` by ``scipy.optimize.least_squares``, with fad's Jacobian.

    The solution is differentiable in `args`: by ``J.T @ r = 0``, second derivatives of the residuals included,
    so the result is right for large residuals too. With a robust `loss` its derivative is refused.

    Parameters
    ----------
    fun : callable
        Residuals, as one array or a pytree of arrays.
    x0 : array or pytree
    args : tuple
    bounds, method, ftol, xtol, gtol, x_scale, loss, f_scale, max_nfev
        As in SciPy, for the flattened unknowns.

    Returns
    -------
    OptimizeResult
        ``x`` in the structure of `x0`, ``fun`` the residuals there, ``cost``, and SciPy's other entries.

    Examples
    --------
    The slope of a fitted line, as a function of the data:

    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import least_squares
    >>> t = np.array([0.0, 1.0, 2.0])
    >>> def slope(y):
    ...     return least_squares(lambda p, y: p[0] + p[1] * t - y, np.zeros(2), (y,)).x[1]
    >>> fad.grad(slope)(np.array([1.0, 2.0, 3.5])).round(9) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    flat, of_flat, unravel = _flat(fun, x0)

    def residual(x, *args):
        return _ravel(of_flat(x, *args))

    def solver(x, args):
        found = so.least_squares(
            lambda x: residual(x, *args),
            x,
            jac=lambda x, *_: jacobian(residual)(x, *args),
            bounds=bounds,
            method=method,
            ftol=ftol,
            xtol=xtol,
            gtol=gtol,
            x_scale=x_scale,
            loss=loss,
            f_scale=f_scale,
            max_nfev=max_nfev,
        )
        return found.x, found

    x, success, report = _run(solver, flat, args)
    slope = _gradient(lambda x, *args: 0.5 * np.sum(residual(x, *args) ** 2), args)
    low, high = (np.broadcast_to(np.asarray(b, dtype=float), x.shape) for b in _ends(bounds))
    free = (x > low) & (x < high)
    if loss != "linear" and _order(residual(x, *args)):
        raise DerivativeError(
            f"the derivative of a fit with loss={loss!r} is not implemented: write the loss as an objective and use "
            "fad.scipy.optimize.minimize"
        )
    result = _finished(
        x,
        success,
        report,
        lambda x: np.where(free, slope(x), x - stop_gradient(x)),
        unravel,
        "scipy.optimize.least_squares",
        of_flat,
        args,
    )
    result.cost = 0.5 * np.sum(_ravel(result.fun) ** 2)
    return result


def _ends(bounds: Any) -> tuple:
    return (bounds.lb, bounds.ub) if isinstance(bounds, so.Bounds) else tuple(bounds)


# --- one equation in one unknown ------------------------------------------------------------------------------------


def _scalar(f: Callable, args: tuple, solver: Callable, *points: Any) -> Any:
    """Find a root of one equation by `solver`, and make it differentiable in what `f` uses."""
    x, _, _ = _run(lambda points, args: (solver(lambda x: f(x, *args), *points), {}), points, args)

    def equation(x):
        return f(x, *args)

    def solve(slope, y):
        rate = slope(np.ones_like(stop_gradient(y)))
        if np.any(number(rate) == 0):
            raise DerivativeError("the root has no derivative: the slope of the function is zero there (a double root)")
        return y / rate

    return implicit_root(equation, x[()] if type(x) is np.ndarray and x.ndim == 0 else x, solve)


def brentq(
    f: Callable,
    a: Any,
    b: Any,
    args: tuple = (),
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
) -> Any:
    """Return the root of a scalar function between `a` and `b`, by Brent's method; differentiable in `args`.

    Raises ValueError if ``f(a)`` and ``f(b)`` have one sign, RuntimeError if it did not converge, as in SciPy.

    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import brentq
    >>> fad.grad(lambda a: brentq(lambda x, a: np.cos(x) - a * x, 0.0, 2.0, (a,)))(1.0).round(9)
    np.float64(-0.441610792)
    """
    return _scalar(f, args, lambda g, a, b: so.brentq(g, a, b, xtol=xtol, rtol=rtol, maxiter=maxiter), a, b)


def newton(
    func: Callable, x0: Any, args: tuple = (), tol: float = 1.48e-8, maxiter: int = 50, rtol: float = 0.0
) -> Any:
    """Return a root near `x0` by Newton's method with fad's derivative; elementwise for arrays. Differentiable in `args`.

    Raises RuntimeError if it did not converge, as in SciPy.

    >>> import fad
    >>> from fad.scipy.optimize import newton
    >>> fad.grad(lambda a: newton(lambda x, a: x**3 - a, 1.0, (a,)))(8.0).round(9)
    np.float64(0.083333333)
    """

    def solver(g, x):
        slope = grad(lambda x: np.sum(g(x)))
        return so.newton(g, x, fprime=slope, tol=tol, maxiter=maxiter, rtol=rtol)

    return _scalar(func, args, solver, _as_float(x0))


def root_scalar(
    f: Callable, args: tuple = (), method: str | None = None, bracket: Any = None, x0: Any = None, xtol: float | None = None,
    rtol: float | None = None, maxiter: int | None = None,
) -> so.RootResults:  # fmt: skip
    """Find a root of a scalar function by ``scipy.optimize.root_scalar``, with fad's derivatives; differentiable in `args`."""
    reports = []

    def solver(g, *points):
        values = {} if bracket is not None else {"x0": points[0], "fprime": grad(g), "fprime2": grad(grad(g))}
        found = so.root_scalar(
            g,
            method=method or (None if bracket is not None else "newton"),
            bracket=points if bracket is not None else None,
            xtol=xtol,
            rtol=rtol,
            maxiter=maxiter,
            **values,
        )
        reports.append(found)
        return found.root

    points = tuple(float(p) for p in bracket) if bracket is not None else (float(x0),)
    found = _scalar(f, args, solver, *points)
    report = reports[-1]
    _converged(report.converged, found, _order(found), str(report.flag), "scipy.optimize.root_scalar")
    report.root = found
    return report
