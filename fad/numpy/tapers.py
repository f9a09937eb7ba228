"""``np.hanning(n)`` and its like with traced arguments, which NumPy does not dispatch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer, outcome
from fad.errors import TracerConversionError


def _of_length(make: Callable) -> Callable:
    """Return a function that makes a window of a length, which may be a traced whole number."""

    @functools.wraps(make)
    def window(M: Any) -> Any:
        return make(_take_length(M, make))

    return window


def _take_length(n: Any, make: Callable) -> Any:
    if type(n) is not Tracer:
        return n
    if n.dtype.kind not in "iu":
        name = make.__name__
        raise TracerConversionError(f"np.{name} takes a number of points. Write np.{name}(int(n)) for np.{name}(n)")
    return outcome(n)[()]


@functools.wraps(np.kaiser)
def kaiser(M: Any, beta: Any) -> Any:
    n = _take_length(M, np.kaiser)
    if type(beta) is not Tracer:
        return np.kaiser(n, beta)
    if n == 1:
        return np.ones(1)
    alpha = (n - 1) / 2.0
    ramp = np.sqrt(1 - ((np.arange(0, n) - alpha) / alpha) ** 2.0)
    beta = beta * 1.0  # NumPy makes doubles of both
    return np.i0(beta.astype(np.float64) * ramp) / np.i0(beta.astype(np.float64))


TAPERS = {f.__name__: _of_length(f) for f in (np.hanning, np.hamming, np.bartlett, np.blackman)} | {"kaiser": kaiser}
