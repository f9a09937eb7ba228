"""What changes nothing is left out: times one, a shape already there, arrangements that undo each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.passes.constants import as_uniform
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import NUMBER, Equation, Graph
from fad.core.programs.rewriter import rewrite_equations
from fad.ops.arrangement.structural import broadcast_p, reshape_p, transpose_p
from fad.ops.places.indexing import getitem_p, index_set_p, scatter_p
from fad.ops.reductions.flat_reductions import all_p, any_p, count_p
from fad.ops.reductions.norms import norm_p
from fad.ops.reductions.reduction import fmax_p, fmin_p, logsumexp_p, max_p, min_p, prod_p, sum_p
from fad.ops.reductions.statistics import variance_p
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.elementwise import add, divide, multiply, negative, positive, power, square, subtract


def simplify(graph: Graph) -> Graph:
    """Leave out what changes nothing: times one, a shape already there, arrangements that undo each other.

    Times zero stays, for 0 * inf is NaN.
    """
    made: dict[int, Equation] = {}
    constants = dict(graph.constants)
    types = graph.types

    def rewrite(eq: Equation, alias: dict) -> Equation | None:
        found = simplify_one(eq, types, constants, made)
        if type(found) is int:
            alias[eq.outs[0]] = found
            return None
        if len(found.outs) == 1:
            made[found.outs[0]] = found
        return found

    return rewrite_equations(graph, rewrite, constants)


def simplify_one(eq: Equation, types: list, constants: dict, made: dict[int, Equation]) -> Any:
    """Return what gives the result of an operation: a value that is there, another operation, or the same one.

    `made` has the operations that gave its operands.
    """
    rule = _identity if eq.prim.identity else _ALGEBRA.get(eq.prim)
    found = None if rule is None else rule(eq, types, constants, made)
    if type(found) is int:
        return found if types[found] == types[eq.outs[0]] else eq
    return eq if found is None else found


def _is(constants: dict, i: int, number: float) -> bool:
    """Return whether a constant is a real number throughout, a zero of the same sign."""
    if i not in constants:
        return False
    c = as_uniform(constants[i])
    return c is not None and c == number and (number != 0 or np.signbit(np.real(c)) == np.signbit(number))


def _times(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """Times one, but not of complex numbers: the imaginary part of one, zero times infinity, is NaN."""
    x, y = eq.ins
    if types[eq.outs[0]].dtype.kind == "c":
        return None
    if _is(constants, y, 1.0):
        return x
    return y if _is(constants, x, 1.0) else None


def _over(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    if types[eq.outs[0]].dtype.kind == "c":
        return None
    return eq.ins[0] if _is(constants, eq.ins[1], 1.0) else None


def _plus(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """To add 0.0 changes -0.0, which only to add -0.0 leaves as it is."""
    x, y = eq.ins
    zero = -0.0 if types[eq.outs[0]].dtype.kind in "fc" else 0.0
    if _is(constants, y, zero):
        return x
    return y if _is(constants, x, zero) else None


def _minus(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    return eq.ins[0] if _is(constants, eq.ins[1], 0.0) else None


def _negative(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    before = made.get(eq.ins[0])
    return before.ins[0] if before is not None and before.prim is negative else None


def _power(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    x, y = eq.ins
    kind = types[x].dtype.kind
    if _is(constants, y, 1.0) and kind != "c":
        return x
    same = (types[eq.outs[0]].shape, types[eq.outs[0]].dtype) == (types[x].shape, types[x].dtype)
    if _is(constants, y, 2.0) and kind == "f" and same:  # of complex zeros the signs differ
        return Equation(multiply, (x, x), {}, eq.outs)
    return None


def _square(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    (x,) = eq.ins
    return Equation(multiply, (x, x), {}, eq.outs) if types[x].dtype.kind in "fiu" else None


def _reshape(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    (x,) = eq.ins
    if types[x].shape == types[eq.outs[0]].shape:
        return x
    before = made.get(x)
    if before is not None and before.prim is eq.prim:
        if types[before.ins[0]] == types[eq.outs[0]]:
            return before.ins[0]
        return Equation(eq.prim, before.ins, eq.params, eq.outs)
    return None


def _permute(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    axes = eq.params["axes"]
    before = made.get(eq.ins[0])
    if before is not None and before.prim is eq.prim:
        axes = tuple(before.params["axes"][a] for a in axes)
        if axes == tuple(range(len(axes))):
            return before.ins[0]
        return Equation(eq.prim, before.ins, {"axes": axes}, eq.outs)
    return eq.ins[0] if axes == tuple(range(len(axes))) else None


def _same_shape(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    return eq.ins[0] if types[eq.ins[0]].shape == types[eq.outs[0]].shape else None


def _take_all(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """An index of slices alone that gives the whole shape back gives the whole array, if no slice runs backwards."""
    return _same_shape(eq, types, constants, made) if _is_forwards(eq.params["template"]) else None


def _is_forwards(template: tuple) -> bool:
    return all(p is Ellipsis or (type(p) is slice and (p.step or 1) > 0) for p in template)


def _set_all(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """Where all elements are replaced the result is what replaces them."""
    _, v, *indices = eq.ins
    shape = types[eq.outs[0]].shape
    if indices or types[v].shape != shape or not _is_forwards(eq.params["template"]):
        return None
    return v if np.broadcast_to(False, shape)[eq.params["template"]].shape == shape else None


def _scatter_all(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """Where one piece covers the result it is the result, but for axes of length one and the directions of others."""
    x, y = types[eq.ins[0]], types[eq.outs[0]]
    if len(eq.ins) > 1 or x.size != y.size or x.dtype != y.dtype:
        return None
    index = eq.params["indices"][0]
    index = index if type(index) is tuple else (index,)
    if not all(p is Ellipsis or p is None or type(p) is slice for p in index):
        return None
    if _is_forwards(tuple([p for p in index if p is not None])):
        return Equation(reshape_p, eq.ins, {"shape": y.shape}, eq.outs) if x.shape != y.shape else eq.ins[0]
    reversals = all(type(p) is slice and p.indices(n)[2] in (1, -1) for p, n in zip(index, y.shape, strict=False))
    return Equation(getitem_p, eq.ins, {"template": index}, eq.outs) if reversals and x.shape == y.shape else None


def _convert(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    return eq.ins[0] if types[eq.ins[0]].dtype == eq.params["dtype"] and types[eq.ins[0]].kind != NUMBER else None


def _reduction(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    """Name the axes in their order, in which all that comes after expects them."""
    axis = eq.params["axis"]
    if not axis:
        alike = types[eq.ins[0]].dtype == types[eq.outs[0]].dtype
        return eq.ins[0] if eq.prim in _OF_ONE and alike else None
    ordered = tuple(sorted(axis))
    return None if ordered == axis else Equation(eq.prim, eq.ins, {**eq.params, "axis": ordered}, eq.outs, eq.place)


def _identity(eq: Equation, types: list, constants: dict, made: dict) -> Any:
    return eq.ins[0]


_OF_ONE = frozenset({sum_p, max_p, min_p, prod_p, fmax_p, fmin_p, any_p, all_p})  # of one number it is that number
_REDUCTIONS = (
    sum_p, max_p, min_p, prod_p, norm_p, variance_p, logsumexp_p, any_p, all_p, count_p, fmax_p, fmin_p,
)  # fmt: skip
_ALGEBRA: dict[Primitive, Callable] = {
    multiply: _times, divide: _over, add: _plus, subtract: _minus, negative: _negative, power: _power,
    square: _square, reshape_p: _reshape, transpose_p: _permute, broadcast_p: _same_shape, astype_p: _convert,
    positive: _identity, getitem_p: _take_all, index_set_p: _set_all, scatter_p: _scatter_all,
    **dict.fromkeys(_REDUCTIONS, _reduction),
}  # fmt: skip
