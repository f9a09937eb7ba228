"""Collectives that are begun now and waited for later: what is computed meanwhile overlaps with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fad import tree
from fad.distributed.collective_calls import (
    add_methods,
    as_numbers,
    call,
    check_op,
    check_pairs,
    describe_call,
    describe_gather,
    mean_of_sum,
    put_on_axis,
    take_from_axis,
)
from fad.distributed.collectives import all_reduce
from fad.distributed.communicator import Communicator
from fad.distributed.nonblocking import SPLIT, Ticket
from fad.distributed.worlds import world
from fad.staging.record import recorder


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
    return lambda x: (lambda y: mean_of_sum(y, x, comm)) if op == "mean" else lambda y: y


def start_all_reduce(x: Any, op: str = "sum", *, comm: Communicator | None = None) -> Handle:
    """Begin an :func:`all_reduce`, and return a handle: what is computed until ``wait()`` overlaps with it.

    Each `start_` function takes the arguments of its blocking form, and its derivative overlaps as well. The handles
    are waited for in the order in which they were made.

    >>> handle = start_all_reduce(np.ones(2))
    >>> handle.wait()
    array([1., 1.])
    """
    comm = comm or world()
    if check_op(op) not in ("sum", "mean"):
        y = all_reduce(x, op, comm=comm)
        return Handle(lambda: y)
    after, says = _after(op, comm), describe_call(mean=op == "mean")
    return _handle(x, lambda x: _start("all_reduce", as_numbers(x, op), comm, after(x), op="sum", **says))


def start_all_gather(x: Any, *, axis: int = 0, tiled: bool = False, comm: Communicator | None = None) -> Handle:
    """Begin an :func:`all_gather`, whose result counts as each rank's own."""
    comm = comm or world()

    def begin(x: Any) -> Callable:
        says = describe_gather(x, axis, tiled)
        return _start("all_gather", x, comm, lambda y: put_on_axis(y, axis, tiled), **says)

    return _handle(x, begin)


def start_reduce_scatter(x: Any, op: str = "sum", *, comm: Communicator | None = None) -> Handle:
    """Begin a :func:`reduce_scatter` along the first axis, which has one entry per rank."""
    comm = comm or world()
    if op not in ("sum", "mean"):
        raise ValueError(f"op of reduce_scatter must be 'sum' or 'mean', not {op!r}: take a part of an all_reduce")
    after = _after(op, comm)

    def begin(x: Any) -> Callable:
        counted = as_numbers(take_from_axis(x, 0, False, comm, "reduce_scatter"), op)
        return _start("reduce_scatter", counted, comm, after(x), **describe_call(mean=op == "mean"))

    return _handle(x, begin)


def start_all_to_all(x: Any, *, comm: Communicator | None = None) -> Handle:
    """Begin an :func:`all_to_all` along the first axis."""
    comm = comm or world()

    def begin(x: Any) -> Callable:
        parts = take_from_axis(x, 0, True, comm, "all_to_all")
        return _start("all_to_all", parts, comm, lambda y: put_on_axis(y, 0, True))

    return _handle(x, begin)


def start_permute(x: Any, pairs: Sequence[tuple[int, int]], *, comm: Communicator | None = None) -> Handle:
    """Begin a :func:`permute`."""
    comm = comm or world()
    return _handle(x, lambda x: _start("permute", x, comm, lambda y: y, pairs=check_pairs(pairs, comm)))


add_methods(start_all_reduce, start_all_gather, start_reduce_scatter, start_all_to_all, start_permute)
