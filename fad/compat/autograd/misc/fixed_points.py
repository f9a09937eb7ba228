"""autograd.misc.fixed_points: the limit of an iteration, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fad
from fad import tree
from fad.compat.autograd.operators import _as_float

__all__ = ["fixed_point"]


def fixed_point(f: Callable, a: Any, x0: Any, distance: Callable, tol: float) -> Any:
    """Return the x with ``f(a)(x) = x`` that the iteration from `x0` reaches, differentiable in `a`.

    Parameters
    ----------
    f : callable
        ``f(a)`` is the step, a function of `x` alone.
    a : array or pytree
        What the step depends on.
    x0 : array or pytree
        Where the iteration starts; the result does not depend on it.
    distance : callable
        ``distance(x, previous)``, a number; the iteration ends when it is at most `tol`.
    tol : float

    Examples
    --------
    >>> from fad.compat.autograd import grad
    >>> def root(a):
    ...     return fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: np.abs(x - y), 1e-12)
    >>> round(float(grad(root)(4.0)), 12), round(float(grad(grad(root))(4.0)), 12)
    (0.25, -0.03125)
    """

    def iterate(residual, x):
        new = tree.add(x, residual(x))
        while distance(new, x) > tol:
            x, new = new, tree.add(new, residual(new))
        return new

    def newton(g, y):
        flat, unravel = tree.ravel(y)
        jacobian = fad.jacobian(lambda v: tree.ravel(g(unravel(v)))[0])(flat)
        return unravel(np.linalg.solve(jacobian, flat))

    return fad.custom_root(lambda x: tree.sub(f(a)(x), x), tree.map(_as_float, x0), iterate, newton)
