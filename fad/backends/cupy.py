"""The CuPy backend: arrays in the memory of an NVIDIA GPU.

Everything that CuPy spells differently from NumPy, and nothing else. CuPy's arrays answer NumPy's functions by
protocol (``np.sin(cupy_array)`` runs ``cupy.sin``), so derivative rules need not know them. Nothing here waits for the
GPU but what says so: `to_host`, `synchronize`, and a `timer` when it is read.
"""

from __future__ import annotations

from typing import Any

import cupy

name = "cupy"
array_type: type = cupy.ndarray


def owns(x: Any) -> bool:
    return isinstance(x, cupy.ndarray)


def from_host(x: Any) -> Any:
    return cupy.asarray(x)


def to_host(x: Any) -> Any:
    return cupy.asnumpy(x)


def scatter_add(target: Any, index: Any, values: Any) -> None:
    """Add `values` into `target` at `index`, in place, counting repeated positions as often as they occur.

    CuPy adds so in real numbers and in 32 bits or without a sign: complex numbers go by parts, and whole numbers of
    64 bits as unsigned ones, whose sums have the same bits.
    """
    values = cupy.asarray(values, dtype=target.dtype)
    if target.dtype.kind == "c":
        cupy.add.at(target.real, index, values.real)
        cupy.add.at(target.imag, index, values.imag)
    elif target.dtype == "int64":
        cupy.add.at(target.view("uint64"), index, values.view("uint64"))
    else:
        cupy.add.at(target, index, values)


def synchronize() -> None:
    """Wait until the GPU has finished what was asked of it."""
    cupy.cuda.get_current_stream().synchronize()


def timer() -> Any:
    """Return a function that gives the seconds of GPU work since this call, by events on the current stream."""
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()

    def read() -> float:
        stop.record()
        stop.synchronize()
        return cupy.cuda.get_elapsed_time(start, stop) / 1000.0

    return read
