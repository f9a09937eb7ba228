"""Adding up the cotangents that one position of the tape receives, in place where the array is the sweep's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import is_numpy_scalar
from fad.core.cotangent import Indexed, densify
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
            cts[j] = densify(p) + c.dense()
        return
    if p is None:
        cts[j] = c
        return
    p, c = densify(p), densify(c)
    if own[j] and type(p) is np.ndarray and type(c) is np.ndarray:
        p += c
    else:
        cts[j] = p + c
        own[j] = 1


def _accumulate_indexed(cts: list, own: bytearray, j: int, c: Indexed) -> None:
    p = densify(cts[j]) if cts[j] is not None else None
    if type(p) is Tracer:
        cts[j] = p + c.dense()
    elif p is None:
        cts[j] = c.dense()
        own[j] = 1
    else:
        if not own[j] or is_numpy_scalar(p):
            p = np.array(p) if is_numpy_scalar(p) else p.copy()
            own[j] = 1
        cts[j] = c.add_to(p)
