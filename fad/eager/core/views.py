"""Views: tensors that show the memory of another one, and what becomes of them when it is changed in place."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from fad.eager.core.records import LEAF, root
from fad.eager.ops.operators import run
from fad.eager.tensor import Tensor
from fad.ops.arrangement.structural import inverse, transpose_p
from fad.ops.places.indexing import getitem_p, split_index


def above(x: Tensor) -> Any:
    """Return ``(tensor, how)`` that a view was taken from, if it still shows that tensor's memory.

    `how` is ``("index", i)``, where i may be a function of the tensor; or the operation that leads back with its
    parameters, for broadcasting the one that leads to the view.
    """
    found = getattr(x, "_above", None)
    return found if found is not None and root(found[0].value) is root(x.value) else None


def chain(x: Tensor) -> list[Tensor]:
    """Return a tensor, the one that it is a view of, and so on up."""
    found = [x]
    while (step := above(found[-1])) is not None:
        found.append(step[0])
    return found


def note_view(y: Tensor, x: Tensor) -> None:
    """Remember a view with the tensor at the top; a leaf that requires grad is never changed, and needs no list."""
    top = chain(x)[-1]
    if top.node is not None and top.node[0] == LEAF:
        return
    refs = getattr(top, "_views", None)
    if refs is None:
        top._views = refs = []
    refs.append(weakref.ref(y))
    if len(refs) > 64 and len(refs) & (len(refs) - 1) == 0:
        refs[:] = [r for r in refs if r() is not None]


def views(top: Tensor) -> Iterator[Tensor]:
    """Yield the views of a tensor, and the views of these, that are still alive."""
    return (y for ref in getattr(top, "_views", ()) if (y := ref()) is not None)


def renew(x: Tensor) -> None:
    """Give the views of the memory of `x`, whose history was just changed, the history that they show now."""
    for y in views(chain(x)[-1]):
        step = above(y)
        if step is None or (y.node is not None and y.node[0] == LEAF):
            continue
        base, (how, detail) = step  # views are listed in the order in which they were taken, so the base is done
        if how == "index":
            template, arrays = split_index(detail(base) if callable(detail) else detail)
            new = run(getitem_p, base, *arrays, template=template)
        else:
            forth = {"axes": inverse(detail["axes"])} if how is transpose_p else {"shape": y.value.shape}
            new = run(how, base, **forth)
        set_node(y, new.node)


def set_node(x: Tensor, node: Any) -> None:
    """Give a tensor a new record; a gradient that is retained is the new one's from now on."""
    kept = getattr(x, "_kept", None)
    if kept is not None and node is not x.node:
        kept.remove()
        del x._kept
    x.node = node
    if kept is not None and node is not None:
        x.retain_grad()


def move_views(x: Tensor, old: Tensor) -> None:
    """Let `old` take the place of `x` among the views of its memory."""
    top = chain(x)[-1]
    for y in views(top):
        if y._above[0] is x:
            y._above = old, y._above[1]
    step = above(x)
    if step is not None:
        old._above = step
        note_view(old, step[0])
    elif hasattr(x, "_views"):
        old._views = x._views
        del x._views


def is_seen_elsewhere(x: Tensor, count: int) -> bool:
    """Return whether `count` references to a tensor's memory are more than it and its known views account for."""
    base = x.value.base
    return count > 2 + sum(type(y.value) is np.ndarray and y.value.base is base for y in views(x))
