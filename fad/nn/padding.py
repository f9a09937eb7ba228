"""Padding as layers: what is put around an input, in PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fad.nn import functional as F
from fad.nn.module import Module
from fad.typing import Array


class Pad(Module):
    """What paddings share: how much before and after each of the last axes, one number for all or as `functional.pad`
    takes it, the last axis first; negative numbers cut off."""

    dims = 0
    mode = "constant"

    def __init__(self, padding: int | Sequence[int]):
        numbers: Any = (padding,) * (2 * self.dims) if hasattr(padding, "__index__") else tuple(int(p) for p in padding)
        if len(numbers) != 2 * self.dims:
            raise ValueError(
                f"{type(self).__name__} needs one number, or {2 * self.dims} of them: before and after each axis, the "
                f"last axis first; not {padding!r}"
            )
        self.padding = numbers

    def forward(self, x: Array) -> Array:
        if x.ndim not in (self.dims + 1, self.dims + 2):
            raise ValueError(
                f"{type(self).__name__} needs (batch, channels) and {self.dims} axes more, or one example of that, not "
                f"shape {x.shape}"
            )
        return F.pad(x, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPad(Pad):
    """What paddings with a value share."""

    def __init__(self, padding: int | Sequence[int], value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, x: Array) -> Array:
        return F.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(ConstantPad):
    """A value before and after the last axis.

    >>> import numpy as np
    >>> ConstantPad1d((1, 2), 7.0)(np.array([[1.0, 2.0]]))
    array([[7., 1., 2., 7., 7.]])
    """

    dims = 1


class ConstantPad2d(ConstantPad):
    """A value around images.

    >>> fad.nn.ConstantPad2d(1, 5.0)(np.ones((1, 1, 1)))
    array([[[5., 5., 5.],
            [5., 1., 5.],
            [5., 5., 5.]]])
    """

    dims = 2


class ConstantPad3d(ConstantPad):
    """A value around volumes.

    >>> fad.nn.ConstantPad3d(1, 5.0)(np.ones((1, 1, 2, 2, 2))).shape
    (1, 1, 4, 4, 4)
    """

    dims = 3


class ZeroPad1d(ConstantPad):
    """Zeros before and after the last axis.

    >>> fad.nn.ZeroPad1d(1)(np.array([[1.0, 2.0, 3.0]]))
    array([[0., 1., 2., 3., 0.]])
    """

    dims = 1

    def __init__(self, padding: int | Sequence[int]):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad2d(ZeroPad1d):
    """Zeros around images.

    >>> fad.nn.ZeroPad2d(1)(np.ones((1, 1, 1)))
    array([[[0., 0., 0.],
            [0., 1., 0.],
            [0., 0., 0.]]])
    """

    dims = 2


class ZeroPad3d(ZeroPad1d):
    """Zeros around volumes.

    >>> fad.nn.ZeroPad3d(1)(np.ones((1, 1, 2, 2, 2))).shape
    (1, 1, 4, 4, 4)
    """

    dims = 3


class ReflectionPad1d(Pad):
    """The last axis goes on as in a mirror that stands on its outermost elements.

    >>> import numpy as np
    >>> ReflectionPad1d(2)(np.array([[1.0, 2.0, 3.0]]))
    array([[3., 2., 1., 2., 3., 2., 1.]])
    """

    dims = 1
    mode = "reflect"


class ReflectionPad2d(ReflectionPad1d):
    """Images go on as in a mirror.

    >>> fad.nn.ReflectionPad2d(1)(np.ones((1, 1, 2, 2))).shape
    (1, 1, 4, 4)
    """

    dims = 2


class ReflectionPad3d(ReflectionPad1d):
    """Volumes go on as in a mirror.

    >>> fad.nn.ReflectionPad3d(1)(np.ones((1, 1, 2, 2, 2))).shape
    (1, 1, 4, 4, 4)
    """

    dims = 3


class ReplicationPad1d(Pad):
    """The outermost elements of the last axis are repeated.

    >>> fad.nn.ReplicationPad1d(1)(np.array([[1.0, 2.0, 3.0]]))
    array([[1., 1., 2., 3., 3.]])
    """

    dims = 1
    mode = "replicate"


class ReplicationPad2d(ReplicationPad1d):
    """The outermost pixels of images are repeated.

    >>> fad.nn.ReplicationPad2d(1)(np.ones((1, 1, 2, 2))).shape
    (1, 1, 4, 4)
    """

    dims = 2


class ReplicationPad3d(ReplicationPad1d):
    """The outermost elements of volumes are repeated.

    >>> fad.nn.ReplicationPad3d(1)(np.ones((1, 1, 2, 2, 2))).shape
    (1, 1, 4, 4, 4)
    """

    dims = 3


class CircularPad1d(Pad):
    """The last axis goes on from its other end.

    >>> fad.nn.CircularPad1d(1)(np.array([[1.0, 2.0, 3.0]]))
    array([[3., 1., 2., 3., 1.]])
    """

    dims = 1
    mode = "circular"


class CircularPad2d(CircularPad1d):
    """Images go on from their other ends.

    >>> fad.nn.CircularPad2d(1)(np.ones((1, 1, 2, 2))).shape
    (1, 1, 4, 4)
    """

    dims = 2


class CircularPad3d(CircularPad1d):
    """Volumes go on from their other ends.

    >>> fad.nn.CircularPad3d(1)(np.ones((1, 1, 2, 2, 2))).shape
    (1, 1, 4, 4, 4)
    """

    dims = 3
