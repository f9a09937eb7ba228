"""``fad.saved``: what reverse mode keeps between the forward and the backward pass, by operation and line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fad import tree
from fad.core.runs import effects
from fad.transforms.tape_hooks import WatchedTrace, Watcher, find_saved_in, watching
from fad.transforms.vjp import vjp
from fad.viz import tables

_HEAD = ("bytes", "shape", "dtype", "operation", "line")


class Kept(NamedTuple):
    """One array that is kept: how large it is, and who keeps it."""

    bytes: int
    shape: tuple
    dtype: str
    operation: str
    line: str


class Saved(list):
    """The arrays that are kept, each once, the largest first; prints as a table. ``total`` is the sum in bytes."""

    @property
    def total(self) -> int:
        return sum(k.bytes for k in self)

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(r[i]) for r in (*rows, _HEAD)) for i in range(4)]
        lines = [
            "  ".join([r[0].rjust(widths[0]), *(r[i].ljust(widths[i]) for i in (1, 2, 3)), r[4]]).rstrip()
            for r in (_HEAD, *rows)
        ]
        return "\n".join([*lines, self._sum()])

    def _repr_html_(self) -> str:
        """Return the table for a notebook, behind the bytes of each array a bar: its share of them all."""
        shares = [k.bytes / max(self.total, 1) for k in self]
        rows = [(*row[:-1], tables.without_folder(row[-1])) for row in self._rows()]
        return tables.table(_HEAD, rows, _HEAD[1:], shares) + tables.paragraph(self._sum())

    def _rows(self) -> list[tuple]:
        return [(f"{k.bytes:,}", str(k.shape), k.dtype, k.operation, k.line) for k in self]

    def _sum(self) -> str:
        return f"{self.total:,} bytes in {len(self)} arrays"


class _Keeper(Watcher):
    def __init__(self) -> None:
        self.traces: list[WatchedTrace] = []

    def finish_tape(self, trace: WatchedTrace) -> None:
        self.traces.append(trace)


def saved(fun: Callable) -> Callable:
    """Return a function that runs `fun` under reverse mode and reports what was kept for the backward pass.

    Parameters
    ----------
    fun : callable
        Function of arrays or pytrees of them, as for :func:`fad.vjp`.

    Returns
    -------
    callable
        With the arguments of `fun`, models and labels among them; returns a :class:`Saved`: a list of (bytes, shape,
        dtype, operation, line), the largest first, with ``total`` in bytes. Memory that several operations share is
        counted once, and the arguments themselves count too, where a rule holds on to them. Whole numbers, strings and
        the like are held fixed. Statistics of layers are left as they were.

    Raises
    ------
    UnsupportedInputError
        An output of the function is neither an array nor a number.

    Examples
    --------
    >>> import fad
    >>> found = fad.saved(lambda x: np.sum(np.exp(np.sin(x))))(np.zeros(1000))
    >>> [(k.operation, k.bytes) for k in found], found.total
    ([('sin', 8000), ('exp', 8000)], 16000)
    """

    def measure(*args: Any) -> Saved:
        keeper = _Keeper()
        leaves, structure = tree.flatten(args)
        moving = [i for i, x in enumerate(leaves) if _is_differentiable(x)]

        def of_moving(*xs: Any) -> Any:
            given = dict(zip(moving, xs, strict=True))
            return fun(*tree.unflatten(structure, [given.get(i, x) for i, x in enumerate(leaves)]))

        with watching(keeper), effects.replaying(effects.Log()):
            vjp(of_moving, *[leaves[i] for i in moving])
        return Saved(sorted(_list_kept(keeper.traces[-1]), key=lambda k: -k.bytes))

    return measure


def _is_differentiable(x: Any) -> bool:
    return x.dtype.kind in "fc" if hasattr(x, "dtype") else type(x) in (float, complex)


def _list_kept(trace: WatchedTrace) -> list[Kept]:
    found, seen = [], set()
    for i, record in enumerate(trace.kept):
        if record is None:
            continue
        note = trace.note(i, record)
        for x in find_saved_in(record):
            owner = x
            while type(owner) is np.ndarray and type(owner.base) is np.ndarray:
                owner = owner.base
            if id(owner) not in seen:
                seen.add(id(owner))
                size = min(x.nbytes, owner.nbytes)  # a broadcast view is no larger than what it shows
                found.append(Kept(int(size), tuple(x.shape), str(x.dtype), note.name, note.place))
    return found
