"""Elements put into places of a tensor: ``scatter_reduce``, ``index_put`` and related functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracing.tracer import bind
from fad.core.tracing.values import strip_derivatives
from fad.eager.core.composite import composite
from fad.eager.ops.nodes import as_array
from fad.eager.tensor import Tensor
from fad.ops.places.indexing import index_add_p, index_set_p, split_index


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
    i = as_array(index)
    dim = dim % input.ndim
    inside, where = tuple(map(slice, i.shape)), _index_along(i, dim)
    hit = np.zeros(tuple(input.shape), int)
    np.add.at(hit, tuple(np.ogrid[inside][:dim]) + (i,) + tuple(np.ogrid[inside][dim + 1 :]), 1)

    def reduce_into(x, v):
        v = v[inside]
        neutral = 1.0 if reduce == "prod" else 0.0
        start = x if include_self else np.where(hit > 0, neutral, x).astype(x.dtype)
        if reduce == "prod":
            return _products(start, v, i, dim)
        if reduce in ("sum", "mean"):
            y = _into(index_add_p, start, v, where)
            counts = np.maximum(hit + include_self, 1) if reduce == "mean" else 1
            return y if reduce == "sum" else y / np.where(hit > 0, counts, 1).astype(x.dtype)
        return _extremes(x, v, i, dim, hit, where, np.maximum if reduce == "amax" else np.minimum, include_self)

    return composite("ScatterReduceBackward0", reduce_into, input, src)


def _products(y: Any, v: Any, i: np.ndarray, dim: int) -> Any:
    """Multiply one slice of the values after another in: no place is met twice by one."""
    for k in range(i.shape[dim]):
        part = np.take(i, [k], axis=dim)
        where = _index_along(part, dim)
        inside = tuple(slice(n) if axis != dim else slice(None) for axis, n in enumerate(part.shape))
        now = np.take_along_axis(y[inside], part, dim)
        y = _into(index_set_p, y, now * np.take(v, [k], axis=dim), where)
    return y


def _extremes(
    x: Any, v: Any, i: np.ndarray, dim: int, hit: np.ndarray, where: tuple, ufunc: np.ufunc, include_self: bool
) -> Any:
    xs, vs = np.asarray(strip_derivatives(x)), np.asarray(strip_derivatives(v))
    places = tuple(np.ogrid[tuple(map(slice, i.shape))])
    at = (*places[:dim], i, *places[dim + 1 :])
    worst = -np.inf if ufunc is np.maximum else np.inf
    best = xs.copy() if include_self else np.where(hit > 0, worst, xs).astype(xs.dtype)
    ufunc.at(best, at, vs)
    own = (xs == best) & (include_self | (hit == 0))
    theirs = vs == best[at]
    shares = own.astype(int)
    np.add.at(shares, at, theirs.astype(int))
    total = _into(index_add_p, np.where(own, x, 0.0), np.where(theirs, v, 0.0), where)
    return total / np.maximum(shares, 1).astype(xs.dtype)


def _put(name: str, place: Callable) -> Callable:
    """Return a function ``(input, dim, index, values)`` that puts whole slices along an axis into places."""

    def call(input, dim, index, values):
        lead = (slice(None),) * (dim % input.ndim)
        where = split_index((*lead, as_array(index)))
        return composite(name, lambda x, v: _into(index_set_p, x, place(x, v), where), input, values)

    return call


index_copy = _put("IndexCopyBackward0", lambda x, v: v)
index_copy.__name__ = "index_copy"
index_copy.__doc__ = "Return the tensor with slices along an axis replaced by those of another."
index_fill = _put("IndexFillBackward0", lambda x, v: np.asarray(v, x.dtype) if np.isscalar(v) else v)
index_fill.__name__ = "index_fill"
index_fill.__doc__ = "Return the tensor with slices along an axis filled with a value."


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Return the tensor with ``input[indices] = values``, or with `accumulate` what is put there added."""
    where = split_index(tuple(as_array(i) for i in indices))
    prim = index_add_p if accumulate else index_set_p
    return composite("IndexPutBackward0", lambda x, v: _into(prim, x, v, where), input, values)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return the tensor with the elements of another, one after the other, where the mask holds."""
    at = np.nonzero(np.broadcast_to(as_array(mask), tuple(input.shape)))
    n = len(at[0]) if at else 0
    if source.numel() < n:
        raise ValueError(f"the mask has {n} places, but the source only {source.numel()} elements")
    where = split_index(at)
    put = lambda x, v: _into(index_set_p, x, v.reshape(-1)[:n], where)
    return composite("MaskedScatterBackward0", put, input, source)
