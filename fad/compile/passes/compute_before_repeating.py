"""What is computed of repeated elements is computed of each once, and then repeated.

``sin(np.repeat(x, 4))`` is ``np.repeat(sin(x), 4)``, and a sum over the copies is a product with their number. Cheap
operations that native code has for one loop with the copying go back into it (`fad.compile.legalize.layouts.repeated`).
"""

from __future__ import annotations

import math

from fad.compile.ir.expressions import template
from fad.compile.passes.constants import as_uniform
from fad.core.programs.graph import ARRAY, NUMBER, SCALAR, Equation, Graph, Type
from fad.core.programs.rewriter import Rewriting
from fad.ops.arrangement.structural import broadcast_p, reshape_p
from fad.ops.layout.memory_order import order_p
from fad.ops.reductions.reduction import sum_p
from fad.ops.ufuncs.elementwise import multiply

_SMALLEST = 1 << 12  # copies from which on it is worth while


def compute_before_repeating(graph: Graph) -> Graph:
    """Compute of each element once what is computed of its copies."""
    if not any(eq.prim is broadcast_p and _is_large(graph, eq) for eq in graph.equations):
        return graph
    work = _Repeating(graph)
    for eq in graph.equations:
        work.rewrite(eq)
    return work.finish() if work.changed else graph


def _is_large(graph: Graph | Rewriting, eq: Equation) -> bool:
    return graph.types[eq.outs[0]].size >= _SMALLEST


class _Repeating(Rewriting):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.reshaped: dict[int, int] = {}
        # repeated array -> what is repeated, and the operations on the way, each with the shape that it gives
        self.copies: dict[int, tuple[int, tuple]] = {}
        self.changed = False

    def rewrite(self, eq: Equation) -> None:
        """Write an operation, or what does the same with fewer elements."""
        self.place = eq.place
        if eq.prim is reshape_p:
            self.reshaped[eq.outs[0]] = eq.ins[0]
        if eq.prim is broadcast_p and _is_large(self, eq) and self.types[eq.ins[0]].kind != NUMBER:
            (x,), step = eq.ins, (broadcast_p, eq.params["shape"])
            if x in self.reshaped:
                self.copies[eq.outs[0]] = self.reshaped[x], ((reshape_p, self.types[x].shape), step)
            else:
                self.copies[eq.outs[0]] = x, (step,)
        elif eq.ins and eq.ins[0] in self.copies and eq.prim in (reshape_p, order_p):
            x, steps = self.copies[eq.ins[0]]
            shape = self.types[eq.outs[0]].shape
            for k, (_, before) in enumerate(steps):
                if before == shape and (broadcast_p, before) in steps[: k + 1]:
                    self.repeat(x, steps[: k + 1], eq)
                    return
            self.copies[eq.outs[0]] = x, (*steps, (reshape_p, shape))
        elif self.add_once(eq) if eq.prim is sum_p else self.is_elementwise(eq) and self.compute_once(eq):
            return
        self.equations.append(eq)

    def is_elementwise(self, eq: Equation) -> bool:
        """Return whether each element of a large result is computed of one of each operand."""
        if len(eq.outs) != 1 or eq.params or not _is_large(self, eq):
            return False
        return eq.prim.archetype == "elementwise" or template(self, eq, self.constants) is not None

    def compute_once(self, eq: Equation) -> bool:
        """Compute of each element once what an elementwise operation computes of copies alone; say whether it does."""
        found = [self.copies.get(i) for i in eq.ins if not self.is_number(i)]
        some = [copies for copies in found if copies is not None]
        if not some or len(some) < len(found):
            return False
        (x, steps), *others = some
        t, out = self.types[x], self.types[eq.outs[0]]
        alike = all(self.types[y].shape == t.shape and s == steps for y, s in others)
        if not alike or steps[-1][1] != out.shape or 2 * t.size > out.size:
            return False
        ins = [self.copies[i][0] if i in self.copies else self.as_number(i) for i in eq.ins]
        once = self.apply(eq.prim, tuple(ins), eq.params, Type(t.shape, out.dtype, ARRAY if t.shape else SCALAR))
        self.repeat(once, steps, eq)
        return True

    def repeat(self, x: int, steps: tuple, eq: Equation) -> None:
        """Write copies of x, by these operations, as the result of an equation."""
        self.copies[eq.outs[0]] = x, steps
        *before, (last, shape) = steps
        for prim, s in before:
            x = self.new(prim, (x,), {"shape": s}, s, self.types[x].dtype)
        self.equations.append(Equation(last, (x,), {"shape": shape}, eq.outs, eq.place))
        self.changed = True

    def is_number(self, i: int) -> bool:
        return not self.types[i].shape or (i in self.constants and as_uniform(self.constants[i]) is not None)

    def as_number(self, i: int) -> int:
        """Return an operand that is one number throughout as a value without axes."""
        t = self.types[i]
        return self.constant(t.dtype.type(as_uniform(self.constants[i])), SCALAR) if t.shape else i

    def add_once(self, eq: Equation) -> bool:
        """Multiply by the number of copies instead of adding them up; say whether it does."""
        if eq.ins[0] not in self.copies:
            return False
        x, steps = self.copies[eq.ins[0]]
        (last, whole), t, out, axes = steps[-1], self.types[x], self.types[eq.outs[0]], eq.params["axis"]
        if last is not broadcast_p or t.dtype != out.dtype or t.dtype.kind not in "fiu":
            return False  # booleans are counted, and a complex infinity times a number is no number
        thin = steps[-2][1] if len(steps) > 1 else t.shape
        thin = (*[1] * (len(whole) - len(thin)), *thin)
        times = math.prod([whole[a] for a in axes if thin[a] == 1])
        if times < 2:
            return False
        if any(thin[a] > 1 for a in axes):
            x = self.new(reshape_p, (x,), {"shape": thin}, thin, t.dtype)
            x = self.new(sum_p, (x,), eq.params, out.shape, t.dtype)
        shape, ins = self.types[x].shape, (x, self.number(times, t.dtype))
        if shape == out.shape:
            self.equations.append(Equation(multiply, ins, {}, eq.outs, eq.place))
        else:  # reshaped afterwards, so that the product can be one loop with what computes x
            x = self.new(multiply, ins, {}, shape, t.dtype)
            self.equations.append(Equation(reshape_p, (x,), {"shape": out.shape}, eq.outs, eq.place))
        self.changed = True
        return True
