"""The layers of `fad.nn`, adapted: the same computation, with tensors for parameters."""

from __future__ import annotations

import functools
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


# All layers of fad.nn but containers, which hold modules of one face or the other.
_MADE = [name for name in fad.nn.__all__ if isinstance(getattr(fad.nn, name), type)]
_MADE = [name for name in _MADE if issubclass(getattr(fad.nn, name), fad.nn.Module)]
__all__ = [name for name in _MADE if name not in ("Module", "Sequential")]
for _title in __all__:
    globals()[_title] = _adapted(_title)

# Layers that are one call of a function need no copy of their core.
Linear = globals()["Linear"]
Linear.forward = lambda self, input: F.linear(input, self.weight, self._parameters.get("bias"))
globals()["ReLU"].forward = lambda self, input: placed(F.relu(input))
globals()["Dropout"].forward = lambda self, input: F.dropout(input, self.core.p, self.training)


class MultiheadAttention(Layer):
    """Attention of several heads; with PyTorch's defaults: (length, batch, width) unless `batch_first`, and what
    is returned is (result, weights)."""

    core_class = fad.nn.MultiheadAttention

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *, batch_first: bool = False
    ):
        super().__init__(embed_dim, num_heads, dropout, bias)
        self.batch_first = batch_first

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple:  # fmt: skip
        """Return the result, and the weights, the mean over heads unless told otherwise, or None.

        True in a boolean mask is what may *not* be seen, as in PyTorch's module: `key_padding_mask` (batch, S),
        `attn_mask` (L, S) or (batch * heads, L, S).
        """
        turn = query.ndim == 3 and not self.batch_first
        if turn:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        mask = self._mask(attn_mask, key_padding_mask)
        y, weights = self._run(lambda core, *xs: core.attend(*xs, is_causal=is_causal), query, key, value, mask)
        if average_attn_weights:
            weights = weights.mean(-3)
        return (y.transpose(0, 1) if turn else y), (weights if need_weights else None)

    def _mask(self, attn_mask: Tensor | None, padding: Tensor | None) -> Any:
        """Return one mask in the form of `fad.nn`: true for what may be seen, or numbers to add to the scores."""
        masks = []
        if attn_mask is not None:
            x = attn_mask.value
            masks.append(x.reshape(-1, self.core.num_heads, *x.shape[1:]) if x.ndim == 3 else x)
        if padding is not None:
            masks.append(padding.value[..., None, None, :])
        if all(x.dtype == bool for x in masks):
            return ~functools.reduce(np.logical_or, masks) if masks else None
        return sum(np.where(x, np.float32(-np.inf), np.float32(0.0)) if x.dtype == bool else x for x in masks)
