"""autograd.misc.flatten: nested containers as one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad import tree

__all__ = ["flatten", "flatten_func"]


def flatten(value: Any) -> tuple[Any, Callable]:
    """Return ``(vector, unflatten)``.

    >>> import numpy as np
    >>> flat, unflatten = flatten([np.ones(2), 3.0])
    >>> flat
    array([1., 1., 3.])
    """
    return tree.ravel(value)


def flatten_func(func: Callable, example: Any) -> tuple[Callable, Callable, Any]:
    """Return the function on vectors, the unflattener, and the example as a vector.

    >>> f, _, x = flatten_func(lambda p: p[0] * p[1], [2.0, 3.0])
    >>> import fad
    >>> fad.grad(f)(x)
    array([3., 2.])
    """
    flat, unflatten = flatten(example)

    return (lambda x, *args: func(unflatten(x), *args)), unflatten, flat
