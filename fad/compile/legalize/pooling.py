"""Pooling and sums over axes apart, rewritten for native code.

Maxima and sums of windows become those of slices, which are fused like any other elementwise operation; a sum over axes
that are not neighbours becomes one sum after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.graph import Equation, Graph
from fad.core.primitive import Primitive
from fad.core.rewriter import Rewriting
from fad.ops.elementwise import add, divide, equal, maximum, multiply, positive
from fad.ops.indexing import getitem_p, scatter_p
from fad.ops.pooling import max_pick_p, max_pool_p, max_spread_p, sum_pool_p, sum_spread_p
from fad.ops.reduction import sum_p
from fad.ops.selection import where_p
from fad.ops.structural import broadcast_p
from fad.ops.windows import taps

MOST_PLACES = 9  # in a window; each is an operand of the loop
_REAL = (np.dtype(float), np.dtype(np.float32))


def expand_pools(graph: Graph) -> Graph:
    """Write pooling over small windows, or over all there is, as operations on slices."""
    if not any(_fits(graph, eq) for eq in graph.equations):
        return graph
    work = _Rewriter(graph)
    for eq in graph.equations:
        if _fits(graph, eq):
            _RULES[eq.prim](work, eq)
        else:
            work.equations.append(eq)
    return work.finish()


def split_sums(graph: Graph) -> Graph:
    """Write a sum over axes that are not neighbours as one over those at the end, and another of what is left."""
    if not any(_is_apart(graph.types, eq) for eq in graph.equations):
        return graph
    work = Rewriting(graph)
    for eq in graph.equations:
        while _is_apart(work.types, eq):
            axis, keep = eq.params["axis"], eq.params["keepdims"]
            first = next(k for k in range(len(axis)) if _neighbours(axis[k:]))
            shape = work.types[eq.ins[0]].shape
            left = [1 if d in axis[first:] else n for d, n in enumerate(shape) if keep or d not in axis[first:]]
            params = {"axis": axis[first:], "keepdims": keep}
            part = work.new(eq.prim, eq.ins, params, tuple(left), work.types[eq.outs[0]].dtype)
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


class _Rewriter(Rewriting):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.known: dict[tuple, Any] = {}

    def like(self, prim: Primitive, ins: tuple, x: int, dtype: Any = None) -> int:
        """Apply an operation without parameters whose result is like value x."""
        t = self.types[x]
        return self.new(prim, ins, {}, t.shape, dtype or t.dtype)

    def pad(self, x: int, padding: tuple, value: float) -> int:
        """Return value x with some number around its last axes."""
        key = (x, padding, value)
        if any(lo or hi for lo, hi in padding) and key not in self.known:
            t, spatial = self.types[x], len(padding)
            shape = (*t.shape[:-spatial], *_wide(t.shape[-spatial:], padding))
            inner = _inner(t.shape[-spatial:], padding)
            index = (slice(None),) * (len(shape) - spatial) + inner
            params = {"shape": shape, "dtype": t.dtype, "indices": (index,)}
            wide = self.new(scatter_p, (x,), params, shape, t.dtype)
            if value:
                inside = np.zeros(shape[-spatial:], bool)
                inside[inner] = True
                ins = (self.constant(inside), wide, self.number(value, t.dtype))
                wide = self.like(where_p, ins, wide)
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
            shape, dtype = self.types[y].shape, self.types[y].dtype
            self.known[key] = [self.new(getitem_p, (x,), {"template": index}, shape, dtype) for index in indices]
        return indices, self.known[key] if x >= 0 else []

    def fold(self, eq: Equation, prim: Primitive, parts: list) -> None:
        found, *rest = parts
        for part in rest[:-1]:
            found = self.like(prim, (found, part), part)
        self.end(eq, prim, (found, rest[-1]), {}) if rest else self.end(eq, positive, (found,), {})

    def scatter(self, eq: Equation, indices: list, pieces: list) -> None:
        """Add pieces into slices of a result, which was padded."""
        t, padding = self.types[eq.outs[0]], eq.params["padding"]
        spatial = len(padding)
        size = t.shape[len(t.shape) - spatial :]
        shape = (*t.shape[: len(t.shape) - spatial], *_wide(size, padding))
        params = {"shape": shape, "dtype": t.dtype, "indices": tuple(indices)}
        if shape == t.shape:
            self.end(eq, scatter_p, tuple(pieces), params)
        else:
            wide = self.new(scatter_p, tuple(pieces), params, shape, self.types[pieces[0]].dtype)
            inner = (slice(None),) * (len(shape) - spatial) + _inner(size, padding)
            self.end(eq, getitem_p, (wide,), {"template": inner})

    def hits(self, parts: list, y: int) -> tuple[list, int]:
        """Return for each place in a window whether the maximum is there, as a number, and how many there are."""
        one, zero = (self.number(value, self.types[y].dtype) for value in (1.0, 0.0))
        hits = [self.like(where_p, (self.like(equal, (p, y), y, bool), one, zero), y) for p in parts]
        count = hits[0]
        for hit in hits[1:]:
            count = self.like(add, (count, hit), y)
        return hits, self.like(maximum, (count, one), y)


def _wide(size: tuple, padding: tuple) -> tuple:
    return tuple([lo + n + hi for n, (lo, hi) in zip(size, padding, strict=True)])


def _inner(size: tuple, padding: tuple) -> tuple:
    return tuple([slice(lo, lo + n) for n, (lo, _) in zip(size, padding, strict=True)])


def _maximum(work: _Rewriter, eq: Equation) -> None:
    x = work.pad(eq.ins[0], eq.params["padding"], -math.inf)
    work.fold(eq, maximum, work.places(eq, x, eq.outs[0])[1])


def _spread(work: _Rewriter, eq: Equation) -> None:
    ct, x, y = eq.ins
    indices, parts = work.places(eq, work.pad(x, eq.params["padding"], -math.inf), y)
    hits, count = work.hits(parts, y)
    share = work.like(divide, (ct, count), y)
    work.scatter(eq, indices, [work.like(multiply, (share, hit), y) for hit in hits])


def _pick(work: _Rewriter, eq: Equation) -> None:
    t, x, y = eq.ins
    _, parts = work.places(eq, work.pad(x, eq.params["padding"], -math.inf), y)
    _, tangents = work.places(eq, work.pad(t, eq.params["padding"], 0.0), y)
    hits, count = work.hits(parts, y)
    found, *rest = [work.like(multiply, pair, y) for pair in zip(tangents, hits, strict=True)]
    for part in rest:
        found = work.like(add, (found, part), y)
    work.end(eq, divide, (found, count), {})


def _sum(work: _Rewriter, eq: Equation) -> None:
    if _is_whole(work.graph, eq):
        rank = len(work.types[eq.ins[0]].shape)
        axis = tuple(range(rank - len(eq.params["window"]), rank))
        work.end(eq, sum_p, eq.ins, {"axis": axis, "keepdims": True})
        return
    x = work.pad(eq.ins[0], eq.params["padding"], 0.0)
    work.fold(eq, add, work.places(eq, x, eq.outs[0])[1])


def _sum_spread(work: _Rewriter, eq: Equation) -> None:
    (ct,) = eq.ins
    if _is_whole(work.graph, eq):
        work.end(eq, broadcast_p, eq.ins, {"shape": work.types[eq.outs[0]].shape})
        return
    indices, _ = work.places(eq, -1, ct)
    work.scatter(eq, indices, [ct] * len(indices))


_SUMS = (sum_pool_p, sum_spread_p)
_RULES: dict[Primitive, Callable] = {
    max_pool_p: _maximum, max_spread_p: _spread, max_pick_p: _pick, sum_pool_p: _sum, sum_spread_p: _sum_spread,
}  # fmt: skip
