"""Transposed matrices that products read are copied once: to gather their columns costs more, each time.

So the weights of a recurrent network are transposed once for its reverse pass, be it unrolled or a loop.
"""

from __future__ import annotations

import math

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.machine.cpu import LONG_DOT, SMALL_GATHERED, is_small, thinnest
from fad.compile.passes.dce import drop_dead
from fad.control_flow.bodies.loop_layout import GUESSED_STEPS, Loop
from fad.core.programs.graph import Equation, Graph, Type
from fad.ops.arrangement.structural import transpose_p
from fad.ops.products.contraction import matmul

FEWEST_USES, LARGEST = 4, 1 << 14  # of a transposed matrix that is copied, and its elements
FEWEST_ROWS = 16, 256  # of a left factor, from which on it pays to copy the right one: else gathered, else by BLAS
_FEWEST_IN_LOOPS = 4  # fewer are dot products with the columns as they lie
_REAL = (np.dtype(float), np.dtype(np.float32))


def copy_transposed(graph: Graph) -> Graph:
    """Copy a small transposed matrix once where many small products or rows read it, or those of a loop."""
    work = Builder(graph)
    transposed = {eq.outs[0] for eq in graph.equations if _is_transposition(eq)}
    chosen = _find_chosen(graph, transposed)
    copies: dict[int, int] = {}
    for eq in graph.equations:
        if eq.prim is matmul and eq.ins[1] in copies:
            eq = Equation(eq.prim, (eq.ins[0], copies[eq.ins[1]]), eq.params, eq.outs, eq.place)
        elif eq.prim.archetype == "loop":
            eq = _InLoop(work, eq, transposed).rewrite()
        work.equations.append(eq)
        if eq.outs and eq.outs[0] in chosen:
            copies[eq.outs[0]] = work.astype(eq.outs[0], work.types[eq.outs[0]].dtype)
    return work.finish() if len(work.types) > len(graph.types) else graph


def _is_transposition(eq: Equation) -> bool:
    """Return whether what ran along rows runs along columns then."""
    axes = list(eq.params["axes"]) if eq.prim is transpose_p else []
    return len(axes) > 1 and axes[-2] == len(axes) - 1


def _find_chosen(graph: Graph, transposed: set[int]) -> set[int]:
    """Return the transposed matrices that the products of a program itself read so often that they are copied."""
    types = graph.types
    uses: dict[int, int] = {}
    chosen: set[int] = set()
    for eq in graph.equations:
        if eq.prim is matmul and eq.ins[1] in transposed and types[eq.ins[1]].dtype in _REAL:
            i = eq.ins[1]
            uses[i] = uses.get(i, 0) + 1
            size = _size(types, eq)
            dots = size[1] >= LONG_DOT and min(size[0], size[2]) <= thinnest() and eq.ins[0] not in transposed
            if size[0] >= _fewest_rows(size) and is_small(*size) and not dots:
                chosen.add(i)
    return chosen | {i for i, n in uses.items() if n >= FEWEST_USES and types[i].size <= LARGEST}


def _size(types: list[Type], eq: Equation) -> tuple[int, int, int]:
    """Return the rows, the inner axis and the columns of a product with a matrix."""
    left, right = (types[i].shape for i in eq.ins)
    return (left[-2] if len(left) > 1 else 1), right[-2], right[-1]


def _fewest_rows(size: tuple[int, int, int]) -> int:
    return FEWEST_ROWS[math.prod(size) > SMALL_GATHERED]


class _InLoop:
    """A loop that is given copies of the loop-invariant transposed matrices that its products read."""

    def __init__(self, work: Builder, eq: Equation, transposed: set[int]):
        self.work, self.eq = work, eq
        self.loop = Loop(eq)
        self.body = self.loop.body
        self.types = list(self.body.types)
        fixed = dict(zip(self.loop.const_inputs, self.loop.consts, strict=True))
        self.outside = {i: x for i, x in fixed.items() if x in transposed}  # value of the body -> of the program
        self.inside = {
            e.outs[0]: (e, fixed[e.ins[0]]) for e in self.body.equations if _is_transposition(e) and e.ins[0] in fixed
        }
        self.given: dict[int, tuple[int, int]] = {}  # transposed value of the body -> input instead, and its operand

    def rewrite(self) -> Equation:
        if not self.outside and not self.inside:
            return self.eq
        equations = [self._read_copy(e) for e in self.body.equations]
        if not self.given:
            return self.eq
        c, inputs = len(self.loop.consts), self.body.inputs
        new, operands = zip(*self.given.values(), strict=True)
        body = self.body.replace(types=self.types, inputs=[*inputs[:c], *new, *inputs[c:]], equations=equations)
        params = {**self.eq.params, "body": drop_dead(body), "consts": c + len(new)}
        ins = (*self.eq.ins[:c], *operands, *self.eq.ins[c:])
        return Equation(self.eq.prim, ins, params, self.eq.outs, self.eq.place)

    def _read_copy(self, e: Equation) -> Equation:
        """Return an equation of the body, with a copy as its factor if it is such a product."""
        if e.prim is not matmul or not self._pays(e):
            return e
        i = e.ins[1]
        if i not in self.given:
            self.types.append(self.types[i])
            self.given[i] = len(self.types) - 1, self.work.astype(self._before(i), self.types[i].dtype)
        return Equation(e.prim, (e.ins[0], self.given[i][0]), e.params, e.outs, e.place)

    def _before(self, i: int) -> int:
        """Return a transposed matrix of the body as a value of the program, before the loop."""
        if i in self.outside:
            return self.outside[i]
        made, x = self.inside[i]
        return self.work.transpose(x, made.params["axes"])

    def _pays(self, e: Equation) -> bool:
        i = e.ins[1]
        if i not in self.outside and i not in self.inside:
            return False
        t, size = self.types[i], _size(self.types, e)
        steps = GUESSED_STEPS if self.loop.length is None else self.loop.length
        many = size[0] >= _FEWEST_IN_LOOPS and size[0] * steps >= _fewest_rows(size)
        return many and t.dtype in _REAL and t.size <= LARGEST and is_small(*size)
