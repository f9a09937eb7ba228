"""Roots of one equation in one unknown between two places where the function has opposite signs.

SciPy's functions differ in how they find it; the root, and so its derivative, is the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import scipy.optimize as so

from fad.ops.ufuncs.conversion import as_python_number
from fad.scipy.host import plain as value
from fad.scipy.optimize.common import as_float
from fad.scipy.optimize.equations import find_scalar

_PAGE = """Return the root of a scalar function between `a` and `b`, by {how}; differentiable in `args`.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, continuous, with opposite signs at `a` and `b`.
    a, b : float
        Ends of the bracket; they have no derivative.
    args : tuple
        Further arguments of `f`, with derivatives.
    {more}xtol, rtol : float
        Tolerances.
    maxiter : int
        Greatest number of steps.
    full_output : bool
        Whether to return what SciPy reports, too.
    disp : bool
        Whether to raise if the iteration does not converge.

    Returns
    -------
    number, or (number, RootResults) if `full_output`
        The root, differentiated by the implicit function theorem.

    Raises
    ------
    ValueError
        if the function has the same sign at both ends.
    RuntimeError
        if it did not converge.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.optimize import {name}
    >>> fad.grad(lambda a: {name}(lambda x, a: np.cos(x) - a * x, 0.0, 2.0, (a,)))(1.0).round(6)
    np.float64(-0.441611)
    """
_ORDER = "k : int\n        Order of the method.\n    "


def _find(name: str, f: Callable, a: Any, b: Any, args: Any, full_output: bool, options: dict) -> Any:
    reports = []

    def solver(g: Callable, a: Any, b: Any) -> tuple[Any, dict]:
        root, report = getattr(so, name)(lambda x: value(g(x)), float(a), float(b), full_output=True, **options)
        reports.append(report)
        return root, {"success": report.converged, "nfev": report.function_calls, "nit": report.iterations}

    root = as_python_number(find_scalar(f, args, solver, as_float(a), as_float(b))[0])
    if not full_output:
        return root
    reports[-1].root = root
    return root, reports[-1]


def _make(name: str, how: str) -> Callable:
    """Return the function of a name of SciPy's, with SciPy's signature."""
    original = getattr(so, name)
    signature = inspect.signature(original)

    @functools.wraps(original, assigned=("__name__", "__qualname__"), updated=())
    def find(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        options = dict(given.arguments)
        f, a, b, more = (options.pop(key) for key in ("f", "a", "b", "args"))
        return _find(name, f, a, b, more, options.pop("full_output"), options)

    del find.__wrapped__
    find.__signature__ = signature  # type: ignore[attr-defined]
    find.__doc__ = _PAGE.format(name=name, how=how, more=_ORDER if name == "toms748" else "")
    return find


bisect = _make("bisect", "halving")
brenth = _make("brenth", "Brent's method with hyperbolic extrapolation")
brentq = _make("brentq", "Brent's method")
ridder = _make("ridder", "Ridders' method")
toms748 = _make("toms748", "the method of Alefeld, Potra and Shi")
