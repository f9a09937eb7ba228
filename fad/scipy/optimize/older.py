"""SciPy's older names of minimisers, and linear problems: what `minimize` and `least_squares` find, otherwise asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as so

from fad.ops.arrangement.structural import as_array
from fad.scipy.host import plain as value
from fad.scipy.optimize.common import Problem, as_arguments, as_float, finish, run, select_output
from fad.scipy.optimize.minima import (
    OptimizeResult,
    broadcast_end,
    least_squares,
    make_equation,
    minimize,
    minimize_scalar,
    traced_ends,
)
from fad.transforms.grad import grad

_EPSILON = float(np.sqrt(np.finfo(float).eps))


def _minimise(method: str, f: Callable, x0: Any, args: Any, options: dict) -> OptimizeResult:
    options = {key: option for key, option in options.items() if option is not None}
    return minimize(f, x0, args, method, options={"disp": False} | options)


def fmin(
    func: Callable, x0: Any, args: Any = (), xtol: float = 1e-4, ftol: float = 1e-4, maxiter: int | None = None,
    maxfun: int | None = None, full_output: int = 0, disp: int = 1, retall: int = 0, callback: Any = None,
    initial_simplex: Any = None,
) -> Any:  # fmt: skip
    """Minimise a function by Nelder's and Mead's simplex, as ``scipy.optimize.fmin`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number.
    x0 : array
        Where to start.
    args : tuple
        What the minimum depends on and is differentiable in.
    xtol, ftol, maxiter, maxfun, initial_simplex
        As in SciPy.
    full_output : bool
        Whether to return what SciPy returns with it, too: its value, counts of iterations and calls, a flag.
    retall : int
        0 only.
    disp, callback
        Without effect.

    Returns
    -------
    array, or a tuple with it
        The minimum, differentiated by the implicit function theorem.

    Raises
    ------
    NotImplementedError
        for ``retall``.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import fmin
    >>> fad.grad(lambda a: fmin(lambda x, a: np.sum((x - a) ** 2), np.ones(2), (a,), 1e-8, 1e-8)[0])(3.0).round(5)
    np.float64(1.0)
    """
    options = {"xatol": xtol, "fatol": ftol, "maxiter": maxiter, "maxfev": maxfun, "initial_simplex": initial_simplex}
    result = _minimise("Nelder-Mead", func, x0, args, options)
    return select_output("fmin", result, full_output, retall, "nit", "nfev", "status")


def fmin_powell(
    func: Callable, x0: Any, args: Any = (), xtol: float = 1e-4, ftol: float = 1e-4, maxiter: int | None = None,
    maxfun: int | None = None, full_output: int = 0, disp: int = 1, retall: int = 0, callback: Any = None,
    direc: Any = None,
) -> Any:  # fmt: skip
    """Minimise a function by Powell's method, as ``scipy.optimize.fmin_powell`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number.
    x0 : array
        Where to start.
    args : tuple
        What the minimum depends on and is differentiable in.
    xtol, ftol, maxiter, maxfun, direc
        As in SciPy.
    full_output : bool
        Whether to return what SciPy returns with it, too: its value, directions, counts of iterations
        and calls, a flag.
    retall : int
        0 only.
    disp, callback
        Without effect.

    Returns
    -------
    array, or a tuple with it
        The minimum, differentiated by the implicit function theorem.

    Raises
    ------
    NotImplementedError
        for ``retall``.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import fmin_powell
    >>> fad.grad(lambda a: fmin_powell(lambda x, a: np.sum((x - a) ** 2), np.ones(2), (a,))[0])(3.0).round(5)
    np.float64(1.0)
    """
    options = {"xtol": xtol, "ftol": ftol, "maxiter": maxiter, "maxfev": maxfun, "direc": direc}
    result = _minimise("Powell", func, x0, args, options)
    return select_output("fmin_powell", result, full_output, retall, "direc", "nit", "nfev", "status")


def fmin_bfgs(
    f: Callable, x0: Any, fprime: Any = None, args: Any = (), gtol: float = 1e-5, norm: float = np.inf,
    epsilon: float = 1.5e-8, maxiter: int | None = None, full_output: int = 0, disp: int = 1, retall: int = 0,
    callback: Any = None, xrtol: float = 0, c1: float = 1e-4, c2: float = 0.9, hess_inv0: Any = None,
) -> Any:  # fmt: skip
    """Minimise a function by the method BFGS with fad's gradient, as ``scipy.optimize.fmin_bfgs`` does.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, a number.
    x0 : array
        Where to start.
    fprime, epsilon
        Not needed, for the gradient is fad's.
    args : tuple
        What the minimum depends on and is differentiable in.
    gtol, norm, maxiter, xrtol, c1, c2, hess_inv0
        As in SciPy.
    full_output : bool
        Whether to return what SciPy returns with it, too: its value, the gradient, the inverse Hessian,
        counts of calls of `f` and its gradient, a flag.
    retall : int
        0 only.
    disp, callback
        Without effect.

    Returns
    -------
    array, or a tuple with it
        The minimum, differentiated by the implicit function theorem.

    Raises
    ------
    NotImplementedError
        for ``retall``.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import fmin_bfgs
    >>> fad.grad(lambda a: fmin_bfgs(lambda x, a: np.sum((x - a) ** 2), np.ones(2), args=(a,))[0])(3.0).round(5)
    np.float64(1.0)
    """
    options = {"gtol": gtol, "norm": norm, "maxiter": maxiter, "xrtol": xrtol, "c1": c1, "c2": c2}
    result = _minimise("BFGS", f, x0, args, options | {"hess_inv0": hess_inv0})
    return select_output("fmin_bfgs", result, full_output, retall, "jac", "hess_inv", "nfev", "njev", "status")


def fmin_cg(
    f: Callable, x0: Any, fprime: Any = None, args: Any = (), gtol: float = 1e-5, norm: float = np.inf,
    epsilon: float = 1.5e-8, maxiter: int | None = None, full_output: int = 0, disp: int = 1, retall: int = 0,
    callback: Any = None, c1: float = 1e-4, c2: float = 0.4,
) -> Any:  # fmt: skip
    """Minimise a function by conjugate gradients with fad's gradient, as ``scipy.optimize.fmin_cg`` does.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, a number.
    x0 : array
        Where to start.
    fprime, epsilon
        Not needed, for the gradient is fad's.
    args : tuple
        What the minimum depends on and is differentiable in.
    gtol, norm, maxiter, c1, c2
        As in SciPy.
    full_output : bool
        Whether to return what SciPy returns with it, too: its value, counts of calls of `f` and its gradient, a flag.
    retall : int
        0 only.
    disp, callback
        Without effect.

    Returns
    -------
    array, or a tuple with it
        The minimum, differentiated by the implicit function theorem.

    Raises
    ------
    NotImplementedError
        for ``retall``.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import fmin_cg
    >>> fad.grad(lambda a: fmin_cg(lambda x, a: np.sum((x - a) ** 2), np.ones(2), args=(a,))[0])(3.0).round(5)
    np.float64(1.0)
    """
    options = {"gtol": gtol, "norm": norm, "maxiter": maxiter, "c1": c1, "c2": c2}
    result = _minimise("CG", f, x0, args, options)
    return select_output("fmin_cg", result, full_output, retall, "nfev", "njev", "status")


def fminbound(
    func: Callable, x1: float, x2: float, args: Any = (), xtol: float = 1e-5, maxfun: int = 500, full_output: int = 0,
    disp: int = 1,
) -> Any:  # fmt: skip
    """Minimise a function of one number between two, as ``scipy.optimize.fminbound`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number.
    x1, x2 : float
        Between which the minimum is sought.
    args : tuple
        What the minimum depends on and is differentiable in.
    xtol, maxfun
        As in SciPy.
    full_output : int
        0 only.
    disp
        Without effect.

    Returns
    -------
    number
        The minimum, differentiated by the implicit function theorem.

    Raises
    ------
    NotImplementedError
        for full output.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import fminbound
    >>> fad.grad(lambda a: fminbound(lambda x, a: (x - a) ** 2, 0.0, 9.0, (a,)))(3.0).round(6)
    np.float64(1.0)
    """
    if full_output:
        raise NotImplementedError("fminbound takes full_output=0 here; minimize_scalar reports how it went")
    options = {"xatol": xtol, "maxiter": maxfun}
    return minimize_scalar(func, bounds=(x1, x2), args=args, method="bounded", options=options).x


def brent(
    func: Callable, args: Any = (), brack: Any = None, tol: float = 1.48e-8, full_output: int = 0, maxiter: int = 500,
) -> Any:  # fmt: skip
    """Minimise a function of one number by Brent's method, as ``scipy.optimize.brent`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number.
    args : tuple
        What the minimum depends on and is differentiable in.
    brack, tol, maxiter
        As in SciPy.
    full_output : int
        Whether its value, the iterations and the calls are returned, too.

    Returns
    -------
    number, or a tuple
        The minimum, differentiated by the implicit function theorem.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a minimum that was not found or is flat.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import brent
    >>> fad.grad(lambda a: brent(lambda x, a: (x - a) ** 2, (a,)))(3.0).round(6)
    np.float64(1.0)
    """
    options = {"xtol": tol, "maxiter": maxiter}
    found = minimize_scalar(func, brack, args=args, method="brent", options=options)
    return (found.x, found.fun, found.nit, found.nfev) if full_output else found.x


def golden(
    func: Callable, args: Any = (), brack: Any = None, tol: float = _EPSILON, full_output: int = 0, maxiter: int = 5000,
) -> Any:  # fmt: skip
    """Minimise a function of one number by the golden section, as ``scipy.optimize.golden`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number.
    args : tuple
        What the minimum depends on and is differentiable in.
    brack, tol, maxiter
        As in SciPy.
    full_output : int
        Whether its value and the calls are returned, too.

    Returns
    -------
    number, or a tuple
        The minimum, differentiated by the implicit function theorem.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a minimum that was not found or is flat.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import golden
    >>> fad.grad(lambda a: golden(lambda x, a: (x - a) ** 2, (a,)))(3.0).round(6)
    np.float64(1.0)
    """
    options = {"xtol": tol, "maxiter": maxiter}
    found = minimize_scalar(func, brack, args=args, method="golden", options=options)
    return (found.x, found.fun, found.nfev) if full_output else found.x


def leastsq(
    func: Callable, x0: Any, args: Any = (), Dfun: Any = None, full_output: bool = False, col_deriv: bool = False,
    ftol: float = 1.49012e-8, xtol: float = 1.49012e-8, gtol: float = 0.0, maxfev: int = 0, epsfcn: Any = None,
    factor: float = 100, diag: Any = None,
) -> tuple:  # fmt: skip
    """Minimise the sum of squares of a function by Levenberg's and Marquardt's method, as ``scipy.optimize.leastsq``.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, the residuals.
    x0 : array
        Where to start.
    args : tuple
        What the minimum depends on and is differentiable in.
    Dfun, col_deriv, epsfcn, factor, diag
        Not needed, for the Jacobian is fad's.
    full_output : bool
        False only.
    ftol, xtol, gtol, maxfev
        As in SciPy.

    Returns
    -------
    (array, int)
        The minimum, differentiated by the implicit function theorem, and SciPy's flag, from 1 to 4 for success.

    Raises
    ------
    NotImplementedError
        for full output.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import leastsq
    >>> t = np.arange(3.0)
    >>> slope = lambda y: leastsq(lambda p, y: p[0] + p[1] * t - y, np.zeros(2), y)[0][1]
    >>> fad.grad(slope)(np.array([1.0, 2.0, 3.5])).round(6) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    if full_output:
        raise NotImplementedError("leastsq takes full_output=False here; least_squares and curve_fit report more")
    least = np.finfo(float).eps  # which least_squares wants at least of one of them
    ftol, xtol, gtol = (max(tolerance, least) for tolerance in (ftol, xtol, gtol))
    start = np.reshape(as_float(as_array(x0)), -1)
    found = least_squares(
        func, start, method="lm", ftol=ftol, xtol=xtol, gtol=gtol, max_nfev=maxfev or None, args=as_arguments(args)
    )
    return found.x, found.get("status", 1)


def lsq_linear(
    A: Any, b: Any, bounds: Any = (-np.inf, np.inf), method: str = "trf", tol: float = 1e-10,
    lsq_solver: Any = None, lsmr_tol: Any = None, max_iter: int | None = None, verbose: int = 0, *,
    lsmr_maxiter: Any = None,
) -> OptimizeResult:  # fmt: skip
    """Minimise ``0.5 * sum((A @ x - b)**2)`` between bounds, as ``scipy.optimize.lsq_linear`` does.

    Parameters
    ----------
    A : array (m, n)
        The matrix, with derivatives.
    b : array (m,)
        The right-hand side, with derivatives.
    bounds : pair of arrays, or Bounds
        Lower and upper ones, with derivatives.
    method, tol, lsq_solver, lsmr_tol, max_iter, verbose, lsmr_maxiter
        As in SciPy.

    Returns
    -------
    OptimizeResult
        ``x``, ``fun`` the residuals, ``cost``, and SciPy's other entries.

    Raises
    ------
    DerivativeError
        if a derivative is taken and the free columns of the matrix depend on each other.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import lsq_linear
    >>> fad.grad(lambda b: lsq_linear(np.eye(2), b, (0.0, 1.0)).x.sum())(np.array([0.5, 3.0])).round(6) + 0.0
    array([1., 0.])
    """
    low, high = (bounds.lb, bounds.ub) if isinstance(bounds, so.Bounds) else bounds
    options = {"lsq_solver": lsq_solver, "lsmr_tol": lsmr_tol, "max_iter": max_iter, "verbose": verbose}
    options |= {} if lsmr_maxiter is None else {"lsmr_maxiter": lsmr_maxiter}

    def solver(a: Any, b: Any, ends: tuple) -> Any:
        found = so.lsq_linear(a, b, ends or (low, high), method, tol, **options)
        return found.x, found

    result = _solve_linear(A, b, low, high, solver)
    result.cost = 0.5 * np.sum(result.fun**2)
    return result


def nnls(A: Any, b: Any, maxiter: int | None = None) -> tuple:
    """Return the x >= 0 with the least ``norm(A @ x - b)``, and that norm, as ``scipy.optimize.nnls`` does.

    Parameters
    ----------
    A : array (m, n)
        The matrix, with derivatives.
    b : array (m,)
        The right-hand side, with derivatives.
    maxiter : int, optional
        The greatest number of steps.

    Returns
    -------
    (array, float)

    Raises
    ------
    DerivativeError
        if a derivative is taken and the columns that are used depend on each other.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import nnls
    >>> fad.jacobian(lambda b: nnls(np.eye(2), b)[0])(np.array([0.5, -3.0])) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    result = _solve_linear(A, b, 0.0, np.inf, lambda a, b, _: (so.nnls(a, b, maxiter=maxiter)[0], {}))
    return result.x, np.linalg.norm(result.fun)


def _solve_linear(a: Any, b: Any, low: Any, high: Any, solver: Callable) -> OptimizeResult:
    """Return the solution of a linear problem of least squares between bounds, differentiable in both its parts."""
    a, b = as_float(as_array(a)), as_float(as_array(b))
    low, high = (broadcast_end(end, a.shape[1:]) for end in (low, high))
    ends = traced_ends(low, high)
    x, success, report = run(lambda a, b, ends: solver(value(a), value(b), tuple(map(value, ends))), a, b, ends)
    problem = Problem(lambda x: a @ x - b, (), x)
    slope = grad(lambda x: 0.5 * np.sum((a @ x - b) ** 2))
    return finish(x, success, report, make_equation(slope, x, low, high), problem, "scipy.optimize.lsq_linear")
