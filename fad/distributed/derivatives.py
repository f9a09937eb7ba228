"""Gradients over ranks: of a loss that each rank computes on its own data, reduced while the backward pass still runs.

The parameters are the same on all ranks, and the loss is the mean over the ranks. So the gradient of a parameter is the
sum over the ranks of what each finds. It is known as soon as the backward sweep has come back to where it was
first used: there it is put into a bucket, and a bucket that is full is reduced at once, while the sweep goes on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.runs import effects
from fad.core.runs.journal import JOURNAL, effect_place, with_journal
from fad.core.tracing.tracer import Tracer, tracer
from fad.core.tracing.values import depth
from fad.distributed.communicator import Communicator
from fad.distributed.nonblocking import SPLIT, Ticket
from fad.distributed.primitives import TYPED, all_reduce_sum, vary
from fad.distributed.ranks import NeedsTypes, RankTrace, run_typed, spmd, tie, without_collectives
from fad.distributed.ties import sweep_like
from fad.distributed.worlds import world
from fad.errors import ShapeMismatchError
from fad.staging.record import recorder
from fad.transforms.arguments.check import as_primal, check_function, settle
from fad.transforms.grad import _check_scalar, split_arguments
from fad.transforms.grad import grad as plain_grad
from fad.transforms.reverse.slopes import find_care
from fad.transforms.reverse.tape import RERUN
from fad.transforms.tape_hooks import Beginning, parents_of
from fad.transforms.vjp import Tape

BUCKET = 1 << 22
"""Bytes of gradients that are reduced together, if nothing else is said."""


class Buckets:
    """The gradients of one backward pass, on their way to all ranks.

    Which leaves share a bucket, and the order of the buckets, is the same on all ranks whatever each of them uses: from
    the last leaf to the first, as the backward sweep mostly finds them.
    """

    def __init__(self, comm: Communicator, leaves: list, nbytes: int, reduce: bool):
        self.comm = comm
        self.leaves = leaves
        self.traced = [x for x in leaves if type(x) is Tracer]  # as all gradients are, on this rank or another
        self.sums: list = [None] * len(leaves)  # of the batches before the last
        self.found: list = [None] * len(leaves)
        self.plan = _plan(leaves, nbytes) if reduce else []
        self.missing = [len(bucket) for bucket in self.plan]  # how many gradients each bucket waits for
        self.where = {k: i for i, bucket in enumerate(self.plan) for k in bucket}
        self.sent: list = []  # what waits for each bucket
        self.share: Any = None  # this rank's share of the value, which goes with the first bucket
        self.last = True  # whether this is the last batch

    def take(self, number: int, g: Any) -> None:
        """Take the gradient of a leaf: all of this batch."""
        if self.sums[number] is not None:
            g = self.sums[number] + g
        if not self.last:
            self.sums[number] = g
            return
        plain = type(g) is np.ndarray and not self.traced
        self.found[number] = g if plain else sweep_like(g, self.leaves[number], self.traced)
        if self.plan:
            self.missing[self.where[number]] -= 1
            while len(self.sent) < len(self.plan) and not self.missing[len(self.sent)]:
                self.send(self.plan[len(self.sent)])
        if 0 < len(self.sent) < len(self.plan):  # the last is waited for when it is sent
            self.comm.progress()

    def send(self, bucket: list) -> None:
        """Begin to add up a bucket; the last one, when nothing is left to do meanwhile, at once."""
        parts = [self.found[k] for k in bucket]
        if not self.sent and self.share is not None:
            parts.append(self.share)
        if len(self.sent) < len(self.plan) - 1:
            self.sent.append(start_sum(_join(parts), self.comm))
        else:  # there is nothing left to do meanwhile
            self.sent.append(sum_now(_join(parts, self.comm), self.comm))

    def finish(self) -> list:
        """Return the gradients of all leaves, reduced; zeros for those that the loss does not depend on."""
        for number, leaf in enumerate(self.leaves):
            if self.found[number] is None:
                self.take(number, np.zeros_like(leaf))
        for number, (bucket, wait) in enumerate(zip(self.plan, self.sent, strict=True)):
            total, at = wait(), 0
            if number == 0 and self.share is not None:
                self.share = total[-1]
            for k in bucket:
                leaf, start = self.leaves[k], at
                at += leaf.size
                is_number = not leaf.shape and type(leaf) is not np.ndarray
                self.found[k] = total[start] if is_number else total[start:at].reshape(leaf.shape)
        return self.found


def _join(parts: list, comm: Communicator | None = None) -> Any:
    """Return the elements of all arrays as one vector: plain ones where a communicator is to add them up at once."""
    if comm is not None and comm.size > 1 and all(issubclass(type(x), (np.ndarray, np.generic)) for x in parts):
        buffer = comm.lend(sum([x.size for x in parts]), parts[0].dtype)
        return np.concatenate(parts, axis=None, out=buffer)
    return np.concatenate([x.reshape(-1) for x in parts]) if len(parts) > 1 else parts[0].reshape(-1)


def _plan(leaves: list, nbytes: int) -> list[list[int]]:
    """Return the numbers of the leaves that share a bucket: neighbours of one dtype, of so many bytes together."""
    plan: list[list[int]] = []
    size = 0
    for number in reversed(range(len(leaves))):
        x = leaves[number]
        if plan and size < nbytes and leaves[plan[-1][-1]].dtype == x.dtype:
            plan[-1].append(number)
        else:
            plan.append([number])
            size = 0
        size += x.size * x.dtype.itemsize
    return plan


def sum_now(x: Any, comm: Communicator) -> Callable:
    """Return a function that returns the sum over all ranks of what is each rank's own."""
    if comm.size == 1 and type(x) is not Tracer:
        return lambda: x
    if type(x) is np.ndarray and recorder.get() is None:
        y = all_reduce_sum.forward(x, comm=comm)
    else:
        y = all_reduce_sum(tie(x, []), comm=comm)
    return lambda: y


def start_sum(x: Any, comm: Communicator) -> Callable:
    """Begin the sum over all ranks of what is each rank's own; return what waits for it."""
    if comm.size == 1 and type(x) is not Tracer:
        return lambda: x
    begin, finish = SPLIT["all_reduce"]
    ticket = Ticket()
    params = {"comm": comm, "does": "all_reduce", "ticket": ticket.name, "params": (("op", "sum"),)}
    with ticket:
        pending = TYPED[begin](tie(x, []), **params)

    def wait() -> Any:
        with ticket:
            return TYPED[finish](pending, **params)

    return wait


def value_and_grad(
    fun: Callable, comm: Communicator | None = None, argnums: Any = 0, has_aux: bool = False, *,
    parts: int = 1, reduce: bool = True, bucket_bytes: int = BUCKET,
) -> Callable:  # fmt: skip
    """Return a function that computes the mean over ranks of a loss, and its gradient, on every rank.

    Parameters
    ----------
    fun : callable
        The loss of one rank: of parameters, which are the same on all ranks, and of the rank's own data. It may call
        collectives, as batch normalisation over ranks does.
    comm : Communicator, optional
        The world of :func:`init` if not given.
    argnums : int or tuple of int
        The parameters. All other arguments are each rank's own.
    has_aux : bool
        If true, `fun` returns ``(loss, aux)``; aux is each rank's own.
    parts : int, keyword only
        Cut the first axis of all other arguments in so many parts, take the mean of their losses, and reduce the sum of
        their gradients once: less memory, and less to send.
    reduce : bool, keyword only
        False for the gradient of this rank's loss alone, which `optim.sharded` reduces.
    bucket_bytes : int, keyword only
        How many bytes of gradients are reduced together.

    Returns
    -------
    callable
        Returns ``(value, gradient)``, or with `has_aux` ``((value, aux), gradient)``; with `parts` aux is a list.

    Raises
    ------
    ShapeMismatchError
        if the data cannot be cut in equal parts; and the errors of `fad.value_and_grad`.

    Examples
    --------
    >>> value_and_grad(lambda w, x: np.mean((w * x) ** 2))(2.0, np.array([1.0, 3.0]))
    (np.float64(20.0), np.float64(20.0))
    """
    check_function(fun, "value_and_grad", argnums)
    typed: list = []  # whether the loss calls collectives, so that its values need types

    @functools.wraps(fun, updated=())
    @with_journal
    def evaluate(*args: Any, **kwargs: Any) -> tuple:
        mine = comm or world()
        f, chosen, single = split_arguments(fun, args, kwargs, argnums, None, "value_and_grad")
        leaves, in_tree = tree.flatten(chosen)
        leaves = [as_primal(x, "a parameter") for x in leaves]
        leaves = [vary(x, comm=mine) if depth(x) else x for x in leaves]
        buckets = Buckets(mine, leaves, bucket_bytes, reduce)
        total: Any = 0.0
        aux = []
        batches = [(args, kwargs)] if parts == 1 else _cut(args, kwargs, argnums, parts)
        weight = 1.0 / (parts * mine.size if reduce else parts)
        for k, (some, named) in enumerate(batches):
            buckets.last = k == parts - 1
            if parts > 1:
                f, _, _ = split_arguments(fun, some, named, argnums, None, "value_and_grad")
            tape = None if typed else _plain_tape(f, mine, in_tree, leaves, has_aux, fun)
            if tape is None:
                typed.append(True)
                tape = Tape(_bucket_gradients(f, mine, buckets, has_aux), in_tree, leaves, has_aux)
            (value,) = values = tape.values()
            _check_scalar(values, tape.out_tree, False)
            share = value * value.dtype.type(1.0 / (parts * mine.size))
            total = share if k == 0 else total + share
            aux.append(tape.aux)
            if buckets.last and buckets.plan and leaves[buckets.plan[0][0]].dtype == value.dtype:
                buckets.share = total
            elif buckets.last:
                mean = start_sum(sweep_like(total, total, buckets.traced), mine)
            ct = value.dtype.type(weight)
            ct = ct if isinstance(value, np.generic) else np.ones_like(value) * ct
            if typed:
                tape.pull([ct], keep=False)
            else:
                _pull(tape, ct, buckets)
        grads = tree.unflatten(in_tree, buckets.finish())
        value = mean() if buckets.share is None else buckets.share
        g = grads[0] if single else grads
        return ((value, aux[0] if parts == 1 else aux) if has_aux else value), g

    return evaluate


def _plain_tape(
    f: Callable, comm: Communicator, in_tree: Any, leaves: list, has_aux: bool, user: Callable
) -> Tape | None:
    """Return the record of a loss that calls no collectives, which is most of them; None if it calls one."""
    before = JOURNAL.next
    with effects.recording() as log:
        try:
            with without_collectives(comm):
                return Tape(f, in_tree, leaves, has_aux, user=user)
        except NeedsTypes:
            log.restore()
            JOURNAL.next = before
            return None


def _pull(tape: Tape, ct: Any, buckets: Buckets) -> None:
    """Sweep a tape backwards, bucket by bucket: a parameter's gradient is known where it was first used."""
    records, leaves = tape.records, tape.leaves
    n, end = len(leaves), len(records)
    if len(buckets.plan) < 2 or any(r is not None and r[0] >= RERUN for r in records):  # nothing to send meanwhile
        for number, g in reversed(list(enumerate(tape.pull([ct], keep=False)))):
            buckets.take(number, g)
        return
    first = [end] * n
    for i in range(end - 1, n - 1, -1):
        for p in parents_of(records[i]) if records[i] is not None else ():
            if p < n:
                first[p] = i
    tape.check_kept()
    tape.records = None
    care = find_care(records)
    slots: list = [None] * end
    own = bytearray(end)
    (y,) = tape.outputs
    if type(y) is Tracer and y.owner is tape.trace:
        slots[y.info] = ct
    for bucket in buckets.plan:
        stop = min(first[k] for k in bucket)
        if stop < end:
            tape.trace.sweep(Beginning(records, end), slots, own, stop, False, care)
            end = stop
        for k, g in zip(bucket, settle([slots[k] for k in bucket], [leaves[k] for k in bucket], [ct]), strict=True):
            slots[k] = None
            buckets.take(k, g)


def _bucket_gradients(f: Callable, comm: Communicator, buckets: Buckets, has_aux: bool) -> Callable:
    """Return the loss on parameters whose gradients go into buckets, as soon as they are known."""

    def local(*chosen: Any) -> Any:
        leaves, structure = tree.flatten((chosen, {}))

        def entry(number: int) -> Callable:
            def enter(x: Any) -> Any:
                trace = x.owner
                first = len(trace.tape)
                if (earlier := effect_place(trace, first)) != first:
                    return tracer(x.wrapped, trace, earlier)
                return trace.call([x.info], [x.wrapped], lambda gs: _put(buckets, number, gs[0]))[0]

            return enter

        def finish(trace: RankTrace, y: Any) -> Any:
            if type(y) is not Tracer or y.owner is not trace:
                return y
            return y.wrapped if has_aux and y.shape else trace.vary(y)

        hows = [entry(k) for k in range(len(leaves))]
        return run_typed(f, comm, leaves, [True] * len(leaves), structure, finish, hows)

    return local


def _put(buckets: Buckets, number: int, g: Any) -> tuple:
    buckets.take(number, g)
    return (None,)


def _cut(args: tuple, kwargs: dict, argnums: Any, parts: int) -> list:
    """Return the arguments with the data of each part."""
    fixed = {i % len(args) for i in ((argnums,) if isinstance(argnums, int) else argnums)}

    def piece(x: Any, k: int) -> Any:
        if not getattr(x, "ndim", 0):
            return x
        n = len(x)
        if n % parts:
            raise ShapeMismatchError(f"an array of length {n} cannot be cut in {parts} equal parts")
        return x[k * n // parts : (k + 1) * n // parts]

    return [
        (
            tuple(a if i in fixed else tree.map(lambda x, k=k: piece(x, k), a) for i, a in enumerate(args)),
            tree.map(lambda x, k=k: piece(x, k), kwargs),
        )
        for k in range(parts)
    ]


def grad(fun: Callable, comm: Communicator | None = None, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """Return the gradient of a function that returns the same on all ranks, by arguments that all ranks share.

    All other arguments are each rank's own. It is ``fad.grad(spmd(fun, comm, replicated=argnums))``, so it can be
    differentiated again; :func:`value_and_grad` is quicker for the mean of a loss.

    Raises
    ------
    RankTypeError
        if what `fun` returns differs from rank to rank: return ``all_reduce(loss, 'mean')``.

    Examples
    --------
    >>> from fad.distributed import all_reduce
    >>> grad(lambda w, x: all_reduce(np.sum(w * x)))(2.0, np.array([1.0, 3.0]))
    np.float64(4.0)
    """
    check_function(fun, "grad", argnums)
    return plain_grad(spmd(fun, comm, replicated=argnums), argnums, has_aux)
