"""``linearize`` and ``linear_transpose``: the derivative at a point as a function of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import like
from fad.core.handles.buffers import flat_result
from fad.core.primitives.archetypes import STEEP
from fad.core.primitives.cotangent import densify
from fad.core.primitives.limits import take_derivative
from fad.core.runs.journal import effect_place
from fad.core.runs.transformed import LinearMap, as_run
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer, youngest
from fad.core.tracing.views import running_rules
from fad.errors import NotLinearError
from fad.transforms.arguments.check import (
    as_flat,
    as_value,
    check_like,
    flatten_like,
    flatten_primals,
    plain_values,
    run,
    separate,
    split_operands,
    zeros_like,
)
from fad.transforms.arguments.mutation import check_own, copy_result, own, snapshots
from fad.transforms.jvp import jvp
from fad.transforms.push_tangents import BEGINS_STEEP, push_tangents, push_with_care
from fad.transforms.vjp import vjp
from fad.typing import PyTree


class LinearTrace(Trace):
    """Records every operation with its operands, so that tangents can be pushed through again and again."""

    __slots__ = ("effects", "records", "snapshots", "steep")
    kind = "linearize"

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: Any = None
        self.steep = BEGINS_STEEP.get()  # whether a slope may have been infinite, as in `fad.transforms.jvp.JVPTrace`
        self.effects: list = []  # the positions of what others wait for: it is pushed whether or not an output needs it
        self.records: list = []  # (push, parents, multi): push(tangents) -> tangent of the result, or of all of them

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        if prim.differentiated is not None:
            return prim.differentiated(*args, **params)
        operands = split_operands(self, args)
        if operands is None:
            return NotImplemented
        values, tracers = operands
        parents = [t if t is None else t.info for t in tracers]
        y = bind(prim, *values, **params) if prim.partials is None or params else prim(*values)
        if prim.flat:
            return flat_result(prim, y, values)
        if prim.swept is not None:
            first = len(self.records)
            if (earlier := effect_place(self, first)) != first:
                return tracer(y, self, earlier) if y.dtype.kind in "fc" else y
            self.effects.append(first)
        values = self.keep_constants(values, parents)
        self.steep = self.steep or (prim.partials is not None and prim.partials[0] in STEEP)
        careful = self.steep and len(parents) == 2 and None in parents  # with a constant, which may be zero
        return self.attach(prim.multi, y, parents, _pusher(prim, y, values, params, careful))

    def keep(self, x: Any) -> Any:
        """Return a constant as the tangents are to see it, whatever is written into it until they are pushed."""
        if type(x) is not np.ndarray:
            return x
        if self.snapshots is None:
            self.snapshots = snapshots()
        return self.snapshots.take(x)

    def keep_constants(self, values: list, parents: list) -> list:
        """Return the operands of an operation, the constants among them as the tangents are to see them."""
        if None not in parents:
            return values
        return [x if p is not None else self.keep(x) for x, p in zip(values, parents, strict=True)]

    def attach(self, multi: bool, y: Any, parents: list, push: Callable) -> Any:
        """Record a step; return its results as tracers."""
        first = len(self.records)
        self.records.append((push, parents, multi))
        if not multi:
            return tracer(y, self, first) if y.dtype.kind in "fc" else as_flat(y)
        ys = tuple(y)
        self.records += [None] * (len(ys) - 1)
        return tuple([tracer(v, self, first + i) if v.dtype.kind in "fc" else v for i, v in enumerate(ys)])


def _pusher(prim: Any, y: Any, xs: list, params: dict, careful: bool) -> Callable:
    if careful:
        return lambda ts: push_with_care(prim, ts, y, xs, params)
    if prim.partials is not None:
        jvp = prim.jvp
        return lambda ts: jvp(ts, y, xs, params)
    return lambda ts: push_tangents(prim, ts, y, xs, params)


def _find_needed(records: list, outputs: list) -> list:
    """Return the records on which an output depends, with their positions; a recording given up may have left more."""
    kept: list = []
    wanted = set(outputs)
    first = len(records)
    for i in range(len(records) - 1, -1, -1):
        record = records[i]
        if record is not None:
            if i in wanted or (first > i + 1 and any(k in wanted for k in range(i, first))):
                kept.append((i, *record))
                wanted.update(record[1])
            first = i
    return kept[::-1]


def _push(steps: list, tangents: list, size: int) -> list:
    """Return the tangents at all positions of a recording, given those of its inputs."""
    slots: list = [None] * size
    slots[: len(tangents)] = tangents
    with running_rules():
        for i, push, parents, multi in steps:
            ts = [None if p is None else slots[p] for p in parents]
            for t in ts:
                if t is not None:
                    break
            else:
                continue  # all are zero
            if multi:
                found = push(ts)
                slots[i : i + len(found)] = found
            else:
                slots[i] = push(ts)
    return slots


def linearize(fun: Callable, *primals: PyTree, has_aux: bool = False) -> tuple:
    """Evaluate a function once, and return its value with its derivative at that point as a linear function.

    Parameters
    ----------
    fun : callable
    *primals : arrays or pytrees
        The point.
    has_aux : bool
        If true, `fun` returns ``(output, aux)``.

    Returns
    -------
    (out, f_jvp) or (out, f_jvp, aux)
        ``f_jvp(*tangents)`` returns the tangent of the output; a call costs one pass, without evaluating `fun` again.

    Raises
    ------
    IntegerInputError
        if a primal is an integer or a boolean.
    ShapeMismatchError
        if a tangent has another shape than its primal.

    Examples
    --------
    >>> y, push = linearize(lambda x: x * x, 3.0)
    >>> push(1.0), push(2.0)
    (np.float64(6.0), np.float64(12.0))
    """
    given, in_tree = flatten_primals(primals, "a primal of linearize")
    xs = own(given)
    trace = LinearTrace()
    trace.records += [None] * len(xs)

    def call() -> Any:
        return as_run(fun)(*tree.unflatten(in_tree, [tracer(x, trace, i) for i, x in enumerate(xs)]))

    ys, out_tree, aux = run(fun, trace, call, has_aux)
    check_own(xs, given)
    del trace.snapshots
    values = plain_values(ys, trace)
    size = len(trace.records)
    steps = _find_needed(trace.records, [*trace.effects, *[y.info for y in ys if _mine(y, trace)]])
    trace.records = []

    def f_jvp(*tangents):
        ts = flatten_like(tangents, in_tree, "the tangents given to a linearized function")
        ts = check_like(ts, xs, "a tangent")
        slots = _push(steps, ts, size)
        found = [take_derivative(densify(slots[y.info])) if _mine(y, trace) else None for y in ys]
        found = [zeros_like(v) if t is None else t for t, v in zip(found, values, strict=True)]
        return tree.unflatten(out_tree, separate(found, ts))

    out = tree.unflatten(out_tree, list(map(copy_result, values)))
    push = LinearMap("pushforward", fun, f_jvp, (in_tree, xs), (out_tree, values))
    return (out, push, tree.map(copy_result, aux)) if has_aux else (out, push)


def _mine(y: Any, trace: Trace) -> bool:
    return type(y) is Tracer and y.owner is trace


def linear_transpose(fun: Callable, *primals: PyTree) -> Callable:
    """Return the transpose of a linear function.

    Parameters
    ----------
    fun : callable
        A function linear in its arguments.
    *primals : arrays, pytrees or ShapeDtypeStructs
        Only their shapes and dtypes matter.

    Returns
    -------
    callable
        Maps a cotangent of the output to a tuple of cotangents of the inputs.

    Raises
    ------
    NotLinearError
        if `fun` is seen not to be linear (it is tried at zero and at one other point).

    Examples
    --------
    >>> import numpy as np
    >>> linear_transpose(lambda x: np.cumsum(x), np.zeros(3))(np.ones(3))
    (array([3., 2., 1.]),)
    """
    zeros = tree.map(lambda x: np.zeros(x.shape, x.dtype) if _is_spec(x) else zeros_like(as_value(x)), primals)
    out, pullback = vjp(fun, *zeros)
    _check_linear(fun, zeros, out)
    return pullback


def _is_spec(x: Any) -> bool:
    return not isinstance(x, (np.ndarray, np.generic, Tracer)) and hasattr(x, "shape") and not hasattr(x, "__array__")


def _check_linear(fun: Callable, zeros: tuple, out: Any) -> None:
    if youngest(tree.leaves((zeros, out))) is not None:
        return  # the values are another transform's business
    rng = np.random.default_rng(0)
    point = tree.map(lambda z: (z + like(z, rng.uniform(0.5, 1.5, np.shape(z)))).astype(z.dtype), zeros)
    value, tangent = jvp(fun, zeros, point)
    at_point = fun(*point)
    for y0, t, y in zip(tree.leaves(value), tree.leaves(tangent), tree.leaves(at_point), strict=True):
        scale = np.max(np.abs(t)) + np.max(np.abs(y)) if t.size else 0.0
        if np.any(y0 != 0) or np.any(np.abs(t - y) > 1e-3 * scale):
            raise NotLinearError(
                "linear_transpose needs a function that is linear in its arguments, and this one is not: "
                "f(0) is not 0, or f(x) is not its own derivative applied to x. Use fad.vjp for a nonlinear function"
            )
