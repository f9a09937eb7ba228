"""Python's float and complex as programs call them on traced values, which stay what they are: ``float(x)``.

Python makes a plain number of what it converts, which would lose the derivative. Where a program failed by that, the
names stand for these classes in its module while a transform runs (`fad.core.overlay`). They convert traced numbers to
traced Python numbers, and are Python's own for all else: to NumPy as dtypes, in ``isinstance``, as keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.conversions import OFFERED
from fad.core.overlay import BUILTINS
from fad.core.primitive import bind
from fad.core.tracer import Trace, Tracer
from fad.ops.conversion import python_number_p


class _Kind(type):
    """The class of what stands for one of Python's classes of numbers."""

    original: Any
    convert: Callable

    def __call__(cls, *args: Any, **options: Any) -> Any:
        traced = any(type(x) is Tracer and x.owner is not Trace.of_plain for x in (*args, *options.values()))
        return (cls.convert if traced else cls.original)(*args, **options)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.original)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.original)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.original

    def __hash__(cls) -> int:
        return hash(cls.original)


def _take_scalar(x: Any) -> Any:
    if x.size != 1:
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    return x.reshape(()) if x.shape else x


def _to_float(x: Any) -> Any:
    x = _take_scalar(x)
    if x.dtype.kind == "c":
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    return bind(python_number_p, x) if x.dtype.kind == "f" else x * 1.0


def _to_complex(real: Any = 0.0, imag: Any = None) -> Any:
    parts = [x if type(x) is not Tracer else bind(python_number_p, x) for x in (real, imag)]
    return parts[0] + (0j if parts[1] is None else parts[1] * 1j)


def _make(original: type, convert: Callable) -> type:
    space = {"original": original, "convert": staticmethod(convert), "dtype": np.dtype(original)}
    return _Kind(original.__name__, (original,), {**space, "__doc__": original.__doc__})


BUILTINS.update(float=_make(float, _to_float), complex=_make(complex, _to_complex))
OFFERED.append(lambda name: name in BUILTINS)
