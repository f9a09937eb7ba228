"""The layers of `fad.nn`, adapted: the same computation, with tensors for parameters."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import fad.nn
from fad import config, tree
from fad.eager.core.inplace import take_place
from fad.eager.core.mode import no_grad
from fad.eager.core.records import name_user_line
from fad.eager.devices import device
from fad.eager.nn import functional as F
from fad.eager.nn.module import Module
from fad.eager.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from fad.eager.ops.creation import get_default_dtype
from fad.eager.rng import drawn_key, drawn_seed
from fad.eager.signatures import SETTINGS, SignatureOfCore
from fad.eager.tensor import Parameter, Tensor, is_tensor, lower, tensors_of, unshare, wrap

# Layers whose last setting may be `inplace`.
_INPLACE = (
    "AlphaDropout", "CELU", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "Hardsigmoid", "Hardswish",
    "Hardtanh", "LeakyReLU", "Mish", "ReLU", "ReLU6", "SELU", "SiLU", "Threshold",
)  # fmt: skip


@functools.cache
def _count_positional(cls: type) -> int:
    """Return how many arguments a class takes without a name."""
    kinds = [p.kind for p in inspect.signature(cls).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return sys.maxsize
    return sum(kind is not inspect.Parameter.KEYWORD_ONLY for kind in kinds)


class Layer(Module):
    """A layer of `fad.nn` whose parameters and buffers are tensors; they share memory with the layer's own arrays."""

    core_class: type
    __signature__ = SignatureOfCore()

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()
        inplace = kwargs.pop("inplace", False)
        if args and type(args[-1]) is bool and any(cls.__name__ in _INPLACE for cls in type(self).__mro__):
            args, inplace = args[:-1], args[-1]
        self.__dict__["inplace"] = bool(inplace)
        most = _count_positional(self.core_class)
        if 0 < len(args) - most < 3 and isinstance(args[most], (str, device, type(None))):
            kwargs |= dict(zip(("device", "dtype"), args[most:], strict=False))  # which stand last in PyTorch
            args = args[:most]
        kwargs = {SETTINGS.get(k, k): v for k, v in kwargs.items() if k != "device"}
        core = self._new_core(args, kwargs)
        fields = self.__dict__
        fields["core"], fields["_given"] = core, (args, kwargs)
        fields["_drops"] = [m for m in core.modules() if isinstance(m, fad.nn.Dropout)]
        by_array = {id(x): name for name, x in core.named_parameters()}
        fields["_order"] = [by_array[id(x)] for x in tree.leaves(core)]
        for name, x in core.named_parameters():
            self.register_parameter(name, Parameter(Tensor(x)))

    def _new_core(self, args: tuple, kwargs: dict) -> Any:
        with config.use(default_dtype=get_default_dtype().name), fad.nn.seed(drawn_seed()):
            return self.core_class(*args, **kwargs)

    @no_grad()
    def reset_parameters(self) -> None:
        """Draw the parameters again, as when the layer was made, and reset the statistics."""
        fresh = self._new_core(*self._given)
        for name, x in fresh.named_parameters():
            if name in self._parameters:
                self._parameters[name].copy_(Tensor(x))
        store = self.core.__dict__.get("_buffers", {})
        for name, x in fresh.__dict__.get("_buffers", {}).items():
            store[name] = np.asarray(x, getattr(store[name], "dtype", None))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.inplace and (self.training or not self._drops):
            return take_place(self._forward, *args, **kwargs)  # of one tensor
        return self._forward(*args, **kwargs)

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
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
        now = (parameters[name] if name in parameters else getattr(self, name) for name in self._order)
        run = tree.unflatten(structure, [lower(p) for p in now])
        given = tensors_of(args, kwargs)
        args, kwargs = tree.map(lower, (args, kwargs), is_leaf=is_tensor)
        return unshare(wrap(fun(run, *args, **kwargs)), given)

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        if name in fields.get("_parameters", ()):
            return fields["_parameters"][name]
        core = fields.get("core")
        if core is None:
            return super().__getattr__(name)
        found = self._own_buffers()
        if name in found:
            return found[name]
        if name not in fields.get("_computed", ()) and self._is_setting(name):
            return core.__dict__[SETTINGS.get(name, name)]
        return super().__getattr__(name)

    def _is_setting(self, name: str) -> bool:
        """Whether an attribute is a setting of the layer of `fad.nn`, as its width is; or a missing parameter."""
        own = self.core.__dict__
        key = SETTINGS.get(name, name)
        x = own.get(key, self)
        return key[0] != "_" and x is not self and not isinstance(x, (np.ndarray, fad.nn.Module, Tensor))

    def __setattr__(self, name: str, value: Any) -> None:
        core = self.__dict__.get("core")
        if core is None or name in ("training", "core"):
            super().__setattr__(name, value)
        elif type(value) is Tensor and name in core.__dict__.get("_buffers", {}):
            self._write_buffer(name, value.numpy())
        elif name in self._order and name in self._parameters and value is None:
            del self._parameters[name]
            setattr(core, name, None)
            self._order.remove(name)
        elif not isinstance(value, (Tensor, Module)) and self._is_setting(name):
            setattr(core, SETTINGS.get(name, name), value)
        else:
            super().__setattr__(name, value)

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


def _adapt(title: str) -> type:
    core = getattr(fad.nn, title)
    return type(title, (Layer,), {"core_class": core, "__doc__": core.__doc__ and core.__doc__.split("\n\n")[0]})


# All layers of fad.nn but containers, which hold modules of `fad.nn` or of `fad.eager`, and those that `attention` has.
_NOT_HERE = ("Module", "MultiheadAttention", "Sequential")
_CLASSES = [name for name in fad.nn.__all__ if isinstance(getattr(fad.nn, name), type)]
_MADE = [name for name in _CLASSES if issubclass(getattr(fad.nn, name), fad.nn.Module)]
__all__ = [name for name in _MADE if name not in _NOT_HERE and not name.startswith("Transformer")]
for _title in __all__:
    globals()[_title] = _adapt(_title)

# Layers that are one call of a function need no copy of their core.
Linear, LayerNorm, Embedding = (globals()[_title] for _title in ("Linear", "LayerNorm", "Embedding"))
Linear.forward = lambda self, input: F.linear(input, self.weight, self.bias)
globals()["ReLU"].forward = lambda self, input: name_user_line(F.relu(input, self.inplace))
globals()["Flatten"].forward = lambda self, input: name_user_line(input.flatten(self.core.start, self.core.end))
globals()["Unflatten"].forward = lambda self, input: name_user_line(input.unflatten(self.core.axis, self.core.sizes))
globals()["Dropout"].forward = lambda self, input: F.dropout(input, self.core.p, self.training, self.inplace)


def _over_an_axis(title: str, function: Callable) -> None:
    """Let a layer over an axis find the axis as the function does, where none is given."""
    layer = globals()[title]

    def start(self: Any, dim: Any = None) -> None:
        Layer.__init__(self)
        self.__dict__.update(dim=dim)

    layer.__init__ = start
    layer.forward = lambda self, input: function(input, self.dim)
    layer.extra_repr = lambda self: f"dim={self.dim}"


_over_an_axis("Softmax", F.softmax)
_over_an_axis("LogSoftmax", F.log_softmax)
_over_an_axis("Softmin", F.softmin)


def _with_places(self: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:  # fmt: skip
    Layer.__init__(self, kernel_size, stride, padding, dilation, ceil_mode)
    self.__dict__["return_indices"] = return_indices


def _maxima(self: Any, input: Any) -> Any:
    settings = self.kernel_size, self.stride, self.padding, self.dilation
    return F.max_pool2d(input, *settings, return_indices=True) if self.return_indices else Layer.forward(self, input)


globals()["MaxPool2d"].__init__, globals()["MaxPool2d"].forward = _with_places, _maxima


class MaxUnpool2d(Module):
    """Elements put back to the places that ``MaxPool2d(..., return_indices=True)`` gave, with zeros elsewhere."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return the images."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _PowerPool(Module):
    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the roots of the sums of powers."""
        return self._pool(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_PowerPool):
    """Windows of signals become the roots of their sums of powers."""

    _pool = staticmethod(F.lp_pool1d)


class LPPool2d(_PowerPool):
    """Windows of images become the roots of their sums of powers."""

    _pool = staticmethod(F.lp_pool2d)


class LPPool3d(_PowerPool):
    """Windows of volumes become the roots of their sums of powers."""

    _pool = staticmethod(F.lp_pool3d)


__all__ += ["LPPool1d", "LPPool2d", "LPPool3d", "MaxUnpool2d"]


def _of_lengths(self: Any, input: Any, hx: Any = None) -> tuple:
    """Run a recurrent layer over a tensor, or over a packed sequence, of which each part has its own length."""
    if not isinstance(input, PackedSequence):
        return Layer.forward(self, input, hx)
    x, lengths = pad_packed_sequence(input, self.batch_first)
    y, state = self._run(lambda core, *xs: core(*xs, lengths=lengths.value), x, hx)
    order = input.sorted_indices
    longest = lengths.value if order is None else lengths.value[order.value]
    packed = pack_padded_sequence(y if order is None else y.index_select(int(not self.batch_first), order), longest,
                                  self.batch_first)  # fmt: skip
    return PackedSequence(packed.data, *input[1:]), state


for _title in ("RNN", "LSTM", "GRU"):
    globals()[_title].forward = _of_lengths


def _from_pretrained(
    cls: type, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, **options: Any
) -> Any:
    """Return an embedding that holds these rows, which are not learnt unless not `freeze`."""
    layer = cls(*embeddings.shape, **({} if padding_idx is None else {"padding_idx": padding_idx}), **options)
    layer.weight = Parameter(embeddings.detach(), requires_grad=not freeze)
    return layer


Embedding.from_pretrained = classmethod(_from_pretrained)
globals()["EmbeddingBag"].from_pretrained = classmethod(_from_pretrained)
