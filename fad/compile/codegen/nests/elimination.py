"""Elimination within a loop nest: factors of small matrices, and systems that are solved with them.

A row of a matrix is a vector. The rows of small matrices are in registers, and all steps are written out; those of
others are in memory of the nest, and the steps are loops. The algorithms are the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from fad.compile.codegen.llvm.builder import c, vector
from fad.compile.codegen.llvm.expressions import emit
from fad.compile.codegen.nests.values import Stored
from fad.compile.codegen.nests.writer import Index, Writer
from fad.compile.ir.types import F64, I64

WRITTEN_OUT = 8  # steps that are written one after the other, and rows in registers: LLVM takes long for more
Elements = Callable[[Index, Index], str]  # an element of a matrix, by its row and column


def repeat(w: Writer, start: Index, stop: Index, write: Callable[[Index], None]) -> None:
    """Write ``write(i)`` for each i from start to stop: one after the other if they are few, or else in a loop."""
    if type(start) is int and type(stop) is int and stop <= WRITTEN_OUT:
        for i in range(start, stop):
            write(i)
        return
    with w.loop(w.minus(stop, start)) as step:
        write(w.plus(step, start))


# --- rows ------------------------------------------------------------------------------------------------------------


class Matrix(ABC):
    """A matrix that may be overwritten, by rows."""

    def __init__(self, w: Writer, rows: int, columns: int):
        self.w, self.rows, self.columns = w, rows, columns
        self.type = vector(F64, columns)

    @abstractmethod
    def row(self, i: Index) -> str: ...

    @abstractmethod
    def set_row(self, i: Index, value: str) -> None: ...

    @abstractmethod
    def element(self, i: Index, j: Index) -> str: ...

    @abstractmethod
    def set(self, i: Index, j: Index, value: str) -> None: ...

    @abstractmethod
    def exchange(self, k: Index, p: str) -> None:
        """Exchange row k with a row p that is not before it."""

    def subtract(self, i: Index, factor: str, k: Index) -> None:
        """Subtract a multiple of row k from row i."""
        self.set_row(i, self._difference(i, factor, k))

    def divide(self, k: Index, divisor: str) -> None:
        self.set_row(k, self._quotient(k, divisor))

    def subtract_behind(self, i: Index, factor: str, k: Index) -> None:
        """Put a factor into column k of row i, and subtract that multiple of row k behind it."""
        self._put_behind(i, k, factor, self._difference(i, factor, k))

    def divide_behind(self, k: Index, divisor: str) -> None:
        """Put a number on the diagonal of row k, and divide what is behind it by that."""
        self._put_behind(k, k, divisor, self._quotient(k, divisor))

    def _difference(self, i: Index, factor: str, k: Index) -> str:
        function = f"@llvm.fma.v{self.columns}f64"
        self.w.needs.add(f"declare {self.type} {function}({self.type}, {self.type}, {self.type})")
        operands = (self._spread(self.w.neg(factor)), self.row(k), self.row(i))
        return self.w.new(f"call {self.type} {function}({', '.join(f'{self.type} {x}' for x in operands)})")

    def _quotient(self, k: Index, divisor: str) -> str:
        return self.w.new(f"fdiv {self.type} {self.row(k)}, {self._spread(divisor)}")

    def _put_behind(self, i: Index, k: Index, at: str, behind: str) -> None:
        """Change row i: one element in column k, and all that are behind it.

        Written as a whole: what is read of a row right after one element of it was written waits for memory.
        """
        lanes, t = f"<{', '.join(f'i64 {j}' for j in range(self.columns))}>", vector(I64, self.columns)
        row = self.row(i)
        for how, new in (("eq", self._spread(at)), ("ugt", behind)):
            where = self.w.new(f"icmp {how} {t} {lanes}, {self._spread(str(k), I64)}")
            row = self.w.new(f"select {vector('i1', self.columns)} {where}, {self.type} {new}, {self.type} {row}")
        self.set_row(i, row)

    def _spread(self, number: str, t: str = F64) -> str:
        wide = vector(t, self.columns)
        one = self.w.new(f"insertelement {wide} poison, {t} {number}, i64 0")
        zeros = f"{vector('i32', self.columns)} zeroinitializer"
        return self.w.new(f"shufflevector {wide} {one}, {wide} poison, {zeros}")


class InRegisters(Matrix):
    """A matrix whose rows have the names that their last changes have given them."""

    def __init__(self, w: Writer, rows: int, columns: int):
        super().__init__(w, rows, columns)
        self.names = ["poison"] * rows

    def row(self, i: Index) -> str:
        assert type(i) is int
        return self.names[i]

    def set_row(self, i: Index, value: str) -> None:
        assert type(i) is int
        self.names[i] = value

    def element(self, i: Index, j: Index) -> str:
        return self.w.new(f"extractelement {self.type} {self.row(i)}, i64 {j}")

    def set(self, i: Index, j: Index, value: str) -> None:
        self.set_row(i, self.w.new(f"insertelement {self.type} {self.row(i)}, double {value}, i64 {j}"))

    def exchange(self, k: Index, p: str) -> None:
        assert type(k) is int
        for i in range(k + 1, self.rows):
            here = self.w.new(f"icmp eq i64 {p}, {i}")
            a, b = self.row(k), self.row(i)
            self.set_row(k, self.w.new(f"select i1 {here}, {self.type} {b}, {self.type} {a}"))
            self.set_row(i, self.w.new(f"select i1 {here}, {self.type} {a}, {self.type} {b}"))


class InMemory(Matrix):
    """A matrix in memory of the nest."""

    def __init__(self, w: Writer, place: Stored):
        super().__init__(w, *place.shape)
        self.place = place

    def row(self, i: Index) -> str:
        return self.w.fresh(f"load {self.type}, ptr {self.place.address(self.w, (i, 0))}, align 8")

    def set_row(self, i: Index, value: str) -> None:
        self.w.do(f"store {self.type} {value}, ptr {self.place.address(self.w, (i, 0))}, align 8")

    def element(self, i: Index, j: Index) -> str:
        return self.w.read(F64, self.place.address(self.w, (i, j)))

    def set(self, i: Index, j: Index, value: str) -> None:
        self.w.write(F64, value, self.place.address(self.w, (i, j)))

    def exchange(self, k: Index, p: str) -> None:
        a, b = self.row(k), self.row(p)
        self.set_row(k, b)
        self.set_row(p, a)


# --- LU --------------------------------------------------------------------------------------------------------------


def factor(w: Writer, a: Matrix, note: Callable[[Index, str], None]) -> None:
    """Overwrite a matrix with its LU factors, by partial pivoting as LAPACK does it.

    ``note(k, p)`` writes what else is done when row k has been exchanged with row p, where the largest element is.
    """

    def eliminate(k: Index) -> None:
        p = _find_pivot(w, a, k)
        a.exchange(k, p)
        note(k, p)
        pivot = a.element(k, k)
        divisor = w.select(w.compare("==", pivot, c(0.0)), c(1.0), pivot)  # all elements below are zeros, too

        def subtract(i: Index) -> None:
            a.subtract_behind(i, w.div(a.element(i, k), divisor), k)

        repeat(w, w.plus(k, 1), a.rows, subtract)

    repeat(w, 0, a.rows, eliminate)


def _find_pivot(w: Writer, a: Matrix, k: Index) -> str:
    """Return the row, from k on, that has the largest element in column k."""
    largest, place = w.slot(F64), w.slot(I64)
    w.do(f"store double {w.call('fabs', a.element(k, k))}, ptr {largest}")
    w.do(f"store i64 {k}, ptr {place}")

    def look(i: Index) -> None:
        size, before, at = w.magnitude(a.element(i, k)), w.read(F64, largest), w.read(I64, place)
        larger = w.compare(">", size, before)
        w.do(f"store double {w.select(larger, size, before)}, ptr {largest}")
        w.do(f"store i64 {w.select(larger, str(i), at, I64)}, ptr {place}")

    repeat(w, w.plus(k, 1), a.rows, look)
    return w.read(I64, place)


# --- triangular systems ----------------------------------------------------------------------------------------------


def substitute(w: Writer, triangle: Elements, x: Matrix, *, lower: bool, unit: bool) -> None:
    """Overwrite right-hand sides, the columns of x, with the solutions of a triangular system."""
    n = x.rows

    def solve(step: Index) -> None:
        k = step if lower else w.minus(n - 1, step)
        if not unit:
            x.divide(k, triangle(k, k))
        repeat(w, w.plus(k, 1) if lower else 0, n if lower else k, lambda i: x.subtract(i, triangle(i, k), k))

    repeat(w, 0, n, solve)


def require_diagonal(w: Writer, triangle: Elements, n: int) -> None:
    """Leave the function where a triangular matrix has a zero on its diagonal: NumPy has the error."""
    repeat(w, 0, n, lambda k: w.require(w.compare("!=", triangle(k, k), c(0.0))))


# --- Cholesky --------------------------------------------------------------------------------------------------------


def factor_definite(w: Writer, u: Matrix) -> None:
    """Overwrite the upper triangle of a symmetric matrix with its upper Cholesky factor."""

    def eliminate(k: Index) -> None:
        left = u.element(k, k)
        w.require(w.compare(">", left, c(0.0)))
        u.divide_behind(k, emit(w, "sqrt({0})", [(left, F64)], F64, False))
        repeat(w, w.plus(k, 1), u.rows, lambda i: u.subtract(i, u.element(k, i), k))

    repeat(w, 0, u.rows, eliminate)
