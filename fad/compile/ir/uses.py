"""Facts about the values of a graph, for those who rewrite or lower it."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import transpose_p


def last_uses(graph: Graph) -> dict[int, int]:
    """Return for each value the number of the equation that reads it last; outputs are read after the last one."""
    last = {i: k for k, eq in enumerate(graph.equations) for i in eq.ins}
    last.update(dict.fromkeys(graph.outputs, len(graph.equations)))
    return last


def use_counts(graph: Graph) -> dict[int, int]:
    """Return for each value how many operands it is; being an output counts once more."""
    counts = Counter(itertools.chain.from_iterable([eq.ins for eq in graph.equations]))
    counts.update(set(graph.outputs))
    return counts


def find_transposed(eq: Equation | None) -> int | None:
    """Return the matrix that an equation transposes; None if it does something else."""
    return eq.ins[0] if eq is not None and eq.prim is transpose_p and eq.params["axes"] == (1, 0) else None


def home_of(graph: Graph) -> Any:
    """Return the backend of the arrays of a program, or None if they all live on the host."""
    return next((t.home for t in graph.types if t.home is not None), None)
