"""Arrays that were donated to a jitted call: no jitted function takes them again."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from fad.errors import DonatedArrayError

DONATED: dict[int, weakref.ref] = {}  # id -> the array; an entry leaves with its array


def donate(x: np.ndarray) -> None:
    number = id(x)
    DONATED[number] = weakref.ref(x, lambda _: DONATED.pop(number, None))


def take_back(x: np.ndarray) -> None:
    DONATED.pop(id(x), None)


def refuse_gone(leaves: Iterable[Any]) -> None:
    """Raise if one of the arrays was donated."""
    x: Any
    for n, x in enumerate(leaves):
        entry = DONATED.get(id(x)) if type(x) is np.ndarray else None
        same = entry is not None and entry() is x
        if same:
            raise DonatedArrayError(
                f"array {n} among the arguments, of shape {x.shape}, was donated to an earlier call, which may have "
                "written a result into its memory. Use what that call returned instead, or drop donate_argnums"
            )
