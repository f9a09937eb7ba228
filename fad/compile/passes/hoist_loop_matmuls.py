"""Matrix products and conversions that leave their loop: one product of stacks instead of one in each step.

The reverse pass of a recurrent network adds an outer product to the gradient of its weights in each step; all of them
together are one product of two stacks. And what the network does to its inputs alone, it can do to all of them at once.
Integers that a loop reads as places are converted before it, for native code has no narrow or unsigned ones. All that
costs memory for the stacks, which is bounded here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fad.compile.ir.builder import Builder
from fad.compile.ir.uses import find_transposed
from fad.compile.passes.loop_stacks import LoopStacks, Matrix
from fad.control_flow.bodies.loop_layout import Loop, select_marked
from fad.control_flow.derivatives.split_pullback import find_needed
from fad.core.programs.graph import ARRAY, NUMBER, Equation, Graph, Type
from fad.core.programs.rewriter import rename
from fad.ops.arrangement.structural import transpose_p
from fad.ops.products.contraction import matmul
from fad.ops.reductions.reduction import sum_p
from fad.ops.ufuncs.conversion import astype_flat_p
from fad.ops.ufuncs.elementwise import add, multiply
from fad.ops.ufuncs.selection import where_p
from fad.staging.may_raise import find_unread_in_body

FEWEST = 8  # steps below which nothing is gained


def hoist_loop_matmuls(graph: Graph) -> Graph:
    """Rewrite the loops of a program; their bodies have been optimised before."""
    if not any(eq.prim.archetype == "loop" for eq in graph.equations):
        return graph
    work = Builder(graph)
    for eq in graph.equations:
        if eq.prim.archetype == "loop" and eq.params["stop"] == "length" and eq.params["length"] >= FEWEST:
            work.place = eq.place
            _Sums(work, _Inputs(work, eq).rewrite()).rewrite()
        else:
            work.equations.append(eq)
    return _drop_empty_loops(work.finish())


def _drop_empty_loops(graph: Graph) -> Graph:
    """Drop loops of which nothing is left: their steps only hand on what they are given."""
    work = Builder(graph)
    alias: dict[int, int] = {}
    for eq in graph.equations:
        eq = rename(eq, alias)
        if not _is_empty(eq):
            work.equations.append(eq)
            continue
        loop = Loop(eq)
        state = dict(zip(loop.carry_inputs, loop.carry, strict=True))
        xs = dict(zip(loop.x_inputs, loop.xs, strict=True))
        alias.update(zip(loop.results.carry, loop.carry, strict=True))
        for v, o in zip(loop.ys, loop.results.ys, strict=True):
            if v in xs:
                alias[o] = xs[v]
            else:
                work.define(o, work.broadcast_to(state[v], work.types[o].shape), eq.place)
    return work.finish().replace(outputs=[alias.get(i, i) for i in graph.outputs])


def _is_empty(eq: Equation) -> bool:
    if eq.prim.archetype != "loop" or eq.params["stop"] != "length" or eq.params["body"].equations:
        return False
    loop = Loop(eq)
    types = loop.body.types
    stacked = {*loop.x_inputs, *[i for i in loop.carry_inputs if types[i].kind != NUMBER]}
    return loop.carry_outputs == loop.carry_inputs and stacked >= {*loop.ys}


class _Inputs(LoopStacks):
    """Products of an x with what is loop-invariant, and conversions of integers."""

    def find(self) -> None:
        self.replaced: dict[int, int] = {}  # value of the body -> its stack
        self.constant: dict[int, int] = {}  # value of the body that is loop-invariant -> what it is
        for e in self.body.equations:
            if e.prim is astype_flat_p and self.body.types[e.ins[0]].dtype.kind in "iu":
                if e.ins[0] in self.xs:
                    self._convert(e, self.xs[e.ins[0]], self.replaced)
                elif e.ins[0] in self.consts and self.body.types[e.ins[0]].kind == ARRAY:
                    self._convert(e, self.consts[e.ins[0]], self.constant)
            if e.prim is matmul and self.body.types[e.ins[0]].dtype == self.body.types[e.ins[1]].dtype:
                self._multiply(e)
            if e.prim is sum_p and self.body.types[e.outs[0]].kind != NUMBER:
                self._multiply_and_add(e)

    def _multiply(self, e: Equation) -> None:
        """Do a product for all steps, if one factor is known for all and the other one is fixed."""
        (x, y), (o,) = e.ins, e.outs
        ranks = [len(self.body.types[i].shape) for i in e.ins]
        if ranks == [2, 2] and x in self.xs and self.is_fixed(y):
            if self.takes(o):
                product = self.times(self.as_rows(self.xs[x], True), self.find_outside(y))
                self.replaced[o] = self.work.reshape(product, (self.loop.length, *self.body.types[o].shape))
        elif ranks in ([1, 2], [2, 1]):
            vector, matrix = (x, self.matrix(y)) if ranks == [1, 2] else (y, self.matrix(x))
            if matrix is None or not self.is_known(vector):
                return
            free, mask = int(ranks == [1, 2]), matrix.mask
            if mask is not None and not (matrix.axis == free and self.is_read_only_where(o, mask)):
                return
            if self.takes(o):
                wanted = None if mask is None else self.known_mask(mask)
                self.replaced[o] = self.times(self.rows(vector), self.orient(matrix, not free), wanted)
        elif ranks == [1, 1] and self.body.types[o].kind != NUMBER:
            self._multiply_vectors(x, y, o)

    def _multiply_and_add(self, e: Equation) -> None:
        """Do the same for a product of two vectors that is written as a sum."""
        product = self.made.get(e.ins[0])
        if product is None or product.prim is not multiply or self.uses[e.ins[0]] != 1:
            return
        given = [self.body.types[i] for i in product.ins]
        if all(len(t.shape) == 1 and t.dtype == given[0].dtype for t in given) and given[0].shape == given[1].shape:
            x, y = product.ins
            self._multiply_vectors(x, y, e.outs[0])

    def _multiply_vectors(self, x: int, y: int, o: int) -> None:
        for vector, other in ((x, y), (y, x)):
            if self.is_known(vector) and self.is_fixed(other) and self.takes(o):
                self.replaced[o] = self.times(self.rows(vector), self.find_outside(other))
                return

    def _convert(self, e: Equation, source: int, into: dict) -> None:
        dtype, shape = e.params["dtype"], self.types[source].shape
        if self.takes(e.outs[0]):
            into[e.outs[0]] = self.work.add_value(Type(shape, dtype, ARRAY))
            self.work.equations.append(Equation(e.prim, (source,), e.params, (into[e.outs[0]],), e.place))

    def rewrite(self) -> Equation:
        """Write the products and conversions, and return the loop that reads them."""
        self.find()
        if not self.replaced and not self.constant:
            return self.eq
        done = {*self.replaced, *self.constant}
        equations = [e for e in self.body.equations if e.outs[0] not in done]
        equations = find_needed(equations, [*self.body.outputs, *find_unread_in_body(self.body, self.body.outputs)])
        used = {i for e in equations for i in e.ins} | set(self.body.outputs)
        loop = self.loop
        consts = {i: x for i, x in zip(loop.const_inputs, loop.consts, strict=True) if i in used} | self.constant
        xs = {i: x for i, x in self.xs.items() if i in used} | self.replaced
        inputs = loop.inputs._replace(consts=list(consts), xs=list(xs))
        operands = loop.operands._replace(consts=list(consts.values()), xs=list(xs.values()))
        body = self.body.replace(inputs=inputs.join(), equations=equations)
        params = {**self.eq.params, "body": body, **inputs.layout()}
        return Equation(self.eq.prim, tuple(operands.join()), params, self.eq.outs, self.eq.place)


class _Outer(NamedTuple):
    """A sum of outer products of vectors, or of products ``p.T @ q`` of matrices; a mask chooses elements of one."""

    p: int
    q: int
    matrix: bool
    mask: int | None
    of: int  # 1 for a mask of q, 2 for one of p

    @property
    def factors(self) -> tuple[int, ...]:
        return self.p, self.q


class _Scaled(NamedTuple):
    """A sum of vectors that are known for all steps, each times a number."""

    vector: int
    number: int
    mask: None = None

    @property
    def factors(self) -> tuple[int, ...]:
        return self.vector, self.number


class _Rows(NamedTuple):
    """Products of a vector with a fixed matrix, each added to an array at its own place along an axis."""

    vector: int
    matrix: Matrix
    left: bool  # whether the matrix comes first
    axis: int
    first: int

    @property
    def factors(self) -> tuple[int, ...]:
        return (self.vector,)

    @property
    def mask(self) -> int | None:
        return self.matrix.mask


class _Sums(LoopStacks):
    """Parts of the state to which each step only adds a product."""

    def find(self) -> None:
        self.sums: dict[int, _Outer | _Rows | _Scaled] = {}  # by the part of the state
        for k, (i, o) in enumerate(zip(self.loop.carry_inputs, self.loop.carry_outputs, strict=True)):
            if self.uses.get(i) != 1 or self.uses[o] != 1 or o not in self.made:
                continue
            found = self._outer(i, o) or self._rows(i, o) or self._find_scaled(i, o)
            if found is not None and self.takes(*self.to_stack(found)):
                self.sums[k] = found

    def to_stack(self, found: _Outer | _Rows | _Scaled) -> list[int]:
        """Return the values of the body that a sum needs of all steps, but for those that are known."""
        masks = [] if found.mask is None or self.known_mask(found.mask) is not None else [found.mask]
        return [v for v in found.factors if not self.is_known(v)] + masks

    def _outer(self, total: int, v: int) -> _Outer | None:
        e = self.made[v]
        if e.prim is not add or total not in e.ins:
            return None
        term, t = e.ins[1] if e.ins[0] == total else e.ins[0], self.body.types[v]
        mask: tuple | None = None
        transposed = False
        while term in self.made and self.uses[term] == 1 and len(self.body.types[term].shape) == 2:
            e = self.made[term]
            chosen = self.mask_of(e)
            if e.prim is transpose_p:
                transposed = not transposed
            elif mask is None and chosen and self.number(e.ins[2]) == 0:
                mask = chosen[0], 3 - chosen[1] if transposed else chosen[1]
            else:
                return self._factors(e, t, transposed, mask)
            term = e.ins[1 if e.prim is where_p else 0]
        return None

    def _factors(self, e: Equation, t: Type, transposed: bool, mask: tuple | None) -> _Outer | None:
        """Return the factors of an outer product of a type, or of its transpose."""
        if e.prim is matmul and mask is None and not transposed:
            p = find_transposed(self.made.get(e.ins[0]))
            if p is not None:
                return self._fit(_Outer(p, e.ins[1], True, None, 0), t)
        if e.prim is multiply:
            for column, row in (e.ins, e.ins[::-1]):
                if self.body.types[column].shape == (self.body.types[e.outs[0]].shape[0], 1):
                    p, q = (row, column) if transposed else (column, row)
                    return self._fit(_Outer(self.vector(p), self.vector(q), False, *(mask or (None, 0))), t)
        return None

    def _fit(self, found: _Outer, t: Type) -> _Outer | None:
        p, q = self.body.types[found.p], self.body.types[found.q]
        fixed = {*self.loop.const_inputs, *self.body.constants}
        same = all(len(x.shape) == 1 + found.matrix and x.dtype == t.dtype for x in (p, q))
        fits = same and (p.shape[-1], q.shape[-1]) == t.shape
        return found if fits and fixed.isdisjoint(found.factors) else None

    def _rows(self, total: int, v: int) -> _Rows | None:
        e, t = self.made[v], self.body.types[v]
        if not e.prim.adds or e.ins[0] != total or len(t.shape) != 2:
            return None
        place, product = self.place_of(e, 2, t.shape), self.made.get(e.ins[1])
        if place is None or product is None or product.prim is not matmul or self.uses[e.ins[1]] != 1:
            return None
        left = len(self.body.types[product.ins[0]].shape) == 2
        vector, other = product.ins[::-1] if left else product.ins
        matrix = self.matrix(other)
        if matrix is None or len(self.body.types[vector].shape) != 1 or vector in self.consts:
            return None
        if any(self.body.types[i].dtype != t.dtype for i in product.ins) or vector in self.body.constants:
            return None
        if matrix.mask is not None and (matrix.axis != int(left) or not self.is_zero_outside(vector, matrix.mask)):
            return None
        return _Rows(vector, matrix, left, *place)

    def _find_scaled(self, total: int, v: int) -> _Scaled | None:
        e, t = self.made[v], self.body.types[v]
        if e.prim is not add or total not in e.ins or len(t.shape) != 1:
            return None
        term = e.ins[1] if e.ins[0] == total else e.ins[0]
        product = self.made.get(term)
        if product is None or product.prim is not multiply or self.uses[term] != 1:
            return None
        fixed = {*self.consts, *self.body.constants}
        for vector, number in (product.ins, product.ins[::-1]):
            types = [self.body.types[i] for i in (vector, number)]
            fits = types[0].shape == t.shape and not types[1].shape and all(x.dtype == t.dtype for x in types)
            if fits and number not in fixed and self.is_known(vector):
                return _Scaled(vector, number)
        return None

    def rewrite(self) -> None:
        """Write the loop without these parts of its state, and the products that they are behind it."""
        self.find()
        if not self.sums:
            self.work.equations.append(self.eq)
            return
        loop, eq = self.loop, self.eq
        kept = [k not in self.sums for k in range(len(loop.carry))]
        ys, outs = list(loop.ys), list(loop.results.ys)
        stacks = dict(zip(ys, outs, strict=True))
        for found in self.sums.values():
            stacks.update({v: self.rows(v) for v in found.factors if self.is_known(v)})
            for v in self.to_stack(found):
                if v not in stacks:
                    t = self.body.types[v]
                    stacks[v] = self.work.add_value(Type((loop.length, *t.shape), t.dtype, ARRAY))
                    ys.append(v)
                    outs.append(stacks[v])
        outputs = [*select_marked(loop.carry_outputs, kept), *ys]
        inputs = loop.inputs._replace(carry=select_marked(loop.carry_inputs, kept))
        operands = loop.operands._replace(carry=select_marked(loop.carry, kept))
        equations = find_needed(self.body.equations, [*outputs, *find_unread_in_body(self.body, outputs)])
        body = self.body.replace(inputs=inputs.join(), outputs=outputs, equations=equations)
        params = {**eq.params, "body": body, **inputs.layout()}
        outs = (*select_marked(loop.results.carry, kept), *outs)
        self.work.equations.append(Equation(eq.prim, tuple(operands.join()), params, outs, eq.place))
        for k, found in self.sums.items():
            write: Any = {_Outer: self._write_outer, _Rows: self._write_rows, _Scaled: self._write_scaled}[type(found)]
            write(found, stacks, loop.carry[k], eq.outs[k])

    def _write_scaled(self, found: _Scaled, stacks: dict, before: int, o: int) -> None:
        product = self.times(stacks[found.number], stacks[found.vector])
        self.work.define(o, self.work.add(before, product), self.eq.place)

    def _write_outer(self, found: _Outer, stacks: dict, before: int, o: int) -> None:
        left, right = (self.as_rows(stacks[v], found.matrix) for v in (found.p, found.q))
        if found.mask is None:
            product = self.times(self.work.matrix_transpose(left), right)
        else:
            mask = self.mask_stack(found.mask, stacks, transposed=True)
            chosen, other = (left, right) if found.of == 2 else (right, left)
            product = self.times_chosen(self.work.matrix_transpose(chosen), mask, other)
            product = product if found.of == 2 else self.work.matrix_transpose(product)
        self.work.define(o, self.work.add(before, product), self.eq.place)

    def _write_rows(self, found: _Rows, stacks: dict, before: int, o: int) -> None:
        left, right, mask = stacks[found.vector], self.orient(found.matrix, found.left), found.mask
        if mask is None:
            product = self.times(left, right)
        else:
            product = self.times_chosen(left, self.mask_stack(mask, stacks, transposed=False), right)
        product = self.work.matrix_transpose(product) if found.axis else product
        if self.types[product].shape == self.types[o].shape:
            total = self.work.add(before, product)
        else:
            part = slice(found.first, found.first + self.loop.length)
            total = self.work.index_add(before, product, (*(slice(None),) * found.axis, part))
        self.work.define(o, total, self.eq.place)
