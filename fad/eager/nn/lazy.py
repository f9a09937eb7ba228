"""Layers that learn their input's width from the first input: ``LazyLinear(10)`` becomes a ``Linear(n, 10)`` then."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from fad.eager.nn import layers
from fad.eager.nn.module import Module
from fad.eager.tensor import Parameter, Tensor


class Lazy(Module):
    """What the lazy layers share. Their parameters have no shape before the first call; optimisers may have them."""

    becomes: type
    axis = 1  # where the width stands

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        probe = self.becomes(kwargs.get("groups", 1), *args, **kwargs)
        self.__dict__["_given"] = (args, kwargs)
        for name, _ in probe.named_parameters():
            self.register_parameter(name, Parameter(Tensor(np.zeros(0, np.float32))))

    def forward(self, *args: Any) -> Any:
        self._materialise(args[0])
        return self(*args)

    def _materialise(self, x: Tensor) -> None:
        fields = self.__dict__
        args, kwargs = fields.pop("_given")
        layer = self.becomes(x.shape[self.axis], *args, **kwargs)
        layer.train(self.training)
        waiting = fields["_parameters"]
        for name, p in layer._tables()["_parameters"].items():
            held = waiting[name]
            held.value = p.value
            layer._tables()["_parameters"][name] = held
        for name, kept in fields.items():
            if name in ("_hooks", "_pre_hooks", "_backward_hooks"):
                layer.__dict__[name] = kept
        fields.clear()
        fields.update(layer.__dict__)
        object.__setattr__(self, "__class__", self.becomes)

    def extra_repr(self) -> str:
        return ", ".join(map(str, self._given[0]))


class _LazyConvolution(Lazy):
    def _materialise(self, x: Tensor) -> None:
        dims = int(type(self).__name__[-2])
        self.__dict__["axis"] = x.ndim - dims - 1
        super()._materialise(x)


def _lazy(title: str, base: type = Lazy, **fields: Any) -> type:
    becomes = getattr(layers, title)
    text = f"A {title} whose first setting is found in the first input."
    rest = list(inspect.signature(becomes).parameters.values())[1:]
    signature = inspect.Signature(rest)
    return type(f"Lazy{title}", (base,), {"becomes": becomes, "__doc__": text, "__signature__": signature, **fields})


LazyLinear = _lazy("Linear", axis=-1)
LazyConv1d, LazyConv2d, LazyConv3d = (_lazy(f"Conv{d}d", _LazyConvolution) for d in (1, 2, 3))
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(f"ConvTranspose{d}d", _LazyConvolution) for d in (1, 2, 3)
)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = (_lazy(f"BatchNorm{d}d") for d in (1, 2, 3))

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyLinear",
]  # fmt: skip
