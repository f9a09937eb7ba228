"""Linear algebra within a loop nest: systems, inverses, determinants and factors of small matrices, and of stacks.

A matrix is copied to memory of the nest, in double precision as in NumPy, and what is computed of it from there to its
place. Where NumPy raises LinAlgError the function is left, and NumPy has the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.codegen.llvm.builder import c
from fad.compile.codegen.llvm.expressions import emit
from fad.compile.codegen.nests.arrays import loops
from fad.compile.codegen.nests.body import Body
from fad.compile.codegen.nests.elimination import (
    WRITTEN_OUT,
    Elements,
    InMemory,
    InRegisters,
    Matrix,
    factor,
    factor_definite,
    repeat,
    require_diagonal,
    substitute,
)
from fad.compile.codegen.nests.values import Value, element
from fad.compile.codegen.nests.writer import Index, Number, TooMuch, Writer
from fad.compile.ir.lowered_ops import FACTOR_SYSTEM
from fad.compile.ir.types import F32, F64, I64
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph
from fad.ops.linalg import decompositions, factors, solving
from fad.ops.linalg.solving import REGULAR

_MOST = 32  # rows and columns of a matrix; LAPACK is as fast for larger ones


def is_small(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation is one of those here, on matrices that are small enough."""
    return eq.prim in LINEAR_ALGEBRA and _fits([graph.types[i] for i in eq.ins])


def _fits(types: list) -> bool:
    """Return whether operands are small matrices of one real dtype, of which the first is square, and their pivots."""
    matrices = types[:-1] if types[-1].dtype.kind == "i" else types
    t = matrices[0]
    small = t.shape[-2] == t.shape[-1] and all(x.size and max(x.shape[-2:]) <= _MOST for x in matrices)
    return small and t.dtype.kind == "f" and all(x.dtype == t.dtype for x in matrices)


class _Stack:
    """The operation for each matrix of a stack: its operands at hand, and its results."""

    def __init__(self, body: Body, eq: Equation):
        if not _fits([body.graph.types[i] for i in eq.ins]):
            raise TooMuch(f"{eq.prim.name} of these matrices has no machine code")
        self.body, self.eq, self.w = body, eq, body.w
        self.dtype = body.graph.types[eq.ins[0]].dtype
        self.n = body.shape(eq.ins[0])[-1]
        last = body.shape(eq.outs[0])
        self.lead = last[: len(last) - (2 if LINEAR_ALGEBRA[eq.prim] not in _NUMBERS else 0)]
        self.operands: list[Value] = []
        for i in eq.ins:
            rank = 1 if body.type(i) not in (F64, F32) else 2
            self.operands.append(body.operand(i, self.lead + body.shape(i)[-rank:]))
        self.places = [body.place(o) if body.shape(o) else None for o in eq.outs]
        for place in self.places:
            if place is not None and any(getattr(x, "buffers", frozenset()) & place.buffers for x in self.operands):
                raise TooMuch("linear algebra is wanted where its operand is")
        self.at: tuple = ()

    def read(self, k: int) -> Elements:
        """Return how elements of an operand are read."""

        def found(i: Index, j: Index) -> str:
            x = element(self.w, self.operands[k], (*self.at, i, j))
            return self.w.cast(x.name, x.t, F64)

        return found

    def pivot(self, k: Index) -> str:
        """Return which row was exchanged with row k: the last operand says that."""
        x = element(self.w, self.operands[-1], (*self.at, k))
        return self.w.cast(x.name, x.t, I64)

    def load(self, found: Elements, columns: int | None = None) -> Matrix:
        """Return a matrix that the nest may overwrite."""
        columns = self.n if columns is None else columns
        x: Matrix
        if max(self.n, columns) <= WRITTEN_OUT:
            x = InRegisters(self.w, self.n, columns)
        else:
            x = InMemory(self.w, self.body.memory.new((self.n, columns), F64))
        repeat(self.w, 0, self.n, lambda i: repeat(self.w, 0, columns, lambda j: x.set(i, j, found(i, j))))
        return x

    def put(self, value: str, *index: Index, result: int = 0, t: str = F64) -> None:
        """Write an element of a result, or the number that it is."""
        place = self.places[result]
        o = self.eq.outs[result]
        value = self.w.cast(value, t, self.body.type(o))
        if place is None:
            number = Number(value, self.body.type(o))
            self.body.values[o] = number
            if o in self.body.places:
                self.body.put(number, self.body.places[o])
        else:
            self.w.write(place.t, value, place.address(self.w, (*self.at, *index)))

    def put_matrix(self, found: Elements, columns: int) -> None:
        repeat(self.w, 0, self.n, lambda i: repeat(self.w, 0, columns, lambda j: self.put(found(i, j), i, j)))


def emit_linear_algebra(body: Body, eq: Equation) -> None:
    """Write an operation of linear algebra, for each matrix of a stack."""
    stack = _Stack(body, eq)
    with loops(body.w, stack.lead) as at:
        stack.at = at
        LINEAR_ALGEBRA[eq.prim](stack)
    for o, place in zip(eq.outs, stack.places, strict=True):
        if place is not None:
            body.values[o] = place


# --- systems and inverses --------------------------------------------------------------------------------------------


def _identity(w: Writer) -> Elements:
    def found(i: Index, j: Index) -> str:
        return c(float(i == j)) if type(i) is type(j) is int else w.select(
            w.new(f"icmp eq i64 {i}, {j}"), c(1.0), c(0.0)
        )  # fmt: skip

    return found


def _solve(s: _Stack, right: Elements | None = None) -> None:
    columns = s.n if right else s.operands[1].shape[-1]  # type: ignore[union-attr]
    a, x = s.load(s.read(0)), s.load(right or s.read(1), columns)
    factor(s.w, a, lambda k, p: x.exchange(k, p))
    require_diagonal(s.w, a.element, s.n)
    substitute(s.w, a.element, x, lower=True, unit=True)
    substitute(s.w, a.element, x, lower=False, unit=False)
    s.put_matrix(x.element, columns)


def _solve_factored(s: _Stack, right: Elements | None = None) -> None:
    columns = s.n if right else s.operands[1].shape[-1]  # type: ignore[union-attr]
    x, kept = s.load(right or s.read(1), columns), s.read(len(s.operands) - 2)  # the factors lie transposed
    exchange = lambda k: x.exchange(k, s.pivot(k))
    require_diagonal(s.w, kept, s.n)
    if s.eq.params.get("transposed"):
        substitute(s.w, kept, x, lower=True, unit=False)
        substitute(s.w, kept, x, lower=False, unit=True)
        repeat(s.w, 0, s.n, lambda k: exchange(s.w.minus(s.n - 1, k)))
    else:
        repeat(s.w, 0, s.n, exchange)
        substitute(s.w, lambda i, j: kept(j, i), x, lower=True, unit=True)
        substitute(s.w, lambda i, j: kept(j, i), x, lower=False, unit=False)
    s.put_matrix(x.element, columns)


def _solve_triangle(s: _Stack) -> None:
    known = s.eq.prim is FACTOR_SYSTEM
    lower, unit = s.eq.params["lower"], not known and s.eq.params["unit"]
    columns = s.operands[1].shape[-1]  # type: ignore[union-attr]
    triangle, x = s.read(0), s.load(s.read(1), columns)
    if not unit and not known:
        require_diagonal(s.w, triangle, s.n)
    substitute(s.w, triangle, x, lower=lower, unit=unit)
    s.put_matrix(x.element, columns)


# --- factors and determinants ----------------------------------------------------------------------------------------


def _factor(s: _Stack) -> None:
    a = s.load(s.read(0))
    factor(s.w, a, lambda k, p: s.put(p, k, result=1, t=I64))
    s.put_matrix(lambda i, j: a.element(j, i), s.n)


def _multiply_pivots(s: _Stack, one: Callable[[str, str], str], begin: float) -> tuple[str, str]:
    """Return the sign that the exchanges of rows give, and the pivots one by one combined with a number."""
    w = s.w
    sign, total = w.slot(F64), w.slot(F64)
    w.do(f"store double {c(1.0)}, ptr {sign}")
    w.do(f"store double {c(begin)}, ptr {total}")

    def turn(k: Index, p: str) -> None:
        before = w.read(F64, sign)
        stays = w.new(f"icmp eq i64 {p}, {k}")
        w.do(f"store double {w.select(stays, before, w.neg(before))}, ptr {sign}")

    if len(s.operands) > 1:
        kept = s.read(1)
        repeat(w, 0, s.n, lambda k: turn(k, s.pivot(k)))
    else:
        a = s.load(s.read(0))
        factor(w, a, turn)
        kept = a.element
    repeat(w, 0, s.n, lambda k: w.do(f"store double {one(w.read(F64, total), kept(k, k))}, ptr {total}"))
    return w.read(F64, sign), w.read(F64, total)


def _determinant(s: _Stack) -> None:
    sign, product = _multiply_pivots(s, s.w.mul, 1.0)
    s.put(s.w.mul(sign, product))


def _cofactors(s: _Stack) -> None:
    """Write the determinant times the transposed inverse; of a matrix that may be singular NumPy has the answer."""
    w, bound, product = s.w, s.w.slot(F64), s.w.slot(F64)
    found, a = s.read(0), s.load(s.read(0))
    x = s.load(_identity(w))
    w.do(f"store double {c(float(np.finfo(s.dtype).eps) ** REGULAR)}, ptr {bound}")
    w.do(f"store double {c(1.0)}, ptr {product}")

    def measure(i: Index) -> None:
        squares = w.slot(F64)
        w.do(f"store double {c(0.0)}, ptr {squares}")
        add = lambda j: w.do(f"store double {w.fma(found(i, j), found(i, j), w.read(F64, squares))}, ptr {squares}")
        repeat(w, 0, s.n, add)
        length = emit(w, "sqrt({0})", [(w.read(F64, squares), F64)], F64, False)
        w.do(f"store double {w.mul(w.read(F64, bound), length)}, ptr {bound}")

    def turn(k: Index, p: str) -> None:
        x.exchange(k, p)
        before, stays = w.mul(w.read(F64, product), a.element(k, k)), w.new(f"icmp eq i64 {p}, {k}")
        w.do(f"store double {w.select(stays, before, w.neg(before))}, ptr {product}")

    repeat(w, 0, s.n, measure)
    factor(w, a, turn)
    det = w.read(F64, product)
    w.require(w.compare(">", w.magnitude(det), w.read(F64, bound)))
    substitute(w, a.element, x, lower=True, unit=True)
    substitute(w, a.element, x, lower=False, unit=False)
    s.put_matrix(lambda i, j: w.mul(det, x.element(j, i)), s.n)


def _log_determinant(s: _Stack) -> None:
    w, signs = s.w, s.w.slot(F64)
    w.do(f"store double {c(1.0)}, ptr {signs}")

    def add_log(total: str, pivot: str) -> str:
        zero = w.compare("==", pivot, c(0.0))
        sign = w.select(zero, c(0.0), w.call("copysign", c(1.0), pivot))
        w.do(f"store double {w.mul(w.read(F64, signs), sign)}, ptr {signs}")
        return w.add(total, emit(w, "log({0})", [(w.magnitude(pivot), F64)], F64, False))

    sign, total = _multiply_pivots(s, add_log, 0.0)
    s.put(w.mul(sign, w.read(F64, signs)))
    s.put(total, result=1)


def _cholesky(s: _Stack) -> None:
    found = s.read(0)
    u = s.load(lambda i, j: found(j, i))
    factor_definite(s.w, u)

    def lower(i: Index, j: Index) -> str:
        if type(i) is type(j) is int:
            return u.element(j, i) if j <= i else c(0.0)
        return s.w.select(s.w.new(f"icmp sle i64 {j}, {i}"), u.element(j, i), c(0.0))

    s.put_matrix(lower, s.n)


LINEAR_ALGEBRA: dict[Primitive, Callable[[Any], None]] = {
    solving.solve_p: _solve, solving.solve_rule_p: _solve,
    solving.inv_p: lambda s: _solve(s, _identity(s.w)),
    factors.lu_p: _factor,
    factors.solve_factored_p: _solve_factored,
    factors.invert_factored_p: lambda s: _solve_factored(s, _identity(s.w)),
    factors.triangular_p: _solve_triangle, FACTOR_SYSTEM: _solve_triangle,
    solving.det_p: _determinant, solving.det_by_cofactors_p: _determinant, solving.det_rule_p: _determinant,
    solving.cofactors_p: _cofactors,
    solving.slogdet_p: _log_determinant, solving.slogdet_rule_p: _log_determinant,
    decompositions.cholesky_p: _cholesky, decompositions.cholesky_rule_p: _cholesky,
}  # fmt: skip
_NUMBERS = (_determinant, _log_determinant)  # whose results are one for a matrix
