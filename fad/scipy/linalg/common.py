"""Shared by ``fad.scipy.linalg``: SciPy's functions on stacks of matrices, and sample matrices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from fad.backends.counterparts import ScipyModule
from fad.core.primitives.primitive import public
from fad.errors import MissingRuleError
from fad.ops.layout.memory_order import in_order
from fad.scipy.linalg import formulas

sl = ScipyModule("linalg", formulas)  # SciPy's functions, and what a device has in their place


def scipy_function(name: str, order: str | None = None, **notes: Any) -> Callable:
    """Register a function under SciPy's name: plain arguments go to SciPy itself.

    Arguments that this version of SciPy's function does not have are refused for traced ones too. `order` is "F" where
    SciPy returns the matrices as LAPACK laid them out.
    """
    theirs = getattr(scipy.linalg, name)
    register = public(theirs, name=f"scipy.linalg.{name}", **notes)

    def register_function(function):
        function = without_newer_arguments(function, theirs)
        return register(function if order is None else in_order(function, order))

    return register_function


def without_newer_arguments(function: Callable, theirs: Callable) -> Callable:
    newer = set(inspect.signature(function).parameters) - set(inspect.signature(theirs).parameters)
    if not newer:
        return function

    @functools.wraps(function)
    def refusing(*args: Any, **kwargs: Any) -> Any:
        for name in newer & set(kwargs):
            raise TypeError(f"{theirs.__name__}() of SciPy {scipy.__version__} has no argument {name!r}")
        return function(*args, **kwargs)

    return refusing


def double(a: Any) -> Any:
    """Return an array in double precision: what some of SciPy's functions always give."""
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def definite(s: Any, n: int) -> Any:
    """Return a sample of a Hermitian positive-definite matrix."""
    x = s.real(n, n)
    return x @ np.conjugate(x.T) + 2.0 * np.eye(n, dtype=x.dtype)


def regular(s: Any, n: int, shift: float = 5.0) -> Any:
    """Return a sample of a matrix well away from singular ones, with its eigenvalues near `shift`."""
    x = s.real(n, n)
    return x + shift * np.eye(n, dtype=x.dtype)


def refuse_options(**options: Any) -> None:
    """Raise for an option of SciPy's that has no rule."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise MissingRuleError(f"{name}={value!r} has no rule for traced matrices; leave it out")
