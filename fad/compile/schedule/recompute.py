"""Cheap values that a later loop reads are computed there once more, where that loop then reads fewer arrays.

The powers of a running product, say, are stored by the loops that compute them if a later loop reads them: each costs
a multiplication, and from memory much more. Computed again, from the one before the first of them, they are in no
memory at all where nothing else reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from fad.compile.ir.expressions import weight
from fad.compile.schedule.fusion import Step, are_few
from fad.core.programs.graph import Equation, Graph

_FEWEST = 4  # arrays that are not read any more
_SHARE = 4  # of these arrays there may be one that is read instead


def recompute_cheap(
    graph: Graph, steps: list[Step], group: dict[int, Step], most_operands: int, most_weight: int,
    stays: Iterable[int] = (),
) -> None:  # fmt: skip
    """Let loops compute what they read of earlier ones, where it is cheap and what it is made of is less.

    `group` tells the loop that computes a value. No loop gets more operands or weight than is said; the results in
    `stays` are computed once.
    """
    loops = [s for s in steps if s.kind == "loop"]
    made = {eq.outs[0]: (eq, text) for s in loops for eq, text in zip(s.equations, s.templates, strict=True)}
    position = {o: k for k, o in enumerate(made)}
    cheap = {o for o, (_, text) in made.items() if weight(text) == 1}.difference(stays)
    for step in loops:
        read = [i for i in step.operands - step.members if i in cheap and group[i].shape == step.shape]
        if len(read) < _FEWEST:
            continue
        for some in _connect(sorted(read, key=position.__getitem__), made):
            again = [made[i] for i in some]
            if _pays(graph, step, again, most_operands, most_weight):
                _add(step, again)


def _connect(values: list[int], made: dict) -> list[list[int]]:
    """Return values in the order of the program, in parts: one that another is computed from is in the same part."""
    part: dict[int, list[int]] = {}
    for i in values:
        mine = [i]
        for x in made[i][0].ins:
            if x in part and part[x] is not mine:
                mine = part[x] + mine
                part.update(dict.fromkeys(mine, mine))
        part[i] = mine
    return list({id(p): p for p in part.values()}.values())


def _pays(graph: Graph, step: Step, again: list[tuple[Equation, str]], most_operands: int, most_weight: int) -> bool:
    """Return whether a loop reads much less if it computes these values."""
    made = {eq.outs[0] for eq, _ in again}
    more = {i for eq, _ in again for i in eq.ins} - made - step.operands - step.members
    size = math.prod(step.shape)
    read = sum(graph.types[i].size == size for i in more)
    if len(made) < _FEWEST or read * _SHARE > len(made):
        return False
    operands = (step.operands | more) - step.members - made
    return step.weight + len(again) <= most_weight and are_few(graph, operands, most_operands)


def _add(step: Step, again: list[tuple[Equation, str]]) -> None:
    """Let a loop begin with operations that another one has as well."""
    step.equations[:0] = [eq for eq, _ in again]
    step.templates[:0] = [text for _, text in again]
    step.again.update([eq.outs[0] for eq, _ in again])
    step.operands.update([i for eq, _ in again for i in eq.ins])
    step.operands -= step.again
    step.weight += len(again)
