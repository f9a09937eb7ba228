"""What the steps of captured loops print: they do while the program is recorded, as all that a program prints is then.

A loop that is one operation runs its steps on the values at hand once it is recorded, and prints as it comes to them.
What is recorded prints nothing from then on, so it is dropped from the finished program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import EFFECT, Equation, Graph


class Prints:
    """A call of ``print`` in a loop: each step prints once, though derivatives may run it again."""

    __slots__ = ("_show", "_is_real", "_last")

    def __init__(self, show: Callable, is_real: Callable[[], bool]):
        self._show = show
        self._is_real = is_real  # whether what runs now has values of the program's, and no examples
        self._last: tuple = ()

    def run(self, numbers: tuple, values: tuple) -> None:
        """Print, in the step of some numbers: its own, behind those of the loops around."""
        step = tuple(map(int, numbers))
        if self._is_real() and step > self._last:
            self._show(*values)  # it raises again if a step that raised is run another time
            self._last = step


def _print(*operands: Any, prints: Prints, count: int) -> np.ndarray:
    prints.run(operands[:count], operands[count:])
    return np.zeros(())


print_p = Primitive("print", _print, flat=True, archetype=EFFECT)


def drop_prints(graph: Graph) -> Graph:
    """Return a program that prints nothing."""
    if not any(map(_has_prints, graph.equations)):
        return graph
    return graph.replace(equations=[_without_prints(eq) for eq in graph.equations if eq.prim is not print_p])


def _has_prints(eq: Equation) -> bool:
    return eq.prim is print_p or any(_has_prints(e) for body in eq.bodies for e in body.equations)


def _without_prints(eq: Equation) -> Equation:
    if not _has_prints(eq):
        return eq
    bodies = tuple(map(drop_prints, eq.bodies))
    changed: dict[str, Any] = {"body": bodies[0]} if eq.prim.archetype == "loop" else {"branches": bodies}
    return Equation(eq.prim, eq.ins, {**eq.params, **changed}, eq.outs, eq.place)
