"""Large scatters of neighbouring slices as loops over their result.

The pullback of ``x[1:] - x[:-1]`` adds two shifted arrays into one. Done as it is written, each goes through memory
on its own. Seen from the result, each stretch of it is a sum of slices; and a slice of what a cheap elementwise chain
computes is that chain on slices of its operands. So every stretch becomes one loop, which reads what the chain reads,
and nothing between is stored.
"""

from __future__ import annotations

import itertools

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import is_heavy, template
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph
from fad.ops.places.indexing import scatter_p

SMALLEST = 1 << 15  # elements of a result from which on memory costs more than another kernel
MOST_PIECES = 4
MOST_AGAIN = 48  # operations that a stretch may compute again


def scatter_to_gather(graph: Graph) -> Graph:
    """Rewrite each large scatter of a few shifted slices as a join of stretches."""
    if not any(_fits(graph, eq) for eq in graph.equations):
        return graph
    work = _Rewriter(graph)
    for eq in graph.equations:
        work.made.update(dict.fromkeys(eq.outs, eq))
        if _fits(graph, eq):
            work.rewrite(eq)
        else:
            work.equations.append(eq)
    return drop_dead(work.finish())


def _fits(graph: Graph, eq: Equation) -> bool:
    if eq.prim is not scatter_p or not 1 < len(eq.ins) <= MOST_PIECES:
        return False
    out = graph.types[eq.outs[0]]
    same = all(graph.types[i].dtype == out.dtype for i in eq.ins)
    return same and out.size >= SMALLEST and out.dtype.kind == "f" and _ranges(eq, out.shape) is not None


def _ranges(eq: Equation, shape: tuple) -> tuple[int, list[tuple[int, int]]] | None:
    """Return the axis along which the pieces are shifted, and where each begins and ends; None for other scatters."""
    axis, found = None, []
    for index in eq.params["indices"]:
        index = index if type(index) is tuple else (index,)
        if not all(type(p) is slice for p in index):
            return None
        bounds = [p.indices(n) for p, n in zip(index, shape, strict=False)]
        partial = [d for d, (a, b, step) in enumerate(bounds) if (a, b, step) != (0, shape[d], 1)]
        if len(partial) != 1 or axis not in (None, partial[0]):
            return None
        axis = partial[0]
        start, stop, step = bounds[axis]
        if step != 1 or stop <= start:
            return None
        found.append((start, stop))
    return None if axis is None else (axis, found)


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.made: dict[int, Equation] = {}  # value -> the equation that computes it
        self.known: dict[tuple, int] = {}  # (value, axis, start, stop) -> the slice of it

    def rewrite(self, eq: Equation) -> None:
        out = self.types[eq.outs[0]]
        axis, ranges = _ranges(eq, out.shape)  # type: ignore[misc]
        edges = sorted({0, out.shape[axis], *(e for r in ranges for e in r)})
        stretches = []
        for start, stop in itertools.pairwise(edges):
            total = None
            for i, (a, b) in zip(eq.ins, ranges, strict=True):
                if a <= start and stop <= b:
                    part = self.slice(i, axis, start - a, stop - a, len(out.shape), [MOST_AGAIN])
                    total = part if total is None else self.add(total, part)
            if total is None:
                shape = (*out.shape[:axis], stop - start, *out.shape[axis + 1 :])
                total = self.constant(np.broadcast_to(np.zeros((), out.dtype), shape))
            stretches.append(total)
        self.replace(eq, self.concatenate(stretches, axis))

    def slice(self, i: int, axis: int, start: int, stop: int, rank: int, budget: list[int]) -> int:
        """Return value i from start to stop along an axis of a result of this rank, computed again if that is cheap."""
        t = self.types[i]
        d = axis - (rank - len(t.shape))
        if d < 0 or t.shape[d] == 1:
            return i
        key = (i, d, start, stop)
        if key not in self.known:
            self.known[key] = self._slice(i, d, start, stop, budget)
        return self.known[key]

    def _slice(self, i: int, d: int, start: int, stop: int, budget: list[int]) -> int:
        t = self.types[i]
        if i in self.constants and not any(self.constants[i].strides):
            return self.constant(self.constants[i][(slice(None),) * d + (slice(start, stop),)])
        eq = self.made.get(i)
        text = None if eq is None else template(self.graph, eq, self.constants)
        if eq is None or text is None or is_heavy(text) or budget[0] <= 0:
            return self.take_along(i, d, start, stop)
        budget[0] -= 1
        ins = [self.slice(x, d, start, stop, len(t.shape), budget) for x in eq.ins]
        return self.clone(eq, ins, (*t.shape[:d], stop - start, *t.shape[d + 1 :]))
