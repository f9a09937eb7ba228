"""What arrays of a length that only a loop's body knows have in common: how they stand where an array is expected.

What such an array cannot do is no error: the body is not recorded, and its loop runs step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from fad.core.primitives.primitive import Primitive
from fad.core.tracing.tracer import bind


class ArrayOfTracedLength(NDArrayOperatorsMixin):
    """An array whose length is a traced value; `functions` are those of NumPy that take it, and its methods by name."""

    __slots__ = ()

    functions: ClassVar[dict[Any, Callable]]

    def refuse(self, what: str) -> NoReturn:
        """End the recording of the body, and say what it did."""
        raise NotImplementedError

    @staticmethod
    def apply_elementwise(call: Callable, operands: Any) -> Any:
        """Apply an elementwise function to such arrays and others."""
        raise NotImplementedError

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray

    def __getattr__(self, name: str) -> Any:
        method = self.functions.get(name)
        if method is None:
            self.refuse(f"it uses .{name}")
        return lambda *args, **options: method(self, *args, **options)

    def __array_function__(self, func: Callable, types: Any, args: tuple, kwargs: dict) -> Any:
        function = self.functions.get(func)
        if function is None:
            self.refuse(f"it calls {getattr(func, '__name__', func)}")
        return function(*args, **kwargs)

    __fad_function__ = True  # a traced array leaves NumPy's functions to this class

    @staticmethod
    def __fad_bind__(prim: Primitive, args: tuple, params: dict) -> Any:
        x = next(x for x in args if issubclass(type(x), ArrayOfTracedLength))
        if prim.archetype not in ("elementwise", "selection"):
            x.refuse(f"it takes {prim.name}")
        return x.apply_elementwise(lambda *xs: bind(prim, *xs, **params), args)
