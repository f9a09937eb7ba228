"""Views: tensors that show the memory of another one, and what becomes of them when it is changed in place."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from fad.eager.operators import run
from fad.eager.records import LEAF, root
from fad.eager.tensor import Tensor
from fad.ops.indexing import getitem_p
from fad.ops.structural import inverse, reshape_p


def above(x: Tensor) -> Any:
    """Return ``(tensor, how)`` that a view was taken from, if it still shows that tensor's memory."""
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
    """Give the other views of the memory of `x`, whose history was just changed, the history that they show now."""
    line_up = chain(x)
    for y in views(line_up[-1]):
        step = above(y)
        if step is None or any(y is z for z in line_up) or (y.node is not None and y.node[0] == LEAF):
            continue
        base, (how, detail) = step  # views are listed in the order in which they were taken, so the base is done
        if how == "index":
            index = detail if type(detail) is tuple else (detail,)
            y.node = run(getitem_p, base, template=index).node
        else:
            forth = {"shape": y.value.shape} if how is reshape_p else {"axes": inverse(detail["axes"])}
            y.node = run(how, base, **forth).node


def seen_elsewhere(x: Tensor, count: int) -> bool:
    """Tell whether `count` references to a tensor's memory are more than it and its known views account for."""
    base = x.value.base
    return count > 2 + sum(type(y.value) is np.ndarray and y.value.base is base for y in views(x))
