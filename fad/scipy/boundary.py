"""Boundary value problems: SciPy solves, and the equations of its collocation give the derivative of the solution.

Source: J. Kierzenka, L. F. Shampine, A BVP Solver Based on Residual Control and the Maltab PSE, ACM Trans. Math.
Softw. 27 (2001), whose equations SciPy solves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate

from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.values import stop_gradient
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.host import needs_host_call
from fad.scipy.host import plain as value
from fad.scipy.interpolate.piecewise import CubicHermiteSpline
from fad.scipy.optimize.common import OptimizeResult, Problem, check_convergence, derivatives_of, solve_dense
from fad.transforms.implicit import implicit_root


def solve_bvp(
    fun: Callable, bc: Callable, x: Any, y: Any, p: Any = None, S: Any = None, fun_jac: Any = None, bc_jac: Any = None,
    tol: float = 1e-3, max_nodes: int = 1000, verbose: int = 0, bc_tol: Any = None,
) -> OptimizeResult:  # fmt: skip
    """Solve ``dy/dx = fun(x, y)`` with conditions ``bc(y_start, y_end) = 0`` at both ends by SciPy's ``solve_bvp``.

    The values on the mesh, and the parameters found, satisfy the equations of a collocation, by which they are
    differentiable in what `fun` and `bc` use, and in the ends of `x`, between which the mesh keeps its proportions. How
    the mesh was chosen is constant. The guess has no derivative.

    Parameters
    ----------
    fun : callable
        ``fun(x, y)`` of places (m,) and states (n, m), or ``fun(x, y, p)``: the derivatives (n, m).
    bc : callable
        ``bc(ya, yb)`` or ``bc(ya, yb, p)``: what is zero, n numbers and one for each parameter.
    x : array (m,)
        A first mesh.
    y : array (n, m)
        A guess of the solution on it.
    p : array (k,), optional
        A guess of unknown parameters.
    S : array (n, n), optional
        A singular term, for plain arguments.
    fun_jac, bc_jac
        As in SciPy; not needed.
    tol, max_nodes, verbose, bc_tol
        As in SciPy. The derivative is that of the collocation on the last mesh, so that it is as accurate as `tol`.

    Returns
    -------
    OptimizeResult
        ``x``, ``y``, ``yp``, ``p``, ``sol`` the interpolant, ``success``, and SciPy's other entries.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a solution that was not found.
    NotImplementedError
        under ``jit`` and ``vmap``, for the length of the mesh follows the values; and with a singular term.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import solve_bvp
    >>> def middle(a):  # y'' = a, y(0) = y(1) = 0
    ...     fun = lambda x, y: np.stack([y[1], a + 0.0 * x])
    ...     bc = lambda start, end: np.stack([start[0], end[0]])
    ...     return solve_bvp(fun, bc, np.linspace(0.0, 1.0, 5), np.zeros((2, 5))).sol(0.5)[0]
    >>> fad.grad(middle)(1.0).round(9)
    np.float64(-0.125)
    """
    field, ends = (Problem(lambda given, f=f: as_array(f(*given)), (), ()) for f in (fun, bc))
    if not has_tracer((field.held, ends.held, x, S)):
        found = scipy.integrate.solve_bvp(
            fun, bc, value(x), value(y), None if p is None else value(p), S, fun_jac, bc_jac, tol, max_nodes, verbose,
            bc_tol,
        )  # fmt: skip
        for problem in (field, ends):
            problem.closure.settle()
        return found
    if needs_host_call((field.held, ends.held, x, y, p)):
        raise NotImplementedError(
            "solve_bvp cannot run under jit and vmap, for the length of its mesh follows the values: call it "
            "outside of them, or write the equations of a mesh of your own and use fad.scipy.optimize.root"
        )
    if S is not None:
        raise NotImplementedError("solve_bvp of traced values takes no singular term: start beside the singular place")
    mesh = as_array(x).astype(float)
    held = tuple(stop_gradient(problem.held) for problem in (field, ends))
    found = scipy.integrate.solve_bvp(
        _take_parts(field.at(held[0])), _take_parts(ends.at(held[1])), stop_gradient(mesh), value(y),
        None if p is None else value(p), tol=tol, max_nodes=max_nodes, verbose=verbose, bc_tol=bc_tol,
    )  # fmt: skip
    if np.iscomplexobj(found.y):
        raise NotImplementedError("solve_bvp of traced values takes real states: solve for the parts of complex ones")
    return _differentiate(found, field, ends, mesh)


def _take_parts(f: Callable) -> Callable:
    return lambda *given: value(f(given))


def _differentiate(found: Any, field: Problem, ends: Problem, mesh: Any) -> OptimizeResult:
    """Return a solution that has the derivatives of the equations that it satisfies."""
    share = (found.x - found.x[0]) / (found.x[-1] - found.x[0])
    x = mesh[0] + (mesh[-1] - mesh[0]) * share if has_tracer((mesh,)) else found.x
    n, m = found.y.shape
    count = 0 if found.p is None else found.p.shape[0]
    f, g = field.at(), ends.at()

    def split(z: Any) -> tuple:
        return z[: n * m].reshape(n, m), ((z[n * m :],) if count else ())

    def equation(z: Any) -> Any:
        y, p = split(z)
        h = x[1:] - x[:-1]
        slopes = f((x, y, *p))
        between = 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (slopes[:, 1:] - slopes[:, :-1])
        middle = f((x[:-1] + 0.5 * h, between, *p))
        rest = y[:, 1:] - y[:, :-1] - h / 6 * (slopes[:, :-1] + slopes[:, 1:] + 4 * middle)
        return np.concatenate([rest.reshape(-1), g((y[:, 0], y[:, -1], *p)).reshape(-1)])

    z = np.concatenate([found.y.reshape(-1), found.p if count else np.zeros(0)])
    order = derivatives_of(equation(z))
    check_convergence(found.success, z, order, found.message, "scipy.integrate.solve_bvp")
    try:
        y, p = split(implicit_root(equation, z, solve_dense))
    except DerivativeError as error:
        raise DerivativeError("the solution is not isolated: its boundary conditions leave a direction free") from error
    yp = f((x, y, *p))
    result = OptimizeResult(found)
    result.update(x=x, y=y, yp=yp, p=p[0] if count else None, sol=CubicHermiteSpline(x, y, yp, axis=1))
    for problem in (field, ends):
        problem.closure.settle()
    return result
