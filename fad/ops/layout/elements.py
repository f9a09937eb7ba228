"""Elements that were taken of one array, one after another, and that become an array again: the array knows them.

A captured loop hands the rows of its results to a list. ``np.array(ys)`` of thousands of these need not be an
operation for each.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import snapshot, version_of

_FEW = 16  # elements that may as well be joined one by one


def note_element(x: Any, whole: Any, place: tuple[int, ...]) -> None:
    """Note that a value is what stands at a place of an array that nobody writes into."""
    if type(x) is Tracer:
        x.element_of = whole, place, version_of(x)


def join_elements(xs: list) -> list | None:
    """Return arrays of values, one after another, where many were taken of one array; None if there are no such runs.

    A value that is none of a run is left as it is.
    """
    if len(xs) < _FEW:
        return None
    found: list = []
    for whole, run in itertools.groupby(xs, _find_whole):
        some = list(run)
        found += [_take_together(some)] if whole and len(some) >= _FEW else some
    return found if len(found) < len(xs) else None


def begins_apart(xs: Any, n: int) -> bool:
    """Return whether a list begins with n values that are none of a run, so that its arrays are not fewer."""
    return len(xs) < _FEW or not any(map(_find_whole, xs[:n]))


def _find_whole(x: Any) -> int:
    """Return the identity of the array that a value was taken of; 0 if of none, or if it has been written since."""
    if type(x) is not Tracer or not hasattr(x, "element_of") or version_of(x) != x.element_of[2]:
        return 0
    return id(x.element_of[0])


def _take_together(xs: list) -> Any:
    """Return an array of elements of another."""
    whole, place, _ = xs[0].element_of
    axes = len(place)
    rows = whole.reshape((-1, *whole.shape[axes:]))
    places = np.ravel_multi_index(np.transpose([x.element_of[1] for x in xs]), whole.shape[:axes])
    first = places[0].item()
    if np.array_equal(places, np.arange(first, first + len(xs))):
        return snapshot(rows[first : first + len(xs)])
    return rows[places]
