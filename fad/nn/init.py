"""Initial values of parameters, as pure functions of a random key; in PyTorch's names and distributions."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import backends, config, random

_stream: ContextVar[Any] = ContextVar("init_stream", default=None)


@contextlib.contextmanager
def seed(value: int) -> Iterator[None]:
    """Make all layers built in a ``with`` block, to which no key is given, a function of one seed.

    >>> from fad import nn
    >>> with seed(0):
    ...     model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    """
    token = _stream.set([random.key(value), 0])
    try:
        yield
    finally:
        _stream.reset(token)


def next_key(key: Any = None) -> Any:
    """Return a key for a new layer: the one given (or made from a seed), the next of :func:`seed`, or a fresh one."""
    if key is not None:
        return random.as_key(key)
    stream = _stream.get()
    if stream is None:
        return random.key(int.from_bytes(os.urandom(8), "little"))
    stream[1] += 1
    return random.fold_in(stream[0], stream[1])


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a weight of shape (out, in, *kernel).

    >>> fans((8, 3, 5, 5))
    (75, 200)
    """
    if len(shape) < 2:
        raise ValueError(f"fan in and fan out need a weight of at least two axes, not shape {shape}")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def uniform(key: Any, shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None) -> Any:
    """Return numbers uniform in [low, high)."""
    return random.uniform(key, shape, dtype, float(low), float(high))


def normal(key: Any, shape: Any, mean: float = 0.0, std: float = 1.0, dtype: Any = None) -> Any:
    """Return normal numbers of a mean and a standard deviation."""
    return mean + std * random.normal(key, shape, dtype)


def zeros(shape: Any, dtype: Any = None) -> Any:
    """Return zeros, in the default dtype of new parameters unless one is given."""
    return backends.default().from_host(np.zeros(shape, dtype or config.default_dtype.get()))


def ones(shape: Any, dtype: Any = None) -> Any:
    """Return ones, in the default dtype of new parameters unless one is given."""
    return backends.default().from_host(np.ones(shape, dtype or config.default_dtype.get()))
