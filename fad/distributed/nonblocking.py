"""The non-blocking collectives as operations: one that begins, and one that waits for it.

What is computed between the two overlaps with the messages. They know each other by a ticket, and so do their
derivatives, which overlap as well: the transpose of a wait begins the transposed collective, and that of a start waits
for it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive
from fad.core.runs.journal import effect_place, once
from fad.distributed.communicator import Communicator
from fad.distributed.errors import DistributedError
from fad.distributed.primitives import TYPED, alike, check_paths, exchanging, pair, stacking, unstacking, vary
from fad.staging.record import recorder

_numbers = itertools.count()
_under_way: dict[Any, Begun] = {}


class _Beginning(threading.local):
    ticket: Ticket | None = None  # with which a collective is being begun


_beginning = _Beginning()


class Ticket:
    """What a start and its wait know each other by. Where it is gone, nobody waits any more for what was begun with it.

    What a program of jit begins is begun with none: nobody waits for it after the program's end.
    """

    __slots__ = ("__weakref__", "name")

    def __init__(self) -> None:
        self.name = (effect_place(_numbers, next(_numbers)),)

    def __enter__(self) -> None:
        _beginning.ticket = self

    def __exit__(self, *_: Any) -> None:
        _beginning.ticket = None


class Begun:
    """A collective that was begun, and the key by which its wait finds it: each run has a key of its own."""

    __slots__ = ("comm", "key", "request", "ticket")

    def __init__(self, comm: Communicator, request: Any):
        self.comm = comm
        self.request = request  # None after it has been waited for
        self.key: Any = None
        self.ticket: Any = None

    def await_under(self, key: Any) -> None:
        """Let the run that is going on wait for it under a key."""
        if self.request is None:
            return
        if _under_way.get(self.key) is self:
            del _under_way[self.key]
        if self in self.comm.left:  # by the run whose place this one takes
            self.comm.left.remove(self)
        earlier = _under_way.get(key)
        self.key, _under_way[key] = key, self
        if earlier is not None:  # of a run of the same program, which did not wait for it
            self.comm.left.append(earlier)
        ticket = _beginning.ticket
        self.ticket = ticket and weakref.ref(ticket, self._leave)

    def _leave(self, ticket: Any) -> None:
        """Leave it to its communicator, which ends it: nobody waits for it."""
        if ticket is self.ticket and _under_way.get(self.key) is self:
            del _under_way[self.key]
            self.comm.left.append(self)

    def wait(self) -> Any:
        request, self.request = self.request, None
        return request.wait()


def _begin(x: Any, *, comm: Any, does: str, ticket: tuple, params: tuple) -> Any:
    trace = recorder.get()
    if trace is not None and trace.of_examples:
        return _result_like(x, does, comm)

    check_paths()

    once(lambda: Begun(comm, comm.start(does, x, **dict(params)))).await_under((id(comm), ticket))
    return _result_like(x, does, comm)


def _finish(x: Any, *, comm: Any, does: str, ticket: tuple, params: tuple) -> Any:
    trace = recorder.get()
    if trace is not None and trace.of_examples:
        return x[0].copy() if does == "reduce_scatter" else x * 1

    check_paths()

    def run() -> Any:
        begun = _under_way.pop((id(comm), ticket), None)
        if begun is None and "T" in ticket:  # what was begun was never waited for: nothing depends on it
            return x[0].copy() if does == "reduce_scatter" else x * 1
        if begun is None:
            raise DistributedError(
                f"what waits for {does} finds none under way: begin it and wait for it in one function of jit"
            )
        return comm._as_given(begun.wait(), x)

    return once(run)


def _result_like(x: Any, does: str, comm: Any) -> Any:
    """Return zeros in place of a result that is not there yet: of the operand or the result the one with all ranks."""
    if does == "all_gather":
        return np.zeros_like(x, shape=(comm.size, *x.shape))
    return np.zeros_like(x)[()] if isinstance(x, np.generic) else np.zeros_like(x)


_BACK = {"all_reduce": "all_reduce", "all_gather": "reduce_scatter", "reduce_scatter": "all_gather",
         "all_to_all": "all_to_all", "permute": "permute"}  # fmt: skip
_BATCHES = {"all_gather": (stacking, exchanging), "reduce_scatter": (exchanging, unstacking),
            "all_to_all": (exchanging, exchanging)}  # fmt: skip


def _reverse(params: tuple) -> tuple:
    return tuple([(k, tuple((b, a) for a, b in v) if k == "pairs" else v) for k, v in params])


def _split(name: str) -> tuple[Primitive, Primitive]:
    """Make the two operations of a non-blocking collective: their transposes wait for, and begin, the transpose."""

    def rules(which: int) -> tuple[Callable, Callable, Callable]:
        def jvp(t, y, x, comm, does, ticket, params):
            return _SPLIT[name][which](t, comm=comm, does=does, ticket=(*ticket, "t"), params=params)

        def vjp(ct, y, x, comm, does, ticket, params):
            if name == "all_reduce":  # its transpose talks to nobody
                return vary(ct, comm=comm) if which else ct
            prim = _SPLIT[_BACK[name]][1 - which]
            return prim(ct, comm=comm, does=_BACK[name], ticket=(*ticket, "T"), params=_reverse(params))

        return jvp, vjp, _BATCHES.get(name, (alike, alike))[which]

    start_rules, wait_rules = rules(0), rules(1)
    start = pair(f"start_{name}", _begin, *start_rules)
    wait = pair(f"wait_{name}", _finish, *wait_rules, "none", False, name == "all_reduce")
    _SPLIT[name] = TYPED[start], TYPED[wait]
    return start, wait


_SPLIT: dict[str, tuple] = {}
SPLIT = {name: _split(name) for name in _BACK}
"""The operations that begin a collective and wait for it, by its name."""
