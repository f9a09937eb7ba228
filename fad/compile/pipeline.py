"""The pipeline: all passes of the compiler in the order in which they run, each with a line that says what it does.

A recorded program is a `Graph` of operations. `optimise` makes it smaller, whatever is to run it.
"""

from __future__ import annotations

from collections.abc import Callable

from fad.compile.passes.algebra import simplify
from fad.compile.passes.batch_unrolled_matmuls import merge_steps
from fad.compile.passes.constants import fold_constants
from fad.compile.passes.cse import share
from fad.compile.passes.dce import drop_dead
from fad.compile.passes.expand_layers import take_apart
from fad.compile.passes.hoist_loop_matmuls import leave_loops
from fad.compile.passes.loop_bodies import trim
from fad.compile.passes.reduce_before_matmul import add_before_products
from fad.compile.passes.sum_before_scatter import add_before_scatter
from fad.control_flow.subgraph import inlined
from fad.core.graph import Graph

OPTIMISE: tuple[Callable[[Graph], Graph], ...] = (
    inlined,  # programs of calls with custom rules are put in their places: all derivatives have been taken
    take_apart,  # layers and rotations become products, sums, slices and joins
    fold_constants,  # what depends on constants alone is computed now
    simplify,  # times one, a shape already there, and arrangements that undo each other are left out
    share,  # equal expressions are computed once
    add_before_scatter,  # what is added into one place is added before
    merge_steps,  # products that the steps of an unrolled loop do alike become one
    add_before_products,  # where a product's rows are added up, a factor's are instead
    drop_dead,  # what no output, guard or check needs is dropped
)


def optimise(graph: Graph) -> Graph:
    """Run the passes that serve every target, in the bodies of loops and branches as well."""
    for step in OPTIMISE:
        graph = step(graph)
    graph = trim(graph, optimise)  # results of loops that nothing reads are dropped, and the bodies optimised
    graph = leave_loops(graph)  # products that a loop need not do step by step become one large product
    return simplify(graph)
