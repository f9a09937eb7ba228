"""Minima: of functions, and of sums of squares."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as so

from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.values import stop_gradient
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.host import plain as value
from fad.scipy.optimize.common import (
    OptimizeResult,
    Problem,
    as_arguments,
    as_float,
    constant_bounds,
    derivatives_of,
    finish,
    flatten_start,
    ravel,
    run,
    take_first,
    unpack_arguments,
)
from fad.scipy.optimize.constraints import Constraints
from fad.scipy.special.build import number
from fad.transforms.grad import grad, value_and_grad
from fad.transforms.jacobian import hvp, jacobian
from fad.transforms.outside.closures import with_own_scratch

_WITH_PRODUCT = {"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"}
_WITH_HESSIAN = {"dogleg", "trust-exact"}
_WITH_GRADIENT = {"cg", "bfgs", "l-bfgs-b", "tnc", "slsqp", *_WITH_PRODUCT, *_WITH_HESSIAN}


def minimize(
    fun: Callable, x0: Any, args: Any = (), method: str | None = None, jac: Any = None, hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: float | None = None,
    callback: Callable | None = None, options: dict | None = None,
) -> OptimizeResult:  # fmt: skip
    """Minimise ``fun(x, *args)`` by ``scipy.optimize.minimize``, with fad's gradient and Hessian products.

    The minimum satisfies ``grad fun = 0`` in its free components; those that lie on a bound stay there. Within
    constraints it satisfies the conditions of Karush, Kuhn and Tucker, and those that are active stay so.

    Parameters
    ----------
    fun : callable
        Scalar function of the unknowns.
    x0 : array or pytree
        Where to start.
    args : tuple
        What the minimum depends on and is differentiable in.
    jac, hess, hessp
        Not needed, for fad has the derivatives; ``jac=True`` says that `fun` returns its gradient, too.
    method, bounds, constraints, tol, callback, options
        As in SciPy; the unknowns are flattened for bounds and constraints. What constraints use may be traced.

    Returns
    -------
    OptimizeResult
        ``x`` in the structure of `x0`, ``fun`` the minimum, ``jac`` the gradient there, and SciPy's other entries.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a minimum that was not found, or is flat.

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
    if constraints:
        constant_bounds(bounds)
    flat, unravel = flatten_start(x0)
    problem = Problem(take_first(fun) if jac is True else fun, as_arguments(args), flat, unravel)
    name = (method or ("slsqp" if constraints else "l-bfgs-b" if bounds is not None else "bfgs")).lower()
    given = {"bounds": bounds, "tol": tol, "callback": callback, "options": options}
    low, high = _box(bounds, flat.shape)
    limits = Constraints(constraints, low, high) if constraints else None
    if limits is not None:
        return _minimize_within(limits, problem, flat, name, given)

    ends = traced_ends(low, high)

    def solver(x, held, ends):
        within = {"bounds": np.stack(ends, axis=1)} if ends else {}
        found = so.minimize(x0=x, method=name, **_objective(problem.at(held), name), **(given | within))
        return found.x, found

    x, success, report = run(solver, flat, problem.held, ends)
    slope = grad(_number(problem.at()))
    equation = make_equation(slope, x, low, high)
    result = finish(x, success, report, equation, problem, "scipy.optimize.minimize")
    result.fun = _as_number(result.fun)
    result.jac = unravel(stop_gradient(slope(x)))
    return result


def _minimize_within(limits: Constraints, problem: Problem, flat: Any, name: str, given: dict) -> OptimizeResult:
    """Minimise within constraints; their multipliers are found with the minimum, where it may have a derivative."""
    n, traced = flat.shape[0], bool(problem.held or limits.held)

    def solver(x, held, held_by_limits):
        f = problem.at(held)
        found = so.minimize(
            x0=x, method=name, constraints=limits.for_solver(held_by_limits), **_objective(f, name), **given
        )
        if not traced:
            return found.x, found
        multipliers = limits.find_multipliers(lambda x: value(grad(_number(f))(x)), found.x, held_by_limits)
        return np.concatenate([found.x, multipliers]), found

    z, success, report = run(solver, flat, problem.held, limits.held)
    slope = grad(_number(problem.at()))
    equation = limits.make_equation(slope, z, n) if traced else slope
    result = finish(z, success, report, equation, problem, "scipy.optimize.minimize", n)
    result.fun = _as_number(result.fun)
    limits.problem.closure.settle()
    result.jac = problem.unravel(stop_gradient(slope(stop_gradient(z)[:n])))
    return result


def minimize_scalar(
    fun: Callable, bracket: Any = None, bounds: Any = None, args: Any = (), method: str | None = None,
    tol: float | None = None, options: dict | None = None,
) -> OptimizeResult:  # fmt: skip
    """Minimise ``fun(x, *args)`` of one number by ``scipy.optimize.minimize_scalar``.

    The minimum satisfies ``grad fun = 0``, or lies on a bound and stays there.

    Parameters
    ----------
    fun : callable
        Scalar function of a number.
    bracket, bounds, method, tol, options
        As in SciPy.
    args : tuple
        What the minimum depends on and is differentiable in.

    Returns
    -------
    OptimizeResult
        ``x``, ``fun`` the minimum, ``success``, and SciPy's other entries.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a minimum that was not found or is flat.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import minimize_scalar
    >>> fad.grad(lambda a: minimize_scalar(lambda x, a: np.cosh(x) - a * x, args=(a,)).x)(0.0).round(6)
    np.float64(1.0)
    """
    problem = Problem(fun, as_arguments(args), (), lambda x: x[0])
    low, high = _box(None if bounds is None else [bounds], (1,))

    def solver(held, ends):
        f = _number(problem.at(held))
        within = tuple(float(end[0]) for end in ends) if ends else bounds
        found = so.minimize_scalar(
            lambda x: float(value(f(np.asarray([x])))), bracket, within, (), method, tol, options
        )
        return np.reshape(found.x, 1), found

    x, success, report = run(solver, problem.held, traced_ends(low, high))
    equation = make_equation(grad(_number(problem.at())), x, low, high)
    return finish(x, success, report, equation, problem, "scipy.optimize.minimize_scalar")


def _as_number(y: Any) -> Any:
    """Return a value of one element as the number that SciPy reports."""
    return y.reshape(())[()] if np.ndim(y) else y


def _number(f: Callable) -> Callable:
    """Return a function whose result of one element is a number."""

    def number(x: Any) -> Any:
        y = f(x)
        if y is None or (shaped := as_float(y)).size != 1:
            given = "None" if y is None else f"an array of shape {shaped.shape}"
            raise ValueError(f"the objective must return a number, but gave {given}: np.sum(y) makes one")
        return shaped.reshape(())

    return number


def _objective(f: Callable, name: str) -> dict:
    """Return what SciPy's minimiser is given of a function: values, and the derivatives that its method can use."""
    f = _number(f)
    if name not in _WITH_GRADIENT:
        return {"fun": lambda x: value(f(x))}
    given: dict = {"fun": lambda x: tuple(value(v) for v in value_and_grad(f)(x)), "jac": True}
    if name in _WITH_PRODUCT:
        given["hessp"] = lambda x, p: value(hvp(f, (x,), (np.asarray(p, dtype=x.dtype),))[1])
    if name in _WITH_HESSIAN:
        given["hess"] = lambda x: value(jacobian(grad(f))(x))
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
    return broadcast_end(low, shape), broadcast_end(high, shape)


def broadcast_end(end: Any, shape: tuple) -> Any:
    """Return bounds on one side, which may be traced, for all unknowns."""
    return np.broadcast_to(as_array(end).astype(float) if has_tracer((end,)) else np.asarray(end, dtype=float), shape)


def traced_ends(low: Any, high: Any) -> tuple:
    """Return bounds if they are traced, for then a solver must be given their values."""
    return (low, high) if has_tracer((low, high)) else ()


def make_equation(slope: Callable, x: Any, low: Any, high: Any) -> Callable:
    """Return the equation of a minimum: the slope is 0, and unknowns on a bound stay there.

    Some methods approach a bound from inside and stop short of it. So an unknown is on it, too, if the step of Newton's
    method along its axis alone would cross it: off the bounds, the slope of a minimum gives no step. It follows a bound
    that is traced.
    """
    ends = low, high
    low, high = stop_gradient(low), stop_gradient(high)
    if not has_tracer(ends) and not (np.isfinite(low).any() or np.isfinite(high).any()):
        return slope
    free = (x > low) & (x < high)
    if derivatives_of((slope(x), ends)):
        at = stop_gradient(x)
        g, curvature = stop_gradient(slope(at)), stop_gradient(np.diagonal(jacobian(slope)(at)))
        convex = curvature > 0
        downhill = np.where(g > 0, -np.inf, np.where(g < 0, np.inf, 0.0))
        step = np.where(convex, -g / np.where(convex, curvature, 1.0), downhill)
        free = free & (at + step > low) & (at + step < high)

    moved = np.where(x - low < high - x, ends[0], ends[1])
    moved = np.where(np.isfinite(stop_gradient(moved)), moved, 0.0)
    there = stop_gradient(x) + (moved - stop_gradient(moved))
    return lambda x: np.where(free, slope(x), x - there)


def least_squares(
    fun: Callable, x0: Any, jac: Any = None, bounds: Any = (-np.inf, np.inf), method: str = "trf", ftol: float = 1e-8,
    xtol: float = 1e-8, gtol: float = 1e-8, x_scale: Any = 1.0, loss: str = "linear", f_scale: float = 1.0,
    diff_step: Any = None, tr_solver: str | None = None, tr_options: dict | None = None, jac_sparsity: Any = None,
    max_nfev: int | None = None, verbose: int = 0, args: Any = (), kwargs: dict | None = None,
    callback: Callable | None = None, workers: Any = None,
) -> OptimizeResult:  # fmt: skip
    """Minimise half the sum of squares of ``fun(x, *args)`` by ``scipy.optimize.least_squares``, with fad's Jacobian.

    The solution is differentiable in `args`: by ``J.T @ r = 0``, second derivatives of the residuals included,
    so the result is right for large residuals too; with a robust `loss` by the slope of that. Of a `loss` that is a
    function the derivative raises.

    Parameters
    ----------
    fun : callable
        Residuals, as one array or a pytree of arrays.
    x0 : array or pytree
        Where to start.
    jac, diff_step, jac_sparsity, workers
        Not needed, for the Jacobian is fad's.
    bounds, method, ftol, xtol, gtol, x_scale, loss, f_scale, tr_solver, tr_options, max_nfev, verbose, callback
        As in SciPy, for the flattened unknowns.
    args, kwargs : tuple and dict
        Further arguments of `fun`, with derivatives.

    Returns
    -------
    OptimizeResult
        ``x`` in the structure of `x0`, ``fun`` the residuals there, ``cost``, and SciPy's other entries.

    Raises
    ------
    ValueError
        if the start lies outside of the bounds, or there is no such method.

    Examples
    --------
    The slope of a fitted line, as a function of the data:

    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import least_squares
    >>> t = np.array([0.0, 1.0, 2.0])
    >>> def slope(y):
    ...     return least_squares(lambda p, y: p[0] + p[1] * t - y, np.zeros(2), args=(y,)).x[1]
    >>> fad.grad(slope)(np.array([1.0, 2.0, 3.5])).round(9) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    flat, unravel = flatten_start(x0)
    low, high = (broadcast_end(b, flat.shape) for b in _ends(bounds))
    problem = Problem(functools.partial(fun, **kwargs) if kwargs else fun, unpack_arguments(args), flat, unravel)
    given = {
        "bounds": bounds, "method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol, "x_scale": x_scale,
        "loss": (lambda z: value(loss(z))) if callable(loss) else loss,
        "f_scale": f_scale, "tr_solver": tr_solver, "tr_options": tr_options, "max_nfev": max_nfev, "verbose": verbose,
    }  # fmt: skip
    given |= {} if callback is None else {"callback": callback}  # newer than the oldest SciPy

    def solver(x, held, ends, scales):
        f = problem.vector(held)
        within = given | scales | ({"bounds": ends} if ends else {})
        found = so.least_squares(lambda x: value(f(x)), x, jac=lambda x: value(jacobian(f)(x)), **within)
        return found.x, found

    scales = {name: as_array(given[name]) for name in ("x_scale", "f_scale") if has_tracer((given[name],))}
    x, success, report = run(solver, flat, problem.held, traced_ends(low, high), scales)
    residual = problem.vector()
    if loss not in _LOSSES and derivatives_of(residual(x)):
        raise DerivativeError(
            "the derivative of a fit with a loss of the program's own is not implemented: write the loss as an "
            "objective and use fad.scipy.optimize.minimize"
        )
    rho = _LOSSES.get(loss, _LOSSES["linear"])
    unit = 1.0 if loss == "linear" else f_scale
    cost = lambda x: 0.5 * unit**2 * np.sum(rho((residual(x) / unit) ** 2))
    slope = grad(cost)
    equation = make_equation(slope, x, low, high)
    result = finish(x, success, report, equation, problem, "scipy.optimize.least_squares")
    result.cost = cost(ravel(result.x)) if loss in _LOSSES else report.get("cost")
    return result


def _soften(z: Any) -> Any:
    far = z > 1.0
    return np.where(far, 2.0 * np.sqrt(np.where(far, z, 1.0)) - 1.0, z)


# By their names: what is summed in the place of squared residuals z.
_LOSSES: dict[Any, Callable] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": _soften,
    "cauchy": np.log1p,
    "arctan": np.arctan,
}


def _ends(bounds: Any) -> tuple:
    return (bounds.lb, bounds.ub) if isinstance(bounds, so.Bounds) else tuple(bounds)


def curve_fit(
    f: Callable, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: bool = False,
    check_finite: bool = True, bounds: Any = (-np.inf, np.inf), method: str | None = None, jac: Any = None, *,
    full_output: bool = False, nan_policy: str | None = None, **options: Any,
) -> tuple:  # fmt: skip
    """Fit ``f(xdata, *parameters)`` to data, as ``scipy.optimize.curve_fit`` does, with fad's Jacobian.

    The parameters and their covariance are differentiable in the data, in `sigma`, and in whatever `f` uses.

    Parameters
    ----------
    f : callable
        ``f(xdata, p0, p1, ...)`` returns an array of the shape of `ydata`.
    xdata : array or pytree
        What `f` is given.
    ydata : array, shape (m,)
    p0 : sequence of float, optional
        Where to start; ones, or the middle of finite bounds, if not given.
    sigma : array, shape (m,) or (m, m), optional
        Standard deviations of the data, or their covariance matrix.
    absolute_sigma : bool
        Whether `sigma` is in the units of the data. If not, the covariance is scaled by the residuals.
    check_finite : bool
        Whether NaN and infinities are looked for.
    bounds, method, **options
        As in :func:`least_squares`; the method is "lm" without bounds and "trf" with them.
    jac
        Not needed, for the Jacobian is fad's.
    full_output, nan_policy
        False and None only.

    Returns
    -------
    (parameters, covariance) : arrays of shape (n,) and (n, n)

    Raises
    ------
    RuntimeError
        if the fit did not converge;
    ValueError
        for NaN or infinities in the data;
    NotImplementedError
        for full output, and a policy for NaN.

    Examples
    --------
    How the fitted rate of a decay depends on each of the measurements:

    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import curve_fit
    >>> t = np.array([0.0, 1.0, 2.0, 3.0])
    >>> def rate(y):
    ...     return curve_fit(lambda t, a, k: a * np.exp(-k * t), t, y, (1.0, 0.5))[0][1]
    >>> y = 2.0 * np.exp(-0.7 * t)
    >>> rate(y).round(9), fad.grad(rate)(y).round(6)
    (np.float64(0.7), array([ 0.315184, -0.344392, -0.419763, -0.33197 ]))
    """
    if full_output or nan_policy is not None:
        raise NotImplementedError("curve_fit takes full_output=False and nan_policy=None; least_squares reports more")
    ydata = as_float(as_array(ydata))
    low, high = (stop_gradient(broadcast_end(b, np.shape(b))) for b in _ends(bounds))
    bounded = bool(has_tracer((bounds,)) or np.isfinite(low).any() or np.isfinite(high).any())
    if check_finite is not False and not np.all(np.isfinite(number(ydata))):
        raise ValueError("array must not contain infs or NaNs")
    p0 = _start(f, low, high) if p0 is None else np.atleast_1d(as_float(as_array(p0)))
    whiten = _whitening(sigma, ydata)
    xdata = as_array(xdata) if isinstance(xdata, (list, tuple)) else xdata

    def residuals(p, ydata):
        return whiten(f(xdata, *[p[i] for i in range(p.shape[0])]) - ydata)

    method = method or ("trf" if bounded else "lm")
    names = {"maxfev": "max_nfev"}  # as the method "lm" knows it
    options = {names.get(name, name): option for name, option in options.items()}
    ends = bounds if bounded else (-np.inf, np.inf)
    found = least_squares(residuals, p0, bounds=ends, method=method, args=(ydata,), **options)
    if not np.all(found.success):
        raise RuntimeError(f"Optimal parameters not found: {found.get('message', 'the fit did not converge')}")
    slope = jacobian(with_own_scratch(lambda p: residuals(p, ydata)))(found.x)
    m, n = slope.shape
    spread = None if m <= n and not absolute_sigma else _invert_normal_matrix(slope, method)
    if spread is None:
        message = "Covariance of the parameters could not be estimated"
        warnings.warn(message, so.OptimizeWarning, stacklevel=2)
        return found.x, np.full((n, n), np.inf)
    return found.x, spread if absolute_sigma else spread * (2.0 * found.cost / (m - n))


def _invert_normal_matrix(slope: Any, method: str) -> Any:
    """Return the inverse of ``slope.T @ slope``, or None if it has none and the method is one without bounds.

    The others take the pseudo-inverse, by the singular values that SciPy keeps. A case is decided for each batch
    element of a vmap.
    """
    if method != "lm":
        inverse = np.linalg.pinv(slope, float(np.finfo(float).eps * max(slope.shape)))
        return inverse @ inverse.T
    information = slope.T @ slope
    return np.linalg.inv(information) if np.linalg.slogdet(stop_gradient(information))[0] else None


def _start(f: Callable, low: Any, high: Any) -> Any:
    """Return where SciPy starts: at ones, in the middle of bounds, or by one beside a single one."""
    n = len(inspect.signature(f).parameters) - 1
    if n < 1:
        raise ValueError("Unable to determine number of fit parameters.")
    low, high = np.broadcast_to(low, n), np.broadcast_to(high, n)
    both, below, above = np.isfinite(low) & np.isfinite(high), np.isfinite(low), np.isfinite(high)
    with np.errstate(invalid="ignore"):
        return np.where(both, 0.5 * (low + high), np.where(below, low + 1, np.where(above, high - 1, 1.0)))


def _whitening(sigma: Any, ydata: Any) -> Callable:
    """Return what makes residuals independent, of standard deviation 1."""
    if sigma is None:
        return lambda r: r
    sigma = as_array(sigma)
    if sigma.size == 1 or sigma.shape == (ydata.size,):
        return lambda r: r / sigma
    if sigma.shape != (ydata.size, ydata.size):
        raise ValueError("`sigma` has incorrect shape.")
    factor = np.linalg.cholesky(sigma)
    return lambda r: np.linalg.solve(factor, r)
