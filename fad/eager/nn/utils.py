"""Clipping gradients, and parameters as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.eager.mode import no_grad
from fad.eager.shaping import cat
from fad.eager.tensor import Tensor


def clip_grad_norm_(parameters: Any, max_norm: float) -> Tensor:
    """Scale all gradients so that their common Euclidean norm is at most `max_norm`; return the norm before."""
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [p.grad for p in parameters if p.grad is not None]
    total = float(np.sqrt(sum(float(np.sum(np.abs(g.value.astype(float)) ** 2)) for g in grads)))
    if total > max_norm:
        for g in grads:
            g.detach().mul_(max_norm / (total + 1e-6))
    return Tensor(np.asarray(total, np.float32))


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
