"""Layers that resize images and sequences: Upsample and PixelShuffle."""

from __future__ import annotations

from typing import Any

from fad.nn import functional as F
from fad.nn.module import Module


class Upsample(Module):
    """``(N, C, *spatial)`` resized to `size`, or by `scale_factor`, as :func:`fad.nn.functional.interpolate` does.

    >>> import numpy as np
    >>> Upsample(scale_factor=2)(np.array([[[1.0, 2.0]]]))
    array([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
    ):
        if (size is None) == (scale_factor is None):
            raise ValueError("Upsample needs a size or a scale_factor, and not both")
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners

    def forward(self, x: Any) -> Any:
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

    def forward(self, x: Any) -> Any:
        return F.pixel_shuffle(x, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"
