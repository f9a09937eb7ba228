"""autograd.test_util: checking derivatives against finite differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import fad
from fad import tree
from fad.compat.autograd.operators import _nary
from fad.compat.autograd.vspaces import vspace
from fad.errors import GradientCheckError
from fad.testing import check_grads as _check_grads

__all__ = ["check_equivalent", "check_grads", "combo_check", "scalar_close"]


@_nary
def check_grads(f: Callable, x: Any, modes: Any = None, order: int = 2) -> None:
    """Return a function of the arguments of `f` that raises unless its derivatives agree with finite differences.

    Parameters
    ----------
    f : callable
    argnum : int or tuple of int
        The arguments to differentiate.
    modes : list of "fwd" and "rev"
        By default both.
    order : int
        Up to which derivative to check.

    Examples
    --------
    >>> check_grads(np.sin, order=2)(0.3)
    """
    _check(f, x, ("fwd", "rev") if modes is None else tuple(modes), order)


def _check(f: Callable, x: Any, modes: tuple, order: int) -> None:
    name = getattr(f, "__name__", "[unknown name]")
    for mode in modes:
        try:
            # A step as small as autograd's own does not reach the next kink of a random point; so does its tolerance.
            _check_grads(f, (x,), order=1, modes=(mode,), eps=1e-5, rtol=2e-6)
        except GradientCheckError as error:
            kind = "JVP" if mode == "fwd" else "VJP"
            raise GradientCheckError(f"Derivative ({kind}) check of {name} failed: {error}") from None
        if order > 1:  # the derivative of the derivative, in the direction too, as autograd does
            derivative, direction = _derivative(f, x, mode)
            derivative.__name__ = f"{'jvp' if mode == 'fwd' else 'vjp'}_{name}"
            _check(derivative, (x, direction), modes, order - 1)


def _derivative(f: Callable, x: Any, mode: str) -> tuple[Callable, Any]:
    if mode == "fwd":
        return (lambda pair: fad.jvp(f, (pair[0],), (pair[1],))[1]), vspace(x).randn()
    return (lambda pair: fad.vjp(f, pair[0])[1](pair[1])[0]), vspace(f(x)).randn()


def combo_check(fun: Callable, *check_args: Any, **check_kwargs: Any) -> Callable:
    """Return a function that checks every combination of the positional arguments and keyword arguments it is given.

    >>> combo_check(np.power, (0, 1), order=1)([2.0, 3.0], [1.0, 2.0])
    """

    def check(*choices, **named):
        for args in itertools.product(*choices):
            for values in itertools.product(*named.values()):
                check_grads(fun, *check_args, **check_kwargs)(*args, **dict(zip(named, values, strict=True)))

    return check


def check_equivalent(x: Any, y: Any) -> None:
    """Raise unless two values have the same structure and nearly the same numbers.

    >>> check_equivalent([1.0], [1.0 + 1e-9])
    """
    assert tree.structure(x) == tree.structure(y), f"{tree.structure(x)} is not {tree.structure(y)}"
    for a, b in zip(tree.leaves(x), tree.leaves(y), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def scalar_close(a: Any, b: Any) -> bool:
    """Return whether two numbers agree to 1e-6, absolutely or relatively.

    >>> scalar_close(1.0, 1.0 + 1e-9)
    True
    """
    return bool(abs(a - b) < 1e-6 or abs(a - b) / abs(a + b) < 1e-6)
