"""Derivatives of what is defined by an equation: a root of a function, the solution of a linear system.

The solver is a black box, run on constants. What it found is then made differentiable by the equation alone.

A root x of f(x) = 0 gets its derivative by Newton steps with the Jacobian J at the solution held fast,
``x <- x - J^-1 (f(x) - f(x*))``. Their values are zero steps, for x* solves the equation already. But on traced values
one step carries the implicit function theorem's first derivative, and each further step makes one more order right,
so there are as many steps as derivatives are being taken of each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fad import tree
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import most_derivatives, stop_gradient, stop_older
from fad.core.tracing.views import snapshot
from fad.errors import DerivativeError, TreeMismatchError
from fad.transforms.arguments.check import as_value, is_inexact, separate, zeros_like
from fad.transforms.custom_rules import Call
from fad.transforms.jvp import jvp
from fad.transforms.linearize import linear_transpose, linearize
from fad.transforms.outside.closures import Closure
from fad.transforms.vjp import vjp
from fad.typing import PyTree


def custom_root(
    f: Callable, initial_guess: PyTree, solve: Callable, tangent_solve: Callable, has_aux: bool = False
) -> PyTree:
    """Return a root of `f` as found by `solve`, differentiable by the implicit function theorem.

    The derivative is taken with respect to every traced value that `f` uses, from its closure or otherwise;
    the solver is not differentiated, and the root does not depend on the initial guess.

    Parameters
    ----------
    f : callable
        Function of one array or pytree, with a result of the same structure and shapes; zero at the root.
    initial_guess : array or pytree
        Where the solver starts.
    solve : callable
        ``solve(f, initial_guess)`` returns the root (or ``(root, aux)``). It sees values without derivatives, and may
        take derivatives of its own, as Newton's method does.
    tangent_solve : callable
        ``tangent_solve(g, y)`` solves ``g(x) = y`` for a linear `g`, in differentiable operations:
        ``lambda g, y: y / g(1.0)`` for one number, ``lambda g, y: np.linalg.solve(fad.jacobian(g)(y), y)`` for vectors.
    has_aux : bool
        If true, `solve` returns ``(root, aux)``, and so does this function.

    Returns
    -------
    array or pytree, or (root, aux)

    Raises
    ------
    TreeMismatchError
        if ``f(x)`` has not the structure of ``x``.

    Examples
    --------
    The square root of 2, by bisection:

    >>> import fad
    >>> def bisect(f, x):
    ...     low, high = 0.0, 2.0
    ...     for _ in range(60):
    ...         middle = (low + high) / 2
    ...         low, high = (middle, high) if f(middle) < 0 else (low, middle)
    ...     return high
    >>> def root(a):
    ...     return fad.custom_root(lambda x: x * x - a, 1.0, bisect, lambda g, y: y / g(1.0))
    >>> round(fad.grad(root)(2.0), 9), round(fad.grad(fad.grad(root))(2.0), 9)
    (np.float64(0.353553391), np.float64(-0.088388348))
    """
    now = Trace().birth
    closure = Closure(f).keep(*tree.leaves(initial_guess))
    plain = closure.at(stop_gradient(closure.held))
    # What is not found in the closure is stopped in the results; derivatives that the solver itself takes are kept.
    out = solve(lambda x: tree.map(lambda y: stop_older(y, now), plain(x)), stop_gradient(initial_guess))
    solution, aux = out if has_aux else (out, None)
    solution = implicit_root(closure.at(closure.held), solution, tangent_solve)
    closure.settle()
    return (solution, stop_gradient(aux)) if has_aux else solution


def implicit_root(f: Callable, solution: Any, tangent_solve: Callable) -> Any:
    """Make a known root of `f` differentiable with respect to the traced values that `f` uses."""
    solution = tree.map(lambda x: as_value(x, "the root that a solver found"), stop_gradient(solution))
    residual = f(solution)
    if tree.structure(residual) != tree.structure(solution):
        raise TreeMismatchError(
            f"a function whose root is taken must return the structure of its argument, {tree.structure(solution)}, "
            f"but it returned {tree.structure(residual)}"
        )
    order = max((most_derivatives(r) for r in tree.leaves(residual)), default=0)
    if order == 0:
        return solution
    offset = stop_gradient(residual)  # what the solver's tolerance left over; the derivative is taken on this level set
    _, slope = linearize(f, solution)
    x = solution
    for step in range(order):
        x = tree.sub(x, tangent_solve(slope, tree.sub(f(x) if step else residual, offset)))
    return x


# --- linear systems -------------------------------------------------------------------------------------------------


def custom_linear_solve(
    matvec: Callable, b: PyTree, solve: Callable, transpose_solve: Callable | None = None, symmetric: bool = False
) -> PyTree:
    """Return the solution x of ``matvec(x) = b`` as found by `solve`, differentiable with respect to `b` and `matvec`.

    Forward derivatives solve the same system with another right-hand side, reverse ones its transpose;
    the solver itself, conjugate gradients for instance, is never differentiated.

    Parameters
    ----------
    matvec : callable
        A linear function of one array or pytree like `b`. Traced values in its closure are found and differentiated.
    b : array or pytree
        The right-hand side.
    solve : callable
        ``solve(matvec, b)`` returns x, of the structure of `b`. It sees values without derivatives.
    transpose_solve : callable, optional
        ``transpose_solve(vecmat, b)``, the same for the transposed system; needed for reverse mode unless `symmetric`.
    symmetric : bool
        Whether the transpose of `matvec` is `matvec` itself.

    Returns
    -------
    array or pytree like `b`

    Raises
    ------
    DerivativeError
        in reverse mode, without `transpose_solve` and not `symmetric`;
    CustomRuleError
        if `matvec` or a solver uses a traced value where it is not found: from an iterator, or in a set.

    Examples
    --------
    >>> import numpy as np, fad
    >>> def solve(matvec, b):
    ...     return np.linalg.solve(fad.jacobian(matvec)(b), b)
    >>> def f(a):
    ...     return np.sum(fad.custom_linear_solve(lambda x: a * x, np.ones(2), solve, symmetric=True))
    >>> fad.grad(f)(np.array([1.0, 2.0]))
    array([-1.  , -0.25])
    """
    leaves, structure = tree.flatten(b)
    leaves = [as_value(x, "the right-hand side of a linear system") for x in leaves]
    leaves = [snapshot(x) if type(x) is Tracer else x for x in leaves]
    closures = [Closure(f) for f in (matvec, solve, solve if symmetric else transpose_solve)]
    held = [x for closure in closures for x in closure.held]
    for closure in closures:
        closure.keep(*leaves, *held)
    system = _System(closures, structure, len(leaves))
    n = len(closures[0].held)
    found = system.call(False)(*leaves, *held[:n], *stop_gradient(held[n:]))
    for closure in closures:
        closure.settle()
    return tree.unflatten(structure, separate(found, leaves))


class _System:
    """A family of linear systems.

    Operands are the leaves of the right-hand side, what the matrix is made of, and what the solvers hold; the last are
    constants to every derivative, for the equation says what the solution is.
    """

    def __init__(self, closures: list[Closure], structure: Any, n: int):
        self.matrix, *self.solvers = closures
        self.structure = structure
        self.n = n
        self.end = n + len(self.matrix.held)  # of the operands with a derivative

    def call(self, transposed: bool) -> Call:
        return Call(
            "custom_linear_solve",
            functools.partial(self.run, transposed),
            functools.partial(self.push, transposed),
            functools.partial(self.forward, transposed),
            functools.partial(self.pull, transposed),
        )

    def matvec(self, transposed: bool, held: Any) -> Callable:
        plain = self.matrix.at(held)
        if not transposed:
            return plain
        return lambda y: linear_transpose(plain, tree.map(zeros_like, y))(y)[0]

    def apply(self, transposed: bool, x: list, held: Any) -> list:
        return tree.leaves(self.matvec(transposed, held)(tree.unflatten(self.structure, x)))

    def run(self, transposed: bool, *operands: Any) -> list:
        b, held = operands[: self.n], operands[self.n : self.end]
        first = self.end + len(self.solvers[0].held)
        solver = self.solvers[transposed].at(operands[first:] if transposed else operands[self.end : first])
        if solver is None:
            raise DerivativeError(
                "the reverse-mode derivative of custom_linear_solve solves the transposed system, and it was given "
                "no transpose_solve. Pass transpose_solve, or symmetric=True if the matrix is, or use forward mode "
                "(fad.jvp)"
            )
        found, structure = tree.flatten(solver(self.matvec(transposed, held), tree.unflatten(self.structure, b)))
        if structure != self.structure:
            raise TreeMismatchError(f"a linear solver must return the structure {self.structure} of b, not {structure}")
        return [as_value(x, "the solution of a linear system") for x in found]

    def push(self, transposed: bool, operands: list, tangents: list) -> tuple[list, list]:
        held = tuple(operands[self.n : self.end])
        x = self.call(transposed)(*operands)
        change = list(tangents[: self.n])
        moving = [i for i, h in enumerate(held) if is_inexact(h)]
        if moving:
            _, moved = jvp(
                lambda *hs: self.apply(transposed, x, _replace(held, moving, hs)),
                tuple(held[i] for i in moving),
                tuple(tangents[self.n + i] for i in moving),
            )
            change = [t - m for t, m in zip(change, moved, strict=True)]
        return x, self.call(transposed)(*change, *operands[self.n :])

    def forward(self, transposed: bool, *operands: Any) -> tuple[list, Any]:
        x = self.call(transposed)(*operands)
        return x, (x, list(operands[self.n :]))

    def pull(self, transposed: bool, res: Any, cts: list) -> list:
        x, constants = res
        w = self.call(not transposed)(*cts, *constants)
        held = constants[: self.end - self.n]
        moving = [i for i, h in enumerate(held) if is_inexact(h)]
        out: list = [*w, *[None] * len(constants)]
        if moving:
            _, back = vjp(
                lambda *hs: self.apply(transposed, x, _replace(held, moving, hs)), *[held[i] for i in moving]
            )
            for i, c in zip(moving, back([-v for v in w]), strict=True):
                out[self.n + i] = c
        return out


def _replace(held: Any, places: list, values: Any) -> list:
    out = list(held)
    for i, v in zip(places, values, strict=True):
        out[i] = v
    return out
