"""Arrays that are repeated, as `np.repeat` and `np.tile` do, are computed in the shape of the copies.

Such a copy is a broadcast that is a result of the program, or is reshaped into an array that is no view of it. It
becomes a loop, which can be fused and can write where its result is wanted; and joins and cheap operations that are
computed for it alone are done in the shape of the broadcast, so that nothing is stored before.
"""

from __future__ import annotations

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import is_heavy, template
from fad.compile.ir.lowered_ops import copy_p
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.ir.uses import use_counts
from fad.compile.passes.dce import drop_dead
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import broadcast_p, concatenate_p, reshape_p

SMALLEST = 1 << 12  # elements of a copy: smaller arrays stay in the nearest cache


def compute_repeated(graph: Graph) -> Graph:
    """Rewrite the reshapes that copy a broadcast array."""
    made, results = {o: eq for eq in graph.equations for o in eq.outs}, {*graph.outputs}
    copies = {k for k, eq in enumerate(graph.equations) if _copies(graph, eq, made, results)}
    if not copies:
        return graph
    work = _Repeated(graph, made)
    for k, eq in enumerate(graph.equations):
        if k in copies:
            before = made[eq.ins[0]] if eq.prim is reshape_p else eq
            (x,), shape = before.ins, before.params["shape"]
            missing = len(shape) - len(graph.types[x].shape)
            whole = work.repeat(x, tuple(range(missing, len(shape))), shape)
            work.replace(eq, work.reshape(whole, eq.params["shape"]) if eq.prim is reshape_p else whole)
        else:
            work.equations.append(eq)
    return drop_dead(work.finish())


def _copies(graph: Graph, eq: Equation, made: dict[int, Equation], results: set[int]) -> bool:
    """Return whether an operation copies a large broadcast array, and does not only add or drop axes of one."""
    before = made.get(eq.ins[0]) if eq.prim is reshape_p else eq
    if before is None or before.prim is not broadcast_p:
        return False
    x, y = graph.types[before.outs[0]], graph.types[eq.outs[0]]
    real = lambda shape: [n for n in shape if n > 1]
    return y.size >= SMALLEST and y.dtype in LLVM_TYPE and (eq.outs[0] in results or real(x.shape) != real(y.shape))


class _Repeated(Builder):
    def __init__(self, graph: Graph, made: dict[int, Equation]):
        super().__init__(graph)
        self.made = made
        self.counts = use_counts(graph)

    def repeat(self, i: int, axes: tuple, shape: tuple) -> int:
        """Return an array of a shape in which the axes of value i are those, and along the others it is repeated."""
        eq, x = self.made.get(i), self.types[i]
        if eq is not None and self.counts[i] == 1:
            if eq.prim is reshape_p:
                kept = _kept_axes(self.types[eq.ins[0]].shape, x.shape)
                if kept is not None:
                    return self.repeat(eq.ins[0], tuple([axes[d] for d in kept]), shape)
            elif eq.prim is concatenate_p and shape[axes[eq.params["axis"]]] == x.shape[eq.params["axis"]]:
                return self.join(eq, axes, shape)
            elif self.is_cheap(eq):
                ins = [self.along(k, axes[len(axes) - len(self.types[k].shape) :], shape) for k in eq.ins]
                return self.clone(eq, ins, shape)
        return self.new(copy_p, (self.along(i, axes, shape),), {}, shape, x.dtype)

    def join(self, eq: Equation, axes: tuple, shape: tuple) -> int:
        axis, parts = eq.params["axis"], []
        for i in eq.ins:
            part = list(shape)
            part[axes[axis]] = self.types[i].shape[axis]
            parts.append(self.repeat(i, axes, tuple(part)))
        return self.concatenate(parts, axes[axis])

    def is_cheap(self, eq: Equation) -> bool:
        """Return whether an elementwise operation is cheap to repeat, and reads hardly more than its result has."""
        text = template(self.graph, eq, self.graph.constants)
        size = self.types[eq.outs[0]].size
        return text is not None and not is_heavy(text) and sum(self.types[k].size >= size for k in {*eq.ins}) <= 1

    def along(self, i: int, axes: tuple, shape: tuple) -> int:
        """Return a view of value i that is broadcast to a shape, in which its axes are those."""
        t = self.types[i]
        if not t.shape:
            return i
        thin = [1] * len(shape)
        for axis, n in zip(axes, t.shape, strict=True):
            thin[axis] = n
        return self.broadcast_to(self.reshape(i, thin), shape)


def _kept_axes(x: tuple, y: tuple) -> list[int] | None:
    """Return where the axes of x are among those of y, if y has only more axes of one."""
    kept: list[int] = []
    for d, n in enumerate(y):
        if len(kept) < len(x) and n == x[len(kept)]:
            kept.append(d)
        elif n != 1:
            return None
    return kept if len(kept) == len(x) else None
