"""Dead code: what no output, guard or check needs is dropped."""

from __future__ import annotations

from fad.core.programs.graph import Graph
from fad.staging.may_raise import find_unread


def drop_dead(graph: Graph) -> Graph:
    """Drop what no output, guard or check needs, and what raises for no values."""
    alive = {*graph.outputs, *find_unread(graph, graph.outputs)}
    kept = []
    for eq in reversed(graph.equations):
        if not alive.isdisjoint(eq.outs) or eq.is_guard or eq.prim.archetype == "check":
            alive.update(eq.ins)
            kept.append(eq)
    constants = {i: c for i, c in graph.constants.items() if i in alive}
    return graph.replace(equations=kept[::-1], constants=constants)
