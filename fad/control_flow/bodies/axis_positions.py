"""The places of an axis, 0, 1, ..., n - 1: an array that a body has as a constant, at whatever depth it is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST = 256
_made: dict[tuple[int, int], np.ndarray] = {}


def places(size: int, step: int = 1) -> np.ndarray:
    """Return 0, 1, ..., size - 1 times a step: the same array as before, so that a body has it once."""
    found = _made.get((size, step))
    if found is None:
        if len(_made) >= _MOST:
            _made.clear()
        found = np.arange(size) * step
        found.flags.writeable = False
        found = _made.setdefault((size, step), found)
    return found


def is_places(x: Any) -> bool:
    """Return whether an array is one that :func:`places` gave: nobody can change it."""
    if type(x) is not np.ndarray or x.ndim != 1 or x.flags.writeable or x.dtype != np.int64 or not x.size:
        return False
    return _made.get((x.size, int(x[1]) if x.size > 1 else 1)) is x
