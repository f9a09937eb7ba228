"""Bounds of what operations compute, by interval arithmetic: pairs of the least and the greatest number.

They say what the values of a program cannot be: the argument of an exponential that never overflows is bounded. Source:
R. E. Moore, R. B. Kearfott, M. J. Cloud, *Introduction to Interval Analysis*, SIAM 2009, chapter 2.
"""

from __future__ import annotations

import math

Bounds = tuple[float, float]
ANYTHING: Bounds = (-math.inf, math.inf)
POSITIVE: Bounds = (0.0, math.inf)
WITHIN_ONE: Bounds = (-1.0, 1.0)


def negate(x: Bounds) -> Bounds:
    return -x[1], -x[0]


def add(x: Bounds, y: Bounds) -> Bounds:
    return x[0] + y[0], x[1] + y[1]


def subtract(x: Bounds, y: Bounds) -> Bounds:
    return x[0] - y[1], x[1] - y[0]


def multiply(x: Bounds, y: Bounds) -> Bounds:
    products = [a * b if a and b else 0.0 for a in x for b in y]  # nothing is infinite itself: zero times that is zero
    return min(products), max(products)


def divide(x: Bounds, y: Bounds) -> Bounds:
    """Return the bounds of quotients, of which the denominator must have one sign for there to be any."""
    if y[0] < 0.0 < y[1]:
        return ANYTHING
    below, above = (1.0 / y[1] if y[1] else -math.inf), (1.0 / y[0] if y[0] else math.inf)
    return multiply(x, (below, above))


def minimum(x: Bounds, y: Bounds) -> Bounds:
    return min(x[0], y[0]), min(x[1], y[1])


def maximum(x: Bounds, y: Bounds) -> Bounds:
    return max(x[0], y[0]), max(x[1], y[1])


def be_positive(_x: Bounds) -> Bounds:
    return POSITIVE


def be_within_one(_x: Bounds) -> Bounds:
    return WITHIN_ONE
