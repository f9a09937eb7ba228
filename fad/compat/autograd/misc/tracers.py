"""autograd.misc.tracers: a program recorded once and replayed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import fad

__all__ = ["const_graph"]


def const_graph(fun: Callable, *args: Any, **kwargs: Any) -> Callable:
    """Return `fun` with its first arguments given, recorded at the first call and replayed at later ones.

    It is :func:`fad.jit`: unlike autograd's, it records again where the program takes another path.

    >>> float(const_graph(lambda x, y: x * y, 3.0)(2.0))
    6.0
    """
    return fad.jit(functools.partial(fun, *args, **kwargs))
