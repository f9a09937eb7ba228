"""Operations that native code computes by simpler ones: norms, variances, named products, questions to arrays.

Each function below rewrites one operation, in a few that have kernels and that are fused with what stands beside
them. The NumPy lowering and ``fad.source`` keep the operation as it is, for NumPy has a name for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.ir.lowered_ops import NOT_NEGATIVE, PLACE
from fad.compile.legalize.pairwise_distances import sum_over_pairs
from fad.core.graph import SCALAR, Equation, Graph, Type
from fad.core.primitive import Primitive
from fad.core.rewriter import Rewriting
from fad.ops.complexes import imag_p, real_p
from fad.ops.contraction import contract_p, matmul
from fad.ops.conversion import astype_p
from fad.ops.einsum import pair_plan
from fad.ops.elementwise import (
    add,
    divide,
    equal,
    exp,
    isfinite,
    log,
    multiply,
    not_equal,
    positive,
    power,
    rint,
    sqrt,
    subtract,
)
from fad.ops.flat_reductions import all_p, any_p, argmax_p, argmin_p, count_p
from fad.ops.indexing import scatter_p
from fad.ops.norms import norm_p
from fad.ops.padding import pad_p
from fad.ops.reduction import fmax_p, fmin_p, logsumexp_p, max_p, min_p, prod_p, sum_p
from fad.ops.selection import round_p, where_p
from fad.ops.statistics import variance_p
from fad.ops.structural import reshape_p, transpose_p

_REAL = (np.dtype(float), np.dtype(np.float32))
_COUNTED = (*_REAL, np.dtype(bool), np.dtype(np.int64), np.dtype(np.int32))
_MOST_DECIMALS = 300  # units from there on are infinite
_LONG = 64  # elements of a row that is searched twice
_INTEGERS = (np.dtype(np.int64), np.dtype(np.int32))
_TRUTH, _NUMBER = np.dtype(bool), np.dtype(np.int64)


def decompose(graph: Graph) -> Graph:
    """Write what has no kernel as operations that have one, in the bodies of loops and branches as well."""
    if not any(_rule_of(eq) or eq.prim.archetype in ("loop", "branch") for eq in graph.equations):
        return graph
    work = _Writer(graph)
    for eq in graph.equations:
        rule = _rule_of(eq)
        if rule is None or len(eq.outs) != 1 or not rule(work, eq):
            work.equations.append(_with_bodies(eq))
    return work.finish()


def _with_bodies(eq: Equation) -> Equation:
    if eq.prim.archetype == "loop":
        params = {**eq.params, "body": decompose(eq.params["body"])}
    elif eq.prim.archetype == "branch":
        params = {"branches": tuple(map(decompose, eq.params["branches"]))}
    else:
        return eq
    return Equation(eq.prim, eq.ins, params, eq.outs, eq.place)


class _Writer(Rewriting):
    """The graph that is written."""

    def type(self, i: int) -> Type:
        return self.types[i]

    def do(self, prim: Primitive, *ins: int, shape: tuple | None = None, dtype: Any = None, **params: Any) -> int:
        """Apply an operation; the shape of its result is that of its operands broadcast, its dtype the first one's."""
        if prim is reshape_p:
            params["shape"] = shape
        elif prim is astype_p:
            params["dtype"] = dtype
        if shape is None:
            shape = np.broadcast_shapes(*[self.types[i].shape for i in ins])
        return self.new(prim, ins, params, shape, dtype or self.types[ins[0]].dtype)

    def give(self, eq: Equation, prim: Primitive, *ins: int, **params: Any) -> bool:
        """Apply the operation that gives the result."""
        return self.end(eq, prim, ins, params)

    def reduce(self, prim: Primitive, x: int, axis: tuple, keepdims: bool, dtype: Any = None) -> int:
        if not axis:
            return x
        whole = self.types[x].shape
        shape = tuple([1 if d in axis else n for d, n in enumerate(whole) if keepdims or d not in axis])
        return self.do(prim, x, shape=shape, dtype=dtype, axis=axis, keepdims=keepdims)


def _facts(work: _Writer, eq: Equation) -> tuple[int, Type, tuple, bool]:
    return eq.ins[0], work.type(eq.ins[0]), eq.params["axis"], eq.params["keepdims"]


# --- norms, variances, sums of exponentials -----------------------------------------------------------------------


def _norm(work: _Writer, eq: Equation) -> bool:
    x, t, axis, keepdims = _facts(work, eq)
    if t.dtype.kind == "c":
        real = work.type(eq.outs[0]).dtype
        parts = [work.do(part, x, dtype=real) for part in (real_p, imag_p)]
        squares = work.do(add, *[work.do(multiply, p, p) for p in parts])
    elif t.dtype in _REAL:
        squares = work.do(multiply, x, x)
    else:
        return False
    return work.give(eq, sqrt, work.reduce(sum_p, squares, axis, keepdims))


def _variance(work: _Writer, eq: Equation) -> bool:
    x, t, axis, keepdims = _facts(work, eq)
    if t.dtype not in _REAL or not t.size:
        return False
    n = math.prod(t.shape[a] for a in axis)
    mean = work.do(divide, work.reduce(sum_p, x, axis, True), work.number(n, t.dtype))
    d = work.do(subtract, x, mean)
    total = work.reduce(sum_p, work.do(multiply, d, d), axis, keepdims)
    return work.give(eq, divide, total, work.number(n - eq.params["ddof"], t.dtype))


def _logsumexp(work: _Writer, eq: Equation) -> bool:
    x, t, axis, keepdims = _facts(work, eq)
    if t.dtype not in _REAL or not t.size or not axis:
        return False
    most = work.reduce(max_p, x, axis, True)
    finite = work.do(isfinite, most, dtype=_TRUTH)
    most = work.do(where_p, finite, most, work.number(0.0, t.dtype), dtype=t.dtype)
    total = work.reduce(sum_p, work.do(exp, work.do(subtract, x, most)), axis, True)
    if keepdims:
        return work.give(eq, add, work.do(log, total), most)
    y = work.do(add, work.do(log, total), most)
    return work.give(eq, reshape_p, y, shape=work.type(eq.outs[0]).shape)


# --- powers of integers ---------------------------------------------------------------------------------------------

# The third operand is what says that no exponent is negative.
_integer_power = Primitive(
    "integer_power", lambda x, n, _: np.power(x, n), lower="integer_power({0}, {1})", archetype="elementwise"
)
_LARGEST = 64  # constant exponents up to this one are products


def _power(work: _Writer, eq: Equation) -> bool:
    """NumPy raises where the exponent of an integer is negative."""
    n, out = eq.ins[1], work.type(eq.outs[0])
    t, known = work.type(n), work.constants.get(n)
    if out.dtype not in _INTEGERS or t.dtype not in (*_INTEGERS, _TRUTH) or not (out.size and t.size):
        return False
    if known is not None and (np.any(np.less(known, 0)) or (np.size(known) == 1 and np.max(known) <= _LARGEST)):
        return False
    checked = work.number(0, out.dtype)
    if known is None and t.dtype != _TRUTH:
        checked = work.apply(NOT_NEGATIVE, (n,), {"of": eq.outs[0]}, Type((), t.dtype, SCALAR))
    work.equations.append(Equation(_integer_power, (eq.ins[0], n, checked), {}, eq.outs, eq.place))
    return True


# --- questions to arrays ---------------------------------------------------------------------------------------------


def _count_nonzero(work: _Writer, eq: Equation) -> int | None:
    """Return how many elements are not zero; None where it is not one of numbers that kernels know."""
    x, t, axis, keepdims = _facts(work, eq)
    if t.dtype not in _COUNTED or not t.size or not axis:
        return None
    if t.dtype != _TRUTH:
        x = work.do(not_equal, x, work.number(0, t.dtype), dtype=_TRUTH)
    return work.reduce(sum_p, x, axis, keepdims, _NUMBER)


def _any(work: _Writer, eq: Equation) -> bool:
    count = _count_nonzero(work, eq)
    return count is not None and work.give(eq, not_equal, count, work.number(0, _NUMBER))


def _all(work: _Writer, eq: Equation) -> bool:
    count = _count_nonzero(work, eq)
    n = math.prod(work.type(eq.ins[0]).shape[a] for a in eq.params["axis"])
    return count is not None and work.give(eq, equal, count, work.number(n, _NUMBER))


def _count(work: _Writer, eq: Equation) -> bool:
    count = _count_nonzero(work, eq)
    return count is not None and work.give(eq, positive, count)


def _position(reduction: Primitive) -> Callable:
    """In long rows, find the extreme first and then its place: both run in vectors."""

    def rule(work: _Writer, eq: Equation) -> bool:
        x, t, axis, keepdims = _facts(work, eq)
        last = t.shape and axis == len(t.shape) - 1 and t.shape[-1] >= _LONG
        if not last or t.dtype not in _COUNTED or t.dtype == _TRUTH or not t.size:
            return False
        most = work.reduce(reduction, x, (axis,), True)  # type: ignore[arg-type]
        work.equations.append(Equation(PLACE, (x, most), {"keepdims": keepdims}, eq.outs, eq.place))
        return True

    return rule


def _product(work: _Writer, eq: Equation) -> bool:
    """NumPy multiplies narrow integers as wide ones."""
    x, t, axis, keepdims = _facts(work, eq)
    out = work.type(eq.outs[0]).dtype
    if t.dtype not in _COUNTED or t.dtype == out or out not in _COUNTED:
        return False
    return work.give(eq, prod_p, work.do(astype_p, x, dtype=out), axis=axis, keepdims=keepdims)


def _extreme(logical: Callable) -> Callable:
    """A maximum of booleans is whether any is true, a minimum whether all are."""

    def rule(work: _Writer, eq: Equation) -> bool:
        return work.type(eq.ins[0]).dtype == _TRUTH and logical(work, eq)

    return rule


def _extreme_of_numbers(reduction: Primitive, beyond: float) -> Callable:
    """The extreme of what is not NaN; NaN where nothing else is."""

    def rule(work: _Writer, eq: Equation) -> bool:
        x, t, axis, keepdims = _facts(work, eq)
        if t.dtype not in _REAL or not t.size or not axis:
            return False
        valid = work.do(equal, x, x, dtype=_TRUTH)
        inner = work.do(where_p, valid, x, work.number(beyond, t.dtype), dtype=t.dtype)
        count = work.reduce(sum_p, valid, axis, keepdims, _NUMBER)
        some = work.do(not_equal, count, work.number(0, _NUMBER), dtype=_TRUTH)
        found = work.reduce(reduction, inner, axis, keepdims)
        return work.give(eq, where_p, some, found, work.number(math.nan, t.dtype))

    return rule


# --- products over named axes, and arrangements ---------------------------------------------------------------------


def _contract(work: _Writer, eq: Equation) -> bool:
    """Write ``einsum("a,b->result", x, y)`` as a matrix product, or as a product of elements and a sum."""
    x, y = eq.ins
    out = work.type(eq.outs[0])
    if out.dtype not in _REAL or 0 in (work.type(x).size, work.type(y).size):
        return False
    x, y = [i if work.type(i).dtype == out.dtype else work.do(astype_p, i, dtype=out.dtype) for i in (x, y)]
    p = eq.params
    perm_x, perm_y, n_batch, n_left, n_sum, n_right, perm_out = pair_plan(p["a"], p["b"], p["result"])
    x, y = _permute(work, x, perm_x), _permute(work, y, perm_y)
    batch, left = work.type(x).shape[:n_batch], work.type(x).shape[n_batch : n_batch + n_left]
    summed, right = work.type(x).shape[n_batch + n_left :], work.type(y).shape[n_batch + n_sum :]
    if n_sum == 0 or (n_batch and not (n_left or n_right)):
        x = _reshape(work, x, (*batch, *left, *(1,) * n_right, *summed))
        y = _move_last(work, y, n_batch, n_sum, n_left)
        z = work.do(multiply, x, y)
        rank = n_batch + n_left + n_right
        z = work.reduce(sum_p, z, tuple(range(rank, rank + n_sum)), False)
    elif not n_batch and n_sum == 1 and n_left < 2 and n_right < 2:
        z = work.do(matmul, x, y, shape=(*left, *right))
    else:
        k, n_x, n_y = math.prod(summed), math.prod(left), math.prod(right)
        x, y = _reshape(work, x, (*batch, n_x, k)), _reshape(work, y, (*batch, k, n_y))
        z = work.do(matmul, x, y, shape=(*batch, n_x, n_y))
        z = _reshape(work, z, (*batch, *left, *right))
    if perm_out is not None:
        return work.give(eq, transpose_p, z, axes=perm_out)
    return work.give(eq, reshape_p, z, shape=out.shape)


def _permute(work: _Writer, x: int, axes: tuple | None) -> int:
    if axes is None:
        return x
    return work.do(transpose_p, x, shape=tuple([work.type(x).shape[a] for a in axes]), axes=axes)


def _reshape(work: _Writer, x: int, shape: tuple) -> int:
    return x if work.type(x).shape == shape else work.do(reshape_p, x, shape=shape)


def _move_last(work: _Writer, y: int, n_batch: int, n_sum: int, n_left: int) -> int:
    """Bring (batch, sum, right) to (batch, 1 for each left, right, sum)."""
    rank = len(work.type(y).shape)
    order = (*range(n_batch), *range(n_batch + n_sum, rank), *range(n_batch, n_batch + n_sum))
    y = _permute(work, y, None if order == tuple(range(rank)) else order)
    shape = work.type(y).shape
    return _reshape(work, y, (*shape[:n_batch], *(1,) * n_left, *shape[n_batch:]))


def _pad(work: _Writer, eq: Equation) -> bool:
    t, out = work.type(eq.ins[0]), work.type(eq.outs[0])
    if t.dtype not in _REAL or not t.size:
        return False
    index = tuple([slice(low, low + n) for (low, _), n in zip(eq.params["widths"], t.shape, strict=True)])
    return work.give(eq, scatter_p, *eq.ins, shape=out.shape, dtype=out.dtype, indices=(index,))


def _round(work: _Writer, eq: Equation) -> bool:
    (x,), decimals = eq.ins, eq.params["decimals"]
    dtype = work.type(x).dtype
    if dtype not in _REAL or work.type(eq.outs[0]).dtype != dtype or type(decimals) is not int:
        return False
    if abs(decimals) > _MOST_DECIMALS:
        return False
    if not decimals:
        return work.give(eq, rint, x)
    unit = work.number(10.0 ** abs(decimals), dtype)
    first, second = (multiply, divide) if decimals > 0 else (divide, multiply)
    return work.give(eq, second, work.do(rint, work.do(first, x, unit)), unit)


_RULES: dict[Primitive, Callable] = {
    norm_p: _norm, variance_p: _variance, logsumexp_p: _logsumexp, any_p: _any, all_p: _all, count_p: _count,
    prod_p: _product, max_p: _extreme(_any), min_p: _extreme(_all),
    fmax_p: _extreme_of_numbers(max_p, -math.inf), fmin_p: _extreme_of_numbers(min_p, math.inf),
    argmax_p: _position(max_p), argmin_p: _position(min_p), contract_p: _contract, pad_p: _pad, round_p: _round,
    power: _power,
}  # fmt: skip
_OF_SCIPY: dict[str, Callable] = {"scipy.sum_over_pairs": sum_over_pairs}  # by name: its module is imported on demand


def _rule_of(eq: Equation) -> Callable | None:
    return _RULES.get(eq.prim) or _OF_SCIPY.get(eq.prim.name)
