"""``torch.nn.functional``: the functions of `fad.nn.functional` on tensors, each one node of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracer import Tracer
from fad.eager import functions as f
from fad.eager.chance import drawn_key
from fad.eager.composite import composite
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


# Functions whose nodes PyTorch calls by another name than their own.
_TITLES = {
    "conv1d": "Convolution", "conv2d": "Convolution", "conv3d": "Convolution", "conv_transpose1d": "Convolution",
    "conv_transpose2d": "Convolution", "conv_transpose3d": "Convolution", "max_pool1d": "MaxPool2DWithIndices",
    "max_pool2d": "MaxPool2DWithIndices", "max_pool3d": "MaxPool3DWithIndices", "pad": "ConstantPadNd",
    "adaptive_max_pool1d": "AdaptiveMaxPool2D", "adaptive_max_pool2d": "AdaptiveMaxPool2D",
    "interpolate": "Upsample", "group_norm": "NativeGroupNorm",
}  # fmt: skip


def _adapted(name: str) -> Callable:
    """Return a function of `fad.nn.functional` that takes tensors anywhere among its arguments."""
    fun = getattr(F, name)
    title = _TITLES.get(name) or "".join(part.capitalize() for part in name.split("_")).replace("2d", "2D")

    def call(*args, **kwargs):
        kwargs.pop("inplace", None)
        kwargs = {"axis" if k == "dim" else k: v for k, v in kwargs.items()}
        given = [*args, *kwargs.values()]
        places = [i for i, x in enumerate(given) if isinstance(x, Tensor)]

        def of_values(*values):
            full = list(given)
            for i, v in zip(places, values, strict=True):
                full[i] = v
            return fun(*full[: len(args)], **dict(zip(kwargs, full[len(args) :], strict=True)))

        return composite(f"{title}Backward0", of_values, *[given[i] for i in places])

    call.__name__ = call.__qualname__ = name
    call.__doc__ = fun.__doc__ and fun.__doc__.split("\n\n")[0]
    return call


adaptive_avg_pool1d = _adapted("adaptive_avg_pool1d")
adaptive_avg_pool2d = _adapted("adaptive_avg_pool2d")
adaptive_max_pool1d = _adapted("adaptive_max_pool1d")
adaptive_max_pool2d = _adapted("adaptive_max_pool2d")
avg_pool1d = _adapted("avg_pool1d")
avg_pool2d = _adapted("avg_pool2d")
avg_pool3d = _adapted("avg_pool3d")
celu = _adapted("celu")
conv1d = _adapted("conv1d")
conv2d = _adapted("conv2d")
conv3d = _adapted("conv3d")
conv_transpose1d = _adapted("conv_transpose1d")
conv_transpose2d = _adapted("conv_transpose2d")
conv_transpose3d = _adapted("conv_transpose3d")
cosine_embedding_loss = _adapted("cosine_embedding_loss")
cosine_similarity = _adapted("cosine_similarity")
gaussian_nll_loss = _adapted("gaussian_nll_loss")
glu = _adapted("glu")
group_norm = _adapted("group_norm")
hardshrink = _adapted("hardshrink")
hardsigmoid = _adapted("hardsigmoid")
hardswish = _adapted("hardswish")
hinge_embedding_loss = _adapted("hinge_embedding_loss")
interpolate = _adapted("interpolate")
margin_ranking_loss = _adapted("margin_ranking_loss")
max_pool1d = _adapted("max_pool1d")
max_pool2d = _adapted("max_pool2d")
max_pool3d = _adapted("max_pool3d")
multilabel_soft_margin_loss = _adapted("multilabel_soft_margin_loss")
normalize = _adapted("normalize")
pad = _adapted("pad")
pairwise_distance = _adapted("pairwise_distance")
pixel_shuffle = _adapted("pixel_shuffle")
poisson_nll_loss = _adapted("poisson_nll_loss")
prelu = _adapted("prelu")
soft_margin_loss = _adapted("soft_margin_loss")
softmin = _adapted("softmin")
softshrink = _adapted("softshrink")
tanhshrink = _adapted("tanhshrink")
threshold = _adapted("threshold")
triplet_margin_loss = _adapted("triplet_margin_loss")


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False,
) -> Tensor:  # fmt: skip
    """Return softmax(query keyᵀ / √d) value; a boolean mask says what may be seen, another is added to the scores.

    Each weight is dropped with the probability `dropout_p`, whether a module trains or not.
    """
    options = {"is_causal": is_causal}
    if dropout_p:
        options |= {"dropout_p": dropout_p, "dropout_key": drawn_key()}
    return composite(
        "ScaledDotProductAttentionBackward0",
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m, **options),
        query, key, value, attn_mask,
    )  # fmt: skip


def rms_norm(input: Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    """Divide by the root of the mean square over the last axes."""
    n = len(normalized_shape) if hasattr(normalized_shape, "__len__") else 1
    return composite("RmsNormBackward0", lambda x, w: F.rms_norm(x, w, eps, n), input, weight)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``."""
    return input @ weight.T if bias is None else through(F.linear, (input, weight, bias), {})


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Return rows of `weight` by their numbers; the row `padding_idx` gets no gradient."""
    return composite("EmbeddingBackward0", lambda w: F.embedding(input.value, w, padding_idx), weight)


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Set each element to 0 with probability p and divide the others by 1 - p, by the face's random numbers."""
    if not training or p == 0.0:
        return input
    key = drawn_key()
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


def _of_labels(fun: Callable) -> Callable:
    """Return a loss of class numbers that leaves out those of -100 unless told otherwise, as PyTorch does."""
    loss = _loss("NllLossBackward0", fun)

    def call(input, target, weight=None, *, ignore_index=-100, **options):
        traced = type(target.value) is Tracer  # whose labels may be any
        if target.dtype.kind in "iu" and (traced or bool(np.any(target.value == ignore_index))):
            options["ignore_index"] = ignore_index
        return loss(input, target, weight, **options)

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = loss.__doc__
    return call


cross_entropy = _of_labels(F.cross_entropy)
nll_loss = _of_labels(F.nll_loss)
binary_cross_entropy_with_logits = _loss("BinaryCrossEntropyWithLogitsBackward0", F.binary_cross_entropy_with_logits)
binary_cross_entropy = _loss("BinaryCrossEntropyBackward0", F.binary_cross_entropy)
mse_loss = _loss("MseLossBackward0", F.mse_loss)
l1_loss = _loss("MeanBackward0", F.l1_loss)
smooth_l1_loss = _loss("SmoothL1LossBackward0", F.smooth_l1_loss)
huber_loss = _loss("HuberLossBackward0", F.huber_loss)
kl_div = _loss("KlDivBackward0", F.kl_div)

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "conv1d",
    "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "gaussian_nll_loss", "gelu", "glu",
    "group_norm", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid",
    "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "mish", "mse_loss",
    "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "pixel_shuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "rms_norm", "scaled_dot_product_attention",
    "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus",
    "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "triplet_margin_loss",
]  # fmt: skip
