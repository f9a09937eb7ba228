"""``fad.doctor()``: what fad found on this machine, and what would make it faster."""

from __future__ import annotations

import importlib.util
import os
import platform

import numpy as np

from fad.compile.targets.select import has_llvm

_EXTRAS = {
    "scipy": "fad.scipy and the rules of SciPy's functions",
    "llvmlite": "native code for jit",
    "threadpoolctl": "this report's lines on BLAS",
    "scipy_openblas64": "a BLAS for jit with kernels for this CPU, where NumPy's has none",
    "cupy": "arrays on NVIDIA GPUs",
}


def doctor() -> str:
    """Return a report: versions, extras, how jit compiles, which BLAS runs, and what would be faster.

    Examples
    --------
    >>> print(doctor())  # doctest: +ELLIPSIS
    Python ..., NumPy ...
    """
    from fad.compile.machine import blas
    from fad.compile.runtime import kernel_cache

    lines = [f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} CPUs, {platform.machine()}"]
    for name, use in _EXTRAS.items():
        found = importlib.util.find_spec(name) is not None
        lines.append(f"{name}: {'installed' if found else 'not installed'} ({use})")
    lines.append(
        f"jit compiles to {'native code' if has_llvm() else 'NumPy programs; pip install fad[jit] for native code'}"
    )
    lines.append(f"compiled kernels are kept in {kernel_cache.describe()}")
    for info in blas.libraries():
        kernels = f", kernels for {info['architecture']}" if info.get("architecture") else ""
        lines.append(
            f"BLAS: {info.get('internal_api')} {info.get('version')}, {info.get('num_threads')} threads{kernels}"
        )
    mine = blas.choose() if has_llvm() else None
    if mine is not None:
        lines.append(f"jit's matrix products: {mine.title} BLAS{f', kernels for {k}' if (k := mine.kernels()) else ''}")
    advice = blas.advice()
    if advice:
        lines.append(f"faster: {advice}")
    return "\n".join(lines)
