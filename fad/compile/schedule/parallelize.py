"""Large loops in parts: where a kernel's extents are cut, so that several threads can run it.

The cut depends on the kernel and its extents alone, never on the number of threads, and sums of parts are added in a
fixed order: a program gives the same bits on any machine of one kind, with one thread or many. Calls of BLAS are cut
elsewhere (`codegen/matmul.py`), by the number of CPUs.
"""

from __future__ import annotations

import functools
import math

from fad.compile.ir.expressions import is_heavy
from fad.compile.ir.kernel import Kernel

SMALLEST = 30_000.0  # nanoseconds of work, as `_cost` guesses it, from which on a loop is cut at all
GRAIN = 15_000.0  # and the least work of a part
MOST_PARTS = 64
_ROWS = 16  # the fewest rows of a part that adds up rows
_STRIPE = 512  # the fewest columns of a part of a matrix
_LINE = 64  # bytes of a cache line
_ALIGNED = 64  # parts along the innermost axis begin at multiples of this, so that no two write to one cache line


def cut(kernel: Kernel, extents: tuple, strides: tuple = ()) -> tuple[int, list[tuple[int, int]]] | None:
    """Return the axis along which a loop is cut and the parts ``(start, stop)``; None if it stays whole.

    `strides` are those of the operands and results, in bytes.
    """
    size = 1
    for n in extents:
        size *= n
    work = size * _cost(kernel)
    if work < SMALLEST:
        return None
    axis = _axis(kernel, extents)
    if axis is None:
        return None
    n = extents[axis]
    wanted = min(MOST_PARTS, int(work / GRAIN))
    if axis == summed_axis(kernel) and len(extents) > 1:
        wanted = min(wanted, n // _ROWS)  # each part has sums of its own
    step = -(-n // wanted)
    if axis == len(extents) - 1:
        aligned = _ALIGNED if axis == 0 else _STRIPE
        step = -(-step // aligned) * aligned
    elif kernel.summed > axis:  # sums are added up in memory, where two threads should not write to one cache line
        for place in strides[len(kernel.modes) + kernel.stored :]:
            aligned = _LINE // math.gcd(place[axis], _LINE)
            step = -(-step // aligned) * aligned
    bounds = [(a, min(a + step, n)) for a in range(0, n, step)]
    return (axis, bounds) if len(bounds) > 1 else None


def summed_axis(kernel: Kernel) -> int:
    """Return the axis along which a kernel adds up, -1 if it does not."""
    return kernel.rank - 1 if kernel.reduce.startswith("inner") else kernel.summed


@functools.lru_cache(maxsize=4096)
def _cost(kernel: Kernel) -> float:
    """Guess the nanoseconds that one element takes."""
    memory = sum(m in "cs" for m in kernel.modes) + len(kernel.outs)
    heavy = sum(is_heavy(node.template) for node in kernel.nodes)
    return 0.2 * memory + 0.1 * len(kernel.nodes) + 1.5 * heavy


def _axis(kernel: Kernel, extents: tuple) -> int | None:
    """Return the outermost axis that is long enough; a narrow stripe of a matrix is slow to read."""
    last = len(extents) - 1
    summed = summed_axis(kernel)
    if last == 0:
        return 0 if extents[0] >= 2 * _ALIGNED else None
    for d, n in enumerate(extents[:-1]):
        if n >= (2 * _ROWS if d == summed else 4) and not (d == summed and d > 0):
            return d
    return last if last != summed and extents[last] >= 2 * _STRIPE else None
