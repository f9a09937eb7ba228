"""Slices of traced arrays whose bounds a loop's body computes: ``x[i:i + 3]``, ``A[i, :j]``, read and written.

A slice of loop-invariant length is an array of static shape, taken by indices. Of any other the length is
traced: it is a `PaddedArray`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.control_flow.bodies.axis_positions import places
from fad.control_flow.lengths import padded_functions as _functions  # noqa: F401  fills the table of functions
from fad.control_flow.lengths import traced_masks
from fad.control_flow.lengths.padded import PaddedArray, bring_parts, fresh, reverse
from fad.control_flow.lengths.slice_bounds import Axis, at_least, bounds, by_axis, fixed_integer, is_index, refuse
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import version_of
from fad.ops.layout.index_layout import ARRAY, index_layout
from fad.ops.places.indexing import getitem_p, index_set_p, split_index
from fad.ops.places.traced_index import SLICERS, TracedIndex
from fad.ops.places.writing import write as write_at

_WHOLE = slice(None)


class _Window:
    """A slice of fixed length that starts anywhere."""

    __slots__ = ("start", "length", "step")

    def __init__(self, start: Any, length: int, step: int):
        self.start = start
        self.length = length
        self.step = step

    def indices(self) -> Any:
        return self.start + places(self.length, self.step)


def read(x: Tracer, index: Any) -> Any:
    """Return ``x[index]``, where a bound of a slice in the index is an integer of a loop's body."""
    if any(type(part) is PaddedArray for part in (index if type(index) is tuple else (index,))):
        return _elements(x, index)
    parts = by_axis(index, x.ndim)
    sizes = iter(x.shape)
    axes: list[Any] = []  # of the result, with `_Window` for those that are taken by indices
    sub: list = []  # the index with the slices of traced length as they are in memory
    backward = []
    for part in parts:
        if part is None:
            axes.append(1)
            sub.append(part)
            continue
        size = next(sizes)
        if type(part) is slice:
            start, length, step = bounds(part, size)
            n = fixed_integer(length)
            if n is not None and type(start) is not Tracer:
                stop = start + n * step
                part = slice(start, stop if stop >= 0 else None, step)
                axes.append(n)
            elif n is not None:
                part = _Window(start, n, step)
                axes.append(n)
            else:
                if step not in (1, -1):
                    refuse((start, length), "it takes every other element of a slice of a length known in the loop")
                if step < 0:
                    backward.append(len(axes))
                    start = at_least(start - length + 1, 0)
                part = _WHOLE
                axes.append(Axis(size, start, length))
        elif not is_index(part):
            bound = [b for p in parts if type(p) is slice for b in (p.start, p.stop)]
            refuse(bound, "an array or a mask stands beside a slice whose bounds depend on the counter of the loop")
        sub.append(part)
    if not any(type(axis) is Axis for axis in axes):
        return _windows(x, sub, index)
    y = _pad_slice(x, tuple(sub), tuple(axes))
    for k in backward:
        y = reverse(y, k)
    y.parent, y.index = x, index
    return y


def _pad_slice(x: Tracer, sub: tuple, axes: tuple) -> PaddedArray:
    if any(type(part) is _Window for part in sub):
        return PaddedArray(
            axes, x.dtype, lambda: _windows(x, list(sub), None),
            lambda v: write_at(_windows(x, list(sub), None), Ellipsis, v),
        )  # fmt: skip
    if all(part == _WHOLE for part in sub if type(part) is slice) and all(type(part) is slice for part in sub):
        return PaddedArray(axes, x.dtype, lambda: x, lambda v: write_at(x, Ellipsis, v))
    return PaddedArray(axes, x.dtype, lambda: x[sub], lambda v: write_at(x, sub, v))


def _elements(x: Tracer, index: Any) -> PaddedArray:
    """Return elements at places that stand in a slice of traced length: ``x[columns[a:b]]``."""
    parts = by_axis(index, x.ndim)
    k, at = next((k, part) for k, part in enumerate(parts) if type(part) is PaddedArray)
    whole = all(type(part) is slice and part == _WHOLE for j, part in enumerate(parts) if j != k)
    if not whole or at.ndim != 1 or at.dtype.kind not in "iu" or not x.shape[k]:
        at.refuse("it looks up places")
    wide = PaddedArray(at.axes, np.dtype(np.intp), lambda: at.read().astype(np.intp), None)
    found = x[(*(_WHOLE,) * k, bring_parts(wide, wide.axes, (0,)))]  # beside the part any place will do
    y = fresh(found, (*found.shape[:k], at.axes[0], *found.shape[k + 1 :]))
    y.clean = False
    return y


def _windows(x: Any, sub: list, index: Any) -> Any:
    """Return the view of an array by an index in which windows stand."""
    count = sum(type(part) is _Window for part in sub)
    parts, seen = [], 0
    for part in sub:
        if type(part) is _Window:
            part = part.indices().reshape((-1,) + (1,) * (count - 1 - seen))
            seen += 1
        parts.append(part)
    template, arrays = split_index(tuple(parts))
    if not index_layout(template, arrays, x.ndim)[2]:
        return _take(x, index, template, arrays)
    # NumPy would put the axes of the windows in front: integers first, then one window after the other
    y = x[tuple([_WHOLE if type(part) is _Window else part for part in sub])]
    k = 0
    for part in sub:
        if type(part) is _Window:
            y = _take(y, None, (*(_WHOLE,) * k, ARRAY), [part.indices()])
        k += part is None or type(part) in (slice, _Window)
    return y


def _take(x: Any, index: Any, template: tuple, arrays: list) -> Any:
    taken = TracedIndex(index, template, arrays, getitem_p, index_set_p)
    y = taken(x)
    y.memory = x, taken, {}, version_of(x)
    return y


def write(x: Tracer, index: Any, v: Any) -> None:
    """Write values at an index with a slice whose bounds are integers of a loop's body."""
    if type(v) is PaddedArray and v.parent is x and v.index is index:
        return  # what x[:k] += 1 does at its end
    for part in index if type(index) is tuple else (index,):
        if type(part) is PaddedArray:
            part.refuse("it writes at places")
    y = read(x, index)
    if type(y) is PaddedArray:
        y.put(v)
    else:
        write_at(y, Ellipsis, v)


class _Brackets:
    """What answers slices with bounds of a loop's body, and its masks."""

    @staticmethod
    def read(x: Any, index: Any) -> Any:
        return traced_masks.read(x, index) if type(index) is Tracer else read(x, index)

    @staticmethod
    def write(x: Any, index: Any, v: Any) -> None:
        return traced_masks.write(x, index, v) if type(index) is Tracer else write(x, index, v)


SLICERS.append(_Brackets())
