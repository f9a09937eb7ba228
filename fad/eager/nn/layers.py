"""The layers of `fad.nn`, adapted: the same computation, with tensors for parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

import fad.nn
from fad import config, tree
from fad.eager.creation import generator
from fad.eager.nn import functional as F
from fad.eager.nn.module import Module
from fad.eager.records import placed
from fad.eager.tensor import Parameter, Tensor, lowered, wrap

_MADE = [
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "MaxPool1d",
    "MaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "LayerNorm",
    "RMSNorm",
    "GroupNorm",
    "Embedding",
    "Dropout",
    "LSTM",
    "GRU",
    "MultiheadAttention",
    "ReLU",
    "ReLU6",
    "LeakyReLU",
    "ELU",
    "SELU",
    "GELU",
    "SiLU",
    "Mish",
    "Tanh",
    "Sigmoid",
    "Softmax",
    "LogSoftmax",
    "Softplus",
    "Softsign",
    "Flatten",
    "Identity",
    "Linear",
]


class Layer(Module):
    """A layer of `fad.nn` whose parameters and buffers are tensors; they share memory with the layer's own arrays."""

    core_class: type

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        kwargs.pop("inplace", None)
        with config.use(default_dtype="float32"), fad.nn.seed(int(generator().integers(2**63))):
            core = self.core_class(*args, **kwargs)
        fields = self.__dict__
        fields["core"] = core
        by_array = {id(x): name for name, x in core.named_parameters()}
        fields["_order"] = [by_array[id(x)] for x in tree.leaves(core)]
        for name, x in core.named_parameters():
            self.register_parameter(name, Parameter(Tensor(x)))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        core = self.core
        if core.training is not self.training:
            core.train(self.training)
        _, structure = tree.flatten(core)
        parameters = self._parameters
        run = tree.unflatten(structure, [lowered(parameters[name]) for name in self._order])
        args, kwargs = tree.map(lowered, (args, kwargs), is_leaf=lambda x: isinstance(x, Tensor))
        return wrap(run(*args, **kwargs))

    def named_buffers(self) -> Any:
        return ((name, Tensor(np.asarray(x))) for name, x in self.core.named_buffers())

    def _state(self) -> dict[str, Tensor]:
        return {**dict(self.named_parameters()), **dict(self.named_buffers())}

    def extra_repr(self) -> str:
        return self.core.extra_repr()


def _adapted(title: str) -> type:
    core = getattr(fad.nn, title)
    return type(title, (Layer,), {"core_class": core, "__doc__": core.__doc__ and core.__doc__.split("\n\n")[0]})


__all__ = [title for title in _MADE if hasattr(fad.nn, title)]
for _title in __all__:
    globals()[_title] = _adapted(_title)

# Layers that are one call of a function need no copy of their core.
Linear = globals()["Linear"]
Linear.forward = lambda self, input: F.linear(input, self.weight, self._parameters.get("bias"))
globals()["ReLU"].forward = lambda self, input: placed(F.relu(input))
globals()["Dropout"].forward = lambda self, input: F.dropout(input, self.core.p, self.training)
