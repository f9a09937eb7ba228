"""The method ``__len__`` of tracers: those that stand for a number lack it, as NumPy's scalars do."""

from __future__ import annotations

from types import MethodType
from typing import Any


class _NoLength(TypeError, AttributeError):
    """What a number's ``len(x)`` and ``x.__len__`` raise: ``hasattr(x, "__len__")`` is False, as of NumPy's scalars."""


class Length:
    """The method ``__len__`` of tracers, which those that stand for a number lack."""

    def __get__(self, x: Any, _: Any = None) -> Any:
        if x is None:
            return self
        shape = x.owner.shape(x)
        if not shape and not hasattr(x.__class__, "__len__"):
            raise _NoLength(f"object of type {x.__class__.__name__!r} has no len()")
        return MethodType(first_length, shape)


def first_length(shape: tuple[int, ...]) -> int:
    if not shape:
        raise TypeError("len() of unsized object: the array has no axis")
    return shape[0]
