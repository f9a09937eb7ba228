"""Operations that native code computes by simpler ones: norms, variances, named products, questions to arrays.

Each function below rewrites one operation, in a few that have kernels and that are fused with what stands beside
them. The NumPy lowering and ``fad.source`` keep the operation as it is, for NumPy has a name for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.lowered_ops import FACTOR_SYSTEM, INTEGER_POWER, NOT_NEGATIVE, PARTITIONED, PLACE, SORTED
from fad.compile.legalize.complex.complex_functions import FORMULAS, compute_in_parts
from fad.compile.legalize.complex.complex_numbers import SYMBOLS, compute_as_numpy
from fad.compile.legalize.products.pairwise_distances import sum_over_pairs
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import SCALAR, Equation, Graph, Type
from fad.ops.arrangement.padding import pad_p
from fad.ops.arrangement.structural import concatenate_p
from fad.ops.linalg.common import ROUNDING, hermitian_p
from fad.ops.linalg.decompositions import cholesky_pullback_p
from fad.ops.linalg.singular import pinv_p, svd_p
from fad.ops.linalg.solving import REGULAR, det_rule_p, maybe_singular_p
from fad.ops.ordering.sorting import argsort_p, partition_order_p, partition_p, permute_back_p, permute_p, sort_p
from fad.ops.products.contraction import contract_p
from fad.ops.products.convolution import convolve_p
from fad.ops.products.einsum import pair_plan
from fad.ops.reductions.flat_reductions import all_p, any_p, argmax_p, argmin_p, count_p
from fad.ops.reductions.norms import norm_p
from fad.ops.reductions.reduction import fmax_p, fmin_p, logsumexp_p, max_p, min_p, prod_p
from fad.ops.reductions.statistics import variance_p
from fad.ops.ufuncs.complexes import imag_p, real_p
from fad.ops.ufuncs.elementwise import (
    power,
)
from fad.ops.ufuncs.selection import round_p

_SORTED, _ORDERS = (sort_p, partition_p), (argsort_p, partition_order_p)
_REAL = (np.dtype(float), np.dtype(np.float32))
_COUNTED = (*_REAL, np.dtype(bool), np.dtype(np.int64), np.dtype(np.int32))
_MOST_DECIMALS = 300  # units from there on are infinite
_LONG = 64  # elements of a row that is searched twice
_MOST_ROWS = 32  # of matrices whose factors are computed in loop nests
_FEW_PRODUCTS = 2048  # of two vectors' elements, which are written as one sum of pieces
_MOST_TAPS = 32  # numbers that a vector is convolved with in one loop
_INTEGERS = (np.dtype(np.int64), np.dtype(np.int32))
_TRUTH, _NUMBER = np.dtype(bool), np.dtype(np.int64)


def decompose(graph: Graph) -> Graph:
    """Write what has no kernel as operations that have one, in the bodies of loops and branches as well."""
    if not any(_rule_of(eq) or eq.prim.archetype in ("loop", "branch") for eq in graph.equations):
        return graph
    work = Builder(graph)
    read = {*graph.outputs, *(i for eq in graph.equations if eq.prim not in _SORTED for i in eq.ins)}
    for eq in graph.equations:
        if eq.prim in _ORDERS and eq.outs[0] not in read:
            continue  # what is sorted does not need its order
        rule = _rule_of(eq)
        found = None if rule is None or len(eq.outs) != 1 else rule(work, eq)
        if found is None:
            work.equations.append(_with_bodies(eq))
        else:
            work.replace(eq, found)
    return work.finish()


def _with_bodies(eq: Equation) -> Equation:
    if eq.prim.archetype == "loop":
        params = {**eq.params, "body": decompose(eq.params["body"])}
    elif eq.prim.archetype == "branch":
        params = {"branches": tuple(map(decompose, eq.params["branches"]))}
    else:
        return eq
    return Equation(eq.prim, eq.ins, params, eq.outs, eq.place)


def _facts(work: Builder, eq: Equation) -> tuple[int, Type, tuple, bool]:
    return eq.ins[0], work.types[eq.ins[0]], eq.params["axis"], eq.params["keepdims"]


def _sum(work: Builder, x: int, axis: tuple, keepdims: bool) -> int:
    return work.sum(x, axis, keepdims) if axis else x


# --- norms, variances, sums of exponentials -----------------------------------------------------------------------


def _norm(work: Builder, eq: Equation) -> int | None:
    x, t, axis, keepdims = _facts(work, eq)
    if t.dtype.kind == "c":
        real = work.types[eq.outs[0]].dtype
        parts = [work.elementwise(part, x, dtype=real) for part in (real_p, imag_p)]
        squares = work.add(*[work.multiply(p, p) for p in parts])
    elif t.dtype in _REAL:
        squares = work.multiply(x, x)
    else:
        return None
    return work.sqrt(_sum(work, squares, axis, keepdims))


def _variance(work: Builder, eq: Equation) -> int | None:
    x, t, axis, keepdims = _facts(work, eq)
    if t.dtype not in _REAL or not t.size:
        return None
    n = math.prod(t.shape[a] for a in axis)
    mean = work.divide(_sum(work, x, axis, True), work.number(n, t.dtype))
    d = work.subtract(x, mean)
    total = _sum(work, work.multiply(d, d), axis, keepdims)
    return work.divide(total, work.number(n - eq.params["ddof"], t.dtype))


def _logsumexp(work: Builder, eq: Equation) -> int | None:
    x, t, axis, keepdims = _facts(work, eq)
    if t.dtype not in _REAL or not t.size or not axis:
        return None
    most = work.max(x, axis, True)
    most = work.where(work.isfinite(most), most, work.number(0.0, t.dtype))
    total = work.sum(work.exp(work.subtract(x, most)), axis, True)
    y = work.add(work.log(total), most)
    return y if keepdims else work.reshape(y, work.types[eq.outs[0]].shape)


# --- powers of integers ---------------------------------------------------------------------------------------------

_LARGEST = 64  # constant exponents up to this one are products


def _power(work: Builder, eq: Equation) -> int | None:
    """NumPy raises where the exponent of an integer is negative."""
    x, n = eq.ins
    out, t, known = work.types[eq.outs[0]], work.types[n], work.constants.get(n)
    if out.dtype not in _INTEGERS or t.dtype not in (*_INTEGERS, _TRUTH) or not (out.size and t.size):
        return None
    if known is not None and (np.any(np.less(known, 0)) or (np.size(known) == 1 and np.max(known) <= _LARGEST)):
        return None
    checked = work.number(0, out.dtype)
    if known is None and t.dtype != _TRUTH:
        checked = work.apply(NOT_NEGATIVE, (n,), {"of": eq.outs[0]}, Type((), t.dtype, SCALAR))
    return work.elementwise(INTEGER_POWER, x, n, checked, dtype=out.dtype)


# --- questions to arrays ---------------------------------------------------------------------------------------------


def _count_nonzero(work: Builder, eq: Equation) -> int | None:
    """Return how many elements are not zero; None where it is not one of numbers that kernels know."""
    x, t, axis, keepdims = _facts(work, eq)
    if t.dtype not in _COUNTED or not t.size or not axis:
        return None
    if t.dtype != _TRUTH:
        x = work.not_equal(x, work.number(0, t.dtype))
    return work.sum(x, axis, keepdims)


def _any(work: Builder, eq: Equation) -> int | None:
    count = _count_nonzero(work, eq)
    return None if count is None else work.not_equal(count, work.number(0, _NUMBER))


def _all(work: Builder, eq: Equation) -> int | None:
    count = _count_nonzero(work, eq)
    n = math.prod(work.types[eq.ins[0]].shape[a] for a in eq.params["axis"])
    return None if count is None else work.equal(count, work.number(n, _NUMBER))


def _count(work: Builder, eq: Equation) -> int | None:
    count = _count_nonzero(work, eq)
    return None if count is None else work.positive(count)


def _position(reduction: Primitive) -> Callable:
    """In long rows, find the extreme first and then its place: both run in vectors."""

    def rule(work: Builder, eq: Equation) -> int | None:
        x, t, axis, keepdims = _facts(work, eq)
        last = t.shape and axis == len(t.shape) - 1 and t.shape[-1] >= _LONG
        if not last or t.dtype not in _COUNTED or t.dtype == _TRUTH or not t.size:
            return None
        most, out = work.reduce(reduction, x, (axis,), True), work.types[eq.outs[0]]
        return work.new(PLACE, (x, most), {"keepdims": keepdims}, out.shape, out.dtype)

    return rule


def _product(work: Builder, eq: Equation) -> int | None:
    """NumPy multiplies narrow integers as wide ones."""
    x, t, axis, keepdims = _facts(work, eq)
    out = work.types[eq.outs[0]].dtype
    if t.dtype not in _COUNTED or t.dtype == out or out not in _COUNTED:
        return None
    return work.reduce(prod_p, work.astype(x, out), axis, keepdims)


def _extreme(logical: Callable) -> Callable:
    """A maximum of booleans is whether any is true, a minimum whether all are."""

    def rule(work: Builder, eq: Equation) -> int | None:
        return logical(work, eq) if work.types[eq.ins[0]].dtype == _TRUTH else None

    return rule


def _extreme_of_numbers(reduction: Primitive, beyond: float) -> Callable:
    """The extreme of what is not NaN; NaN where nothing else is."""

    def rule(work: Builder, eq: Equation) -> int | None:
        x, t, axis, keepdims = _facts(work, eq)
        if t.dtype not in _REAL or not t.size or not axis:
            return None
        valid = work.equal(x, x)
        inner = work.where(valid, x, work.number(beyond, t.dtype))
        some = work.not_equal(work.sum(valid, axis, keepdims), work.number(0, _NUMBER))
        return work.where(some, work.reduce(reduction, inner, axis, keepdims), work.number(math.nan, t.dtype))

    return rule


# --- products over named axes, and arrangements ---------------------------------------------------------------------


def _contract(work: Builder, eq: Equation) -> int | None:
    """Write ``einsum("a,b->result", x, y)`` as a matrix product, or as a product of elements and a sum."""
    x, y = eq.ins
    out, types = work.types[eq.outs[0]], work.types
    if out.dtype not in _REAL or 0 in (types[x].size, types[y].size):
        return None
    x, y = [i if types[i].dtype == out.dtype else work.astype(i, out.dtype) for i in (x, y)]
    p = eq.params
    perm_x, perm_y, n_batch, n_left, n_sum, n_right, perm_out = pair_plan(p["a"], p["b"], p["result"])
    x, y = _permute(work, x, perm_x), _permute(work, y, perm_y)
    batch, left = types[x].shape[:n_batch], types[x].shape[n_batch : n_batch + n_left]
    summed, right = types[x].shape[n_batch + n_left :], types[y].shape[n_batch + n_sum :]
    if n_sum == 0 or (n_batch and not (n_left or n_right)):
        x = _reshape(work, x, (*batch, *left, *(1,) * n_right, *summed))
        y = _move_last(work, y, n_batch, n_sum, n_left)
        rank = n_batch + n_left + n_right
        z = _sum(work, work.multiply(x, y), tuple(range(rank, rank + n_sum)), False)
    elif not n_batch and n_sum == 1 and n_left < 2 and n_right < 2:
        z = work.matmul(x, y)
    else:
        k, n_x, n_y = math.prod(summed), math.prod(left), math.prod(right)
        x, y = _reshape(work, x, (*batch, n_x, k)), _reshape(work, y, (*batch, k, n_y))
        z = _reshape(work, work.matmul(x, y), (*batch, *left, *right))
    return work.reshape(z, out.shape) if perm_out is None else work.transpose(z, perm_out)


def _permute(work: Builder, x: int, axes: tuple | None) -> int:
    return x if axes is None else work.transpose(x, axes)


def _reshape(work: Builder, x: int, shape: tuple) -> int:
    return x if work.types[x].shape == shape else work.reshape(x, shape)


def _move_last(work: Builder, y: int, n_batch: int, n_sum: int, n_left: int) -> int:
    """Bring (batch, sum, right) to (batch, 1 for each left, right, sum)."""
    rank = len(work.types[y].shape)
    order = (*range(n_batch), *range(n_batch + n_sum, rank), *range(n_batch, n_batch + n_sum))
    y = _permute(work, y, None if order == tuple(range(rank)) else order)
    shape = work.types[y].shape
    return _reshape(work, y, (*shape[:n_batch], *(1,) * n_left, *shape[n_batch:]))


def _pad(work: Builder, eq: Equation) -> int | None:
    t = work.types[eq.ins[0]]
    if t.dtype not in _REAL or not t.size:
        return None
    index = tuple([slice(low, low + n) for (low, _), n in zip(eq.params["widths"], t.shape, strict=True)])
    return work.scatter(eq.ins, [index], work.types[eq.outs[0]].shape)


def _join(work: Builder, eq: Equation) -> int | None:
    """Write a join of arrays of several dtypes as one of arrays of its own, as in ``np.array([[c, -s, 0], ...])``."""
    dtype = work.types[eq.outs[0]].dtype
    found = {work.types[i].dtype for i in eq.ins}
    if found == {dtype} or not {dtype, *found} <= {*_COUNTED}:
        return None
    return work.concatenate([_as_dtype(work, i, dtype) for i in eq.ins], eq.params["axis"])


def _as_dtype(work: Builder, i: int, dtype: np.dtype) -> int:
    if work.types[i].dtype == dtype:
        return i
    known = work.constants.get(i)
    return work.astype(i, dtype) if known is None else work.constant(known.astype(dtype))


def _round(work: Builder, eq: Equation) -> int | None:
    (x,), decimals = eq.ins, eq.params["decimals"]
    dtype = work.types[x].dtype
    if dtype not in _REAL or work.types[eq.outs[0]].dtype != dtype or type(decimals) is not int:
        return None
    if abs(decimals) > _MOST_DECIMALS:
        return None
    if not decimals:
        return work.rint(x)
    unit = work.number(10.0 ** abs(decimals), dtype)
    if decimals > 0:
        return work.divide(work.rint(work.multiply(x, unit)), unit)
    return work.multiply(work.rint(work.divide(x, unit)), unit)


def _convolve(work: Builder, eq: Equation) -> int | None:
    """Write a convolution with a few numbers as a sum of slices: one loop, where NumPy takes a product for each number.

    Numbers that may be infinite meet no zeros beyond the ends: what is computed there is left to NumPy.
    """
    a, v = sorted(eq.ins, key=lambda i: -work.types[i].size)
    (n,), (m,), dtype = work.types[a].shape, work.types[v].shape, work.types[a].dtype
    full, known = eq.params["mode"] == "full", work.constants.get(v)
    few = n * m <= _FEW_PRODUCTS
    if work.types[v].dtype != dtype or dtype not in _REAL or m > _MOST_TAPS or (m == 1 and not few):
        return None
    if full and few:  # no zeros are multiplied
        rows = [work.multiply(a, _number_at(work, v, k)) for k in range(m)]
        return work.scatter(rows, [(slice(k, k + n),) for k in range(m)], (n + m - 1,))
    if n < _LONG * m and not few:
        return None
    if full and known is not None and np.isfinite(known).all():
        return _add_slices(work, work.scatter([a], [(slice(m - 1, m - 1 + n),)], (n + 2 * m - 2,)), v)
    whole = _add_slices(work, a, v)
    if not full:
        return whole
    ends = [
        work.getitem(work.new(eq.prim, (work.getitem(a, (part,)), v), {"mode": "full"}, (2 * m - 2,), dtype), (kept,))
        for part, kept in ((slice(m - 1), slice(m - 1)), (slice(n - m + 1, n), slice(m - 1, 2 * m - 2)))
    ]
    return work.concatenate([ends[0], whole, ends[1]], 0)


def _add_slices(work: Builder, a: int, v: int) -> int:
    """Return the valid part of a convolution of vectors."""
    (n,), (m,), total = work.types[a].shape, work.types[v].shape, None
    for k in range(m):
        term = work.multiply(work.take_along(a, 0, m - 1 - k, n - k), _number_at(work, v, k))
        total = term if total is None else work.add(total, term)
    return total  # type: ignore[return-value]  # there is a number


# --- matrices -------------------------------------------------------------------------------------------------------


def _is_hermitian(work: Builder, eq: Equation) -> int | None:
    """Write the question whether real matrices are symmetric but for rounding as two maxima."""
    (x,) = eq.ins
    t = work.types[x]
    if t.dtype not in _REAL or not t.size:
        return None
    other, axes = work.matrix_transpose(x), tuple(range(len(t.shape)))
    apart = work.where(work.equal(x, other), work.number(0.0, t.dtype), work.absolute(work.subtract(x, other)))
    size = work.max(work.absolute(x), axes)
    apart = work.max(apart, axes)
    return work.less_equal(apart, work.multiply(size, work.number(ROUNDING, t.dtype)))


def _maybe_singular(work: Builder, eq: Equation) -> int | None:
    """Write the question whether any determinant is small beside the lengths of its matrix's rows."""
    x, t = eq.ins[0], work.types[eq.ins[0]]
    if t.dtype not in _REAL or not t.size or t.shape[-1] > _MOST_ROWS:
        return None
    last, lead = len(t.shape) - 2, t.shape[:-2]
    size = work.reduce(prod_p, work.sqrt(work.sum(work.multiply(x, x), (last + 1,))), (last,))
    det = work.absolute(work.new(det_rule_p, eq.ins, {}, lead, t.dtype))
    regular = work.greater(det, work.multiply(size, work.number(float(np.finfo(t.dtype).eps) ** REGULAR, t.dtype)))
    if not lead:
        return work.logical_not(regular)
    return work.not_equal(work.sum(regular, tuple(range(last))), work.number(math.prod(lead), _NUMBER))


def _pull_back_cholesky(work: Builder, eq: Equation) -> int | None:
    """Write what the factor of a small matrix makes of a cotangent as products and triangular systems."""
    ct, factor = eq.ins
    out = work.types[eq.outs[0]]
    n = out.shape[-1]
    if out.dtype not in _REAL or not out.size or n > _MOST_ROWS:
        return None
    ct, factor = [i if work.types[i].shape == out.shape else work.broadcast_to(i, out.shape) for i in (ct, factor)]
    upper = work.matrix_transpose(factor)
    scale = np.tril(np.ones((n, n), out.dtype)) - 0.5 * np.eye(n, dtype=out.dtype)
    product = work.multiply(work.matmul(upper, ct), work.constant(scale))
    half = work.where(work.constant(scale > 0), product, work.number(0.0, out.dtype))
    for _ in range(2):
        half = work.matrix_transpose(work.new(FACTOR_SYSTEM, (upper, half), {"lower": False}, out.shape, out.dtype))
    return work.multiply(work.add(work.matrix_transpose(half), half), work.number(0.5, out.dtype))


def _number_at(work: Builder, v: int, k: int) -> int:
    """Return an element of a vector, as a number if it is known."""
    known = work.constants.get(v)
    return work.getitem(v, (k,)) if known is None else work.number(known[k], work.types[v].dtype)


# --- linear algebra ---------------------------------------------------------------------------------------------------


def _pseudoinverse(work: Builder, eq: Equation) -> int | None:
    """Write a pseudo-inverse as NumPy does, by singular values, of which small ones count as zero."""
    a, cutoff = eq.ins
    t, double = work.types[a], np.dtype(float)
    if t.dtype != double or work.types[cutoff].dtype != double or work.types[cutoff].shape or not t.size:
        return None
    *lead, m, n = t.shape
    k = min(m, n)
    u, s, vh = [work.add_value(Type(shape, double)) for shape in ((*lead, m, k), (*lead, k), (*lead, k, n))]
    work.equations.append(Equation(svd_p, (a,), {"full": False}, (u, s, vh), work.place))
    counts = work.greater(s, work.multiply(cutoff, work.max(s, (len(lead),), True)))
    inverse = work.where(counts, work.divide(work.number(1.0, double), s), work.number(0.0, double))
    scaled = work.multiply(work.reshape(inverse, (*lead, k, 1)), work.matrix_transpose(u))
    return work.matmul(work.matrix_transpose(vh), scaled)


# --- sorting ----------------------------------------------------------------------------------------------------------


def _sort(work: Builder, eq: Equation) -> int:
    """Sort without the order, which is there for the derivative."""
    x, axis = eq.ins[0], eq.params["axis"]
    rows = _exchange_with_last(work, x, axis)
    found = work.new(SORTED, (rows,), {"kind": eq.params["kind"]}, work.types[rows].shape, work.types[x].dtype)
    return _exchange_with_last(work, found, axis)


def _partition(work: Builder, eq: Equation) -> int:
    """Partition without the order, likewise."""
    t = work.types[eq.ins[0]]
    return work.new(PARTITIONED, eq.ins[:1], eq.params, t.shape, t.dtype)


def _along_last(work: Builder, eq: Equation) -> int | None:
    """Find an order, or permute by one, along the last axis."""
    axis, out = eq.params["axis"], work.types[eq.outs[0]]
    if axis == len(out.shape) - 1:
        return None
    rows = tuple([_exchange_with_last(work, i, axis) for i in eq.ins])
    shape = work.types[rows[0]].shape
    found = work.new(eq.prim, rows, {**eq.params, "axis": len(shape) - 1}, shape, out.dtype)
    return _exchange_with_last(work, found, axis)


def _exchange_with_last(work: Builder, x: int, axis: int) -> int:
    axes = list(range(len(work.types[x].shape)))
    if axis == axes[-1]:
        return x
    axes[axis], axes[-1] = axes[-1], axes[axis]
    return work.transpose(x, axes)


_RULES: dict[Primitive, Callable] = {
    norm_p: _norm, variance_p: _variance, logsumexp_p: _logsumexp, any_p: _any, all_p: _all, count_p: _count,
    prod_p: _product, max_p: _extreme(_any), min_p: _extreme(_all),
    fmax_p: _extreme_of_numbers(max_p, -math.inf), fmin_p: _extreme_of_numbers(min_p, math.inf),
    argmax_p: _position(max_p), argmin_p: _position(min_p), contract_p: _contract, pad_p: _pad, round_p: _round,
    concatenate_p: _join, power: _power, convolve_p: _convolve, cholesky_pullback_p: _pull_back_cholesky,
    hermitian_p: _is_hermitian, maybe_singular_p: _maybe_singular,
    pinv_p: _pseudoinverse, sort_p: _sort, partition_p: _partition,
    **dict.fromkeys((argsort_p, permute_p, permute_back_p), _along_last),
}  # fmt: skip
_OF_SCIPY: dict[str, Callable] = {"scipy.sum_over_pairs": sum_over_pairs}  # by name: its module is imported on demand


def _rule_of(eq: Equation) -> Callable | None:
    if eq.prim.array_form is not None:
        if eq.prim.symbol in FORMULAS:
            return compute_in_parts
        return compute_as_numpy if eq.prim.symbol in SYMBOLS else None
    return _RULES.get(eq.prim) or _OF_SCIPY.get(eq.prim.name)
