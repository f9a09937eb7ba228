"""Where the batch axis of arguments and results of ``vmap`` lies: prefixes of trees, moved axes, the common size."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import tree
from fad.backends import host
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import copy_layout, is_writeable, unwrap
from fad.errors import BatchingError
from fad.ops.layout.index_layout import can_broadcast, describe_misfit


def put_behind_batch(x: Any, place: Any) -> Any:
    """Give a batched value the rank of the place that it is written to: unit axes stand behind the batch axis."""
    given = x.shape[1:]
    while x.ndim > place.ndim and x.shape[1] == 1:
        x = x[:, 0]
    if not can_broadcast(x.shape[1:], place.shape[1:]):
        raise ValueError(describe_misfit(given, place.shape[1:], (), []))
    return x.reshape(x.shape[:1] + (1,) * (place.ndim - x.ndim) + x.shape[1:])


class Unmapped:
    """An output that no mapped argument reaches: one value for all examples."""

    __slots__ = ("size", "value", "asked")

    def __init__(self, value: Any, size: int, asked: bool = False):
        self.value = value
        self.size = size
        self.asked = asked  # whether the function asked for values of these examples on its way

    def equals(self, other: Unmapped) -> bool:
        """Return whether two parts of a batch have one value; a derivative of one must then be that of the other."""
        x, y = self.value, other.value
        if x is y:
            return True
        if Tracer in (type(x), type(y)) and (self.asked or other.asked):
            return False
        x, y = np.asarray(host(unwrap(x))), np.asarray(host(unwrap(y)))
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def is_mapped(y: Any) -> Any:
    if type(y) is not Unmapped:
        return y
    value = y.value if hasattr(y.value, "shape") else np.asarray(y.value)  # an int beyond 64 bits
    return np.broadcast_to(value, (y.size, *value.shape))


def place_batch_axes(outs: list, out_tree: Any, out_axes: Any) -> list:
    whole = type(out_axes) is int
    axes = [out_axes] * len(outs) if whole else spread_prefix(out_axes, tree.unflatten(out_tree, outs), "out_axes")
    placed = []
    for y, axis in zip(outs, axes, strict=True):
        if axis is None:
            if type(y) is not Unmapped:
                raise BatchingError(
                    "out_axes=None of vmap is for an output that depends on no mapped argument, and this one does; "
                    "use an axis number"
                )
            placed.append(copy_layout(y.value) if type(y.value) is np.ndarray else y.value)
            continue
        y = is_mapped(y)
        if not -y.ndim <= axis < y.ndim:
            raise BatchingError(
                f"out_axes={axis} of vmap, but an output has only {y.ndim} axes, the mapped one included"
            )
        y = y if axis == 0 else np.moveaxis(y, 0, axis)
        placed.append(copy_layout(y) if type(y) is np.ndarray and not is_writeable(y) else y)
    return placed


def find_argument_axes(in_axes: Any, args: tuple, kwargs: dict) -> list:
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise BatchingError(
            f"in_axes={in_axes} of vmap has {len(in_axes)} entries, but the function was called with {len(args)} "
            "positional arguments"
        )
    return spread_prefix(in_axes, args, "in_axes") + [0] * len(tree.leaves(kwargs))


def spread_prefix(axes: Any, whole: Any, what: str) -> list:
    """Spread a tree prefix of axes over the leaves of a tree."""
    if axes is None or isinstance(axes, (int, np.integer)):
        return [axes] * len(tree.leaves(whole))
    if isinstance(axes, (tuple, list)) and isinstance(whole, (tuple, list)) and len(axes) == len(whole):
        return [a for part, sub in zip(axes, whole, strict=True) for a in spread_prefix(part, sub, what)]
    if isinstance(axes, dict) and isinstance(whole, dict) and axes.keys() == whole.keys():
        return [a for key in sorted(whole) for a in spread_prefix(axes[key], whole[key], what)]
    found = tree.leaves(axes, is_leaf=lambda a: a is None)
    if not all(a is None or isinstance(a, (int, np.integer)) for a in found):
        raise BatchingError(f"{what} of vmap must be made of ints and None, but has {axes!r}")
    if tree.structure(axes, is_leaf=lambda a: a is None) == tree.structure(whole, is_leaf=lambda a: a is None):
        return [a for a, x in zip(found, tree.leaves(whole, is_leaf=lambda x: x is None), strict=True) if x is not None]
    raise BatchingError(
        f"{what} of vmap must be an int, None, or a tree of them that is a prefix of the arguments' tree; "
        f"{axes!r} does not fit {tree.structure(whole)}"
    )


def find_common_size(leaves: list, axes: list, axis_size: int | None) -> int:
    sizes: dict = {}
    for x, a in zip(leaves, axes, strict=True):
        if a is None:
            continue
        if not -x.ndim <= a < x.ndim:
            raise BatchingError(
                f"in_axes={a} of vmap, but an argument has shape {x.shape}: it has no such axis. "
                "Use None to pass it whole"
            )
        sizes.setdefault(x.shape[a], x.shape)
    if axis_size is not None:
        sizes.setdefault(axis_size, f"axis_size={axis_size}")
    if len(sizes) > 1:
        raise BatchingError(
            "the mapped axes of vmap must have one size, but they have "
            + ", ".join(f"{n} (of {where})" for n, where in sizes.items())
        )
    if not sizes:
        raise BatchingError("vmap maps over no argument: give an in_axes that is not None, or axis_size")
    return next(iter(sizes))
