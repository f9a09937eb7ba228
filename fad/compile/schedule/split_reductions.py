"""Sums over axes along which a loop cannot run as one: over the last of them first, and over the others after."""

from __future__ import annotations

import numpy as np

from fad.compile.schedule.buffers import Memory
from fad.core.programs.graph import Type


def in_stages(memory: Memory, outs: list, extents: tuple, strides: tuple, summed: list) -> tuple[list, tuple, list]:
    """Return what a loop adds up into, with the strides of all its arrays, and the sums that are left to do after.

    Each of those is what is read, what is computed, the extents, the strides of both and the axis that is summed.
    The extents that are summed, by number, are neighbours.
    """
    if len(summed) == 1:
        return outs, strides, []
    last, shape = summed[-1], (*extents[: summed[-1]], *extents[summed[-1] + 1 :])
    targets, steps, rest = [], list(strides[: -len(outs)]), []
    for o, moves in zip(outs, strides[-len(outs) :], strict=True):
        part = len(memory.graph.types)
        memory.graph.types.append(Type(shape, memory.graph.types[o].dtype))
        memory.base[part], memory.at[part] = part, np.empty(shape, memory.at[o].dtype)
        targets.append(part)
        own = memory.at[part].strides
        steps.append((*own[:last], 0, *own[last:]))
        lengths = (*shape[: summed[0]], int(np.prod(shape[summed[0] : last])), *shape[last:])
        both = [(*s[: summed[0]], s[last - 1], *s[last:]) for s in (own, (*moves[:last], *moves[last + 1 :]))]
        rest.append((part, o, lengths, tuple(both), summed[0]))
    return targets, tuple(steps), rest
