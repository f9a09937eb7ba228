"""``torch.nn.functional``: the functions of `fad.nn.functional` on tensors, each one node of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad import random
from fad.eager import functions as f
from fad.eager.composite import composite
from fad.eager.creation import generator
from fad.eager.functions import log_softmax, relu, sigmoid, softmax
from fad.eager.operators import convert
from fad.eager.tensor import Tensor, through
from fad.nn import functional as F


def _elementwise(name: str, fun: Callable) -> Callable:
    def call(input, *args, **kwargs):
        kwargs.pop("inplace", None)
        return composite(name, lambda x: fun(x, *args, **kwargs), input)

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__ and fun.__doc__.split("\n\n")[0]
    return call


tanh = f.tanh
leaky_relu = _elementwise("LeakyReluBackward0", F.leaky_relu)
relu6 = _elementwise("HardtanhBackward0", F.relu6)
hardtanh = _elementwise("HardtanhBackward0", F.hardtanh)
elu = _elementwise("EluBackward0", F.elu)
selu = _elementwise("EluBackward0", F.selu)
softplus = _elementwise("SoftplusBackward0", F.softplus)
logsigmoid = _elementwise("LogSigmoidBackward0", F.log_sigmoid)
softsign = _elementwise("SoftsignBackward0", F.softsign)
silu = _elementwise("SiluBackward0", F.silu)
mish = _elementwise("MishBackward0", F.mish)
gelu = _elementwise("GeluBackward0", F.gelu)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``."""
    return input @ weight.T if bias is None else through(F.linear, (input, weight, bias), {})


def embedding(input: Tensor, weight: Tensor) -> Tensor:
    """Return rows of `weight` by their numbers."""
    return composite("EmbeddingBackward0", lambda w: F.embedding(input.value, w), weight)


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Set each element to 0 with probability p and divide the others by 1 - p, by the face's random numbers."""
    if not training or p == 0.0:
        return input
    key = random.key(int(generator().integers(2**63)))
    return composite("DropoutBackward0", lambda x: F.dropout(x, p, key=key), input)


def layer_norm(input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Subtract the mean and divide by the standard deviation over the last axes."""
    n = len(normalized_shape) if hasattr(normalized_shape, "__len__") else 1
    return composite("NativeLayerNormBackward0", lambda x, w, b: F.layer_norm(x, w, b, eps, n), input, weight, bias)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return whole-number labels as rows with a single one."""
    n = int(tensor.value.max()) + 1 if num_classes < 0 else num_classes
    return Tensor(F.one_hot(tensor.value, n, int))


def _loss(name: str, fun: Callable) -> Callable:
    def call(input, target, *args, **kwargs):
        if target.dtype.kind == "f" and target.dtype != input.dtype:
            target = convert(target, input.dtype)
        return composite(name, lambda x, t, *rest: fun(x, t, *rest, **kwargs), input, target, *args)

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__ and fun.__doc__.split("\n\n")[0]
    return call


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, **options: Any) -> Tensor:
    """Return the negative logarithm of the softmax probability of the right class; options as in `fad.nn`."""
    if options.get("ignore_index") == -100:
        del options["ignore_index"]
    return _cross_entropy(input, target, weight, **options)


_cross_entropy = _loss("NllLossBackward0", F.cross_entropy)
nll_loss = _loss("NllLossBackward0", F.nll_loss)
binary_cross_entropy_with_logits = _loss("BinaryCrossEntropyWithLogitsBackward0", F.binary_cross_entropy_with_logits)
binary_cross_entropy = _loss("BinaryCrossEntropyBackward0", F.binary_cross_entropy)
mse_loss = _loss("MseLossBackward0", F.mse_loss)
l1_loss = _loss("MeanBackward0", F.l1_loss)
smooth_l1_loss = _loss("SmoothL1LossBackward0", F.smooth_l1_loss)
huber_loss = _loss("HuberLossBackward0", F.huber_loss)
kl_div = _loss("KlDivBackward0", F.kl_div)

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "dropout", "elu", "embedding", "gelu",
    "hardtanh", "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid",
    "mish", "mse_loss", "nll_loss", "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "smooth_l1_loss", "softmax",
    "softplus", "softsign", "tanh",
]  # fmt: skip
