"""How an axis runs through operations: which axis of each operand is that of the result, if there is one.

An operation whose result is computed place by place along an axis can run on a strip of it, given strips of its
operands; a sum along the axis, and a product that contracts it, give a part of their result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from fad.compile.ir.expressions import template
from fad.core.programs.graph import Equation, Graph
from fad.ops.arrangement.structural import broadcast_p, reshape_p, transpose_p
from fad.ops.places.indexing import getitem_p
from fad.ops.products.contraction import matmul
from fad.ops.reductions.reduction import max_p, min_p, sum_p

Axes: TypeAlias = "tuple[int | None, ...]"
"""The axis of each operand, None for one that is read as a whole."""


def operand_axes(graph: Graph, eq: Equation, axis: int) -> Axes | None:
    """Return the axes of the operands that an axis of the result runs along; None if it runs along none."""
    rule = _RULES.get(eq.prim)
    shapes = [graph.types[i].shape for i in (*eq.ins, *eq.outs)]
    if rule is not None:
        return rule(eq.params, axis, *shapes)
    return _broadcasting(axis, *shapes) if template(graph, eq, graph.constants) is not None else None


def result_axis(graph: Graph, eq: Equation, operand: int, axis: int) -> int | None:
    """Return the axis of the result that an axis of an operand becomes; None if it does not stay one."""
    length = graph.types[eq.ins[operand]].shape[axis]
    for d, n in enumerate(graph.types[eq.outs[0]].shape):
        axes = operand_axes(graph, eq, d) if n == length else None
        if axes is not None and axes[operand] == axis:
            return d
    return None


def summed_axes(graph: Graph, eq: Equation, operand: int, axis: int) -> Axes | None:
    """Return the axes of the operands if the operation adds up along the given one; None if it does not."""
    if eq.prim is sum_p:
        return (axis,) if axis in eq.params["axis"] else None
    if eq.prim is not matmul:
        return None
    x, y = (len(graph.types[i].shape) for i in eq.ins)
    contracted = x - 1, max(y - 2, 0)
    return contracted if contracted[operand] == axis else None


def with_length(shape: tuple, axis: int, n: int) -> tuple:
    """Return a shape with another length along an axis."""
    return (*shape[:axis], n, *shape[axis + 1 :])


def on_strip(eq: Equation, shape: tuple) -> dict[str, Any]:
    """Return the parameters of an operation whose result is a strip of this shape."""
    return {**eq.params, "shape": shape} if eq.prim in (broadcast_p, reshape_p) else eq.params


def _broadcasting(axis: int, *shapes: tuple) -> Axes:
    *operands, result = shapes
    places = [axis - len(result) + len(shape) for shape in operands]
    return tuple(
        [d if d >= 0 and shape[d] == result[axis] else None for d, shape in zip(places, operands, strict=True)]
    )


def _of_broadcast(params: dict, axis: int, *shapes: tuple) -> Axes:
    return _broadcasting(axis, *shapes)


def _of_reshape(params: dict, axis: int, x: tuple, result: tuple) -> Axes | None:
    before = math.prod(result[:axis])
    for d, n in enumerate(x):
        if n == result[axis] and math.prod(x[:d]) == before:
            return (d,)
    return None


def _of_transpose(params: dict, axis: int, x: tuple, result: tuple) -> Axes:
    return (params["axes"][axis],)


def _of_getitem(params: dict, axis: int, *shapes: tuple) -> Axes | None:
    if len(shapes) != 2:
        return None  # an array says what is read
    at = out = 0
    for part in params["template"]:
        if part is None:
            if out == axis:
                return None
            out += 1
        elif type(part) is int:
            at += 1
        elif type(part) is slice:
            if out == axis:
                return (at,) if shapes[0][at] == shapes[1][axis] and part.step in (None, 1) else None
            at, out = at + 1, out + 1
        else:
            return None
    return (at + axis - out,) if axis >= out else None


def _of_reduction(params: dict, axis: int, x: tuple, result: tuple) -> Axes | None:
    gone = params["axis"]
    left = list(range(len(x))) if params["keepdims"] else [d for d in range(len(x)) if d not in gone]
    return None if left[axis] in gone else (left[axis],)


def _of_matmul(params: dict, axis: int, x: tuple, y: tuple, result: tuple) -> Axes | None:
    rows, columns = len(x) > 1, len(y) > 1
    place = axis - len(result)  # from the end, in a result that has both rows and columns
    place -= not columns
    if not rows and place < -1:
        place -= 1
    if place == -1:
        return None, len(y) - 1
    if place == -2:
        return len(x) - 2, None
    if not rows or not columns:
        return None
    return _broadcasting(axis, x[:-2], y[:-2], result[:-2])


_RULES: dict[Any, Callable] = {
    broadcast_p: _of_broadcast,
    reshape_p: _of_reshape,
    transpose_p: _of_transpose,
    getitem_p: _of_getitem,
    sum_p: _of_reduction,
    max_p: _of_reduction,
    min_p: _of_reduction,
    matmul: _of_matmul,
}
