"""autograd.numpy.random: NumPy's own, on plain values."""

from __future__ import annotations

from typing import Any

import numpy as _np

from fad.core.tracing.values import stop_gradient as _stop


def __getattr__(name: str) -> Any:
    found = getattr(_np.random, name)
    if isinstance(found, type) or not callable(found):
        return found
    # The legacy functions cannot take traced parameters; their samples have no derivative in autograd either.
    return lambda *args, **kwargs: found(*_stop(args), **_stop(kwargs))
