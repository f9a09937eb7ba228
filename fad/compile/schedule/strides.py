"""How arrays lie along a loop's axes: strides, axes that run on evenly, how a kernel reads the innermost one."""

from __future__ import annotations

import numpy as np


def broadcast_strides(a: np.ndarray, shape: tuple) -> tuple:
    if a.shape == shape:
        return a.strides
    missing = len(shape) - a.ndim
    return (0,) * missing + tuple([0 if n == 1 else s for s, n in zip(a.strides, a.shape, strict=True)])


def collapse(shape: tuple, strides: tuple, kept: tuple) -> tuple:
    """Drop axes of length one and merge neighbours; return ``(extents, strides per array)``.

    With `kept` ``(start, stop)``, the axes from start to stop are summed: they merge among themselves only,
    stay one axis at least, and what follows them does, too.
    """
    start, stop = kept or (0, 0)
    axes: list[list] = []  # [extent, strides per array, side: before, within or behind the summed axes]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        mine = [s[d] for s in strides]
        side = (d >= start) + (d >= stop)
        if axes and axes[-1][2] == side and all(o == m * n for o, m in zip(axes[-1][1], mine, strict=True)):
            axes[-1][0] *= n
            axes[-1][1] = mine
        else:
            axes.append([n, mine, side])
    if kept and not any(side == 1 for *_, side in axes):
        before = sum(side == 0 for *_, side in axes)
        axes.insert(before, [1, [0] * len(strides), 1])
    if not axes or (kept and stop < len(shape) and axes[-1][2] != 2):
        axes.append([1, [0] * len(strides), 2])
    extents = tuple(a[0] for a in axes)
    return extents, tuple(tuple(a[1][k] for a in axes) for k in range(len(strides)))


def mode(itemsize: int, strides: tuple, extents: tuple) -> str:
    """Return how an operand is read along the innermost axis, as `Kernel` names it."""
    if extents[-1] == 1:
        return "c" if len(extents) == 1 or any(strides[:-1]) else "u"
    if not any(strides):
        return "u"
    if strides[-1] == 0:
        return "0"
    return "c" if strides[-1] == itemsize else "s"


def is_spread(itemsize: int, strides: tuple, extents: tuple) -> bool:
    """Return whether what a loop writes is not contiguous along the innermost axis."""
    return extents[-1] > 1 and strides[-1] != itemsize
