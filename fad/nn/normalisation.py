"""Layers that bring activations to a common scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.nn import functional as F
from fad.nn import init
from fad.nn.module import Buffer, Module
from fad.typing import Array, DTypeLike


class BatchNorm(Module):
    """What the batch normalisations share: see `BatchNorm1d` and `BatchNorm2d`.

    In training mode the statistics of the batch are used, and averaged into the buffers ``running_mean`` and
    ``running_var`` (the latter with n - 1, as in PyTorch); in evaluation mode the averages are used.
    Under ``vmap`` the buffers get the mean over the batch. `momentum` None is a plain average over batches.
    """

    ranks: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ):
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.weight = init.ones(num_features, dtype) if affine else None
        self.bias = init.zeros(num_features, dtype) if affine else None
        self.track_running_stats = track_running_stats
        if track_running_stats:
            self.running_mean = Buffer(init.zeros(num_features, dtype))
            self.running_var = Buffer(init.ones(num_features, dtype))
            self.num_batches_tracked: Any = Buffer(np.array(0))

    def forward(self, x: Array) -> Array:
        if x.ndim not in self.ranks or x.shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__} of {self.num_features} features needs an input of "
                f"{' or '.join(map(str, self.ranks))} axes with {self.num_features} on axis 1, not shape {x.shape}"
            )
        if self.training or not self.track_running_stats:
            mean, var = self._measure(x)
        else:
            mean, var = self.running_mean, self.running_var
        return F.batch_norm(x, mean, var, self.weight, self.bias, self.eps)

    def _measure(self, x: Any) -> tuple:
        n, mean, var = self._moments(x, (0, *range(2, x.ndim)))
        if n < 2:
            raise ValueError(f"BatchNorm in training mode needs more than one value per feature, not input {x.shape}")
        if self.training and self.track_running_stats:
            count = self.num_batches_tracked + 1
            share = 1.0 / float(count) if self.momentum is None else self.momentum
            self.num_batches_tracked = count
            self.running_mean = _average(self.running_mean, mean, share)
            self.running_var = _average(self.running_var, var * (n / (n - 1)), share)
        return mean, var

    def _moments(self, x: Any, over: tuple) -> tuple:
        """Return how many values there are of each feature, their mean and their variance."""
        n = x.size // x.shape[1]
        if n < 2:
            return n, None, None
        mean = np.mean(x, axis=over)
        centred = x - mean.reshape((1, -1) + (1,) * (x.ndim - 2))
        return n, mean, np.mean(centred * centred, axis=over)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


def _average(old: Any, new: Any, share: float) -> Any:
    out = (1.0 - share) * old + share * new
    return out if out.dtype == old.dtype else out.astype(old.dtype)


class BatchNorm1d(BatchNorm):
    """Batch normalisation of (batch, features) or (batch, features, length).

    >>> layer = BatchNorm1d(2)
    >>> layer(np.array([[0.0, 1.0], [2.0, 5.0]])).round(2)
    array([[-1., -1.],
           [ 1.,  1.]])
    >>> layer.running_mean
    array([0.1, 0.3])
    """

    ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """Batch normalisation of (batch, channels, height, width).

    >>> fad.nn.BatchNorm2d(3)(np.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    ranks = (4,)


class BatchNorm3d(BatchNorm):
    """Batch normalisation of (batch, channels, depth, height, width).

    >>> fad.nn.BatchNorm3d(3)(np.ones((2, 3, 2, 4, 4))).shape
    (2, 3, 2, 4, 4)
    """

    ranks = (5,)


class SyncBatchNorm(BatchNorm):
    """Batch normalisation by the statistics of the batches of all ranks together, for inputs of 2 to 5 axes.

    The ranks are those of `fad.distributed.init`. A gradient is that of `fad.distributed.value_and_grad` or `grad`.

    >>> SyncBatchNorm(2)(np.array([[0.0, 1.0], [2.0, 5.0]])).round(2)
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    ranks = (2, 3, 4, 5)

    def _moments(self, x: Any, over: tuple) -> tuple:
        from fad.distributed.collectives import all_reduce

        sums = np.sum(x, axis=over)
        count = np.full_like(sums[:1], x.size // x.shape[1])
        sums = all_reduce(np.concatenate([sums, count]))
        n, mean = sums[-1], sums[:-1] / sums[-1]
        centred = x - mean.reshape((1, -1) + (1,) * (x.ndim - 2))
        return n, mean, all_reduce(np.sum(centred * centred, axis=over)) / n


class InstanceNorm(BatchNorm):
    """What the instance normalisations share: each channel of each example has mean 0 and variance 1.

    As in PyTorch there is nothing to learn unless `affine`, and with `track_running_stats` means over the batch are
    kept in buffers and used in evaluation mode. The input may lack its batch axis.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = False,
        track_running_stats: bool = False, *, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype=dtype)

    def forward(self, x: Array) -> Array:
        whole = self.ranks[-1]
        if x.ndim not in self.ranks or x.shape[x.ndim - whole + 1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__} of {self.num_features} features needs an input of {whole} axes with "
                f"{self.num_features} on axis 1, or one example of that, not shape {x.shape}"
            )
        if x.ndim < whole:
            return self.forward(x[None])[0]
        if self.track_running_stats and not self.training:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, self.eps)
        if x[0, 0].size < 2:
            raise ValueError(f"{type(self).__name__} needs more than one value per channel, not input {x.shape}")
        if self.track_running_stats:
            self._keep(x)
        return F.instance_norm(x, self.weight, self.bias, self.eps)

    def _keep(self, x: Any) -> None:
        over = tuple(range(2, x.ndim))
        mean, var = np.mean(np.mean(x, axis=over), axis=0), np.mean(np.var(x, axis=over, ddof=1), axis=0)
        share = 0.0 if self.momentum is None else self.momentum  # as in PyTorch: without it they stay as they are
        self.running_mean = _average(self.running_mean, mean, share)
        self.running_var = _average(self.running_var, var, share)


class InstanceNorm1d(InstanceNorm):
    """Instance normalisation of (batch, channels, length).

    >>> InstanceNorm1d(1)(np.array([[[1.0, 3.0]]])).round(2)
    array([[[-1.,  1.]]])
    """

    ranks = (2, 3)


class InstanceNorm2d(InstanceNorm):
    """Instance normalisation of (batch, channels, height, width).

    >>> fad.nn.InstanceNorm2d(3)(np.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    ranks = (3, 4)


class InstanceNorm3d(InstanceNorm):
    """Instance normalisation of (batch, channels, depth, height, width).

    >>> fad.nn.InstanceNorm3d(3)(np.ones((2, 3, 2, 4, 4))).shape
    (2, 3, 2, 4, 4)
    """

    ranks = (4, 5)


class LocalResponseNorm(Module):
    """Each value divided by a mean of squares over `size` channels around: see `functional.local_response_norm`.

    >>> fad.nn.LocalResponseNorm(2)(np.ones((1, 3, 2, 2))).shape
    (1, 3, 2, 2)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x: Array) -> Array:
        return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class GroupNorm(Module):
    """Mean 0 and variance 1 in each of `num_groups` groups of channels of each example, times weight, plus bias.

    >>> GroupNorm(1, 2)(np.array([[1.0, 3.0]])).round(2)
    array([[-1.,  1.]])
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *,
        dtype: DTypeLike | None = None,
    ):  # fmt: skip
        if num_channels % num_groups:
            raise ValueError(f"num_channels={num_channels} must be a multiple of num_groups={num_groups}")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.weight = init.ones(num_channels, dtype) if affine else None
        self.bias = init.zeros(num_channels, dtype) if affine else None

    def forward(self, x: Array) -> Array:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ValueError(
                f"GroupNorm needs an input with {self.num_channels} channels on axis 1, not shape {x.shape}"
            )
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last axes, of shape `normalized_shape`, times weight, plus bias.

    >>> LayerNorm(2)(np.array([[1.0, 3.0]])).round(2)
    array([[-1.,  1.]])
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ):
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.weight = init.ones(self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = init.zeros(self.normalized_shape, dtype) if elementwise_affine and bias else None

    def forward(self, x: Array) -> Array:
        _check_last(self, x)
        return F.layer_norm(x, self.weight, self.bias, self.eps, len(self.normalized_shape))

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """x divided by the root of its mean square over the last axes, times weight; see `functional.rms_norm`.

    >>> fad.nn.RMSNorm(2)(np.array([3.0, 4.0])).round(3)
    array([0.849, 1.131])
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ):
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.weight = init.ones(self.normalized_shape, dtype) if elementwise_affine else None

    def forward(self, x: Array) -> Array:
        _check_last(self, x)
        return F.rms_norm(x, self.weight, self.eps, len(self.normalized_shape))

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


def _as_shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _check_last(layer: Any, x: Any) -> None:
    n = len(layer.normalized_shape)
    if x.shape[-n:] != layer.normalized_shape:
        raise ValueError(
            f"{type(layer).__name__} of shape {layer.normalized_shape} needs an input that ends with it, not {x.shape}"
        )
