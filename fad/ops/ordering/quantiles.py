"""Order statistics: median, percentile, quantile by every method of NumPy's, and their versions that leave NaN out.

A quantile is an interpolation between two elements of the sorted array. The thirteen methods are those of
R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, The American Statistician 50 (1996), and four more
of NumPy's.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fad.backends import is_numpy
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind, outcome
from fad.core.tracing.views import layout
from fad.ops.arrangement.structural import as_array, beside, normalize_axes
from fad.ops.layout.asking import example
from fad.ops.layout.memory_order import axes_in_memory, lay_out_axes
from fad.ops.ordering.sorting import argpartition_p, sort_with_order
from fad.ops.places.indexing import pick
from fad.ops.reductions.reduction import as_scalar, is_true
from fad.ops.reductions.statistics import warn_if

# --- where between the sorted elements a quantile lies --------------------------------------------------------------

# alpha and beta of Hyndman and Fan's family of continuous methods
_FAMILY = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "linear", "lower", "higher", "midpoint", "nearest",
    *_FAMILY,
)  # fmt: skip


def _round_to(index: Any, lower: Any) -> Any:
    """Return the integer at or above an index: its floor where `lower` says so, else the next; at least 0."""
    floor = np.floor(index)
    return np.maximum(np.where(lower(index - floor, floor), floor, floor + 1.0), 0.0)


def _position(method: str, n: Any, q: Any) -> tuple[Any, Any]:
    """Return the fractional place of a quantile among n sorted elements, and how to interpolate.

    The second is None for the fractional part itself, or a function of ``(fraction, place)``.
    """
    if method == "linear":
        return (n - 1) * q, None
    if method in _FAMILY:
        alpha, beta = _FAMILY[method]
        return n * q + (alpha + q * (1 - alpha - beta)) - 1, None
    if method == "averaged_inverted_cdf":
        return n * q - 1, lambda fraction, place: np.where(fraction == 0, 0.5, 1.0)
    if method == "midpoint":
        place = 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q))
        return place, lambda fraction, place: np.where(place % 1 == 0, 0.0, 0.5)
    if method == "inverted_cdf":
        place = _round_to(n * q - 1, lambda fraction, floor: fraction == 0)
    elif method == "closest_observation":
        place = _round_to(n * q - 1.5, lambda fraction, floor: (fraction == 0) & (floor % 2 == 1))
    else:
        choose: Any = {"lower": np.floor, "higher": np.ceil, "nearest": np.round}[method]
        place = choose((n - 1) * q)
    return place, lambda fraction, place: 0.0


_LONG = 2048  # elements of rows that are partitioned; shorter ones are sorted in machine code in loops
_ELEMENTS = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")  # methods that give elements

# --- quantiles of a sorted array ------------------------------------------------------------------------------------


def _take(s: Any, places: Any) -> Any:
    """Take from the last axis of a sorted array, at places given as a vector, or per row."""
    return pick(s, (Ellipsis, places)) if places.ndim == 1 else np.take_along_axis(s, places, -1)


def _locate(n: Any, q: Any, method: str) -> tuple[Any, Any, Any]:
    """Return the two places among n sorted elements that a quantile lies between, and how far behind the first.

    The distance is None for a method that gives elements.
    """
    place, rule = _position(method, n, q)
    last = n - 1
    floor = np.floor(place)
    low = np.where(place < 0, 0, np.where(place >= last, last, floor)).astype(np.intp)
    high = np.where(place < 0, 0, np.where(place >= last, last, floor + 1)).astype(np.intp)
    weight = place - floor if rule is None else rule(place - floor, place)
    return low, high, None if type(weight) is float else weight


def _interpolate(take: Any, places: tuple[Any, Any, Any], dtype: np.dtype, weak: bool) -> Any:
    """Return quantiles between elements of sorted rows of a dtype, of which ``take(places)`` gives some."""
    low, high, weight = places
    a = take(low)
    if weight is None:
        return a
    b = take(high)
    # From the nearer end, as NumPy does; the distance from there is rounded last.
    far = weight >= 0.5
    weight = np.where(far, weight - 1, weight)
    return np.where(far, b, a) + (b - a) * (weight.astype(dtype) if weak else weight)


def _select(rows: Any, places: np.ndarray) -> Any:
    """Return a function that gives elements of sorted rows, at some of the places named here and at the last one.

    Long rows are partitioned for them and not sorted.
    """
    n = rows.shape[-1]
    if n < _LONG or rows.dtype.kind != "f":
        s = sort_with_order(rows, rows.ndim - 1)[0]
        return lambda wanted: _take(s, wanted)
    known = np.unique([*places.reshape(-1), n - 1])
    order = bind(argpartition_p, rows, axis=rows.ndim - 1, kth=tuple(map(int, known)))
    few = np.take_along_axis(rows, order[..., known], -1)
    return lambda wanted: _take(few, np.searchsorted(known, wanted))


def _weigh(s: Any, w: Any, q: Any) -> Any:
    """Return quantiles of a sorted array by its weighted cumulative distribution; flat in the weights."""
    cdf = np.cumsum(w, axis=-1)
    cdf = cdf / cdf[..., -1:]
    if outcome(np.any(np.isnan(cdf[..., -1]))):
        raise ValueError("Weights included NaN, inf or were all zero.")
    if _leaves_out_the_weightless():
        cdf = np.where(cdf == 0, -1.0, cdf)
    places = np.sum(cdf[..., None] < q, axis=-2)
    return np.take_along_axis(s, np.minimum(places, s.shape[-1] - 1), -1)


@functools.cache
def _leaves_out_the_weightless() -> bool:
    """Return whether NumPy's quantile of level 0 is the first element that has a weight; in 2.0 it is the first."""
    return bool(np.quantile(np.array([0.0, 1.0]), 0.0, weights=np.array([0.0, 1.0]), method="inverted_cdf"))


@functools.cache
def _is_weak_in_double() -> bool:
    """Return whether a level of NumPy's float64 leaves single precision alone, as it did before NumPy 2.4."""
    return np.quantile(np.array([0.0], np.float32), np.float64(0.5)).dtype == np.float32


def _put_nan(y: Any, bad: Any) -> Any:
    """Return NaN for the rows that hold one."""
    return y if is_numpy(bad) and not bad.any() else np.where(bad, np.nan, y).astype(y.dtype, copy=False)


def _as_rows(a: Any, axes: tuple) -> Any:
    """Move the axes to reduce to the end, as one."""
    if a.ndim == len(axes) == 1:
        return a
    rest = tuple(i for i in range(a.ndim) if i not in axes)
    a = a.transpose(rest + axes)
    return a.reshape((*a.shape[: len(rest)], math.prod(a.shape[len(rest) :])))


def _check(a: Any, q: Any, method: str, weights: Any, name: str, top: str) -> None:
    if a.dtype.kind in "cb":
        raise TypeError("a must be an array of real numbers")
    if method not in METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {METHODS}")
    if not outcome(np.all((q >= 0) & (q <= 1))):
        raise ValueError(f"{name}s must be in the range {top}")
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
        if outcome(np.any(weights < 0)):
            raise ValueError("Weights must be non-negative.")


def _weights_like(a, axes, weights):
    if weights.shape == a.shape:
        return weights
    if len(axes) != 1 or weights.ndim != 1 or weights.shape[0] != a.shape[axes[0]]:
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    return np.broadcast_to(weights.reshape(tuple(-1 if i == axes[0] else 1 for i in range(a.ndim))), a.shape)


def _quantile(a, q, axis, out, method, keepdims, weights, skip_nan, name="Quantile", top="[0, 1]", scale=None):
    refuse_out(out)
    a = as_array(a)
    kind = type(example(q))
    weak = kind in (int, float) or (kind is bool and scale is None) or (kind is np.float64 and _is_weak_in_double())
    weak = weak and a.dtype.kind == "f"
    q = beside(a, q)
    q = q / scale if scale is not None else q
    weights = None if weights is None else as_array(weights)
    _check(a, q, method, weights, name, top)
    if q.ndim > 2:
        raise ValueError("q must be a scalar or 1d")
    axes = normalize_axes(axis, a.ndim)
    rows = _as_rows(a if a.dtype.kind == "f" else a.astype(float), axes)
    if weights is not None and axis is None and weights.shape != a.shape:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    spread = lambda w: _as_rows(_weights_like(a, axes, w), axes)
    y = _of_rows(rows, q.reshape((q.size,)), method, weak, skip_nan, weights, spread)
    y = np.moveaxis(y, -1, 0)
    y = y.astype(a.dtype) if a.dtype.kind in "iu" and method in _ELEMENTS else y
    shape = tuple(1 if i in axes else d for i, d in enumerate(a.shape)) if keepdims else y.shape[1:]
    return as_scalar(y.reshape(q.shape + shape))


def _of_rows(rows, q, method, weak, skip_nan, weights, spread):
    """Return the quantiles of every row."""
    if rows.shape[-1] == 0:
        if not skip_nan:
            raise IndexError("cannot take a quantile of no elements")
        return np.full_like(rows, np.nan, shape=(*rows.shape[:-1], q.size))
    n = rows.shape[-1]
    places = None if skip_nan or weights is not None else _locate(n, q, method)
    if places is not None and type(places[0]) is np.ndarray:
        take = _select(rows, np.concatenate(places[:2]))
        return _put_nan(_interpolate(take, places, rows.dtype, weak), np.isnan(take(np.array([n - 1]))))
    s, order = sort_with_order(rows, rows.ndim - 1)
    missing = np.isnan(s)
    if not skip_nan:
        if places is None:
            y = _weigh(s, _sort_weights(spread(weights), order), q)
        else:
            y = _interpolate(lambda wanted: _take(s, wanted), places, s.dtype, weak)
        return _put_nan(y, missing[..., -1:])
    count = np.sum(~missing, axis=-1, keepdims=True)
    none = count == 0
    warn_if(none, "All-NaN slice encountered")
    if weights is not None:
        w = np.where(missing, 0.0, _sort_weights(spread(weights), order))
        return _weigh(s, np.where(none, 1.0, w), q)
    filled = np.where(missing & ~none, 0.0, s)
    places = _locate(np.maximum(count, 1).astype(q.dtype), q, method)
    return _interpolate(lambda wanted: _take(filled, wanted), places, s.dtype, weak)


def _sort_weights(w, order):
    return np.take_along_axis(w, order, -1).astype(float)


# --- NumPy's names --------------------------------------------------------------------------------------------------


def _sample_quantile(s):
    each = [call(s.real(3, 7), 0.4, axis=1, method=m) for m in METHODS]
    return [
        *each,
        call(s.real(3, 4), 0.3),
        call(s.real(3, 5), np.array([0.1, 0.75]), axis=0, keepdims=True),
        call(s.real(2, 3, 4), [0.0, 1.0], axis=(0, 2)),
        call(s.real(3, 4), np.array([[0.1, 0.4, 0.6], [0.7, 0.8, 0.9]]), axis=0),
        call(s.real(3, 5), 0.37, axis=1, method="inverted_cdf", weights=np.array([0.5, 1.0, 0.0, 2.0, 1.0])),
        call(s.real(3, 4), 0.5, axis=1, method="inverted_cdf", weights=np.ones(4)),
    ]


def _sample_percentile(s):
    return [call(s.real(3, 7), 40), call(s.real(3, 5), np.array([13.0, 75.0]), axis=1, method="hazen", keepdims=True)]


def _holes(s, *shape):
    x = s.real(*shape)
    x.reshape(-1)[1] = np.nan
    return x


def _sample_nan_quantile(s):
    return [
        call(_holes(s, 3, 5), 0.4),
        call(_holes(s, 3, 5), 0.33, axis=1),
        call(_holes(s, 3, 6), np.array([0.1, 0.77]), axis=1, keepdims=True),
        call(_holes(s, 3, 6), 0.4, axis=1, method="median_unbiased"),
    ]


def _sample_nan_percentile(s):
    return [call(_holes(s, 3, 5), 40), call(_holes(s, 3, 5), np.array([33.0, 60.0]), axis=1)]


@public(np.quantile, samples=_sample_quantile, complex=False, constants=("weights",))
def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    """Return quantiles over axes, by any of NumPy's methods; the continuous ones are differentiable in `q` too.

    >>> fad.grad(lambda x: fad.numpy.quantile(x, 0.25))(np.array([1.0, 2.0, 3.0]))
    array([0.5, 0.5, 0. ])
    """
    return _quantile(a, q, axis, out, method, keepdims, weights, False)


@public(np.percentile, samples=_sample_percentile, complex=False)
def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *, weights=None):
    """Return quantiles given in percent.

    >>> fad.grad(lambda x: fad.numpy.percentile(x, 25))(np.array([1.0, 2.0, 3.0]))
    array([0.5, 0.5, 0. ])
    """
    return _quantile(a, q, axis, out, method, keepdims, weights, False, "Percentile", "[0, 100]", 100)


@public(np.nanquantile, samples=_sample_nan_quantile, complex=False)
def nanquantile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=np._NoValue, *, weights=None
):
    """Return quantiles over axes, leaving NaN out.

    >>> fad.numpy.nanquantile(np.array([3.0, np.nan, 1.0]), 0.5)
    np.float64(2.0)
    """
    return _quantile(a, q, axis, out, method, is_true(keepdims), weights, True)


@public(np.nanpercentile, samples=_sample_nan_percentile, complex=False)
def nanpercentile(
    a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=np._NoValue, *, weights=None
):
    """Return quantiles given in percent, leaving NaN out.

    >>> fad.numpy.nanpercentile(np.array([3.0, np.nan, 1.0]), 50)
    np.float64(2.0)
    """
    return _quantile(a, q, axis, out, method, is_true(keepdims), weights, True, "Percentile", "[0, 100]", 100)


def _middle(a, axis, out, keepdims, skip_nan):
    refuse_out(out)
    a = as_array(a)
    axes = normalize_axes(axis, a.ndim)
    rows = _as_rows(a if a.dtype.kind in "fc" else a.astype(float), axes)
    n = rows.shape[-1]
    if n == 0:
        return np.mean(a, axis=axis, keepdims=keepdims)
    if skip_nan:
        s = sort_with_order(rows, rows.ndim - 1)[0]
        missing = np.isnan(s)
        count = np.sum(~missing, axis=-1, keepdims=True)
        warn_if(count == 0, "All-NaN slice encountered")
        low, high = np.maximum(count - 1, 0) // 2, count // 2
        pair = np.take_along_axis(s, np.concatenate([low, high], axis=-1), -1)
        y = 0.5 * (pair[..., 0] + pair[..., 1])
    else:
        middle = [n // 2] if n % 2 else [n // 2 - 1, n // 2]
        s = _select(rows, np.array(middle))(np.array([*middle, n - 1]))
        y = s[..., 0] if n % 2 else 0.5 * (s[..., 0] + s[..., 1])
        y = _put_nan(y, np.isnan(s[..., -1])).astype(s.dtype.newbyteorder("="), copy=False)
    y = y + 0.0  # NumPy takes the mean, a sum, in which a zero is positive
    y = _lay_out_as_mean(y, rows, skip_nan)
    shape = tuple(1 if i in axes else d for i, d in enumerate(a.shape))
    return y.reshape(shape) if keepdims else as_scalar(y)


def _lay_out_as_mean(y: Any, rows: Any, masked: bool) -> Any:
    """Return the medians of rows in the order in memory that NumPy's mean of the sorted rows has."""
    plain = layout(rows)
    if type(plain) is not np.ndarray:
        return y
    in_memory = axes_in_memory(plain if masked else np.empty_like(plain))  # a masked array is one of values taken
    return lay_out_axes(y, tuple(axis for axis in in_memory if axis != plain.ndim - 1))


def _sample_median(s):
    return [
        call(s.real(3, 4)), call(s.real(3, 4), axis=1), call(s.real(2, 3, 3), axis=(0, -1), keepdims=True),
        call(s.real(5)),
    ]  # fmt: skip


@public(np.median, samples=_sample_median)
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """Return the median over axes: the middle element, or the mean of the two in the middle.

    >>> fad.grad(fad.numpy.median)(np.array([3.0, 1.0, 2.0]))
    array([0., 0., 1.])
    """
    return _middle(a, axis, out, keepdims, False)


@public(np.nanmedian, samples=lambda s: [
    call(_holes(s, 3, 4)), call(_holes(s, 3, 4), axis=1), call(_holes(s, 3, 5), axis=1, keepdims=True)
])  # fmt: skip
def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=np._NoValue):
    """Return the median over axes, leaving NaN out.

    >>> fad.grad(fad.numpy.nanmedian)(np.array([3.0, np.nan, 1.0, 2.0]))
    array([0., 0., 0., 1.])
    """
    return _middle(a, axis, out, is_true(keepdims), True)
