"""Which BLAS NumPy runs, and whether it has kernels for this CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# What OpenBLAS calls the kernels that use 512-bit vectors, and those that it falls back to without.
_WIDE = {"SKYLAKEX", "COOPERLAKE", "SAPPHIRERAPIDS", "ZEN4"}


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


def advice() -> str | None:
    """Return what would make matrix products faster here, or None if nothing is known to."""
    if "avx512f" not in cpu_flags():
        return None
    for info in libraries():
        kernels = str(info.get("architecture", "")).upper()
        if info.get("internal_api") == "openblas" and kernels and kernels not in _WIDE:
            return (
                f"NumPy's OpenBLAS runs its {kernels} kernels, but this CPU has 512-bit vectors. "
                "Start Python with OPENBLAS_CORETYPE=SKYLAKEX in the environment for faster matrix products"
            )
    return None
