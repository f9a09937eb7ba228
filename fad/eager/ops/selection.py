"""Choosing and placing elements: order statistics, scattering, putting, running extremes, counting."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracer import bind
from fad.core.values import stop_gradient
from fad.eager.core.composite import composite
from fad.eager.core.records import placed
from fad.eager.ops.further import Sorted, argsort
from fad.eager.tensor import Tensor
from fad.ops.indexing import add_p, set_p, split_index

Extremes = namedtuple("Extremes", "min max")


def _array(x: Any) -> np.ndarray:
    return np.asarray(x.detach() if isinstance(x, Tensor) else x)


# --- by order -------------------------------------------------------------------------------------------------------


def _picked(name: str, x: Tensor, places: np.ndarray, dim: int, keepdim: bool) -> Sorted:
    values = composite(name, lambda v: np.take_along_axis(v, places, dim), x)
    both = Sorted(values, Tensor(places))
    return both if keepdim else Sorted(*(placed(t.squeeze(dim)) for t in both))


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Sorted:
    """Return ``(values, indices)`` of the k-th smallest elements along an axis; the first is number 1."""
    if not 1 <= k <= input.shape[dim]:
        raise ValueError(f"k must lie in 1 ... {input.shape[dim]}, the length of the axis, not {k}")
    return _picked("KthvalueBackward0", input, np.take(argsort(input, dim).value, [k - 1], axis=dim), dim, keepdim)


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Sorted:
    """Return ``(values, indices)`` of the most frequent elements along an axis: the least of them, its last place."""

    def last_place(row):
        values, counts = np.unique(row, return_counts=True)
        return np.flatnonzero(row == values[np.argmax(counts)])[-1]

    places = np.expand_dims(np.apply_along_axis(last_place, dim, _array(input)), dim)
    return _picked("ModeBackward0", input, places, dim, keepdim)


def msort(input: Tensor) -> Tensor:
    """Return the tensor sorted along its first axis."""
    return placed(input.sort(0)[0])


def _running(name: str, ufunc: np.ufunc, reaches: Callable) -> Callable:
    def call(input, dim):
        x = np.moveaxis(_array(input), dim, 0)
        best = ufunc.accumulate(x, axis=0)
        counts = np.arange(len(x)).reshape((-1,) + (1,) * (x.ndim - 1))
        places = np.moveaxis(np.maximum.accumulate(np.where(reaches(x, best) | (x != x), counts, 0), axis=0), 0, dim)
        return Sorted(composite(name, lambda v: np.take_along_axis(v, places, dim), input), Tensor(places))

    call.__doc__ = f"Return ``(values, indices)`` of the running {ufunc.__name__} along an axis."
    return call


cummax = _running("CummaxBackward0", np.maximum, np.greater_equal)
cummin = _running("CumminBackward0", np.minimum, np.less_equal)
cummax.__name__, cummin.__name__ = "cummax", "cummin"


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Return the logarithm of the running sum of exponentials along an axis."""
    return composite("LogcumsumexpBackward0", lambda x: np.logaddexp.accumulate(x, axis=dim), input)


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """Return ``(min, max)``; at ties the elements share the derivative."""
    return Extremes(input.amin(dim, keepdim), input.amax(dim, keepdim))


# --- putting into places --------------------------------------------------------------------------------------------


def _index_along(index: np.ndarray, dim: int) -> tuple:
    """Return what the indexing operations need to reach ``x[i, ..., index[i, ...], ...]``."""
    places: list = list(np.ogrid[tuple(map(slice, index.shape))])
    places[dim] = index
    return split_index(tuple(places))


def _into(prim: Any, x: Any, v: Any, where: tuple) -> Any:
    template, arrays = where
    return bind(prim, x, v, *arrays, template=template)


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return the tensor with the elements of another taken in along an axis, where the index says.

    `reduce` is "sum", "mean", "prod", "amax" or "amin"; unless `include_self`, what stood there before does not count.
    At the greatest and least, equal elements share the derivative.
    """
    if reduce not in ("sum", "mean", "prod", "amax", "amin"):
        raise ValueError(f"reduce must be 'sum', 'mean', 'prod', 'amax' or 'amin', not {reduce!r}")
    i = _array(index)
    dim = dim % input.ndim
    inside, where = tuple(map(slice, i.shape)), _index_along(i, dim)
    hit = np.zeros(tuple(input.shape), int)
    np.add.at(hit, tuple(np.ogrid[inside][:dim]) + (i,) + tuple(np.ogrid[inside][dim + 1 :]), 1)

    def reduced(x, v):
        v = v[inside]
        neutral = 1.0 if reduce == "prod" else 0.0
        start = x if include_self else np.where(hit > 0, neutral, x).astype(x.dtype)
        if reduce == "prod":
            return _products(start, v, i, dim)
        if reduce in ("sum", "mean"):
            y = _into(add_p, start, v, where)
            counts = np.maximum(hit + include_self, 1) if reduce == "mean" else 1
            return y if reduce == "sum" else y / np.where(hit > 0, counts, 1).astype(x.dtype)
        return _extremes(x, v, i, dim, hit, where, np.maximum if reduce == "amax" else np.minimum, include_self)

    return composite("ScatterReduceBackward0", reduced, input, src)


def _products(y: Any, v: Any, i: np.ndarray, dim: int) -> Any:
    """Multiply one slice of the values after another in: no place is met twice by one."""
    for k in range(i.shape[dim]):
        part = np.take(i, [k], axis=dim)
        where = _index_along(part, dim)
        inside = tuple(slice(n) if axis != dim else slice(None) for axis, n in enumerate(part.shape))
        now = np.take_along_axis(y[inside], part, dim)
        y = _into(set_p, y, now * np.take(v, [k], axis=dim), where)
    return y


def _extremes(
    x: Any, v: Any, i: np.ndarray, dim: int, hit: np.ndarray, where: tuple, ufunc: np.ufunc, include_self: bool
) -> Any:
    xs, vs = np.asarray(stop_gradient(x)), np.asarray(stop_gradient(v))
    places = tuple(np.ogrid[tuple(map(slice, i.shape))])
    at = (*places[:dim], i, *places[dim + 1 :])
    worst = -np.inf if ufunc is np.maximum else np.inf
    best = xs.copy() if include_self else np.where(hit > 0, worst, xs).astype(xs.dtype)
    ufunc.at(best, at, vs)
    own = (xs == best) & (include_self | (hit == 0))
    theirs = vs == best[at]
    shares = own.astype(int)
    np.add.at(shares, at, theirs.astype(int))
    total = _into(add_p, np.where(own, x, 0.0), np.where(theirs, v, 0.0), where)
    return total / np.maximum(shares, 1).astype(xs.dtype)


def _put(name: str, place: Callable) -> Callable:
    """Return a function ``(input, dim, index, values)`` that puts whole slices along an axis into places."""

    def call(input, dim, index, values):
        lead = (slice(None),) * (dim % input.ndim)
        where = split_index((*lead, _array(index)))
        return composite(name, lambda x, v: _into(set_p, x, place(x, v), where), input, values)

    return call


index_copy = _put("IndexCopyBackward0", lambda x, v: v)
index_copy.__name__ = "index_copy"
index_copy.__doc__ = "Return the tensor with slices along an axis replaced by those of another."
index_fill = _put("IndexFillBackward0", lambda x, v: np.asarray(v, x.dtype) if np.isscalar(v) else v)
index_fill.__name__ = "index_fill"
index_fill.__doc__ = "Return the tensor with slices along an axis filled with a value."


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Return the tensor with ``input[indices] = values``, or with `accumulate` what is put there added."""
    where = split_index(tuple(_array(i) for i in indices))
    prim = add_p if accumulate else set_p
    return composite("IndexPutBackward0", lambda x, v: _into(prim, x, v, where), input, values)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return the tensor with the elements of another, one after the other, where the mask holds."""
    at = np.nonzero(np.broadcast_to(_array(mask), tuple(input.shape)))
    n = len(at[0]) if at else 0
    if source.numel() < n:
        raise ValueError(f"the mask has {n} places, but the source only {source.numel()} elements")
    where = split_index(at)
    return composite("MaskedScatterBackward0", lambda x, v: _into(set_p, x, v.reshape(-1)[:n], where), input, source)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return one slice along an axis; a view."""
    return placed(input[(*(slice(None),) * (dim % input.ndim), index)])


# --- what has no derivative -----------------------------------------------------------------------------------------


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Return the different values in order, or slices along an axis; with where each element is among them, and how
    often it is there, if requested."""
    found = np.unique(_array(input), return_inverse=True, return_counts=True, axis=dim)
    parts = [found[0], *([found[1]] if return_inverse else []), *([found[2]] if return_counts else [])]
    return Tensor(parts[0]) if len(parts) == 1 else tuple(map(Tensor, parts))


def unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False) -> Any:
    """Return the flattened elements without repetitions that follow each other."""
    x = _array(input).reshape(-1)
    new = np.concatenate([[True], x[1:] != x[:-1]]) if x.size else np.zeros(0, bool)
    inverse = (np.cumsum(new) - 1).reshape(tuple(input.shape))
    counts = np.diff(np.append(np.flatnonzero(new), x.size))
    parts = [x[new], *([inverse] if return_inverse else []), *([counts] if return_counts else [])]
    return Tensor(parts[0]) if len(parts) == 1 else tuple(map(Tensor, parts))


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero, one row for each; or one tensor for each axis."""
    found = np.nonzero(_array(input))
    return tuple(map(Tensor, found)) if as_tuple else Tensor(np.argwhere(_array(input)))


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each whole number is there, or the sum of its weights."""
    return Tensor(np.bincount(_array(input), None if weights is None else _array(weights), minlength))


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False, out_int32: bool = False) -> Tensor:
    """Return between which boundaries, which are in order, each number lies."""
    found = np.asarray(np.searchsorted(_array(boundaries), _array(input), "right" if right else "left"))
    return Tensor(found.astype(np.int32) if out_int32 else found)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements lie in each of equal bins, by default from the least to the greatest."""
    x = _array(input)
    span = (x.min(), x.max()) if min == max else (min, max)
    return Tensor(np.histogram(x, bins, span)[0].astype(x.dtype))


_METHODS = [
    "aminmax", "bincount", "cummax", "cummin", "histc", "index_copy", "index_fill", "index_put", "kthvalue",
    "logcumsumexp", "masked_scatter", "mode", "msort", "nonzero", "scatter_reduce", "select", "unique",
    "unique_consecutive",
]  # fmt: skip
for _name in _METHODS:
    setattr(Tensor, _name, globals()[_name])

__all__ = [*_METHODS, "bucketize"]
