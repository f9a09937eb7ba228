"""The methods ``__len__`` and ``__iter__`` of tracers: those that stand for a number lack them, as NumPy's scalars."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType, MethodType
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


class Iteration:
    """The method ``__iter__`` of tracers, which those that stand for a number lack.

    ``iter(x)`` and ``hasattr(x, "__iter__")`` both come here. An AttributeError would make Python's iteration go on
    by indices, so that it is raised only where the code that asks names the method.
    """

    def __get__(self, x: Any, _: Any = None) -> Any:
        if x is None:
            return self
        if not x.owner.shape(x) and not hasattr(x.__class__, "__iter__"):
            asking = sys._getframe(1)
            if _names_iter(asking.f_code, asking.f_lasti):
                raise AttributeError(f"{x.__class__.__name__!r} object has no attribute '__iter__'")
        return MethodType(_elements, x)


def _elements(x: Any) -> Any:
    shape = x.owner.shape(x)
    if not shape:
        raise TypeError("iteration over a 0-d array")
    return (x[i] for i in range(shape[0]))


@functools.lru_cache(maxsize=1024)
def _names_iter(code: CodeType, place: int) -> bool:
    """Return whether an instruction asks for ``__iter__``: by a dot, or by a call with this name among the last two."""
    before = [i for i in dis.get_instructions(code) if i.offset <= place and i.opname not in ("PRECALL", "CACHE")]
    return any(i.argval == "__iter__" for i in before[-3:])


class Seen(type):
    """The class of the class of tracers, of which the abstract classes of ``collections.abc`` see no methods.

    ``isinstance(x, Iterable)`` looks for methods in ``x.__class__``, the class of what a tracer stands for, and then in
    the class of the tracer too, which has the methods of arrays.
    """

    @property
    def __mro__(cls) -> tuple[type, ...]:  # type: ignore[override]
        return (_Plain, object)


class _Plain:
    __hash__ = None  # type: ignore[assignment]
