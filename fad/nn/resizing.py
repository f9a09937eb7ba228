"""Layers that resize and rearrange images and sequences: upsampling, shuffles, windows as columns."""

from __future__ import annotations

from collections.abc import Sequence

from fad.nn import functional as F
from fad.nn.module import Module
from fad.typing import Array


class Upsample(Module):
    """``(N, C, *spatial)`` resized to `size`, or by `scale_factor`, as :func:`fad.nn.functional.interpolate` does.

    >>> import numpy as np
    >>> Upsample(scale_factor=2)(np.array([[[1.0, 2.0]]]))
    array([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest", align_corners: bool | None = None,
    ):  # fmt: skip
        if (size is None) == (scale_factor is None):
            raise ValueError("Upsample needs a size or a scale_factor, and not both")
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, x: Array) -> Array:
        return F.interpolate(x, self.size, self.scale_factor, self.mode, bool(self.align_corners))

    def extra_repr(self) -> str:
        what = f"scale_factor={self.scale_factor}" if self.size is None else f"size={self.size}"
        return f"{what}, mode={self.mode!r}"


class PixelShuffle(Module):
    """(..., C r², H, W) as (..., C, H r, W r), r being `upscale_factor`: channels become places.

    >>> import numpy as np
    >>> PixelShuffle(2)(np.arange(4.0).reshape(4, 1, 1))
    array([[[0., 1.],
            [2., 3.]]])
    """

    def __init__(self, upscale_factor: int):
        self.upscale_factor = upscale_factor

    def forward(self, x: Array) -> Array:
        return F.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of images by repetition.

    >>> fad.nn.UpsamplingNearest2d(scale_factor=2)(np.array([[[[1.0, 2.0]]]]))
    array([[[[1., 1., 2., 2.],
             [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None):
        super().__init__(size, scale_factor)


class UpsamplingBilinear2d(Upsample):
    """:class:`Upsample` of images between their neighbours, corners on corners.

    >>> fad.nn.UpsamplingBilinear2d(scale_factor=2)(np.ones((1, 1, 2, 2))).shape
    (1, 1, 4, 4)
    """

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelUnshuffle(Module):
    """The inverse of :class:`PixelShuffle`: places become channels.

    >>> fad.nn.PixelUnshuffle(2)(np.ones((1, 1, 4, 4))).shape
    (1, 4, 2, 2)
    """

    def __init__(self, downscale_factor: int):
        self.downscale_factor = downscale_factor

    def forward(self, x: Array) -> Array:
        return F.pixel_unshuffle(x, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels of groups dealt in turn.

    >>> fad.nn.ChannelShuffle(2)(np.arange(4.0).reshape(1, 4, 1)).ravel()
    array([0., 2., 1., 3.])
    """

    def __init__(self, groups: int):
        self.groups = groups

    def forward(self, x: Array) -> Array:
        return F.channel_shuffle(x, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Unfold(Module):
    """The windows of images as columns: see `functional.unfold`.

    >>> import numpy as np
    >>> Unfold((2, 2))(np.ones((1, 3, 4, 5))).shape
    (1, 12, 12)
    """

    def __init__(
        self, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ):  # fmt: skip
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, x: Array) -> Array:
        return F.unfold(x, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """Columns added up to images: see `functional.fold`.

    >>> fad.nn.Fold((3, 3), 2)(np.ones((1, 4, 4)))
    array([[[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]]])
    """

    def __init__(
        self, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1,
    ):  # fmt: skip
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, x: Array) -> Array:
        return F.fold(x, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
