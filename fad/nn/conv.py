"""Convolution and pooling layers, in PyTorch's names and layouts: (batch, channels, *spatial), or without the batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fad import random
from fad.nn import functional as F
from fad.nn import init
from fad.nn.module import Module
from fad.nn.windows import pool_avg, pool_max
from fad.ops.products.conv import conv, conv_transpose
from fad.ops.products.windows import pads, per_axis
from fad.typing import Array, DTypeLike, Key


class Conv(Module):
    """What convolutions share: weight (out, in / groups, *kernel), bias (out,), both uniform in ±1/√fan_in.

    `padding_mode` says what is put around the input: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
    """

    dims = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", *, key: Key | None = None, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} and {out_channels} channels must be multiples of groups={groups}")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode must be zeros, reflect, replicate or circular, not {padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_axis(kernel_size, self.dims, "kernel_size")
        self.stride = stride
        self.padding = padding
        self.padding_mode = padding_mode
        self.dilation = dilation
        self.groups = groups
        k1, k2 = random.split(init.next_key(key))
        shape = self._weight_shape()
        bound = 1.0 / math.sqrt(shape[1] * math.prod(self.kernel_size))
        self.weight = init.uniform(k1, shape, -bound, bound, dtype)
        self.bias = init.uniform(k2, (out_channels,), -bound, bound, dtype) if bias else None

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def forward(self, x: Array) -> Array:
        padding = self.padding
        if self.padding_mode != "zeros":
            stride, dilation = (per_axis(v, self.dims, "stride") for v in (self.stride, self.dilation))
            pairs = pads(padding, x.shape[x.ndim - self.dims :], self.kernel_size, stride, dilation)
            x, padding = F.pad(x, [p for pair in pairs[::-1] for p in pair], self.padding_mode), 0
        return conv(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        usual = {"padding": 0, "dilation": 1, "groups": 1, "padding_mode": "zeros"}
        chosen = {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}
        settings = {"kernel_size": self.kernel_size, "stride": self.stride, **chosen}
        shown = [f"{name}={value!r}" for name, value in settings.items()]
        return ", ".join([str(self.in_channels), str(self.out_channels), *shown])


class Conv1d(Conv):
    """Convolution along one axis: (batch, in, length) -> (batch, out, length').

    >>> fad.nn.Conv1d(3, 8, 3, key=0)(np.ones((2, 3, 10))).shape
    (2, 8, 8)
    """

    dims = 1


class Conv2d(Conv):
    """Convolution of images: (batch, in, height, width) -> (batch, out, height', width').

    >>> import numpy as np
    >>> Conv2d(3, 8, 3, padding=1, key=0)(np.ones((2, 3, 6, 6))).shape
    (2, 8, 6, 6)
    """

    dims = 2


class Conv3d(Conv):
    """Convolution of volumes: (batch, in, depth, height, width).

    >>> fad.nn.Conv3d(3, 8, 3, key=0)(np.ones((2, 3, 4, 4, 4))).shape
    (2, 8, 2, 2, 2)
    """

    dims = 3


class ConvTranspose(Conv):
    """The transpose of a convolution, which enlarges by the stride; weight (in, out / groups, *kernel)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1, bias: bool = True,
        dilation: int | Sequence[int] = 1, *, key: Key | None = None, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        self.output_padding = output_padding
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, key=key, dtype=dtype
        )

    def _weight_shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def forward(self, x: Array) -> Array:
        return conv_transpose(
            x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.dilation, self.groups
        )


class ConvTranspose1d(ConvTranspose):
    """Transposed convolution along one axis.

    >>> fad.nn.ConvTranspose1d(3, 8, 2, stride=2, key=0)(np.ones((2, 3, 5))).shape
    (2, 8, 10)
    """

    dims = 1


class ConvTranspose2d(ConvTranspose):
    """Transposed convolution of images.

    >>> fad.nn.ConvTranspose2d(3, 8, 2, stride=2, key=0)(np.ones((2, 3, 5, 5))).shape
    (2, 8, 10, 10)
    """

    dims = 2


class ConvTranspose3d(ConvTranspose):
    """Transposed convolution of volumes.

    >>> fad.nn.ConvTranspose3d(3, 8, 2, stride=2, key=0)(np.ones((2, 3, 2, 2, 2))).shape
    (2, 8, 4, 4, 4)
    """

    dims = 3


class Pool(Module):
    """What poolings share: windows over the last axes, each `stride` (by default the window's size) from the last.

    With `ceil_mode` a window that begins in the input counts even if it ends beyond.
    """

    dims = 0

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride or self.kernel_size}, padding={self.padding}"


class MaxPool1d(Pool):
    """The maximum of windows along the last axis; ties share the derivative.

    >>> fad.nn.MaxPool1d(2)(np.arange(4.0).reshape(1, 1, 4))
    array([[[1., 3.]]])
    """

    dims = 1

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
    ):  # fmt: skip
        self.kernel_size = per_axis(kernel_size, self.dims, "kernel_size")
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.ceil_mode = ceil_mode

    def forward(self, x: Array) -> Array:
        return pool_max(x, self.dims, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool2d(MaxPool1d):
    """The maximum of windows of an image.

    >>> import numpy as np
    >>> MaxPool2d(2)(np.arange(16.0).reshape(1, 1, 4, 4))
    array([[[[ 5.,  7.],
             [13., 15.]]]])
    """

    dims = 2


class MaxPool3d(MaxPool1d):
    """The maximum of windows of a volume.

    >>> fad.nn.MaxPool3d(2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    dims = 3


class AvgPool1d(Pool):
    """The mean of windows along the last axis; padding counts as zeros unless `count_include_pad` is false.

    >>> fad.nn.AvgPool1d(2)(np.arange(4.0).reshape(1, 1, 4))
    array([[[0.5, 2.5]]])
    """

    dims = 1

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    ):  # fmt: skip
        self.kernel_size = per_axis(kernel_size, self.dims, "kernel_size")
        self.stride = stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Array) -> Array:
        return pool_avg(
            x, self.dims, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AvgPool2d(AvgPool1d):
    """The mean of windows of an image.

    >>> fad.nn.AvgPool2d(2)(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[1.5]]]])
    """

    dims = 2


class AvgPool3d(AvgPool1d):
    """The mean of windows of a volume.

    >>> fad.nn.AvgPool3d(2)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    dims = 3


class AdaptiveAvgPool1d(Module):
    """The mean of windows that cover the last axis, `output_size` in number.

    >>> fad.nn.AdaptiveAvgPool1d(2)(np.arange(4.0).reshape(1, 1, 4))
    array([[[0.5, 2.5]]])
    """

    function = staticmethod(F.adaptive_avg_pool1d)

    def __init__(self, output_size: int | Sequence[int]):
        self.output_size = output_size

    def forward(self, x: Array) -> Array:
        return self.function(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool2d(AdaptiveAvgPool1d):
    """The mean of windows that cover an image, `output_size` in number along each axis; 1 is the global mean.

    >>> fad.nn.AdaptiveAvgPool2d(1)(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[1.5]]]])
    """

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveMaxPool1d(AdaptiveAvgPool1d):
    """The maximum of windows that cover the last axis, `output_size` in number.

    >>> fad.nn.AdaptiveMaxPool1d(2)(np.arange(4.0).reshape(1, 1, 4))
    array([[[1., 3.]]])
    """

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(AdaptiveAvgPool1d):
    """The maximum of windows that cover an image, `output_size` in number along each axis.

    >>> fad.nn.AdaptiveMaxPool2d(1)(np.arange(4.0).reshape(1, 1, 2, 2))
    array([[[[3.]]]])
    """

    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveAvgPool3d(AdaptiveAvgPool1d):
    """The mean of windows that cover a volume, `output_size` in number along each axis.

    >>> fad.nn.AdaptiveAvgPool3d(1)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 1, 1, 1)
    """

    function = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool3d(AdaptiveAvgPool1d):
    """The maximum of windows that cover a volume, `output_size` in number along each axis.

    >>> fad.nn.AdaptiveMaxPool3d(1)(np.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 1, 1, 1)
    """

    function = staticmethod(F.adaptive_max_pool3d)
