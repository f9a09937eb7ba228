"""Pooling and sums over axes apart, rewritten for native code.

Maxima and sums of windows become those of slices, which are fused like any other elementwise operation; a sum over axes
that are not neighbours becomes one sum after the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.ir.builder import Builder
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph
from fad.ops.products.pooling import max_pick_p, max_pool_p, max_spread_p, sum_pool_p, sum_spread_p
from fad.ops.products.windows import taps
from fad.ops.reductions.reduction import sum_p

MOST_PLACES = 9  # in a window; each is an operand of the loop
_REAL = (np.dtype(float), np.dtype(np.float32))


def expand_pools(graph: Graph) -> Graph:
    """Write pooling over small windows, or over all there is, as operations on slices."""
    if not any(_fits(graph, eq) for eq in graph.equations):
        return graph
    work = _Rewriter(graph)
    for eq in graph.equations:
        if _fits(graph, eq):
            work.replace(eq, _RULES[eq.prim](work, eq))
        else:
            work.equations.append(eq)
    return work.finish()


def split_sums(graph: Graph) -> Graph:
    """Write a sum over axes that are not neighbours as one over those at the end, and another of what is left."""
    if not any(_is_apart(graph.types, eq) for eq in graph.equations):
        return graph
    work = Builder(graph)
    for eq in graph.equations:
        while _is_apart(work.types, eq):
            axis, keep = eq.params["axis"], eq.params["keepdims"]
            first = next(k for k in range(len(axis)) if _neighbours(axis[k:]))
            part = work.sum(eq.ins[0], axis[first:], keep)
            eq = Equation(eq.prim, (part,), {"axis": axis[:first], "keepdims": keep}, eq.outs, eq.place)
        work.equations.append(eq)
    return work.finish()


def _neighbours(axis: tuple) -> bool:
    return axis == tuple(range(axis[0], axis[-1] + 1))


def _is_apart(types: list, eq: Equation) -> bool:
    if eq.prim is not sum_p or not eq.params["axis"] or _neighbours(eq.params["axis"]):
        return False
    x, y = types[eq.ins[0]], types[eq.outs[0]]
    return x.dtype in _REAL and y.dtype == x.dtype and 0 not in x.shape


def _fits(graph: Graph, eq: Equation) -> bool:
    if eq.prim not in _RULES:
        return False
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)]
    if types[0].dtype not in _REAL or any(t.dtype != types[0].dtype or not t.size for t in types):
        return False
    return math.prod(eq.params["window"]) <= MOST_PLACES or (eq.prim in _SUMS and _is_whole(graph, eq))


def _is_whole(graph: Graph, eq: Equation) -> bool:
    """Return whether there is one window, of all there is."""
    p = eq.params
    spatial = graph.types[eq.outs[0] if "size" in p else eq.ins[0]].shape[-len(p["window"]) :]
    return tuple(p["window"]) == spatial and {*p["dilation"]} == {1} and not any(lo or hi for lo, hi in p["padding"])


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.known: dict[tuple, Any] = {}

    def pad(self, x: int, padding: tuple, value: float) -> int:
        """Return value x with some number around its last axes."""
        key = (x, padding, value)
        if any(lo or hi for lo, hi in padding) and key not in self.known:
            t, spatial = self.types[x], len(padding)
            shape = (*t.shape[:-spatial], *_wide(t.shape[-spatial:], padding))
            inner = _inner(t.shape[-spatial:], padding)
            index = (slice(None),) * (len(shape) - spatial) + inner
            wide = self.scatter([x], [index], shape)
            if value:
                inside = np.zeros(shape[-spatial:], bool)
                inside[inner] = True
                wide = self.where(self.constant(inside), wide, self.number(value, t.dtype))
            self.known[key] = wide
        return self.known.get(key, x)

    def places(self, eq: Equation, x: int, y: int) -> tuple[list[tuple], list[int]]:
        """Return for each place in a window the slice of (padded) x there, as an index and as a value."""
        p = eq.params
        rank, spatial = len(self.types[y].shape), len(p["window"])
        out = self.types[y].shape[rank - spatial :]
        lead = (slice(None),) * (rank - spatial)
        indices = [(*lead, *tap) for tap in taps(p["window"], p["stride"], p["dilation"], out)]
        key = (x, *p["window"], *p["stride"], *p["dilation"])
        if x >= 0 and key not in self.known:  # a maximum and its derivative look at the same slices
            self.known[key] = [self.getitem(x, index) for index in indices]
        return indices, self.known[key] if x >= 0 else []

    def fold(self, combine: Callable, parts: list) -> int:
        return functools.reduce(combine, parts) if len(parts) > 1 else self.positive(parts[0])

    def scatter_padded(self, eq: Equation, indices: list, pieces: list) -> int:
        """Add pieces into slices of a result, which was padded."""
        t, padding = self.types[eq.outs[0]], eq.params["padding"]
        spatial = len(padding)
        size = t.shape[len(t.shape) - spatial :]
        shape = (*t.shape[: len(t.shape) - spatial], *_wide(size, padding))
        wide = self.scatter(pieces, indices, shape)
        if shape == t.shape:
            return wide
        return self.getitem(wide, (slice(None),) * (len(shape) - spatial) + _inner(size, padding))

    def hits(self, parts: list, y: int) -> tuple[list, int]:
        """Return for each place in a window whether the maximum is there, as a number, and how many there are."""
        one, zero = (self.number(value, self.types[y].dtype) for value in (1.0, 0.0))
        hits = [self.where(self.equal(p, y), one, zero) for p in parts]
        return hits, self.maximum(functools.reduce(self.add, hits), one)


def _wide(size: tuple, padding: tuple) -> tuple:
    return tuple([lo + n + hi for n, (lo, hi) in zip(size, padding, strict=True)])


def _inner(size: tuple, padding: tuple) -> tuple:
    return tuple([slice(lo, lo + n) for n, (lo, _) in zip(size, padding, strict=True)])


def _maximum(work: _Rewriter, eq: Equation) -> int:
    x = work.pad(eq.ins[0], eq.params["padding"], -math.inf)
    return work.fold(work.maximum, work.places(eq, x, eq.outs[0])[1])


def _spread(work: _Rewriter, eq: Equation) -> int:
    ct, x, y = eq.ins
    indices, parts = work.places(eq, work.pad(x, eq.params["padding"], -math.inf), y)
    hits, count = work.hits(parts, y)
    share = work.divide(ct, count)
    return work.scatter_padded(eq, indices, [work.multiply(share, hit) for hit in hits])


def _pick(work: _Rewriter, eq: Equation) -> int:
    t, x, y = eq.ins
    _, parts = work.places(eq, work.pad(x, eq.params["padding"], -math.inf), y)
    _, tangents = work.places(eq, work.pad(t, eq.params["padding"], 0.0), y)
    hits, count = work.hits(parts, y)
    parts = [work.multiply(*pair) for pair in zip(tangents, hits, strict=True)]
    return work.divide(functools.reduce(work.add, parts), count)


def _sum(work: _Rewriter, eq: Equation) -> int:
    if _is_whole(work.graph, eq):
        rank = len(work.types[eq.ins[0]].shape)
        return work.sum(eq.ins[0], tuple(range(rank - len(eq.params["window"]), rank)), keepdims=True)
    x = work.pad(eq.ins[0], eq.params["padding"], 0.0)
    return work.fold(work.add, work.places(eq, x, eq.outs[0])[1])


def _sum_spread(work: _Rewriter, eq: Equation) -> int:
    (ct,) = eq.ins
    if _is_whole(work.graph, eq):
        return work.broadcast_to(ct, work.types[eq.outs[0]].shape)
    indices, _ = work.places(eq, -1, ct)
    return work.scatter_padded(eq, indices, [ct] * len(indices))


_SUMS = (sum_pool_p, sum_spread_p)
_RULES: dict[Primitive, Callable] = {
    max_pool_p: _maximum, max_spread_p: _spread, max_pick_p: _pick, sum_pool_p: _sum, sum_spread_p: _sum_spread,
}  # fmt: skip
