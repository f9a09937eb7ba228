"""Attributes that only those tracers have whose plain value has them: ``hasattr`` answers as for the plain value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad.errors import RefusedAttributeError


class OwnAttribute:
    """An attribute of tracers, ``get(x)``, which those lack whose plain value lacks it.

    `instead` says what to write for it then.
    """

    __slots__ = ("name", "get", "instead")

    def __init__(self, name: str, get: Callable, instead: str = ""):
        self.name = name
        self.get = get
        self.instead = instead

    def __get__(self, x: Any, _: Any = None) -> Any:
        if x is None:
            return self
        kind = x.__class__
        if not hasattr(kind, self.name):
            instead = f": {self.instead}" if self.instead else ""
            raise RefusedAttributeError(f"{kind.__name__!r} object has no attribute {self.name!r}{instead}")
        return self.get(x)
