"""Matrix products and conversions that leave their loop: one product of stacks instead of one in each step.

The reverse pass of a recurrent network adds an outer product to the gradient of its weights in each step; all of them
together are one product of two stacks. And what the network does to its inputs alone, it can do to all of them at once.
Integers that a loop reads as places are converted before it, for native code has no narrow or unsigned ones. All that
costs memory for the stacks, which is bounded here.
"""

from __future__ import annotations

from typing import Any

from fad.control_flow.loop_layout import Loop, select_marked
from fad.control_flow.split_pullback import find_needed
from fad.core.graph import ARRAY, Equation, Graph, Type
from fad.core.primitive import REGISTRY
from fad.core.rewriter import Rewriting
from fad.staging.may_raise import unread_in_body

FEWEST = 8  # steps below which nothing is gained
MOST = 1 << 26  # bytes of the stacks that one loop may get


def hoist_loop_matmuls(graph: Graph) -> Graph:
    """Rewrite the loops of a program; their bodies have been optimised before."""
    if not any(eq.prim.archetype == "loop" for eq in graph.equations):
        return graph
    work = Rewriting(graph)
    for eq in graph.equations:
        if eq.prim.archetype == "loop" and eq.params["stop"] == "length" and eq.params["length"] >= FEWEST:
            work.place = eq.place
            _Sums(work, _Inputs(work, eq).rewrite()).rewrite()
        else:
            work.equations.append(eq)
    return work.finish()


class _Rewriter:
    """One loop that is being rewritten; what it writes into the program stands before or behind the loop."""

    def __init__(self, work: Rewriting, eq: Equation):
        self.work = work
        self.types = work.types
        self.eq = eq
        self.loop = Loop(eq)
        self.body = self.loop.body
        self.made = {o: e for e in self.body.equations for o in e.outs}
        self.uses: dict[int, int] = dict.fromkeys(self.body.outputs, 0)
        for i in (*self.body.outputs, *(i for e in self.body.equations for i in e.ins)):
            self.uses[i] = self.uses.get(i, 0) + 1
        self.budget = MOST

    def do(self, name: str, ins: tuple, extents: tuple, **params: Any) -> int:
        return self.work.new(name, ins, params, extents, self.types[ins[0]].dtype)

    def takes(self, *values: int) -> bool:
        """Return whether stacks of these values of the body fit the budget, and charge it."""
        nbytes = self.loop.length * sum(self.body.types[v].nbytes for v in values)
        if nbytes > self.budget:
            return False
        self.budget -= nbytes
        return True

    def as_rows(self, stack: int, matrix: bool) -> int:
        """Return a stack of rows, or of matrices, as one matrix."""
        if not matrix:
            return stack
        shape = self.types[stack].shape
        whole = (shape[0] * shape[1], shape[2])
        return self.do("reshape_to", (stack,), whole, shape=whole)


class _Inputs(_Rewriter):
    """Products of an x with what is loop-invariant, and conversions of integers."""

    def find(self) -> None:
        self.replaced: dict[int, int] = {}  # value of the body -> its stack
        self.fixed: dict[int, int] = {}  # value of the body that is loop-invariant -> what it is
        self.xs = dict(zip(self.loop.x_inputs, self.loop.xs, strict=True))
        consts = dict(zip(self.loop.const_inputs, self.loop.consts, strict=True))
        for e in self.body.equations:
            if e.prim.name == "convert_to_integer" and self.body.types[e.ins[0]].dtype.kind in "iu":
                if e.ins[0] in self.xs:
                    self._convert(e, self.xs[e.ins[0]], self.replaced)
                elif e.ins[0] in consts and self.body.types[e.ins[0]].kind == ARRAY:
                    self._convert(e, consts[e.ins[0]], self.fixed)
            if e.prim.name != "matmul":
                continue
            t = [self.body.types[i] for i in e.ins]
            if t[0].dtype != t[1].dtype or self.body.types[e.outs[0]].kind != ARRAY:
                continue
            ranks = [len(x.shape) for x in t]
            if e.ins[0] in self.xs and e.ins[1] in consts and ranks in ([1, 2], [2, 2]):
                self._all(e, self.xs[e.ins[0]], consts[e.ins[1]], ranks[0] == 2)
            elif e.ins[1] in self.xs and e.ins[0] in consts and ranks == [2, 1]:
                w = consts[e.ins[0]]
                rows, columns = self.types[w].shape
                flipped = self.do("permute", (w,), (columns, rows), axes=(1, 0))
                self._all(e, self.xs[e.ins[1]], flipped, False)

    def _all(self, e: Equation, stack: int, w: int, matrix: bool) -> None:
        if not self.takes(e.outs[0]):
            return
        x = self.as_rows(stack, matrix)
        shape = (self.types[x].shape[0], self.types[w].shape[1])
        y = self.do("matmul", (x, w), shape)
        if matrix:
            whole = (self.loop.length, *self.body.types[e.outs[0]].shape)
            y = self.do("reshape_to", (y,), whole, shape=whole)
        self.replaced[e.outs[0]] = y

    def _convert(self, e: Equation, source: int, into: dict) -> None:
        dtype, shape = e.params["dtype"], self.types[source].shape
        if self.takes(e.outs[0]):
            into[e.outs[0]] = self.work.add_value(Type(shape, dtype, ARRAY))
            self.work.equations.append(Equation(e.prim, (source,), e.params, (into[e.outs[0]],), e.place))

    def rewrite(self) -> Equation:
        """Write the products and conversions, and return the loop that reads them."""
        self.find()
        if not self.replaced and not self.fixed:
            return self.eq
        equations = [e for e in self.body.equations if e.outs[0] not in self.replaced and e.outs[0] not in self.fixed]
        equations = find_needed(equations, [*self.body.outputs, *unread_in_body(self.body, self.body.outputs)])
        used = {i for e in equations for i in e.ins} | set(self.body.outputs)
        loop = self.loop
        consts = {i: x for i, x in zip(loop.const_inputs, loop.consts, strict=True) if i in used} | self.fixed
        xs = {i: x for i, x in self.xs.items() if i in used} | self.replaced
        inputs = loop.inputs._replace(consts=list(consts), xs=list(xs))
        operands = loop.operands._replace(consts=list(consts.values()), xs=list(xs.values()))
        body = self.body.replace(inputs=inputs.join(), equations=equations)
        params = {**self.eq.params, "body": body, **inputs.layout()}
        return Equation(self.eq.prim, tuple(operands.join()), params, self.eq.outs, self.eq.place)


class _Sums(_Rewriter):
    """Parts of the state to which each step only adds a product."""

    def find(self) -> None:
        self.factors: dict[int, tuple] = {}  # part of the state -> (p, q, whether they are matrices)
        for k, v in enumerate(self.loop.carry_outputs):
            found = self._product(self.loop.carry_inputs[k], v)
            if found is not None and self.takes(*found[:2]):
                self.factors[k] = found

    def _product(self, total: int, v: int) -> tuple | None:
        e = self.made.get(v)
        if e is None or e.prim.name != "add" or total not in e.ins or self.uses.get(total) != 1 or self.uses[v] != 1:
            return None
        term = e.ins[1] if e.ins[0] == total else e.ins[0]
        t, e = self.body.types[term], self.made.get(term)
        if e is None or self.uses[term] != 1 or t != self.body.types[v]:
            return None
        if e.prim.name == "matmul":
            p = self.made.get(e.ins[0])
            if p is not None and p.prim.name == "permute" and p.params["axes"] == (1, 0):
                found = (p.ins[0], e.ins[1], True)
                return found if self._fit(found, t, 2) else None
        if e.prim.name == "multiply":
            for column, row in (e.ins, e.ins[::-1]):
                g = self.made.get(column)
                if g is not None and g.prim.name == "getitem" and g.params["template"] == (Ellipsis, None):
                    found = (g.ins[0], row, False)
                    return found if self._fit(found, t, 1) else None
        return None

    def _fit(self, found: tuple, t: Type, rank: int) -> bool:
        kinds = [self.body.types[i] for i in found[:2]]
        fixed = {*self.loop.const_inputs, *self.body.constants}
        return (
            all(len(x.shape) == rank and x.dtype == t.dtype for x in kinds)
            and (kinds[0].shape[-1], kinds[1].shape[-1]) == t.shape
            and not fixed.intersection(found[:2])
        )

    def rewrite(self) -> None:
        """Write the loop without these parts of its state, and the products that they are behind it."""
        self.find()
        if not self.factors:
            self.work.equations.append(self.eq)
            return
        loop, eq = self.loop, self.eq
        kept = [k not in self.factors for k in range(len(loop.carry))]
        stacks = dict(zip(loop.x_inputs, loop.xs, strict=True))
        ys, outs = list(loop.ys), list(loop.results.ys)
        stacks.update(zip(ys, outs, strict=True))
        for p, q, _ in self.factors.values():
            for v in (p, q):
                if v not in stacks:
                    t = self.body.types[v]
                    stacks[v] = self.work.add_value(Type((loop.length, *t.shape), t.dtype, ARRAY))
                    ys.append(v)
                    outs.append(stacks[v])
        outputs = [*select_marked(loop.carry_outputs, kept), *ys]
        inputs = loop.inputs._replace(carry=select_marked(loop.carry_inputs, kept))
        operands = loop.operands._replace(carry=select_marked(loop.carry, kept))
        equations = find_needed(self.body.equations, [*outputs, *unread_in_body(self.body, outputs)])
        body = self.body.replace(inputs=inputs.join(), outputs=outputs, equations=equations)
        params = {**eq.params, "body": body, **inputs.layout()}
        outs = (*select_marked(loop.results.carry, kept), *outs)
        self.work.equations.append(Equation(eq.prim, tuple(operands.join()), params, outs, eq.place))
        for k, (p, q, matrix) in self.factors.items():
            left, right = (self.as_rows(stacks[v], matrix) for v in (p, q))
            n, a = self.types[left].shape
            flipped = self.do("permute", (left,), (a, n), axes=(1, 0))
            shape = self.types[eq.outs[k]].shape
            product = self.do("matmul", (flipped, right), shape)
            add = Equation(REGISTRY["add"], (loop.carry[k], product), {}, (eq.outs[k],), eq.place)
            self.work.equations.append(add)
