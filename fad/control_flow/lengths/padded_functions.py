"""NumPy's functions on arrays of a length that only a loop's body knows: sums, products, extremes, ``dot``, ``cumsum``.

Beside the part stands what changes nothing: 0 for a sum, minus infinity for a maximum. It is put there before the
operation, so that no NaN and no derivative comes from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.control_flow.bodies.subgraph import to_number_p
from fad.control_flow.lengths.padded import FUNCTIONS, PaddedArray, bring_parts, common, elementwise, fresh, reverse
from fad.control_flow.lengths.slice_bounds import Axis, refuse
from fad.core.tracing.tracer import Tracer, bind
from fad.ops.arrangement.structural import normalize_axis
from fad.ops.reductions.norms import root


def _axes(x: PaddedArray, axis: Any) -> tuple:
    if axis is None:
        return tuple(range(x.ndim))
    return tuple([normalize_axis(k, x.ndim) for k in (axis if type(axis) in (tuple, list) else (axis,))])


def _remaining_axes(x: PaddedArray, axes: tuple, keepdims: bool) -> tuple:
    """Return the axes of a result that is reduced along some axes."""
    kept = [1 if k in axes else axis for k, axis in enumerate(x.axes) if keepdims or k not in axes]
    return tuple(kept)


def _reduce_part(function: Callable, neutral: Callable) -> Callable:
    """Return a reduction; `neutral` gives for a dtype the number that changes nothing."""

    def reduce(x: PaddedArray, axis: Any = None, *, keepdims: bool = False) -> Any:
        axes = _axes(x, axis)
        fills = [neutral(x.dtype) if k in axes else None for k in range(x.ndim)]
        y = function(bring_parts(x, x.axes, fills), axis=axes, keepdims=keepdims)
        return fresh(y, _remaining_axes(x, axes, keepdims))

    return reduce


def _of_some(reduce: Callable) -> Callable:
    """Return a reduction that NumPy refuses for an array without elements."""

    def reduce_checked(x: PaddedArray, axis: Any = None, *, keepdims: bool = False) -> Any:
        _refuse_empty(x, _axes(x, axis))
        return reduce(x, axis, keepdims=keepdims)

    return reduce_checked


def _refuse_empty(x: PaddedArray, axes: tuple) -> None:
    if any(type(a) is Axis and a.may_be_empty for k, a in enumerate(x.axes) if k in axes):
        x.refuse("it takes an element by its size, and there may be none,")


def _lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


def _zero(dtype: np.dtype) -> int:
    return 0


def _one(dtype: np.dtype) -> int:
    return 1


total = _reduce_part(np.sum, _zero)
product = _reduce_part(np.prod, _one)
largest = _of_some(_reduce_part(np.max, _lowest))
smallest = _of_some(_reduce_part(np.min, _highest))
some = _reduce_part(np.any, _zero)
every = _reduce_part(np.all, _one)


def _count(x: PaddedArray, axis: Any, dtype: np.dtype) -> Any:
    """Return how many elements are reduced, as a number of a dtype."""
    n: Any = 1
    for k in _axes(x, axis):
        n = n * x.shape[k]
    return n.astype(dtype) if type(n) is Tracer else dtype.type(n)


def mean(x: PaddedArray, axis: Any = None, *, keepdims: bool = False) -> Any:
    if x.dtype.itemsize == 2:
        x.refuse("it takes the mean, in half precision,")
    y = total(x, axis, keepdims=keepdims)
    kind = y.dtype if y.dtype.kind in "fc" else np.dtype(np.float64)
    return y / _count(x, axis, np.dtype(kind))


def variance(x: PaddedArray, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
    distance = x - mean(x, axis, keepdims=True)
    square = distance * distance if distance.dtype.kind != "c" else distance.real**2 + distance.imag**2
    return total(square, axis, keepdims=keepdims) / (_count(x, axis, square.dtype) - square.dtype.type(ddof))


def deviation(x: PaddedArray, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
    return elementwise(root, [variance(x, axis, ddof=ddof, keepdims=keepdims)])


def norm(x: PaddedArray, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord is not None and not (ord == 2 and len(_axes(x, axis)) == 1):
        x.refuse("it takes another norm than the Euclidean one")
    axes = _axes(x, axis)
    fills = [0 if k in axes else None for k in range(x.ndim)]
    value = bring_parts(x, x.axes, fills)
    y = np.linalg.norm(value, axis=axes if len(axes) > 1 else axes[0], keepdims=keepdims)
    return fresh(y, _remaining_axes(x, axes, keepdims))


def sort(x: PaddedArray, axis: Any = -1) -> Any:
    """Sort the part, which stands before what is beside it then."""
    if x.dtype.kind not in "fiu" or axis is None:
        x.refuse("it sorts numbers that are not real, or without an axis,")
    (k,) = _axes(x, axis)
    own = x.axes[k]
    target = Axis(own.size, 0, own.length) if type(own) is Axis else own
    targets = (*x.axes[:k], target, *x.axes[k + 1 :])
    fills = [(np.nan if x.dtype.kind == "f" else _highest(x.dtype)) if j == k else None for j in range(x.ndim)]
    found = fresh(np.sort(bring_parts(x, targets, fills), axis=k), targets)
    found.clean = False
    return found


def median(x: PaddedArray, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _without_missing(np.nanmedian, x, (), axis, keepdims)


def _quantile(function: Callable) -> Callable:
    def find(x: PaddedArray, q: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        if np.ndim(q):
            x.refuse("it takes several quantiles")
        return _without_missing(function, x, (q,), axis, keepdims)

    return find


def _without_missing(function: Callable, x: PaddedArray, q: tuple, axis: Any, keepdims: bool) -> Any:
    """Return a statistic of a part, by a function of elements that are not NaN."""
    axes = _axes(x, axis)
    _refuse_empty(x, axes)
    floats = x if x.dtype.kind == "f" else astype(x, np.float64)
    value = bring_parts(floats, x.axes, [np.nan if k in axes else None for k in range(x.ndim)])
    y = fresh(function(value, *q, axis=axes, keepdims=keepdims), _remaining_axes(x, axes, keepdims))
    return elementwise(_put_nan, [y, some(np.isnan(floats), axis, keepdims=keepdims)])


def _put_nan(y: Any, bad: Any) -> Any:
    return np.where(bad, np.nan, y).astype(y.dtype)


def _place_of(function: Callable, neutral: Callable) -> Callable:
    def place(x: PaddedArray, axis: Any = None) -> Any:
        if x.ndim != 1 or x.axes[0].may_be_empty:
            x.refuse("it looks for the largest or smallest element")
        target = Axis(x.axes[0].size, 0, x.axes[0].length)
        return function(bring_parts(x, (target,), [neutral(x.dtype)]))

    return place


def _running(function: Callable, neutral: int) -> Callable:
    def run(x: PaddedArray, axis: Any = None) -> Any:
        if axis is None and x.ndim > 1:
            x.refuse("it flattens the array")
        k = _axes(x, 0 if axis is None else axis)[0]
        y = function(bring_parts(x, x.axes, [neutral if j == k else None for j in range(x.ndim)]), axis=k)
        found = fresh(y, x.axes)
        if type(x.axes[k]) is Axis:
            found.clean = False
        return found

    return run


def _operand(x: Any) -> Any:
    return np.asarray(x) if type(x) in (list, tuple) else x


def _axes_of(x: Any) -> tuple:
    return x.axes if type(x) is PaddedArray else np.shape(x)


def matmul(a: Any, b: Any) -> Any:
    a, b = _operand(a), _operand(b)
    left, right = _axes_of(a), _axes_of(b)
    one = a if type(a) is PaddedArray else b
    if not 1 <= len(left) <= 2 or not 1 <= len(right) <= 2:
        one.refuse("it takes a product with more than two axes, or none,")
    k = max(len(right) - 2, 0)
    inner = [left[-1], right[k]]
    parts = [axis for axis in inner if type(axis) is Axis]
    if len(parts) == 1:
        refuse((parts[0].start, parts[0].length), "it multiplies an array with a slice of a length known in the loop")
    target = common(parts, "it multiplies") if parts else None
    x = _zero_beside(a, len(left) - 1, target)
    y = _zero_beside(b, k, target)
    return fresh(np.matmul(x, y), (*left[:-1], *right[:k], *right[k + 1 :]))


def _zero_beside(x: Any, k: int, target: Axis | None) -> Any:
    """Return an operand of a product with zeros beside the part along the axis that is summed."""
    if type(x) is not PaddedArray:
        return x
    fills = [0 if j == k else None for j in range(x.ndim)]
    return bring_parts(x, tuple([target if j == k and target else axis for j, axis in enumerate(x.axes)]), fills)


def dot(a: Any, b: Any) -> Any:
    return np.multiply(a, b) if not np.ndim(a) or not np.ndim(b) else matmul(a, b)


def inner(a: Any, b: Any) -> Any:
    return dot(a, b if np.ndim(b) < 2 else b.T)


def vdot(a: Any, b: Any) -> Any:
    if np.ndim(a) != 1 or np.ndim(b) != 1:
        (a if type(a) is PaddedArray else b).refuse("it takes vdot of matrices")
    return matmul(np.conjugate(a) if a.dtype.kind == "c" else a, b)


def outer(a: Any, b: Any) -> Any:
    if np.ndim(a) != 1 or np.ndim(b) != 1:
        (a if type(a) is PaddedArray else b).refuse("it takes outer of matrices")
    return a[:, None] * b[None, :]


def transpose(x: PaddedArray, axes: Any = None) -> PaddedArray:
    order = tuple(range(x.ndim))[::-1] if axes is None else tuple([normalize_axis(k, x.ndim) for k in axes])
    back = tuple(np.argsort(order).tolist())
    put = x.store
    store = None if put is None else lambda v: put(np.transpose(v, back))
    return PaddedArray(
        tuple([x.axes[k] for k in order]), x.dtype, lambda: np.transpose(x.read(), order), store, x.clean
    )


def flip(x: PaddedArray, axis: Any = None) -> PaddedArray:
    for k in _axes(x, axis):
        x = reverse(x, k)
    return x


def difference(x: PaddedArray, n: int = 1, axis: int = -1) -> Any:
    if n != 1 or x.ndim != 1:
        x.refuse("it takes differences of more than one axis or order")
    return x[1:] - x[:-1]


def astype(x: PaddedArray, dtype: Any) -> Any:
    return elementwise(lambda v: v.astype(dtype), [x])


def _each(function: Callable) -> Callable:
    """Return what applies an elementwise function, with options that are no arrays."""
    return lambda *xs, **options: elementwise(lambda *vs: function(*vs, **options), xs)


def _length(x: PaddedArray) -> Any:
    return tuple([bind(to_number_p, n) if type(n) is Tracer else n for n in x.shape])


FUNCTIONS.update({
    np.sum: total, np.prod: product, np.max: largest, np.min: smallest, np.any: some, np.all: every, np.mean: mean,
    np.var: variance, np.std: deviation, np.linalg.norm: norm, np.cumsum: _running(np.cumsum, 0),
    np.cumprod: _running(np.cumprod, 1), np.matmul: matmul, np.dot: dot, np.inner: inner, np.vdot: vdot,
    np.outer: outer, np.transpose: transpose, np.flip: flip, np.diff: difference, np.shape: _length,
    np.ndim: lambda x: x.ndim, np.argmax: _place_of(np.argmax, _lowest),
    np.argmin: _place_of(np.argmin, _highest), np.sort: sort, np.median: median,
    np.quantile: _quantile(np.nanquantile), np.percentile: _quantile(np.nanpercentile),
    (np.add, "reduce"): total, (np.multiply, "reduce"): product, (np.maximum, "reduce"): largest,
    (np.minimum, "reduce"): smallest,
})  # fmt: skip
FUNCTIONS.update({
    f: _each(f) for f in (
        np.where, np.clip, np.copy, np.real, np.imag, np.round, np.zeros_like, np.ones_like, np.full_like,
        np.nan_to_num, np.isclose, np.sinc, np.i0,
    )
})  # fmt: skip
FUNCTIONS.update({
    "sum": total, "prod": product, "max": largest, "min": smallest, "any": some, "all": every, "mean": mean,
    "var": variance, "std": deviation, "cumsum": FUNCTIONS[np.cumsum], "cumprod": FUNCTIONS[np.cumprod], "dot": dot,
    "transpose": lambda x, *axes: transpose(x, axes or None), "copy": FUNCTIONS[np.copy], "astype": astype,
    "conj": np.conjugate, "conjugate": np.conjugate, "clip": FUNCTIONS[np.clip], "round": FUNCTIONS[np.round],
    "argmax": FUNCTIONS[np.argmax], "argmin": FUNCTIONS[np.argmin],
})  # fmt: skip
