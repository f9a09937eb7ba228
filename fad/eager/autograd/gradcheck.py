"""Comparing gradients with finite differences."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.autograd.gradients import as_list, grad
from fad.eager.errors import BackwardError
from fad.eager.tensor import Tensor
from fad.errors import GradientCheckError


class GradcheckError(GradientCheckError, RuntimeError):
    """A gradient differs from finite differences; the message says of which output with respect to which input."""


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare the gradients of a function with central differences, for every input that requires grad.

    Inputs should be float64: in float32 differences are too coarse, and a warning says so.

    Returns True; on a difference raises GradcheckError, or returns False if not `raise_exception`.

    >>> import fad.eager as torch
    >>> gradcheck(torch.sin, torch.tensor([0.3], dtype=torch.float64, requires_grad=True))
    True
    """
    xs = as_list(inputs)
    checked = [i for i, x in enumerate(xs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise BackwardError("gradcheck needs at least one input that requires grad")
    for i in checked:
        if xs[i].dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"input {i} of gradcheck has dtype {xs[i].dtype}; finite differences need float64", stacklevel=2
            )
    try:
        for k, y in enumerate(as_list(func(*xs))):
            if isinstance(y, Tensor) and y.requires_grad:
                _compare(func, xs, checked, k, y, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _compare(func: Callable, xs: list, checked: list, k: int, y: Tensor, eps: float, atol: float, rtol: float) -> None:
    for i in checked:
        x = xs[i]
        by_real = _numerical(func, xs, i, k, eps)
        by_imaginary = _numerical(func, xs, i, k, eps * 1j) if x.dtype.kind == "c" else None
        for j, v in itertools.product(range(y.value.size), (1.0, 1j) if y.dtype.kind == "c" else (1.0,)):
            unit = np.zeros(y.value.size, y.dtype)
            unit[j] = v
            (g,) = grad(y, x, Tensor(unit.reshape(y.shape)), retain_graph=True, allow_unused=True)
            row = np.zeros(x.value.size) if g is None else g.detach().value.reshape(-1)
            # The gradient is that of the real number Re(conj(v) y_j), by the real and by the imaginary part.
            expected = (np.conj(v) * by_real[:, j]).real
            if by_imaginary is not None:
                expected = expected + 1j * (np.conj(v) * by_imaginary[:, j]).real
            if not np.allclose(row, expected, rtol, atol):
                raise GradcheckError(
                    f"the gradient of element {j} of output {k} with respect to input {i} is {row}, "
                    f"but finite differences give {expected}"
                )


def _numerical(func: Callable, xs: list, i: int, k: int, step: complex) -> np.ndarray:
    """Return the derivatives of output `k` by each element of input `i` along a step, one row per element."""
    x = xs[i].detach().value
    rows = []
    for place in np.ndindex(x.shape):
        sides = []
        for sign in (1, -1):
            moved = np.array(x)
            moved[place] += sign * step
            y = as_list(func(*xs[:i], Tensor(moved).requires_grad_(), *xs[i + 1 :]))[k]
            sides.append(y.detach().value.reshape(-1))
        rows.append((sides[0] - sides[1]) / (2 * abs(step)))
    return np.array(rows).reshape(x.size, -1)


def gradgradcheck(func: Callable, inputs: Any, grad_outputs: Any = None, **options: Any) -> bool:
    """Compare second derivatives with differences of the first ones; options as in :func:`gradcheck`."""
    xs = as_list(inputs)
    outputs = [y for y in as_list(func(*xs)) if y.requires_grad]
    rng = np.random.default_rng(0)
    vs = (
        [Tensor(np.asarray(rng.standard_normal(y.shape)).astype(y.dtype)).requires_grad_() for y in outputs]
        if grad_outputs is None
        else as_list(grad_outputs)
    )
    n = len(xs)

    def first(*args):
        ins = [x for x in args[:n] if isinstance(x, Tensor) and x.requires_grad]
        ys = [y for y in as_list(func(*args[:n])) if y.requires_grad]
        found = grad(ys, ins, list(args[n:]), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(first, [*xs, *vs], **options)
