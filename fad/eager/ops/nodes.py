"""How a function of tensors is made of NumPy's: one node of the graph, named as PyTorch names it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends.counterparts import with_notes
from fad.eager.core.composite import of_tensors
from fad.eager.ops.shaping import reshape
from fad.eager.tensor import Tensor, wrap


def of_numbers(fun: Callable, always: bool = False) -> Callable:
    """Return a function along an axis that takes single numbers too: they have axis 0, or -1, as well.

    Without arguments most functions need no axis; those that do `always` take them as vectors of one.
    """

    def call(input, *args, **kwargs):
        if input.ndim or not (always or args or kwargs) or isinstance(next(iter(args), None), Tensor):
            return fun(input, *args, **kwargs)
        return _as_numbers(fun(reshape(input, 1), *args, **kwargs))

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__
    return with_notes(call, __wrapped__=fun)  # its signature is that of `fun`


def _as_numbers(y: Any) -> Any:
    if isinstance(y, tuple):
        return type(y)(*map(_as_numbers, y)) if hasattr(y, "_fields") else tuple(map(_as_numbers, y))
    return reshape(y, ()) if y.value.size == 1 else y


def of_flattened(function: Callable) -> Callable:
    def reduce(input, dim=None, keepdim=False):
        return wrap(np.asarray(function(input.value, dim, keepdims=keepdim)))

    reduce.__doc__ = f"Return NumPy's {function.__name__}; it has no derivative."
    return reduce


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) + "Backward0"


def as_node(name: str, fun: Callable, linear: bool = False) -> Callable:
    """Return a function of tensors, given in the order of PyTorch; other arguments go on as they are."""

    def call(*args, **kwargs):
        return of_tensors(_title(name), fun, args, kwargs, linear)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return PyTorch's {name} of tensors, as NumPy or fad computes it."
    return call


def special_function(name: str) -> Callable:
    def fun(*xs):
        return getattr(importlib.import_module("fad.scipy.special"), name)(
            *xs
        )  # needs SciPy, so not before it is called

    return fun


def join_node(name: str, fun: Callable) -> Callable:
    join = as_node(name, lambda *xs: fun(xs), linear=True)
    call = lambda tensors: join(*tensors)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return the tensors joined as NumPy's {name} does."
    return call


def without_derivative(name: str, fun: Callable) -> Callable:
    def call(*args, **kwargs):
        y = fun(*(np.asarray(x.detach()) if isinstance(x, Tensor) else x for x in args), **kwargs)
        return Tensor(np.asarray(y))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return PyTorch's {name} of tensors; it has no derivative."
    return call


def as_array(x: Any) -> np.ndarray:
    return np.asarray(x.detach() if isinstance(x, Tensor) else x)
