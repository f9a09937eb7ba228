"""Rules of decompositions, dropped: an operation that is told the results, to differentiate them, gives these back."""

from __future__ import annotations

from fad.core.programs.graph import Graph
from fad.core.programs.rewriter import rename


def drop_rules(graph: Graph) -> Graph:
    """Let readers of a rule's results read what it was told: all derivatives have been taken."""
    if not any(eq.prim.archetype == "rule" for eq in graph.equations):
        return graph
    known: dict[int, int] = {}
    kept = []
    for eq in graph.equations:
        eq = rename(eq, known)
        if eq.prim.archetype == "rule":
            known.update(zip(eq.outs, eq.ins[-len(eq.outs) :], strict=True))
        else:
            kept.append(eq)
    return graph.replace(equations=kept, outputs=[known.get(i, i) for i in graph.outputs])
