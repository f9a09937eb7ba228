"""What all that rewrites recorded programs has in common: the values, constants and equations written so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, SCALAR, Equation, Graph, Type, type_of


class Rewriting:
    """A graph that is being rewritten. It begins with the values of the old one, which keep their numbers."""

    place: Any = None  # the user's line that new equations belong to

    def __init__(self, graph: Graph):
        self.graph = graph
        self.types = list(graph.types)
        self.constants = dict(graph.constants)
        self.equations: list[Equation] = []

    def add_value(self, t: Type) -> int:
        """Return the number of a new value, which is the result of no equation so far."""
        self.types.append(t)
        return len(self.types) - 1

    def apply(self, prim: Primitive, ins: tuple, params: dict, t: Type) -> int:
        """Apply an operation to values, and return the number of its result, which is of type t."""
        out = self.add_value(t)
        self.equations.append(Equation(prim, ins, params, (out,), self.place))
        return out

    def new(self, prim: Primitive, ins: tuple, params: dict, shape: tuple, dtype: Any) -> int:
        """Apply an operation whose result is an array of this shape, or a scalar where it has no axes."""
        return self.apply(prim, ins, params, Type(tuple(shape), np.dtype(dtype), ARRAY if shape else SCALAR))

    def constant(self, value: Any, kind: str = ARRAY) -> int:
        """Return the number of a constant, an array or a NumPy scalar."""
        i = self.add_value(Type(value.shape, value.dtype, kind))
        self.constants[i] = value
        return i

    def number(self, value: float, dtype: np.dtype) -> int:
        return self.constant(dtype.type(value), SCALAR)

    def finish(self) -> Graph:
        """Return the graph as it is written by now."""
        return self.graph.replace(types=self.types, equations=self.equations, constants=self.constants)


def rename(eq: Equation, alias: dict[int, int]) -> Equation:
    """Return an equation with other values in the place of those that `alias` names."""
    if alias.keys().isdisjoint(eq.ins):
        return eq
    return Equation(eq.prim, tuple([alias.get(i, i) for i in eq.ins]), eq.params, eq.outs, eq.place)


def rewrite_equations(graph: Graph, rewrite: Callable, constants: dict | None = None) -> Graph:
    """Run over the equations once: `rewrite` gets each with its operands' new names, and returns it, another or None.

    ``rewrite(eq, alias)`` may enter ``alias[out] = value`` for a result that is some earlier value.
    """
    alias: dict[int, int] = {}
    equations = []
    for eq in graph.equations:
        eq = rewrite(rename(eq, alias), alias)
        if eq is not None:
            equations.append(eq)
    outputs = [alias.get(i, i) for i in graph.outputs]
    return graph.replace(
        equations=equations, outputs=outputs, constants=graph.constants if constants is None else constants
    )


def check_types(graph: Graph) -> None:
    """Raise AssertionError if a constant is not of its type: for tests of passes."""
    for i, c in graph.constants.items():
        found = type_of(c)
        assert (found.shape, found.dtype) == (graph.types[i].shape, graph.types[i].dtype), (i, found, graph.types[i])
