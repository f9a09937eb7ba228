"""autograd.util: a check of gradients under its older name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad.compat.autograd.test_util import check_grads

__all__ = ["func", "quick_grad_check"]


def func(f: Callable) -> Callable:
    """Return a function as it is: the unbound method of a class, in Python 3."""
    return f



def quick_grad_check(fun: Callable, arg0: Any, extra_args: Any = (), kwargs: dict | None = None, **_: Any) -> None:
    """Raise unless the gradient in the first argument agrees with finite differences; new code uses `check_grads`.

    >>> quick_grad_check(lambda x, y: x**2 + y, 1.0, (2.0,))
    """
    check_grads(lambda x: fun(x, *extra_args, **(kwargs or {})), modes=["rev"], order=1)(arg0)
