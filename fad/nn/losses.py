"""Losses, in PyTorch's names and conventions; each returns the mean unless `reduction` says otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracing.tracer import bind
from fad.errors import ShapeMismatchError
from fad.nn.fused import counting, cross_entropy_p, log_softmax_p
from fad.nn.labels import check_integer_labels, checked_labels_p
from fad.ops.arrangement.structural import normalize_axis
from fad.typing import Array

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_soft_margin_loss", "nll_loss",
    "pairwise_distance", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def reduce(rows: Any, reduction: str) -> Any:
    """Apply ``"mean"``, ``"sum"`` or ``"none"``."""
    if reduction == "mean":
        return np.mean(rows)
    if reduction == "sum":
        return np.sum(rows)
    if reduction == "none":
        return rows
    raise ValueError(f"reduction must be 'mean', 'sum' or 'none', not {reduction!r}")


def _same_shape(name: str, x: Any, y: Any) -> None:
    if np.shape(x) != np.shape(y):
        raise ShapeMismatchError(
            f"{name} needs a prediction and a target of one shape, but they have {np.shape(x)} and {np.shape(y)}; "
            "broadcasting them would take a mean over pairs that do not belong together"
        )


# --- classes -------------------------------------------------------------------------------------------------------


def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    axis: int | None = None,
) -> Array:
    """Return the negative logarithm of the softmax probability of the right class.

    Parameters
    ----------
    input : array
        Logits; the classes are along `axis`: by default axis 1, or 0 if there is only one.
    target : array
        Class numbers, of the shape of `input` without that axis; or class probabilities, of the shape of `input`.
    weight : array of shape (classes,), optional
        A weight for each class; the mean is then a weighted one.
    ignore_index : int, optional
        Rows with this label count for nothing.
    label_smoothing : float
        How much of each target to spread evenly over all classes.
    reduction : "mean", "sum" or "none", keyword only
        What is made of the losses of the rows.
    axis : int, keyword only
        Of the classes.

    Raises
    ------
    LabelError, ShapeMismatchError

    Examples
    --------
    >>> cross_entropy(np.zeros((2, 4)), np.array([0, 3]))
    np.float64(1.3862943611198906)
    """
    target = target if hasattr(target, "dtype") else np.asarray(target)
    shape = input.shape
    axis = normalize_axis((1 if len(shape) > 1 else 0) if axis is None else axis, len(shape))
    logits = input if axis == len(shape) - 1 else np.moveaxis(input, axis, -1)
    if target.shape == shape and target.dtype.kind == "f":
        target = target if axis == len(shape) - 1 else np.moveaxis(target, axis, -1)
        return _soft_cross_entropy(logits, target, weight, reduction, label_smoothing)
    if target.shape != shape[:axis] + shape[axis + 1 :]:
        raise ShapeMismatchError(
            f"cross_entropy with logits of shape {shape} and classes along axis {axis} needs labels of shape "
            f"{shape[:axis] + shape[axis + 1 :]}, but they have {target.shape}"
        )
    check_integer_labels(target)
    if weight is None and ignore_index is None and not label_smoothing:
        if reduction not in ("mean", "sum", "none"):
            reduce(input, reduction)
        return bind(cross_entropy_p, logits, target, reduction=reduction, batch_rank=0)
    logs = bind(log_softmax_p, logits, axis=logits.ndim - 1)
    return _pick_loss(logs, target, weight, ignore_index, reduction, label_smoothing)


def _soft_cross_entropy(logits, target, weight, reduction, smoothing):
    classes = logits.shape[-1]
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / classes
    logs = bind(log_softmax_p, logits, axis=logits.ndim - 1)
    rows = -np.sum((logs if weight is None else logs * weight) * target, axis=-1)
    return reduce(rows, reduction)


def _pick_loss(logs, target, weight, ignore_index, reduction, smoothing):
    classes = logs.shape[-1]
    check_integer_labels(target)
    target = bind(checked_labels_p, target, classes=classes, ignore_index=ignore_index)
    used = np.ones_like(target, dtype=bool) if ignore_index is None else target != ignore_index
    safe = np.where(used, target, 0)
    weights = np.ones_like(logs, shape=(classes,)) if weight is None else weight
    mine = np.where(used, weights[safe], 0.0)
    rows = -np.take_along_axis(logs, safe[..., None], axis=-1)[..., 0] * mine
    if smoothing:
        spread = -np.sum(logs * weights, axis=-1) * used
        rows = (1.0 - smoothing) * rows + smoothing / classes * spread
    if reduction == "mean":
        return np.sum(rows) / np.sum(mine)
    return reduce(rows, reduction)


def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """Return minus the logarithmic probability of the right class; the classes are along axis 1 (0 if the only one).

    >>> nll_loss(np.log(np.array([[0.5, 0.5]])), np.array([1]))
    np.float64(0.6931471805599453)
    """
    target = target if hasattr(target, "dtype") else np.asarray(target)
    axis = 1 if input.ndim > 1 else 0
    if target.shape != input.shape[:axis] + input.shape[axis + 1 :]:
        raise ShapeMismatchError(f"nll_loss with input {input.shape} does not fit labels of shape {target.shape}")
    return _pick_loss(np.moveaxis(input, axis, -1), target, weight, ignore_index, reduction, 0.0)


def binary_cross_entropy_with_logits(
    input: Array, target: Array, weight: Array | None = None, *, pos_weight: Array | None = None,
    reduction: str = "mean",
) -> Array:  # fmt: skip
    """Return -t log σ(x) - (1 - t) log(1 - σ(x)), exact for large ``|x|``; `pos_weight` multiplies the first term.

    >>> binary_cross_entropy_with_logits(np.array([0.0, 800.0]), np.array([0.0, 1.0]))
    np.float64(0.34657359027997264)
    """
    _same_shape("binary_cross_entropy_with_logits", input, target)
    negative = np.logaddexp(-input, 0.0)  # -log σ(x)
    if pos_weight is None:
        rows = (1.0 - target) * input + negative
    else:
        rows = (1.0 - target) * input + (1.0 + (pos_weight - 1.0) * target) * negative
    return reduce(rows if weight is None else rows * weight, reduction)


def binary_cross_entropy(input: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean") -> Array:
    """Return -t log p - (1 - t) log(1 - p) of probabilities p; the logarithms are at least -100, as in PyTorch.

    >>> fad.grad(fad.nn.functional.binary_cross_entropy)(np.array([0.5, 0.25]), np.array([1.0, 0.0])).round(3)
    array([-1.   ,  0.667])
    """
    _same_shape("binary_cross_entropy", input, target)
    rows = -(target * np.maximum(np.log(input), -100.0) + (1.0 - target) * np.maximum(np.log1p(-input), -100.0))
    return reduce(rows if weight is None else rows * weight, reduction)


def soft_margin_loss(input: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Return log(1 + exp(-t x)) for targets t of -1 and 1.

    >>> fad.nn.functional.soft_margin_loss(np.array([0.0, 0.0]), np.array([1.0, -1.0])).round(3)
    np.float64(0.693)
    """
    _same_shape("soft_margin_loss", input, target)
    return reduce(np.logaddexp(-target * input, 0.0), reduction)


def multilabel_soft_margin_loss(
    input: Array, target: Array, weight: Array | None = None, *, reduction: str = "mean"
) -> Array:
    """Return the mean over classes, the last axis, of :func:`binary_cross_entropy_with_logits`.

    >>> fad.nn.functional.multilabel_soft_margin_loss(np.zeros((1, 2)), np.array([[1.0, 0.0]])).round(3)
    np.float64(0.693)
    """
    rows = binary_cross_entropy_with_logits(input, target, weight, reduction="none")
    return reduce(np.mean(rows, axis=-1), reduction)


def multi_margin_loss(
    input: Array, target: Array, p: int = 1, margin: float = 1.0, weight: Array | None = None, *,
    reduction: str = "mean",
) -> Array:  # fmt: skip
    """Return the mean over the other classes of max(0, margin - input of the right class + theirs)^p.

    >>> multi_margin_loss(np.array([[0.5, 0.0, 1.0]]), np.array([0]))
    np.float64(0.6666666666666666)
    """
    target = target if hasattr(target, "dtype") else np.asarray(target)
    check_integer_labels(target)
    classes = input.shape[-1]
    target = bind(checked_labels_p, target, classes=classes, ignore_index=None)
    right = np.take_along_axis(input, target[..., None], axis=-1)
    rows = np.maximum(margin - right + input, 0.0) ** p
    rows = rows if weight is None else rows * weight[target][..., None]
    others = np.where(counting(classes, input) == target[..., None], 0.0, rows)
    return reduce(np.sum(others, axis=-1) / float(classes), reduction)


# --- numbers -------------------------------------------------------------------------------------------------------


def mse_loss(input: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Return the squared difference.

    >>> mse_loss(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    np.float64(2.0)
    """
    _same_shape("mse_loss", input, target)
    difference = input - target
    return reduce(difference * difference, reduction)


def l1_loss(input: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Return the absolute difference.

    >>> fad.nn.functional.l1_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    np.float64(1.0)
    """
    _same_shape("l1_loss", input, target)
    return reduce(np.abs(input - target), reduction)


def huber_loss(input: Array, target: Array, *, delta: float = 1.0, reduction: str = "mean") -> Array:
    """Return d²/2 where the difference d is at most `delta`, and ``delta (|d| - delta/2)`` beyond.

    >>> fad.grad(fad.nn.functional.huber_loss)(np.array([0.5, 3.0]), np.array([0.0, 0.0]))
    array([0.25, 0.5 ])
    """
    _same_shape("huber_loss", input, target)
    d = np.abs(input - target)
    return reduce(np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


def smooth_l1_loss(input: Array, target: Array, *, beta: float = 1.0, reduction: str = "mean") -> Array:
    """Return :func:`huber_loss` divided by its `delta`, here called `beta`; with beta 0 the absolute difference.

    >>> fad.nn.functional.smooth_l1_loss(np.array([0.5, 3.0]), np.array([0.0, 0.0]))
    np.float64(1.3125)
    """
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return huber_loss(input, target, delta=beta, reduction=reduction) / beta


def gaussian_nll_loss(
    input: Array, target: Array, var: Array, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Array:
    """Return minus the logarithm of a normal density of mean `input` and variance `var` at `target`.

    >>> fad.nn.functional.gaussian_nll_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]), np.array([1.0, 1.0]))
    np.float64(1.0)
    """
    _same_shape("gaussian_nll_loss", input, target)
    var = np.maximum(var, eps)
    difference = input - target
    rows = 0.5 * (np.log(var) + difference * difference / var)
    return reduce(rows + 0.5 * math.log(2.0 * math.pi) if full else rows, reduction)


def kl_div(input: Array, target: Array, *, log_target: bool = False, reduction: str = "mean") -> Array:
    """Return t (log t - x) of a target t and logarithmic probabilities x; ``"batchmean"`` divides by the first axis.

    >>> fad.nn.functional.kl_div(np.log(np.array([0.5, 0.5])), np.array([0.5, 0.5]), reduction="sum")
    np.float64(0.0)
    """
    _same_shape("kl_div", input, target)
    if log_target:
        rows = np.exp(target) * (target - input)
    else:
        positive = target > 0.0
        rows = np.where(positive, target * (np.log(np.where(positive, target, 1.0)) - input), 0.0)
    return np.sum(rows) / float(rows.shape[0]) if reduction == "batchmean" else reduce(rows, reduction)


def cosine_similarity(x: Array, y: Array, axis: int = 1, eps: float = 1e-8) -> Array:
    """Return the cosine of the angle between x and y along an axis.

    >>> fad.nn.functional.cosine_similarity(np.eye(2), np.ones((2, 2))).round(3)
    array([0.707, 0.707])
    """
    norms = np.linalg.norm(x, axis=axis) * np.linalg.norm(y, axis=axis)
    return np.sum(x * y, axis=axis) / np.maximum(norms, eps)


# --- pairs ---------------------------------------------------------------------------------------------------------


def pairwise_distance(x: Array, y: Array, p: float = 2.0, eps: float = 1e-6) -> Array:
    """Return the p-norm of ``x - y + eps`` along the last axis.

    >>> fad.nn.functional.pairwise_distance(np.zeros((1, 2)), np.array([[3.0, 4.0]])).round(3)
    array([5.])
    """
    return np.linalg.norm(x - y + eps, ord=p, axis=-1)


def margin_ranking_loss(x: Array, y: Array, target: Array, margin: float = 0.0, *, reduction: str = "mean") -> Array:
    """Return max(0, margin - t (x - y)): t is 1 where x should be larger, -1 where y should.

    >>> fad.nn.functional.margin_ranking_loss(np.array([1.0, 2.0]), np.array([2.0, 1.0]), np.array([1.0, 1.0]))
    np.float64(0.5)
    """
    return reduce(np.maximum(margin - target * (x - y), 0.0), reduction)


def hinge_embedding_loss(input: Array, target: Array, margin: float = 1.0, *, reduction: str = "mean") -> Array:
    """Return the input, a distance, where the target is 1, and max(0, margin - input) where it is -1.

    >>> fad.nn.functional.hinge_embedding_loss(np.array([0.5, 0.25]), np.array([1.0, -1.0]))
    np.float64(0.625)
    """
    _same_shape("hinge_embedding_loss", input, target)
    return reduce(np.where(target > 0, input, np.maximum(margin - input, 0.0)), reduction)


def cosine_embedding_loss(x: Array, y: Array, target: Array, margin: float = 0.0, *, reduction: str = "mean") -> Array:
    """Return 1 - cos(x, y) where the target is 1, and max(0, cos(x, y) - margin) where it is -1.

    >>> fad.nn.functional.cosine_embedding_loss(np.eye(2), np.ones((2, 2)), np.array([1.0, -1.0])).round(3)
    np.float64(0.5)
    """
    cosine = cosine_similarity(x, y, axis=-1, eps=1e-12)
    return reduce(np.where(target > 0, 1.0 - cosine, np.maximum(cosine - margin, 0.0)), reduction)


def triplet_margin_loss(
    anchor: Array, positive: Array, negative: Array, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, *, reduction: str = "mean",
) -> Array:  # fmt: skip
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin), d the :func:`pairwise_distance`; with `swap`
    d(positive, negative) takes the place of the second where it is smaller.

    >>> a, far = np.zeros((1, 2)), np.ones((1, 2))
    >>> fad.nn.functional.triplet_margin_loss(a, a, far, margin=3.0).round(3)
    np.float64(1.586)
    """
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    far = np.minimum(far, pairwise_distance(positive, negative, p, eps)) if swap else far
    return reduce(np.maximum(near - far + margin, 0.0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Array, positive: Array, negative: Array, *, distance_function: Callable | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Array:  # fmt: skip
    """Return :func:`triplet_margin_loss` with another distance than :func:`pairwise_distance`.

    >>> a, far = np.zeros((1, 2)), np.ones((1, 2))
    >>> fad.nn.functional.triplet_margin_with_distance_loss(a, a, far).round(3)
    np.float64(0.0)
    """
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    far = np.minimum(far, distance(positive, negative)) if swap else far
    return reduce(np.maximum(near - far + margin, 0.0), reduction)


def poisson_nll_loss(
    input: Array, target: Array, *, log_input: bool = True, full: bool = False, eps: float = 1e-8,
    reduction: str = "mean",
) -> Array:  # fmt: skip
    """Return minus the logarithmic probability of counts under rates, or logarithms of rates with `log_input`, without
    the part that the input does not change; `full` adds Stirling's approximation of it.

    >>> fad.nn.functional.poisson_nll_loss(np.array([0.0, 0.0]), np.array([1.0, 3.0]))
    np.float64(1.0)
    """
    _same_shape("poisson_nll_loss", input, target)
    rows = np.exp(input) - target * input if log_input else input - target * np.log(input + eps)
    if full:
        large = target > 1
        t = np.where(large, target, 1.0)
        rows = rows + np.where(large, t * np.log(t) - t + 0.5 * np.log(2.0 * math.pi * t), 0.0)
    return reduce(rows, reduction)
