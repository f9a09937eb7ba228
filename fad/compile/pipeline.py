"""The pipeline: all passes of the compiler in the order in which they run, each with a line that says what it does.

A recorded program is a `Graph` of operations. `optimise` makes it smaller, whatever is to run it; the bodies of loops
take a few passes more, which `trim` runs (`fad.compile.passes.loop_bodies`). Then

- `fad.compile.targets.numpy_program` writes it as NumPy calls;
- `fad.compile.targets.device` groups it into kernels of a device;
- `compile_native` makes native code: `legalize` rewrites it into operations that have kernels, `schedule` says which of
  them are one loop and where values live, and code generation and the linker make a table of functions of that.

What native code alone needs is imported when the first program is compiled, so that `import fad` stays quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fad.compile.passes.algebra import simplify
from fad.compile.passes.batch_unrolled_matmuls import batch_unrolled_matmuls
from fad.compile.passes.cancel_arrangements import cancel_arrangements
from fad.compile.passes.compute_before_repeating import compute_before_repeating
from fad.compile.passes.constants import fold_constants
from fad.compile.passes.cse import share
from fad.compile.passes.dce import drop_dead
from fad.compile.passes.drop_rules import drop_rules
from fad.compile.passes.drop_strong_zeros import drop_strong_zeros
from fad.compile.passes.expand_layers import expand_layers
from fad.compile.passes.expand_pullbacks import expand_pullbacks
from fad.compile.passes.hoist_loop_matmuls import hoist_loop_matmuls
from fad.compile.passes.join_common_factors import join_common_factors
from fad.compile.passes.loop_bodies import trim
from fad.compile.passes.reassociate_products import reassociate_products
from fad.compile.passes.reduce_before_matmul import reduce_before_matmul
from fad.compile.passes.share_adjoint_products import share_adjoint_products
from fad.compile.passes.simplify_masks import simplify_masks
from fad.compile.passes.sum_before_scatter import sum_before_scatter
from fad.compile.passes.sum_shares import sum_shares
from fad.control_flow.bodies.subgraph import inline_calls
from fad.core.programs.graph import Graph

if TYPE_CHECKING:
    from fad.compile.codegen.program import Program
    from fad.compile.machine.signals import Watch
    from fad.compile.schedule.buffers import Body, Memory

OPTIMISE: tuple[Callable[[Graph], Graph], ...] = (
    inline_calls,  # programs of calls with custom rules are put in their places: all derivatives have been taken
    drop_rules,  # what decompositions are differentiated by gives back what it was told
    expand_pullbacks,  # pullbacks of loops without a bound on their steps become loops over a stack
    expand_layers,  # layers and rotations become products, sums, slices and joins
    fold_constants,  # what depends on constants alone is computed now
    drop_strong_zeros,  # slopes of exponentials that cannot overflow are factors like others
    simplify,  # times one, a shape already there, and arrangements that undo each other are left out
    compute_before_repeating,  # of each element once what is computed of its copies
    cancel_arrangements,  # arrangements that undo each other, with elementwise operations between them, are left out
    share,  # equal expressions are computed once
    simplify_masks,  # masks that exclude each other, or are known, and choices by them
    sum_shares,  # what is divided by its own sum adds up to what it was divided into
    sum_before_scatter,  # what is added into one place is added before
    batch_unrolled_matmuls,  # isomorphic iterations of an unrolled loop: their products become one
    reduce_before_matmul,  # where a product's rows are added up, a factor's are instead
    reassociate_products,  # of three factors, those are multiplied first that save arithmetic
    join_common_factors,  # a sum of two products with a common factor is one product
    share_adjoint_products,  # a product of which only a weighted sum is wanted is not computed beside its adjoint
    drop_dead,  # what no output, guard or check needs is dropped
)


def optimise(graph: Graph) -> Graph:
    """Run the passes that serve every target, in the bodies of loops and branches as well."""
    for step in OPTIMISE:
        graph = step(graph)
    graph = trim(graph, optimise)  # results of loops that nothing reads are dropped, and the bodies optimised
    left = hoist_loop_matmuls(graph)  # products and conversions of all steps of a loop are done at once
    return simplify(graph if left is graph else fold_constants(left))


def legalize(graph: Graph) -> Graph:
    """Rewrite a program into operations that native code has kernels for."""
    from fad.compile.legalize.complex.split_complex import split_complex
    from fad.compile.legalize.complex.split_complex_loops import split_complex_loops
    from fad.compile.legalize.decompose import decompose
    from fad.compile.legalize.layouts.conv_layout import move_batch_innermost
    from fad.compile.legalize.layouts.repeated import compute_repeated
    from fad.compile.legalize.layouts.short_rows import exchange_short_rows
    from fad.compile.legalize.layouts.strip_mine import strip_mine
    from fad.compile.legalize.layouts.struct_of_arrays import split_small_arrays
    from fad.compile.legalize.numbers.narrow_selects import narrow_selects
    from fad.compile.legalize.places.place_masks import place_masks
    from fad.compile.legalize.places.place_runs import place_runs
    from fad.compile.legalize.places.pooling import expand_pools, split_sums
    from fad.compile.legalize.places.push_lookups_up import push_lookups_up
    from fad.compile.legalize.places.push_slices_up import push_slices_up
    from fad.compile.legalize.places.scatter_to_gather import scatter_to_gather
    from fad.compile.legalize.places.split_joins import split_joins
    from fad.compile.legalize.products.chosen_products import expand_chosen_products
    from fad.compile.legalize.products.columns import multiply_by_columns
    from fad.compile.legalize.products.gemm_accumulate import accumulate_gemm
    from fad.compile.legalize.products.narrow_factors import arrange_narrow_factors
    from fad.compile.legalize.products.thin_products import join_thin_products
    from fad.compile.legalize.products.transposed_factors import copy_transposed
    from fad.compile.legalize.products.unmerged_rows import unmerge_rows
    from fad.compile.passes.cse import share_copies

    for rewrite in (
        place_masks,  # masks that are known are lists of places
        place_runs,  # places that are known and follow one another are slices
        decompose,  # norms, variances, einsum, distances: by simpler operations
        strip_mine,  # what is computed from large products runs strip by strip, so that tables stay in the cache
        expand_chosen_products,  # products with what a mask chooses of a matrix
        multiply_by_columns,  # a matrix that is joined of columns is multiplied with vectors column by column
        join_thin_products,  # one matrix times many thin ones is one product
        unmerge_rows,  # where the rows of a product are merged from axes in another order, it is a batch
        compute_repeated,  # arrays that are repeated are computed in the shape of the copies
        exchange_short_rows,  # large arrays of short rows have long rows
        split_small_arrays,  # batches of small arrays are one vector for each of their elements
        narrow_selects,  # a choice between numbers is made in the dtype that it is wanted in
        expand_pools,  # pooling is a maximum or a sum of slices
        push_slices_up,  # what is computed only for slices is computed on the slices
        push_lookups_up,  # and what only rows are looked up of on those rows
        move_batch_innermost,  # convolutions, and what lies between them, have the batch innermost in memory
        split_sums,  # sums over axes apart are sums over one after the other
        arrange_narrow_factors,  # matrices of a few columns lie along the columns, or the product is transposed
        copy_transposed,  # a transposed matrix that many products read, or those of a loop, is copied once
        split_joins,  # what is computed of a large part and a few small ones is computed of each
        scatter_to_gather,  # large scatters of neighbouring slices are loops over their result
        split_complex_loops,  # loops of complex numbers are loops of real ones
        split_complex,  # complex numbers are pairs of real ones
        share_copies,  # copies of one transposed array are views of the first
        accumulate_gemm,  # large products that are added to an array are one call of BLAS
    ):
        graph = rewrite(graph)
    return graph


def schedule(graph: Graph, body: Body | None = None) -> Memory:
    """Decide which operations are one loop, in which order the loops run, and where values live."""
    from fad.compile.codegen.selection import kind_of
    from fad.compile.schedule.buffers import Memory
    from fad.compile.schedule.inplace_updates import schedule_updates
    from fad.compile.schedule.steps import plan_steps

    graph, updates = schedule_updates(graph, kind_of, body.carried if body else ())  # which writes overwrite
    steps = plan_steps(graph, kind_of, updates)  # operations are fused, and moved to where they are read
    memory = Memory(graph, steps, updates, body)
    memory.arrange()  # values get memory, views of it, or that of a value that is not needed any more
    return memory


def compile_native(graph: Graph, run_in_numpy: Callable) -> Program:
    """Return an optimised program as native code; ``run_in_numpy(graph)`` is how a loop runs that has none."""
    from fad.compile.codegen.assembler import assemble
    from fad.compile.codegen.program import Program
    from fad.compile.legalize.numbers.integer_overflow import with_checks
    from fad.compile.legalize.places.place_stacks import place_stacks
    from fad.compile.machine.signals import Watch
    from fad.compile.runtime.linker import link

    def compile_flat(graph: Graph, body: Body | None, watch: Watch) -> Program:
        memory = schedule(legalize(graph), body)
        program = Program(graph, memory, compile_flat, run_in_numpy, watch)
        assemble(program)  # each step becomes rows of the table, or a NumPy call between them
        return program

    placed = place_stacks(graph)  # stacks are numbers of records in memory that grows
    checked = with_checks(placed)  # where Python's integers may leave 64 bits, the program stops
    program = compile_flat(checked, None, Watch())
    link(program)  # kernels are compiled, or found in the cache, and the table gets their addresses
    return program
