"""ShapeDtypeStruct: what is known of an array without its numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.typing import DTypeLike


class ShapeDtypeStruct:
    """The shape and dtype of an array: what `eval_shape` returns, and what a linear rule keeps of its operand.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype

    Examples
    --------
    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("shape", "dtype")

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return type(other) is ShapeDtypeStruct and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


def spec_of(x: Any) -> ShapeDtypeStruct:
    """Return the spec of an array, tracer or number."""
    if type(x) is np.ndarray or type(x) is np.float64:
        spec = ShapeDtypeStruct.__new__(ShapeDtypeStruct)  # nothing to convert, on the hot path of reverse mode
        spec.shape = x.shape
        spec.dtype = x.dtype
        return spec
    if hasattr(x, "dtype"):
        return ShapeDtypeStruct(x.shape, x.dtype)
    x = np.asarray(x)
    return ShapeDtypeStruct(x.shape, x.dtype)
