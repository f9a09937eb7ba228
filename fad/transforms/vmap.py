"""``vmap``: run a function written for one example on a whole batch, operation by operation.

A batched tracer's value carries the batch axis in front, always; its shape does not show it.

Python's ``if`` and ``while`` on a batched value split the batch: the run is abandoned, and the function is run again
once for the elements of each outcome. A run knows the outcomes that brought it where it is (its *path*), so it goes the
same way up to there and further. A function with k paths costs at most 2k - 1 runs; the function must be pure.
An operation that raises for some elements splits the batch, too, for the function may catch the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.primitives.limits import take_limit
from fad.core.runs import effects
from fad.core.runs.running import Running
from fad.core.runs.transformed import as_run, transformed
from fad.core.tracing.ended_runs import run_to_end
from fad.core.tracing.tracer import Tracer, tracer
from fad.core.tracing.views import finding_writes, snapshot
from fad.errors import BatchingError, ItemAssignmentError
from fad.transforms.arguments.check import as_value, check_function, finish_output, lend, separate
from fad.transforms.arguments.undo_writes import outside
from fad.transforms.batching.batch_axes import (
    Unmapped,
    find_argument_axes,
    find_common_size,
    is_mapped,
    place_batch_axes,
)
from fad.transforms.batching.batch_trace import BatchTrace, Split, batching
from fad.typing import PyTree


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
        take (it must be pure), or raise. An error of some elements that the function catches is such a path.

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

        log: Any = None

        def run(elements, path, chunk):
            nonlocal log
            given = leaves if chunk is None else chunk
            if log is not None:
                log.restore()  # what a run before this one changed
            with effects.recording() as log:
                return _run(fun, in_tree, given, flags, elements, path, on_branch, before, chunked)

        if chunk_size is None or not chunked:
            outs, out_tree = _explore(run, leaves, flags, size)
        else:
            outs, out_tree = _in_chunks(run, leaves, flags, size, chunk_size)
        return tree.unflatten(out_tree, separate(place_batch_axes(outs, out_tree, out_axes), leaves))

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
    if all(type(y) is Unmapped and y.equals(column[0]) for y in column):
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
        if isinstance(outs, Split):
            waiting += [(elements[group], path) for path, group in reversed(outs.groups)]
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
    if path or chunked or isinstance(outs, Split):
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
            wrapped = [tracer(x, trace, None) if b else lend(x) for x, b in zip(leaves, flags, strict=True)]
            args, kwargs = tree.unflatten(in_tree, wrapped)
            trace.taken = 0
            return run_to_end(trace, lambda: as_run(fun)(*args, **kwargs))

        out = running.run(call, trace.own_error)
        ys, out_tree = tree.flatten(out)
        ys = [y if _is_own(y, trace) else _snapshot(finish_output(y)) for y in ys]
    except Split as split:
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
        outs.append(take_limit(y.wrapped, derivative=False) if mapped else Unmapped(y, trace.size, bool(trace.path)))
    return outs, out_tree


def _is_own(y: Any, trace: BatchTrace) -> bool:
    """Return whether an output is a value of a trace that nobody has written into."""
    return type(y) is Tracer and y.owner is trace and y.memory is None


def _snapshot(y: Any) -> Any:
    return snapshot(y) if type(y) is Tracer else y
