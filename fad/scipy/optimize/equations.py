"""Roots and fixed points: of systems, and of one equation in one unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as so

from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import may_ask, stop_gradient
from fad.errors import DerivativeError
from fad.ops.ufuncs.conversion import as_python_number
from fad.scipy.host import plain as value
from fad.scipy.optimize.common import (
    OptimizeResult,
    Problem,
    as_arguments,
    as_float,
    check_convergence,
    derivatives_of,
    finish,
    flatten_start,
    run,
    solve_dense,
    take_first,
    unpack_arguments,
)
from fad.scipy.special.build import number
from fad.transforms.grad import grad
from fad.transforms.implicit import implicit_root
from fad.transforms.jacobian import jacobian

# --- systems ----------------------------------------------------------------------------------------------------------


def root(
    fun: Callable, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: float | None = None,
    callback: Callable | None = None, options: dict | None = None,
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
    method, tol, callback, options
        As in SciPy. Methods that need no Jacobian are given none.
    jac : bool or callable
        True says that `fun` returns its Jacobian, too; False lets SciPy use its own finite differences. One that is
        given is not needed.

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
    flat, unravel = flatten_start(x0)
    problem = Problem(take_first(fun) if jac is True else fun, as_arguments(args), flat, unravel)

    def solver(x, held):
        f = problem.vector(held)
        values = {"jac": lambda x: value(jacobian(f)(x))} if jac is not False and method in ("hybr", "lm") else {}
        found = so.root(
            lambda x: value(f(x)), x, method=method, tol=tol, callback=callback, options=options, **values
        )
        return found.x, found

    x, success, report = run(solver, flat, problem.held)
    return finish(x, success, report, problem.vector(), problem, "scipy.optimize.root")


def fsolve(
    func: Callable, x0: Any, args: Any = (), fprime: Callable | None = None, full_output: bool = False,
    col_deriv: bool = False, xtol: float = 1.49012e-8, maxfev: int = 0, band: Any = None, epsfcn: float | None = None,
    factor: float = 100, diag: Any = None,
) -> Any:  # fmt: skip
    """Return x with ``func(x, *args) = 0``, as ``scipy.optimize.fsolve`` does, with fad's Jacobian.

    Parameters
    ----------
    func : callable
        Function of a vector of unknowns; its result has as many numbers.
    x0 : array_like
        Where to start; a number is a vector of one.
    args : tuple
        What the solution depends on and is differentiable in.
    fprime, col_deriv, band, epsfcn
        Accepted and not needed: the Jacobian is fad's.
    full_output : bool
        Whether to return what SciPy reports, too.
    xtol : float
        The relative tolerance.
    maxfev : int
        The greatest number of calls; 0 is 100 times one more than there are unknowns.
    factor, diag
        The first step, and the scales of the unknowns, as in SciPy.

    Returns
    -------
    array, or (array, dict, int, str) if `full_output`
        The solution, differentiated by the implicit function theorem; counts, a flag that is 1 for success, a message.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a solution that was not found, or at which the Jacobian is singular.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import fsolve
    >>> fad.grad(lambda a: fsolve(lambda x, a: x * x - a, 1.0, a)[0])(4.0).round(9)
    np.float64(0.25)
    """
    start = np.reshape(as_float(x0), -1)
    found = root(func, start, args, tol=xtol, options={"maxfev": maxfev, "factor": factor, "diag": diag})
    if not full_output:
        return found.x
    report = {name: found[name] for name in ("nfev", "njev", "fjac", "r", "qtf") if name in found}
    return found.x, {**report, "fvec": found.fun}, found.get("status"), found.get("message")


def fixed_point(
    func: Callable, x0: Any, args: tuple = (), xtol: float = 1e-8, maxiter: int = 500, method: str = "del2"
) -> Any:
    """Return x with ``func(x, *args) = x``, found by ``scipy.optimize.fixed_point``; differentiable in `args`.

    Raises RuntimeError, as SciPy does, if the iteration did not converge.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` in the shape of `x`.
    x0 : array_like
        Where to begin; it has no derivative.
    args : tuple
        Further arguments of `func`, with derivatives.
    xtol : float
        Tolerance.
    maxiter : int
        Greatest number of steps.
    method : "del2" or "iteration"
        Whether steps are accelerated.

    Returns
    -------
    array
        The fixed point, differentiated by the implicit function theorem.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import fixed_point
    >>> fad.grad(lambda a: fixed_point(lambda x, a: np.sqrt(x + a), 1.0, (a,)))(2.0).round(9)
    np.float64(0.333333333)
    """
    flat, unravel = flatten_start(x0, keep_number=True)
    problem = Problem(func, unpack_arguments(args), flat, unravel)

    def solver(x, held):
        f = problem.vector(held)
        return so.fixed_point(lambda x: value(f(x)), x, xtol=xtol, maxiter=maxiter, method=method), {}

    x, _, _ = run(solver, flat, problem.held)
    image = problem.vector()
    x = implicit_root(lambda x: image(x) - x, x, solve_dense)
    problem.closure.settle()
    return unravel(x)


# --- one equation in one unknown ------------------------------------------------------------------------------------


def find_scalar(f: Callable, args: Any, solver: Callable, *points: Any, others: tuple = ()) -> Any:
    """Find a root of one equation by `solver`, and make it differentiable in what `f` uses.

    The solver is given `others`, functions of the same arguments, too. Return the root, whether it was found, and what
    the solver reported.
    """
    problem, *more = [Problem(g, as_arguments(args), points) for g in (f, *others)]

    def solve_plain(points, held):
        functions = [p.at(values) for p, values in zip((problem, *more), held, strict=True)]
        return solver(functions[0], *points, *functions[1:])

    x, success, report = run(solve_plain, points, [p.held for p in (problem, *more)])

    def solve(slope, y):
        rate = slope(np.ones_like(stop_gradient(y)))
        if may_ask(rate) and np.any(number(rate) == 0):
            raise DerivativeError("the root has no derivative: the slope of the function is zero there (a double root)")
        return y / rate

    x = implicit_root(problem.at(), x[()] if x.ndim == 0 else x, solve)
    for p in (problem, *more):
        p.closure.settle()
    return x, success, report


def newton(
    func: Callable, x0: Any, fprime: Callable | None = None, args: Any = (), tol: float = 1.48e-8, maxiter: int = 50,
    fprime2: Callable | None = None, x1: Any = None, rtol: float = 0.0, full_output: bool = False, disp: bool = True,
) -> Any:  # fmt: skip
    """Return a root near `x0` by Newton's method, elementwise; differentiable in `args`.

    Raises RuntimeError if it did not converge, as in SciPy.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``.
    x0 : array_like
        Where to begin; it has no derivative.
    fprime : callable
        The derivative that the steps go by; without one it is fad's.
    fprime2, x1
        Accepted and not needed.
    args : tuple
        Further arguments of `func`, with derivatives.
    tol, rtol : float
        Tolerances.
    maxiter : int
        Greatest number of steps.
    full_output : bool
        False only.
    disp : bool
        Whether to raise if the iteration does not converge.

    Returns
    -------
    number or array
        The root, differentiated by the implicit function theorem.

    Raises
    ------
    RuntimeError
        if the iteration does not converge.
    NotImplementedError
        for full output.

    Examples
    --------
    >>> import fad
    >>> from fad.scipy.optimize import newton
    >>> fad.grad(lambda a: newton(lambda x, a: x**3 - a, 1.0, args=(a,)))(8.0).round(9)
    np.float64(0.083333333)
    """

    if full_output:
        raise NotImplementedError("newton takes full_output=False here; root_scalar reports how it went")

    def solver(g, x, slope=None):
        slope = slope or grad(lambda x: np.sum(g(x)))
        found = so.newton(
            lambda x: value(g(x)), x, lambda x: value(slope(x)), tol=tol, maxiter=maxiter, rtol=rtol, disp=disp
        )
        return found, {}

    others = () if fprime is None else (fprime,)
    return find_scalar(func, unpack_arguments(args), solver, as_float(x0), others=others)[0]


def root_scalar(
    f: Callable, args: Any = (), method: str | None = None, bracket: Any = None, fprime: Any = None,
    fprime2: Any = None, x0: Any = None, x1: Any = None, xtol: float | None = None, rtol: float | None = None,
    maxiter: int | None = None, options: dict | None = None,
) -> so.RootResults:  # fmt: skip
    """Find a root of a scalar function by ``scipy.optimize.root_scalar``; differentiable in `args`.

    Methods that need derivatives are given fad's. The result has SciPy's entries, ``root`` and ``converged`` first.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``.
    args : tuple
        Further arguments of `f`, with derivatives.
    method : str
        As of scipy.optimize.root_scalar.
    bracket : (float, float)
        Where `f` has opposite signs.
    fprime, fprime2 : callable or bool
        Not needed, for fad has the derivatives; True says that `f` returns them, too.
    x0, x1 : float
        Where to begin, for methods without a bracket.
    xtol, rtol : float
        Tolerances.
    maxiter : int
        Greatest number of steps.
    options : dict
        Further options of the method.

    Returns
    -------
    RootResults
        With ``root``, differentiated by the implicit function theorem.

    Raises
    ------
    ValueError
        if there is no such method.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import root_scalar
    >>> fad.grad(lambda a: root_scalar(lambda x, a: np.exp(x) - a, (a,), x0=1.0).root)(4.0).round(9)
    np.float64(0.25)
    """

    def solver(g, *points):
        points = [float(p) for p in points]
        first, second = (lambda x: value(grad(g)(x))), (lambda x: value(grad(grad(g))(x)))
        values = {} if bracket is not None else {"x0": points[0], "fprime": first, "fprime2": second, "x1": x1}
        found = so.root_scalar(
            lambda x: value(g(x)),
            method=method or (None if bracket is not None else "newton"),
            bracket=points if bracket is not None else None,
            xtol=xtol,
            rtol=rtol,
            maxiter=maxiter,
            options=options,
            **values,
        )
        reports.append(found)
        return found.root, {"success": found.converged, "nfev": found.function_calls, "nit": found.iterations}

    reports: list = []
    points = [as_float(p) for p in (bracket if bracket is not None else (x0,))]
    f = take_first(f) if fprime is True or fprime2 is True else f
    root, success, counts = find_scalar(f, args, solver, *points)
    report = reports[-1]
    check_convergence(success, root, derivatives_of(root), str(report.flag), "scipy.optimize.root_scalar")
    report.root = as_python_number(root) if type(report.root) is float else root
    if type(success) is Tracer:
        report.converged, report.function_calls, report.iterations = success, counts["nfev"], counts["nit"]
        del report.flag
    return report
