"""Activations, layers and losses as functions, in PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import random
from fad.backends import backend_of
from fad.core.primitives.archetypes import elementwise
from fad.core.tracing.tracer import bind
from fad.core.tracing.values import stop_gradient
from fad.nn.ctc import *  # noqa: F403  (losses are functions too, and have files of their own)
from fad.nn.ctc import __all__ as _ctc
from fad.nn.fused import affine, counting, log_softmax_p, relu, softmax_p
from fad.nn.grids import *  # noqa: F403  (and images at other places)
from fad.nn.grids import __all__ as _grids
from fad.nn.labels import checked_rows, look_up
from fad.nn.losses import *  # noqa: F403
from fad.nn.losses import __all__ as _losses
from fad.nn.norms import *  # noqa: F403  (and what brings to a common scale)
from fad.nn.norms import __all__ as _norms
from fad.nn.parameters import document_functions
from fad.nn.windows import *  # noqa: F403  (convolutions, poolings, padding and resizing, too)
from fad.nn.windows import __all__ as _windows
from fad.ops.arrangement.structural import normalize_axis
from fad.ops.ufuncs.activation import sigmoid
from fad.typing import Array, DTypeLike, Key

__all__ = [
    *_ctc, *_losses, *_norms, *_windows, *_grids, "alpha_dropout", "attention_weights", "bilinear", "celu", "dropout",
    "dropout1d", "dropout2d", "dropout3d", "elu", "embedding", "embedding_bag", "gelu", "glu", "gumbel_softmax",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax",
    "logsigmoid", "mish", "one_hot", "prelu", "relu", "relu6", "scaled_dot_product_attention", "selu", "sigmoid",
    "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
]  # fmt: skip

# --- elementwise activations ---------------------------------------------------------------------------------------

_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
_slow_cdf = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0)), otypes=[float])


def _normal_cdf(x):
    ndtr = backend_of(x).scipy_function("special.ndtr")
    return _slow_cdf(x).astype(x.dtype) if ndtr is None else ndtr(x)


normal_cdf = elementwise(
    "normal_cdf", lambda _z, x: _DENSITY * np.exp(-0.5 * x * x), forward=_normal_cdf, complex=True,
    doc="The distribution function of the standard normal distribution, (1 + erf(x / sqrt(2))) / 2, elementwise.",
    lower="normal_cdf({0})",
)


def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent.

    >>> fad.nn.functional.tanh(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.762,  0.   ,  0.964])
    """
    return np.tanh(x)


def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """Return x where it is positive, else `negative_slope` times x.

    >>> leaky_relu(np.array([-1.0, 1.0]))
    array([-0.01,  1.  ])
    """
    return np.where(x > 0.0, x, negative_slope * x)


def relu6(x: Array) -> Array:
    """Return x clipped to [0, 6].

    >>> fad.nn.functional.relu6(np.array([-1.0, 0.0, 7.0]))
    array([0., 0., 6.])
    """
    return hardtanh(x, 0.0, 6.0)


def hardtanh(x: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """Return x clipped to [min_val, max_val], flat outside and on the ends.

    >>> fad.grad(lambda x: fad.nn.functional.hardtanh(x).sum())(np.array([-4.0, 0.5, 4.0]))
    array([0., 1., 0.])
    """
    inside = (x > min_val) & (x < max_val)
    return np.where(inside, x, np.clip(stop_gradient(x), min_val, max_val))


def elu(x: Array, alpha: float = 1.0) -> Array:
    """Return x where it is positive, else ``alpha (exp(x) - 1)``.

    >>> fad.nn.functional.elu(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.632,  0.   ,  2.   ])
    """
    return np.where(x > 0.0, x, alpha * np.expm1(np.minimum(x, 0.0)))


def celu(x: Array, alpha: float = 1.0) -> Array:
    """Return x where it is positive, else ``alpha (exp(x / alpha) - 1)``.

    >>> fad.nn.functional.celu(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.632,  0.   ,  2.   ])
    """
    return np.where(x > 0.0, x, alpha * np.expm1(np.minimum(x, 0.0) / alpha))


def selu(x: Array) -> Array:
    """Return the self-normalising ELU (Klambauer et al., 2017).

    >>> fad.nn.functional.selu(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-1.111,  0.   ,  2.101])
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def softplus(x: Array, beta: float = 1.0) -> Array:
    """Return ``log(1 + exp(beta x)) / beta`` without overflow.

    >>> softplus(np.array([0.0, 1000.0]))
    array([6.93147181e-01, 1.00000000e+03])
    """
    return np.logaddexp(x, 0.0) if beta == 1.0 else np.logaddexp(beta * x, 0.0) / beta


def log_sigmoid(x: Array) -> Array:
    """Return the logarithm of the logistic function, without underflow.

    >>> fad.nn.functional.log_sigmoid(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-1.313, -0.693, -0.127])
    """
    return -np.logaddexp(-x, 0.0)


logsigmoid = log_sigmoid  # PyTorch's name


def softsign(x: Array) -> Array:
    """Return ``x / (1 + |x|)``.

    >>> fad.nn.functional.softsign(np.array([-1.0, 0.0, 3.0]))
    array([-0.5 ,  0.  ,  0.75])
    """
    return x / (1.0 + np.abs(x))


def silu(x: Array) -> Array:
    """Return x times the logistic function of x, also called swish.

    >>> fad.grad(lambda x: fad.nn.functional.silu(x).sum())(np.array([-1.0, 0.0, 2.0])).round(3)
    array([0.072, 0.5  , 1.091])
    """
    return x * sigmoid(x)


def mish(x: Array) -> Array:
    """Return x tanh(softplus(x)).

    >>> fad.nn.functional.mish(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.303,  0.   ,  1.944])
    """
    return x * np.tanh(softplus(x))


def hardsigmoid(x: Array) -> Array:
    """Return ``relu6(x + 3) / 6``.

    >>> fad.nn.functional.hardsigmoid(np.array([-4.0, 0.0, 4.0]))
    array([0. , 0.5, 1. ])
    """
    return relu6(x + 3.0) / 6.0


def hardswish(x: Array) -> Array:
    """Return x times ``hardsigmoid`` of x.

    >>> fad.nn.functional.hardswish(np.array([-4.0, 0.0, 4.0]))
    array([-0.,  0.,  4.])
    """
    return x * hardsigmoid(x)


def hardshrink(x: Array, lambd: float = 0.5) -> Array:
    """Return x where its size is larger than `lambd`, else 0.

    >>> fad.nn.functional.hardshrink(np.array([-1.0, 0.2, 2.0]))
    array([-1.,  0.,  2.])
    """
    return np.where(np.abs(x) > lambd, x, 0.0)


def softshrink(x: Array, lambd: float = 0.5) -> Array:
    """Return x brought closer to 0 by `lambd`, and 0 where it is closer than that.

    >>> fad.nn.functional.softshrink(np.array([-1.0, 0.2, 2.0]))
    array([-0.5,  0. ,  1.5])
    """
    return x - hardtanh(x, -lambd, lambd) if lambd else x


def tanhshrink(x: Array) -> Array:
    """Return ``x - tanh(x)``.

    >>> fad.nn.functional.tanhshrink(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.238,  0.   ,  1.036])
    """
    return x - np.tanh(x)


def threshold(x: Array, threshold: float, value: float) -> Array:
    """Return x where it is larger than a threshold, else `value`.

    >>> fad.nn.functional.threshold(np.array([-1.0, 0.0, 2.0]), 1.0, 9.0)
    array([9., 9., 2.])
    """
    return np.where(x > threshold, x, value)


def prelu(x: Array, weight: Array) -> Array:
    """Return x where it is positive, else weight times x: weight has one element, or one per channel (axis 1).

    >>> fad.nn.functional.prelu(np.array([-1.0, 0.0, 2.0]), np.array(np.array([0.25])))
    array([-0.25,  0.  ,  2.  ])
    """
    if weight.size > 1:
        weight = weight.reshape((1, -1) + (1,) * (x.ndim - 2))
    return np.where(x > 0.0, x, weight * x)


def gelu(x: Array, approximate: str = "none") -> Array:
    """Return x times the normal distribution function of x; ``approximate="tanh"`` is the usual approximation of it.

    >>> fad.nn.functional.gelu(np.array([-1.0, 0.0, 2.0])).round(3)
    array([-0.159,  0.   ,  1.954])
    """
    if approximate == "none":
        return x * normal_cdf(x)
    if approximate == "tanh":
        return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))
    raise ValueError(f"approximate must be 'none' or 'tanh', not {approximate!r}")


def glu(x: Array, axis: int = -1) -> Array:
    """Return the first half of x along an axis, times the logistic function of the second half.

    >>> fad.nn.functional.glu(np.array([3.0, 0.0]))
    array([1.5])
    """
    a, b = np.split(x, 2, axis=axis)
    return a * sigmoid(b)


# --- over an axis --------------------------------------------------------------------------------------------------


def softmax(x: Array, axis: int = -1) -> Array:
    """Return exp(x) / sum(exp(x)) along an axis, without overflow.

    >>> softmax(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    if not x.ndim and axis in (0, -1):
        return softmax(x.reshape(1), 0)[0]
    return bind(softmax_p, x, axis=normalize_axis(axis, x.ndim))


def softmin(x: Array, axis: int = -1) -> Array:
    """Return :func:`softmax` of -x.

    >>> fad.nn.functional.softmin(np.array([0.0, 0.0]))
    array([0.5, 0.5])
    """
    return softmax(-x, axis)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """Return the logarithm of ``softmax``, accurate where that underflows.

    >>> log_softmax(np.array([0.0, 1000.0]))
    array([-1000.,     0.])
    """
    if not x.ndim and axis in (0, -1):
        return log_softmax(x.reshape(1), 0)[0]
    return bind(log_softmax_p, x, axis=normalize_axis(axis, x.ndim))


# --- layers --------------------------------------------------------------------------------------------------------


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Return ``x @ weight.T + bias``: x of shape (..., in), weight (out, in), bias (out,), result (..., out).

    >>> linear(np.ones(2), np.array([[1.0, 2.0]]), np.array([0.5]))
    array([3.5])
    """
    if x.ndim == 0 or x.shape[-1] != weight.shape[-1]:
        raise ValueError(
            f"linear: the last axis of the input, of shape {x.shape}, must be the {weight.shape[-1]} input features "
            f"of the weight, of shape {weight.shape}"
        )
    return x @ weight.T if bias is None else bind(affine, x, weight, bias)


def embedding(indices: Array, weight: Array, padding_idx: int | None = None) -> Array:
    """Return the rows of `weight` at whole numbers: shape ``(*indices.shape, width)``.

    The row `padding_idx` gets no gradient.

    >>> fad.nn.functional.embedding(np.array([1, 0]), np.eye(2))
    array([[0., 1.],
           [1., 0.]])
    """
    rows = look_up(weight, indices)
    if padding_idx is None:
        return rows
    return np.where((indices == padding_idx)[..., None], stop_gradient(rows), rows)


def bilinear(x1: Array, x2: Array, weight: Array, bias: Array | None = None) -> Array:
    """Return ``x1ᵀ weight[k] x2 + bias[k]`` for each k: shapes (..., a), (..., b), (out, a, b) -> (..., out).

    >>> bilinear(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.ones((1, 2, 2)))
    array([21.])
    """
    y = np.einsum("...i,kij,...j->...k", x1, weight, x2)
    return y if bias is None else y + bias


def embedding_bag(
    indices: Array, weight: Array, offsets: Array | None = None, mode: str = "mean",
    per_sample_weights: Array | None = None,
) -> Array:  # fmt: skip
    """Return for each bag of whole numbers the ``"sum"``, ``"mean"`` or ``"max"`` of the rows of `weight` at them.

    A bag is a row of `indices`; or, if they have one axis, what lies between two of the `offsets`, where bags begin.
    An empty bag gives zeros.

    >>> embedding_bag(np.array([0, 1, 1]), np.array([[1.0], [3.0]]), np.array([0, 2]))
    array([[2.],
           [3.]])
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"mode must be 'sum', 'mean' or 'max', not {mode!r}")
    if per_sample_weights is not None and mode != "sum":
        raise ValueError("per_sample_weights are for mode='sum'")
    if (offsets is None) == (indices.ndim == 1):
        raise ValueError("bags are the rows of an array of two axes, or one axis is cut at offsets")
    rows = look_up(weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[..., None]
    if offsets is None:
        return _OF_BAGS[mode](rows, axis=1)
    ends = [*[int(i) for i in offsets[1:]], len(indices)]
    bags = [rows[int(a) : b] for a, b in zip(offsets, ends, strict=True)]
    return np.stack([_one_bag(bag, mode) for bag in bags])


_OF_BAGS: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "max": np.max}


def _one_bag(rows: Any, mode: str) -> Any:
    if not len(rows):
        return np.zeros_like(rows, shape=rows.shape[1:])
    return _OF_BAGS[mode](rows, axis=0)


def one_hot(labels: Array, num_classes: int, dtype: DTypeLike = float) -> Array:
    """Return an array with a last axis of `num_classes`: 1 at the label, 0 elsewhere.

    >>> one_hot(np.array([2, 0]), 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    labels = checked_rows(labels, num_classes)
    return (labels[..., None] == counting(num_classes, labels)).astype(dtype)


def dropout(x: Array, p: float = 0.5, *, key: Key, training: bool = True) -> Array:
    """Return x with each element set to 0 with probability p, and the others divided by 1 - p.

    A pure function of the random key: the same key drops the same elements.

    >>> fad.nn.functional.dropout(np.ones(4), 0.5, key=fad.random.key(0)).max()
    np.float64(2.0)
    """
    _check_probability(p)
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return x * 0.0
    keep = random.uniform(key, x.shape, np.float32) >= p
    return np.where(keep, x * (1.0 / (1.0 - p)), 0.0)


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p is a probability, not {p}")


def _channels_dropped(dims: int) -> Callable:
    def drop(x: Array, p: float = 0.5, *, key: Key, training: bool = True) -> Array:
        _check_probability(p)
        if not training or p == 0.0:
            return x
        lead = x.shape[: x.ndim - dims]
        return x * dropout(np.ones_like(x, shape=lead + (1,) * dims), p, key=key)

    drop.__name__ = drop.__qualname__ = f"dropout{dims}d"
    drop.__doc__ = f"""Return x with whole channels set to 0 with probability p, and the others divided by 1 - p.

    The last {dims} axes are inside a channel.

    >>> fad.nn.functional.dropout{dims}d(np.ones((4, 3{", 2" * dims})), 0.5, key=fad.random.key(0)).max()
    np.float64(2.0)
    """
    return drop


dropout1d, dropout2d, dropout3d = map(_channels_dropped, (1, 2, 3))


def alpha_dropout(x: Array, p: float = 0.5, *, key: Key, training: bool = True) -> Array:
    """Return x with elements set to the lower end of `selu`, and all brought back to mean 0 and variance 1
    (Klambauer et al., 2017).

    >>> fad.nn.functional.alpha_dropout(np.ones(2), training=False, key=fad.random.key(0))
    array([1., 1.])
    """
    _check_probability(p)
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return np.zeros_like(x)
    low = -1.7580993408473766  # -scale alpha of selu
    a = ((1.0 - p) * (1.0 + p * low * low)) ** -0.5
    keep = random.uniform(key, x.shape, np.float32) >= p
    return a * np.where(keep, x, low) - a * low * p


def gumbel_softmax(x: Array, tau: float = 1.0, hard: bool = False, axis: int = -1, *, key: Key) -> Array:
    """Return a relaxed draw of a class from logits: the softmax of x plus Gumbel's noise, over `tau`.

    With `hard` the result has a single one, and the derivative of the relaxed draw (E. Jang et al., ICLR 2017).

    >>> fad.nn.functional.gumbel_softmax(np.zeros(3), hard=True, key=fad.random.key(0)).sum()
    np.float64(1.0)
    """
    noise = -np.log(-np.log(random.uniform(key, x.shape, np.float64, 1e-300, 1.0)))
    y = softmax((x + noise.astype(x.dtype)) / tau, axis)
    if not hard:
        return y
    value = stop_gradient(y)
    best = (value == np.max(value, axis=axis, keepdims=True)).astype(x.dtype)
    return best - value + y


def attention_weights(
    query: Array, key: Key, mask: Array | None = None, *, is_causal: bool = False, scale: float | None = None
) -> Array:
    """Return softmax(query keyᵀ / √d), the weights of :func:`scaled_dot_product_attention`: shape (..., L, S).

    `scale` takes the place of 1 / √d.

    >>> fad.nn.functional.attention_weights(np.ones((1, 2)), np.ones((4, 2)))
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    scores = (query * (1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)) @ key.swapaxes(-1, -2)
    if is_causal:
        rows, columns = scores.shape[-2:]
        earlier = counting(rows, scores)[:, None] >= counting(columns, scores)
        scores = np.where(earlier, scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return softmax(scores)


def scaled_dot_product_attention(
    query: Array, key: Key, value: Array, mask: Array | None = None, *,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False, dropout_p: float = 0.0,
    dropout_key: Key | None = None,
) -> Array:  # fmt: skip
    """Return softmax(query keyᵀ / √d) value: shapes (..., L, d), (..., S, d), (..., S, v) -> (..., L, v).

    `mask` is boolean (true: may attend) or is added to the scores; `is_causal` lets position i attend to 0 ... i only.
    `scale` takes the place of 1 / √d. With `enable_gqa` the axis before the last two, of heads, may be longer by a
    whole factor in `query`: each head of `key` and `value` serves several of these (grouped queries). Each weight is
    dropped with the probability `dropout_p`, by a random key, as :func:`dropout` does it.

    >>> fad.nn.functional.scaled_dot_product_attention(np.ones((1, 2)), np.ones((4, 2)), np.ones((4, 3)))
    array([[1., 1., 1.]])
    """
    if enable_gqa:
        key, value = (_share_heads(x, query.shape[-3]) for x in (key, value))
    weights = attention_weights(query, key, mask, is_causal=is_causal, scale=scale)
    if dropout_p:
        weights = dropout(weights, dropout_p, key=dropout_key)
    return weights @ value


def _share_heads(x: Array, heads: int) -> Array:
    """Repeat each head of keys or values for the queries that share it."""
    times, rest = divmod(heads, x.shape[-3])
    if rest:
        raise ValueError(f"the {heads} heads of the query cannot share {x.shape[-3]} of keys or values evenly")
    return np.repeat(x, times, axis=-3)


document_functions({name: globals()[name] for name in __all__})
