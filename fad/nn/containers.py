"""Modules that hold modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fad.nn.module import Module
from fad.typing import Array


class Sequential(Module):
    """Modules (or plain functions) applied one after another; they are called "0", "1", ... as in PyTorch.

    >>> import numpy as np
    >>> from fad import nn
    >>> Sequential(nn.Linear(3, 4, key=0), np.tanh, nn.Linear(4, 2, key=1))(np.ones(3)).shape
    (2,)
    """

    def __init__(self, *layers: Callable):
        self.names = tuple(str(i) for i in range(len(layers)))
        for name, layer in zip(self.names, layers, strict=True):
            setattr(self, name, layer)

    def forward(self, x: Array) -> Array:
        fields = self.__dict__
        for name in self.names:
            x = fields[name](x)
        return x

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Any]:
        return (self.__dict__[name] for name in self.names)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return Sequential(*list(self)[i])
        return self.__dict__[self.names[i]]
