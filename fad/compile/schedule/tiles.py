"""Loops across memory in tiles: where an array is read or written along its columns, as in a transpose.

Each element along such a row is in a cache line of its own, whose other elements are wanted by the rows that follow. So
a few columns of all rows are done, and then the next few: their lines stay in the cache, also where columns lie a page
apart and fight for the same places in it.
"""

from __future__ import annotations

import functools
import math

_SMALLEST = 1 << 13  # elements of a loop; smaller ones stay in the nearest cache
_LINE = 64  # bytes of a cache line
_COLUMNS = 16  # of a tile
_SHORT, _STRETCH = 16, 1 << 12  # a row that is short, and the elements of those that are done at a time


@functools.lru_cache(maxsize=1024)
def find_tiles(extents: tuple, strides: tuple, most_axes: int) -> list[tuple[tuple, tuple, tuple]]:
    """Return the parts that a loop is done in: extents, strides and where each array begins, in bytes.

    There is one part, the loop as it was, where no array is read or written across.
    """
    whole = [(extents, strides, (0,) * len(strides))]
    d = _find_near(extents, strides)
    if d is None:
        return whole
    last = len(extents) - 1
    # Short rows are done column by column: then the rows are the long way, and a stretch of them is a tile.
    across, along, size = (d, last, _STRETCH // extents[last]) if extents[last] < _SHORT else (last, d, _COLUMNS)
    order = [*[k for k in range(last + 1) if k not in (across, along)], along, across]
    extents, strides = _in_order(extents, order), tuple([_in_order(s, order) for s in strides])
    if extents[-1] <= size:
        return [(extents, strides, whole[0][2])]
    if len(extents) + 1 > most_axes:
        return whole
    return _cut(extents, strides, size)


def _find_near(extents: tuple, strides: tuple) -> int | None:
    """Return the axis along which those arrays have their neighbours that are read or written across."""
    if len(extents) < 2 or math.prod(extents) < _SMALLEST or extents[-1] == 1:
        return None
    across = [s for s in strides if abs(s[-1]) >= _LINE or (s[-1] and extents[-1] < _SHORT)]
    found = {d: sum(0 < abs(s[d]) < min(_LINE, abs(s[-1])) for s in across) for d in range(len(extents) - 1)}
    best = max(found, key=found.__getitem__)
    return best if found[best] and extents[best] >= 8 else None


def _in_order(values: tuple, order: list[int]) -> tuple:
    return tuple([values[k] for k in order])


def _cut(extents: tuple, strides: tuple, size: int) -> list[tuple[tuple, tuple, tuple]]:
    """Cut the last axis into tiles, and a part for what is left."""
    *outer, n = extents
    parts = []
    for start, length in ((0, n - n % size), (n - n % size, n % size)):
        if length:
            tile = min(size, length)
            moves = tuple([(s[-1] * tile, *s) for s in strides])
            parts.append(((length // tile, *outer, tile), moves, tuple([start * s[-1] for s in strides])))
    return parts
