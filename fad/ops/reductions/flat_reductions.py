"""Reductions without a derivative: positions of extremes, whether all or any are true, how many are not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.archetypes import flat
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import Primitive, public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array, find_reduced_axes, normalize_axis
from fad.ops.reductions.reduction import (
    NOTHING,
    as_mask,
    is_true,
    reducer,
    sample_axes,
    sample_primitive,
    sample_reduce,
    select,
    shift_axes,
)

# --- flat reductions ------------------------------------------------------------------------------------------------


def _flat_reduction(name, forward, samples, doc, positions=False):
    batch = lambda size, batched, xs, params: bind(prim, *xs, **shift_axes(params))
    prim: Primitive = flat(name, forward, batch=batch, samples=samples, positions=positions, doc=doc)
    return prim


def _sample_position(s):
    return [call(s.real(3, 4), axis=1, keepdims=False), call(s.real(3, 4), axis=0, keepdims=True)]


argmax_p: Any = _flat_reduction(
    "position_of_max", lambda x, *, axis, keepdims: np.argmax(x, axis, keepdims=keepdims), _sample_position,
    "The index of the maximum along an axis.", positions=True,
)
argmin_p: Any = _flat_reduction(
    "position_of_min", lambda x, *, axis, keepdims: np.argmin(x, axis, keepdims=keepdims), _sample_position,
    "The index of the minimum along an axis.", positions=True,
)
all_p: Any = _flat_reduction(
    "all_over", lambda x, *, axis, keepdims: np.all(x, axis=axis, keepdims=keepdims), sample_primitive,
    "Whether all elements over axes are not zero.",
)
any_p: Any = _flat_reduction(
    "any_over", lambda x, *, axis, keepdims: np.any(x, axis=axis, keepdims=keepdims), sample_primitive,
    "Whether any element over axes is not zero.",
)
count_p: Any = _flat_reduction(
    "count_over", lambda x, *, axis, keepdims: np.sum(x != 0, axis=axis, keepdims=keepdims), sample_primitive,
    "How many elements over axes are not zero.",
)


def position(prim: Primitive, a: Any, axis: Any, keepdims: Any) -> Any:
    """Run argmax or argmin; without an axis, over the flattened array."""
    a, keepdims = as_array(a), is_true(keepdims)
    if axis is not None and not (a.ndim == 0 and axis in (0, -1)):
        return bind(prim, a, axis=normalize_axis(axis, a.ndim), keepdims=keepdims)
    y = bind(prim, a.reshape((a.size,)), axis=0, keepdims=False)
    return y.reshape((1,) * a.ndim) if keepdims else y


def _sample_arg(s):
    return [call(s.real(3, 4)), call(s.real(3, 4), axis=-1), call(s.real(3, 4), 0, keepdims=True)]


@public(np.argmax, methods=("argmax",), flat=True, samples=_sample_arg)
def argmax(a, axis=None, out=None, *, keepdims=NOTHING):
    """Return the position of the (first) maximum; flat.

    >>> fad.numpy.argmax(np.array([1.0, 3.0, 2.0]))
    np.int64(1)
    """
    refuse_out(out)
    return position(argmax_p, a, axis, keepdims)


@public(np.argmin, methods=("argmin",), flat=True, samples=_sample_arg)
def argmin(a, axis=None, out=None, *, keepdims=NOTHING):
    """Return the position of the (first) minimum; flat.

    >>> fad.numpy.argmin(np.array([1.0, 3.0, 2.0]))
    np.int64(0)
    """
    refuse_out(out)
    return position(argmin_p, a, axis, keepdims)


def _truth(prim, a, axis, out, keepdims, where, neutral):
    refuse_out(out)
    a, mask = as_array(a), as_mask(where)
    axes = find_reduced_axes(axis, a.ndim)
    a = a if mask is True else select(a != 0, mask, neutral)
    return bind(prim, a, axis=axes, keepdims=is_true(keepdims))


@public(np.all, methods=("all",), flat=True, samples=sample_axes)
def all(a, axis=None, out=None, keepdims=NOTHING, *, where=NOTHING):
    """Return whether all elements along axes are nonzero; flat.

    >>> fad.numpy.all([True, False])
    np.False_
    """
    return _truth(all_p, a, axis, out, keepdims, where, True)


@public(np.any, methods=("any",), flat=True, samples=sample_axes)
def any(a, axis=None, out=None, keepdims=NOTHING, *, where=NOTHING):
    """Return whether any element along axes is nonzero; flat.

    >>> fad.numpy.any([True, False])
    np.True_
    """
    return _truth(any_p, a, axis, out, keepdims, where, False)


reducer(np.logical_and, lambda a, axis, keepdims=False, where=True: all(a, axis, keepdims=keepdims, where=where),
        sample_reduce, flat=True)  # fmt: skip
reducer(np.logical_or, lambda a, axis, keepdims=False, where=True: any(a, axis, keepdims=keepdims, where=where),
        sample_reduce, flat=True)  # fmt: skip


@public(np.count_nonzero, flat=True, samples=sample_axes)
def count_nonzero(a, axis=None, *, keepdims=False):
    """Count the nonzero elements along axes; flat.

    >>> fad.numpy.count_nonzero(np.array([0.0, 3.0, 2.0]))
    np.int64(2)
    """
    a = as_array(a)
    return bind(count_p, a, axis=find_reduced_axes(axis, a.ndim), keepdims=bool(keepdims))
