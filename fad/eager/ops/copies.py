"""Copies of tensors, and their dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer
from fad.eager.core.records import name_user_line
from fad.eager.ops.operators import convert, run
from fad.eager.tensor import Tensor
from fad.eager.unsupported import MissingDtype
from fad.ops.ufuncs import elementwise as e


def clone(input: Tensor) -> Tensor:
    """Return a copy, through which gradients flow."""
    return (
        Tensor(np.array(input.value))
        if type(input.value) is not Tracer and input.node is None
        else run(e.positive, input)
    )


def contiguous(self: Tensor) -> Tensor:
    """Return the tensor if its elements lie in order in memory, else a copy in which they do."""
    value = self.value
    if type(value) is not np.ndarray or value.flags.c_contiguous:
        return self
    y = clone(self)
    y.value = np.ascontiguousarray(y.value)
    return name_user_line(y)


def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """Return the tensor in another dtype; devices other than the host's memory are refused."""
    for x in args:
        if isinstance(x, Tensor):
            dtype = x.dtype
        elif isinstance(x, (np.dtype, type, MissingDtype)):
            dtype = x
        else:
            device = x
    if device is not None and str(device).partition(":")[0] != "cpu":
        raise ValueError(f"the eager API keeps tensors in host memory; there is no device {device!r}")
    return self if dtype is None else convert(self, np.dtype(dtype))


def conversion_to(dtype: str) -> Callable:
    return lambda self: convert(self, np.dtype(dtype))


TYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "Long": "int64", "Int": "int32", "Short": "int16",
    "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
_TYPE_OF = {dtype: f"torch.{name}Tensor" for name, dtype in TYPES.items()}
_DTYPE_OF = {name: dtype for dtype, name in _TYPE_OF.items()}


def type_(self: Tensor, dtype: Any = None) -> Any:
    """Return the tensor in another dtype, which may be a type of tensors or its name; without one, that name."""
    if dtype is None:
        return _TYPE_OF.get(self.dtype.name, f"torch.{self.dtype.name.title()}Tensor")
    if isinstance(dtype, str):
        dtype = _DTYPE_OF.get(dtype, dtype)
    return convert(self, np.dtype(dtype))
