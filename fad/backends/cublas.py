"""Products of matrices by cuBLAS itself, while launches are recorded: CuPy refuses to call it then.

cuBLAS can be recorded where it has memory of its own to work in, and a handle that is on the recorded stream. Real and
complex numbers of single and double precision are multiplied so; of all else CuPy says that it cannot be recorded.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import threading
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np

_WORKSPACE = 4 << 20  # bytes
# By dtype: what CUDA calls it (CUDA_R_32F and so on), and what cuBLAS computes in (CUBLAS_COMPUTE_32F and _64F).
_TYPES = {"f": (0, 68), "d": (1, 70), "F": (4, 68), "D": (5, 70)}
_TENSOR_FLOAT_32 = 77  # CUBLAS_COMPUTE_32F_FAST_TF32
_ANY_ALGORITHM = -1


class _Recording(threading.local):
    """The handle with which this thread is recording."""

    handle: Handle | None = None


_recording = _Recording()


@contextlib.contextmanager
def record_products(stream: Any) -> Iterator[Handle]:
    """Let products be calls of cuBLAS on a stream that is recorded, for the length of a ``with`` block.

    The handle that it gives must live as long as what is recorded.
    """
    _recording.handle = handle = Handle(stream)
    try:
        yield handle
    finally:
        _recording.handle = None


def matmul(a: Any, b: Any) -> Any:
    """Return the product of two arrays of CuPy, as `numpy.matmul` has it."""
    handle = _recording.handle
    return cupy.matmul(a, b) if handle is None or not _fits(a, b) else handle.multiply(a, b)


def _fits(a: Any, b: Any) -> bool:
    rows = b.shape[-2] if b.ndim > 1 else b.shape[0] if b.ndim else 0
    return a.dtype == b.dtype and a.dtype.char in _TYPES and a.size > 0 < b.size and a.ndim > 0 and a.shape[-1] == rows


@functools.cache
def _library() -> ctypes.CDLL:
    from cuda.pathfinder import load_nvidia_dynamic_lib  # a package that CuPy brings

    return ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path)


class Handle:
    """A handle of cuBLAS on one stream, with memory to work in."""

    def __init__(self, stream: Any):
        self.stream = stream
        self.handle = ctypes.c_void_p()
        self.memory: Any = None

    def _open(self) -> None:
        self.memory = cupy.empty(_WORKSPACE, np.uint8)
        _call("cublasCreate_v2", ctypes.byref(self.handle))
        _call("cublasSetStream_v2", self.handle, ctypes.c_void_p(self.stream.ptr))
        _call("cublasSetWorkspace_v2", self.handle, _address(self.memory), ctypes.c_size_t(_WORKSPACE))

    def __del__(self) -> None:
        if self.handle:
            _library().cublasDestroy_v2(self.handle)

    def multiply(self, a: Any, b: Any) -> Any:
        if not self.handle:
            self._open()
        x, y = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        (m, k), n, count = x.shape[-2:], y.shape[-1], math.prod(batch)
        out = cupy.empty((*batch, m, n), a.dtype)
        left, right = _Operand(x, batch), _Operand(y, batch)
        kind, compute = _TYPES[a.dtype.char]
        if a.dtype.char == "f" and os.environ.get("CUPY_TF32", "0") != "0":
            compute = _TENSOR_FLOAT_32  # as CuPy's own products
        one, zero = (np.array(number, a.dtype) for number in (1, 0))
        # cuBLAS reads matrices by columns: by rows, it computes the transposed product of the transposed ones.
        sizes = self.handle, right.transposed, left.transposed, n, m, k, _host(one)
        how = compute, _ANY_ALGORITHM
        if count == 1:
            rest = *right.place(kind), *left.place(kind), _host(zero), _address(out), kind, n
            _call("cublasGemmEx", *sizes, *rest, *how)
        else:
            rest = *right.places(kind), *left.places(kind), _host(zero), _address(out), kind, n
            _call("cublasGemmStridedBatchedEx", *sizes, *rest, ctypes.c_longlong(m * n), count, *how)
        out = out[..., 0, :] if a.ndim == 1 else out
        return out[..., 0] if b.ndim == 1 else out


class _Operand:
    """A stack of matrices as cuBLAS takes it: where it begins, how far apart rows are, and one matrix from the next."""

    def __init__(self, x: Any, batch: tuple):
        shape = x.shape[-2:]
        if math.prod(x.shape[:-2]) == 1:
            x = x.reshape(shape)
        else:
            x = cupy.broadcast_to(x, (*batch, *shape)).reshape(-1, *shape)
        layout = _layout(x)
        if layout is None:
            x = cupy.ascontiguousarray(x)
            layout = False, shape[1]
        self.array = x
        self.transposed, self.lead = int(layout[0]), layout[1]

    def place(self, kind: int) -> tuple:
        return _address(self.array), kind, self.lead

    def places(self, kind: int) -> tuple:
        step = self.array.strides[0] // self.array.itemsize if self.array.ndim > 2 else 0
        return *self.place(kind), ctypes.c_longlong(step)


def _layout(x: Any) -> tuple[bool, int] | None:
    """Return whether matrices lie by columns, and how far apart their rows (or columns) are; None for no such order."""
    (m, n), (down, across), size = x.shape[-2:], x.strides[-2:], x.itemsize
    if min(x.strides) < 0 or any(s % size for s in x.strides):
        return None
    if (across == size or n == 1) and (m == 1 or down >= n * size):
        return False, n if m == 1 else down // size
    if (down == size or m == 1) and (n == 1 or across >= m * size):
        return True, m if n == 1 else across // size
    return None


def _host(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def _address(x: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.data.ptr)


def _call(name: str, *args: Any) -> None:
    status = getattr(_library(), name)(*args)
    if status:
        raise RuntimeError(f"{name} of cuBLAS failed with status {status}")
