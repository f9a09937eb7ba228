"""Complex numbers as pairs of real ones, and pairs as complex numbers: ``z.view(float)``, ``y.view(complex)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.handles.buffers import Taken
from fad.core.tracing.tracer import Tracer, bind
from fad.ops.ufuncs.complexes import imag_p, parts_p, real_p


def _as_pairs(x: Any) -> Any:
    return np.stack([bind(real_p, x), bind(imag_p, x)], -1).reshape(*x.shape[:-1], 2 * x.shape[-1])


def _as_complex(x: Any) -> Any:
    return bind(parts_p, x[..., ::2], x[..., 1::2])


def _real(dtype: np.dtype) -> np.dtype:
    return np.finfo(dtype).dtype


_PAIRS = Taken(_as_pairs, lambda x: x.view(_real(x.dtype)), lambda x, y: _as_complex(y))
_COMPLEX = Taken(_as_complex, lambda x: x.view(np.result_type(x, np.complex64)), lambda x, y: _as_pairs(y))


def view_parts(x: Tracer, dtype: Any) -> Tracer | None:
    """Return complex numbers as pairs of their parts, or pairs as complex numbers, a view; None for another dtype."""
    if not x.shape or x.dtype.kind not in "fc":
        return None
    dtype, kind = np.dtype(dtype), x.dtype.kind
    wanted = _real(x.dtype) if kind == "c" else np.result_type(x.dtype, np.complex64)
    if dtype != wanted or _real(dtype) != _real(x.dtype):
        return None
    if x.shape[-1] > 1 and x.strides[-1] != x.dtype.itemsize:
        raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
    if kind == "f" and x.shape[-1] % 2:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis "
            "of the array."
        )
    return _PAIRS(x) if kind == "c" else _COMPLEX(x)
