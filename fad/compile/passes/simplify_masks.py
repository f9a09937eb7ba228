"""What masks say that is known: both of two that exclude each other, a choice by a constant, what a mask has counted.

The derivative of a choice remembers where it was zero by selection. Of a slice whose length differs from step to step,
which is a whole axis and a mask, nothing is left of that but booleans that are false, or equal to another mask.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.passes.constants import as_uniform
from fad.core.primitives.cotangent import is_basic
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, Equation, Graph, Type
from fad.core.programs.rewriter import rename
from fad.ops.arrangement.structural import broadcast_p
from fad.ops.places.indexing import scatter_p
from fad.ops.reductions.reduction import sum_p
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.elementwise import logical_and, logical_not, logical_or
from fad.ops.ufuncs.selection import where_p


def simplify_masks(graph: Graph) -> Graph:
    """Leave out operations on masks whose result is known: a constant, or a value that is there."""
    if not any(eq.prim in _RULES for eq in graph.equations):
        return graph
    return _Masks(graph).run()


class _Masks(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.made: dict[int, Equation] = {}
        self.alias: dict[int, int] = {}

    def run(self) -> Graph:
        for eq in self.graph.equations:
            eq = rename(eq, self.alias)
            rule = _RULES.get(eq.prim)
            found = rule(self, eq) if rule is not None else None
            if found is not None and self.types[found] == self.types[eq.outs[0]]:
                self.alias[eq.outs[0]] = found
                continue
            if len(eq.outs) == 1:
                self.made[eq.outs[0]] = eq
            self.equations.append(eq)
        return self.finish().replace(outputs=[self.alias.get(o, o) for o in self.graph.outputs])

    def always(self, i: int) -> bool | None:
        """Return what a mask is everywhere, if that is known."""
        c = self.constants.get(i)
        t = self.types[i]
        number = None if c is None or t.home is not None or t.dtype != bool else as_uniform(np.asarray(c))
        return None if number is None else bool(number)

    def everywhere(self, value: object, t: Type) -> int | None:
        """Return a constant that is one number everywhere; None for what is no array of NumPy's."""
        if t.home is not None or t.kind != ARRAY:
            return None
        return self.constant(np.broadcast_to(np.asarray(value, t.dtype), t.shape))

    def excludes(self, x: int, y: int) -> bool:
        """Return whether one of two masks is what the other one is not."""
        pairs = ((x, y), (y, x))
        return any(
            a in self.made and self.made[a].prim is logical_not and self.made[a].ins[0] == b for a, b in pairs
        )

    def both(self, eq: Equation) -> int | None:
        return self._combine(eq, False)

    def either(self, eq: Equation) -> int | None:
        return self._combine(eq, True)

    def _combine(self, eq: Equation, decisive: bool) -> int | None:
        """Return what two masks are together, of which one that is `decisive` everywhere decides."""
        x, y = eq.ins
        t = self.types[eq.outs[0]]
        if t.dtype != bool or any(self.types[i].dtype != bool for i in eq.ins):
            return None
        if x == y:
            return x
        known = [self.always(i) for i in eq.ins]
        if decisive in known or self.excludes(x, y):
            return self.everywhere(decisive, t)
        return y if known[0] is not None else x if known[1] is not None else None

    def choice(self, eq: Equation) -> int | None:
        if len(eq.ins) != 3:
            return None
        mask, x, y = eq.ins
        known = self.always(mask)
        if known is None:
            return None
        found, t = (x if known else y), self.types[eq.outs[0]]
        number = as_uniform(np.asarray(self.constants[found])) if found in self.constants else None
        same = number is not None and self.types[found].dtype == t.dtype and self.types[found] != t
        return self.everywhere(number, t) if same else found

    def cover(self, eq: Equation) -> int | None:
        """Return what is scattered if it covers the whole result."""
        if len(eq.ins) != 1 or self.types[eq.ins[0]].shape != self.types[eq.outs[0]].shape:
            return None
        (index,) = eq.params["indices"]
        index = index if type(index) is tuple else (index,)
        forwards = is_basic(index) and all(type(p) is slice and (p.step or 1) > 0 for p in index)
        return eq.ins[0] if forwards else None

    def count(self, eq: Equation) -> int | None:
        """Return how many booleans of a mask are true along axes along which it does not differ."""
        converted = self.made.get(eq.ins[0])
        wide = self.made.get(converted.ins[0]) if converted is not None and converted.prim is astype_p else None
        if wide is None or wide.prim is not broadcast_p or self.types[wide.ins[0]].dtype != bool:
            return self._sum_of_zeros(eq)
        mask, shape, t = wide.ins[0], self.types[wide.outs[0]].shape, self.types[eq.outs[0]]
        narrow = (1,) * (len(shape) - len(self.types[mask].shape)) + self.types[mask].shape
        axes = eq.params["axis"]
        if t.kind != ARRAY or any(narrow[d] != 1 for d in axes) or any(
            narrow[d] != n for d, n in enumerate(shape) if d not in axes
        ):
            return None
        ones = self.astype(self.reshape(mask, t.shape), t.dtype)
        return self.multiply(ones, self.number(float(np.prod([shape[d] for d in axes])), t.dtype))

    def _sum_of_zeros(self, eq: Equation) -> int | None:
        c, home = self.constants.get(eq.ins[0]), self.types[eq.ins[0]].home
        number = None if c is None or home is not None else as_uniform(np.asarray(c))
        return self.everywhere(0, self.types[eq.outs[0]]) if number is not None and number == 0 else None


_RULES: dict[Primitive, Callable[[_Masks, Equation], int | None]] = {
    logical_and: _Masks.both, logical_or: _Masks.either, where_p: _Masks.choice, scatter_p: _Masks.cover,
    sum_p: _Masks.count,
}  # fmt: skip
