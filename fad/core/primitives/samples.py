"""Sample calls: what an operation's module gives the contract to try it with."""

from __future__ import annotations

from typing import Any

import numpy as np


class Call:
    """One legal call of an operation: ``call(x, axis=0)``. Floating-point arguments are the ones differentiated.

    >>> Call((np.ones((3, 4)),), {"axis": 0})
    (float64[3, 4], axis=0)
    """

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple, kwargs: dict):
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        def show(x):
            return f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x)

        parts = [show(a) if not isinstance(a, (list, tuple)) else str([show(b) for b in a]) for a in self.args]
        return f"({', '.join(parts + [f'{k}={v!r}' for k, v in self.kwargs.items()])})"


def call(*args: Any, **kwargs: Any) -> Call:
    """Write down one legal call.

    >>> call(np.ones(3), 2, axis=0)
    (float64[3], 2, axis=0)
    """
    return Call(args, kwargs)


class Sampler:
    """A source of operands, deterministic for each operation.

    >>> Sampler(seed=0, dtype="float32").positive(2, 3).dtype
    dtype('float32')
    """

    def __init__(self, seed: int, dtype: Any = np.float64):
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)

    def real(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Any:
        """Return numbers in an interval, well apart from each other and from 0: no sample sits on a tie or a kink."""
        n = int(np.prod(shape))
        values = self._apart(n, low, high).reshape(shape)
        if self.dtype.kind == "c":
            values = values + 1j * self._apart(n, low, high).reshape(shape)
        return values.astype(self.dtype)

    def _apart(self, n: int, low: float, high: float) -> Any:
        spacing = (high - low) / (n + 1)
        values = low + spacing * (np.arange(1, n + 1) + self.rng.uniform(-0.3, 0.3, n))
        values = np.where(np.abs(values) < 0.05 * spacing, np.copysign(0.05 * spacing, values), values)
        return self.rng.permutation(values)

    def positive(self, *shape: int) -> Any:
        return self.real(*shape, low=0.3, high=3.0)

    def ints(self, low: int, high: int, shape: tuple = ()) -> Any:
        return self.rng.integers(low, high, shape)

    def bools(self, *shape: int) -> Any:
        return self.rng.integers(0, 2, shape).astype(bool)
