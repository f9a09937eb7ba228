"""``torch.nn.functional``: the functions of `fad.nn.functional` on tensors, each one node of the graph."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer
from fad.eager.core.composite import composite, of_tensors
from fad.eager.core.inplace import in_place, take_place
from fad.eager.core.records import name_user_line
from fad.eager.nn.pooling import max_pool2d_with_indices, max_unpool2d
from fad.eager.ops import functions as f
from fad.eager.ops.functions import sigmoid
from fad.eager.ops.operators import convert
from fad.eager.rng import drawn_key
from fad.eager.signatures import in_torch_words
from fad.eager.tensor import Tensor, through
from fad.eager.unsupported import explain_missing
from fad.nn import functional as F
from fad.ops.products.conv import per_axis

_INPLACE = ("celu", "hardsigmoid", "hardswish", "threshold")


def _with_inplace(fun: Callable) -> Callable:
    """Let a function of a tensor take `inplace`, by its name or as the last argument."""

    def call(input, *args, inplace=False, **kwargs):
        if args and type(args[-1]) is bool:
            *args, inplace = args
        return take_place(lambda x: fun(x, *args, **kwargs), input) if inplace else fun(input, *args, **kwargs)

    return call


def _elementwise(name: str, fun: Callable) -> Callable:
    call = _with_inplace(lambda *args, **kwargs: of_tensors(name, fun, args, kwargs))
    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__ and fun.__doc__.split("\n\n")[0]
    call.__signature__ = in_torch_words(fun)  # type: ignore[attr-defined]
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


def _with_reduction(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a loss with `reduction` for `size_average` and `reduce`, as older programs have it."""
    if "size_average" not in options and "reduce" not in options:
        return options
    options = dict(options)
    average, reduce = options.pop("size_average", None), options.pop("reduce", None)
    if average is not None or reduce is not None:
        options["reduction"] = "none" if reduce is False else "sum" if average is False else "mean"
    return options



def _adapt(name: str) -> Callable:
    """Return a function of `fad.nn.functional` that takes tensors anywhere among its arguments."""
    fun = getattr(F, name)
    title = _TITLES.get(name) or "".join(part.capitalize() for part in name.split("_")).replace("2d", "2D")

    def call(*args, **kwargs):
        kwargs = {"axis" if k == "dim" else k: v for k, v in kwargs.items()}
        return of_tensors(f"{title}Backward0", fun, args, _with_reduction(kwargs))

    call = _with_inplace(call) if name in _INPLACE else call
    call.__name__ = call.__qualname__ = name
    call.__doc__ = fun.__doc__ and fun.__doc__.split("\n\n")[0]
    call.__signature__ = in_torch_words(fun)  # type: ignore[attr-defined]
    return call


adaptive_avg_pool1d = _adapt("adaptive_avg_pool1d")
adaptive_avg_pool2d = _adapt("adaptive_avg_pool2d")
adaptive_avg_pool3d = _adapt("adaptive_avg_pool3d")
adaptive_max_pool1d = _adapt("adaptive_max_pool1d")
adaptive_max_pool2d = _adapt("adaptive_max_pool2d")
adaptive_max_pool3d = _adapt("adaptive_max_pool3d")
affine_grid = _adapt("affine_grid")
avg_pool1d = _adapt("avg_pool1d")
avg_pool2d = _adapt("avg_pool2d")
avg_pool3d = _adapt("avg_pool3d")
bilinear = _adapt("bilinear")
celu = _adapt("celu")
channel_shuffle = _adapt("channel_shuffle")
conv1d = _adapt("conv1d")
conv2d = _adapt("conv2d")
conv3d = _adapt("conv3d")
cosine_embedding_loss = _adapt("cosine_embedding_loss")
cosine_similarity = _adapt("cosine_similarity")
ctc_loss = _adapt("ctc_loss")
fold = _adapt("fold")
gaussian_nll_loss = _adapt("gaussian_nll_loss")
glu = _adapt("glu")
grid_sample = _adapt("grid_sample")
group_norm = _adapt("group_norm")
hardshrink = _adapt("hardshrink")
hardsigmoid = _adapt("hardsigmoid")
hardswish = _adapt("hardswish")
hinge_embedding_loss = _adapt("hinge_embedding_loss")
interpolate = _adapt("interpolate")
local_response_norm = _adapt("local_response_norm")
margin_ranking_loss = _adapt("margin_ranking_loss")
max_pool1d = _adapt("max_pool1d")
_max_pool2d = _adapt("max_pool2d")
max_pool3d = _adapt("max_pool3d")
multi_margin_loss = _adapt("multi_margin_loss")
multilabel_soft_margin_loss = _adapt("multilabel_soft_margin_loss")
pad = _adapt("pad")
pixel_shuffle = _adapt("pixel_shuffle")
pixel_unshuffle = _adapt("pixel_unshuffle")
poisson_nll_loss = _adapt("poisson_nll_loss")
prelu = _adapt("prelu")
soft_margin_loss = _adapt("soft_margin_loss")
softshrink = _adapt("softshrink")
tanhshrink = _adapt("tanhshrink")
threshold = _adapt("threshold")
triplet_margin_loss = _adapt("triplet_margin_loss")
unfold = _adapt("unfold")


def _transpose(dims: int) -> Callable:
    fun = _adapt(f"conv_transpose{dims}d")

    def call(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return fun(input, weight, bias, stride, padding, output_padding, dilation, groups)

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__
    return call


conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transpose, (1, 2, 3))


def _change(fun: Callable) -> Callable:
    """Return the function that puts the result in the place of its argument."""
    call = in_place(fun)
    call.__name__ = call.__qualname__ = f"{fun.__name__}_"
    call.__doc__ = f"Put {fun.__name__} of each element in its place, and return the tensor."
    call.__signature__ = inspect.signature(fun)
    return call


celu_, elu_, hardtanh_, leaky_relu_ = map(_change, (celu, elu, hardtanh, leaky_relu))
relu_, selu_, threshold_ = map(_change, (f.relu, selu, threshold))


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(x, 0)`` of each element, or put it in its place."""
    return take_place(f.relu, input) if inplace else name_user_line(f.relu(input))


def _pool_powers(dims: int) -> Callable:
    mean, largest = _adapt(f"avg_pool{dims}d"), _adapt(f"max_pool{dims}d")

    def call(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        if math.isinf(norm_type):
            sign = math.copysign(1.0, norm_type)
            return sign * largest(sign * f.abs(input), kernel_size, stride, ceil_mode=ceil_mode)
        count = math.prod(per_axis(kernel_size, dims, "kernel_size"))
        sums = count * mean(input**norm_type, kernel_size, stride, ceil_mode=ceil_mode)
        filled = sums != 0
        return f.where(filled, f.where(filled, sums, 1.0) ** (1.0 / norm_type), 0.0)

    call.__name__ = call.__qualname__ = f"lp_pool{dims}d"
    call.__doc__ = "Return the roots of the sums of powers in each window; where the sum is zero, so is the derivative."
    return call


lp_pool1d, lp_pool2d, lp_pool3d = map(_pool_powers, (1, 2, 3))


def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the sum of ``max(0, 1 - (score - other))`` over classes that are meant and others, by the number of all.

    `target` has the numbers of the classes that are meant, up to the first -1.
    """
    n = input.shape[-1]
    given = np.asarray(target.detach())
    if given.shape != input.shape:
        raise ValueError(f"multilabel_margin_loss needs a target of the shape {input.shape}, not {target.shape}")
    meant = np.cumprod(given >= 0, axis=-1, dtype=bool)
    classes = np.where(meant, given, 0)
    is_meant = np.any((classes[..., None] == np.arange(n)) & meant[..., None], axis=-2)
    pairs = Tensor((meant[..., :, None] & ~is_meant[..., None, :]).astype(input.dtype))
    scores = f.gather(input, -1, Tensor(classes))
    rows = (f.clamp(1.0 - scores.unsqueeze(-1) + input.unsqueeze(-2), 0.0) * pairs).sum((-2, -1)) / n
    return rows if reduction == "none" else rows.sum() if reduction == "sum" else rows.mean()


def max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Return the maxima of windows of images, and where they are if requested."""
    if not return_indices:
        return _max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
    if ceil_mode:
        raise NotImplementedError("places of maxima are not returned with ceil_mode: pad the input with F.pad instead")
    return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation)


# --- over an axis, which of old need not be named ---------------------------------------------------------------------


def _axis(input: Tensor, dim: int | None) -> int:
    return (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis; without one, the first or second as in PyTorch."""
    return f.softmax(input, _axis(input, dim), dtype)


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return the logarithm of :func:`softmax`."""
    return f.log_softmax(input, _axis(input, dim), dtype)


def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return :func:`softmax` of -x."""
    return softmax(-input, dim, dtype)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Return x divided by its p-norm along an axis, or by `eps` where that is larger."""
    if p == 2:
        return composite("DivBackward0", lambda x: F.normalize(x, dim, eps), input)
    return input / f.clamp(f.norm(input, p, dim, True), eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norm of ``x1 - x2 + eps`` along the last axis."""
    y = composite("PairwiseDistanceBackward0", lambda x, y: F.pairwise_distance(x, y, p, eps), x1, x2)
    return y.unsqueeze(-1) if keepdim else y


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Return a relaxed draw of a class, by `fad.eager`'s random numbers; with `hard` one class, and its derivative."""
    key = drawn_key()
    return composite("SoftmaxBackward0", lambda x: F.gumbel_softmax(x, tau, hard, dim, key=key), logits)


# --- with statistics that a program keeps -------------------------------------------------------------------------


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalise (batch, channels, ...) by the statistics given, or in training by those of the batch, of which the
    ones given then take up a share."""
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("batch_norm in evaluation needs running_mean and running_var: give training=True without")
        statistics: Any = (running_mean.detach(), running_var.detach())
    else:
        statistics = (None, None)
        over = (0, *range(2, input.ndim))
        _average(running_mean, running_var, input, over, momentum)
    return composite(
        "NativeBatchNormBackward0", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b, eps), input, *statistics, weight,
        bias,
    )  # fmt: skip


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalise each channel of each example of (batch, channels, ...), or by the statistics given if not
    `use_input_stats`."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _average(running_mean, running_var, input, tuple(range(2, input.ndim)), momentum)
    return composite(
        "InstanceNormBackward0", lambda x, w, b: F.instance_norm(x, w, b, eps), input, weight, bias
    )


def _average(mean: Tensor | None, var: Tensor | None, x: Tensor, over: tuple, momentum: float) -> None:
    """Take the statistics of a batch into those that a program keeps."""
    if mean is None or var is None:
        return
    values = np.asarray(x.detach())
    for kept, new in ((mean, values.mean(over)), (var, values.var(over, ddof=1))):
        new = new if new.ndim == 1 else new.mean(0)
        kept.detach().mul_(1.0 - momentum).add_(Tensor((momentum * new).astype(kept.dtype)))


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """Return softmax(query keyᵀ / √d) value; a boolean mask says what may be seen, another is added to the scores.

    `scale` takes the place of 1 / √d; with `enable_gqa` several heads of queries share one of keys and values. Each
    weight is dropped with the probability `dropout_p`, whether a module trains or not.
    """
    options: dict[str, Any] = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
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


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each element to 0 with probability p and divide the others by 1 - p, by `fad.eager`'s random numbers."""
    return _drop(F.dropout)(input, p, training, inplace)


def _drop(fun: Callable) -> Callable:
    def call(input, p=0.5, training=True, inplace=False):
        if not training or p == 0.0:
            return input
        key = drawn_key()
        drop = lambda x: composite("DropoutBackward0", lambda v: fun(v, p, key=key), x)
        return take_place(drop, input) if inplace else drop(input)

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = f"Apply `fad.nn.functional.{fun.__name__}` by `fad.eager`'s random numbers."
    return call


dropout1d, dropout2d, dropout3d, alpha_dropout = map(
    _drop, (F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout)
)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, *, mode: str = "mean",
    per_sample_weights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the sums, means or maxima of rows of `weight`, bag by bag; see `fad.nn.functional.embedding_bag`."""
    ends = None if offsets is None else offsets.value
    return composite(
        "EmbeddingBagBackward0", lambda w, s: F.embedding_bag(input.value, w, ends, mode, s), weight, per_sample_weights
    )


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
        return of_tensors(name, fun, (input, target, *args), _with_reduction(kwargs))

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__ and fun.__doc__.split("\n\n")[0]
    call.__signature__ = in_torch_words(fun)  # type: ignore[attr-defined]
    return call


def _of_labels(fun: Callable) -> Callable:
    """Return a loss of class numbers that leaves out those of -100 by default, as PyTorch does."""
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


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance of tensors, by default
    :func:`pairwise_distance`."""
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = f.minimum(far, distance(positive, negative)) if swap else far
    rows = f.clamp(near - far + margin, 0.0)
    return rows if reduction == "none" else rows.sum() if reduction == "sum" else rows.mean()

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_",
    "embedding", "embedding_bag", "fold", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm",
    "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "hinge_embedding_loss",
    "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_",
    "linear", "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool2d", "mish", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot",
    "pad", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6",
    "relu_", "rms_norm", "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold",
]  # fmt: skip

__getattr__ = explain_missing("torch.nn.functional", globals())
