"""Sums over all pairs of points in native programs: loops over a grid of (left point, coordinate, right point).

The operation "scipy.sum_over_pairs" sums ``u v g(a, b)`` along one axis of that grid. Written as operations on the
grid it becomes one fused loop, which reads the right points by columns and stores nothing but the sums.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.compile.passes.constants import as_uniform
from fad.core.graph import ARRAY, Equation, Type
from fad.core.primitive import Primitive
from fad.ops.complexes import absolute, sign_p
from fad.ops.elementwise import add, divide, equal, greater, maximum, multiply, positive, subtract
from fad.ops.elementwise import power as power_p
from fad.ops.reduction import max_p, sum_p
from fad.ops.selection import where_p
from fad.ops.structural import reshape_p, transpose_p

_REAL = (np.dtype(float), np.dtype(np.float32))
_TRUTH = np.dtype(bool)
_LEFT, _COORDINATE, _RIGHT = 3, 2, 1  # the axes of the grid, counted from the last
_MOST_AXES = 4  # of a loop
_SUMMED = {"coordinates": _COORDINATE, "right": _RIGHT, "left": _LEFT}

# Its first operand, when the others are known: a loop that begins with it may read them all.
with_p = Primitive("with_others", lambda x, *others: x, lower="{0}", archetype="elementwise")


def sum_over_pairs(work: Any, eq: Equation) -> bool:
    """Write a sum over pairs as operations on the grid; false where its numbers have no kernels."""
    out = work.type(eq.outs[0])
    if out.dtype not in _REAL or any(work.type(i).dtype != out.dtype or not work.type(i).size for i in eq.ins):
        return False
    over, order = eq.params["over"], eq.params["order"]
    if max(len(work.type(i).shape) for i in eq.ins) >= _MOST_AXES:
        return False
    if sum(order) >= {"square": 2, "absolute": 2, "largest": 2}.get(eq.params["kernel"], math.inf):
        return False  # the kernel is a constant: a matrix product, which only derivatives of higher order request
    grid = _Grid(work, eq)
    if eq.params["kernel"] == "largest" and order == (0, 0) and over == "coordinates" and not grid.factors:
        return work.give(eq, positive, grid.of_pairs(grid.top()))
    terms, shares = grid.terms()
    total = work.reduce(sum_p, terms, (len(work.type(terms).shape) - _SUMMED[over],), False)
    if over == "left":
        total = _flip(work, total)
    if shares is not None and over == "coordinates":
        total = work.do(multiply, total, shares)
    return work.give(eq, multiply, total, grid.number(_factor(eq.params["kernel"], eq.params["p"], order)))


def _factor(kernel: str, p: float, order: tuple) -> float:
    """Return the number that a derivative of a kernel, as it is written below, is to be multiplied with."""
    n = sum(order)
    if kernel == "canberra":
        return 1.0 if n == 0 else -2.0 if n % 2 == 0 else 2.0
    size = {"square": 2.0 if n else 1.0, "power": math.prod(p - i for i in range(n))}.get(kernel, 1.0)
    return -size if order[1] % 2 else size  # a function of a - b changes its sign with each derivative in b


def _flip(work: Any, x: int) -> int:
    """Exchange the last two axes."""
    shape = work.type(x).shape
    axes = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    return work.do(transpose_p, x, shape=tuple([shape[d] for d in axes]), axes=axes)


class _Grid:
    """The operands of a sum over pairs, laid out on the grid, and the kernels there."""

    def __init__(self, work: Any, eq: Equation):
        u, v, a, b = eq.ins
        self.work = work
        self.dtype = work.type(a).dtype
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
        return self.work.do(positive, _flip(self.work, x))

    def spread(self, x: int, axis: int) -> int:
        """Lay an array of two of the grid's axes out on the grid; `axis` is the third."""
        shape = list(self.work.type(x).shape)
        shape.insert(len(shape) + 1 - axis, 1)
        return self.work.do(reshape_p, x, shape=tuple(shape))

    def of_pairs(self, x: int) -> int:
        """Leave the axis of coordinates, of length one, out."""
        shape = list(self.work.type(x).shape)
        del shape[len(shape) - _COORDINATE]
        return self.work.do(reshape_p, x, shape=tuple(shape))

    def points(self, *others: int) -> tuple[int, int]:
        """Return the points everywhere on the grid, no earlier than what else the loop reads is known."""
        work, found = self.work, []
        for first, second in ((self.x, self.y), (self.y, self.x)):
            ins = (first, second, *self.factors, *others)
            shape = np.broadcast_shapes(*[work.type(i).shape for i in ins])
            found.append(work.apply(with_p, ins, {}, Type(shape, self.dtype, ARRAY)))
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
            term = self.of_difference(kernel, self.of(subtract, *self.points()), sum(order))
        for factor in self.factors:
            term = self.of(multiply, term, factor)
        return term, shares

    # --- kernels, but for a number: `_factor` -----------------------------------------------------------------------

    def of(self, prim: Primitive, *ins: int) -> int:
        return self.work.do(prim, *ins, dtype=self.dtype)

    def compare(self, prim: Primitive, *ins: int) -> int:
        return self.work.do(prim, *ins, dtype=_TRUTH)

    def number(self, value: float) -> int:
        return self.work.number(value, self.dtype)

    def of_difference(self, kernel: str, d: int, n: int) -> int:
        if kernel == "square":
            return d if n else self.of(multiply, d, d)
        if kernel == "absolute":
            return self.of(sign_p if n else absolute, d)
        size = self.of(absolute, d)
        power = self.raise_to(size, self.params["p"] - n)
        value = self.of(where_p, self.compare(equal, size, self.number(0.0)), self.number(0.0), power)
        return self.of(multiply, value, self.of(sign_p, d)) if n % 2 else value

    def raise_to(self, x: int, exponent: float) -> int:
        if exponent not in (1.0, 2.0, 3.0, 4.0):
            return self.of(power_p, x, self.number(exponent))
        y = x
        for _ in range(int(exponent) - 1):
            y = self.of(multiply, y, x)
        return y

    def canberra(self, points: tuple[int, int], order: tuple) -> int:
        x, y = points
        d, zero = self.of(subtract, x, y), self.number(0.0)
        if order == (0, 0):
            total = self.of(add, self.of(absolute, x), self.of(absolute, y))
            share = self.of(divide, self.of(absolute, d), total)
            return self.of(where_p, self.compare(equal, total, zero), zero, share)
        total, k, n = self.of(add, x, y), order[1], sum(order)
        slope = self.of(divide, self.of(multiply, y, self.number(math.factorial(n))), self.raise_to(total, n + 1.0))
        if k:
            less = self.of(divide, self.number(k * math.factorial(n - 1)), self.raise_to(total, float(n)))
            slope = self.of(subtract, slope, less)
        signs = [self.of(sign_p, i) for i in (x, y, d)]
        alike = self.compare(greater, self.of(multiply, signs[0], signs[1]), zero)
        slope = self.of(multiply, self.of(multiply, signs[2], signs[0]), slope)
        return self.of(where_p, alike, slope, zero)

    def top(self) -> int:
        """Return the largest difference of each pair, on the grid."""
        sizes = self.of(absolute, self.of(subtract, self.x, self.y))
        return self.work.reduce(max_p, sizes, (len(self.work.type(sizes).shape) - _COORDINATE,), True)

    def largest(self) -> tuple[int, int]:
        """Return the largest difference of each pair, on the grid, and the share of one coordinate that has it."""
        top = self.top()
        hits = self.of(absolute, self.among_the_largest(self.points(top), top, signed=True))
        ties = self.work.reduce(sum_p, hits, (len(self.work.type(hits).shape) - _COORDINATE,), False)
        return top, self.of(divide, self.number(1.0), self.of(maximum, ties, self.number(1.0)))

    def among_the_largest(self, points: tuple[int, int], top: int, signed: bool) -> int:
        """Return the differences that are the largest, or with `signed` their signs; 0 for the others."""
        d = self.of(subtract, *points)
        size = self.of(absolute, d)
        hit = self.compare(equal, size, top)
        return self.of(where_p, hit, self.of(sign_p, d) if signed else size, self.number(0.0))
