"""``cg``: the solution of a linear system whose unknowns are divided over ranks, with its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracing.tracer import any_of
from fad.distributed.collective_calls import call
from fad.distributed.collectives import all_reduce
from fad.distributed.communicator import Communicator
from fad.distributed.primitives import joint
from fad.distributed.ranks import run_untyped, spmd
from fad.distributed.worlds import world
from fad.errors import DerivativeError, UnsupportedInputError
from fad.transforms.custom import CustomFunction
from fad.transforms.jvp import jvp
from fad.transforms.vjp import vjp


def cg(
    matvec: Callable, b: Any, *params: Any, comm: Communicator | None = None, tol: float = 1e-10, maxiter: int = 1000
) -> Any:
    """Solve ``matvec(x, *params) == b`` by conjugate gradients, for a symmetric positive definite operator.

    Its derivatives are those of the solution, each by one more solve, however many iterations the first one took.

    Parameters
    ----------
    matvec : callable
        ``(x, *params) -> y`` on this rank's part; it may call collectives, as `halo` does. What is differentiated
        must be among `params`.
    b : array
        This rank's part of the right-hand side.
    tol : float, keyword only
        The residual's norm at which to stop, as a fraction of that of b.

    Returns
    -------
    array
        This rank's part of the solution.

    Raises
    ------
    DerivativeError
        if it has not converged after `maxiter` iterations.

    Examples
    --------
    >>> cg(lambda x, d: d * x, np.array([2.0, 6.0]), np.array([1.0, 3.0]))
    array([2., 2.])
    """
    comm = comm or world()
    b = b if hasattr(b, "dtype") else np.asarray(b)
    if b.dtype.kind == "c":
        raise UnsupportedInputError("cg takes real numbers: write the real and imaginary parts as one real system")

    def run(b: Any, *params: Any) -> Any:
        with run_untyped():
            return _iterate(matvec, b, params, comm, tol, maxiter)

    # Within the rules all values are each rank's own: what was the same on all ranks has become that before.
    def own(f: Callable) -> Callable:
        return spmd(f, comm, replicated=(), out="varying")

    solve = CustomFunction(run)
    again = own(lambda b, *params: cg(matvec, b, *params, comm=comm, tol=tol, maxiter=maxiter))

    def forward(b: Any, *params: Any) -> tuple:
        x = again(b, *params)
        return x, (x, params)

    def backward(kept: tuple, ct: Any) -> tuple:
        x, params = kept
        u = again(ct, *params)
        if not params:
            return (u,)
        _, pullback = vjp(lambda *params: own(matvec)(x, *params), *params)
        return (u, *pullback(-u))

    def push(primals: tuple, tangents: tuple) -> tuple:
        x = again(*primals)
        b = tangents[0]
        if tangents[1:]:
            b = b - jvp(lambda *params: own(matvec)(x, *params), primals[1:], tangents[1:])[1]
        return x, again(b, *primals[1:])

    solve.defvjp(forward, backward)
    solve.defjvp(push)
    return call(joint, solve(call(joint, b, comm), *params), comm)


def _iterate(matvec: Callable, b: Any, params: tuple, comm: Communicator, tol: float, maxiter: int) -> Any:
    def dot(u: Any, v: Any) -> Any:
        return all_reduce(np.sum(u * v), comm=comm)

    x = np.zeros_like(b)
    r = p = b
    rr = dot(r, r)
    limit = tol * tol * rr
    for _ in range(maxiter):
        going = rr > limit  # under vmap some systems converge before others, and stay as they are
        if not any_of(going):
            return x
        q = matvec(p, *params)
        alpha = np.where(going, rr, 0.0) / np.where(going, dot(p, q), 1.0)
        x = x + alpha * p
        r = r - alpha * q
        before, rr = np.where(going, rr, 1.0), np.where(going, dot(r, r), rr)
        p = r + np.where(going, rr / before, 0.0) * p
    raise DerivativeError(
        f"conjugate gradients did not converge in {maxiter} iterations: the operator may be no symmetric positive "
        "definite "
        "one, or tol is too small"
    )
