"""The collectives as operations: with a JVP, a transpose and a batching rule each, in the order of the program.

Each has two forms. The one that a function calls knows nothing of types: to differentiate it is an error, because
whether the values are one for all ranks or one for each decides the derivative. `fad.distributed.ranks` knows the
types, and puts the typed form in its place, which has the rules. Between types there are these, each the transpose of
the other:

=====================================  ====================================
``vary``: the same, then its own       ``all_reduce`` with sum: its own, then the same
``own_part``: the same, then its own   ``all_gather``: its own, then the same
``all_gather_varying``: its own        ``reduce_scatter``: its own
``permute``, ``all_to_all``            themselves, back
``scatter``, ``send``                  ``gather``, ``recv``
=====================================  ====================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import EFFECT
from fad.core.runs.journal import JOURNAL, once
from fad.core.tracing.views import RUNS
from fad.distributed.errors import RankTypeError
from fad.distributed.ties import sweep_like, trace_like
from fad.errors import BatchedValueError
from fad.staging.record import recorder
from fad.transforms.batching.batch_trace import batching

TYPED: dict[Primitive, Primitive] = {}
"""The form with rules of each collective that a function calls."""
TAKES_SAME: set[Primitive] = set()  # of the typed ones: those whose operand must be the same on all ranks
GIVES_SAME: set[Primitive] = set()  # and those whose result is


def _refuse(name: str) -> Callable:
    name = "all_reduce" if name.startswith("all_reduce") else name

    def refuse(*args: Any, comm: Any, **params: Any) -> Any:
        raise RankTypeError(
            f"{name} was called on a value that fad.grad, vjp, jvp or another derivative traces, and it is not known "
            "whether that is the same on all ranks or differs: the derivative is another one. Write "
            "fad.distributed.grad(f, comm) or value_and_grad(f, comm) for fad.grad(f), or mark the arguments, "
            "fad.distributed.spmd(f, comm, replicated=(0,)), and differentiate that"
        )

    return refuse


def _check(batch: Callable, prim: Primitive) -> Callable:
    """Return the batching rule of one form, which checks that all examples of the batch are there."""

    def rule(trace: Any, batched: tuple, xs: list, params: dict) -> Any:
        check_paths()
        return batch(prim, xs[0], params)

    return rule


def check_paths() -> None:
    for trace in batching.get():
        if trace.path:
            raise BatchedValueError(
                "a collective stands in a function with an if or while on a batched value, whose examples may take "
                "different paths: other ranks would wait for other messages. Use np.where, or a fixed number of "
                "iterations for a loop until convergence"
            )


def collective(
    name: str, *, jvp: Callable, vjp: Callable | None, batch: Callable, saves: str = "none",
    takes_same: bool = False, gives_same: bool = False, does: str | None = None, **fixed: Any,
) -> Primitive:  # fmt: skip
    """Make a collective, ``comm.run(does, x, **params)``; return the form that functions call."""
    does = does or name

    def forward(x: Any, *, comm: Any, **params: Any) -> Any:
        if not RUNS.depth and JOURNAL.done is None:  # no transform is running, and so nothing is recorded or batched
            return comm.run(does, x, **params, **fixed)
        trace = recorder.get()
        if trace is not None and trace.of_examples:
            return _example(does, x, comm)
        check_paths()
        return once(comm.run, does, x, **params, **fixed)

    return pair(name, forward, jvp, vjp, batch, saves, takes_same, gives_same)


def _example(does: str, x: Any, comm: Any) -> Any:
    """Return something like a result, for the recording of a loop's body, whose values stand for others."""
    if does in ("all_gather", "gather"):
        return np.stack([x] * comm.size)
    if does in ("reduce_scatter", "scatter"):
        return x[0].copy()
    return np.zeros_like(x, shape=()) if does == "send" else x * 1


def _drop_description(params: dict) -> dict:
    """Return the parameters that the rules need: all but what is only there to be compared, see `Communicator.run`."""
    return {k: v for k, v in params.items() if k != "says"}


def pair(
    name: str, forward: Callable, jvp: Callable, vjp: Callable | None, batch: Callable, saves: str = "none",
    takes_same: bool = False, gives_same: bool = False,
) -> Primitive:  # fmt: skip
    """Make both forms of an operation with an effect; return the one without types."""
    full = f"distributed.{name}"  # there are other operations called permute, broadcast and gather

    def push(ts: Any, y: Any, xs: Any, params: dict) -> Any:
        return jvp(trace_like(ts[0], xs[0]), y, *xs, **_drop_description(params))

    def pull(ct: Any, y: Any, x: Any, **params: Any) -> Any:
        assert vjp is not None
        return vjp(ct, y, x, **_drop_description(params))

    typed = Primitive(
        full, forward, jvp=push, vjp=(vjp and pull,), saves=saves, archetype=EFFECT, swept=sweep_like, needs_trace=True,
    )  # fmt: skip
    typed.batch = _check(batch, typed)
    if takes_same:
        TAKES_SAME.add(typed)
    if gives_same:
        GIVES_SAME.add(typed)
    called = Primitive(
        full, forward, flat=True, archetype=EFFECT, differentiated=_refuse(name), needs_trace=True
    )
    called.batch = _check(batch, called)
    TYPED[called] = typed
    return called


def alike(prim: Primitive, x: Any, params: dict) -> Any:
    """Batch a collective for which the batch axis is one like any other."""
    return prim(x, **params)


def stacking(prim: Primitive, x: Any, params: dict) -> Any:
    """Batch a collective whose result has the ranks in front."""
    return np.moveaxis(prim(x, **params), 1, 0)


def unstacking(prim: Primitive, x: Any, params: dict) -> Any:
    """Batch a collective whose operand has the ranks in front."""
    return prim(np.moveaxis(x, 0, 1), **params)


def exchanging(prim: Primitive, x: Any, params: dict) -> Any:
    """Batch a collective whose operand and result have the ranks in front."""
    return np.moveaxis(prim(np.moveaxis(x, 0, 1), **params), 1, 0)


# --- operations that talk to nobody ---------------------------------------------------------------------------------

# What is the same on all ranks, from now on as each rank's own: the cotangents of all ranks belong to the one value.
vary: Primitive = Primitive(
    "vary", lambda x, comm: x, saves="none", archetype="linear", swept=sweep_like, identity=True,
    jvp=lambda ts, y, xs, params: vary(trace_like(ts[0], xs[0]), **params),
    vjp=(lambda ct, y, x, comm: all_reduce_sum(ct, comm=comm),),
    batch=lambda size, batched, xs, params: vary(xs[0], **params),
)  # fmt: skip

# The part of this rank of what is the same on all: row `rank`.
own_part: Primitive = Primitive(
    "own_part", lambda x, comm: np.array(x[int(comm.rank)])[()] if x.ndim == 1 else x[int(comm.rank)].copy(),
    saves="none", archetype="linear", swept=sweep_like,
    jvp=lambda ts, y, xs, params: own_part(trace_like(ts[0], xs[0]), **params),
    vjp=(lambda ct, y, x, comm: all_gather_p(ct, comm=comm),),
    batch=lambda size, batched, xs, params: own_part(np.moveaxis(xs[0], 0, 1), **params),
)  # fmt: skip
TAKES_SAME.update((vary, own_part))

# What goes into, or comes out of, a computation of all ranks together: it is differentiated on every rank, or on none.
joint: Primitive = Primitive(
    "joint", lambda x, comm: x, saves="none", archetype="linear", swept=sweep_like,
    jvp=lambda ts, y, xs, params: trace_like(ts[0], y),
    vjp=(lambda ct, y, x, comm: ct,),
    batch=lambda size, batched, xs, params: joint(xs[0], **params),
)  # fmt: skip
TYPED[joint] = joint


# --- reductions -------------------------------------------------------------------------------------------------------


def _rows_of_others(x: Any, comm: Any) -> Any:
    """Return the arrays of the other ranks, as one array; what it is multiplied to is left out of a product."""
    rows = all_gather_varying(x, comm=comm)
    rank = int(comm.rank)
    return np.concatenate([rows[:rank], rows[rank + 1 :]])


def _others(x: Any, comm: Any) -> Any:
    return np.prod(_rows_of_others(x, comm), axis=0)


def _live(y: Any, x: Any, comm: Any) -> tuple:
    """Return where this rank has the extreme value, and how many ranks have it."""
    live = (x == vary(y, comm=comm)).astype(x.dtype)
    return live, all_reduce_sum(live, comm=comm)


def _extreme_jvp(t: Any, y: Any, x: Any, comm: Any) -> Any:
    live, n = _live(y, x, comm)
    return all_reduce_sum(t * live, comm=comm) / n


def _extreme_vjp(ct: Any, y: Any, x: Any, comm: Any) -> Any:
    live, n = _live(y, x, comm)
    return vary(ct / n, comm=comm) * live


def _reduction(op: str, jvp: Callable, vjp: Callable, saves: str) -> Primitive:
    name = f"all_reduce_{op}"
    return collective(name, jvp=jvp, vjp=vjp, batch=alike, saves=saves, gives_same=True, does="all_reduce", op=op)


REDUCTIONS: dict[str, Primitive] = {
    "sum": _reduction(
        "sum", lambda t, y, x, comm: all_reduce_sum(t, comm=comm), lambda ct, y, x, comm: vary(ct, comm=comm), "none"
    ),
    "max": _reduction("max", _extreme_jvp, _extreme_vjp, "all"),
    "min": _reduction("min", _extreme_jvp, _extreme_vjp, "all"),
    "prod": _reduction(
        "prod",
        lambda t, y, x, comm: all_reduce_sum(t * _others(x, comm), comm=comm),
        lambda ct, y, x, comm: vary(ct, comm=comm) * _others(x, comm),
        "operands",
    ),
}
all_reduce_sum: Primitive = TYPED[REDUCTIONS["sum"]]

# --- moving ----------------------------------------------------------------------------------------------------------

all_gather = collective(
    "all_gather", gives_same=True, batch=stacking,
    jvp=lambda t, y, x, comm: all_gather_p(t, comm=comm), vjp=lambda ct, y, x, comm: own_part(ct, comm=comm),
)  # fmt: skip
all_gather_p: Primitive = TYPED[all_gather]
gather_varying = collective(
    "all_gather_varying", does="all_gather", batch=stacking,
    jvp=lambda t, y, x, comm: all_gather_varying(t, comm=comm),
    vjp=lambda ct, y, x, comm: reduce_scatter_p(ct, comm=comm),
)  # fmt: skip
all_gather_varying: Primitive = TYPED[gather_varying]
reduce_scatter = collective(
    "reduce_scatter", batch=unstacking,
    jvp=lambda t, y, x, comm: reduce_scatter_p(t, comm=comm),
    vjp=lambda ct, y, x, comm: all_gather_varying(ct, comm=comm),
)  # fmt: skip
reduce_scatter_p: Primitive = TYPED[reduce_scatter]
all_to_all = collective(
    "all_to_all", batch=exchanging,
    jvp=lambda t, y, x, comm: all_to_all_p(t, comm=comm), vjp=lambda ct, y, x, comm: all_to_all_p(ct, comm=comm),
)  # fmt: skip
all_to_all_p: Primitive = TYPED[all_to_all]
broadcast = collective(
    "broadcast", gives_same=True, batch=alike,
    jvp=lambda t, y, x, comm, root: broadcast_p(t, comm=comm, root=root),
    vjp=lambda ct, y, x, comm, root: vary(ct, comm=comm) * float(comm.rank == root),
)  # fmt: skip
broadcast_p: Primitive = TYPED[broadcast]
reduce = collective(
    "reduce", batch=alike,
    jvp=lambda t, y, x, comm, root: reduce_p(t, comm=comm, root=root),
    vjp=lambda ct, y, x, comm, root: vary(broadcast_p(ct, comm=comm, root=root), comm=comm),
)  # fmt: skip
reduce_p: Primitive = TYPED[reduce]
gather = collective(
    "gather", batch=stacking,
    jvp=lambda t, y, x, comm, root: gather_p(t, comm=comm, root=root),
    vjp=lambda ct, y, x, comm, root: scatter_p(ct, comm=comm, root=root),
)  # fmt: skip
gather_p: Primitive = TYPED[gather]
scatter = collective(
    "scatter", batch=unstacking,
    jvp=lambda t, y, x, comm, root: scatter_p(t, comm=comm, root=root),
    vjp=lambda ct, y, x, comm, root: gather_p(ct, comm=comm, root=root),
)  # fmt: skip
scatter_p: Primitive = TYPED[scatter]
permute = collective(
    "permute", batch=alike,
    jvp=lambda t, y, x, comm, pairs: permute_p(t, comm=comm, pairs=pairs),
    vjp=lambda ct, y, x, comm, pairs: permute_p(ct, comm=comm, pairs=tuple((b, a) for a, b in pairs)),
)  # fmt: skip
permute_p: Primitive = TYPED[permute]


# --- messages between two --------------------------------------------------------------------------------------------

send = collective(
    "send", batch=lambda prim, x, params: np.broadcast_to(prim(x, **params), (len(x),)), saves="operands",
    jvp=lambda t, y, x, comm, dest, tag: send_p(t, comm=comm, dest=dest, tag=tag),
    vjp=lambda ct, y, x, comm, dest, tag: recv_p(trace_like(None, x, [ct]), comm=comm, source=dest, tag=tag),
)  # fmt: skip
send_p: Primitive = TYPED[send]


def _recv_vjp(ct: Any, y: Any, x: Any, comm: Any, source: int, tag: int) -> None:
    send_p(ct, comm=comm, dest=source, tag=tag)  # what was received depends on nothing here


recv = collective(
    "recv", batch=alike, vjp=_recv_vjp,
    jvp=lambda t, y, x, comm, source, tag: recv_p(t, comm=comm, source=source, tag=tag),
)  # fmt: skip
recv_p: Primitive = TYPED[recv]
barrier = collective("barrier", batch=alike, jvp=lambda t, y, x, comm: t, vjp=lambda ct, y, x, comm: ct)
