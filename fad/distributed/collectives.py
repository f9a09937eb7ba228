"""The collectives as functions of arrays and pytrees, and their non-blocking forms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.core.journal import JOURNAL
from fad.core.memory import RUNS
from fad.core.tracer import Tracer, up_to_date
from fad.core.values import traces_of
from fad.distributed import primitives as p
from fad.distributed.communicator import Communicator
from fad.distributed.nonblocking import SPLIT, Ticket
from fad.distributed.ranks import RankTrace, active, batches_of_tangents, tie
from fad.distributed.ties import join_batches
from fad.distributed.worlds import world
from fad.errors import ShapeMismatchError, UnsupportedInputError
from fad.staging.record import recorder
from fad.transforms.check import as_value
from fad.transforms.vmap import batching

_SUM = p.REDUCTIONS["sum"]


def call(prim: Any, x: Any, comm: Communicator, **params: Any) -> Any:
    """Run a collective on one array, on behalf of whatever traces it on any rank."""
    if type(x) is np.ndarray:
        if not RUNS.depth or (recorder.get() is None and active(comm) is None and not batching.get()):
            return prim.forward(x, comm=comm, **params)
    else:
        what = f"the operand of {prim.name}"
        given, x = x, as_value(x, what)
        if type(x) is int:  # NumPy keeps what it has no integers for as an object
            raise OverflowError(f"{what} is too large for NumPy's integers: {given}")
        x = up_to_date(x) if type(x) is Tracer else x
    x = join_batches(x, batches_of_tangents())
    trace = active(comm)
    if trace is not None:
        if not _knows(trace, x):
            x = trace.take(x)
    elif recorder.get() is not None:
        x = tie(x, [])
    return prim(x, comm=comm, **params)


def _knows(trace: RankTrace, x: Any) -> bool:
    return any(own is trace for own in traces_of(x))


def _map_leaves(x: Any, one: Callable) -> Any:
    return one(x) if type(x) in (np.ndarray, Tracer) else tree.map(one, x)


def _op(op: str) -> str:
    if op not in (*p.REDUCTIONS, "mean"):
        raise ValueError(f"op must be 'sum', 'mean', 'max', 'min' or 'prod', not {op!r}")
    return op


def _count(x: Any, op: str) -> Any:
    """Return what is reduced: for a sum or product bools as numbers, for a mean integers as floats, as NumPy does."""
    kind = "b" if type(x) is bool else getattr(getattr(x, "dtype", None), "kind", "f")
    if kind not in "biufc":
        raise UnsupportedInputError(
            f"a reduction over ranks takes numbers, and was given {x.dtype}: all_gather(x) brings the arrays together"
        )
    if op == "mean" and kind in "biu":
        return np.float64(x) if type(x) is bool else x.astype(np.float64)
    if op == "mean" and _is_half(x):  # the sum may be too large for them
        return x.astype(np.float32)
    if op in ("sum", "prod") and kind == "b":
        return np.int64(x) if type(x) is bool else x.astype(np.int64)
    return x


def _axis(axis: int, ndim: int) -> int:
    axis = _integer(axis, "axis")
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _is_half(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.float16


def _mean(y: Any, x: Any, comm: Communicator) -> Any:
    """Return the mean of what the ranks gave of the sum of what `_count` made of it."""
    return (y / comm.size).astype(np.float16) if _is_half(x) else y / comm.size


def _says(**given: Any) -> dict:
    """Return the parameters of a function that no engine needs, for the comparison of what the ranks call."""
    says = tuple([(k, v) for k, v in given.items() if v])
    return {"says": says} if says else {}


def _says_gathered(x: Any, axis: int, tiled: bool) -> dict:
    return _says(axis=_axis(axis, max(np.ndim(x) + (not tiled), 1)), tiled=tiled)


def _integer(n: Any, what: str) -> int:
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"{what} must be an integer, not {n!r}") from None


def _tag(tag: int) -> int:
    tag = _integer(tag, "tag")
    if tag < 0:
        raise ValueError(f"tag must not be negative, and is {tag}")
    return tag


def _rank(n: int, comm: Communicator, what: str) -> int:
    n = _integer(n, what)
    if not -comm.size <= n < comm.size:
        raise ValueError(f"{what} must be a rank below {comm.size}, not {n}")
    return n % comm.size


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
    prim = p.REDUCTIONS["sum" if _op(op) == "mean" else op]
    if op == "mean":
        return _map_leaves(x, lambda x: _mean(call(prim, _count(x, op), comm, **_says(mean=op == "mean")), x, comm))
    return _map_leaves(x, lambda x: call(prim, _count(x, op), comm))


def varying(x: Any, *, comm: Communicator | None = None) -> Any:
    """Return a value that is the same on all ranks as each rank's own: before code that treats the ranks differently.

    The cotangents of all ranks are added up for it. Inside of `spmd` it is put wherever the types need it; but that
    ``y if comm.rank == 0 else 0 * y`` differs from rank to rank, only the program knows.

    >>> varying(np.ones(2))
    array([1., 1.])
    """
    comm = comm or world()
    trace = active(comm)
    return x if trace is None else _map_leaves(x, lambda x: trace.own(x))


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
        return _to_axis(call(prim, x, comm, **_says_gathered(x, axis, tiled)), axis, tiled)

    return _map_leaves(x, one)


def _to_axis(y: Any, axis: int, tiled: bool) -> Any:
    """Move the ranks from the front to an axis of the result, or join them along it."""
    if not tiled:
        axis = _axis(axis, y.ndim)
        return y if axis == 0 else np.moveaxis(y, 0, axis)
    axis = _axis(axis, max(y.ndim - 1, 1))
    if y.ndim == 1:
        return y
    shape = y.shape[1:]
    y = y if axis == 0 else np.moveaxis(y, 0, axis)
    return y.reshape((*shape[:axis], y.shape[axis] * shape[axis], *shape[axis + 1 :]))


def _from_axis(x: Any, axis: int, tiled: bool, comm: Communicator, what: str) -> Any:
    """Move the ranks to the front, from an axis of their number or of a multiple of it."""
    x = x if hasattr(x, "shape") else np.asarray(x)
    if not x.ndim:
        raise ShapeMismatchError(f"{what} needs an array with an axis for the ranks, and was given a number")
    axis = _axis(axis, x.ndim)
    n = x.shape[axis]
    if n != comm.size if not tiled else n % comm.size:
        raise ShapeMismatchError(
            f"axis {axis} of the operand of {what} has length {n}, and must have "
            + (f"a multiple of the {comm.size} ranks" if tiled else f"one entry for each of the {comm.size} ranks")
        )
    if tiled:
        x = x.reshape((*x.shape[:axis], comm.size, n // comm.size, *x.shape[axis + 1 :]))
    return x if axis == 0 else np.moveaxis(x, axis, 0)


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
        parts = _from_axis(x, axis, tiled, comm, "reduce_scatter")
        says = _says(axis=_axis(axis, np.ndim(x)), tiled=tiled, mean=op == "mean")
        y = call(p.reduce_scatter, _count(parts, op), comm, **says)
        return _mean(y, x, comm) if op == "mean" else y

    return _map_leaves(x, one)


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
        parts = _from_axis(x, split_axis, True, comm, "all_to_all")
        ndim = parts.ndim - 1
        says = _says(split_axis=_axis(split_axis, ndim), concat_axis=_axis(concat_axis, ndim))
        y = call(p.all_to_all, parts, comm, **says)
        return _to_axis(y, concat_axis, True)

    return _map_leaves(x, one)


def broadcast(x: Any, root: int = 0, *, comm: Communicator | None = None) -> Any:
    """Return what rank `root` gave, on every rank; what the others give says the shape and dtype.

    >>> broadcast(np.ones(2))
    array([1., 1.])
    """
    comm = comm or world()
    return _map_leaves(x, lambda x: call(p.broadcast, x, comm, root=_rank(root, comm, "root")))


def reduce(x: Any, root: int = 0, op: str = "sum", *, comm: Communicator | None = None) -> Any:
    """Return :func:`all_reduce` on rank `root`, and zeros on the others.

    >>> reduce(np.ones(2))
    array([1., 1.])
    """
    comm = comm or world()
    root = _rank(root, comm, "root")

    def one(x: Any) -> Any:
        if _op(op) in ("sum", "mean"):
            y = call(p.reduce, _count(x, op), comm, root=root, **_says(mean=op == "mean"))
            return _mean(y, x, comm) if op == "mean" else y
        y = varying(call(p.REDUCTIONS[op], _count(x, op), comm, **_says(root=root)), comm=comm)
        return y if comm.rank == root else y * 0

    return _map_leaves(x, one)


def gather(x: Any, root: int = 0, *, comm: Communicator | None = None) -> Any:
    """Return the arrays of all ranks, stacked, on rank `root`, and zeros on the others.

    >>> gather(np.ones(2)).shape
    (1, 2)
    """
    comm = comm or world()
    return _map_leaves(x, lambda x: call(p.gather, x, comm, root=_rank(root, comm, "root")))


def scatter(x: Any, root: int = 0, *, comm: Communicator | None = None) -> Any:
    """Return entry `rank` of the array that rank `root` gave; what the others give says the shape and dtype.

    >>> scatter(np.ones((1, 2)))
    array([1., 1.])
    """
    comm = comm or world()
    root = _rank(root, comm, "root")
    return _map_leaves(x, lambda x: call(p.scatter, _from_axis(x, 0, False, comm, "scatter"), comm, root=root))


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
    return _map_leaves(x, lambda x: call(p.permute, x, comm, pairs=_pairs(pairs, comm)))


def _pairs(pairs: Any, comm: Communicator) -> tuple:
    found = tuple((_rank(a, comm, "a source"), _rank(b, comm, "a target")) for a, b in pairs)
    for ranks in zip(*found, strict=True):
        if len(set(ranks)) < len(ranks):
            raise ValueError(f"a rank stands twice as a source or as a target in the pairs {found}")
    return found


def shift(x: Any, by: int = 1, *, wrap: bool = True, comm: Communicator | None = None) -> Any:
    """Send an array to the rank `by` further on, and return what came from the rank `by` before.

    Without `wrap` the ranks are a line, not a ring, and what comes from beyond its end is zeros.

    >>> shift(np.ones(2), wrap=False)
    array([0., 0.])
    """
    comm = comm or world()
    n, by = comm.size, _integer(by, "by")
    return permute(x, [(r, (r + by) % n) for r in range(n) if wrap or 0 <= r + by < n], comm=comm)


def send(x: Any, dest: int, tag: int = 0, *, comm: Communicator | None = None) -> None:
    """Send an array to one rank, which must receive it.

    Under derivatives both ranks must be inside of `spmd`, or `fad.distributed.grad` and its like.
    """
    comm = comm or world()
    _map_leaves(x, lambda x: call(p.send, x, comm, dest=_rank(dest, comm, "dest"), tag=_tag(tag)))


def recv(like: Any, source: int, tag: int = 0, *, comm: Communicator | None = None) -> Any:
    """Return the array that a rank sent; `like` says its shape and dtype."""
    comm = comm or world()
    return _map_leaves(like, lambda x: call(p.recv, x, comm, source=_rank(source, comm, "source"), tag=_tag(tag)))


def barrier(*, comm: Communicator | None = None) -> None:
    """Wait until every rank is here.

    >>> barrier()
    """
    call(p.barrier, np.float64(0.0), comm or world())


# --- begun now, waited for later -------------------------------------------------------------------------------------


class Handle:
    """A collective that was begun; :meth:`wait` returns its result."""

    __slots__ = ("_finish", "_found")

    def __init__(self, finish: Callable):
        self._finish: Any = finish
        self._found: Any = None

    def wait(self) -> Any:
        """Wait until the collective is done, and return its result; the same each time."""
        if self._finish is None:
            return self._found
        found, trace = self._finish(), recorder.get()
        if trace is None or not trace.of_examples:  # nor in a branch that is recorded, and may not be run
            self._found, self._finish = found, None
        return found


def _start(name: str, x: Any, comm: Communicator, after: Callable, **params: Any) -> Callable:
    begin, finish = SPLIT[name]
    ticket = Ticket()
    more = {"does": name, "ticket": ticket.name, "params": tuple(sorted(params.items()))}
    with ticket:
        pending = call(begin, x, comm, **more)

    def wait() -> Any:
        with ticket:
            return after(call(finish, pending, comm, **more))

    return wait


def _handle(x: Any, begin: Callable) -> Handle:
    leaves, structure = tree.flatten(x)
    waiting = [begin(leaf) for leaf in leaves]
    return Handle(lambda: tree.unflatten(structure, [finish() for finish in waiting]))


def _after(op: str, comm: Communicator) -> Callable:
    """Return, of the operand, what makes the result of the sum."""
    return lambda x: (lambda y: _mean(y, x, comm)) if op == "mean" else lambda y: y


def start_all_reduce(x: Any, op: str = "sum", *, comm: Communicator | None = None) -> Handle:
    """Begin an :func:`all_reduce`, and return a handle: what is computed until ``wait()`` overlaps with it.

    Each `start_` function takes the arguments of its blocking form, and its derivative overlaps as well. The handles
    are waited for in the order in which they were made.

    >>> handle = start_all_reduce(np.ones(2))
    >>> handle.wait()
    array([1., 1.])
    """
    comm = comm or world()
    if _op(op) not in ("sum", "mean"):
        y = all_reduce(x, op, comm=comm)
        return Handle(lambda: y)
    after, says = _after(op, comm), _says(mean=op == "mean")
    return _handle(x, lambda x: _start("all_reduce", _count(x, op), comm, after(x), op="sum", **says))


def start_all_gather(x: Any, *, axis: int = 0, tiled: bool = False, comm: Communicator | None = None) -> Handle:
    """Begin an :func:`all_gather`, whose result counts as each rank's own."""
    comm = comm or world()

    def begin(x: Any) -> Callable:
        says = _says_gathered(x, axis, tiled)
        return _start("all_gather", x, comm, lambda y: _to_axis(y, axis, tiled), **says)

    return _handle(x, begin)


def start_reduce_scatter(x: Any, op: str = "sum", *, comm: Communicator | None = None) -> Handle:
    """Begin a :func:`reduce_scatter` along the first axis, which has one entry per rank."""
    comm = comm or world()
    if op not in ("sum", "mean"):
        raise ValueError(f"op of reduce_scatter must be 'sum' or 'mean', not {op!r}: take a part of an all_reduce")
    after = _after(op, comm)

    def begin(x: Any) -> Callable:
        counted = _count(_from_axis(x, 0, False, comm, "reduce_scatter"), op)
        return _start("reduce_scatter", counted, comm, after(x), **_says(mean=op == "mean"))

    return _handle(x, begin)


def start_all_to_all(x: Any, *, comm: Communicator | None = None) -> Handle:
    """Begin an :func:`all_to_all` along the first axis."""
    comm = comm or world()

    def begin(x: Any) -> Callable:
        return _start("all_to_all", _from_axis(x, 0, True, comm, "all_to_all"), comm, lambda y: _to_axis(y, 0, True))

    return _handle(x, begin)


def start_permute(x: Any, pairs: Sequence[tuple[int, int]], *, comm: Communicator | None = None) -> Handle:
    """Begin a :func:`permute`."""
    comm = comm or world()
    return _handle(x, lambda x: _start("permute", x, comm, lambda y: y, pairs=_pairs(pairs, comm)))


def _as_method(function: Callable) -> Callable:
    def method(self: Communicator, *args: Any, **kwargs: Any) -> Any:
        return function(*args, comm=self, **kwargs)

    method.__name__ = function.__name__
    method.__doc__ = f"Do :func:`fad.distributed.{function.__name__}` on this communicator."
    return method


METHODS = (
    varying, all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, permute, shift,
    send, recv, barrier, start_all_reduce, start_all_gather, start_reduce_scatter, start_all_to_all, start_permute,
)  # fmt: skip
for _function in METHODS:
    setattr(Communicator, _function.__name__, _as_method(_function))
