"""What the pullbacks of branches read of large operands: small values, which the branches return beside their results.

``if c: d[i, j] = w * d[i - 1, j]`` has a derivative that reads one element of d. Were d itself what the pullback takes,
a loop around would keep all of it in every step.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from fad.control_flow.derivatives.split_pullback import PIECES, find_needed
from fad.core.programs.graph import NUMBER, SCALAR, Equation, Graph, Type, has_effects
from fad.core.programs.rewriter import Rewriting, rename
from fad.staging.python_numbers import to_scalar_p


class Cut(NamedTuple):
    """Branches that return more, and pullbacks that take it, between the branches' operands and the cotangents."""

    branches: tuple[Graph, ...]
    pullbacks: list[Graph]
    kept: int


def cut_pullbacks(branches: tuple[Graph, ...], pullbacks: list[Graph], n: int) -> Cut:
    """Let branches return what their pullbacks compute from large operands, if the pullbacks need these for that alone.

    The first n inputs of a pullback are the operands of its branch, then come cotangents.
    """
    if any(has_effects(eq) or not eq.outs for g in pullbacks for eq in g.equations):
        return Cut(branches, pullbacks, 0)
    sides = [_Side(g, n) for g in pullbacks]
    whole = {k for side in sides for k in side.find_whole()}
    kept = [side.find_kept(whole) for side in sides]
    columns: Counter = Counter()
    for side, values in zip(sides, kept, strict=True):
        columns |= Counter([side.graph.types[v].key() for v in values])
    types = {side.graph.types[v].key(): side.graph.types[v] for side, vs in zip(sides, kept, strict=True) for v in vs}
    slots = [types[key] for key in columns.elements()]
    if not slots:
        return Cut(branches, pullbacks, 0)
    placed = [_place(values, side.graph, slots) for side, values in zip(sides, kept, strict=True)]
    longer = [_return_more(g, s, vs, slots) for g, s, vs in zip(branches, sides, placed, strict=True)]
    return Cut(tuple(longer), [_take(s, vs, slots) for s, vs in zip(sides, placed, strict=True)], len(slots))


class _Side:
    """The pullback of one branch: which operands the values need that do not depend on a cotangent."""

    def __init__(self, graph: Graph, n: int):
        self.graph = graph
        self.n = n
        self.needs: dict[int, set[int]] = {v: {k} for k, v in enumerate(graph.inputs[:n])}
        late = set(graph.inputs[n:])
        self.read: dict[int, None] = {}  # what is made before any cotangent is read, and read behind
        for eq in graph.equations:
            if late.isdisjoint(eq.ins):
                found = set().union(*[self.needs.get(i, set()) for i in eq.ins])
                self.needs.update(dict.fromkeys(eq.outs, found))
            else:
                late.update(eq.outs)
                self.read.update(dict.fromkeys([i for i in eq.ins if i in self.needs]))
        self.read.update(dict.fromkeys([o for o in graph.outputs if o in self.needs]))

    def _find_large(self, v: int) -> set[int]:
        """Return the operands that a value needs, and that are so much larger that it is kept in their place."""
        t, inputs = self.graph.types[v], self.graph.inputs[: self.n]
        if t.kind == NUMBER or v in inputs:
            return set()
        return {k for k in self.needs[v] if self.graph.types[inputs[k]].size >= PIECES * t.size}

    def find_whole(self) -> set[int]:
        """Return the operands that are read in any case."""
        return set().union(*[self.needs[v] for v in self.read if not self._find_large(v)])

    def find_kept(self, whole: set[int]) -> list[int]:
        """Return the values to be kept in the place of operands that are not read otherwise."""
        return [v for v in self.read if self._find_large(v) - whole]


def _place(values: list[int], graph: Graph, slots: list[Type]) -> list[int | None]:
    """Return for each slot the value of its type that goes there, None where there is none left."""
    waiting = list(values)
    placed: list[int | None] = []
    for t in slots:
        found = next((v for v in waiting if graph.types[v].key() == t.key()), None)
        if found is not None:
            waiting.remove(found)
        placed.append(found)
    return placed


def _return_more(branch: Graph, side: _Side, values: list[int | None], slots: list[Type]) -> Graph:
    """Return a branch with what its pullback keeps as further results, and zeros in the places of other branches."""
    work, source = Rewriting(branch), side.graph
    work.equations += branch.equations
    alias: dict[int, int] = {}

    def enter(v: int) -> None:
        if v not in alias:
            alias[v] = work.add_value(source.types[v])
            if v in source.constants:
                work.constants[alias[v]] = source.constants[v]

    for v, mine in zip(source.inputs, branch.inputs, strict=False):
        alias[v] = mine if source.types[v].kind == NUMBER else as_scalar(work, mine)
    for eq in find_needed(source.equations, [v for v in values if v is not None]):
        for v in (*eq.ins, *eq.outs):
            enter(v)
        renamed = rename(eq, alias)
        work.equations.append(Equation(eq.prim, renamed.ins, eq.params, tuple([alias[o] for o in eq.outs]), eq.place))
    more = [alias[v] if v is not None else _zeros(work, t) for v, t in zip(values, slots, strict=True)]
    return work.finish().replace(outputs=[*branch.outputs, *more])


def as_scalar(work: Rewriting, v: int) -> int:
    """Return a value, as NumPy's scalar where it is a number of Python's."""
    t = work.types[v]
    return work.apply(to_scalar_p, (v,), {}, Type((), t.dtype, SCALAR)) if t.kind == NUMBER else v


def _zeros(work: Rewriting, t: Type) -> int:
    v = work.add_value(t)
    work.constants[v] = t.zeros()
    return v


def _take(side: _Side, values: list[int | None], slots: list[Type]) -> Graph:
    """Return a pullback that is given what its branch keeps."""
    work, graph = Rewriting(side.graph), side.graph
    taken = [work.add_value(t) if v is None else v for v, t in zip(values, slots, strict=True)]
    given = {v for v in values if v is not None}
    work.equations = find_needed([eq for eq in graph.equations if given.isdisjoint(eq.outs)], graph.outputs)
    return work.finish().replace(inputs=[*graph.inputs[: side.n], *taken, *graph.inputs[side.n :]])
