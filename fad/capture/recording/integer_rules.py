"""Bounds of integers: those of a result from those of its operands, and back.

Bounds are ``(least, most)``, with None where there is no bound.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fad.control_flow.bodies.subgraph import to_number_p
from fad.core.primitives.primitive import Primitive
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.elementwise import maximum, minimum, square
from fad.staging.python_numbers import to_scalar_p

Interval = tuple  # (least, most)
UNKNOWN = (None, None)
COPIES = frozenset({to_number_p, to_scalar_p, astype_p})
COMPARISONS = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}  # and what holds where one does not
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


def is_within(x: Interval, y: Interval) -> bool:
    """Return whether bounds say at least as much as others."""
    low = y[0] is None or (x[0] is not None and y[0] <= x[0])
    return low and (y[1] is None or (x[1] is not None and x[1] <= y[1]))


def union(x: Interval, y: Interval) -> Interval:
    """Return the bounds of what lies within one pair of bounds or the other."""
    least = None if x[0] is None or y[0] is None else min(x[0], y[0])
    return (least, None if x[1] is None or y[1] is None else max(x[1], y[1]))


def meet(x: Interval, y: Interval) -> Interval:
    """Return the bounds of what lies within both pairs of bounds."""
    lows, tops = [a for a in (x[0], y[0]) if a is not None], [b for b in (x[1], y[1]) if b is not None]
    return (max(lows, default=None), min(tops, default=None))


def is_empty(x: Interval) -> bool:
    """Return whether nothing lies within bounds."""
    return None not in x and x[0] > x[1]


def limits_of(dtype: np.dtype) -> Interval:
    """Return the bounds of a dtype; those of 64 bits say nothing."""
    if dtype.kind == "b":
        return (0, 1)
    if dtype.kind not in "iu" or dtype.itemsize >= 8:
        return (0, None) if dtype.kind == "u" else UNKNOWN
    return (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def bounds_of_number(x: Any) -> Interval:
    """Return the bounds of a plain number: itself, or the integers next to it."""
    x = np.asarray(x)[()]
    if type(x) is int or x.dtype.kind in "biu":  # one that 64 bits do not hold stays Python's
        return (int(x), int(x))
    return (math.floor(x), math.ceil(x)) if x.dtype.kind == "f" and np.isfinite(x) else UNKNOWN


def _add(x: Interval, y: Interval) -> Interval:
    (a, b), (c, d) = x, y
    return (None if a is None or c is None else a + c, None if b is None or d is None else b + d)


def _negate(x: Interval) -> Interval:
    least, most = x
    return (None if most is None else -most, None if least is None else -least)


def _each(x: Interval, function: Any) -> Interval:
    """Return the bounds of a function that grows with its argument."""
    return (None if x[0] is None else function(x[0]), None if x[1] is None else function(x[1]))


def _corners(operation: Any, x: Interval, y: Interval) -> Interval:
    if None in (*x, *y):
        return UNKNOWN
    found = [operation(a, b) for a, b in itertools.product(x, y)]
    return (min(found), max(found))


# --- from operands to a result ---------------------------------------------------------------------------------------


def bound_result(prim: Primitive, xs: list[Interval]) -> Interval:
    """Return the bounds of what an operation on integers gives, from those of its operands."""
    symbol = prim.symbol
    if prim in COPIES or symbol == "pos":
        return xs[0]
    if symbol == "neg":
        return _negate(xs[0])
    if symbol == "abs":
        return meet((0, None), union(xs[0], _negate(xs[0])))
    if prim is square:
        return meet((0, None), _corners(lambda a, b: a * b, xs[0], xs[0]))
    if symbol in COMPARISONS:
        return (0, 1)
    return _of_two(prim, *xs) if len(xs) == 2 else UNKNOWN


def _of_two(prim: Primitive, x: Interval, y: Interval) -> Interval:
    symbol = prim.symbol
    (a, b), (c, d) = x, y
    if prim is minimum:
        return (None if a is None or c is None else min(a, c), min([t for t in (b, d) if t is not None], default=None))
    if prim is maximum:
        return (max([t for t in (a, c) if t is not None], default=None), None if b is None or d is None else max(b, d))
    if symbol == "+":
        return _add(x, y)
    if symbol == "-":
        return _add(x, _negate(y))
    if symbol == "*":
        return _corners(lambda p, q: p * q, x, y)
    if symbol == "&":
        tops = [top for least, top in (x, y) if least is not None and least >= 0 and top is not None]
        return (0, min(tops)) if tops else UNKNOWN
    if symbol in ("|", "^") and None not in (a, b, c, d):
        bits = max(abs(t) for t in (a, b, c, d)).bit_length()
        return (0 if min(a, c) >= 0 else -(1 << bits), (1 << bits) - 1)
    if c is None or c < 0:
        return UNKNOWN
    if symbol == "%" and c > 0 and d is not None:
        return (0, d - 1)
    if symbol in ("//", ">>") and (c > 0 or symbol == ">>"):
        if c == d and c < 64:
            return _each(x, (lambda t: t // c) if symbol == "//" else (lambda t: t >> c))
        return union(x, (0 if a is not None and a >= 0 else -1, 0))
    if symbol in ("**", "<<") and a is not None and a >= 0 and b is not None and d is not None and d < 64:
        return (a**c, b**d) if symbol == "**" else (a << c, b << d)
    return UNKNOWN


# --- from a result to its operands -----------------------------------------------------------------------------------


def bound_operands(prim: Primitive, result: Interval, xs: list[Interval]) -> list[Interval]:
    """Return what the bounds of a result, where it has not been rounded or wrapped, say of the operands."""
    symbol = prim.symbol
    if prim in COPIES or symbol == "pos":
        return [result]
    if symbol == "neg":
        return [_negate(result)]
    if prim is square:
        return [_roots(result)]
    if len(xs) != 2:
        return []
    x, y = xs
    if symbol == "+":
        return [_add(result, _negate(y)), _add(result, _negate(x))]
    if symbol == "-":
        return [_add(result, y), _add(x, _negate(result))]
    if prim is minimum:
        return [(result[0], None)] * 2
    if prim is maximum:
        return [(None, result[1])] * 2
    k = y[0] if y[0] is not None and y[0] == y[1] else 0
    if symbol == "*" and k > 0:
        return [(None if result[0] is None else -(-result[0] // k), None if result[1] is None else result[1] // k)]
    if symbol in ("//", ">>") and 0 < k < 64:
        k = k if symbol == "//" else 1 << k
        return [(None if result[0] is None else result[0] * k, None if result[1] is None else result[1] * k + k - 1)]
    return []


def _roots(result: Interval) -> Interval:
    if result[1] is None or result[1] < 0:
        return UNKNOWN
    return (-math.isqrt(result[1]), math.isqrt(result[1]))


def bound_compared(symbol: str, x: Interval, y: Interval) -> list[Interval]:
    """Return what is known of two integers of which a comparison holds."""
    return [_bound_left(symbol, x, y), _bound_left(_MIRRORED[symbol], y, x)]


def _bound_left(symbol: str, x: Interval, y: Interval) -> Interval:
    least, most = y
    if symbol == "==":
        return y
    if symbol == "!=":
        if least is None or least != most:
            return UNKNOWN
        return (least + 1 if x[0] == least else None, most - 1 if x[1] == most else None)
    if symbol in ("<", "<="):
        return (None, None if most is None else most - (symbol == "<"))
    return (None if least is None else least + (symbol == ">"), None)


def union_of(columns: Iterable[Iterable[Interval]]) -> list[Interval]:
    """Return the bounds of what comes from one of several sides, each of which gives some values."""
    return [functools.reduce(union, column) for column in zip(*columns, strict=True)]
