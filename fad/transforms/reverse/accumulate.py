"""Adding up the cotangents that one position of the tape receives, in place where the array is the sweep's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.backends import is_numpy_scalar
from fad.core.primitives.cotangent import FEW, Indexed, Masked, densify, mark_live
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import traces_of


def accumulate(cts: Any, own: Any, j: int, c: Any) -> None:
    """Add a cotangent to those that position `j` has received so far."""
    p = cts[j]
    if p is None and type(c) is not Indexed:
        cts[j] = c
        return
    if type(c) is np.float64 and type(p) is np.float64:
        cts[j] = p + c
        return
    if type(c) is Indexed:
        if c.is_plain():
            _accumulate_indexed(cts, own, j, c)
        elif p is None:
            cts[j] = c
        elif type(p) is Indexed:
            p.append(c)
            if p.size > math.prod(p.shape) and not _is_compiled(c):
                cts[j] = p.gather()  # no more is kept than the array has elements
        elif _is_compiled(c):
            cts[j] = c.added_to(p)
        else:  # each sum would make an array of the whole size
            c.beside = p
            cts[j] = c
        return
    if type(p) is Indexed:
        if p.beside is not None and type(c) is Tracer:
            p.beside = densify(p.beside) + c
            return
        if type(c) is Tracer and len(p.entries) <= FEW and not p.is_plain():
            cts[j] = p.added_to(c)
            own[j] = 1
            return
        p = p.gather()
    if type(p) is Masked and type(c) is Masked:
        cts[j] = p + c
        return
    p, c = densify(p), densify(c)
    if not own[j]:
        cts[j] = p + c
        own[j] = 1
    elif type(p) is np.ndarray and type(c) is np.ndarray:
        p += c
        cts[j] = p
    else:
        cts[j] = p.owner.add_into(p, c) if type(p) is Tracer else p + c


def accumulate_new(cts: list, own: bytearray, j: int, c: Any) -> None:
    """Add a cotangent that a rule has just computed, in an array that nobody else knows."""
    if cts[j] is None and type(c) is not Indexed:
        cts[j] = c
        own[j] = type(c) is Tracer or (type(c) is np.ndarray and c.flags.writeable)
    else:
        accumulate(cts, own, j, c)


def own_masked(cts: Any, own: Any, j: int, p: Masked) -> Masked:
    """Return a masked cotangent of plain arrays, for position `j`, whose values and mask are both the sweep's own."""
    if own[j] < 2 or not p.value.flags.c_contiguous or not p.live.flags.c_contiguous:
        live = np.array(np.broadcast_to(p.live, p.value.shape), order="C")
        p = Masked(np.array(p.dense(), order="C"), live, clean=True)
        cts[j], own[j] = p, 2
    return p


def _is_compiled(c: Indexed) -> bool:
    """Return whether the sum becomes part of a program, which adds entries in place."""
    traced = [x for index, values in c.entries for x in (values, *(index if type(index) is tuple else (index,)))]
    return any(trace.compiled for x in traced for trace in traces_of(x))


def _accumulate_indexed(cts: list, own: bytearray, j: int, c: Indexed) -> None:
    p = cts[j]
    if type(p) is Indexed:
        p = p.gather()
    if type(p) is Masked and p.places is not None and p.places.function is not None and own[j]:
        c.add_to(p.value)
        if c.is_masked():
            p.places.indices += c.indices()
            p.places.below += c.marks()
        else:
            cts[j] = p.value
    elif type(p) is Masked and type(p.value) is np.ndarray and type(p.live) is np.ndarray:
        p = own_masked(cts, own, j, p)
        c.add_to(p.value)
        for (index, _), live in zip(c.entries, c.lives, strict=True):
            mark_live(p.live, index, live)
    elif type(p) is Tracer:
        cts[j] = p + c.dense()
    elif p is None or type(p) is Masked:
        cts[j] = c.gather() if p is None else p + Masked(c.dense(), c.mask(), clean=True)
        own[j] = 1
    else:
        if not own[j] or is_numpy_scalar(p):
            p = np.array(p) if is_numpy_scalar(p) else p.copy()
            own[j] = 1
        cts[j] = c.add_to(p)
