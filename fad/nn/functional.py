"""Activations and layers as functions, in PyTorch's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.tracer import bind
from fad.nn.fused import affine, log_softmax_p, relu, softmax_p
from fad.nn.losses import cross_entropy
from fad.ops.structural import normalize_axis

__all__ = ["cross_entropy", "linear", "log_softmax", "relu", "softmax"]


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``x @ weight.T + bias``: x of shape (..., in), weight (out, in), bias (out,), result (..., out).

    >>> linear(np.ones(2), np.array([[1.0, 2.0]]), np.array([0.5]))
    array([3.5])
    """
    return x @ weight.T if bias is None else bind(affine, x, weight, bias)


def softmax(x: Any, axis: int = -1) -> Any:
    """Return exp(x) / sum(exp(x)) along an axis, without overflow.

    >>> softmax(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    return bind(softmax_p, x, axis=normalize_axis(axis, x.ndim))


def log_softmax(x: Any, axis: int = -1) -> Any:
    """Return the logarithm of :func:`softmax`, accurate where that underflows.

    >>> log_softmax(np.array([0.0, 1000.0]))
    array([-1000.,     0.])
    """
    return bind(log_softmax_p, x, axis=normalize_axis(axis, x.ndim))
