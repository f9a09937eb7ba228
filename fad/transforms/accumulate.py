"""Adding up the cotangents that one position of the tape receives, in place where the array is the sweep's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.cotangent import FEW, Indexed, Masked, densify, is_basic
from fad.core.tracer import Tracer


def accumulate(cts: list, own: bytearray, j: int, c: Any) -> None:
    """Add a cotangent to those that position `j` has received so far."""
    p = cts[j]
    if type(c) is Indexed:
        if c.is_plain():
            _accumulate_indexed(cts, own, j, c)
        elif p is None:
            cts[j] = c
        elif type(p) is Indexed:
            p.entries += c.entries
        else:
            cts[j] = c.added_to(p)
        return
    if p is None:
        cts[j] = c
        return
    if type(p) is Indexed:
        if type(c) is Tracer and len(p.entries) <= FEW and not p.is_plain():
            cts[j] = p.added_to(c)
            own[j] = 1
            return
        p = p.gathered()
    if type(p) is Masked and type(c) is Masked:
        cts[j] = p + c
        return
    p, c = densify(p), densify(c)
    if own[j] and type(p) is np.ndarray and type(c) is np.ndarray:
        p += c
        cts[j] = p
    else:
        cts[j] = p + c
        own[j] = 1


def _accumulate_indexed(cts: list, own: bytearray, j: int, c: Indexed) -> None:
    p = cts[j]
    if type(p) is Indexed:
        p = p.gathered()
    if type(p) is Masked and p.places is not None and own[j]:
        c.add_to(p.value)
        if any(is_basic(index) for index, _ in c.entries):
            cts[j] = p.value
        p.places += [index for index, _ in c.entries]
    elif type(p) is Tracer:
        cts[j] = p + c.dense()
    elif p is None or type(p) is Masked:
        c = c.gathered()
        cts[j] = c if p is None else p + c
        own[j] = 1
    else:
        if not own[j] or isinstance(p, np.generic):
            p = np.array(p) if isinstance(p, np.generic) else p.copy()
            own[j] = 1
        cts[j] = c.add_to(p)
