"""Places that are known and follow one another are slices: those at which `np.pad` and `np.resize` look up, say.

What is looked up is a join of the slices then, and what is added at such places is added slice by slice. Both are loops
over neighbours, which are fused with others, and ask for each element neither where it is nor whether it is there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.passes.constants import is_fixed
from fad.core.programs.graph import Equation, Graph
from fad.ops.layout.index_layout import ARRAY
from fad.ops.places.indexing import getitem_p, scatter_p

_SMALLEST = 1 << 12  # elements that are looked up
_SHORTEST = 1 << 9  # elements that a run looks up, on average
_MOST = 8  # runs


class _Run(NamedTuple):
    """Places that are equally far apart: the lowest one, how many they are and the step from one to the next."""

    start: int  # among the places
    length: int
    lowest: int
    step: int

    @property
    def places(self) -> slice:
        """The places in rising order."""
        apart = max(1, abs(self.step))
        last = self.lowest + apart * (self.length - 1) if self.step else self.lowest
        return slice(self.lowest, last + 1, apart)


def place_runs(graph: Graph) -> Graph:
    """Put slices where an index array is a constant that consists of a few runs."""
    work = Builder(graph)
    for eq in graph.equations:
        if not _rewrite(work, eq):
            work.equations.append(eq)
    return work.finish() if len(work.types) > len(graph.types) else graph


def _rewrite(work: Builder, eq: Equation) -> bool:
    """Write a lookup or scatter at known places by slices; say whether it could be."""
    places, template = _find_index(work, eq)
    if type(places) is not np.ndarray or not is_fixed(places):
        return False
    if any(type(p) is not str and p != slice(None) for p in template):
        return False
    axis, looked_up = template.index(ARRAY), eq.prim is getitem_p
    runs = _find_runs(places, work.types[eq.ins[0] if looked_up else eq.outs[0]].shape[axis])
    if runs is None or _SHORTEST * len(runs) > work.types[eq.outs[0] if looked_up else eq.ins[0]].size:
        return False
    work.place = eq.place
    (_look_up if looked_up else _add)(work, eq, axis, runs)
    return True


def _find_index(work: Builder, eq: Equation) -> tuple[Any, tuple]:
    """Return the only index array of a lookup or scatter, if it is known, and the index as a template."""
    if eq.prim is getitem_p and len(eq.ins) == 2 and work.types[eq.outs[0]].size >= _SMALLEST:
        return work.constants.get(eq.ins[1]), eq.params["template"]
    if eq.prim is scatter_p and len(eq.ins) == 1 and work.types[eq.ins[0]].size >= _SMALLEST:
        (index,) = eq.params["indices"]
        index = index if type(index) is tuple else (index,)
        arrays = [p for p in index if type(p) is np.ndarray]
        template = tuple([ARRAY if type(p) is np.ndarray else p for p in index])
        return arrays[0] if len(arrays) == 1 else None, template
    return None, ()


def _find_runs(places: np.ndarray, n: int) -> list[_Run] | None:
    """Return the runs that an array of places along an axis of n consists of; None if they are many."""
    if places.ndim != 1 or places.dtype.kind not in "iu" or places.size < 2:
        return None
    places = np.where(places < 0, places + n, places)
    if places.min() < 0 or places.max() >= n:
        return None  # an error, which NumPy raises
    steps = np.diff(places)
    ends = np.append(np.flatnonzero(steps[1:] != steps[:-1]) + 1, steps.size)  # the last places of runs, or more
    if len(ends) > 2 * _MOST:
        return None
    runs, start = [], 0
    for end in ends.tolist():
        if end <= start:
            continue  # only the step to a run's first place is another one
        first, last, count = int(places[start]), int(places[end]), end - start + 1
        step = (last - first) // (count - 1) if count > 1 else 1
        runs.append(_Run(start, count, min(first, last), step))
        start = end + 1
    if start < places.size:
        runs.append(_Run(start, 1, int(places[start]), 1))
    return runs if len(runs) <= _MOST else None


def _look_up(work: Builder, eq: Equation, axis: int, runs: list[_Run]) -> None:
    parts, head = [], (slice(None),) * axis
    for run in runs:
        part = work.getitem(eq.ins[0], (*head, run.places))
        if run.step == 0 and run.length > 1:
            shape = work.types[part].shape
            part = work.broadcast_to(part, (*shape[:axis], run.length, *shape[axis + 1 :]))
        parts.append(_turn(work, part, axis, run))
    if len(parts) > 1:
        work.replace(eq, work.concatenate(parts, axis))
    else:
        work.replace(eq, work.copy(parts[0]))


def _add(work: Builder, eq: Equation, axis: int, runs: list[_Run]) -> None:
    pieces, head, shape = [], (slice(None),) * axis, work.types[eq.outs[0]].shape
    for run in runs:
        piece = work.take_along(eq.ins[0], axis, run.start, run.start + run.length)
        if run.step == 0 and run.length > 1:
            piece = work.sum(piece, (axis,), keepdims=True)
        pieces.append(_turn(work, piece, axis, run))
    work.replace(eq, work.scatter(pieces, [(*head, run.places) for run in runs], shape))


def _turn(work: Builder, x: int, axis: int, run: _Run) -> int:
    """Reverse what belongs to a run that falls."""
    return work.getitem(x, (*(slice(None),) * axis, slice(None, None, -1))) if run.step < 0 else x
