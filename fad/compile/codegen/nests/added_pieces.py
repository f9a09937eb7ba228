"""Pieces that a body adds to an array are added where they belong: without zeros first, and once for each place.

The pullback of a stencil is a sum of scatters, one for each time that the stencil reads the array.
"""

from __future__ import annotations

from collections import Counter

from fad.core.cotangent import is_basic
from fad.core.graph import Equation, Graph
from fad.core.primitive import REGISTRY


def add_into(graph: Graph) -> Graph:
    """Let scatters that are added to an array be updates of it, with one update for each place."""
    return _one_for_each_place(_without_zeros(graph))


def _without_zeros(graph: Graph) -> Graph:
    made = {o: eq for eq in graph.equations for o in eq.outs}
    uses = _uses(graph)
    types, equations = list(graph.types), []
    for eq in graph.equations:
        pair = _added(graph, eq, made, uses)
        if pair is None:
            equations.append(eq)
            continue
        x, pieces = pair
        (o,) = eq.outs
        for n, (piece, index) in enumerate(zip(pieces.ins, pieces.params["indices"], strict=True)):
            index = index if type(index) is tuple else (index,)
            types.append(types[o])
            end = o if n == len(pieces.ins) - 1 else len(types) - 1
            equations.append(Equation(REGISTRY["index_add"], (x, piece), {"template": index}, (end,)))
            x = end
    used = {*graph.outputs, *(i for eq in equations for i in eq.ins)}
    equations = [eq for eq in equations if eq.prim.name != "scatter" or eq.outs[0] in used]
    return graph.replace(types=types, equations=equations)


def _added(graph: Graph, eq: Equation, made: dict[int, Equation], uses: Counter) -> tuple[int, Equation] | None:
    """Return the array and the scatter that an operation adds; None if it does something else."""
    if eq.prim.name != "add":
        return None
    types, (o,) = graph.types, eq.outs
    for x, v in (eq.ins, eq.ins[::-1]):
        pieces = made.get(v)
        if pieces is None or pieces.prim.name != "scatter" or x == v:
            continue
        again = uses[v] > 1 and len(pieces.ins) > 1
        same = types[x] == types[v] == types[o]
        if same and not again and all(map(is_basic, pieces.params["indices"])):
            return x, pieces
    return None


def _one_for_each_place(graph: Graph) -> Graph:
    """Sum what is added to the same place of an array, one after the other, before it is added."""
    uses, types = _uses(graph), list(graph.types)
    added: dict[int, dict[str, tuple[int, int]]] = {}  # of a version: where pieces were added to it, and which
    dropped: dict[int, int] = {}
    equations: list[Equation] = []
    for eq in graph.equations:
        if eq.prim.name != "index_add" or len(eq.ins) != 2 or types[eq.ins[0]].size == 0:
            equations.append(eq)
            continue
        (x, piece), (o,) = eq.ins, eq.outs
        place = repr(eq.params["template"])
        before = dict(added.get(x, ())) if uses[x] == 1 else {}
        if place in before and types[before[place][1]] == types[piece]:
            version, earlier = before[place]
            dropped[version] = next(e for e in equations if e.outs == (version,)).ins[0]
            types.append(types[piece])
            equations.append(Equation(REGISTRY["add"], (earlier, piece), {}, (len(types) - 1,)))
            piece = len(types) - 1
        before[place] = (o, piece)
        added[o] = before
        equations.append(Equation(eq.prim, (x, piece), eq.params, (o,)))
    if not dropped:
        return graph
    left = [_reading(eq, dropped) for eq in equations if not dropped.keys() & set(eq.outs)]
    return graph.replace(types=types, equations=left)


def _reading(eq: Equation, dropped: dict[int, int]) -> Equation:
    """Return an operation that reads, of versions that are not made, those before them."""
    ins = []
    for i in eq.ins:
        while i in dropped:
            i = dropped[i]
        ins.append(i)
    return Equation(eq.prim, tuple(ins), eq.params, eq.outs)


def _uses(graph: Graph) -> Counter:
    return Counter([*(i for eq in graph.equations for i in eq.ins), *graph.outputs])
