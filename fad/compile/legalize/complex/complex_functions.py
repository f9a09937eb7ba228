"""Functions of Python's `cmath` as real arithmetic, by CPython's own formulas; a program checks that they are finite.

What overflows, and what a function refuses, is not finite: then the program stops, and Python says what it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.legalize.complex.complex_numbers import list_parts
from fad.compile.legalize.numbers.integer_overflow import add_check
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import NUMBER, Equation
from fad.ops.ufuncs import elementwise as e
from fad.ops.ufuncs.complexes import absolute, parts_p

_REAL, _TRUTH = np.dtype(float), np.dtype(bool)
Pair = tuple[int, int]


def compute_in_parts(work: Builder, eq: Equation) -> int | None:
    """Rewrite a function of a complex number that has a formula here."""
    out = work.types[eq.outs[0]]
    if out.kind != NUMBER or eq.prim.array_form is None:
        return None
    parts = FORMULAS[str(eq.prim.symbol)](work, *list_parts(work, eq.ins[0]))
    add_check(work, "finite", work.add(*[_do(work, absolute, part) for part in parts]), eq.outs[0])
    return work.apply(parts_p, parts, {}, out)


def _do(work: Builder, prim: Primitive, *ins: int) -> int:
    return work.elementwise(prim, *ins, dtype=_REAL)


def _times(work: Builder, x: int, factor: float) -> int:
    return _do(work, e.multiply, x, work.number(factor, _REAL))


def _product(of_x: tuple, of_y: tuple, minus: bool = False) -> Callable:
    """Return the formula whose parts are each a product of a function of x and one of y; `minus` the second."""

    def formula(work: Builder, x: int, y: int) -> Pair:
        re, im = [_do(work, e.multiply, _do(work, f, x), _do(work, g, y)) for f, g in zip(of_x, of_y, strict=True)]
        return re, _do(work, e.negative, im) if minus else im

    return formula


def _is_tiny(work: Builder, ax: int, ay: int) -> int:
    """Return whether the length of these sides has too few digits, as the smallest numbers have."""
    return work.elementwise(e.less, work.add(ax, ay), work.number(2.0**-1021, _REAL), dtype=_TRUTH)


def _sqrt(work: Builder, x: int, y: int) -> Pair:
    number = lambda value: work.number(value, _REAL)
    zero, ax, ay = number(0.0), *[_do(work, absolute, part) for part in (x, y)]
    tiny = _is_tiny(work, ax, ay)
    up, down = work.where(tiny, number(2.0**53), number(0.125)), work.where(tiny, number(2.0**-27), number(2.0))
    near, far = [_do(work, e.multiply, part, up) for part in (ax, ay)]
    s = _do(work, e.multiply, _do(work, e.sqrt, work.add(near, _do(work, e.hypot, near, far))), down)
    other = _do(work, e.divide, ay, _times(work, s, 2.0))
    other = work.where(work.elementwise(e.equal, s, zero, dtype=_TRUTH), zero, other)
    right = work.elementwise(e.greater_equal, x, zero, dtype=_TRUTH)
    re, size = work.where(right, s, other), work.where(right, other, s)
    return re, _do(work, e.copysign, size, y)


def _log(work: Builder, x: int, y: int) -> Pair:
    one, size = work.number(1.0, _REAL), _do(work, e.hypot, x, y)
    sizes = [_do(work, absolute, part) for part in (x, y)]
    tiny, (up, by) = _is_tiny(work, *sizes), [work.number(value, _REAL) for value in (2.0**53, 53 * math.log(2))]
    large = [work.where(tiny, _do(work, e.multiply, part, up), part) for part in sizes]
    far = _do(work, e.log, _do(work, e.hypot, *large))
    far = work.where(tiny, _do(work, e.subtract, far, by), far)
    most, least = _do(work, e.maximum, *sizes), _do(work, e.minimum, *sizes)
    square = _do(work, e.multiply, _do(work, e.subtract, most, one), work.add(most, one))
    square = work.add(square, _do(work, e.multiply, least, least))
    above = work.elementwise(e.greater_equal, size, work.number(0.71, _REAL), dtype=_TRUTH)
    below = work.elementwise(e.less_equal, size, work.number(1.73, _REAL), dtype=_TRUTH)
    near = work.elementwise(e.logical_and, above, below, dtype=_TRUTH)
    close = _times(work, _do(work, e.log1p, work.where(near, square, one)), 0.5)
    return work.where(near, close, far), _do(work, e.arctan2, y, x)


def _log10(work: Builder, x: int, y: int) -> Pair:
    re, im = _log(work, x, y)
    return _times(work, re, 1 / math.log(10)), _times(work, im, 1 / math.log(10))


FORMULAS: dict[str, Callable[[Builder, int, int], Pair]] = {
    "cmath.exp": _product((e.exp, e.exp), (e.cos, e.sin)),
    "cmath.sin": _product((e.sin, e.cos), (e.cosh, e.sinh)),
    "cmath.cos": _product((e.cos, e.sin), (e.cosh, e.sinh), minus=True),
    "cmath.sinh": _product((e.sinh, e.cosh), (e.cos, e.sin)),
    "cmath.cosh": _product((e.cosh, e.sinh), (e.cos, e.sin)),
    "cmath.sqrt": _sqrt, "cmath.log": _log, "cmath.log10": _log10,
}  # fmt: skip
