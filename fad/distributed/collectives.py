"""The collectives as functions of arrays and pytrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fad.core.runs.journal import JOURNAL
from fad.core.tracing.views import RUNS
from fad.distributed import primitives as p
from fad.distributed.collective_calls import (
    add_methods,
    as_numbers,
    call,
    check_axis,
    check_integer,
    check_op,
    check_pairs,
    check_rank,
    check_tag,
    describe_call,
    describe_gather,
    map_leaves,
    mean_of_sum,
    put_on_axis,
    take_from_axis,
)
from fad.distributed.communicator import Communicator
from fad.distributed.ranks import active
from fad.distributed.worlds import world

_SUM = p.REDUCTIONS["sum"]


def all_reduce(x: Any, op: str = "sum", *, comm: Communicator | None = None) -> Any:
    """Return the sum, mean, largest, smallest or product of what all ranks gave, element by element, on every rank.

    Parameters
    ----------
    x : array, number, or tree of them
        Of the same shapes and dtypes on all ranks.
    op : "sum", "mean", "max", "min" or "prod"
    comm : Communicator, keyword only

    Examples
    --------
    >>> all_reduce(np.ones(2))
    array([1., 1.])
    """
    comm = comm or world()
    if op == "sum" and type(x) is np.ndarray and x.dtype.kind in "fciu":  # the fast path
        if not RUNS.depth and JOURNAL.done is None:  # no transform is running: what the primitive comes to
            return comm.run("all_reduce", x, op="sum")
        return call(_SUM, x, comm)
    prim = p.REDUCTIONS["sum" if check_op(op) == "mean" else op]
    if op == "mean":
        says = describe_call(mean=True)
        return map_leaves(x, lambda x: mean_of_sum(call(prim, as_numbers(x, op), comm, **says), x, comm))
    return map_leaves(x, lambda x: call(prim, as_numbers(x, op), comm))


def varying(x: Any, *, comm: Communicator | None = None) -> Any:
    """Return a value that is the same on all ranks as each rank's own: before code that treats the ranks differently.

    The cotangents of all ranks are added up for it. Inside of `spmd` it is put wherever the types need it; but that
    ``y if comm.rank == 0 else 0 * y`` differs from rank to rank, only the program knows.

    >>> varying(np.ones(2))
    array([1., 1.])
    """
    comm = comm or world()
    trace = active(comm)
    return x if trace is None else map_leaves(x, lambda x: trace.own(x))


def all_gather(
    x: Any, *, axis: int = 0, tiled: bool = False, varying: bool = False, comm: Communicator | None = None
) -> Any:
    """Return the arrays of all ranks, stacked along a new axis or joined along one that is there, on every rank.

    Parameters
    ----------
    x : array or tree of arrays
    axis : int, keyword only
        The axis of the result along which the ranks lie.
    tiled : bool, keyword only
        Whether the arrays are joined along the axis, as by ``np.concatenate``; else they are stacked.
    varying : bool, keyword only
        Let the result count as each rank's own, though it is the same: its cotangents are added up by one
        reduce_scatter, where each rank computes something else with it (parameters that are kept in parts).

    Examples
    --------
    >>> all_gather(np.ones(2)).shape
    (1, 2)
    """
    comm = comm or world()
    prim = p.gather_varying if varying else p.all_gather

    def one(x: Any) -> Any:
        return put_on_axis(call(prim, x, comm, **describe_gather(x, axis, tiled)), axis, tiled)

    return map_leaves(x, one)


def reduce_scatter(
    x: Any, op: str = "sum", *, axis: int = 0, tiled: bool = False, comm: Communicator | None = None
) -> Any:
    """Return this rank's part of the sum or mean of what all ranks gave: entry `rank` of an axis.

    Parameters
    ----------
    x : array or tree of arrays
        With one entry per rank along `axis`; with `tiled` its length is a multiple of the number of ranks, and the part
        keeps the axis.
    op : "sum" or "mean"

    Examples
    --------
    >>> reduce_scatter(np.ones((1, 3)))
    array([1., 1., 1.])
    """
    comm = comm or world()
    if op not in ("sum", "mean"):
        raise ValueError(f"op of reduce_scatter must be 'sum' or 'mean', not {op!r}: take a part of an all_reduce")

    def one(x: Any) -> Any:
        parts = take_from_axis(x, axis, tiled, comm, "reduce_scatter")
        says = describe_call(axis=check_axis(axis, np.ndim(x)), tiled=tiled, mean=op == "mean")
        y = call(p.reduce_scatter, as_numbers(parts, op), comm, **says)
        return mean_of_sum(y, x, comm) if op == "mean" else y

    return map_leaves(x, one)


def all_to_all(x: Any, *, split_axis: int = 0, concat_axis: int = 0, comm: Communicator | None = None) -> Any:
    """Send part k of an axis to rank k, and return what the others sent here, joined along another axis.

    Parameters
    ----------
    x : array or tree of arrays
        The length of `split_axis` is a multiple of the number of ranks.

    Examples
    --------
    >>> all_to_all(np.arange(3.0))
    array([0., 1., 2.])
    """
    comm = comm or world()

    def one(x: Any) -> Any:
        parts = take_from_axis(x, split_axis, True, comm, "all_to_all")
        ndim = parts.ndim - 1
        says = describe_call(split_axis=check_axis(split_axis, ndim), concat_axis=check_axis(concat_axis, ndim))
        y = call(p.all_to_all, parts, comm, **says)
        return put_on_axis(y, concat_axis, True)

    return map_leaves(x, one)


def broadcast(x: Any, root: int = 0, *, comm: Communicator | None = None) -> Any:
    """Return what rank `root` gave, on every rank; what the others give says the shape and dtype.

    >>> broadcast(np.ones(2))
    array([1., 1.])
    """
    comm = comm or world()
    return map_leaves(x, lambda x: call(p.broadcast, x, comm, root=check_rank(root, comm, "root")))


def reduce(x: Any, root: int = 0, op: str = "sum", *, comm: Communicator | None = None) -> Any:
    """Return :func:`all_reduce` on rank `root`, and zeros on the others.

    >>> reduce(np.ones(2))
    array([1., 1.])
    """
    comm = comm or world()
    root = check_rank(root, comm, "root")

    def one(x: Any) -> Any:
        if check_op(op) in ("sum", "mean"):
            y = call(p.reduce, as_numbers(x, op), comm, root=root, **describe_call(mean=op == "mean"))
            return mean_of_sum(y, x, comm) if op == "mean" else y
        y = varying(call(p.REDUCTIONS[op], as_numbers(x, op), comm, **describe_call(root=root)), comm=comm)
        return y if comm.rank == root else y * 0

    return map_leaves(x, one)


def gather(x: Any, root: int = 0, *, comm: Communicator | None = None) -> Any:
    """Return the arrays of all ranks, stacked, on rank `root`, and zeros on the others.

    >>> gather(np.ones(2)).shape
    (1, 2)
    """
    comm = comm or world()
    return map_leaves(x, lambda x: call(p.gather, x, comm, root=check_rank(root, comm, "root")))


def scatter(x: Any, root: int = 0, *, comm: Communicator | None = None) -> Any:
    """Return entry `rank` of the array that rank `root` gave; what the others give says the shape and dtype.

    >>> scatter(np.ones((1, 2)))
    array([1., 1.])
    """
    comm = comm or world()
    root = check_rank(root, comm, "root")
    return map_leaves(x, lambda x: call(p.scatter, take_from_axis(x, 0, False, comm, "scatter"), comm, root=root))


def permute(x: Any, pairs: Sequence[tuple[int, int]], *, comm: Communicator | None = None) -> Any:
    """Send arrays from rank to rank, all at once, and return what came here; zeros if nothing did.

    Parameters
    ----------
    x : array or tree of arrays
    pairs : sequence of (from, to)
        The same on every rank; no rank stands twice as a source or as a target.

    Examples
    --------
    >>> permute(np.ones(2), [(0, 0)])
    array([1., 1.])
    """
    comm = comm or world()
    return map_leaves(x, lambda x: call(p.permute, x, comm, pairs=check_pairs(pairs, comm)))


def shift(x: Any, by: int = 1, *, wrap: bool = True, comm: Communicator | None = None) -> Any:
    """Send an array to the rank `by` further on, and return what came from the rank `by` before.

    Without `wrap` the ranks are a line, not a ring, and what comes from beyond its end is zeros.

    >>> shift(np.ones(2), wrap=False)
    array([0., 0.])
    """
    comm = comm or world()
    n, by = comm.size, check_integer(by, "by")
    return permute(x, [(r, (r + by) % n) for r in range(n) if wrap or 0 <= r + by < n], comm=comm)


def send(x: Any, dest: int, tag: int = 0, *, comm: Communicator | None = None) -> None:
    """Send an array to one rank, which must receive it.

    Under derivatives both ranks must be inside of `spmd`, or `fad.distributed.grad` and its like.
    """
    comm = comm or world()
    dest, tag = check_rank(dest, comm, "dest"), check_tag(tag)
    map_leaves(x, lambda x: call(p.send, x, comm, dest=dest, tag=tag))


def recv(like: Any, source: int, tag: int = 0, *, comm: Communicator | None = None) -> Any:
    """Return the array that a rank sent; `like` says its shape and dtype."""
    comm = comm or world()
    source, tag = check_rank(source, comm, "source"), check_tag(tag)
    return map_leaves(like, lambda x: call(p.recv, x, comm, source=source, tag=tag))


def barrier(*, comm: Communicator | None = None) -> None:
    """Wait until every rank is here.

    >>> barrier()
    """
    call(p.barrier, np.float64(0.0), comm or world())


add_methods(
    varying, all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, permute, shift,
    send, recv, barrier,
)  # fmt: skip
