"""``fad.numpy.r_`` and ``c_``: NumPy's joining brackets, for traced values too."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.overlay import wrap_made
from fad.core.primitive import has_tracer
from fad.ops.arranging import atleast_1d
from fad.ops.structural import as_array, concatenate

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

    def __init__(self, name: str, numpys: Any, join: Any):
        self._name = name
        self._numpys = numpys
        self._join = join

    def __repr__(self) -> str:
        return f"<fad.numpy.{self._name}>"

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not has_tracer(parts):
            return wrap_made(self._numpys[key])
        if any(isinstance(part, str) for part in parts):
            raise TypeError("a directive such as '0,2' goes with plain arrays only: use concatenate or stack")
        parts = [np.r_[p] if isinstance(p, slice) else p if isinstance(p, _NUMBERS) else as_array(p) for p in parts]
        dtype = np.result_type(*parts)  # in which Python's numbers widen nothing
        return self._join([atleast_1d(as_array(p)).astype(dtype) for p in parts])


def _join_columns(arrays: list) -> Any:
    """Join along the last axis; vectors are columns."""
    return concatenate([x if x.ndim > 1 else x.reshape((x.size, 1)) for x in arrays], -1)


r_ = _Joiner("r_", np.r_, concatenate)
c_ = _Joiner("c_", np.c_, _join_columns)
