"""What the derivative of a loop's body adds up for nothing: zeros, and the two parts of what it has whole.

Only operations on cotangents are looked at. In them the sign of a zero says nothing, so that zeros need not be added.
"""

from __future__ import annotations

from typing import Any

from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph
from fad.core.programs.rewriter import rewrite_equations
from fad.core.tracing.values import is_zero
from fad.ops.arrangement.structural import transpose_p
from fad.ops.ufuncs.elementwise import add, logical_not
from fad.ops.ufuncs.selection import where_p


def tidy_cotangents(graph: Graph, seeds: set[int]) -> Graph:
    """Leave out additions of zeros to what depends on some cotangents, and of parts that a mask chose and left."""
    return _Tidying(graph, seeds).run()


class _Tidying:
    def __init__(self, graph: Graph, seeds: set[int]):
        self.before = graph
        self.late = set(seeds)
        self.made: dict[int, Equation] = {}

    def run(self) -> Graph:
        return drop_dead(rewrite_equations(self.before, self._rewrite))

    def _rewrite(self, eq: Equation, alias: dict[int, int]) -> Equation | None:
        if not self.late.isdisjoint(eq.ins):
            self.late.update(eq.outs)
            found = self._sum(*eq.ins) if eq.prim is add else self._find_added(eq)
            if type(found) is tuple:
                eq = Equation(transpose_p, found[:1], {"axes": found[1]}, eq.outs, eq.place)
            elif found is not None and self._same_type(found, eq.outs[0]):
                alias[eq.outs[0]] = found
                return None
        self.made.update(dict.fromkeys(eq.outs, eq))
        return eq

    def _same_type(self, x: int, y: int) -> bool:
        return self.before.types[x] == self.before.types[y]

    def _find_added(self, eq: Equation) -> int | None:
        return eq.ins[0] if eq.prim.adds and self._is_zero(eq.ins[1]) else None

    def _sum(self, x: int, y: int) -> Any:
        """Return the value that a sum is, if there is one already; or a value and its axes in another order."""
        if self._is_zero(x):
            return y
        if self._is_zero(y):
            return x
        a, b = self._part(x), self._part(y)
        if not a or not b or a[:3] != b[:3] or a[3] == b[3]:
            return None
        return a[:2] if a[1] else a[0]

    def _part(self, i: int) -> tuple[int, tuple, int, bool] | None:
        """Return the array of which a mask chooses the elements of another, zero elsewhere.

        With it the axes in the order in which the other one has them, empty if in its own; the mask, and if it is.
        """
        eq, axes = self.made.get(i), ()
        if eq is not None and eq.prim is transpose_p:
            axes, i = eq.params["axes"], eq.ins[0]
            eq = self.made.get(i)
        if eq is None or eq.prim is not where_p or not self._is_zero(eq.ins[2]):
            return None
        mask, x, _ = eq.ins
        chosen = True
        while mask in self.made and self.made[mask].prim is logical_not:
            chosen, mask = not chosen, self.made[mask].ins[0]
        return (x, axes, mask, chosen) if self._same_type(x, i) else None

    def _is_zero(self, i: int) -> bool:
        c: Any = self.before.constants.get(i)
        return c is not None and is_zero(c)
