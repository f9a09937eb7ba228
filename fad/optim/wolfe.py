"""A search along a line for a point that fulfils the strong Wolfe conditions.

The method is that of J. Nocedal and S. Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6, with cubic
interpolation. Its constants and safeguards are those of PyTorch's L-BFGS, whose steps it therefore takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

_FALL = 1e-4  # the loss must fall by this part of what the slope promises
_FLATTENING = 0.9  # and the slope must come down to this part of the first one


class Point(NamedTuple):
    """A point on the line: how far along it lies, the loss, its slope along the line, and its gradient."""

    length: float
    value: float
    slope: float
    gradient: Any


def strong_wolfe(
    at: Callable[[float], Point], start: Point, length: float, *, size: float, tolerance: float, most: int
) -> Point:
    """Return a point at which the loss is low enough and flat enough, or the best of those that were tried.

    Parameters
    ----------
    at : callable
        Evaluates the loss at a length along the direction.
    start : Point
        Where the search begins, at length 0, with a negative slope.
    length : float
        What is tried first.
    size : float, keyword only
        The largest element of the direction; an interval shorter than `tolerance` in the parameters is not divided.
    tolerance : float, keyword only
    most : int, keyword only
        How many points are tried at most after the first.
    """
    ends, tried, found = _bracket(at, start, at(length), most)
    if not found and tried < most:
        ends = _divide(at, start, ends, most - tried, size, tolerance)
    return ends[_lower(ends)]


def _bracket(at: Callable, start: Point, new: Point, most: int) -> tuple[list[Point], int, bool]:
    """Go out until two points have a good one between them; return them, how many were tried, and whether one is it."""
    before = start
    for tried in range(most):
        if not _falls(start, new) or (tried > 1 and not new.value < before.value):
            return [before, new], tried, False
        if abs(new.slope) <= -_FLATTENING * start.slope:
            return [new], tried, True
        if new.slope >= 0:
            return [before, new], tried, False
        least = new.length + 0.01 * (new.length - before.length)
        before, new = new, at(_interpolate(before, new, least, 10 * new.length))
    return [start, new], most, False


def _divide(at: Callable, start: Point, ends: list[Point], most: int, size: float, tolerance: float) -> list[Point]:
    """Divide an interval until one of its ends is good, it is too short, or `most` points were tried."""
    low = _lower(ends)
    stuck = False
    for _ in range(most):
        first, last = sorted(p.length for p in ends)
        if (last - first) * size <= tolerance:
            break
        length, stuck = _safe(_interpolate(ends[0], ends[1], first, last), first, last, stuck)
        new = at(length)
        high = 1 - low
        if not _falls(start, new) or not new.value < ends[low].value:
            ends[high] = new
            low = _lower(ends)
            continue
        good = abs(new.slope) <= -_FLATTENING * start.slope
        if not good and new.slope * (ends[high].length - ends[low].length) >= 0:
            ends[high] = ends[low]
        ends[low] = new
        if good:
            break
    return ends


def _safe(length: float, first: float, last: float, stuck: bool) -> tuple[float, bool]:
    """Keep a length away from the ends of its interval the second time that it comes near one."""
    margin = 0.1 * (last - first)
    if not min(last - length, length - first) < margin:
        return length, False
    if not stuck and first < length < last:
        return length, True
    return (last - margin if abs(length - last) < abs(length - first) else first + margin), False


def _falls(start: Point, new: Point) -> bool:
    return new.value <= start.value + _FALL * new.length * start.slope  # not so where the loss is NaN


def _lower(ends: list[Point]) -> int:
    """Return the number of the end with the lower loss; one that is NaN is not lower."""
    return len(ends) - 1 if ends[-1].value < ends[0].value else 0


def _interpolate(a: Point, b: Point, first: float, last: float) -> float:
    """Return where the cubic through two points has its minimum, within bounds; their middle if it has none."""
    if a.length > b.length:
        a, b = b, a
    d = a.slope + b.slope - 3 * (a.value - b.value) / (a.length - b.length)
    square = d * d - a.slope * b.slope
    if not (square >= 0 and math.isfinite(square)):
        return (first + last) / 2.0
    root = math.sqrt(square)
    below = b.slope - a.slope + 2 * root
    if not below:
        return (first + last) / 2.0
    return min(max(b.length - (b.length - a.length) * ((b.slope + root - d) / below), first), last)
