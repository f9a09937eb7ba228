"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

from fad import random
from fad.nn import functional as F
from fad.nn import init
from fad.nn.module import Module


class Linear(Module):
    """``y = x Wᵀ + b`` on the last axis: weight (out_features, in_features), bias (out_features,).

    Both start uniform in ±1/√in_features, as in PyTorch. `key` is a random key or a seed.

    >>> import numpy as np
    >>> Linear(3, 2, key=0)(np.ones((5, 3))).shape
    (5, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, key: Any = None, dtype: Any = None):
        self.in_features = in_features
        self.out_features = out_features
        k1, k2 = random.split(init.next_key(key))
        bound = 1.0 / math.sqrt(in_features) if in_features else 0.0
        self.weight = init.uniform(k1, (out_features, in_features), -bound, bound, dtype)
        self.bias = init.uniform(k2, (out_features,), -bound, bound, dtype) if bias else None

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
