"""Functions that bring values to a common scale: means subtracted, sizes divided by."""

from __future__ import annotations

import numpy as np

from fad.ops.products.pooling import avg_pool
from fad.typing import Array

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm",
]  # fmt: skip


def normalize(x: Array, axis: int = -1, eps: float = 1e-12) -> Array:
    """Return x divided by its Euclidean norm along an axis, or by `eps` where that is larger.

    >>> fad.nn.functional.normalize(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    return x / np.maximum(np.linalg.norm(x, axis=axis, keepdims=True), eps)


def layer_norm(
    x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5, axes: int = 1
) -> Array:
    """Return x with mean 0 and variance 1 over its last `axes` axes, times weight, plus bias.

    >>> fad.nn.functional.layer_norm(np.array([1.0, 3.0])).round(3)
    array([-1.,  1.])
    """
    over = tuple(range(-axes, 0))
    centred = x - np.mean(x, axis=over, keepdims=True)
    y = centred / np.sqrt(np.mean(centred * centred, axis=over, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def group_norm(
    x: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Return (batch, channels, ...) with mean 0 and variance 1 in each group of channels of each example, times weight,
    plus bias, both of shape (channels,).

    >>> fad.nn.functional.group_norm(np.array([[1.0, 3.0]]), 1).round(3)
    array([[-1.,  1.]])
    """
    channels = x.shape[1]
    if channels % num_groups:
        raise ValueError(
            f"group_norm of {channels} channels needs a number of groups that divides them, not {num_groups}"
        )
    y = layer_norm(x.reshape(x.shape[0], num_groups, -1), eps=eps).reshape(x.shape)
    along = (-1,) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * weight.reshape(along)
    return y if bias is None else y + bias.reshape(along)


def rms_norm(x: Array, weight: Array | None = None, eps: float | None = None, axes: int = 1) -> Array:
    """Return x divided by the root of its mean square over its last `axes` axes, times weight.

    `eps` is by default the spacing of the dtype at 1, as in PyTorch.

    >>> fad.nn.functional.rms_norm(np.array([3.0, 4.0])).round(3)
    array([0.849, 1.131])
    """
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    y = x / np.sqrt(np.mean(x * x, axis=tuple(range(-axes, 0)), keepdims=True) + eps)
    return y if weight is None else y * weight


def batch_norm(
    x: Array, mean: Array | None = None, var: Array = None, weight: Array | None = None,
    bias: Array | None = None, eps: float = 1e-5,
) -> Array:  # fmt: skip
    """Return (batch, channels, ...) with the mean of each channel subtracted, divided by its standard deviation, times
    weight, plus bias: all of shape (channels,). Without `mean` and `var`, those of x are taken.

    >>> fad.nn.functional.batch_norm(np.array([np.array([0.0]), np.array([2.0])])).round(3)
    array([[-1.],
           [ 1.]])
    """
    over, along = (0, *range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
    if mean is None:
        mean = np.mean(x, axis=over)
        centred = x - mean.reshape(along)
        var = np.mean(centred * centred, axis=over)
    else:
        centred = x - mean.reshape(along)
    scale = 1.0 / np.sqrt(var + eps)
    y = centred * (scale if weight is None else scale * weight).reshape(along)
    return y if bias is None else y + bias.reshape(along)


def instance_norm(x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Array:
    """Return (batch, channels, ...) with mean 0 and variance 1 in each channel of each example, times weight, plus
    bias, both of shape (channels,) (D. Ulyanov et al., 2016).

    >>> instance_norm(np.array([[[1.0, 3.0]]])).round(2)
    array([[[-1.,  1.]]])
    """
    return group_norm(x, x.shape[1], weight, bias, eps)


def local_response_norm(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Array:
    """Return (batch, channels, ...) divided by ``(k + alpha mean)^beta``, the mean of squares over `size` channels
    around (A. Krizhevsky et al., 2012).

    >>> fad.nn.functional.local_response_norm(np.ones((1, 3, 2)), 2).shape
    (1, 3, 2)
    """
    rows = (x * x).reshape(x.shape[0], 1, x.shape[1], -1)
    mean = avg_pool(rows, (size, 1), 1, ((size // 2, (size - 1) // 2), (0, 0)))
    return x / (k + alpha * mean.reshape(x.shape)) ** beta
