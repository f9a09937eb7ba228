"""Reductions that leave NaN out: nansum, nanmax, nanmean, nanvar, nanargmax and related functions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.ops.arrangement.structural import as_array
from fad.ops.layout.memory_order import lay_out_as_copy
from fad.ops.reductions.flat_reductions import argmax_p, argmin_p, position
from fad.ops.reductions.norms import root
from fad.ops.reductions.reduction import (
    NOTHING,
    absent,
    as_mask,
    as_scalar,
    check_mask,
    find_reduced_axes,
    is_true,
)
from fad.ops.reductions.reduction import max as largest
from fad.ops.reductions.reduction import min as smallest
from fad.ops.reductions.reduction import prod as product
from fad.ops.reductions.reduction import sum as total
from fad.ops.reductions.statistics import find_any, mean, variance, warn_if

# --- leaving NaN out ------------------------------------------------------------------------------------------------
# By this library's own reductions, which take `where` and `initial` on a device too.


def _without(a: Any, neutral: Any) -> Any:
    """Return an array with a neutral element for each NaN."""
    a = as_array(a)
    return lay_out_as_copy(np.where(np.isnan(a), neutral, a), a) if a.dtype.kind in "fc" else a


def _holes(s, *shape):
    x = s.real(*shape)
    x.reshape(-1)[1] = np.nan
    return x


def _sample_nan(s):
    return [
        call(_holes(s, 3, 4)),
        call(_holes(s, 3, 4), axis=1),
        call(_holes(s, 2, 3, 4), axis=(0, -1), keepdims=True),
        call(s.real(4)),
    ]


def _sample_nan_where(s):
    return [*_sample_nan(s), call(_holes(s, 3, 4), axis=1, where=np.array([True, False, True, True]))]


def _sample_nan_total(s):
    mask = np.array([True, False, True, True])
    return [*_sample_nan_where(s), call(_holes(s, 3, 4), axis=1, initial=2.5, where=mask)]


def _sample_nan_scan(s):
    return [call(_holes(s, 5)), call(_holes(s, 3, 4), axis=1)]


@public(np.nansum, samples=_sample_nan_total)
def nansum(a, axis=None, dtype=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Sum over axes, NaN counting as 0.

    >>> fad.grad(fad.numpy.nansum)(np.array([2.0, np.nan, 3.0]))
    array([1., 0., 1.])
    """
    refuse_out(out)
    return total(_without(a, 0.0), axis, dtype, keepdims=is_true(keepdims), **_list_given(initial, where))


@public(np.nanprod, samples=_sample_nan_total)
def nanprod(a, axis=None, dtype=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Multiply over axes, NaN counting as 1.

    >>> fad.grad(fad.numpy.nanprod)(np.array([2.0, np.nan, 3.0]))
    array([3., 0., 2.])
    """
    refuse_out(out)
    return product(_without(a, 1.0), axis, dtype, keepdims=is_true(keepdims), **_list_given(initial, where))


def _list_given(initial, where):
    return {k: v for k, v in (("initial", initial), ("where", where)) if v is not NOTHING}


@public(np.nancumsum, samples=_sample_nan_scan)
def nancumsum(a, axis=None, dtype=None, out=None):
    """Return the running sum, NaN counting as 0.

    >>> fad.numpy.nancumsum(np.array([2.0, np.nan, 3.0]))
    array([2., 2., 5.])
    """
    return np.cumsum(_without(a, 0.0), axis, dtype, out)


@public(np.nancumprod, samples=_sample_nan_scan)
def nancumprod(a, axis=None, dtype=None, out=None):
    """Return the running product, NaN counting as 1.

    >>> fad.numpy.nancumprod(np.array([2.0, np.nan, 3.0]))
    array([2., 2., 6.])
    """
    return np.cumprod(_without(a, 1.0), axis, dtype, out)


def _nan_extreme(reduce, worst, a, axis, out, keepdims, initial, where):
    refuse_out(out)
    a = as_array(a)
    if a.dtype.kind not in "fc":
        return reduce(a, axis, keepdims=is_true(keepdims), **_list_given(initial, where))
    as_mask(where)  # before the axes are looked at
    missing = np.isnan(a)
    if 0 in [a.shape[i] for i in find_reduced_axes(axis, a.ndim)] and absent(initial):
        raise ValueError("zero-size array to reduction operation which has no identity")
    y = reduce(_without(a, worst), axis, keepdims=is_true(keepdims), **_list_given(initial, where))
    none = np.all(missing, axis, keepdims=is_true(keepdims))
    if absent(initial):
        warn_if(none, "All-NaN slice encountered")
        y = as_scalar(np.where(none, np.nan, y))
    return y


def _sample_nan_extreme(s):
    mask = np.array([[True, False, True, True], [False, True, True, False], [False] * 4])
    return [
        *_sample_nan(s),
        call(_holes(s, 3, 4), axis=1, initial=0.1, where=mask),
        call(_holes(s, 3, 4), axis=1, initial=-0.1, where=mask),
        call(s.real(0, 3), axis=0, initial=0.5),
    ]


@public(np.nanmax, samples=_sample_nan_extreme)
def nanmax(a, axis=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Return the maximum over axes, leaving NaN out; ties share the derivative.

    >>> fad.grad(fad.numpy.nanmax)(np.array([2.0, np.nan, 3.0]))
    array([0., 0., 1.])
    """
    return _nan_extreme(largest, -np.inf, a, axis, out, keepdims, initial, where)


@public(np.nanmin, samples=_sample_nan_extreme)
def nanmin(a, axis=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Return the minimum over axes, leaving NaN out; ties share the derivative.

    >>> fad.grad(fad.numpy.nanmin)(np.array([2.0, np.nan, 3.0]))
    array([1., 0., 0.])
    """
    return _nan_extreme(smallest, np.inf, a, axis, out, keepdims, initial, where)


def _present(a, axis, where):
    """Return the axes of a reduction that leaves NaN out, and a mask of the elements that count."""
    mask = as_mask(where)
    axes = find_reduced_axes(axis, a.ndim)
    check_mask(a, mask)
    return axes, ~np.isnan(a) & mask


@public(np.nanmean, samples=_sample_nan_where)
def nanmean(a, axis=None, dtype=None, out=None, keepdims=NOTHING, *, where=NOTHING):
    """Return the mean over axes, leaving NaN out.

    >>> fad.grad(fad.numpy.nanmean)(np.array([2.0, np.nan, 3.0]))
    array([0.5, 0. , 0.5])
    """
    refuse_out(out)
    a = as_array(a)
    if a.dtype.kind not in "fc":
        return mean(a, axis, dtype, keepdims=is_true(keepdims), where=where)
    axis, mask = _present(a, axis, where)
    warn_if(~np.any(mask, axis), "Mean of empty slice")
    with np.errstate(invalid="ignore"):
        return mean(a, axis, dtype, keepdims=is_true(keepdims), where=mask)


def _nan_variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction):
    a = as_array(a)
    if correction is not NOTHING:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    if a.dtype.kind not in "fc":
        return variance(a, axis, dtype, out, ddof, keepdims, where, mean, NOTHING)
    axes, mask = _present(a, axis, where)
    count = np.sum(mask, axis=axes, keepdims=is_true(keepdims))
    poor = count <= ddof
    warn_if(poor, "Degrees of freedom <= 0 for slice.")
    with np.errstate(all="ignore"):
        y = variance(np.where(mask, a, 0.0), axes, dtype, out, ddof, keepdims, mask, mean, NOTHING)
    return as_scalar(np.where(poor, np.nan, y))


@public(np.nanvar, samples=_sample_nan_where)
def nanvar(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=NOTHING, *, where=NOTHING, mean=NOTHING, correction=NOTHING
):
    """Return the variance over axes, leaving NaN out.

    >>> fad.grad(fad.numpy.nanvar)(np.array([2.0, np.nan, 3.0]))
    array([-0.5,  0. ,  0.5])
    """
    return _nan_variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@public(np.nanstd, samples=_sample_nan_where)
def nanstd(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=NOTHING, *, where=NOTHING, mean=NOTHING, correction=NOTHING
):
    """Return the standard deviation over axes, leaving NaN out; where it is 0 its derivative is 0.

    >>> fad.grad(fad.numpy.nanstd)(np.array([2.0, np.nan, 3.0]))
    array([-0.5,  0. ,  0.5])
    """
    return root(_nan_variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction))


def _nan_position(prim, worst, a, axis, out, keepdims):
    refuse_out(out)
    a = as_array(a)
    axis = axis if axis is None else operator.index(axis)
    if a.dtype.kind not in "fc":
        return position(prim, a, axis, keepdims)
    missing = np.isnan(a)
    if find_any(np.all(missing, axis)):
        raise ValueError("All-NaN slice encountered")
    return position(prim, np.where(missing, worst, a), axis, keepdims)


def _sample_nan_arg(s):
    return [call(_holes(s, 3, 4)), call(_holes(s, 3, 4), axis=1)]


@public(np.nanargmax, flat=True, samples=_sample_nan_arg)
def nanargmax(a, axis=None, out=None, *, keepdims=NOTHING):
    """Return the position of the maximum, leaving NaN out; flat.

    >>> fad.numpy.nanargmax(np.array([np.nan, 1.0, 3.0]))
    np.int64(2)
    """
    return _nan_position(argmax_p, -np.inf, a, axis, out, keepdims)


@public(np.nanargmin, flat=True, samples=_sample_nan_arg)
def nanargmin(a, axis=None, out=None, *, keepdims=NOTHING):
    """Return the position of the minimum, leaving NaN out; flat.

    >>> fad.numpy.nanargmin(np.array([np.nan, 1.0, 3.0]))
    np.int64(1)
    """
    return _nan_position(argmin_p, np.inf, a, axis, out, keepdims)
