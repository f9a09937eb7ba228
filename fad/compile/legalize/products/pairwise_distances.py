"""Sums over all pairs of points in native programs: loops over a grid of (left point, coordinate, right point).

The operation "scipy.sum_over_pairs" sums ``u v g(a, b)`` along one axis of that grid. Written as operations on the
grid it becomes one fused loop, which reads the right points by columns and stores nothing but the sums.
"""

from __future__ import annotations

import math

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.passes.constants import as_uniform
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation

_REAL = (np.dtype(float), np.dtype(np.float32))
_LEFT, _COORDINATE, _RIGHT = 3, 2, 1  # the axes of the grid, counted from the last
_MOST_AXES = 4  # of a loop
_SUMMED = {"coordinates": _COORDINATE, "right": _RIGHT, "left": _LEFT}

# Its first operand, when the others are known: a loop that begins with it may read them all.
with_p = Primitive("with_others", lambda x, *others: x, lower="{0}", archetype="elementwise")


def sum_over_pairs(work: Builder, eq: Equation) -> int | None:
    """Write a sum over pairs as operations on the grid; None where its numbers have no kernels."""
    out = work.types[eq.outs[0]]
    if out.dtype not in _REAL or any(work.types[i].dtype != out.dtype or not work.types[i].size for i in eq.ins):
        return None
    over, order = eq.params["over"], eq.params["order"]
    if max(len(work.types[i].shape) for i in eq.ins) >= _MOST_AXES:
        return None
    if sum(order) >= {"square": 2, "absolute": 2, "largest": 2}.get(eq.params["kernel"], math.inf):
        return None  # the kernel is a constant: a matrix product, which only derivatives of higher order request
    grid = _Grid(work, eq)
    if eq.params["kernel"] == "largest" and order == (0, 0) and over == "coordinates" and not grid.factors:
        return work.positive(grid.of_pairs(grid.top()))
    terms, shares = grid.terms()
    total = work.sum(terms, grid.axis(terms, _SUMMED[over]))
    if over == "left":
        total = work.matrix_transpose(total)
    if shares is not None and over == "coordinates":
        total = work.multiply(total, shares)
    return work.multiply(total, grid.number(_factor(eq.params["kernel"], eq.params["p"], order)))


def _factor(kernel: str, p: float, order: tuple) -> float:
    """Return the number that a derivative of a kernel, as it is written below, is to be multiplied with."""
    n = sum(order)
    if kernel == "canberra":
        return 1.0 if n == 0 else -2.0 if n % 2 == 0 else 2.0
    size = {"square": 2.0 if n else 1.0, "power": math.prod(p - i for i in range(n))}.get(kernel, 1.0)
    return -size if order[1] % 2 else size  # a function of a - b changes its sign with each derivative in b


class _Grid:
    """The operands of a sum over pairs, laid out on the grid, and the kernels there."""

    def __init__(self, work: Builder, eq: Equation):
        u, v, a, b = eq.ins
        self.work = work
        self.dtype = work.types[a].dtype
        self.params = eq.params
        over = eq.params["over"]
        self.x, self.y = self.spread(a, _RIGHT), self.spread(self.columns(b), _LEFT)
        self.factors = []
        if not self.is_one(u):
            self.factors.append(self.spread(u, _RIGHT if over == "coordinates" else _COORDINATE))
        if not self.is_one(v):
            self.factors.append(self.spread(v, _RIGHT) if over == "left" else self.spread(self.columns(v), _LEFT))

    def is_one(self, i: int) -> bool:
        c = self.work.constants.get(i)
        return c is not None and as_uniform(c) == 1

    def columns(self, x: int) -> int:
        """Return points with each coordinate's numbers side by side, in memory as well."""
        return self.work.positive(self.work.matrix_transpose(x))

    def spread(self, x: int, axis: int) -> int:
        """Lay an array of two of the grid's axes out on the grid; `axis` is the third."""
        shape = list(self.work.types[x].shape)
        shape.insert(len(shape) + 1 - axis, 1)
        return self.work.reshape(x, shape)

    def of_pairs(self, x: int) -> int:
        """Leave the axis of coordinates, of length one, out."""
        shape = list(self.work.types[x].shape)
        del shape[len(shape) - _COORDINATE]
        return self.work.reshape(x, shape)

    def axis(self, x: int, axis: int) -> tuple[int]:
        """Return one of the grid's axes as those of a reduction of an array."""
        return (len(self.work.types[x].shape) - axis,)

    def points(self, *others: int) -> tuple[int, int]:
        """Return the points everywhere on the grid, no earlier than what else the loop reads is known."""
        work, found = self.work, []
        for first, second in ((self.x, self.y), (self.y, self.x)):
            ins = (first, second, *self.factors, *others)
            found.append(work.elementwise(with_p, *ins))
        return found[0], found[1]

    def terms(self) -> tuple[int, int | None]:
        """Return what is to be summed, and for the largest difference the share of each coordinate that has it."""
        kernel, order = self.params["kernel"], self.params["order"]
        shares = None
        if kernel == "largest":
            top, shares = self.largest()
            if self.params["over"] != "coordinates":
                self.factors.append(self.spread(shares, _COORDINATE))
            term = self.among_the_largest(self.points(top), top, signed=order != (0, 0))
        elif kernel == "canberra":
            term = self.canberra(self.points(), order)
        else:
            term = self.of_difference(kernel, self.work.subtract(*self.points()), sum(order))
        for factor in self.factors:
            term = self.work.multiply(term, factor)
        return term, shares

    # --- kernels, but for a number: `_factor` -----------------------------------------------------------------------

    def number(self, value: float) -> int:
        return self.work.number(value, self.dtype)

    def of_difference(self, kernel: str, d: int, n: int) -> int:
        work = self.work
        if kernel == "square":
            return d if n else work.multiply(d, d)
        if kernel == "absolute":
            return work.sign(d) if n else work.absolute(d)
        size = work.absolute(d)
        power = self.raise_to(size, self.params["p"] - n)
        value = work.where(work.equal(size, self.number(0.0)), self.number(0.0), power)
        return work.multiply(value, work.sign(d)) if n % 2 else value

    def raise_to(self, x: int, exponent: float) -> int:
        if exponent not in (1.0, 2.0, 3.0, 4.0):
            return self.work.power(x, self.number(exponent))
        y = x
        for _ in range(int(exponent) - 1):
            y = self.work.multiply(y, x)
        return y

    def canberra(self, points: tuple[int, int], order: tuple) -> int:
        work, (x, y) = self.work, points
        d, zero = work.subtract(x, y), self.number(0.0)
        if order == (0, 0):
            total = work.add(work.absolute(x), work.absolute(y))
            share = work.divide(work.absolute(d), total)
            return work.where(work.equal(total, zero), zero, share)
        total, k, n = work.add(x, y), order[1], sum(order)
        slope = work.divide(work.multiply(y, self.number(math.factorial(n))), self.raise_to(total, n + 1.0))
        if k:
            less = work.divide(self.number(k * math.factorial(n - 1)), self.raise_to(total, float(n)))
            slope = work.subtract(slope, less)
        signs = [work.sign(i) for i in (x, y, d)]
        alike = work.greater(work.multiply(signs[0], signs[1]), zero)
        slope = work.multiply(work.multiply(signs[2], signs[0]), slope)
        return work.where(alike, slope, zero)

    def top(self) -> int:
        """Return the largest difference of each pair, on the grid."""
        sizes = self.work.absolute(self.work.subtract(self.x, self.y))
        return self.work.max(sizes, self.axis(sizes, _COORDINATE), keepdims=True)

    def largest(self) -> tuple[int, int]:
        """Return the largest difference of each pair, on the grid, and the share of one coordinate that has it."""
        work, top = self.work, self.top()
        hits = work.absolute(self.among_the_largest(self.points(top), top, signed=True))
        ties = work.sum(hits, self.axis(hits, _COORDINATE))
        return top, work.divide(self.number(1.0), work.maximum(ties, self.number(1.0)))

    def among_the_largest(self, points: tuple[int, int], top: int, signed: bool) -> int:
        """Return the differences that are the largest, or with `signed` their signs; 0 for the others."""
        work = self.work
        d = work.subtract(*points)
        size = work.absolute(d)
        hit = work.equal(size, top)
        return work.where(hit, work.sign(d) if signed else size, self.number(0.0))
