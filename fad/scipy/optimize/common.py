"""What all solvers share: flat unknowns, a solver run on plain numbers, and the derivative of what it found."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize as so

from fad import tree
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import most_derivatives, stop_gradient
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.host import HostCall
from fad.scipy.special.build import number
from fad.transforms.implicit import implicit_root
from fad.transforms.jacobian import jacobian
from fad.transforms.outside.closures import Closure, with_own_scratch

OptimizeResult = so.OptimizeResult


def flatten_start(x0: Any, keep_number: bool = False) -> tuple[Any, Callable]:
    """Return the flat starting point, and the map from flat unknowns back to the structure of `x0`.

    A list of numbers is the array that SciPy makes of it, and a number a vector of one, but with `keep_number`.
    """
    if not keep_number and (isinstance(x0, numbers.Number) or getattr(x0, "ndim", 1) == 0):
        x0 = np.reshape(as_float(stop_gradient(x0)), 1)
    if type(x0) in (list, tuple) and all(type(v) not in (list, tuple, dict) and np.ndim(v) == 0 for v in x0):
        x0 = as_array(list(x0))
    return tree.ravel(tree.map(as_float, stop_gradient(x0)))


class Problem:
    """A function of flat unknowns: with traced values as it came, or with plain ones in the place of what it holds."""

    def __init__(self, function: Callable, args: tuple, start: Any, unravel: Callable = lambda x: x):
        self.unravel = unravel
        self.closure = Closure(lambda x: function(x, *args)).keep(*tree.leaves(start))
        self.held = self.closure.held

    def at(self, held: Any = None) -> Callable:
        """Return the function of the unknowns alone; `held` are values for its traced parts."""
        function = self.closure.at(self.held if held is None else held)
        if self.closure.kept is None:
            function = with_own_scratch(function)
        return lambda x: function(self.unravel(x))

    def vector(self, held: Any = None) -> Callable:
        f = self.at(held)
        return lambda x: ravel(f(x))


def constant_bounds(bounds: Any) -> None:
    """Raise if bounds are traced: a solver is given them as numbers."""
    ends = (bounds.lb, bounds.ub) if isinstance(bounds, so.Bounds) else bounds
    if any(type(x) is Tracer for x in tree.leaves(ends)):
        raise DerivativeError(
            "the bounds given to a minimiser with constraints are traced, and fad has no derivative with respect to "
            "them, nor can they vary under vmap and jit. Write them as constraints of the kind "
            "{'type': 'ineq', 'fun': lambda x: x - low}"
        )


def as_arguments(args: Any) -> tuple:
    """Return further arguments as a tuple: one that is none stands for itself."""
    return args if isinstance(args, tuple) else (args,)


def unpack_arguments(args: Any) -> tuple:
    """Return further arguments as a tuple, as those of SciPy's functions read them that call ``f(x, *args)``."""
    several = isinstance(args, list) or getattr(args, "shape", ()) != ()
    return tuple(args) if several else as_arguments(args)


def take_first(fun: Callable) -> Callable:
    """Return a function that gives the first of the results of one that returns its derivative, too."""
    return lambda *args: fun(*args)[0]


def as_float(x: Any) -> Any:
    """Return an array of floating-point numbers; lists may have traced ones."""
    x = x if hasattr(x, "dtype") else as_array(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def ravel(y: Any) -> Any:
    return tree.ravel(y)[0] if not hasattr(y, "ndim") or y.ndim != 1 else y


def check_convergence(success: Any, solution: Any, order: int, message: str, what: str) -> None:
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


def derivatives_of(values: Any) -> int:
    """Return how many derivatives are being taken of values."""
    return max((most_derivatives(x) for x in tree.leaves(values)), default=0)


def solve_dense(slope: Callable, y: Any) -> Any:
    """Solve ``slope(x) = y`` for a vector, by the matrix of the slope, which may be held constant."""
    matrix = stop_gradient(jacobian(slope)(stop_gradient(y)))
    try:
        return np.linalg.solve(matrix, y)
    except np.linalg.LinAlgError as error:
        raise DerivativeError(
            "the solution has no derivative: the Jacobian of its equation is singular there (a double root, or a flat "
            "valley of the objective). Remove the redundant unknown, or regularise the problem"
        ) from error


# What a solver counts. Under jit and vmap these are results of the call; its other entries are left out there.
_COUNTS = ("nfev", "njev", "nhev", "nit", "status")


class _Counts(dict):
    """What is left of a report under jit and vmap; the message is for errors alone, and no result."""

    message = ""


def message_of(report: Any) -> str:
    """Return what a solver said at last."""
    return str(report.get("message", getattr(report, "message", ""))).strip()


class _Plain:
    """Runs a solver on plain arrays, one batch element after the other under vmap, and keeps what it reported."""

    def __init__(self, solver: Callable, structure: Any):
        self.solver = solver
        self.structure = structure
        self.report: Any = None
        self.call = HostCall("scipy.optimize", self.run, batch=self.batch)

    def run(self, *leaves: Any) -> list:
        x, self.report = self.solver(*tree.unflatten(self.structure, leaves))
        success = bool(self.report.get("success", True))
        return [np.asarray(x), np.asarray(success), *[np.asarray(int(self.report.get(k, -1))) for k in _COUNTS]]

    def batch(self, size: int, batched: list, values: list) -> tuple[list, list]:
        found = [self.call(*[v[i] if b else v for v, b in zip(values, batched, strict=True)]) for i in range(size)]
        columns = [np.stack(column) for column in zip(*found, strict=True)]
        return columns, [True] * len(columns)


def run(solver: Callable, *operands: Any) -> tuple[Any, Any, Any]:
    """Run ``solver(*operands) -> (x, report)`` on the values of the operands; return x, success and the report."""
    leaves, structure = tree.flatten(stop_gradient(operands))
    solving = _Plain(solver, structure)
    x, success, *counts = solving.call(*[np.asarray(v) if not hasattr(v, "dtype") else v for v in leaves])
    report = solving.report
    if type(success) is Tracer:  # what one batch element, or the first call of a compiled function, reported is no more
        said = message_of(report)
        report = _Counts({k: v for k, v in zip(_COUNTS, counts, strict=True) if k in report})
        report.message = said
    return x, success, report


def finish(x, success, report, equation, problem, what, count=None):
    """Make a result differentiable by its equation, and put it in the caller's structure.

    With `count` the unknowns of the problem are so many of the equation's, the first ones.
    """
    order = derivatives_of(equation(x))
    check_convergence(success, x, order, message_of(report), what)
    x = implicit_root(equation, x, solve_dense)[:count]
    result = OptimizeResult(report)
    result.x = problem.unravel(x)
    result.fun = problem.at()(x)
    problem.closure.settle()
    result.success = success if np.ndim(success) else bool(success) if type(success) is np.ndarray else success
    return result


def select_output(name: str, result: Any, full_output: Any, retall: Any, *entries: str) -> Any:
    """Return the minimum as SciPy's older names do: with full output its value and some entries of the result, too."""
    if retall:
        raise NotImplementedError(f"{name} takes retall=0 here: a callback of minimize sees each iterate")
    if not full_output:
        return result.x
    missing = [key for key in entries if key not in result]
    if missing:
        raise NotImplementedError(
            f"full output of {name} has no {missing[0]} under fad.jit and fad.vmap: take x and fun of minimize there"
        )
    return (result.x, result.fun, *[result[key] for key in entries])
