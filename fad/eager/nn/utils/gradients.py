"""Clipping gradients, and parameters as one vector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.eager.core.mode import no_grad
from fad.eager.ops.shaping import cat
from fad.eager.tensor import Tensor


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """Scale all gradients so that their common norm, by default the Euclidean, is at most `max_norm`; return the norm
    before."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [p.grad for p in parameters if p.grad is not None]
    total = _norm([np.abs(g.value).astype(float) for g in grads], float(norm_type))
    if error_if_nonfinite and not np.isfinite(total):
        raise RuntimeError(f"the norm of the gradients, {total}, cannot be clipped; fad.debug.nans finds the cause")
    if total > max_norm or not np.isfinite(total):
        for g in grads:
            g.detach().mul_(min(max_norm / (total + 1e-6), 1.0))
    return Tensor(np.asarray(total, np.float32))


def _norm(sizes: list, p: float) -> float:
    if not sizes:
        return 0.0
    if math.isinf(p):
        return float(max(np.max(x, initial=0.0) for x in sizes))
    return float(sum(float(np.sum(x**p)) for x in sizes) ** (1.0 / p))


def parameters_to_vector(parameters: Any) -> Tensor:
    """Return all parameters as one vector; gradients flow through."""
    return cat([p.reshape(-1) for p in parameters])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Any) -> None:
    """Copy the pieces of a vector into the parameters."""
    start = 0
    for p in parameters:
        p.copy_(vec[start : start + p.numel()].view_as(p))
        start += p.numel()


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Limit every element of every gradient to ±clip_value."""
    for p in [parameters] if isinstance(parameters, Tensor) else list(parameters):
        if p.grad is not None:
            p.grad.detach().clamp_(-clip_value, clip_value)
