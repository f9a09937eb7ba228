"""``scipy.optimize``, differentiable through the solution: SciPy solves, with derivatives that fad gives it,
and the equation that the solution satisfies gives the derivative of the solution.

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
from fad.core.tracer import Tracer, stop_gradient
from fad.errors import CustomRuleError, DerivativeError
from fad.scipy.host import HostCall
from fad.scipy.special.build import number
from fad.transforms.grad import grad, value_and_grad
from fad.transforms.implicit import closed_over, depth, implicit_root
from fad.transforms.jacobian import hvp, jacobian

__all__ = ["OptimizeResult", "brentq", "fixed_point", "least_squares", "minimize", "newton", "root", "root_scalar"]

OptimizeResult = so.OptimizeResult


# --- what all of them share -----------------------------------------------------------------------------------------


def _flat(x0: Any) -> tuple[Any, Callable]:
    """Return the flat starting point, and the map from flat unknowns back to the structure of `x0`."""
    return tree.ravel(tree.map(_as_float, stop_gradient(x0)))


class _Problem:
    """A function of flat unknowns: with traced values as it came, or with plain ones in the place of what it holds."""

    def __init__(self, function: Callable, args: tuple, unravel: Callable = lambda x: x):
        self.args = tuple(args)
        self.unravel = unravel
        self.held, self.rebuild = closed_over((function, self.args))

    def at(self, held: Any = None) -> Callable:
        """Return the function of the unknowns alone; `held` are values for its traced parts."""
        function, args = self.rebuild(self.held if held is None else list(held))
        return lambda x: function(self.unravel(x), *args)

    def vector(self, held: Any = None) -> Callable:
        f = self.at(held)
        return lambda x: _ravel(f(x))


def _value(x: Any) -> Any:
    """Return what a solver may see of a function's result: the numbers, without derivatives."""
    x = stop_gradient(x)
    if type(x) is Tracer:
        raise CustomRuleError(
            "a function given to a solver uses a mapped value in a place where fad does not find it (an attribute, "
            "a global). Pass it in args"
        )
    return x


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
            f"{what} did not converge ({message}), so what it returned satisfies no equation from which a derivative "
            "could be taken. Start nearer, allow more iterations or a looser tolerance, or use fad.stop_gradient on "
            "the arguments"
        )
    warnings.warn(f"{what} did not converge: {message}", RuntimeWarning, stacklevel=4)


def _order(values: Any) -> int:
    return max((depth(x) for x in tree.leaves(values)), default=0)


def _solve_dense(slope: Callable, y: Any) -> Any:
    """Solve ``slope(x) = y`` for a vector, by the matrix of the slope, which may be held constant."""
    matrix = stop_gradient(jacobian(slope)(stop_gradient(y)))
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
            HostCall(self.name, self.run, batch=self.batch)(
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
    x, success = HostCall(plain.name, plain.run, batch=plain.batch)(
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
    flat, unravel = _flat(x0)
    problem = _Problem(fun, args, unravel)

    def solver(x, held):
        f = problem.vector(held)
        values = {"jac": lambda x: _value(jacobian(f)(x))} if jac and method in ("hybr", "lm") else {}
        found = so.root(lambda x: _value(f(x)), x, method=method, tol=tol, options=options, **values)
        return found.x, found

    x, success, report = _run(solver, flat, problem.held)
    return _finished(x, success, report, problem.vector(), problem, "scipy.optimize.root")


def _finished(x, success, report, equation, problem, what):
    """Make a result differentiable by its equation, and put it in the caller's structure."""
    order = _order(equation(x))
    _converged(success, x, order, str(report.get("message", "")).strip(), what)
    x = implicit_root(equation, x, _solve_dense)
    result = OptimizeResult(report)
    result.x = problem.unravel(x)
    result.fun = problem.at()(x)
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
    flat, unravel = _flat(x0)
    problem = _Problem(func, args, unravel)

    def solver(x, held):
        f = problem.vector(held)
        return so.fixed_point(lambda x: _value(f(x)), x, xtol=xtol, maxiter=maxiter, method=method), {}

    x, _, _ = _run(solver, flat, problem.held)
    image = problem.vector()
    return unravel(implicit_root(lambda x: image(x) - x, x, _solve_dense))


# --- minima ---------------------------------------------------------------------------------------------------------

_WITH_PRODUCT = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_WITH_HESSIAN = {"dogleg", "trust-exact"}
_WITH_GRADIENT = {"cg", "bfgs", "l-bfgs-b", "tnc", "slsqp", *_WITH_PRODUCT, *_WITH_HESSIAN}


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
    flat, unravel = _flat(x0)
    problem = _Problem(fun, args, unravel)
    name = (method or ("slsqp" if constraints else "l-bfgs-b" if bounds is not None else "bfgs")).lower()
    given = {"bounds": bounds, "constraints": constraints, "tol": tol, "callback": callback, "options": options}

    def solver(x, held):
        found = so.minimize(x0=x, method=name, **_objective(problem.at(held), name), **given)
        return found.x, found

    x, success, report = _run(solver, flat, problem.held)
    slope = grad(_number(problem.at()))
    equation = _held(slope, x, *_box(bounds, x.shape))
    if constraints and _order(slope(x)):
        raise DerivativeError(
            "the minimum is held by constraints, and fad has its derivative for bounds only. Put the constraints into "
            "the objective, or solve the conditions of Karush, Kuhn and Tucker with fad.scipy.optimize.root"
        )
    result = _finished(x, success, report, equation, problem, "scipy.optimize.minimize")
    result.jac = unravel(stop_gradient(slope(x)))
    return result


def _number(f: Callable) -> Callable:
    """Return a function whose result of one element is a number."""
    return lambda x: _as_float(f(x)).reshape(())


def _objective(f: Callable, name: str) -> dict:
    """Return what SciPy's minimiser is given of a function: values, and the derivatives that its method can use."""
    f = _number(f)
    if name not in _WITH_GRADIENT:
        return {"fun": lambda x: _value(f(x))}
    given: dict = {"fun": lambda x: tuple(_value(v) for v in value_and_grad(f)(x)), "jac": True}
    if name in _WITH_PRODUCT:
        given["hessp"] = lambda x, p: _value(hvp(f, (x,), (np.asarray(p, dtype=x.dtype),))[1])
    if name in _WITH_HESSIAN:
        given["hess"] = lambda x: _value(jacobian(grad(f))(x))
    return given


def _box(bounds: Any, shape: tuple) -> tuple:
    """Return the bounds of the unknowns, below and above."""
    if bounds is None:
        low, high = -np.inf, np.inf
    elif isinstance(bounds, so.Bounds):
        low, high = bounds.lb, bounds.ub
    else:
        low = [-np.inf if b[0] is None else b[0] for b in bounds]
        high = [np.inf if b[1] is None else b[1] for b in bounds]
    return np.broadcast_to(np.asarray(low, dtype=float), shape), np.broadcast_to(np.asarray(high, dtype=float), shape)


def _held(slope: Callable, x: Any, low: Any, high: Any) -> Callable:
    """Return the equation of a minimum: the slope is 0, and unknowns on a bound stay there.

    Some methods approach a bound from inside and stop short of it. So an unknown is on it, too, if the step of Newton's
    method along its axis alone would cross it: off the bounds, the slope of a minimum asks for no step.
    """
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        return slope
    free = (x > low) & (x < high)
    if _order(slope(x)):
        at = stop_gradient(x)
        g, curvature = stop_gradient(slope(at)), stop_gradient(np.diagonal(jacobian(slope)(at)))
        convex = curvature > 0
        downhill = np.where(g > 0, -np.inf, np.where(g < 0, np.inf, 0.0))
        step = np.where(convex, -g / np.where(convex, curvature, 1.0), downhill)
        free = free & (at + step > low) & (at + step < high)

    return lambda x: np.where(free, slope(x), x - stop_gradient(x))


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
    flat, unravel = _flat(x0)
    problem = _Problem(fun, args, unravel)
    given = {
        "bounds": bounds,
        "method": method,
        "ftol": ftol,
        "xtol": xtol,
        "gtol": gtol,
        "x_scale": x_scale,
        "loss": loss,
    }

    def solver(x, held):
        f = problem.vector(held)
        found = so.least_squares(
            lambda x: _value(f(x)), x, jac=lambda x: _value(jacobian(f)(x)), f_scale=f_scale, max_nfev=max_nfev, **given
        )
        return found.x, found

    x, success, report = _run(solver, flat, problem.held)
    residual = problem.vector()
    slope = grad(lambda x: 0.5 * np.sum(residual(x) ** 2))
    if loss != "linear" and _order(residual(x)):
        raise DerivativeError(
            f"the derivative of a fit with loss={loss!r} is not implemented: write the loss as an objective and use "
            "fad.scipy.optimize.minimize"
        )

    low, high = (np.broadcast_to(np.asarray(b, dtype=float), flat.shape) for b in _ends(bounds))
    equation = _held(slope, x, low, high)
    result = _finished(x, success, report, equation, problem, "scipy.optimize.least_squares")
    result.cost = 0.5 * np.sum(_ravel(result.fun) ** 2)
    return result


def _ends(bounds: Any) -> tuple:
    return (bounds.lb, bounds.ub) if isinstance(bounds, so.Bounds) else tuple(bounds)


# --- one equation in one unknown ------------------------------------------------------------------------------------


def _scalar(f: Callable, args: tuple, solver: Callable, *points: Any) -> Any:
    """Find a root of one equation by `solver`, and make it differentiable in what `f` uses."""
    problem = _Problem(f, args)

    def run(points, held):
        plain = problem.at(held)
        return solver(lambda x: plain(x), *points), {}

    x, _, _ = _run(run, points, problem.held)

    def solve(slope, y):
        rate = slope(np.ones_like(stop_gradient(y)))
        if np.any(number(rate) == 0):
            raise DerivativeError("the root has no derivative: the slope of the function is zero there (a double root)")
        return y / rate

    return implicit_root(problem.at(), x[()] if type(x) is np.ndarray and x.ndim == 0 else x, solve)


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
    return _scalar(
        f, args, lambda g, a, b: so.brentq(lambda x: _value(g(x)), a, b, xtol=xtol, rtol=rtol, maxiter=maxiter), a, b
    )


def newton(
    func: Callable, x0: Any, args: tuple = (), tol: float = 1.48e-8, maxiter: int = 50, rtol: float = 0.0
) -> Any:
    """Return a root near `x0` by Newton's method with fad's derivative, elementwise; differentiable in `args`.

    Raises RuntimeError if it did not converge, as in SciPy.

    >>> import fad
    >>> from fad.scipy.optimize import newton
    >>> fad.grad(lambda a: newton(lambda x, a: x**3 - a, 1.0, (a,)))(8.0).round(9)
    np.float64(0.083333333)
    """

    def solver(g, x):
        slope = grad(lambda x: np.sum(g(x)))
        return so.newton(
            lambda x: _value(g(x)), x, fprime=lambda x: _value(slope(x)), tol=tol, maxiter=maxiter, rtol=rtol
        )

    return _scalar(func, args, solver, _as_float(x0))


def root_scalar(
    f: Callable, args: tuple = (), method: str | None = None, bracket: Any = None, x0: Any = None,
    xtol: float | None = None, rtol: float | None = None, maxiter: int | None = None,
) -> so.RootResults:  # fmt: skip
    """Find a root of a scalar function by ``scipy.optimize.root_scalar``; differentiable in `args`.

    Methods that need derivatives are given fad's. The result has SciPy's entries, ``root`` and ``converged`` first.

    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import root_scalar
    >>> fad.grad(lambda a: root_scalar(lambda x, a: np.exp(x) - a, (a,), x0=1.0).root)(4.0).round(9)
    np.float64(0.25)
    """
    reports = []

    def solver(g, *points):
        first, second = (lambda x: _value(grad(g)(x))), (lambda x: _value(grad(grad(g))(x)))
        values = {} if bracket is not None else {"x0": points[0], "fprime": first, "fprime2": second}
        found = so.root_scalar(
            lambda x: _value(g(x)),
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
