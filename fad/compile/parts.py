"""Large loops in parts: where a kernel's extents are cut, so that several threads can run it.

The cut depends on the kernel and its extents alone, never on the number of threads, and sums of parts are added in a
fixed order: a program gives the same bits on any machine of one kind, with one thread or many.
"""

from __future__ import annotations

import functools

from fad.compile.llvm.kernels import Kernel
from fad.compile.llvm.templates import is_heavy

SMALLEST = 60_000.0  # nanoseconds of work, as `_cost` guesses it, from which on a loop is cut at all
GRAIN = 30_000.0  # and the least work of a part
MOST_PARTS = 64
_ALIGNED = 64  # parts along the innermost axis begin at multiples of this, so that no two write to one cache line


def cut(kernel: Kernel, extents: tuple) -> tuple[int, list[tuple[int, int]]] | None:
    """Return the axis along which a loop is cut and the parts ``(start, stop)``; None if it stays whole."""
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
    step = -(-n // wanted)
    if axis == len(extents) - 1:
        step = -(-step // _ALIGNED) * _ALIGNED
    bounds = [(a, min(a + step, n)) for a in range(0, n, step)]
    return (axis, bounds) if len(bounds) > 1 else None


@functools.lru_cache(maxsize=4096)
def _cost(kernel: Kernel) -> float:
    """Guess the nanoseconds that one element takes."""
    memory = sum(m in "cs" for m in kernel.modes) + len(kernel.outs)
    heavy = sum(is_heavy(node.template) for node in kernel.nodes)
    return 0.2 * memory + 0.1 * len(kernel.nodes) + 1.5 * heavy


def _axis(kernel: Kernel, extents: tuple) -> int | None:
    """Return the outermost axis that is long enough; a summed one only where it is the only one."""
    last = len(extents) - 1
    summed = last if kernel.reduce.startswith("inner") else kernel.summed
    for d, n in enumerate(extents):
        if d != summed and n >= (2 * _ALIGNED if d == last else 8):
            return d
    return 0 if last == 0 and summed == 0 and extents[0] >= 2 * _ALIGNED else None
