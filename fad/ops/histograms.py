"""Histograms: how many values fall into each bin, or how much weight. Counts are flat; weights and edges are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitive import public
from fad.core.samples import call
from fad.core.tracer import outcome, stop_gradient
from fad.ops.indexing import At
from fad.ops.structural import as_array
from fad.ops.taking import searchsorted


@public(
    np.histogram_bin_edges,
    samples=lambda s: [
        call(s.real(7), 4),
        call(s.real(2, 4), bins="sturges"),
        call(s.real(5), 3, range=(-1.0, 1.5)),
        call(s.real(5), np.sort(s.real(4))),
    ],
    complex=False,
)
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """Return the edges of a histogram's bins; equal bins hang on the smallest and the largest value, or on `range`."""
    a = np.ravel(as_array(a))
    if isinstance(bins, str):
        plain = outcome(a)
        bins = np.histogram_bin_edges(plain, bins, range).size - 1
    elif np.ndim(bins):
        bins = as_array(bins)
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


@public(
    np.histogram,
    samples=lambda s: [
        call(s.real(7), 4),
        call(s.real(7), 3, weights=s.real(7)),
        call(s.real(2, 4), np.array([-1.5, 0.0, 0.1, 1.5]), density=True),
        call(s.real(5), 3, range=(-1.0, 1.5), weights=s.positive(5), density=True),
    ],
    complex=False,
)
def histogram(a, bins=10, range=None, density=None, weights=None):
    """Count the values in each bin, or add up their weights; returns ``(hist, edges)``.

    Counts are piecewise constant. With weights the result is linear in them, and with `density` it hangs on the edges.
    """
    a = np.ravel(as_array(a))
    edges = histogram_bin_edges(a, bins, range, weights)
    plain, borders = stop_gradient((a, edges))
    n = edges.size - 1
    places = np.clip(searchsorted(borders, plain, "right") - 1, 0, n - 1)  # the last bin holds its right edge too
    inside = (plain >= borders[0]) & (plain <= borders[-1])
    weights = np.ones_like(plain, dtype=np.intp) if weights is None else np.ravel(as_array(weights))
    wide = weights if weights.dtype.kind == "i" else weights.astype(np.result_type(weights, np.float64))
    wide = np.where(inside, wide, np.zeros_like(wide, shape=()))
    hist = At(np.zeros_like(wide, shape=(n,)))[(places,)].add(wide).astype(weights.dtype)
    if density:
        hist = hist / (edges[1:] - edges[:-1]).astype(np.float64) / np.sum(hist)
    return hist, edges
