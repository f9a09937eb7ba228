"""The CuPy backend: arrays in the memory of an NVIDIA GPU.

Everything that CuPy spells differently from NumPy, and nothing else. CuPy's arrays answer NumPy's functions by
protocol (``np.sin(cupy_array)`` runs ``cupy.sin``), so derivative rules need not know them. Nothing here waits for the
GPU but what says so: `to_host`, `synchronize`, and a `timer` when it is read.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import cupy

from fad.backends import cublas, cuda_graphs
from fad.backends.counterparts import definite
from fad.errors import BackendNotFoundError

try:
    cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError as error:
    raise BackendNotFoundError(
        f"CuPy {cupy.__version__} is installed, but finds no GPU that works: it needs an NVIDIA GPU and a driver for "
        f"its CUDA or newer ({error})"
    ) from None

name = "cupy"
array_type: type = cupy.ndarray
matmul = cublas.matmul
Replay = cuda_graphs.Replay  # of the launches of a program
# Functions that are computed by fad's own formulas although NumPy's protocols lead to CuPy. Most of CuPy's copy numbers
# to the host to look at them; `cond`, `lstsq` and `eig` give complex numbers for real ones; `zeros_like`
# takes an empty shape for none; `cholesky` leaves numbers where there is no factor; transforms over an axis that
# is named twice give it another length; `fiedler` is SciPy's, whose older releases give arrays of the host; `polyfit`
# multiplies the caller's values by the weights, in place; `histogram` adds up weights in double precision alone; and
# where CuPy lacks a ufunc, NumPy's error would print, and so copy, its operands.
avoided = frozenset({
    "linspace", "logspace", "nanmax", "nanmin", "average", "cov", "gradient", "delete", "repeat", "histogram",
    "sliding_window_view", "argpartition", "polymul", "poly", "polyfit", "pinv", "cond", "lstsq", "eig", "eigvals",
    "zeros_like", "ones_like", "empty_like", "full_like", "vecdot", "matvec", "vecmat", "cholesky", "fiedler",
    "fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn",
})  # fmt: skip


def owns(x: Any) -> bool:
    return isinstance(x, cupy.ndarray)


def from_host(x: Any) -> Any:
    return cupy.asarray(x)


def to_host(x: Any) -> Any:
    return cupy.asnumpy(x)


def memory_of(x: Any) -> Any:
    """Return what stands for the memory that an array lies in: one object for all views of it."""
    return x.data.mem


def scatter_add(target: Any, index: Any, values: Any) -> None:
    """Add `values` into `target` at `index`, in place, counting repeated positions as often as they occur.

    CuPy adds so in real numbers and in 32 bits or without a sign: complex numbers go by parts, short whole numbers and
    booleans by 32 bits, and those of 64 bits (before CuPy 14.1) as unsigned ones, whose sums have the same bits.
    """
    values = cupy.asarray(values, dtype=target.dtype)
    if target.dtype.kind in "biu" and target.dtype.itemsize < 4:
        wide = target.astype("int32")
        cupy.add.at(wide, index, values.astype("int32"))
        target[...] = wide
    elif target.dtype.kind == "c":
        cupy.add.at(target.real, index, values.real)
        cupy.add.at(target.imag, index, values.imag)
    elif target.dtype == "int64":
        cupy.add.at(target.view("uint64"), index, values.view("uint64"))
    else:
        cupy.add.at(target, index, values)


def scatter_max(target: Any, index: Any, values: Any) -> None:
    """Put the largest of `target` and the `values` for each place at `index`, in place."""
    cupy.maximum.at(target, index, values)


def empty(shape: tuple, dtype: Any) -> Any:
    return cupy.empty(shape, dtype)


def zeros(shape: tuple, dtype: Any) -> Any:
    return cupy.zeros(shape, dtype)


def arange(n: int, dtype: Any) -> Any:
    return cupy.arange(n, dtype=dtype)


def as_strided(x: Any, shape: tuple, strides: tuple) -> Any:
    """Return a view of the memory from the beginning of `x` on."""
    return cupy.lib.stride_tricks.as_strided(x, shape, strides)


def elementwise_kernel(ins: tuple, outs: tuple, body: str, name: str) -> Callable:
    """Return a kernel that runs C statements for each element, compiled when it is first called.

    `ins` and `outs` are pairs of dtype and name. It takes arrays that are broadcast together, and numbers, and returns
    a tuple of new arrays. It is compiled as CuPy compiles its own, whose functions give the same bits so.
    """
    read, made = (", ".join(f"{dtype} {variable}" for dtype, variable in some) for some in (ins, outs))
    return cupy.ElementwiseKernel(read, made, body, name, return_tuple=True)


# --- functions of SciPy -----------------------------------------------------------------------------------------------
# SciPy's ufuncs find CuPy's by their names, through the arrays themselves; what follows is called by name.


def _lambertw(z: Any, k: Any = 0, tol: Any = 1e-8) -> Any:
    return _find_scipy("special.lambertw")(z.astype("complex128"), k, tol)  # in single precision it gives reals


def _polygamma(n: Any, x: Any) -> Any:
    y = _find_scipy("special.polygamma")(cupy.asarray(n), cupy.asarray(x))
    return y.astype(x.dtype)


def _spherical_yn(n: Any, z: Any) -> Any:
    return _find_scipy("special.spherical_yn")(n, z).astype(z.dtype)  # which is double always


def _lu(a: Any, p_indices: bool = False) -> tuple:
    p, low, up = _find_scipy("linalg.lu")(a)
    return (cupy.argmax(p, axis=1) if p_indices else p), low, up


def _eigh(a: Any, b: Any = None, lower: bool = True) -> tuple:
    if b is None:
        return cupy.linalg.eigh(a, "L" if lower else "U")
    # a v = b v w is, with b = l l^H, the eigenproblem of one Hermitian matrix, l^-1 a l^-H.
    b = _hermitian(b, lower)
    inverse = cupy.linalg.inv(definite(cupy.linalg.cholesky(b), b))
    w, v = cupy.linalg.eigh(inverse @ _hermitian(a, lower) @ inverse.conj().T)
    return w, inverse.conj().T @ v


def _hermitian(a: Any, lower: bool) -> Any:
    """Return the Hermitian matrix of which `a` holds one triangle."""
    half = cupy.tril(a) if lower else cupy.triu(a).conj().T
    return half + cupy.tril(half, -1).conj().T


_SCIPY: dict[str, Callable] = {
    "special.lambertw": _lambertw,
    "special.polygamma": _polygamma,
    "special.spherical_yn": _spherical_yn,
    "linalg.lu": _lu,
    "linalg.eigh": _eigh,
}


def _find_scipy(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"cupyx.scipy.{module}"), function, None)


def scipy_function(name: str) -> Callable | None:
    """Return what CuPy has in place of a function of SciPy, named below ``scipy``; None if it has nothing."""
    return _SCIPY.get(name) or _find_scipy(name)


@functools.cache
def list_offered(library: str, module: str) -> list:
    """Return the names of a module of NumPy or SciPy that CuPy has, too."""
    path = ".".join(filter(None, ["cupy" if library == "numpy" else "cupyx.scipy", module]))
    found = vars(importlib.import_module(path))
    return [name for name, value in found.items() if not name.startswith("_") and callable(value)]


def synchronize() -> None:
    """Wait until the GPU has finished its work."""
    cupy.cuda.get_current_stream().synchronize()


def timer() -> Any:
    """Start a clock of the GPU, by events on the current stream: it is stopped by calling it.

    What that returns gives the seconds between the two, and waits until the GPU has come there.
    """
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()

    def stop() -> Callable:
        end.record()

        def read() -> float:
            end.synchronize()
            return cupy.cuda.get_elapsed_time(start, end) / 1000.0

        return read

    return stop
