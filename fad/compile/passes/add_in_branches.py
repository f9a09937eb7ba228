"""Sums of cotangents with what a branch gives: they are made within the branch, where one way has nothing to add.

The pullback of a branch gives a cotangent for each array that one of its ways reads: zeros from the ways that do not
read it, and few elements that are not zero from one that reads few. Added outside, both cost the whole array.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fad.compile.ir.builder import Builder
from fad.core.programs.graph import Equation, Graph
from fad.core.tracing.values import is_zero
from fad.ops.ufuncs.elementwise import add


def add_in_branches(graph: Graph) -> Graph:
    """Move additions to results of branches into these; the sign of a zero says nothing in this program."""
    if not any(eq.prim.archetype == "branch" for eq in graph.equations):
        return graph
    uses = _uses(graph)
    made = {o: eq for eq in graph.equations for o in eq.outs}
    taken: dict[int, tuple[Equation, int]] = {}  # result of a branch -> the sum that it is read by alone, what is added
    place = {o: k for k, eq in enumerate(graph.equations) for o in eq.outs}
    for eq in graph.equations:
        if eq.prim is not add:
            continue
        for x, r in (eq.ins, eq.ins[::-1]):
            branch = made.get(r)
            if branch is None or branch.prim.archetype != "branch" or uses[r] != 1 or r in taken:
                continue
            ready = place.get(x, -1) < place[r] and graph.types[x] == graph.types[r] == graph.types[eq.outs[0]]
            if ready and graph.types[r].shape and _some_way_adds_little(branch, branch.outs.index(r)):
                taken[r] = (eq, x)
                break
    if not taken:
        return graph
    sums = {id(eq) for eq, _ in taken.values()}
    equations = []
    for eq in graph.equations:
        if id(eq) in sums:
            continue
        added = {k: taken[o] for k, o in enumerate(eq.outs) if o in taken}
        if added:
            terms = {k: x for k, (_, x) in added.items()}
            outs = tuple([added[k][0].outs[0] if k in added else o for k, o in enumerate(eq.outs)])
            branches = tuple([_with_terms(g, graph, terms) for g in eq.params["branches"]])
            eq = Equation(eq.prim, (*eq.ins, *terms.values()), {**eq.params, "branches": branches}, outs, eq.place)
        equations.append(eq)
    return graph.replace(equations=equations)


def _uses(graph: Graph) -> Counter:
    uses = Counter(graph.outputs)
    for eq in graph.equations:
        uses.update(eq.ins)
    return uses


def _is_zero(graph: Graph, i: int) -> bool:
    c: Any = graph.constants.get(i)
    return c is not None and is_zero(c)


def _some_way_adds_little(eq: Equation, k: int) -> bool:
    """Return whether a way gives zeros, but for places at which it adds."""
    return any(_find_updates(g, g.equations, g.outputs[k], _uses(g)) is not None for g in eq.params["branches"])


def _find_updates(graph: Graph, equations: list[Equation], o: int, uses: Counter) -> list[int] | None:
    """Return the numbers of the equations that make a value of zeros by adding at some places, the last one first.

    It is None for another value.
    """
    made = {eq.outs[0]: k for k, eq in enumerate(equations) if eq.prim.adds}
    found, x = [], o
    while x in made and uses[x] == 1:
        found.append(made[x])
        x = equations[made[x]].ins[0]
    return found if _is_zero(graph, x) else None


def _with_terms(graph: Graph, outer: Graph, terms: dict[int, int]) -> Graph:
    """Return a way of a branch that takes more operands, and adds each to one of its results."""
    work, inputs, outputs = Builder(graph), list(graph.inputs), list(graph.outputs)
    work.equations += graph.equations
    for k, x in terms.items():
        term = work.add_value(outer.types[x])
        inputs.append(term)
        outputs[k] = _add(work, outputs[k], term, _uses(graph))
    return add_in_branches(work.finish().replace(inputs=inputs, outputs=outputs))


def _add(work: Builder, o: int, term: int, uses: Counter) -> int:
    """Return the sum of a value and a term; what is added to zeros at some places is added to the term there."""
    updates = _find_updates(work.graph, work.equations, o, uses)
    if updates is None:
        return work.add(term, o)
    for k in reversed(updates):
        eq = work.equations[k]
        work.equations[k] = Equation(eq.prim, (term, *eq.ins[1:]), eq.params, eq.outs, eq.place)
        term = eq.outs[0]
    return o if updates else term
