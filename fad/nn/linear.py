"""Linear layers."""

from __future__ import annotations

import math

from fad import random
from fad.nn import functional as F
from fad.nn import init
from fad.nn.module import Module
from fad.typing import Array, DTypeLike, Key


class Linear(Module):
    """``y = x Wᵀ + b`` on the last axis: weight (out_features, in_features), bias (out_features,).

    Both start uniform in ±1/√in_features, as in PyTorch. `key` is a random key or a seed.

    >>> import numpy as np
    >>> Linear(3, 2, key=0)(np.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, key: Key | None = None,
        dtype: DTypeLike | None = None,
    ):  # fmt: skip
        self.in_features = in_features
        self.out_features = out_features
        k1, k2 = random.split(init.next_key(key))
        bound = 1.0 / math.sqrt(in_features) if in_features else 0.0
        self.weight = init.uniform(k1, (out_features, in_features), -bound, bound, dtype)
        self.bias = init.uniform(k2, (out_features,), -bound, bound, dtype) if bias else None

    def forward(self, x: Array) -> Array:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``y[k] = x1ᵀ weight[k] x2 + bias[k]``: weight (out, in1, in2), bias (out,), both uniform in ±1/√in1.

    >>> import numpy as np
    >>> Bilinear(3, 2, 4, key=0)(np.ones((5, 3)), np.ones((5, 2))).shape
    (5, 4)
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, *,
        key: Key | None = None, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        k1, k2 = random.split(init.next_key(key))
        bound = 1.0 / math.sqrt(in1_features)
        self.weight = init.uniform(k1, (out_features, in1_features, in2_features), -bound, bound, dtype)
        self.bias = init.uniform(k2, (out_features,), -bound, bound, dtype) if bias else None

    def forward(self, x1: Array, x2: Array) -> Array:
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}"
