"""The order of elements in memory: copies lie there as NumPy's do, for on that depends what is a view."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.primitives.archetypes import linear
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.views import RUNS, layout, repeats_elements, snapshot


def requests_copy(copy: Any) -> bool:
    """Return whether an argument ``copy=`` requests one; NumPy's enumeration cannot be asked that for "if needed"."""
    return copy is not np._CopyMode.IF_NEEDED and bool(copy)


def refuse_copy(copy: Any, what: str) -> None:
    """Raise as NumPy does where an argument ``copy=`` forbids the copy that has to be made."""
    if copy is np._CopyMode.NEVER or (copy is not None and copy is not np._CopyMode.IF_NEEDED and not copy):
        raise ValueError(f"Unable to avoid {what}")


def _copy_in_order(x, *, order):
    if type(order) is tuple:
        return np.copy(x.transpose(order), order="C").transpose(_invert(order))
    return np.copy(x, order=order)


def _invert(axes):
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def _order_batch(size, batched, xs, params):
    order = params["order"]
    if type(order) is str and order in "CK":  # the batch axis leaves the order of the others as it is
        return bind(order_p, xs[0], order=order)
    axes = range(xs[0].ndim - 1)[::-1] if type(order) is str else order
    return bind(order_p, xs[0], order=(0, *[axis + 1 for axis in axes]))


def _write_order(x, order):
    if type(order) is str:
        return f"np.array({x}, order='{order}')"
    return f"np.array({x}.transpose({order}), order='C').transpose({_invert(order)})"


order_p: Any = linear(
    "in_memory_order",
    _copy_in_order,
    lambda ct, x, *, order: ct,
    _order_batch,
    samples=lambda s: [call(s.real(3, 4), order=o) for o in ("F", "C", "K", (1, 0))],
    text=_write_order,
    lower="{0}",  # of values; what is a view is known when a program is recorded
    cheap=True,
    moves=True,
    dependence="moved",
    doc="The same array, laid out in memory in another order, of which the axes may be given.",
)


def lay_out(x, order):
    """Return an array as it lies in memory in C or Fortran's order: itself, if it does, else a copy."""
    if type(x) is not Tracer:
        return np.asarray(x, order=order) if type(x) is np.ndarray else np.copy(x, order=order)
    RUNS.asked = True
    plain = layout(x)
    if type(plain) is not np.ndarray or (plain.flags.f_contiguous if order == "F" else plain.flags.c_contiguous):
        return x
    return bind(order_p, x, order=order)


def in_order(function: Callable, order: str) -> Callable:
    """Return a function whose matrices and stacks, those that it returns, lie in memory in C or Fortran's order."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return tree.map(lay_out_matrix, function(*args, **kwargs))

    def lay_out_matrix(y: Any) -> Any:
        return lay_out(y, order) if type(y) is Tracer and y.ndim > 1 else y

    return call


def lay_out_like(y: Any, x: Any) -> Any:
    """Return a result in Fortran's order if the operand lies so and in no other, else in C's: as NumPy's copies do."""
    if not isinstance(y, (Tracer, np.ndarray)):
        return y
    plain = layout(x)
    return lay_out(y, "F" if type(plain) is np.ndarray and plain.flags.fnc else "C")


def lay_out_as_copy(y: Any, x: Any) -> Any:
    """Return a result in which the axes lie in memory as in NumPy's copy of the operand that keeps their order."""
    plain = layout(x)
    return lay_out_as(y, np.empty_like(plain)) if type(plain) is np.ndarray else y


def lay_out_as(y: Any, own: Any) -> Any:
    """Return a result in which the axes lie in memory in the order that they have in a plain array of its shape."""
    return lay_out_axes(y, axes_in_memory(own)) if type(own) is np.ndarray else y


def axes_in_memory(x: np.ndarray) -> tuple:
    """Return the axes of a plain array from the slowest to the fastest; as they come where elements are repeated."""
    if repeats_elements(x):
        return tuple(range(x.ndim))
    return tuple(sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis])))


def lay_out_axes(y: Any, axes: tuple) -> Any:
    """Return an array whose axes lie in memory in an order, the slowest first: itself, if they do, else a copy."""
    plain = layout(y)
    if type(plain) is not np.ndarray or not plain.size:
        return y
    RUNS.asked = True
    if plain.transpose(axes).flags.c_contiguous:
        return y
    return bind(order_p, y, order=axes) if type(y) is Tracer else _copy_in_order(y, order=axes)


def duplicate(x: Tracer) -> Any:
    """Return a copy in the order of the axes in memory; gaps between elements, as of ``x[::2]``, are not copied."""
    plain = layout(x)
    if type(plain) is np.ndarray and not plain.flags.forc and plain.strides != np.empty_like(plain).strides:
        return bind(order_p, x, order="K")
    return snapshot(x)
