"""What the target has, and from which size on it pays: vectors of the CPU, products by own code or by BLAS."""

from __future__ import annotations

import functools

SMALL, SMALL_THIN = 64**3, 1 << 21  # multiplications up to which a product is done here and not by BLAS
SMALL_FACTOR = 1 << 11  # elements of a right factor up to which it is done here, however many rows the left one has
SMALL_GATHERED = 48**3  # of a product whose right factor has its columns, and not its rows, contiguous
LONG_DOT = 64  # elements from which on the products of a few rows are dot products
_THIN = 32  # length of the shortest side of what is thin
SMALL_WITH_VECTOR = 1 << 16  # elements of a matrix up to which its product with a vector is done here by narrow vectors
_MOST_OF_LEFT, _MOST_OF_RIGHT = 1 << 22, 1 << 20  # elements of the larger factor of what has few rows or columns


@functools.cache
def register_bytes() -> int:
    """Return the bytes of this CPU's vectors, or 0 if it cannot mask loads and stores."""
    import llvmlite.binding as llvm

    found = llvm.get_host_cpu_features()
    if all(found.get(f) for f in ("avx512f", "avx512vl", "avx512bw", "avx512dq")):
        return 64
    return 32 if found.get("avx2") and found.get("fma") else 0


def thinnest() -> int:
    """Return how many rows, columns or steps between them a product may have that BLAS takes longer to pack than own
    code to compute.
    """
    return 16 if register_bytes() == 64 else 8


def is_small(m: int, k: int, n: int) -> bool:
    """Return whether a product is done by own code; one with a short side pays BLAS longer for packing."""
    if 1 in (m, n) and register_bytes() < 64:
        return k * max(m, n) <= SMALL_WITH_VECTOR
    thin = (m <= thinnest() and k * n <= _MOST_OF_RIGHT) or (n <= thinnest() and m * k <= _MOST_OF_LEFT)
    return thin or m * k * n <= (SMALL_THIN if min(m, k, n) <= _THIN else SMALL) or k * n <= SMALL_FACTOR
