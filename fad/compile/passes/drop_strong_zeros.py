"""Products with the slope of an exponential that cannot overflow are products like any other.

Softmax subtracts the maximum first, a bell curve is the exponential of what is negative. Of these
`fad.ops.ufuncs.strong_zero` has nothing to look at, and the passes behind this one know what to do with products.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import broadcast_p, reshape_p, transpose_p
from fad.ops.reductions.reduction import max_p
from fad.ops.ufuncs.bounds import ANYTHING, POSITIVE, Bounds
from fad.ops.ufuncs.bounds import multiply as multiply_bounds
from fad.ops.ufuncs.conversion import astype_flat_p, astype_p
from fad.ops.ufuncs.elementwise import add, exp, exp2, expm1, multiply, power, subtract
from fad.ops.ufuncs.strong_zero import strong_multiply

_DEEPEST = 12  # operations that are looked through
_LARGEST = 80.0  # of what an exponential is computed: its value is finite, in single precision too
_SAME_NUMBERS = {reshape_p, broadcast_p, transpose_p, astype_p, astype_flat_p}


def drop_strong_zeros(graph: Graph) -> Graph:
    """Replace the products whose slope is known to be finite."""
    if not any(eq.prim is strong_multiply for eq in graph.equations):
        return graph
    known = _Bounds(graph)
    equations = [
        Equation(multiply, eq.ins, {}, eq.outs, eq.place)
        if eq.prim is strong_multiply and graph.types[eq.outs[0]].dtype.kind == "f" and known.is_finite_slope(eq.ins[1])
        else eq
        for eq in graph.equations
    ]
    return graph.replace(equations=equations)


class _Bounds:
    """What is known of the values of a program from the operations that make them."""

    def __init__(self, graph: Graph):
        self.types, self.constants = graph.types, graph.constants
        self.made = {eq.outs[0]: eq for eq in graph.equations if len(eq.outs) == 1}

    def is_finite_slope(self, i: int) -> bool:
        """Return whether a value is an exponential of what is bounded, but for a constant summand or factor."""
        eq = self.made.get(i)
        if eq is not None and eq.prim in (add, multiply):
            eq = self.made.get(next((k for k in eq.ins if k not in self.constants), i))
        return eq is not None and eq.prim in (exp, exp2, expm1) and self.bounds_of(eq.ins[0])[1] <= _LARGEST

    def bounds_of(self, i: int, depth: int = _DEEPEST) -> Bounds:
        """Return the least and the greatest number that an array may hold."""
        i, eq = self._look_through(i)
        if eq is None:
            return _bounds_of_constant(self.constants.get(i))
        if not depth:
            return ANYTHING
        if eq.prim is subtract and self._is_maximum_of(eq.ins[1], eq.ins[0]):
            return -np.inf, 0.0
        if eq.prim is power and eq.ins[1] in self.constants:
            return POSITIVE if np.all(self.constants[eq.ins[1]] % 2 == 0) else ANYTHING
        if eq.prim is multiply:
            singles, pairs = self._find_factors(eq)
            known = [POSITIVE] * pairs + [self.bounds_of(k, depth - 1) for k in singles]
            return functools.reduce(multiply_bounds, known)
        rule = eq.prim.bounds
        return ANYTHING if rule is None else rule(*[self.bounds_of(k, depth - 1) for k in eq.ins])

    def _find_factors(self, eq: Equation) -> tuple[list[int], int]:
        """Return the factors of a product of two or more that are there once, and how many squares there are."""
        singles: list[int] = []
        squares = 0
        waiting = list(eq.ins)
        while waiting:
            i, eq_of = self._look_through(waiting.pop())
            if eq_of is not None and eq_of.prim is multiply:
                waiting += eq_of.ins
            elif i in singles:
                singles.remove(i)
                squares += 1
            else:
                singles.append(i)
        return singles, squares

    def _look_through(self, i: int) -> tuple[int, Equation | None]:
        """Return the value with the same numbers that an operation computes, and that; None for what is given."""
        eq = self.made.get(i)
        while eq is not None and eq.prim in _SAME_NUMBERS and self.types[eq.ins[0]].dtype.kind != "c":
            if self.types[i].dtype.kind != "f":
                return i, None  # integers may be others than the numbers they are made of
            i = eq.ins[0]
            eq = self.made.get(i)
        return i, eq

    def _is_maximum_of(self, m: int, i: int) -> bool:
        _, eq = self._look_through(m)
        return eq is not None and eq.prim is max_p and eq.ins[0] == i


def _bounds_of_constant(constant: Any) -> Bounds:
    c = np.asarray(constant)
    if not c.size or c.dtype.kind not in "fiu" or not np.all(np.isfinite(c)):
        return ANYTHING
    return float(np.min(c)), float(np.max(c))
