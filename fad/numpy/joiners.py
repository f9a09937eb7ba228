"""``fad.numpy.r_`` and ``c_``: NumPy's joining brackets, for traced values too."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.handles.makers import wrap_made
from fad.core.primitives.primitive import has_tracer
from fad.ops.arrangement.arranging import atleast_1d
from fad.ops.arrangement.structural import as_array, concatenate

_NUMBERS = (bool, int, float, complex)


class _Joiner:
    """Brackets that join what stands in them, as ``np.r_`` and ``np.c_`` do; plain parts are left to NumPy's own.

    >>> fad.numpy.r_[0.0:2.0, np.ones(2)]
    array([0., 1., 1., 1.])
    >>> fad.grad(lambda x: fad.numpy.c_[x, x * x].sum())(np.array([1.0, 2.0]))
    array([3., 5.])

    Raises
    ------
    ValueError
        The arrays have other lengths along an axis that they are not joined along, or a text says no way of joining.
    """

    def __init__(self, name: str, numpys: Any, axis: int = 0, rank: int = 1, place: int = -1):
        self._name = name
        self._numpys = numpys
        self._directive = axis, rank, place

    def __repr__(self) -> str:
        return f"<fad.numpy.{self._name}>"

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not has_tracer(parts):
            return wrap_made(self._numpys[key])
        axis, rank, place = self._directive
        if isinstance(parts[0], str):
            axis, rank, place = _read_directive(parts[0], rank, place)
            parts = parts[1:]
        if any(isinstance(part, str) for part in parts):
            raise ValueError("special directives must be the first entry.")
        parts = [np.r_[p] if isinstance(p, slice) else p if isinstance(p, _NUMBERS) else as_array(p) for p in parts]
        dtype = np.result_type(*parts)  # in which Python's numbers widen nothing
        return concatenate([_lengthen(atleast_1d(as_array(p)), rank, place).astype(dtype) for p in parts], axis)


def _read_directive(text: str, rank: int, place: int) -> tuple[int, int, int]:
    """Return what a text says: along which axis to join, the least rank, and where among its axes an array's own go."""
    if text in ("r", "c"):
        raise TypeError(f"np.r_[{text!r}, ...] makes a np.matrix, which carries no derivative: leave the letter out")
    try:
        numbers = [int(part) for part in text.split(",")[:3]]
    except ValueError:
        raise ValueError(f"unknown special directive {text!r}") from None
    return tuple(numbers + [rank, place][len(numbers) - 1 :])  # type: ignore[return-value]


def _lengthen(x: Any, rank: int, place: int) -> Any:
    """Return an array of at least some rank; its own axes come behind `place` new ones, or before them, from -1 on."""
    new = max(rank - x.ndim, 0)
    before = place if place >= 0 else place + new + 1
    if new and not 0 <= before <= new:
        raise ValueError(f"an array of rank {x.ndim} has {new} new axes, and cannot begin behind {place} of them")
    return x.reshape((1,) * before + x.shape + (1,) * (new - before)) if new else x


r_ = _Joiner("r_", np.r_)
c_ = _Joiner("c_", np.c_, -1, 2, 0)
