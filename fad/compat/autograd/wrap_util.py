"""autograd.wrap_util's public names, for programs that define differential operators of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad.compat.autograd.operators import _nary as unary_to_nary

__all__ = ["unary_to_nary", "wraps"]


def wraps(fun: Callable, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any) -> Callable:
    """Return a decorator that gives a function the name and docstring of another, put into templates.

    >>> wraps(abs, "grad_of_{fun}")(lambda x: x).__name__
    'grad_of_abs'
    """

    def name(f: Any) -> Any:
        own = getattr(fun, "__name__", "[unknown name]")
        f.__name__ = namestr.format(fun=own, **kwargs)
        f.__doc__ = docstr.format(fun=own, doc=getattr(fun, "__doc__", ""), **kwargs)
        return f

    return name
