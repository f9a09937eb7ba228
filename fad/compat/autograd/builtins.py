"""Python's containers: autograd has its own that can be traced; fad's pytrees take the plain ones.

``isinstance`` and ``type`` answer for the value that a traced array stands for.
"""

from __future__ import annotations

import builtins
from builtins import dict, list, tuple  # noqa: UP029  (this module exists to hold these names)
from typing import Any

from fad.core.tracer import stop_gradient

__all__ = ["dict", "isinstance", "list", "tuple", "type"]


def isinstance(x: Any, kinds: Any) -> bool:
    """Tell whether a value, or the value that a traced one stands for, is of a kind.

    >>> import fad
    >>> import numpy as np
    >>> fad.grad(lambda x: np.sum(x) if isinstance(x, np.ndarray) else 0.0)(np.ones(2))
    array([1., 1.])
    """
    return builtins.isinstance(stop_gradient(x), kinds)


def type(x: Any) -> builtins.type:
    """Return the type of a value, or of the value that a traced one stands for.

    >>> type([1.0])
    <class 'list'>
    """
    return builtins.type(stop_gradient(x))
