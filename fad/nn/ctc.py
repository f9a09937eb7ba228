"""Connectionist temporal classification: the loss of a sequence of labels that are not aligned with the input."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.tracing.tracer import bind
from fad.errors import ShapeMismatchError
from fad.nn.fused import counting
from fad.nn.labels import LabelError, checked_labels_p
from fad.nn.losses import reduce
from fad.typing import Array

__all__ = ["ctc_loss"]

_NEVER = -1e30  # the logarithm of the probability of what cannot be: finite, so that its derivative is zero and no NaN


def ctc_loss(
    log_probs: Array, targets: Array, input_lengths: Array, target_lengths: Array, blank: int = 0, *,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Array:  # fmt: skip
    """Return minus the logarithm of the probability that the classes drawn at all times, repetitions merged and blanks
    left out, are the targets (A. Graves et al., ICML 2006).

    Parameters
    ----------
    log_probs : array of shape (T, N, C) or (T, C)
        Logarithms of probabilities of C classes, as of `log_softmax`.
    targets : integers of shape (N, S), or one after another (sum of `target_lengths`,), or (S,)
        The labels, none of which is the blank.
    input_lengths, target_lengths : integers of shape (N,), or numbers
        How much of each row counts.
    blank : int
        The class that stands for no label.
    reduction : str, keyword only
        ``"mean"`` divides each loss by the number of its labels and takes the mean; ``"sum"``, ``"none"``.
    zero_infinity : bool, keyword only
        Whether a target that is too long for its input counts 0 instead of infinity. Its gradient is zero in any case.

    Raises
    ------
    ShapeMismatchError, LabelError

    Examples
    --------
    >>> ctc_loss(np.log(np.full((2, 1, 2), 0.5)), np.array([[1]]), [2], [1])    # 01, 10 and 11 of four
    np.float64(0.2876820724517809)
    """
    single = log_probs.ndim == 2
    log_probs = log_probs[:, None] if single else log_probs
    n, classes = log_probs.shape[1:]
    sizes, lengths = (np.atleast_1d(_whole(x)) for x in (input_lengths, target_lengths))
    labels = _rows(_whole(targets), lengths, n)
    _check(labels, sizes, lengths, log_probs.shape)
    spaced, jumps = _space(labels, lengths, blank, classes)
    total = _last_two(_forward(log_probs, spaced, jumps, sizes), lengths)
    possible = total > 0.5 * _NEVER
    losses = np.where(possible, -total, 0.0 if zero_infinity else np.inf)
    if reduction == "mean":
        return np.mean(losses / np.maximum(lengths, 1).astype(log_probs.dtype))
    return reduce(losses[0] if single and reduction == "none" else losses, reduction)


def _whole(x: Any) -> Any:
    x = x if hasattr(x, "dtype") else np.asarray(x)
    if x.dtype.kind not in "iu":
        raise LabelError(f"targets and lengths are whole numbers, not {x.dtype}")
    return x


def _rows(targets: Any, lengths: Any, n: int) -> Any:
    """Return the targets as one row for each example."""
    if targets.ndim == 2:
        return targets
    if targets.ndim != 1 or len(lengths) != n:
        raise ShapeMismatchError(
            "ctc_loss needs targets of shape (N, S) or (sum of target_lengths,), and N target lengths: for "
            f"{n} examples it got the shapes {targets.shape} and {lengths.shape}"
        )
    if n == 1:
        return targets[None]
    ends = np.cumsum(lengths)
    if targets.size < ends[-1]:
        raise ShapeMismatchError(f"ctc_loss got {targets.size} labels, but lengths that add up to {ends[-1]}")
    places = (ends - lengths)[:, None] + counting(max(int(np.max(lengths)), 1), lengths)
    return targets[np.minimum(places, targets.size - 1)] if targets.size else np.zeros_like(places)


def _check(labels: Any, sizes: Any, lengths: Any, shape: tuple) -> None:
    times, n, _ = shape
    if len(labels) != n or sizes.shape != (n,) or lengths.shape != (n,):
        raise ShapeMismatchError(
            f"ctc_loss of {n} examples got {len(labels)} targets, {sizes.size} input lengths and {lengths.size} target "
            "lengths: log_probs have shape (T, N, C)"
        )
    if np.max(sizes) > times or np.max(lengths) > labels.shape[1] or min(np.min(sizes), np.min(lengths)) < 0:
        raise ShapeMismatchError(
            f"lengths must lie within the {times} times and the {labels.shape[1]} labels, but go up to "
            f"{np.max(sizes)} and {np.max(lengths)}"
        )


def _space(labels: Any, lengths: Any, blank: int, classes: int) -> tuple[Any, Any]:
    """Return the labels with blanks around each, and where the blank before a label may be left out."""
    if not 0 <= blank < classes:
        raise LabelError(f"blank={blank} is none of {classes} classes")
    used = counting(labels.shape[1], labels) < lengths[:, None]
    if np.any(used & (labels == blank)):
        raise LabelError(f"a target is the blank, {blank}, which stands for no label")
    labels = np.where(used, labels, blank)
    labels = bind(checked_labels_p, labels, classes=classes, ignore_index=None) if labels.size else labels
    pairs = np.stack([np.full_like(labels, blank), labels], axis=-1)
    end = np.full_like(labels, blank, shape=(len(labels), 1))
    spaced = np.concatenate([pairs.reshape(len(labels), -1), end], axis=1)
    other = (spaced[:, 2:] != blank) & (spaced[:, 2:] != spaced[:, :-2])
    return spaced, np.concatenate([np.zeros_like(other, shape=(len(labels), 2)), other], axis=1)


def _forward(log_probs: Any, spaced: Any, jumps: Any, sizes: Any) -> Any:
    """Return for each place the logarithm of the probability of all ways that are there at the end."""
    times, n, _ = log_probs.shape
    seen = np.take_along_axis(log_probs, np.broadcast_to(spaced, (times, *spaced.shape)), axis=2)
    seen = np.maximum(seen, _NEVER / 4)
    never = np.full_like(log_probs, _NEVER, shape=(n, 2))
    start = np.full_like(log_probs, _NEVER, shape=spaced.shape)
    a = np.where(counting(start.shape[1], start) < 2, seen[0], start) if times else start
    for t in range(1, times):
        one = np.concatenate([never[:, :1], a[:, :-1]], axis=1)
        two = np.where(jumps, np.concatenate([never, a[:, :-2]], axis=1)[:, : a.shape[1]], _NEVER)
        new = np.maximum(np.logaddexp(np.logaddexp(a, one), two) + seen[t], _NEVER)
        a = np.where((t < sizes)[:, None], new, a)
    return a


def _last_two(last: Any, lengths: Any) -> Any:
    """Return the logarithm of the sum over the ways that end in the last label or the blank after it."""
    blank = np.take_along_axis(last, 2 * lengths[:, None], axis=1)[:, 0]
    label = np.take_along_axis(last, np.maximum(2 * lengths - 1, 0)[:, None], axis=1)[:, 0]
    return np.logaddexp(blank, np.where(lengths > 0, label, _NEVER))
