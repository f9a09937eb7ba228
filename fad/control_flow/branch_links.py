"""Which results of branches may be arrays that the program knows by other names: operands, arrays from outside.

``fad.cond(p, lambda x: x, f, x)`` gives the array x itself where p holds. The operation that it becomes gives a new
array, which is the same as long as nobody writes into one of the two. If somebody does, the program is recorded again
with such branches as paths, of which each runs as Python runs it (`fad.core.views.Aliased`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fad.core.tracer import Tracer, up_to_date
from fad.core.views import memory_root, note_alias, noted_beside
from fad.staging.record import recorder


class Links:
    """The groups of arrays, of those that the program knows and of the branches' results, that may be one."""

    __slots__ = ("leaves", "groups")

    def __init__(self, leaves: list) -> None:
        self.leaves = leaves
        self.groups: list[tuple[list, list[int]]] = []

    def note(self, given: Iterable, results: list) -> None:
        """Note what a branch gives back, which was given values for the leaves."""
        operands = {id(x): leaf for x, leaf in zip(given, self.leaves, strict=True)}
        groups: dict[int, tuple[list, list[int]]] = {}
        for k, y in enumerate(results):
            for root in _roots(y):
                known = [operands[id(root)]] if id(root) in operands else [root] * _is_outside(root)
                groups.setdefault(id(root), (known, []))[1].append(k)
        self.groups += [(known, ks) for known, ks in groups.values() if known or len(ks) > 1]

    def tie(self, results: list) -> None:
        """Note that what the operation gives may be what the program knows, and one result another."""
        for known, ks in self.groups:
            note_alias([*known, *[results[k] for k in ks]])


def _roots(y: Any) -> Iterator[Any]:
    """Yield the arrays that a result may be a view of."""
    if (type(y) is Tracer and up_to_date(y).shape) or type(y) is np.ndarray:
        root = memory_root(y)
        yield root
        yield from noted_beside(root)


def _is_outside(root: Any) -> bool:
    return type(root) is not Tracer or root.owner is not recorder.get()
