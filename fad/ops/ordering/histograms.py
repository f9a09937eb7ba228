"""Histograms: how many values fall into each bin, or how much weight. Counts are flat; weights and edges are not."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from fad.backends import like, made_like
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import outcome, stack_list
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.ops.places.functional_updates import At
from fad.ops.places.taking import searchsorted


@public(
    np.histogram_bin_edges,
    samples=lambda s: [
        call(s.real(7), 4),
        call(s.real(2, 4), bins="sturges"),
        call(s.real(5), 3, range=(-1.0, 1.5)),
        call(s.real(5), np.sort(s.real(4))),
    ],
    complex=False,
    raises="ValueError: There is no bin, or the edges decrease.",
)
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """Return the edges of a histogram's bins; equal bins lie between the smallest and the largest value, or on `range`.

    >>> fad.numpy.histogram_bin_edges(np.array([0.0, 1.0, 2.0]), bins=2)
    array([0., 1., 2.])
    """
    a, bins = np.ravel(as_array(a)), stack_list(bins)
    if isinstance(bins, str):
        plain = outcome(a)
        bins = np.histogram_bin_edges(plain, bins, range).size - 1
    elif np.ndim(bins):
        if outcome(np.any(bins[:-1] > bins[1:])):
            raise ValueError("`bins` must increase monotonically, when an array")
        return bins
    if bins < 1:
        raise ValueError("`bins` must be positive, when an integer")
    first, last = _ends(a, range)
    dtype = np.result_type(first, last, a)
    return like(a, np.linspace(first, last, bins + 1, dtype=dtype if dtype.kind == "f" else np.float64))


def _ends(a: Any, range: Any) -> tuple:
    if range is not None:
        first, last = range
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
    else:
        first, last = (np.min(a), np.max(a)) if a.size else (0.0, 1.0)
    if not np.isfinite(first) or not np.isfinite(last):
        raise ValueError(f"the range of a histogram must be finite, but it is [{first}, {last}]")
    return (first - 0.5, last + 0.5) if first == last else (first, last)


def _off_edges(a: Any, bins: Any = 10, range: Any = None, **_: Any) -> tuple:
    """Return how far values are from the edges where they change bins; the outermost move with the values."""
    edges = np.histogram_bin_edges(a, bins, range)
    edges = edges[1:-1] if range is None and np.ndim(bins) == 0 else edges
    return (np.ravel(a)[:, None] - edges,)


def _off_grid(sample: Any, bins: Any = 10, range: Any = None, **_: Any) -> tuple:
    columns = np.transpose(sample) if np.ndim(sample) == 2 and hasattr(sample, "shape") else np.atleast_2d(sample)
    bins = list(bins) if _has_length(bins) else len(columns) * [bins]
    ranges = len(columns) * [None] if range is None else range
    return tuple(_off_edges(a, *given)[0] for a, *given in zip(columns, bins, ranges, strict=True))


@public(
    np.histogram,
    kinks=_off_edges,
    samples=lambda s: [
        call(s.real(7), 4),
        call(s.real(7), 3, weights=s.real(7)),
        call(s.real(2, 4), np.array([-1.5, 0.0, 0.1, 1.5]), density=True),
        call(s.real(5), 3, range=(-1.0, 1.5), weights=s.positive(5), density=True),
    ],
    complex=False,
    raises="ValueError: There is no bin, or the edges decrease.",
)
def histogram(a, bins=10, range=None, density=None, weights=None):
    """Count the values in each bin, or add up their weights; returns ``(hist, edges)``.

    Counts are piecewise constant. With weights the result is linear in them, with `density` it depends on the edges.

    >>> fad.numpy.histogram([0.5, 1.5, 1.7], bins=2, range=(0, 2))
    (array([1, 2]), array([0., 1., 2.]))
    """
    a = np.ravel(as_array(a))
    edges = histogram_bin_edges(a, bins, range, weights)
    weights = np.ones_like(stop_gradient(a), dtype=np.intp) if weights is None else np.ravel(as_array(weights))
    wide = weights if weights.dtype.kind == "i" else weights.astype(np.result_type(weights, np.float64))
    hist = _add_up([_places(a, edges)], wide).astype(weights.dtype)
    if density:
        hist = hist / (edges[1:] - edges[:-1]).astype(np.float64) / np.sum(hist)
    return hist, edges


def _places(a: Any, edges: Any) -> tuple:
    """Return the bin of each value, whether it lies in any, and how many bins there are."""
    plain, borders = stop_gradient((a, edges))
    n = borders.size - 1
    places = np.clip(searchsorted(borders, plain, "right") - 1, 0, n - 1)  # the last bin holds its right edge too
    return places, (plain >= borders[0]) & (plain <= borders[-1]), n


def _add_up(found: list[tuple], weights: Any) -> Any:
    """Add weights into a table with one axis for each entry of `found`, the places along that axis."""
    inside = functools.reduce(np.logical_and, [inside for _, inside, _ in found])
    weights = np.where(inside, weights, made_like(np.zeros_like, weights, ()))
    if len(found) == 1:
        return At(np.zeros_like(weights, shape=(found[0][2],)))[found[0][0]].add(weights)
    # As NumPy does: a table with places for outliers around it, of which the result is the middle.
    table = At(np.zeros_like(weights, shape=tuple(n + 2 for _, _, n in found)))
    return table[tuple(places + 1 for places, _, _ in found)].add(weights)[(slice(1, -1),) * len(found)]


@public(
    np.histogramdd,
    kinks=_off_grid,
    samples=lambda s: [
        call(s.real(7, 2), 3),
        call(s.real(6, 2), (2, 3), weights=s.positive(6), density=True),
        call([s.real(5), s.real(5)], [np.array([-1.5, 0.0, 1.5]), 2], range=(None, (-1.0, 1.5)), weights=s.real(5)),
        call(s.real(5), 4),
    ],
    complex=False,
    raises="ValueError: There is no bin, or the edges decrease.",
)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """Count points in the boxes of a grid, or add up their weights; returns ``(hist, edges)``.

    Counts are piecewise constant. With weights the result is linear in them, with `density` it depends on the edges.

    >>> fad.numpy.histogramdd(np.array([np.array([0.5]), np.array([1.5])]), bins=2, range=[(0, 2)])[0]
    array([1., 1.])
    """
    sample = as_array(sample) if hasattr(sample, "shape") else np.transpose(as_array(sample))
    sample = sample if sample.ndim == 2 else np.transpose(np.atleast_2d(sample))
    axes = sample.shape[1]
    bins = list(bins) if _has_length(bins) else axes * [bins]
    if len(bins) != axes:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    range = (None,) * axes if range is None else range
    if len(range) != axes:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_axis_edges(i, sample[:, i], *given) for i, given in enumerate(zip(bins, range, strict=True))]
    wide = np.ones_like(stop_gradient(sample[:, 0])) if weights is None else np.ravel(as_array(weights))
    hist = _add_up([_places(sample[:, i], edge) for i, edge in enumerate(edges)], wide.astype(np.float64))
    if density:
        total = np.sum(hist)
        for i, edge in enumerate(edges):
            hist = hist / np.expand_dims(edge[1:] - edge[:-1], tuple(k for k, _ in enumerate(edges) if k != i))
        hist = hist / total
    return hist, edges


def _has_length(x: Any) -> bool:
    return isinstance(x, (list, tuple)) or getattr(x, "ndim", 0) > 0


def _axis_edges(i: int, a: Any, bins: Any, range: Any) -> Any:
    if np.ndim(bins) == 1:
        bins = as_array(bins)
        if outcome(np.any(bins[:-1] > bins[1:])):
            raise ValueError(f"`bins[{i}]` must be monotonically increasing, when an array")
        return bins
    if np.ndim(bins):
        raise ValueError(f"`bins[{i}]` must be a scalar or 1d array")
    if bins < 1:
        raise ValueError(f"`bins[{i}]` must be positive, when an integer")
    try:
        n = operator.index(bins)
    except TypeError as error:
        raise TypeError(f"`bins[{i}]` must be an integer, when a scalar") from error
    first, last = _ends(a, range)
    return like(a, np.linspace(first, last, n + 1))


@public(
    np.histogram2d,
    kinks=lambda x, y, bins=10, **_: _off_grid([x, y], bins if isinstance(bins, list) else [bins, bins]),
    samples=lambda s: [
        call(s.real(7), s.real(7), 3),
        call(s.real(6), s.real(6), [2, np.array([-1.0, 0.1, 1.9])], weights=s.real(6)),
        call(s.real(6), s.real(6), np.array([-1.5, 0.0, 1.5]), density=True, weights=s.positive(6)),
    ],
    complex=False,
    raises="ValueError: There is no bin, or the edges decrease.",
)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """Count points in the rectangles of a grid, or add up their weights; returns ``(hist, xedges, yedges)``.

    >>> fad.numpy.histogram2d([0.5, 1.5], [0.5, 1.5], bins=2, range=[(0, 2), (0, 2)])[0]
    array([[1., 0.],
           [0., 1.]])
    """
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    if _has_length(bins) and len(bins) > 2:  # the edges of both axes; two numbers count the bins of each
        bins = [bins, bins]
    hist, edges = histogramdd(np.stack([as_array(x), as_array(y)], -1), bins, range, density, weights)
    return hist, edges[0], edges[1]
