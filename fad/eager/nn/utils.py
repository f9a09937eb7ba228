"""Gradient clipping."""

from __future__ import annotations

from typing import Any

import numpy as np

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


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Limit every element of every gradient to ±clip_value."""
    for p in [parameters] if isinstance(parameters, Tensor) else list(parameters):
        if p.grad is not None:
            p.grad.detach().clamp_(-clip_value, clip_value)
