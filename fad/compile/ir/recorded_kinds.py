"""Operations whose results are real or complex as the values are: a program has been recorded for one of the two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad.core.programs.graph import Equation, Graph


def forward_of(eq: Equation, graph: Graph) -> Callable:
    """Return the function that computes an operation on plain values.

    It raises ValueError where results are complex that were real when the program was recorded, or the other way
    round: such a call is run without the program, as any that an operation refuses.
    """
    forward = eq.prim.forward
    if not eq.prim.kind_varies:
        return forward
    recorded = [graph.types[o].dtype.kind == "c" for o in eq.outs]

    def checked(*xs: Any, **params: Any) -> Any:
        ys = forward(*xs, **params)
        if [y.dtype.kind == "c" for y in (ys if eq.prim.multi else (ys,))] != recorded:
            raise ValueError(f"{eq.prim.name} gives complex numbers for some values and real ones for others")
        return ys

    return checked
