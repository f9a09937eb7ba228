"""LLVM's names of the dtypes that native code computes with."""

from __future__ import annotations

import numpy as np

F64, F32, I64, I32, BOOL = "double", "float", "i64", "i32", "i1"
LLVM_TYPE = {
    np.dtype(float): F64, np.dtype(np.float32): F32, np.dtype(np.int64): I64, np.dtype(np.int32): I32,
    np.dtype(bool): BOOL,
}  # fmt: skip
BYTES = {F64: 8, F32: 4, I64: 8, I32: 4, BOOL: 1, "i8": 1}  # the last: how a boolean lies in memory
INTEGERS = frozenset({I64, I32})
EXACT = 2**53  # up to which each integer is a floating-point number
