"""Python's containers: autograd has its own that can be traced; fad's pytrees take the plain ones.

``isinstance`` is Python's own, for a traced array is an instance of what it stands for; ``type`` answers alike.
"""

from __future__ import annotations

import builtins
from builtins import dict, isinstance, list, tuple  # noqa: UP029  (this module exists to hold these names)
from typing import Any

__all__ = ["dict", "isinstance", "list", "tuple", "type"]


def type(x: Any) -> builtins.type:
    """Return the type of a value, or of the value that a traced one stands for.

    >>> type([1.0])
    <class 'list'>
    """
    return x.__class__
