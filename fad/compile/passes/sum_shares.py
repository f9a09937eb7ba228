"""Sums of shares: what is divided by its own sum adds up to what it was divided into.

The gradient of ``log(sum(exp(x - m))) + m`` holds ``exp(x - m) * (g / sum(exp(x - m)))``, and the sum of that for m.
The sum is known: g / sum(exp(x - m)) times sum(exp(x - m)). So the shares need not be written for it, and another pass
over memory is saved. Other multiples of what is summed up are left alone: theirs may be within the range of numbers
where the sum itself is beyond it.
"""

from __future__ import annotations

from fad.compile.ir.builder import Builder
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import broadcast_p
from fad.ops.reductions.reduction import sum_p

_DEEPEST = 8  # operations between a sum and what was summed up before
_MULTIPLYING = ("*", "/", "neg")  # the symbols of what is a multiple of its first operand


def sum_shares(graph: Graph) -> Graph:
    """Rewrite sums of shares by the sum that they were divided by."""
    if sum(eq.prim is sum_p for eq in graph.equations) < 2 or all(eq.prim.symbol != "/" for eq in graph.equations):
        return graph
    work = _Rewriter(graph)
    return work.rewrite_each(work.rewrite)


class _Rewriter(Builder):
    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.made = {eq.outs[0]: eq for eq in graph.equations if len(eq.outs) == 1}
        self.sums: dict[tuple[int, tuple], int] = {}  # value and axes -> its sum

    def rewrite(self, eq: Equation) -> bool:
        """Compute a sum of shares from the sum of the whole, if it is one."""
        if eq.prim is not sum_p or self.types[eq.ins[0]].dtype.kind != "f":
            return False
        (x,), (o,), axes = eq.ins, eq.outs, eq.params["axis"]
        if self.types[o].dtype != self.types[x].dtype:
            return False
        whole, steps = self.find_whole(x, axes)
        total = self.sums.get((whole, axes))
        if total is None:
            self.sums[x, axes] = o
            return False
        if not any(self.divides_by(total, step, inner) for step, inner in steps):
            return False
        self.place = eq.place
        self.replace(eq, self.reshape(self.multiply_again(total, whole, axes, steps), self.types[o].shape))
        return True

    def find_whole(self, x: int, axes: tuple) -> tuple[int, list[tuple[Equation, int]]]:
        """Return what a value is a multiple of along the axes, and the operations that multiply it, the last one first.

        Beside an operation stands which of its operands is multiplied.
        """
        steps: list[tuple[Equation, int]] = []
        while (x, axes) not in self.sums and len(steps) < _DEEPEST:
            eq, t = self.made.get(x), self.types[x]
            if eq is None or eq.prim.symbol not in _MULTIPLYING:
                break
            inner = self.find_multiplied(eq, axes)
            if inner is None or self.types[inner] != t:
                break
            steps.append((eq, inner))
            x = inner
        return x, steps

    def find_multiplied(self, eq: Equation, axes: tuple) -> int | None:
        """Return the operand that an operation multiplies by what is the same all along the axes."""
        ndim = len(self.types[eq.outs[0]].shape)
        if eq.prim.symbol == "neg" or self.find_even(eq.ins[1], axes, ndim) is not None:
            return eq.ins[0]
        return eq.ins[1] if eq.prim.symbol == "*" and self.find_even(eq.ins[0], axes, ndim) is not None else None

    def find_even(self, i: int, axes: tuple, ndim: int) -> int | None:
        """Return what a factor was broadcast from, if it is the same all along the axes."""
        while not self.is_even(i, axes, ndim):
            eq = self.made.get(i)
            if eq is None or eq.prim is not broadcast_p:
                return None
            (i,) = eq.ins
        return i

    def divides_by(self, total: int, eq: Equation | None, inner: int = -1) -> bool:
        """Return whether an operation, or what made its operands but for the inner one, divides by a sum."""
        if eq is None or (eq.prim.symbol not in _MULTIPLYING and eq.prim.view is None):
            return False
        if eq.prim.symbol == "/" and self.find_origin(eq.ins[1]) == self.find_origin(total):
            return True
        return any(self.divides_by(total, self.made.get(i)) for i in eq.ins if i != inner)

    def find_origin(self, i: int) -> int:
        """Return what a value is a view of."""
        while (eq := self.made.get(i)) is not None and eq.prim.view is not None:
            i = eq.ins[0]
        return i

    def multiply_again(self, total: int, whole: int, axes: tuple, steps: list[tuple[Equation, int]]) -> int:
        """Multiply a sum as its shares were; the axes are kept with length one."""
        shape = tuple([1 if a in axes else n for a, n in enumerate(self.types[whole].shape)])
        value = self.reshape(total, shape)
        for eq, inner in reversed(steps):
            ins = [value if i == inner else self.find_even(i, axes, len(shape)) for i in eq.ins]
            value = self.clone(eq, [i for i in ins if i is not None], shape)
        return value
