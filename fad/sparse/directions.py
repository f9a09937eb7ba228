"""Several vectors that a linear function is applied to at once, each by itself: most of their parts are zero.

The vectors of a sparse derivative are zeros and ones. ``vmap`` would multiply with all of the zeros; here a tangent
that is zero is left out, and a number that repeats along an axis is kept once. What is linear is known of a few
operations; any other is run for each vector on whole arrays, as a loop would.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.limits import take_derivative
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer
from fad.ops.ufuncs.elementwise import add, divide, multiply, negative, subtract
from fad.ops.ufuncs.strong_zero import strong_multiply
from fad.transforms.arguments.check import split_operands

FEW = 16  # numbers that are looked at to see whether they are all zero

_ZERO = np.zeros(2)
_ZERO.flags.writeable = False
_DOUBLE = np.dtype(np.float64)
_LOOPS = ("branch", "call", "loop")
_MANY = 1 << 12  # steps of one run, beyond which it is a loop over elements


class NotByDirections(Exception):
    """A rule asks for a plain value of what differs between the vectors, or runs a loop: that is left to `vmap`."""


class DirectionsTrace(Trace):
    """The trace of several vectors. A tracer's `info` is the number of its step and what it is along each of them.

    None is zero, and an array may have length 1, or lack axes, where it repeats. `value` has the shape and dtype alone.
    Steps are noted as what `fad.sparse.program` compares: the operation, those that it works on, and what it is given.
    """

    __slots__ = ("count", "steps")
    kind = "fad.sparse"

    def __init__(self, count: int):
        super().__init__()
        self.count = count
        self.steps: list = []

    # --- the hot path: products with constants, and sums --------------------------------------------------------------

    def unary(self, prim: Any, x: Tracer) -> Any:
        if prim is not negative:
            return super().unary(prim, x)
        step, ts = x.info
        return self._wrap(x.wrapped, (prim, step), [t if t is None else -t for t in ts])

    def both(self, prim: Any, x: Tracer, y: Tracer) -> Any:
        a, b = x.wrapped, y.wrapped
        if (prim is add or prim is subtract) and a.shape == b.shape and a.dtype is b.dtype and type(a) is type(b):
            join = _add if prim is add else _subtract
            (i, ts), (j, us) = x.info, y.info
            return self._wrap(a, (prim, i, j), list(map(join, ts, us)))
        return super().both(prim, x, y)

    def left(self, prim: Any, x: Tracer, b: Any) -> Any:
        if prim in _SCALES:
            like, scale = _SCALES[prim]
            value = _like_product(x.wrapped, b)
            if value is not None:
                step, ts = x.info
                return self._wrap(value, (like, step, value.shape), [t if t is None else scale(t, b) for t in ts])
        return super().left(prim, x, b)

    def right(self, prim: Any, a: Any, y: Tracer) -> Any:
        return self.left(prim, y, a) if prim is multiply else super().right(prim, a, y)

    def _wrap(self, value: Any, step: Any, ts: list) -> Tracer:
        steps = self.steps
        out = tracer(value, self, (len(steps), ts))
        if len(steps) > _MANY:
            raise NotByDirections
        steps.append(step)
        return out

    # --- everything else ----------------------------------------------------------------------------------------------

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        operands = split_operands(self, args)
        if operands is None:
            return NotImplemented
        values, tracers = operands
        if prim.shape_only:
            return bind(prim, *values, **params)
        if prim.archetype in _LOOPS:
            raise NotByDirections
        linear = _is_linear(prim, values, tracers)
        found = [self._run(prim, values, tracers, params, k, linear) for k in range(self.count)]
        step = self._describe(prim, values, tracers, params)
        if prim.multi:
            columns = map(list, zip(*found, strict=True))
            return tuple([self._wrap(_stand_in(c[0]), (step, i), c) for i, c in enumerate(columns)])
        shaped = next((y for y in found if y is not None), None)
        if shaped is None:
            shaped = bind(prim, *values, **params)
        return self._wrap(_stand_in(shaped), step, list(map(_compress, found)) if linear else found)

    def _run(self, prim: Any, values: list, tracers: list, params: dict, k: int, linear: bool) -> Any:
        """Run an operation for vector number `k`."""
        ts = [None if t is None else t.info[1][k] for t in tracers]
        if linear and all(t is None for t in ts):
            return None
        xs = [v if t is None else _widen(t, v.shape) for v, t in zip(values, ts, strict=True)]
        return bind(prim, *xs, **params)

    def _describe(self, prim: Any, values: list, tracers: list, params: dict) -> tuple:
        """Return what places the result of an operation has, as far as that depends on more than on its operands'."""
        elementwise = prim.partials is not None or prim.dependence == "elementwise"
        constants = [np.shape(v) if elementwise or t is not None else v for v, t in zip(values, tracers, strict=True)]
        return prim, [None if t is None else t.info[0] for t in tracers], constants, params

    # --- questions ----------------------------------------------------------------------------------------------------

    def concrete(self, x: Tracer, convert: Callable) -> Any:
        raise NotByDirections

    number = concrete

    def as_array(self, x: Tracer, dtype: Any, copy: bool | None) -> Any:
        raise NotByDirections

    def stop(self, x: Tracer) -> Any:
        raise NotByDirections

    outcome = any_of = stop


def _stand_in(x: Any) -> Any:
    """Return zeros like an array, in the memory of one."""
    shape, dtype = x.shape, x.dtype
    return np.ndarray(shape, dtype, _ZERO, 0, (0,) * len(shape)) if shape else dtype.type(0)  # type: ignore[arg-type]


def _like_product(value: Any, b: Any) -> Any:
    """Return what has the shape and dtype of a product with a constant; None where that takes more than a look."""
    kind = type(b)
    if kind is float or kind is int:
        return value
    if kind is np.float64:
        return value if value.dtype is _DOUBLE else None
    if (kind is not np.ndarray and kind is not Tracer) or value.dtype is not b.dtype:
        return None
    shape, other = value.shape, b.shape
    return value if shape == other else _stand_in(np.broadcast_to(value, np.broadcast_shapes(shape, other)))


def _multiply(t: Any, b: Any) -> Any:
    one = type(t) is np.ndarray and t.size == 1 and type(b) is np.ndarray and t.ndim <= b.ndim and t.item() == 1.0
    return b if one else t * b


def _divide(t: Any, b: Any) -> Any:
    return t / b


# How an operation that is linear in its left operand multiplies a vector by the right one, and which has its places:
# with values that are not at hand, a product is a strong one.
_SCALES: dict[Any, tuple[Any, Callable]] = {
    multiply: (multiply, _multiply), divide: (divide, _divide), strong_multiply: (multiply, strong_multiply),
}  # fmt: skip


def _add(t: Any, u: Any) -> Any:
    return u if t is None else t if u is None else t + u


def _subtract(t: Any, u: Any) -> Any:
    return t if u is None else -u if t is None else t - u


def _is_linear(prim: Any, values: list, tracers: list) -> bool:
    """Whether an operation is linear in its traced operands together, so that of zeros it makes zeros."""
    if prim.archetype == "bilinear":
        return sum(t is not None for t in tracers) == 1
    if prim.archetype != "linear" and prim is not add and prim is not subtract:
        return False
    constants = [v for v, t in zip(values, tracers, strict=True) if t is None]
    return all(hasattr(v, "dtype") and v.dtype.kind not in "fc" for v in constants)


def _widen(t: Any, shape: tuple) -> Any:
    return t if t.shape == shape else np.broadcast_to(t, shape)


def _compress(t: Any) -> Any:
    """Return an array without the axes along which it repeats; None if it is seen to be zero."""
    if type(t) is not np.ndarray or 0 not in t.strides or not t.size:
        return t
    t = t[tuple([slice(0, 1) if stride == 0 else slice(None) for stride in t.strides])]
    return None if t.size <= FEW and not t.any() else t


def apply(run: Callable, seeds: list, like: list) -> tuple[list, list]:
    """Apply a linear function of arrays `like` these to several vectors.

    ``seeds[k]`` is what each vector has in place of array number k, None where that is zero. Return the results, each
    as its shape, its dtype and a list of what it is for each vector, and the steps of the run.
    """
    count = len(seeds[0])
    trace = DirectionsTrace(count)
    xs = [tracer(_stand_in(x), trace, (-1 - k, ts)) for k, (x, ts) in enumerate(zip(like, seeds, strict=True))]
    try:
        ys = run(*xs)
    finally:
        trace.finish()
    mine = [type(y) is Tracer and y.owner is trace for y in ys]
    trace.steps.append([y.info[0] if m else None for y, m in zip(ys, mine, strict=True)])
    found = [(y.shape, y.dtype, _take_limits(y.info[1]) if m else [y] * count) for y, m in zip(ys, mine, strict=True)]
    return found, trace.steps


def _take_limits(ts: list) -> list:
    return [take_derivative(t) if type(t) is Tracer else t for t in ts]


def stack(parts: list, start: int, stop: int) -> Any:
    """Return some of the results of `apply` as rows, one for each vector; they are used up."""
    dtype = np.result_type(*[dtype for _, dtype, _ in parts])
    if any(type(t) is Tracer for _, _, ts in parts for t in ts[start:stop]):
        zero = np.zeros((), dtype)
        wide = [[_widen(zero if t is None else t, shape).reshape(-1) for t in ts] for shape, _, ts in parts]
        return np.stack([np.concatenate(row) for row in zip(*wide, strict=True)][start:stop])
    sizes = [math.prod(shape) for shape, _, _ in parts]
    rows, at = np.empty((stop - start, sum(sizes)), dtype), 0
    for (shape, _, ts), size in zip(parts, sizes, strict=True):
        for k in range(start, stop):
            rows[k - start, at : at + size].reshape(shape)[...] = 0 if ts[k] is None else ts[k]
            ts[k] = None
        at += size
    return rows
