"""``vmap``: run a function written for one example on a whole batch, operation by operation.

A batched tracer's value carries the batch axis in front, always; its shape does not show it.

Python's ``if`` and ``while`` on a batched value split the batch: the run is abandoned, and the function is run again
once for the elements of each outcome. A run knows the outcomes that brought it where it is (its *path*), so it goes the
same way up to there and further. A function with k paths costs at most 2k - 1 runs; the function must be pure.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import tree
from fad.backends import host, made_like
from fad.core.buffers import borrow
from fad.core.conversions import instead_of_number
from fad.core.limits import take_limit
from fad.core.overlay import Running
from fad.core.tracer import Trace, Tracer, bind, tracer
from fad.core.transformed import as_run, transformed
from fad.core.values import class_of_element
from fad.core.views import RUNS, copy_layout, finding_writes, fresh, own_memory, replace_root, shares, snapshot
from fad.errors import BatchedValueError, BatchingError, ItemAssignmentError, LoopFallbackWarning
from fad.transforms.batch_axes import (
    Unmapped,
    find_argument_axes,
    find_common_size,
    is_mapped,
    place_batch_axes,
    put_behind_batch,
)
from fad.transforms.check import as_operand, as_value, check_function, finish_output
from fad.transforms.undo_writes import outside
from fad.typing import PyTree

_warned: set[str] = set()


class _Split(BaseException):
    """Batch elements answer a question of control flow differently. Not an Exception: user code may catch those."""

    def __init__(self, trace: BatchTrace, groups: list):
        self.trace = trace
        self.groups = groups  # [(outcome, numbers of elements)]


batching: ContextVar[tuple] = ContextVar("batching", default=())
"""The traces of the runs under vmap that are in progress, outermost first."""


@contextlib.contextmanager
def replaced(trace: BatchTrace) -> Iterator[None]:
    """Run the same batch by another vmap, in the place of one that is in progress."""
    token = batching.set(tuple([other for other in batching.get() if other is not trace]))
    try:
        yield
    finally:
        batching.reset(token)


class BatchTrace(Trace):
    """The trace of vmap, for one run over the batch elements that share a path."""

    __slots__ = ("size", "path", "taken", "on_branch", "writes")
    kind = "vmap"
    batched = True

    def __init__(self, size: int, path: tuple, on_branch: str):
        super().__init__()
        self.size = size
        self.path = path
        self.taken = 0
        self.on_branch = on_branch
        self.writes = False

    def note_writes(self) -> None:
        self.writes = True

    def overwrite(self, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
        """Write into memory that only this trace knows, at an index that is the same for every example."""
        mine = type(v) is Tracer and v.owner is self
        value = v.wrapped if mine else v
        if RUNS.depth > 1 or arrays or root.owner is not self or Tracer in (type(root.wrapped), type(value)):
            return False
        if not all(prim.view.in_place for prim, _ in path):
            return False
        memory = own_memory(root, _copy)
        place = root.wrapped
        for prim, params in path:
            place = prim.batch(self if prim.needs_trace else self.size, (True,), [place], params)
        if path and not shares(place, root.wrapped):
            return False
        place = place[(slice(None), *template)]
        place[...] = put_behind_batch(value, place) if mine else value
        memory.version += 1
        return True

    def give_back(self, x: Tracer) -> None:
        """Let an array from outside stand for what the last example wrote, as after a loop over the examples."""
        y = x.wrapped[-1]
        replace_root(x, y if type(y) is Tracer else tracer(np.array(y), Trace.of_plain, None))

    def shape(self, x: Tracer) -> tuple[int, ...]:
        return x.wrapped.shape[1:]

    def class_of(self, x: Tracer) -> type:
        return class_of_element(x.wrapped)

    def show(self, x: Tracer) -> str:
        return f"{self.size} batch elements of shape {self.shape(x)}: {x.wrapped}"

    def format(self, x, spec):
        if self.shape(x):
            return format(np.empty(self.shape(x)), spec)  # which NumPy refuses
        return f"{self.size} batch elements of shape (): [{' '.join(format(v, spec) for v in x.wrapped)}]"

    def stop(self, x: Tracer) -> Tracer:
        v = x.wrapped
        return tracer(v.owner.stop(v) if type(v) is Tracer else v, self, None)

    # --- the hot path: elementwise operations of values that need no aligning -----------------------------------

    def unary(self, prim: Any, x: Tracer) -> Any:
        if self.writes or self.dead or prim.partials is None:
            return bind(prim, x)
        return self._wrap(prim(x.wrapped))

    def both(self, prim: Any, x: Tracer, y: Tracer) -> Any:
        a, b = x.wrapped, y.wrapped
        if self.writes or self.dead or prim.partials is None or a.ndim != b.ndim:
            return bind(prim, x, y)
        return self._wrap(prim(a, b))

    def left(self, prim: Any, x: Tracer, b: Any) -> Any:
        if type(b) not in (float, int) or self.writes or self.dead or prim.partials is None:
            return super().left(prim, x, b)
        return self._wrap(prim(x.wrapped, b))

    def right(self, prim: Any, a: Any, y: Tracer) -> Any:
        if type(a) not in (float, int) or self.writes or self.dead or prim.partials is None:
            return super().right(prim, a, y)
        return self._wrap(prim(a, y.wrapped))

    def _wrap(self, y: Any) -> Tracer:
        out = Tracer()
        out.wrapped = y
        out.owner = self
        out.info = None
        out.memory = None
        return out

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        values, batched = [], []
        for x in args:
            if type(x) is Tracer and x.owner is self:
                values.append(x.wrapped)
                batched.append(True)
            else:
                x = as_operand(x, args)
                if x is NotImplemented:
                    return x
                values.append(x)
                batched.append(False)
        if prim.batch is None:
            y = self._loop(prim, values, batched, params)
        elif prim.needs_trace:
            y = prim.batch(self, tuple(batched), values, params)
        else:
            y = prim.batch(self.size, tuple(batched), values, params)
        if prim.multi:
            return tuple(tracer(v, self, None) for v in y)
        out = tracer(y, self, None)
        if self.writes and not (prim.view is not None and prim.view.is_view(args[0], out, params)):
            out.wrapped = fresh(y, values)
        return out

    def _loop(self, prim: Any, values: list, batched: list, params: dict) -> Any:
        if prim.name not in _warned:
            _warned.add(prim.name)
            warnings.warn(
                f"{prim.name} has no batching rule; vmap runs it in a loop over the batch",
                LoopFallbackWarning,
                stacklevel=4,
            )
        elements = [
            bind(prim, *[v[i] if b else v for v, b in zip(values, batched, strict=True)], **params)
            for i in range(self.size)
        ]
        if prim.multi:
            return tuple(np.stack(column) for column in zip(*elements, strict=True))
        return np.stack(elements)

    # --- splitting by path --------------------------------------------------------------------------------------

    def concrete(self, x: Tracer, convert: Callable) -> Any:
        if x.wrapped.shape[1:] != ():
            if x.size == 1 and convert is not operator.index:
                return self.concrete(x.reshape(()), convert)
            if convert is operator.index:
                raise TypeError("only integer scalar arrays can be converted to a scalar index")
            raise ValueError(
                f"the truth value of an array of shape {self.shape(x)} is ambiguous: use a.any() or a.all()"
            )
        return convert(self.decide(x.wrapped))

    def decide(self, value: Any) -> Any:
        """Return the one outcome of a batched value in this run; split the batch if there are several.

        `value` carries the batch axis in front; the outcome may be an array (a boolean mask).
        """
        if self.dead:
            self.check_alive()
        plain = _plain(value)
        if self.taken < len(self.path):
            outcome = self.path[self.taken]
            self.taken += 1
            if np.shape(outcome) != plain.shape[1:] or outcome.dtype != plain.dtype:
                raise BatchingError(
                    "the batch elements of a vmap take different paths, and the function, run again for some of them, "
                    f"came to a question of shape {plain.shape[1:]} and dtype {plain.dtype} where it had been one of "
                    f"shape {np.shape(outcome)} and dtype {outcome.dtype}: it does not do the same twice"
                )
            return outcome
        if not self.size:
            return made_like(np.zeros_like, plain, plain.shape[1:])[()]  # the batch is empty: any will do
        flat = plain.reshape(self.size, -1)
        if self.size and (flat == flat[:1]).all():
            outcome = plain[0]
            self.path += (outcome,)
            self.taken += 1
            return outcome
        if self.on_branch == "error":
            raise BatchedValueError(
                "Python control flow on a batched value, and on_branch='error'. "
                "Use np.where, or vmap(..., on_branch='split')"
            )
        _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        self.withheld = _Split(self, [(plain[i], np.flatnonzero(inverse == k)) for k, i in enumerate(first)])
        raise self.withheld

    def outcome(self, x: Tracer) -> Any:
        return self.decide(x.wrapped)

    def number(self, x: Tracer, convert: Callable) -> Any:
        self.check_alive()
        raise self.refusal(
            BatchedValueError(
                f"a Python number was requested of a batched value, which stands for {self.size} numbers inside vmap. "
                f"{instead_of_number()}; to see the numbers, print(x)"
            )
        )


def _plain(x: Any) -> Any:
    """Return the plain array behind a value that other transforms may be tracing too."""
    while type(x) is Tracer:
        # An outer vmap splits its own batch first, so that its elements agree on what all inner ones do.
        x = x.owner.decide(x.wrapped) if isinstance(x.owner, BatchTrace) else x.owner.outcome(x)
    return np.asarray(host(x))


# --- the transform ----------------------------------------------------------------------------------------------


def vmap(
    fun: Callable,
    in_axes: PyTree = 0,
    out_axes: PyTree = 0,
    *,
    axis_size: int | None = None,
    chunk_size: int | None = None,
    on_branch: str = "split",
) -> Callable:
    """Return a function that maps `fun` over an axis of its arguments, all batch elements at once.

    Parameters
    ----------
    fun : callable
        A function of one batch element.
    in_axes : int, None, or a tree prefix of them
        The axis of each positional argument to map over; None passes it whole. Keyword arguments are mapped over 0.
    out_axes : int, None or a tree prefix of them
        Where the mapped axis appears in each output; None for one that depends on no mapped argument, returned once.
    axis_size : int, keyword only
        The number of batch elements, needed only if no argument is mapped.
    chunk_size : int, keyword only
        Run at most that many batch elements at once, to bound the memory.
    on_branch : "split" or "error", keyword only
        What an ``if`` or ``while`` on a batched value does: run the function once for each path that batch elements
        take (it must be pure), or raise.

    Returns
    -------
    callable
        Its results are those of a loop over the batch elements, stacked.

    Raises
    ------
    BatchingError
        If axes or sizes do not fit.
    BatchedValueError
        If a batched value would have to become one plain number, as in ``float(x)``.

    Examples
    --------
    >>> import numpy as np
    >>> vmap(lambda x: x * 2 if x > 0 else x)(np.array([-1.0, 1.0]))
    array([-1.,  2.])

    One argument for all, another one by rows:

    >>> vmap(np.dot, in_axes=(None, 0))(np.array([1.0, 10.0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([21., 43.])
    """
    check_function(fun, "vmap")
    if on_branch not in ("split", "error"):
        raise ValueError(f"on_branch must be 'split' or 'error', not {on_branch!r}")
    if chunk_size is not None and (not isinstance(chunk_size, (int, np.integer)) or chunk_size < 1):
        raise ValueError(f"chunk_size must be a positive int or None, not {chunk_size!r}")

    @transformed("vmap", fun)
    def mapped(*args, **kwargs):
        leaves, in_tree = tree.flatten((args, kwargs))
        if type(in_axes) is int and not kwargs:
            axes = [in_axes] * len(leaves)
        else:
            axes = find_argument_axes(in_axes, args, kwargs)
        leaves = [as_value(x, "an argument of vmap") if a is not None else x for x, a in zip(leaves, axes, strict=True)]
        size = find_common_size(leaves, axes, axis_size)
        leaves = [x if a is None else _front(x, a) for x, a in zip(leaves, axes, strict=True)]
        flags = [a is not None for a in axes]
        before = outside(fun)
        chunked = chunk_size is not None and size > chunk_size

        def run(elements, path, chunk):
            given = leaves if chunk is None else chunk
            return _run(fun, in_tree, given, flags, elements, path, on_branch, before, chunked)

        if chunk_size is None or not chunked:
            outs, out_tree = _explore(run, leaves, flags, size)
        else:
            outs, out_tree = _in_chunks(run, leaves, flags, size, chunk_size)
        return place_batch_axes(outs, out_tree, out_axes)

    return mapped


def _front(x: Any, axis: int) -> Any:
    return x if axis == 0 else np.moveaxis(x, axis, 0)


def _in_chunks(run: Callable, leaves: list, flags: list, size: int, chunk: int) -> tuple:
    parts = []
    for start in range(0, size, chunk):
        some = [x[start : start + chunk] if b else x for x, b in zip(leaves, flags, strict=True)]
        outs, out_tree = _explore(run, some, flags, min(chunk, size - start))
        parts.append(outs)
    columns = zip(*parts, strict=True)
    return [_joined_chunks(column) for column in columns], out_tree


def _joined_chunks(column: tuple) -> Any:
    if all(type(y) is Unmapped for y in column):
        return Unmapped(column[0].value, sum(y.size for y in column))
    return np.concatenate([is_mapped(y) for y in column])


def _explore(run: Callable, leaves: list, flags: list, size: int) -> tuple:
    """Run the batch together, split by path as often as needed; return stacked outputs."""
    waiting = [(np.arange(size), ())]
    done = []
    out_tree = None
    while waiting:
        elements, path = waiting.pop()
        whole = len(elements) == size
        some = leaves if whole else [x[elements] if b else x for x, b in zip(leaves, flags, strict=True)]
        outs, found = run(len(elements), path, some)
        if isinstance(outs, _Split):
            waiting += [(elements[group], (*outs.trace.path, outcome)) for outcome, group in reversed(outs.groups)]
            continue
        if out_tree is not None and found != out_tree:
            raise BatchingError(f"the batch elements of a vmap returned different structures: {out_tree} and {found}")
        out_tree = found
        done.append((elements, outs))
    if len(done) == 1:
        return done[0][1], out_tree
    order = np.argsort(np.concatenate([elements for elements, _ in done]))
    columns = zip(*[outs for _, outs in done], strict=True)
    return [_join(tuple(map(is_mapped, column)))[order] for column in columns], out_tree


def _join(parts: tuple) -> Any:
    shapes = {p.shape[1:] for p in parts}
    if len(shapes) > 1:
        raise BatchingError(f"the batch elements of a vmap returned arrays of different shapes: {sorted(shapes)}")
    return np.concatenate(parts)


def _run(fun, in_tree, leaves, flags, size, path, on_branch, before, chunked) -> tuple:
    """Run the function once over batch elements that share a path.

    Returns the output leaves, batch axis in front, and their structure; or ``(split, None)`` if the elements disagreed.
    """
    trace = BatchTrace(size, path, on_branch)
    with finding_writes(since=trace.birth) as written:
        outs, out_tree = _run_once(fun, in_tree, leaves, flags, trace, before)
    if path or chunked or isinstance(outs, _Split):
        x = written.first_of_others()
        x = before.first_written() if x is None else x
        if x is not None:
            before.undo()
            why = "chunk_size cuts the batch" if chunked else "the examples take different paths"
            raise ItemAssignmentError(
                f"a function under vmap wrote into an array of shape {x.shape} and dtype {x.dtype} from outside, and "
                f"runs several times since {why}: make the array in the function, and return it"
            )
    return outs, out_tree


def _run_once(fun, in_tree, leaves, flags, trace, before) -> tuple:
    running = Running(fun, before=before.small)
    token = batching.set((*batching.get(), trace))
    try:

        def call() -> Any:
            wrapped = [tracer(x, trace, None) if b else borrow(x) for x, b in zip(leaves, flags, strict=True)]
            args, kwargs = tree.unflatten(in_tree, wrapped)
            trace.taken = 0
            return as_run(fun)(*args, **kwargs)

        out = running.run(call, trace.own_error)
        ys, out_tree = tree.flatten(out)
        ys = [y if _is_own(y, trace) else _snapshot(finish_output(y)) for y in ys]
    except _Split as split:
        if split.trace is not trace:
            raise
        split.__traceback__ = split.__context__ = trace.withheld = None  # they hold on to what the function made
        return split, None
    except Exception as error:
        trace.clarify(error)
        raise
    finally:
        batching.reset(token)
        trace.finish()
        running.__exit__()
    outs = []
    for y in ys:
        mapped = type(y) is Tracer and y.owner is trace
        outs.append(take_limit(y.wrapped, derivative=False) if mapped else Unmapped(y, trace.size))
    return outs, out_tree


def _is_own(y: Any, trace: BatchTrace) -> bool:
    """Return whether an output is a value of a trace that nobody has written into."""
    return type(y) is Tracer and y.owner is trace and y.memory is None


def _snapshot(y: Any) -> Any:
    return snapshot(y) if type(y) is Tracer else y


def _copy(root: Tracer) -> None:
    root.wrapped = copy_layout(root.wrapped)
