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
from fad.nn.parameters import document_initialisers
from fad.typing import Array, DTypeLike, Key, Shape

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


def next_key(key: Key | None = None) -> Key:
    """Return a key for a new layer: the one given (or made from a seed), the next of :func:`seed`, or a fresh one.

    >>> fad.nn.init.next_key(fad.random.key(0)) is not None
    True
    """
    if key is not None:
        return random.as_key(key)
    stream = _stream.get()
    if stream is None:
        return random.key(int.from_bytes(os.urandom(8), "little"))
    stream[1] += 1
    return random.fold_in(stream[0], stream[1])


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a weight of shape ``(out, in, *kernel)``.

    >>> fans((8, 3, 5, 5))
    (75, 200)
    """
    if len(shape) < 2:
        raise ValueError(f"fan in and fan out need a weight of at least two axes, not shape {shape}")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def uniform(key: Key, shape: Shape, low: float = 0.0, high: float = 1.0, dtype: DTypeLike | None = None) -> Array:
    """Return numbers uniform in [low, high).

    >>> fad.nn.init.uniform(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return random.uniform(key, shape, dtype, float(low), float(high))


def normal(key: Key, shape: Shape, mean: float = 0.0, std: float = 1.0, dtype: DTypeLike | None = None) -> Array:
    """Return normal numbers of a mean and a standard deviation.

    >>> fad.nn.init.normal(fad.random.key(0), (2, 3), std=0.02).shape
    (2, 3)
    """
    return mean + std * random.normal(key, shape, dtype)


def zeros(shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return zeros, in the default dtype of new parameters unless one is given.

    >>> fad.nn.init.zeros(2)
    array([0., 0.])
    """
    return backends.default().from_host(np.zeros(shape, dtype or config.default_dtype.get()))


def ones(shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return ones, in the default dtype of new parameters unless one is given.

    >>> fad.nn.init.ones(2)
    array([1., 1.])
    """
    return backends.default().from_host(np.ones(shape, dtype or config.default_dtype.get()))


def constant(value: float, shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return an array filled with a number.

    >>> fad.nn.init.constant(3.0, 2)
    array([3., 3.])
    """
    return value * ones(shape, dtype)


def trunc_normal(
    key: Key, shape: Shape, mean: float = 0.0, std: float = 1.0, low: float = -2.0, high: float = 2.0,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return normal numbers of a mean and a standard deviation, of which those outside [low, high] do not occur.

    >>> bool(abs(fad.nn.init.trunc_normal(fad.random.key(0), (100,))).max() <= 2.0)
    True
    """
    return mean + std * random.truncated_normal(key, (low - mean) / std, (high - mean) / std, shape, dtype)


def eye(shape: tuple[int, int], dtype: DTypeLike | None = None) -> Array:
    """Return a matrix with ones on the diagonal, with which a Linear layer starts as the identity.

    >>> fad.nn.init.eye((2, 3))
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    if len(shape) != 2:
        raise ValueError(f"eye makes a matrix, so its shape has two numbers, but it is {shape}")
    return backends.default().from_host(np.eye(*shape, dtype=dtype or config.default_dtype.get()))


def dirac(shape: tuple[int, ...], groups: int = 1, dtype: DTypeLike | None = None) -> Array:
    """Return a kernel ``(out, in / groups, *kernel)`` with which a convolution starts as the identity in each channel.

    >>> dirac((2, 2, 3))[1]
    array([[0., 0., 0.],
           [0., 1., 0.]])
    """
    kernel: Any
    out, width, *kernel = shape
    w = np.zeros(shape, dtype or config.default_dtype.get())
    each = out // groups
    for i in range(min(each, width)):
        w[(slice(i, None, each), i, *(k // 2 for k in kernel))] = 1.0
    return backends.default().from_host(w)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps the scale of numbers that pass through a nonlinearity, as PyTorch has it.

    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + (0.01 if param is None else param) ** 2))
    gains = {"relu": math.sqrt(2.0), "tanh": 5.0 / 3.0, "selu": 0.75, "sigmoid": 1.0, "linear": 1.0}
    gains |= {f"conv{transpose}{n}d": 1.0 for transpose in ("", "_transpose") for n in (1, 2, 3)}
    if nonlinearity not in gains:
        raise ValueError(f"no gain is known for {nonlinearity!r}, only for {sorted([*gains, 'leaky_relu'])}")
    return gains[nonlinearity]


def xavier_uniform(key: Key, shape: Shape, gain: float = 1.0, dtype: DTypeLike | None = None) -> Array:
    """Return numbers uniform in ±gain √(6 / (fan_in + fan_out)) (X. Glorot and Y. Bengio, 2010).

    >>> bool(abs(fad.nn.init.xavier_uniform(fad.random.key(0), (4, 2))).max() <= 1.0)
    True
    """
    bound = gain * math.sqrt(6.0 / sum(fans(shape)))
    return uniform(key, shape, -bound, bound, dtype)


def xavier_normal(key: Key, shape: Shape, gain: float = 1.0, dtype: DTypeLike | None = None) -> Array:
    """Return normal numbers of standard deviation gain √(2 / (fan_in + fan_out)) (X. Glorot and Y. Bengio, 2010).

    >>> fad.nn.init.xavier_normal(fad.random.key(0), (4, 2)).shape
    (4, 2)
    """
    return normal(key, shape, 0.0, gain * math.sqrt(2.0 / sum(fans(shape))), dtype)


def kaiming_uniform(
    key: Key, shape: Shape, gain: float = math.sqrt(2.0), mode: str = "fan_in", dtype: DTypeLike | None = None
) -> Array:
    """Return numbers uniform in ±gain √(3 / fan) (K. He et al., 2015); the default gain is for ReLU.

    >>> bool(np.abs(kaiming_uniform(random.key(0), (4, 6))).max() <= 1.0)
    True
    """
    bound = gain * math.sqrt(3.0 / _fan(shape, mode))
    return uniform(key, shape, -bound, bound, dtype)


def kaiming_normal(
    key: Key, shape: Shape, gain: float = math.sqrt(2.0), mode: str = "fan_in", dtype: DTypeLike | None = None
) -> Array:
    """Return normal numbers of standard deviation gain / √fan (K. He et al., 2015); the default gain is for ReLU.

    >>> fad.nn.init.kaiming_normal(fad.random.key(0), (4, 2)).shape
    (4, 2)
    """
    return normal(key, shape, 0.0, gain / math.sqrt(_fan(shape, mode)), dtype)


def _fan(shape: Any, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode must be 'fan_in' or 'fan_out', not {mode!r}")
    return fans(shape)[mode == "fan_out"]


def orthogonal(key: Key, shape: Shape, gain: float = 1.0, dtype: DTypeLike | None = None) -> Array:
    """Return gain times a random matrix with orthonormal rows or columns, whichever are fewer; later axes are columns.

    >>> w = orthogonal(random.key(0), (2, 3))
    >>> np.allclose(w @ w.T, np.eye(2))
    True
    """
    rows, columns = shape[0], math.prod(shape[1:])
    z = normal(key, (max(rows, columns), min(rows, columns)), dtype=dtype)
    q, r = np.linalg.qr(z)
    q = q * np.where(np.diag(r) < 0, -1.0, 1.0).astype(q.dtype)  # so that all orthogonal matrices are equally likely
    return gain * (q.T if rows < columns else q).reshape(shape)


_OWN = {name: thing for name, thing in globals().items() if getattr(thing, "__module__", "") == __name__}
document_initialisers(_OWN)
