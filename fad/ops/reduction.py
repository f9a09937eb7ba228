"""Reductions and scans: sum, prod, mean, var, max, cumsum and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.archetypes import linear
from fad.core.primitive import Primitive, public, register
from fad.core.samples import call
from fad.core.tracer import bind
from fad.ops.structural import normalize_axes, normalize_axis

NOTHING = np._NoValue  # NumPy's own mark for "not given"


def keep_shape(shape: tuple, axis: tuple) -> tuple:
    """Return a shape with the reduced axes kept as ones."""
    return tuple(1 if i in axis else d for i, d in enumerate(shape))


def kept(x: Any, shape: tuple, axis: tuple, keepdims: bool) -> Any:
    """Give a reduced array its axes back, as ones."""
    return x if keepdims else x.reshape(keep_shape(shape, axis))


def shifted(prim: Any):
    """Return the batching rule of a reduction: all axes move by one."""

    def batch(size, batched, xs, params):
        return bind(prim[0], *xs, **{**params, "axis": tuple(a + 1 for a in params["axis"])})

    return batch


def sample_axes(s):
    return [
        call(s.real(3, 4)),
        call(s.real(3, 4), axis=0),
        call(s.real(2, 3, 4), axis=(0, -1), keepdims=True),
        call(s.real()),
    ]


def _axes_samples(s):
    return [
        call(s.real(3, 4), axis=(0, 1), keepdims=False),
        call(s.real(2, 3, 4), axis=(0, 2), keepdims=True),
        call(s.real(3), axis=(), keepdims=False),
    ]


sum_p = linear(
    "sum_over",
    lambda x, *, axis, keepdims: np.add.reduce(x, axis=axis, keepdims=keepdims),
    lambda ct, x, *, axis, keepdims: np.broadcast_to(kept(ct, x.shape, axis, keepdims), x.shape),
    lambda size, batched, xs, params: bind(sum_p, *xs, **{**params, "axis": tuple(a + 1 for a in params["axis"])}),
    samples=_axes_samples,
    archetype="reduction",
)


def selected(a: Any, where: Any, neutral: Any) -> Any:
    """Apply a reduction's `where`: what it excludes becomes neutral, and has no derivative."""
    return a if where is NOTHING or where is True else np.where(where, a, neutral)


def _no_value(x):
    return x is NOTHING or x is None


@public(np.sum, [np.add, "reduce"], methods=("sum",), samples=lambda s: [
    *sample_axes(s), call(s.real(3, 4), axis=1, initial=2.0, where=s.bools(3, 4)), call(s.real(3), dtype="float32")])  # fmt: skip
def sum(a, axis=None, dtype=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Sum over axes."""
    a = selected(a if dtype is None else a.astype(dtype), where, 0.0)
    y = bind(sum_p, a, axis=normalize_axes(axis, a.ndim), keepdims=bool(keepdims) and keepdims is not NOTHING)
    return y if _no_value(initial) else y + initial
