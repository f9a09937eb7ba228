"""SciPy's older names of minimisers within bounds and constraints, and of a difference quotient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.scipy.optimize.common import as_arguments, as_float, select_output
from fad.scipy.optimize.minima import minimize

_EPSILON = float(np.sqrt(np.finfo(float).eps))


def _pick(**options: Any) -> dict:
    return {"disp": False} | {name: option for name, option in options.items() if option is not None}


def fmin_l_bfgs_b(
    func: Callable, x0: Any, fprime: Any = None, args: Any = (), approx_grad: Any = 0, bounds: Any = None, m: int = 10,
    factr: float = 1e7, pgtol: float = 1e-5, epsilon: float = 1e-8, maxfun: int = 15000,
    maxiter: int = 15000, callback: Any = None, maxls: int = 20, *, iprint: Any = None, disp: Any = None,
) -> tuple:  # fmt: skip
    """Minimise a function within bounds by L-BFGS-B with fad's gradient, as ``scipy.optimize.fmin_l_bfgs_b`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number; with its gradient where neither `fprime` nor `approx_grad` is given.
    x0 : array
        Where to start.
    fprime, approx_grad, epsilon
        They say whether `func` returns its gradient, too; that itself is fad's.
    args : tuple
        What the minimum depends on and is differentiable in.
    bounds : list of (low, high)
        They may be traced; None is no bound.
    m, factr, pgtol, maxfun, maxiter, maxls
        As in SciPy.
    callback, iprint, disp
        Without effect; SciPy has dropped the last two in 1.18.

    Returns
    -------
    (x, f, d)
        The minimum, differentiated by the implicit function theorem, its value, and what SciPy reports.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a minimum that was not found, or is flat.

    Examples
    --------
    >>> f = lambda x, a: np.sum((x - a) ** 2)
    >>> find = lambda a: fad.scipy.optimize.fmin_l_bfgs_b(f, np.ones(2), args=(a,), approx_grad=True)[0][0]
    >>> fad.grad(find)(3.0).round(6)
    np.float64(1.0)
    """
    ftol = factr * float(np.finfo(float).eps)
    options = _pick(maxcor=m, ftol=ftol, gtol=pgtol, maxfun=maxfun, maxiter=maxiter, maxls=maxls)
    del options["disp"]
    both = fprime is None and not approx_grad
    found = minimize(func, x0, args, "L-BFGS-B", jac=True if both else None, bounds=bounds, options=options)
    report = {"grad": found.jac, "task": found.get("message"), "funcalls": found.get("nfev"), "nit": found.get("nit")}
    return found.x, found.fun, {**report, "warnflag": found.get("status")}


def fmin_tnc(
    func: Callable, x0: Any, fprime: Any = None, args: Any = (), approx_grad: Any = 0, bounds: Any = None,
    epsilon: float = 1e-8, scale: Any = None, offset: Any = None, messages: int = 15, maxCGit: int = -1,
    maxfun: int | None = None, eta: float = -1, stepmx: float = 0, accuracy: float = 0, fmin: float = 0,
    ftol: float = -1, xtol: float = -1, pgtol: float = -1, rescale: float = -1, disp: Any = None, callback: Any = None,
) -> tuple:  # fmt: skip
    """Minimise a function within bounds by a truncated Newton method, as ``scipy.optimize.fmin_tnc`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number; with its gradient where neither `fprime` nor `approx_grad` is given.
    x0 : array
        Where to start.
    fprime, approx_grad, epsilon
        They say whether `func` returns its gradient, too; that itself is fad's.
    args : tuple
        What the minimum depends on and is differentiable in.
    bounds : list of (low, high)
        They may be traced; None is no bound.
    scale, offset, maxCGit, maxfun, eta, stepmx, accuracy, fmin, ftol, xtol, pgtol, rescale
        As in SciPy.
    messages, disp, callback
        Without effect.

    Returns
    -------
    (x, nfeval, rc)
        The minimum, differentiated by the implicit function theorem, the number of calls, and SciPy's return code.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a minimum that was not found, or is flat.

    Examples
    --------
    >>> f = lambda x, a: np.sum((x - a) ** 2)
    >>> find = lambda a: fad.scipy.optimize.fmin_tnc(f, np.ones(2), args=(a,), approx_grad=True)[0][0]
    >>> fad.grad(find)(3.0).round(6)
    np.float64(1.0)
    """
    options = _pick(
        scale=scale, offset=offset, maxCGit=maxCGit, maxfun=maxfun, eta=eta, stepmx=stepmx, accuracy=accuracy,
        minfev=fmin, ftol=ftol, xtol=xtol, gtol=pgtol, rescale=rescale, mesg_num=0,
    )  # fmt: skip
    del options["disp"]
    both = fprime is None and not approx_grad
    found = minimize(func, x0, args, "TNC", jac=True if both else None, bounds=bounds, options=options)
    return found.x, found.get("nfev"), found.get("status")


def fmin_ncg(
    f: Callable, x0: Any, fprime: Any, fhess_p: Any = None, fhess: Any = None, args: Any = (), avextol: float = 1e-5,
    epsilon: float = 1.5e-8, maxiter: int | None = None, full_output: int = 0, disp: int = 1, retall: int = 0,
    callback: Any = None, c1: float = 1e-4, c2: float = 0.9,
) -> Any:  # fmt: skip
    """Minimise a function by Newton's method with conjugate gradients, as ``scipy.optimize.fmin_ncg`` does.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, a number.
    x0 : array
        Where to start.
    fprime, fhess_p, fhess, epsilon
        Not needed, for the derivatives are fad's.
    args : tuple
        What the minimum depends on and is differentiable in.
    avextol, maxiter, c1, c2
        As in SciPy.
    full_output : bool
        Whether to return what SciPy returns with it, too: its value, counts of calls of `f`, its gradient and its
        Hessian, a flag.
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
    >>> f = lambda x, a: np.sum((x - a) ** 2)
    >>> fad.grad(lambda a: fad.scipy.optimize.fmin_ncg(f, np.ones(2), None, args=(a,))[0])(3.0).round(6)
    np.float64(1.0)
    """
    result = minimize(f, x0, args, "Newton-CG", options=_pick(xtol=avextol, maxiter=maxiter, c1=c1, c2=c2))
    return select_output("fmin_ncg", result, full_output, retall, "nfev", "njev", "nhev", "status")


def fmin_slsqp(
    func: Callable, x0: Any, eqcons: Any = (), f_eqcons: Any = None, ieqcons: Any = (), f_ieqcons: Any = None,
    bounds: Any = (), fprime: Any = None, fprime_eqcons: Any = None, fprime_ieqcons: Any = None, args: Any = (),
    iter: int = 100, acc: float = 1e-6, iprint: int = 1, disp: Any = None, full_output: int = 0,
    epsilon: float = 1.5e-8, callback: Any = None,
) -> Any:  # fmt: skip
    """Minimise a function within bounds and constraints by SLSQP, as ``scipy.optimize.fmin_slsqp`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number.
    x0 : array
        Where to start.
    eqcons, ieqcons : lists of callables
        Functions of the same arguments that are 0, and that are 0 or greater.
    f_eqcons, f_ieqcons : callables
        Functions whose results are vectors of such; used instead of the lists where given.
    bounds : list of (low, high)
        Constants.
    fprime, fprime_eqcons, fprime_ieqcons, epsilon
        Not needed, for the derivatives are fad's.
    args : tuple
        What the minimum depends on and is differentiable in.
    iter, acc
        As in SciPy.
    full_output : bool
        Whether to return what SciPy returns with it, too: its value, a count of iterations, a flag and what it says.
    callback, iprint, disp
        Without effect; SciPy has dropped the last two in 1.18.

    Returns
    -------
    array, or a tuple with it
        The minimum, differentiated by the conditions of Karush, Kuhn and Tucker.

    Raises
    ------
    NotImplementedError
        for full output under `jit` and `vmap`.

    Examples
    --------
    >>> f = lambda x, a: np.sum((x - a) ** 2)
    >>> line = lambda x, a: x[0] + x[1] - 1.0
    >>> find = lambda a: fad.scipy.optimize.fmin_slsqp(f, np.zeros(2), [line], args=(a,))[0]
    >>> fad.grad(find)(np.array([1.0, 2.0])).round(6)
    array([ 0.5, -0.5])
    """
    more = as_arguments(args)
    given = [
        *[("eq", c) for c in (eqcons if f_eqcons is None else [f_eqcons])],
        *[("ineq", c) for c in (ieqcons if f_ieqcons is None else [f_ieqcons])],
    ]
    constraints = [{"type": kind, "fun": lambda x, c=c: c(x, *more)} for kind, c in given]
    limits = bounds if len(bounds) else None
    options = _pick(ftol=acc, maxiter=iter)
    result = minimize(func, x0, args, "SLSQP", bounds=limits, constraints=constraints, options=options)
    return select_output("fmin_slsqp", result, full_output, False, "nit", "status", "message")


def approx_fprime(xk: Any, f: Callable, epsilon: Any = _EPSILON, *args: Any) -> Any:
    """Return the difference quotients of a function, ``(f(x + epsilon e) - f(x)) / epsilon``, along each axis.

    They are differentiated as they are computed. `fad.grad` and `fad.jacobian` are exact, and quicker.

    Parameters
    ----------
    xk : array (n,)
        Where.
    f : callable
        ``f(x, *args)``, a number or a vector.
    epsilon : float, or array (n,)
        The step.
    *args
        Further arguments of `f`.

    Returns
    -------
    array (n,) or (m, n)

    Raises
    ------
    ValueError
        if `xk` has several axes.

    Examples
    --------
    >>> fad.scipy.optimize.approx_fprime(np.array([1.0, 2.0]), lambda x: np.sum(x**2)).round(5)
    array([2., 4.])
    """
    x = np.atleast_1d(as_float(xk))
    if x.ndim > 1:
        raise ValueError("`x0` must have at most 1 dimension.")
    n = x.shape[0]
    steps = np.broadcast_to(epsilon, (n,)) * np.ones(n)
    f0 = f(x, *args)
    columns = []
    for i in range(n):
        moved = x + steps * (np.arange(n) == i)
        columns.append((f(moved, *args) - f0) / (moved[i] - x[i]))
    return np.stack(columns, axis=-1)
