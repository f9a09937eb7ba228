"""The order of elements in memory: copies lie there as NumPy's do, for on that depends what is a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.archetypes import linear
from fad.core.memory import RUNS, layout, snapshot
from fad.core.samples import call
from fad.core.tracer import Tracer, bind


def _order_batch(size, batched, xs, params):
    if params["order"] in "CK":  # the batch axis leaves the order of the others as it is
        return bind(order_p, xs[0], **params)
    axes = (0, *range(1, xs[0].ndim)[::-1])
    return bind(order_p, xs[0].transpose(axes), order="C").transpose(axes)


order_p: Any = linear(
    "in_memory_order",
    lambda x, *, order: np.copy(x, order=order),
    lambda ct, x, *, order: ct,
    _order_batch,
    samples=lambda s: [call(s.real(3, 4), order=o) for o in "FCK"],
    text=lambda x, order: f"np.array({x}, order='{order}')",
    doc="The same array, laid out in memory in another order.",
)


def lay_out(x, order):
    """Return an array as it lies in memory in C or Fortran's order: itself, if it does, else a copy."""
    if type(x) is not Tracer:
        return np.copy(x, order=order)
    RUNS.asked = True
    plain = layout(x)
    return x if type(plain) is not np.ndarray or plain.flags[f"{order}_CONTIGUOUS"] else bind(order_p, x, order=order)


def lay_out_like(y: Any, x: Any) -> Any:
    """Return a result in Fortran's order if the operand lies so and in no other, else in C's: as NumPy's copies do."""
    if type(y) is not Tracer:
        return y
    plain = layout(x)
    return lay_out(y, "F" if type(plain) is np.ndarray and plain.flags.fnc else "C")


def duplicate(x: Tracer) -> Any:
    """Return a copy in the order of the axes in memory; gaps between elements, as of ``x[::2]``, are not copied."""
    plain = layout(x)
    if type(plain) is np.ndarray and not plain.flags.forc and plain.strides != np.empty_like(plain).strides:
        return bind(order_p, x, order="K")
    return snapshot(x)
