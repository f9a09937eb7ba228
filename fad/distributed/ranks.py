"""Types of values across ranks: the same on all of them, or each rank's own; and ``spmd``, which infers them.

Each rank runs the same function on its own data, and a derivative is that of the whole: of all ranks together. What a
value is, decides it. A parameter that is the same on all ranks is one variable, and its gradient is the sum of what it
does on all ranks; the data of each rank are variables of their own. So inside `spmd` every traced value has a type:

* an operation on values that are the same gives one that is the same; with any other operand it gives each rank its
  own;
* ``all_reduce``, ``all_gather`` and ``broadcast`` make one that is the same; all other collectives each rank's own;
* Python's numbers go with both. Arrays that are not arguments count as each rank's own, which is always right.

Where a value that is the same meets another, the operation ``vary`` is put before it, and its transpose adds up the
cotangents of all ranks. That is all that derivatives need: JAX does the same under the name of varying manual axes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import tree
from fad.core.primitives.primitive import Primitive
from fad.core.runs.running import Running
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer, up_to_date
from fad.core.tracing.values import depth, traces_of
from fad.distributed.agreement import Samples, is_swept
from fad.distributed.communicator import Communicator, RankFloat, RankNumber, plain_number
from fad.distributed.errors import RankTypeError
from fad.distributed.primitives import GIVES_SAME, TAKES_SAME, TYPED, vary
from fad.distributed.ties import find_batches_of_tangents, find_untied, tied
from fad.distributed.worlds import world
from fad.introspect.frames import user_line
from fad.ops.places.writing import replace_root, write_through
from fad.staging.record import recorder
from fad.staging.record_trace import RecordTrace
from fad.transforms.arguments.check import as_operand, as_value
from fad.transforms.custom_rules import RULES, Call

_NUMBERS = (bool, int, float, complex)
_active: ContextVar[Any] = ContextVar("ranks", default=None)
_of_tangents: ContextVar[frozenset] = ContextVar("batches of tangents", default=frozenset())


class NeedsTypes(BaseException):
    """A function that was run without types, in the hope that it calls no collective, calls one."""


class Same:
    """The mark of a value that is the same on all ranks; it keeps the value as each rank's own, once there is one.

    With `how`, which makes it each rank's own, it is that in every operation: its gradient is added up at one place.
    """

    __slots__ = ("varied", "how")

    def __init__(self, how: Callable | None = None):
        self.varied: Any = None
        self.how = how


class RankTrace(Trace):
    """The trace of `spmd`; a tracer's `info` is a `Same`, or None if each rank has its own value."""

    __slots__ = ("comm", "anchors", "samples")
    kind = "spmd"
    order = 0

    def __init__(self, comm: Communicator, anchors: list) -> None:
        super().__init__()
        self.comm = comm
        self.anchors = anchors  # arguments that are traced: so are the operands of all collectives, on every rank
        self.samples: Samples | None = None

    def new(self, x: Any, same: bool) -> Tracer:
        return tracer(x, self, Same() if same else None)

    def take(self, x: Any) -> Any:
        """Return a value from outside as each rank's own; in a vmap within, each example of it."""
        younger = type(x) is Tracer and x.owner.birth > self.birth
        return tied(x, self.new(np.float64(0.0), False)) if younger else self.new(x, False)

    def vary(self, x: Tracer) -> Any:
        """Return the value behind a tracer as each rank's own."""
        mark = x.info
        if mark is None or x.wrapped.dtype.kind not in "fc":
            return x.wrapped  # integers have no derivative
        if mark.varied is None:
            if self.samples is not None and self.samples.of_values and mark.how is None:
                self.samples.take(x.wrapped)
            mark.varied = vary(x.wrapped, comm=self.comm) if mark.how is None else mark.how(x.wrapped)
        return mark.varied

    def own(self, x: Any) -> Any:
        """Return a value of this trace as each rank's own; others are already."""
        if type(x) is Tracer and up_to_date(x).owner is self:
            return self.new(self.vary(x), False)
        return bind(vary, x, comm=self.comm) if _is_below(self, x) else x

    def process(self, prim: Primitive, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        if params.get("comm") is self.comm and (prim in TYPED or prim in GIVES_SAME or prim in TAKES_SAME):
            return self.communicate(prim, args, params)
        xs, own = [], False
        for x in args:
            if type(x) is Tracer and x.owner is self:
                own = own or x.info is None or x.info.how is not None
            elif type(x) not in _NUMBERS:
                x = self.from_outside(x, args)
                if x is NotImplemented:
                    return x
                own = True
            xs.append(x)
        if self.comm.debug and not own and self.samples is not None:
            self.samples.take_numbers([x for x in xs if type(x) in _NUMBERS])
        values = [(self.vary(x) if own else x.wrapped) if type(x) is Tracer and x.owner is self else x for x in xs]
        y = bind(prim, *values, **params)
        if prim.multi:
            return tuple([self.new(v, not own) for v in y])
        return y if y is NotImplemented else self.new(y, not own)

    def overwrite(self, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
        """Write a Python number, which is the same on all ranks; as an array it would count as each rank's own."""
        if type(v) not in _NUMBERS:
            return False
        replace_root(root, write_through(root, path, template, self.new(np.array(v, root.dtype), True), list(arrays)))
        return True

    def from_outside(self, x: Any, args: tuple) -> Any:
        """Return an operand that is no tracer of this trace, which counts as each rank's own."""
        if type(x) in (RankNumber, RankFloat):
            return plain_number(x)
        if type(x) is Tracer and depth(x):
            raise RankTypeError(
                "a value that is being differentiated reached a function under spmd from outside of its arguments, so "
                "that it is not known whether it is the same on all ranks: make it an argument, and say so with "
                f"replicated=, at {user_line()}"
            )
        return as_operand(x, args)

    def communicate(self, prim: Primitive, args: tuple, params: dict) -> Any:
        """Run a collective on a value of this trace, with the rules that go with its type."""
        x = args[0]
        mine = type(x) is Tracer and x.owner is self
        same = mine and x.info is not None
        typed = TYPED.get(prim, prim)
        if typed in TAKES_SAME:
            if mine and not same:
                if prim is vary:
                    raise _not_the_same("an argument")
                raise _not_the_same(f"the operand of {prim.name}")
            value = x.wrapped if mine else x
        else:
            value = self.vary(x) if mine else self.from_outside(x, args)
        if prim in TYPED:
            value = tie(value, self.anchors)
        return self.new(bind(typed, value, **params), typed in GIVES_SAME)

    def stop(self, x: Tracer) -> Any:
        value = x.wrapped
        return value.owner.stop(value) if type(value) is Tracer else value.copy()

    def number(self, x: Tracer, convert: Callable) -> Any:
        return convert(x.wrapped)

    def show(self, x: Tracer) -> str:
        return f"{x.wrapped} ({'the same on all ranks' if x.info is not None else 'of this rank'})"


def _not_the_same(what: str) -> RankTypeError:
    return RankTypeError(
        f"{what} was said to be the same on all ranks, and is computed from values that differ from rank to rank: "
        "take fad.distributed.all_reduce(x, 'mean') of it, or broadcast it, or do not say replicated"
    )


def tie(x: Any, anchors: list) -> Any:
    """Return a value that is traced by all that traces the anchors, and by what records the program."""
    found = find_untied(x, anchors)
    trace = recorder.get()
    if trace is not None and not any(_is_below(trace, a) for a in [x, *found]):
        found.append(tracer(np.float64(0.0), trace, trace.constant(0.0)))
    if not found:
        return x
    dtype = getattr(x, "dtype", None)
    if dtype is None or dtype.kind not in "fc":  # no derivative, but part of the program
        found = [a for a in found if type(a) is Tracer and isinstance(a.owner, RecordTrace)]
    return tied(x, *found) if found else x


def batches_of_tangents() -> frozenset:
    """Return the running vmaps that batch only tangents of what runs under `spmd`, as `jacfwd` and `hessian` do."""
    return _of_tangents.get()


def _find_batches_of_tangents(leaves: list) -> frozenset:
    seen = {trace for x in leaves for trace in traces_of(x)}
    return frozenset(set().union(*map(find_batches_of_tangents, leaves)) - seen)


def _is_below(trace: Any, x: Any) -> bool:
    return any(own is trace for own in traces_of(x))


def active(comm: Communicator) -> RankTrace | None:
    """Return the trace of the `spmd` that is running on a communicator."""
    trace = _active.get()
    if trace is comm:
        raise NeedsTypes
    return trace if type(trace) is RankTrace and trace.comm is comm and not trace.dead else None


@contextlib.contextmanager
def without_collectives(comm: Communicator) -> Iterator[None]:
    """Run what calls no collectives of a communicator; the first that it does call raises `NeedsTypes` instead."""
    token = _active.set(comm)
    try:
        yield
    finally:
        _active.reset(token)


@contextlib.contextmanager
def run_untyped() -> Iterator[None]:
    """Run what is not differentiated, on every rank alike: its collectives do not enter a derivative."""
    token = _active.set(None)
    try:
        yield
    finally:
        _active.reset(token)


def is_replicated(x: Any) -> bool | None:
    """Return whether a value is known to be the same on all ranks; None for what is not traced by `spmd`.

    >>> is_replicated(1.0) is None
    True
    """
    while type(x) is Tracer:
        if isinstance(x.owner, RankTrace):
            return up_to_date(x).info is not None
        x = x.wrapped
    return None


def _custom_rule(trace: RankTrace, call: Call, xs: tuple) -> list:
    """Run a function with rules of its own; it sees values without their types."""
    mine = [type(x) is Tracer and x.owner is trace for x in xs]
    own = any(x.info is None for x, m in zip(xs, mine, strict=True) if m) or not all(mine)
    values = [(trace.vary(x) if own else x.wrapped) if m else x for x, m in zip(xs, mine, strict=True)]
    return [trace.new(y, not own) for y in call(*values)]


RULES[RankTrace] = _custom_rule


def spmd(
    fun: Callable, comm: Communicator | None = None, *, replicated: Any, out: str = "replicated"
) -> Callable:  # fmt: skip
    """Return a function that every rank runs, whose values know whether they are the same on all ranks.

    It can be differentiated, by `fad.grad` and any other transform: its derivative is that of all ranks together.

    Parameters
    ----------
    fun : callable
        Calls collectives.
    comm : Communicator, optional
        The world of :func:`init` if not given.
    replicated : int, tuple of int, or True, keyword only
        The arguments that are the same on all ranks; True is all of them. The others are each rank's own.
    out : "replicated" or "varying", keyword only
        Whether what it returns is the same on all ranks, or each rank's own.

    Raises
    ------
    RankTypeError
        if what it returns differs from rank to rank and should not; if a value that is being differentiated comes from
        outside of the arguments.

    Examples
    --------
    >>> import numpy as np, fad
    >>> comm = fad.distributed.init()
    >>> f = spmd(lambda w, x: comm.all_reduce(np.sum(w * x)), comm, replicated=0)
    >>> fad.grad(f)(np.ones(2), np.arange(2.0))
    array([0., 1.])
    """
    if out not in ("replicated", "varying"):
        raise ValueError(f"out must be 'replicated' or 'varying', not {out!r}")

    @functools.wraps(fun, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        chosen = same_arguments(replicated, len(args))
        marks = [tree.map(lambda _, i=i: i in chosen, x) for i, x in enumerate(args)]
        flags = tree.leaves((tuple(marks), tree.map(lambda _: replicated is True, kwargs)))
        leaves, structure = tree.flatten((args, kwargs))
        return run_typed(fun, comm or world(), leaves, flags, structure, lambda trace, y: _output(trace, y, out))

    return run


def same_arguments(replicated: Any, n: int) -> set:
    """Return the numbers of those among n arguments that are said to be the same on all ranks."""
    which = range(n) if replicated is True else (replicated,) if isinstance(replicated, int) else replicated
    wrong = [i for i in which if not -n <= i < n]
    if wrong:
        raise ValueError(f"replicated names argument {wrong[0]}, and the function was called with {n}")
    return {i % n for i in which}


def run_typed(
    fun: Callable, comm: Communicator, leaves: list, flags: list, structure: Any, finish: Callable, hows: Any = None
) -> Any:
    """Run a function on leaves of which the flags say whether they are the same on all ranks.

    ``finish(trace, y)`` is what becomes of each leaf of its output; `hows` holds what makes each leaf a rank's own.
    """
    active(comm)
    leaves = [as_value(x, "an argument of spmd") if _is_number(x) else x for x in leaves]
    anchors = [x for x in leaves if type(x) is Tracer and depth(x)]
    trace = RankTrace(comm, anchors)
    swept = comm.size > 1 and any(map(is_swept, anchors))
    running = Running(fun)
    token = _active.set(trace)
    batches = _of_tangents.set(_of_tangents.get() | _find_batches_of_tangents(leaves))

    def call() -> Any:
        if swept or (comm.debug and comm.size > 1):
            trace.samples = Samples(trace.birth, swept)  # without those of a run whose place this one takes
        given = [trace.new(x, same) if _is_number(x) else x for x, same in zip(leaves, flags, strict=True)]
        for k, (x, same) in enumerate(zip(given, flags, strict=True)):
            if same and _is_number(x):
                x.info.how = hows[k] if hows else None
                if x.info.how is None and depth(x.wrapped):
                    trace.vary(x)  # at once, on every rank: where it is used may depend on the rank
        args, kwargs = tree.unflatten(structure, given)
        return fun(*args, **kwargs)

    try:
        result = running.run(call, trace.own_error)
        ys, out_tree = tree.flatten(result)
        outs = [finish(trace, y) for y in ys]
        if trace.samples is not None:
            trace.samples.compare(comm)
        return tree.unflatten(out_tree, outs)
    except Exception as error:
        trace.clarify(error)
        raise
    finally:
        _of_tangents.reset(batches)
        _active.reset(token)
        trace.finish()
        running.__exit__()


def _is_number(x: Any) -> bool:
    return type(x) is Tracer or hasattr(x, "dtype") or type(x) in _NUMBERS


def _output(trace: RankTrace, y: Any, out: str) -> Any:
    """Return an output as a value of those around, after checking its type."""
    y = up_to_date(y) if type(y) is Tracer else y
    mine = type(y) is Tracer and y.owner is trace
    same = y.info is not None if mine else type(y) in _NUMBERS or not hasattr(y, "dtype")
    if out == "replicated" and not same:
        raise RankTypeError(
            "a function under spmd returned a value that differs from rank to rank: return "
            "fad.distributed.all_reduce(loss, 'mean') for the loss, or say out='varying'"
        )
    if out == "replicated" and trace.comm.debug and trace.samples is not None and (mine or type(y) in _NUMBERS):
        trace.samples.take(y.wrapped if mine else np.asarray(y), returned=True)
    if not mine:
        return y
    return trace.vary(y) if out == "varying" else y.wrapped
