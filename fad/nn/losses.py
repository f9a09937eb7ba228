"""Losses, in PyTorch's names and conventions; each returns the mean unless `reduction` says otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.tracer import Tracer, bind
from fad.errors import FadError, ShapeMismatchError
from fad.nn.fused import cross_entropy_p
from fad.ops.structural import normalize_axis


class LabelError(FadError, ValueError):
    """Class numbers given to a loss are not whole numbers from 0 to the number of classes - 1.

    Wrong::

        F.cross_entropy(logits, np.array([1, 2, 10]))    # logits have 10 columns: the classes are 0 to 9

    Right::

        F.cross_entropy(logits, np.array([1, 2, 9]))
        F.cross_entropy(logits, np.array([1, 2, -100]), ignore_index=-100)
    """


def check_labels(labels: Any, classes: int) -> None:
    """Raise LabelError unless labels are integers in range. Looks at the plain values behind traced labels."""
    while type(labels) is Tracer:
        labels = labels.value
    if labels.dtype.kind not in "iu":
        raise LabelError(
            f"class numbers must be integers, but have dtype {labels.dtype}: write labels.astype(int). "
            "Class probabilities must have the shape of the logits"
        )
    if not labels.size:
        raise LabelError("no labels: the mean over an empty batch is not defined")
    low, high = labels.min(), labels.max()
    if low < 0 or high >= classes:
        raise LabelError(
            f"class numbers must lie in 0 ... {classes - 1} for {classes} classes, but range from {low} to {high}. "
            "Labels to be left out need ignore_index"
        )


def reduced(rows: Any, reduction: str) -> Any:
    """Apply ``"mean"``, ``"sum"`` or ``"none"``."""
    if reduction == "mean":
        return np.mean(rows)
    if reduction == "sum":
        return np.sum(rows)
    if reduction == "none":
        return rows
    raise ValueError(f"reduction must be 'mean', 'sum' or 'none', not {reduction!r}")


def cross_entropy(input: Any, target: Any, *, reduction: str = "mean", axis: int | None = None) -> Any:
    """Return the negative logarithm of the softmax probability of the right class.

    Parameters
    ----------
    input : array
        Logits; the classes are along `axis`: by default axis 1, or 0 if there is only one.
    target : integer array
        Class numbers, of the shape of `input` without that axis.

    Raises
    ------
    LabelError, ShapeMismatchError

    >>> cross_entropy(np.zeros((2, 4)), np.array([0, 3]))
    np.float64(1.3862943611198906)
    """
    target = target if hasattr(target, "dtype") else np.asarray(target)
    axis = normalize_axis((1 if input.ndim > 1 else 0) if axis is None else axis, input.ndim)
    shape = input.shape
    if target.shape != shape[:axis] + shape[axis + 1 :]:
        raise ShapeMismatchError(
            f"cross_entropy with logits of shape {shape} and classes along axis {axis} needs labels of shape "
            f"{shape[:axis] + shape[axis + 1 :]}, but they have {target.shape}"
        )
    check_labels(target, shape[axis])
    logits = input if axis == input.ndim - 1 else np.moveaxis(input, axis, -1)
    return bind(cross_entropy_p, logits, target, reduction=reduction, lanes=0)
