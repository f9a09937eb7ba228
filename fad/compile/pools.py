"""What is written otherwise where a program becomes native code: maxima of windows, sums over axes apart, and
transposed matrices that many products read.

Maxima of windows become maxima of slices, which are fused like any other elementwise operation; a sum over axes that
are not neighbours becomes one sum after the other.
"""

from __future__ import annotations

import math

import numpy as np

from fad.compile.products import SMALL_GATHERED, is_small
from fad.core.graph import ARRAY, SCALAR, Equation, Graph, Type
from fad.core.primitive import REGISTRY
from fad.ops.conv import taps

FEWEST_USES, LARGEST_TURNED = 4, 1 << 14  # of a transposed matrix that is copied, and its elements
FEWEST_ROWS = 16, 256  # of a left factor, from which on it pays to copy the right one: else gathered, else by BLAS
MOST_PLACES = 9  # in a window; each is an operand of the loop
_REAL = (np.dtype(float), np.dtype(np.float32))


def expand_pools(graph: Graph) -> Graph:
    """Write small pooling windows without padding as slices; windows that overlap keep their derivative."""
    if not any(_fits(graph, eq) for eq in graph.equations):
        return graph
    work = _Rewriter(graph)
    for eq in graph.equations:
        if not _fits(graph, eq):
            work.equations.append(eq)
        elif eq.prim.name == "max_of_windows":
            work.maximum(eq)
        else:
            work.spread(eq)
    return graph.replace(types=work.types, equations=work.equations, constants=work.constants)


def lay_by_rows(graph: Graph) -> Graph:
    """Copy a small transposed matrix once where many small products or rows read it: gathering its columns costs more.

    So the weights of a recurrent network are turned once in an unrolled reverse pass, and not in each step.
    """
    types = graph.types
    turned = {eq.outs[0] for eq in graph.equations if eq.prim.name == "permute" and _turns(eq.params["axes"])}
    uses: dict[int, int] = {}
    chosen: set[int] = set()
    for eq in graph.equations:
        if eq.prim.name == "matmul" and eq.ins[1] in turned and types[eq.ins[1]].dtype in _REAL:
            i, left = eq.ins[1], types[eq.ins[0]].shape
            uses[i] = uses.get(i, 0) + 1
            size = (left[-2] if len(left) > 1 else 1, *types[i].shape[-2:])
            fewest = FEWEST_ROWS[math.prod(size) > SMALL_GATHERED]
            if size[0] >= fewest and is_small(*size):
                chosen.add(i)
    chosen |= {i for i, n in uses.items() if n >= FEWEST_USES and types[i].size <= LARGEST_TURNED}
    if not chosen:
        return graph
    types, copies = list(graph.types), {}
    equations: list[Equation] = []
    for eq in graph.equations:
        if eq.prim.name == "matmul" and eq.ins[1] in copies:
            eq = Equation(eq.prim, (eq.ins[0], copies[eq.ins[1]]), eq.params, eq.outs)
        equations.append(eq)
        if eq.outs and eq.outs[0] in chosen:
            types.append(types[eq.outs[0]])
            copies[eq.outs[0]] = len(types) - 1
            params = {"dtype": types[-1].dtype}
            equations.append(Equation(REGISTRY["convert"], (eq.outs[0],), params, (len(types) - 1,)))
    return graph.replace(types=types, equations=equations)


def _turns(axes: tuple) -> bool:
    """Tell whether what ran along rows runs along columns then."""
    return len(axes) > 1 and axes[-2] == len(axes) - 1


def split_sums(graph: Graph) -> Graph:
    """Write a sum over axes that are not neighbours as one over those at the end, and another of what is left."""
    if not any(_is_apart(graph.types, eq) for eq in graph.equations):
        return graph
    types = list(graph.types)
    equations: list[Equation] = []
    for eq in graph.equations:
        while _is_apart(types, eq):
            axis, keep = eq.params["axis"], eq.params["keepdims"]
            first = next(k for k in range(len(axis)) if _neighbours(axis[k:]))
            shape = types[eq.ins[0]].shape
            left = [1 if d in axis[first:] else n for d, n in enumerate(shape) if keep or d not in axis[first:]]
            types.append(Type(tuple(left), types[eq.outs[0]].dtype, ARRAY))
            part = (len(types) - 1,)
            equations.append(Equation(eq.prim, eq.ins, {"axis": axis[first:], "keepdims": keep}, part))
            eq = Equation(eq.prim, part, {"axis": axis[:first], "keepdims": keep}, eq.outs)
        equations.append(eq)
    return graph.replace(types=types, equations=equations)


def _neighbours(axis: tuple) -> bool:
    return axis == tuple(range(axis[0], axis[-1] + 1))


def _is_apart(types: list, eq: Equation) -> bool:
    if eq.prim.name != "sum_over" or not eq.params["axis"] or _neighbours(eq.params["axis"]):
        return False
    x, y = types[eq.ins[0]], types[eq.outs[0]]
    return x.dtype in _REAL and y.dtype == x.dtype and 0 not in x.shape


def _fits(graph: Graph, eq: Equation) -> bool:
    if eq.prim.name not in ("max_of_windows", "max_pool_spread"):
        return False
    p = eq.params
    apart = all(s >= w for s, w in zip(p["stride"], p["window"], strict=True)) and set(p["dilation"]) == {1}
    plain = not any(lo or hi for lo, hi in p["padding"]) and math.prod(p["window"]) <= MOST_PLACES
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)]
    same = types[0].dtype in _REAL and all(t.dtype == types[0].dtype for t in types)
    return plain and same and (apart or eq.prim.name == "max_of_windows")


class _Rewriter:
    def __init__(self, graph: Graph):
        self.types = list(graph.types)
        self.constants = dict(graph.constants)
        self.equations: list[Equation] = []
        self.known: dict[tuple, list[int]] = {}

    def new(self, prim: str, ins: tuple, like: int, params: dict | None = None, dtype: object = None) -> int:
        t = self.types[like]
        self.types.append(Type(t.shape, np.dtype(dtype or t.dtype), ARRAY))
        self.equations.append(Equation(REGISTRY[prim], ins, params or {}, (len(self.types) - 1,)))
        return len(self.types) - 1

    def number(self, value: float, like: int) -> int:
        dtype = self.types[like].dtype
        self.types.append(Type((), dtype, SCALAR))
        self.constants[len(self.types) - 1] = dtype.type(value)
        return len(self.types) - 1

    def places(self, eq: Equation, x: int, y: int) -> tuple[list[tuple], list[int]]:
        """Return for each place in a window the slice of x there, as an index and as a value."""
        p = eq.params
        rank, spatial = len(self.types[x].shape), len(p["window"])
        out = self.types[y].shape[rank - spatial :]
        lead = (slice(None),) * (rank - spatial)
        indices = [(*lead, *tap) for tap in taps(p["window"], p["stride"], p["dilation"], out)]
        key = (x, *p["window"], *p["stride"], *p["dilation"])
        if key not in self.known:  # a maximum and its derivative look at the same slices
            self.known[key] = [self.new("getitem", (x,), y, {"template": index}) for index in indices]
        return indices, self.known[key]

    def maximum(self, eq: Equation) -> None:
        (x,), (y,) = eq.ins, eq.outs
        _, parts = self.places(eq, x, y)
        found, *rest = parts
        for part in rest[:-1]:
            found = self.new("maximum", (found, part), y)
        ins = (found, rest[-1] if rest else found)
        self.equations.append(Equation(REGISTRY["maximum"], ins, {}, eq.outs))

    def spread(self, eq: Equation) -> None:
        ct, x, y = eq.ins
        indices, parts = self.places(eq, x, y)
        one, zero = self.number(1.0, y), self.number(0.0, y)
        hits = [self.new("where_select", (self.new("equal", (p, y), y, dtype=bool), one, zero), y) for p in parts]
        count = hits[0]
        for hit in hits[1:]:
            count = self.new("add", (count, hit), y)
        share = self.new("divide", (ct, self.new("maximum", (count, one), y)), y)
        pieces = tuple([self.new("multiply", (share, hit), y) for hit in hits])
        t = self.types[eq.outs[0]]
        params = {"shape": t.shape, "dtype": t.dtype, "indices": tuple(indices)}
        self.equations.append(Equation(REGISTRY["scatter"], pieces, params, eq.outs))
