"""A fused loop as data: the operations of one element, how each array is read, what is summed. `Kernel` says it all."""

from __future__ import annotations

import functools
import hashlib
from typing import NamedTuple


class Node(NamedTuple):
    """One operation of a fused group: arguments are operands first, then earlier nodes."""

    template: str
    args: tuple[int, ...]
    work: str
    selects: bool


class Kernel(NamedTuple):
    """What a kernel computes: all that its code depends on.

    ``modes``, one per operand: "u" one element for all, "0" the same along the innermost axis, "c" contiguous
    along it, "s" strided. ``reduce`` is "", "inner" (the innermost axis is summed) or "axis0", "axis1" ... (that is);
    with " maximum" or " minimum" behind it, these instead of the sum. The first `stored` results are stored element
    by element all the same. With `apart`, what is strided is loaded and stored element by element: on large arrays
    that is twice as fast as by gathers, but takes longer to compile.
    """

    rank: int
    types: tuple[str, ...]
    modes: tuple[str, ...]
    nodes: tuple[Node, ...]
    node_types: tuple[str, ...]
    outs: tuple[int, ...]  # numbers of values, operands first
    reduce: str = ""
    spread: tuple[int, ...] = ()  # the results, by number, that are strided along the innermost axis, too
    stored: int = 0
    apart: bool = False

    @property
    def summed(self) -> int:
        """Return the number of the axis that results are added up along, in memory; -1 if there is none."""
        return int(self.reduce[4]) if self.reduce.startswith("axis") else -1

    @property
    def how(self) -> str:
        """Return how a reduction combines two elements: "add", "maximum" or "minimum"."""
        return self.reduce.partition(" ")[2] or "add"

    def words(self) -> list[tuple[str, int]]:
        """Say what each word of the argument row is: ("n", axis), ("p", k), ("t", k, axis) with operands first."""
        found: list = [("n", d) for d in range(self.rank)]
        for k, mode in enumerate(self.modes):
            found.append(("p", k))
            if mode != "u":
                found += [("t", k, d) for d in range(self.rank - 1)]
            if mode == "s":
                found.append(("t", k, self.rank - 1))
        for k in range(len(self.modes), len(self.modes) + len(self.outs)):
            found.append(("p", k))
            whole = k < len(self.modes) + self.stored
            found += [("t", k, d) for d in range(self.rank - 1) if whole or d != self.summed]
            if k - len(self.modes) in self.spread:
                found.append(("t", k, self.rank - 1))
        return found


@functools.lru_cache(maxsize=4096)
def facts(kernel: Kernel) -> tuple[str, list]:
    """Return a kernel's name, which stands for all that its code depends on, and its words."""
    return f"k{hashlib.sha256(repr(tuple(kernel)).encode()).hexdigest()[:20]}", kernel.words()
