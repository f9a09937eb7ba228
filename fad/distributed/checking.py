"""``check``: whether a function gives on all ranks together what it gives on one, with its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.distributed.communicator import Alone, Communicator, current
from fad.distributed.ranks import same_arguments, spmd
from fad.distributed.worlds import world
from fad.errors import GradientCheckError, ShapeMismatchError
from fad.transforms.grad import value_and_grad


def check(
    fun: Callable, *args: Any, comm: Communicator | None = None, replicated: Any = 0, rtol: float = 1e-6,
    atol: float = 1e-9,
) -> None:  # fmt: skip
    """Compare a function's value and gradients on one rank, with all data, with those on all ranks, each with its part.

    Parameters
    ----------
    fun : callable
        Returns a number that is the same on all ranks; its collectives name no communicator (``all_reduce(x)``).
    *args : trees of arrays
        Whole, and the same on all ranks. Those that are not `replicated` are cut along their first axis.
    replicated : int, tuple of int, or True, keyword only
        The arguments that are the same on all ranks, as of `spmd`.
    rtol, atol : float, keyword only

    Raises
    ------
    GradientCheckError
        where they differ: on every rank, and with the argument that it is about.

    Examples
    --------
    >>> from fad.distributed import all_reduce
    >>> check(lambda w, x: all_reduce(np.sum(w * x)), np.ones(3), np.ones((4, 3)))
    """
    comm = comm or world()
    same = same_arguments(replicated, len(args))
    every = tuple(i for i in range(len(args)) if _is_inexact(args[i]))
    token = current.set(Alone())
    try:
        value, grads = value_and_grad(spmd(fun, current.get(), replicated=tuple(same)), every)(*args)
    finally:
        current.reset(token)
    token = current.set(comm)
    try:
        parts = [a if i in same else _part(a, comm) for i, a in enumerate(args)]
        found, mine = value_and_grad(spmd(fun, comm, replicated=tuple(same)), every)(*parts)
    finally:
        current.reset(token)
    wrong = _differences("the value", value, found, rtol, atol)
    for i, g, other in zip(every, grads, mine, strict=True):
        g = g if i in same else _part(g, comm)
        wrong += _differences(f"the gradient by argument {i}", g, other, rtol, atol)
    received = comm.exchange(wrong)
    for rank, lines in enumerate(received):
        if lines:
            raise GradientCheckError(
                f"on rank {rank} of {comm.size} the function gives something else than on one rank with all data: "
                + "; ".join(lines)
                + ". A sum over the data needs all_reduce(x), a mean all_reduce(x, 'mean')"
            )


def _is_inexact(x: Any) -> bool:
    return all(np.asarray(leaf).dtype.kind in "fc" for leaf in tree.leaves(x))


def _part(x: Any, comm: Communicator) -> Any:
    def one(x: Any) -> Any:
        if np.ndim(x) == 0 or len(x) % comm.size:
            raise ShapeMismatchError(f"an array of shape {np.shape(x)} cannot be cut in {comm.size} equal parts")
        each = len(x) // comm.size
        return x[int(comm.rank) * each : (int(comm.rank) + 1) * each]

    return tree.map(one, x)


def _differences(what: str, expected: Any, found: Any, rtol: float, atol: float) -> list[str]:
    wrong = []
    for a, b in zip(tree.leaves(expected), tree.leaves(found), strict=True):
        if not np.allclose(a, b, rtol=rtol, atol=atol):
            k = int(np.argmax(np.abs(np.asarray(a) - np.asarray(b))))
            x, y = np.reshape(a, -1)[k], np.reshape(b, -1)[k]
            wrong.append(f"{what} is {y:.10g}, and {x:.10g} on one rank" + (f" (element {k})" if np.ndim(a) else ""))
    return wrong
