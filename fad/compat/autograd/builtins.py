"""Python's containers: autograd has its own that can be traced; fad's pytrees take the plain ones."""

from __future__ import annotations

from builtins import dict, isinstance, list, tuple, type  # noqa: UP029  (this module exists to hold these names)

__all__ = ["dict", "isinstance", "list", "tuple", "type"]
