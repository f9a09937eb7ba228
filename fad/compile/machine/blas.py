"""BLAS: which one NumPy runs, whether it has kernels for this CPU, and the addresses of its routines for jit.

Native programs call BLAS by pointer. Where NumPy's OpenBLAS runs kernels for an older CPU than this one, because it
does not know this one by name, jit loads a copy of its own from ``scipy-openblas64`` and tells it which to run.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

_SPELLINGS = (("scipy_", "_64_"), ("", "_64_"), ("scipy_", "_"), ("", "_"))
_OF_OPENBLAS = (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", ""))
_POSIX_THREADS = 1  # what OpenBLAS's get_parallel says of such a build
_OLD = {
    "PRESCOTT",
    "CORE2",
    "PENRYN",
    "DUNNINGTON",
    "NEHALEM",
    "ATOM",
    "SANDYBRIDGE",
    "BARCELONA",
    "BULLDOZER",
    "KATMAI",
}
_NARROW = {*_OLD, "HASWELL", "ZEN", "EXCAVATOR", "STEAMROLLER", "PILEDRIVER"}  # no 512-bit vectors
_WIDE_FLAGS = {"avx512f", "avx512vl", "avx512bw", "avx512dq"}


def libraries() -> list[dict[str, Any]]:
    """Return what threadpoolctl knows of the BLAS libraries of this process; empty without threadpoolctl."""
    try:
        import threadpoolctl
    except ImportError:
        return []
    import numpy.linalg  # noqa: F401  loads the library, if nothing has yet

    return [info for info in threadpoolctl.threadpool_info() if info.get("user_api") == "blas"]


def cpu_flags() -> set[str]:
    """Return the CPU's feature flags, where the system tells them."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return set(line.partition(":")[2].split())


def better_kernels(running: str, flags: set[str]) -> str | None:
    """Return the kernels of OpenBLAS that a CPU of these flags should run, if those that do run are older."""
    running = running.upper()
    if running in _NARROW and flags >= _WIDE_FLAGS:
        return "SKYLAKEX"
    return "HASWELL" if running in _OLD and flags >= {"avx2", "fma"} else None


def advice() -> str | None:
    """Return what would make matrix products faster here, or None if nothing is known to."""
    for info in libraries():
        if info.get("internal_api") != "openblas" or not info.get("architecture"):
            continue
        better = better_kernels(info["architecture"], cpu_flags())
        if better:
            own = "" if has_private() else "; pip install scipy-openblas64 lets jit have them without that"
            return (
                f"NumPy's OpenBLAS runs its {info['architecture']} kernels on a CPU that can run those for {better}. "
                f"Start Python with OPENBLAS_CORETYPE={better} in the environment for faster matrix products{own}"
            )
    return None


def has_private() -> bool:
    return importlib.util.find_spec("scipy_openblas64") is not None


# --- addresses ----------------------------------------------------------------------------------------------------


class Library:
    """A loaded BLAS: where its routines are, and what it says of itself."""

    def __init__(self, handle: Any, title: str):
        self.handle = handle
        self.title = title

    def address(self, routine: str) -> int | None:
        for before, after in _SPELLINGS:
            found = getattr(self.handle, f"{before}{routine}{after}", None)
            if found is not None:
                return ctypes.cast(found, ctypes.c_void_p).value
        return None

    def kernels(self) -> str:
        """Return the name of the CPU whose kernels OpenBLAS runs; empty for another BLAS."""
        ask = self.own("get_corename")
        if ask is None:
            return ""
        ask.restype = ctypes.c_char_p
        return ask().decode()

    def own(self, name: str) -> Any:
        """Return a function of OpenBLAS itself; None if it has none of this name, or is another BLAS."""
        found = [getattr(self.handle, f"{before}openblas_{name}{after}", None) for before, after in _OF_OPENBLAS]
        return next((f for f in found if f is not None), None)

    def threads(self) -> tuple[int, int] | None:
        """Return where the functions are that read and set its number of threads; None if that cannot be said.

        Only the one with POSIX threads takes a setting for calls from any thread.
        """
        kind, functions = self.own("get_parallel"), [self.own("get_num_threads"), self.own("set_num_threads")]
        if kind is None or kind() != _POSIX_THREADS or None in functions:
            return None
        get, put = (ctypes.cast(f, ctypes.c_void_p).value for f in functions)
        return (get, put) if get and put else None


class _Exported(Library):
    """SciPy's BLAS, by the pointers that it exports for Cython."""

    def address(self, routine: str) -> int | None:
        capsule = self.handle.__pyx_capi__[routine]
        name, get = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
        name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return get(capsule, name(capsule))

    def own(self, name: str) -> None:
        return None


def load_numpys() -> Library | None:
    """Return the BLAS that NumPy itself runs: a symbol is looked for in what a library was linked with, too."""
    try:
        module = importlib.import_module("numpy._core._multiarray_umath")
        found = Library(ctypes.CDLL(module.__file__), "NumPy's own")
    except (ImportError, OSError, TypeError):
        return None
    return found if found.address("dgemm") else None


def _of_scipy() -> Library | None:
    try:
        return _Exported(importlib.import_module("scipy.linalg.cython_blas"), "SciPy's")
    except ImportError:
        return None


def _private(kernels: str) -> Library | None:
    """Load a copy of OpenBLAS that runs the kernels named."""
    if not has_private():
        return None
    before = os.environ.get("OPENBLAS_CORETYPE")
    os.environ["OPENBLAS_CORETYPE"] = kernels  # read once, when the library is loaded: by the package's import
    try:
        package = importlib.import_module("scipy_openblas64")
        for place in sorted(Path(package.get_lib_dir()).iterdir()):
            if ".so" in place.name or place.suffix in (".dll", ".dylib"):
                found = Library(ctypes.CDLL(str(place)), "a copy of jit's own")
                if found.address("dgemm"):
                    return found
    except OSError:
        return None
    finally:
        if before is None:
            del os.environ["OPENBLAS_CORETYPE"]
        else:
            os.environ["OPENBLAS_CORETYPE"] = before
    return None


@functools.cache
def choose() -> Library | None:
    """Return the BLAS that native programs call; None leaves large products to NumPy."""
    if sys.byteorder != "little":  # integers of 64 bits are read as such of 32 bits
        return None
    found = load_numpys()
    better = better_kernels(found.kernels(), cpu_flags()) if found else None
    if better and "OPENBLAS_CORETYPE" not in os.environ:
        found = _private(better) or found
    for one in (found, _of_scipy() if found is None else None):
        if one is not None and _is_right(one):
            return one
    return None


def _is_right(one: Library) -> bool:
    """Return whether a routine does what its name says, in the way that native programs call it."""
    address = one.address("dgemm")
    if not address:
        return False
    a, b, c = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]]), np.zeros((2, 2))
    numbers = [ctypes.c_int64(v) for v in (ord("N"), 2)]
    factors = [ctypes.c_double(v) for v in (1.0, 0.0)]
    (letter, two), (alpha, beta) = map(ctypes.addressof, numbers), map(ctypes.addressof, factors)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 13, ctypes.c_int64, ctypes.c_int64)(address)
    call(letter, letter, two, two, two, alpha, b.ctypes.data, two, a.ctypes.data, two, beta, c.ctypes.data, two, 1, 1)
    return bool((c == [[19.0, 22.0], [43.0, 50.0]]).all())


@functools.cache
def threads() -> tuple[int, int] | None:
    """Return where the chosen BLAS reads and sets its number of threads; None if products cannot be cut."""
    found = choose()
    return found.threads() if found else None


@functools.cache
def pointer(routine: str) -> int | None:
    """Return the address of a routine, by its name in Fortran."""
    found = choose()
    return found.address(routine) if found else None
