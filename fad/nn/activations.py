"""Activations as modules, for `Sequential`. Each is the function of the same name in `fad.nn.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.nn import functional as F
from fad.nn.module import Module


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Any) -> Any:
        return F.relu(x)


class ReLU6(Module):
    """x clipped to [0, 6]."""

    def forward(self, x: Any) -> Any:
        return F.relu6(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Any) -> Any:
        return np.tanh(x)


class Sigmoid(Module):
    """The logistic function."""

    def forward(self, x: Any) -> Any:
        return F.sigmoid(x)


class SiLU(Module):
    """x times the logistic function of x."""

    def forward(self, x: Any) -> Any:
        return F.silu(x)


class Mish(Module):
    """x tanh(softplus(x))."""

    def forward(self, x: Any) -> Any:
        return F.mish(x)


class Softplus(Module):
    """log(1 + exp(x))."""

    def forward(self, x: Any) -> Any:
        return F.softplus(x)


class SELU(Module):
    """The self-normalising ELU."""

    def forward(self, x: Any) -> Any:
        return F.selu(x)


class Identity(Module):
    """x itself."""

    def forward(self, x: Any) -> Any:
        return x


class ELU(Module):
    """x where it is positive, else ``alpha (exp(x) - 1)``."""

    def __init__(self, alpha: float = 1.0):
        self.alpha = alpha

    def forward(self, x: Any) -> Any:
        return F.elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class LeakyReLU(Module):
    """x where it is positive, else ``negative_slope x``."""

    def __init__(self, negative_slope: float = 0.01):
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Any:
        return F.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class GELU(Module):
    """x times the normal distribution function of x."""

    def __init__(self, approximate: str = "none"):
        self.approximate = approximate

    def forward(self, x: Any) -> Any:
        return F.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softmax(Module):
    """exp(x) / sum(exp(x)) along an axis."""

    def __init__(self, axis: int = -1):
        self.axis = axis

    def forward(self, x: Any) -> Any:
        return F.softmax(x, self.axis)

    def extra_repr(self) -> str:
        return f"axis={self.axis}"


class LogSoftmax(Softmax):
    """The logarithm of `Softmax`."""

    def forward(self, x: Any) -> Any:
        return F.log_softmax(x, self.axis)


class Flatten(Module):
    """All axes from `start` on in one."""

    def __init__(self, start: int = 1):
        self.start = start

    def forward(self, x: Any) -> Any:
        return x.reshape(*x.shape[: self.start], -1)
