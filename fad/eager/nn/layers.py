"""The layers of `fad.nn`, adapted: the same computation, with tensors for parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fad.nn
from fad import config, tree
from fad.eager.chance import drawn_key, drawn_seed
from fad.eager.nn import functional as F
from fad.eager.nn.module import Module
from fad.eager.records import placed
from fad.eager.tensor import Parameter, Tensor, lowered, wrap

# PyTorch's names of settings that fad calls otherwise.
_SETTINGS = {"dim": "axis", "start_dim": "start", "init": "init_value"}


# Layers whose last setting may be `inplace`, of which nothing is kept: there is nothing to gain from it here.
_INPLACE = (
    "CELU", "Dropout", "ELU", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "Mish", "ReLU", "ReLU6", "SELU",
    "SiLU",
)  # fmt: skip


class Layer(Module):
    """A layer of `fad.nn` whose parameters and buffers are tensors; they share memory with the layer's own arrays."""

    core_class: type

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        if args and type(args[-1]) is bool and type(self).__name__ in _INPLACE:
            args = args[:-1]
        kwargs = {_SETTINGS.get(k, k): v for k, v in kwargs.items() if k not in ("inplace", "device")}
        with config.use(default_dtype="float32"), fad.nn.seed(drawn_seed()):
            core = self.core_class(*args, **kwargs)
        fields = self.__dict__
        fields["core"] = core
        fields["_drops"] = [m for m in core.modules() if isinstance(m, fad.nn.Dropout)]
        by_array = {id(x): name for name, x in core.named_parameters()}
        fields["_order"] = [by_array[id(x)] for x in tree.leaves(core)]
        for name, x in core.named_parameters():
            self.register_parameter(name, Parameter(Tensor(x)))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(lambda core, *args, **kwargs: core(*args, **kwargs), *args, **kwargs)

    def _run(self, fun: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function of the layer of `fad.nn`, holding these parameters, and of tensors."""
        core = self.core
        if core.training is not self.training:
            core.train(self.training)
        for drop in self._drops if self.training else ():
            drop.key, drop.calls = drawn_key(), np.array(0)  # so that torch.manual_seed repeats a run
        _, structure = tree.flatten(core)
        parameters = self._parameters
        run = tree.unflatten(structure, [lowered(parameters[name]) for name in self._order])
        args, kwargs = tree.map(lowered, (args, kwargs), is_leaf=lambda x: isinstance(x, Tensor))
        return wrap(fun(run, *args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        if name != "core" and name in (found := self._own_buffers()):
            return found[name]
        return super().__getattr__(name)

    def _own_buffers(self) -> dict[str, Tensor]:
        core = self.core.__dict__
        kept = [(n, x) for n, x in core.get("_buffers", {}).items() if n not in core.get("_transient", ())]
        return {**self._tables()["_buffers"], **{n: Tensor(np.asarray(x)) for n, x in kept}}

    def _write_buffer(self, name: str, value: np.ndarray) -> None:
        if name in self._tables()["_buffers"]:
            super()._write_buffer(name, value)
            return
        store = self.core.__dict__["_buffers"]
        store[name] = np.array(value, dtype=store[name].dtype)

    def _convert_buffers(self, dtype: Any) -> None:
        super()._convert_buffers(dtype)
        store = self.core.__dict__.get("_buffers", {})
        store.update({name: np.asarray(x, dtype) for name, x in store.items() if x.dtype.kind == "f"})

    def extra_repr(self) -> str:
        return self.core.extra_repr()


def _adapted(title: str) -> type:
    core = getattr(fad.nn, title)
    return type(title, (Layer,), {"core_class": core, "__doc__": core.__doc__ and core.__doc__.split("\n\n")[0]})


# All layers of fad.nn but containers, which hold modules of one face or the other, and those that `attention` has.
_NOT_HERE = ("Module", "MultiheadAttention", "Sequential", "TransformerEncoder", "TransformerEncoderLayer")
_MADE = [name for name in fad.nn.__all__ if isinstance(getattr(fad.nn, name), type)]
_MADE = [name for name in _MADE if issubclass(getattr(fad.nn, name), fad.nn.Module)]
__all__ = [name for name in _MADE if name not in _NOT_HERE]
for _title in __all__:
    globals()[_title] = _adapted(_title)

# Layers that are one call of a function need no copy of their core.
Linear = globals()["Linear"]
Linear.forward = lambda self, input: F.linear(input, self.weight, self._parameters.get("bias"))
globals()["ReLU"].forward = lambda self, input: placed(F.relu(input))
globals()["Dropout"].forward = lambda self, input: F.dropout(input, self.core.p, self.training)
