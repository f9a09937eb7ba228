"""How a collective is called: its arguments are checked and brought into the form that the primitives take.

A primitive (`fad.distributed.primitives`) works on one array, whose first axis is that of the ranks, if it has one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.tracing.tracer import Tracer, up_to_date
from fad.core.tracing.values import traces_of
from fad.core.tracing.views import RUNS
from fad.distributed import primitives as p
from fad.distributed.communicator import Communicator
from fad.distributed.ranks import RankTrace, active, batches_of_tangents, tie
from fad.distributed.ties import join_batches
from fad.errors import ShapeMismatchError, UnsupportedInputError
from fad.staging.record import recorder
from fad.transforms.arguments.check import as_value
from fad.transforms.batching.batch_trace import batching


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


def map_leaves(x: Any, one: Callable) -> Any:
    """Return what a function makes of an array, or of each leaf of a tree."""
    return one(x) if type(x) in (np.ndarray, Tracer) else tree.map(one, x)


def check_op(op: str) -> str:
    """Return the name of a reduction; raises ValueError if there is none of that name."""
    if op not in (*p.REDUCTIONS, "mean"):
        raise ValueError(f"op must be 'sum', 'mean', 'max', 'min' or 'prod', not {op!r}")
    return op


def as_numbers(x: Any, op: str) -> Any:
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


def check_axis(axis: int, ndim: int) -> int:
    """Return the number of an axis, counted from the first."""
    axis = check_integer(axis, "axis")
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim


def _is_half(x: Any) -> bool:
    return getattr(x, "dtype", None) == np.float16


def mean_of_sum(y: Any, x: Any, comm: Communicator) -> Any:
    """Return the mean of what the ranks gave of the sum of what `as_numbers` made of it."""
    return (y / comm.size).astype(np.float16) if _is_half(x) else y / comm.size


def describe_call(**given: Any) -> dict:
    """Return the parameters of a function that no engine needs, for the comparison of what the ranks call."""
    says = tuple([(k, v) for k, v in given.items() if v])
    return {"says": says} if says else {}


def describe_gather(x: Any, axis: int, tiled: bool) -> dict:
    """Return the parameters of a gather that no engine needs."""
    return describe_call(axis=check_axis(axis, max(np.ndim(x) + (not tiled), 1)), tiled=tiled)


def check_integer(n: Any, what: str) -> int:
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"{what} must be an integer, not {n!r}") from None


def check_tag(tag: int) -> int:
    tag = check_integer(tag, "tag")
    if tag < 0:
        raise ValueError(f"tag must not be negative, and is {tag}")
    return tag


def check_rank(n: int, comm: Communicator, what: str) -> int:
    """Return the number of a rank, counted from the first."""
    n = check_integer(n, what)
    if not -comm.size <= n < comm.size:
        raise ValueError(f"{what} must be a rank below {comm.size}, not {n}")
    return n % comm.size


def put_on_axis(y: Any, axis: int, tiled: bool) -> Any:
    """Move the ranks from the front to an axis of the result, or join them along it."""
    if not tiled:
        axis = check_axis(axis, y.ndim)
        return y if axis == 0 else np.moveaxis(y, 0, axis)
    axis = check_axis(axis, max(y.ndim - 1, 1))
    if y.ndim == 1:
        return y
    shape = y.shape[1:]
    y = y if axis == 0 else np.moveaxis(y, 0, axis)
    return y.reshape((*shape[:axis], y.shape[axis] * shape[axis], *shape[axis + 1 :]))


def take_from_axis(x: Any, axis: int, tiled: bool, comm: Communicator, what: str) -> Any:
    """Move the ranks to the front, from an axis of their number or of a multiple of it."""
    x = x if hasattr(x, "shape") else np.asarray(x)
    if not x.ndim:
        raise ShapeMismatchError(f"{what} needs an array with an axis for the ranks, and was given a number")
    axis = check_axis(axis, x.ndim)
    n = x.shape[axis]
    if n != comm.size if not tiled else n % comm.size:
        raise ShapeMismatchError(
            f"axis {axis} of the operand of {what} has length {n}, and must have "
            + (f"a multiple of the {comm.size} ranks" if tiled else f"one entry for each of the {comm.size} ranks")
        )
    if tiled:
        x = x.reshape((*x.shape[:axis], comm.size, n // comm.size, *x.shape[axis + 1 :]))
    return x if axis == 0 else np.moveaxis(x, axis, 0)


def check_pairs(pairs: Any, comm: Communicator) -> tuple:
    """Return pairs of ranks, a source and a target, in which no rank stands twice on one side."""
    found = tuple((check_rank(a, comm, "a source"), check_rank(b, comm, "a target")) for a, b in pairs)
    for ranks in zip(*found, strict=True):
        if len(set(ranks)) < len(ranks):
            raise ValueError(f"a rank stands twice as a source or as a target in the pairs {found}")
    return found


def add_methods(*functions: Callable) -> None:
    """Make functions of a communicator methods of it as well."""
    for function in functions:
        setattr(Communicator, function.__name__, _as_method(function))


def _as_method(function: Callable) -> Callable:
    def method(self: Communicator, *args: Any, **kwargs: Any) -> Any:
        return function(*args, comm=self, **kwargs)

    method.__name__ = function.__name__
    method.__doc__ = f"Do :func:`fad.distributed.{function.__name__}` on this communicator."
    return method
