"""Means and variances, weighted averages, covariances."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import cast
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import on_device, public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, any_of, bind
from fad.core.tracing.views import unwrap
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array, normalize_axes
from fad.ops.reductions.norms import root
from fad.ops.reductions.reduction import (
    NOTHING,
    absent,
    as_mask,
    check_mask,
    convert,
    is_true,
    keep,
    reduction,
    sample_axes,
    sum_p,
)


def real_dtype(dtype: Any) -> Any:
    """Return the dtype of the real part of numbers of a dtype."""
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype


def warn_if(mask: Any, message: str) -> None:
    """Warn as NumPy does if any element of a flat condition holds, whatever traces it; a device is not kept waiting."""
    if _is_seen(mask):
        warnings.warn(message, RuntimeWarning, stacklevel=5)


def _is_seen(mask: Any) -> bool:
    """Return whether any element of a flat condition holds, as far as the host can see without waiting for a device."""
    return not on_device([unwrap(mask)]) and bool(np.any(unwrap(mask)))


def find_any(mask: Any) -> bool:
    """Warn in the same way of a condition that is an error: a recorded program asks again in every call."""
    return not on_device([unwrap(mask)]) and any_of(mask)


# --- mean, var, std -------------------------------------------------------------------------------------------------


def _wide(a, dtype):
    """Return the operand in the dtype to compute in, and that of the result: half precision is summed in single."""
    if dtype is not None:
        return a.astype(dtype), np.dtype(dtype)
    if a.dtype.kind in "biu":
        return a.astype(float), None
    return (a.astype(np.float32), a.dtype) if a.dtype == np.float16 else (a, None)


def _count_axes(a, axis, where):
    """Return the axes of a mean, and a mask of the elements that count, or True.

    NumPy counts them first: it looks at the shape of the mask before the axes, and at its dtype after them.
    """
    where = as_array(where) if isinstance(where, (list, tuple)) else where
    if where is not NOTHING and where is not True:
        check_mask(a, where)
    return normalize_axes(axis, a.ndim), as_mask(where)


def _total(a, axes, keepdims, mask):
    """Return the sum over axes, and how many elements it has: a number, or an array if a mask says which count."""
    if mask is True:
        count = 1
        for i in axes:
            count *= a.shape[i]
        return bind(sum_p, a, axis=axes, keepdims=keepdims), count
    mask = np.broadcast_to(mask, a.shape)
    count = np.sum(mask, axis=axes, keepdims=keepdims)
    return bind(sum_p, np.where(mask, a, 0), axis=axes, keepdims=keepdims), count


def _ratio(total, count):
    if type(count) is int:
        return total / count if count else total / np.zeros_like(total)
    return total / count.astype(real_dtype(total.dtype))


def _sample_mean(s):
    return [
        *sample_axes(s),
        call(s.real(2, 4), axis=1, where=np.array([[True, False, True, True], [True, True, False, True]])),
    ]


@public(np.mean, methods=("mean",), samples=_sample_mean)
def mean(a, axis=None, dtype=None, out=None, keepdims=NOTHING, *, where=NOTHING):
    """Return the mean over axes.

    >>> fad.grad(fad.numpy.mean)(np.array([1.0, 2.0]))
    array([0.5, 0.5])
    """
    if out is not None:
        refuse_out(out)
    a, narrow = _wide(as_array(a), dtype)
    axes, mask = _count_axes(a, axis, where)
    total, count = _total(a, axes, is_true(keepdims), mask)
    if type(count) is int and count == 0:
        warnings.warn("Mean of empty slice.", RuntimeWarning, stacklevel=4)
    return convert(_ratio(total, count), narrow)


def _deviation(x, axis, ddof):
    """Return the derivative of a variance: twice the (conjugated) distance from the mean, over its divisor."""
    n = math.prod(x.shape[i] for i in axis) - ddof
    d = x - np.mean(x, axis=axis, keepdims=True)
    return (np.conjugate(d) if d.dtype.kind == "c" else d) * (2.0 / n)


variance_p: Any = reduction(
    "variance_over",
    lambda x, *, axis, keepdims, ddof: np.var(x, axis=axis, keepdims=keepdims, ddof=ddof),
    lambda t, y, x, axis, keepdims, ddof: cast(
        np.sum(t * _deviation(x, axis, ddof), axis=axis, keepdims=keepdims), y.dtype
    ),
    lambda ct, y, x, axis, keepdims, ddof: keep(ct, x.shape, axis, keepdims) * _deviation(x, axis, ddof),
    lambda s: [
        call(s.real(3, 4), axis=(0, 1), keepdims=False, ddof=0),
        call(s.real(2, 3, 4), axis=(0, 2), keepdims=True, ddof=1),
    ],
    doc="The variance over axes, with ``ddof`` less in the denominator.",
)


def variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction):
    refuse_out(out)
    if correction is not NOTHING:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    if dtype is not None and np.dtype(dtype).kind in "biu":
        raise MissingRuleError(f"np.var and np.std with dtype={dtype!r} round what they add up: convert their result")
    a, narrow = _wide(as_array(a), dtype)
    axes, mask = _count_axes(a, axis, where)
    if mask is True and absent(mean) and type(ddof) in (int, float) and math.prod(a.shape[i] for i in axes) > ddof:
        return convert(bind(variance_p, a, axis=axes, keepdims=is_true(keepdims), ddof=ddof), narrow)
    if absent(mean):
        total, count = _total(a, axes, True, mask)
        mean = _ratio(total, count)
    d = a - mean
    squares = d.real * d.real + d.imag * d.imag if d.dtype.kind == "c" else d * d
    total, count = _total(squares, axes, is_true(keepdims), mask)
    if type(count) is int and type(ddof) is not Tracer:
        if count <= ddof:
            warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=5)
        count = count - ddof if count > ddof else 0
        y = total / count if count else total / np.zeros_like(total)
    else:
        y = total / np.maximum(count - ddof, 0).astype(total.dtype)
    return convert(y, narrow)


def _sample_var(s):
    mask = np.array([[True, False, True, True], [True, True, False, True]])
    x = s.real(3, 4)
    return [
        *sample_axes(s)[:3],
        call(s.real(3, 4), axis=0, ddof=1),
        call(s.real(3, 4), axis=1, correction=1),
        call(s.real(2, 4), axis=1, where=mask),
        call(s.real(2, 4), axis=1, where=mask, ddof=1),
        call(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)),
        call(x, axis=1, mean=np.mean(x, axis=1, keepdims=True), ddof=1),
    ]


@public(np.var, methods=("var",), samples=_sample_var)
def var(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=NOTHING, *, where=NOTHING, mean=NOTHING, correction=NOTHING
):
    """Return the variance over axes: the mean squared distance from the mean, over ``n - ddof``.

    >>> fad.grad(fad.numpy.var)(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    return variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@public(np.std, methods=("std",), samples=_sample_var)
def std(
    a, axis=None, dtype=None, out=None, ddof=0, keepdims=NOTHING, *, where=NOTHING, mean=NOTHING, correction=NOTHING
):
    """Return the standard deviation over axes; where it is 0 its derivative is 0, as a norm's.

    >>> fad.grad(fad.numpy.std)(np.array([1.0, 3.0]))
    array([-0.5,  0.5])
    """
    return root(variance(a, axis, dtype, out, ddof, keepdims, where, mean, correction))


# --- weighted averages, covariances ---------------------------------------------------------------------------------


def _weights_for(a, axes, weights):
    """Bring weights given for some axes to a shape that broadcasts against the array."""
    if weights.shape == a.shape:
        return weights
    if axes is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    if weights.shape != tuple(a.shape[i] for i in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    weights = weights.transpose(tuple(int(i) for i in np.argsort(axes)))
    return weights.reshape(tuple(d if i in axes else 1 for i, d in enumerate(a.shape)))


@public(np.average, samples=lambda s: [
    call(s.real(3, 4)), call(s.real(3, 4), axis=1, weights=s.positive(4)), call(s.real(3, 4), weights=s.positive(3, 4)),
    call(s.real(3, 4), axis=0, weights=s.positive(3), returned=True, keepdims=True)])  # fmt: skip
def average(a, axis=None, weights=None, returned=False, *, keepdims=NOTHING):
    """Return the weighted average over axes, differentiable in the weights too; with `returned`, and their sum.

    >>> fad.grad(lambda w: fad.numpy.average(np.array([1.0, 3.0]), weights=w))(np.array([1.0, 1.0]))
    array([-0.5,  0.5])
    """
    a = as_array(a)
    axes = None if axis is None else normalize_axes(axis, a.ndim)
    every = tuple(range(a.ndim)) if axes is None else axes
    if weights is None:
        y = np.mean(a, axis=axes, keepdims=is_true(keepdims))
        count = a.size / y.size  # NumPy counts, too, if only to fail where there is nothing
        return (y, np.full_like(y, count)) if returned else y
    w = _weights_for(a, axes, as_array(weights))
    dtype = np.result_type(a.dtype, w.dtype, *(["f8"] if a.dtype.kind in "biu" else []))
    a, w = a.astype(dtype), w.astype(dtype)
    total = np.sum(w, axis=every, keepdims=is_true(keepdims))
    if find_any(total == 0):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    y = np.sum(a * w, axis=every, keepdims=is_true(keepdims)) / total
    if not returned:
        return y
    return y, total if total.shape == y.shape else np.broadcast_to(total, y.shape).copy()


def _rows(m, y, rowvar):
    """Return observations as a matrix with one variable per row."""
    m = as_array(m)
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    x = m.reshape((1, -1)) if m.ndim < 2 else m
    if not rowvar and (x.shape[0] != 1 or (m.ndim == 2 and _turns_single_rows())):
        x = x.T
    if y is not None and as_array(y).ndim > 2:
        raise ValueError("y has more than 2 dimensions")
    if y is not None and x.shape[0]:  # without variables NumPy requests no others
        y = as_array(y)
        y = y.reshape((1, -1)) if y.ndim < 2 else y
        y = y.T if not rowvar and y.shape[0] != 1 else y
        x = np.concatenate([x, y], axis=0)
    return x


@functools.cache
def _turns_single_rows() -> bool:
    """Whether NumPy's covariance of columns takes a matrix of one row for one observation; older ones did not."""
    return np.cov(np.array([[0.0, 1.0]]), rowvar=False, ddof=0).ndim == 2


def _weights_of_observations(weights: Any, n: int, name: str) -> Any:
    """Return weights as NumPy wants them: one for each observation, none negative."""
    weights = as_array(weights).astype(float)
    if weights.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if weights.shape != (n,):
        raise RuntimeError(f"incompatible numbers of samples and {name}: {n} and {weights.size}")
    if find_any(weights < 0):
        raise ValueError(f"{name} cannot be negative")
    return weights


@public(np.cov, constants=("fweights",), samples=lambda s: [
    call(s.real(3, 5)), call(s.real(5), s.real(5)), call(s.real(5, 2), rowvar=False, bias=True),
    call(s.real(2, 4), aweights=s.positive(4)), call(s.real(2, 4), fweights=np.array([1, 2, 0, 3]), ddof=1),
    call(s.real(5)), call(s.real(2, 4), s.real(3, 4), ddof=0), call(s.real(4, 2), s.real(4, 3), rowvar=False),
    call(s.real(4, 2), s.real(4), rowvar=False), call(s.real(1, 3), rowvar=False, ddof=0),
    call(s.real(2, 4), fweights=np.array([1, 2, 0, 3]), aweights=s.positive(4)),
])  # fmt: skip
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    """Return the covariance matrix of variables in rows (columns if not `rowvar`).

    >>> fad.numpy.cov(np.array([1.0, 2.0, 4.0]))
    array(2.33333333)
    >>> fad.grad(fad.numpy.cov)(np.array([1.0, 2.0, 3.0]))
    array([-1.,  0.,  1.])
    """
    x = _rows(m, y, rowvar)
    if not x.shape[0]:
        return np.zeros_like(x, shape=(0, 0), dtype=float)
    x = x.astype(np.result_type(x.dtype, float) if dtype is None else dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    if ddof != int(ddof):
        raise ValueError("ddof must be integer")
    w = None
    if fweights is not None:
        w = _weights_of_observations(fweights, x.shape[1], "fweights")
        if find_any(w != np.rint(w)):
            raise TypeError("fweights must be integer")
    if aweights is not None:
        aweights = _weights_of_observations(aweights, x.shape[1], "aweights")
        w = aweights if w is None else w * aweights
    if w is None:
        x = x - np.mean(x, axis=1, keepdims=True)
        scale = x.shape[1] - ddof
        weighted = x
    else:
        total = np.sum(w)
        x = x - np.sum(x * w, axis=1, keepdims=True) / total
        scale = total - ddof if aweights is None else total - ddof * np.sum(w * aweights) / total
        weighted = x * w
    if find_any(scale <= 0):
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=4)
        scale = 0.0
    # By the reciprocal, as NumPy does: without degrees of freedom it is infinite.
    c = x @ np.conjugate(weighted.T)
    c = (c * np.divide(1.0, scale)).astype(c.dtype, copy=False)
    return c.reshape(()) if c.shape == (1, 1) else c


@public(np.corrcoef, samples=lambda s: [call(s.real(3, 5)), call(s.real(5), s.real(5))])
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """Return the matrix of correlation coefficients.

    >>> fad.numpy.corrcoef(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))[0, 1].round(6)
    np.float64(0.981981)
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    d = root(np.diagonal(c).real)
    return c / d[:, None] / d[None, :]
