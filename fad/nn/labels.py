"""Whole numbers that say which: classes and rows of a table. Out of range they are an error, also when jit replays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import behind
from fad.core.primitives.archetypes import flat
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind
from fad.errors import FadError
from fad.ops.places.taking import take


class LabelError(FadError, ValueError):
    """Class numbers given to a loss are not whole numbers from 0 to the number of classes - 1.

    Wrong::

        F.cross_entropy(logits, np.array([1, 2, 10]))    # logits have 10 columns: the classes are 0 to 9

    Right::

        F.cross_entropy(logits, np.array([1, 2, 9]))
        F.cross_entropy(logits, np.array([1, 2, -100]), ignore_index=-100)
    """


def check_labels(labels: Any, classes: int, ignore_index: int | None = None) -> None:
    """Raise LabelError unless plain labels lie in 0 ... classes - 1."""
    if ignore_index is not None:
        labels = labels[labels != ignore_index]
    if not labels.size:
        raise LabelError("there are no labels to take a loss over: the batch is empty, or all were to be ignored")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise LabelError(
            f"class numbers must lie in 0 ... {classes - 1} for {classes} classes, but range from {low} to {high}. "
            "Labels to be left out need ignore_index"
        )


def spoilt(values: Any, labels: Any, classes: int) -> Any:
    """Return NaN where a label is out of range: the answer on a device, which is not kept waiting for an error."""
    return np.where((labels < 0) | (labels >= classes), np.nan, values).astype(values.dtype)


def check_integer_labels(labels: Any) -> None:
    """Raise LabelError unless labels are integers; looks at the dtype only."""
    if labels.dtype.kind not in "iu":
        raise LabelError(
            f"class numbers must be integers, but have dtype {labels.dtype}: write labels.astype(int). "
            "Class probabilities must have the shape of the logits"
        )


def _check_labels(labels, *, classes, ignore_index):
    check_labels(labels, classes, ignore_index)
    return labels


def _check_rows(indices, *, n):
    on_host = isinstance(indices, (np.ndarray, np.generic))  # a device is not kept waiting: see `look_up`
    if on_host and indices.size and (indices.min() < 0 or indices.max() >= n):
        raise IndexError(f"indices must lie in 0 ... {n - 1}, but range from {indices.min()} to {indices.max()}")
    return indices


checked_labels_p: Any = flat(
    "checked_labels",
    _check_labels,
    batch=lambda size, batched, xs, params: bind(checked_labels_p, *xs, **params),
    samples=lambda s: [call(s.ints(0, 4, (3,)), classes=4, ignore_index=None)],
    doc="Class numbers, or an error if one is none.",
)
checked_rows_p: Any = flat(
    "checked_rows",
    _check_rows,
    batch=lambda size, batched, xs, params: bind(checked_rows_p, *xs, **params),
    samples=lambda s: [call(s.ints(0, 4, (3,)), n=4), call(np.zeros((0,), int), n=4)],
    doc="Row numbers, or an error if one is none.",
)


def look_up(weight: Any, indices: Any) -> Any:
    """Return the rows of a table at whole numbers; out of range they are an error, and on a device NaN."""
    indices = checked_rows(indices, len(weight))
    rows = take(weight, indices, axis=0) if type(indices) is Tracer else weight[indices]
    return rows if behind(indices).name == "numpy" else spoilt(rows, indices[..., None], len(weight))


def checked_rows(indices: Any, n: int) -> Any:
    """Return whole numbers in 0 ... n - 1 as they are; raise IndexError otherwise.

    A negative one would silently mean another row.
    """
    indices = indices if hasattr(indices, "dtype") else np.asarray(indices)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"a table is looked up by whole numbers, not {indices.dtype}")
    return bind(checked_rows_p, indices, n=n)
