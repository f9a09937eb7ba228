"""Scans along an axis: cumsum, cumprod and every ``ufunc.accumulate``; and the other methods of ufuncs.

The derivative of any accumulation ``y[i] = f(y[i-1], x[i])`` is a linear recurrence in the tangent,
``t[i] = f_y t[i-1] + f_x dx[i]``: one operation, `recur_p`, carries them all, is its own kind of derivative, and
divides by nothing, so cumprod is right where there are zeros.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import linear
from fad.core.primitives.cotangent import Masked, densify, ones_where_live
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import Primitive, answer, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.numpy_dispatch import REFUSED, UFUNC_METHODS, UFUNCS
from fad.core.tracing.tracer import bind, outcome, strong
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array, find_reduced_axes, normalize_axes, normalize_axis
from fad.ops.reductions.reduction import (
    convert,
    reducer,
    shift,
    shift_axes,
)
from fad.ops.ufuncs.elementwise import at_multiples


def cut(x: Any, axis: int, start: Any = None, stop: Any = None, step: Any = None) -> Any:
    """Return a slice of an array along one axis."""
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def reverse_along(x: Any, axis: int) -> Any:
    return cut(x, axis, None, None, -1)


def before(y: Any, axis: int) -> Any:
    """Return y[i-1] at i, and zero at 0."""
    return np.concatenate([np.zeros_like(cut(y, axis, 0, 1)), cut(y, axis, 0, -1)], axis=axis)


def after(y: Any, axis: int) -> Any:
    """Return y[i+1] at i, and zero at the end."""
    return np.concatenate([cut(y, axis, 1), np.zeros_like(cut(y, axis, 0, 1))], axis=axis)


# --- the linear recurrence ------------------------------------------------------------------------------------------


def _recur(a, b, *, axis, reverse):
    """Compute y[i] = a[i] y[i-1] + b[i] along an axis, starting from zero; from the end if `reverse`."""
    a, b = (np.moveaxis(x, axis, 0) for x in (a, b))
    if reverse:
        a, b = a[::-1], b[::-1]
    n = len(a)
    y = _recur_by_doubling(a, b) if n > 32 and a.size < 64 * n else None
    if y is None:
        y = _recur_in_a_loop(a, b)
    return np.moveaxis(y[::-1] if reverse else y, 0, axis)


def _recur_in_a_loop(a, b):
    y = np.empty_like(b, dtype=np.result_type(a, b))
    if len(y):
        y[0] = b[0]
    for i in range(1, len(y)):
        y[i] = a[i] * y[i - 1] + b[i]
    return y


def _recur_by_doubling(a, b):
    """Combine neighbours, then neighbours of pairs ...: log2(n) steps. None if a product of factors overflowed."""
    a, y = a.copy(), b.astype(np.result_type(a, b))
    a[0] = 0
    step = 1
    with np.errstate(all="ignore"):
        while step < len(a):
            y[step:] = y[step:] + a[step:] * y[:-step]
            a[step:] = a[step:] * a[:-step]
            step *= 2
    return y if np.isfinite(y).all() else None


def _recur_jvp(tangents, y, xs, params):
    a, axis = xs[0], params["axis"]
    ta, tb = tangents
    source = tb
    if ta is not None:
        moved = ta * (after(y, axis) if params["reverse"] else before(y, axis))
        source = moved if tb is None else moved + tb
    return bind(recur_p, a, source, **params)


def _recur_source_vjp(ct, y, a, b, *, axis, reverse):
    weights = before(a, axis) if reverse else after(a, axis)
    return bind(recur_p, weights, ct, axis=axis, reverse=not reverse)


def _recur_factor_vjp(ct, y, a, b, *, axis, reverse):
    g = _recur_source_vjp(ct, y, a, b, axis=axis, reverse=reverse)
    return g * (after(y, axis) if reverse else before(y, axis))


def _recur_batch(size, batched, xs, params):
    wide = [x if b else np.broadcast_to(x, (size, *x.shape)) for x, b in zip(xs, batched, strict=True)]
    return bind(recur_p, *wide, **shift_axes(params))


recur_p: Any = register(
    Primitive(
        "linear_recurrence",
        _recur,
        jvp=_recur_jvp,
        vjp=(_recur_factor_vjp, _recur_source_vjp),
        batch=_recur_batch,
        archetype="scan",
        samples=lambda s: [
            call(s.real(3, 4), s.real(3, 4), axis=1, reverse=False),
            call(s.real(5), s.real(5), axis=0, reverse=True),
            call(s.real(40, low=-1.0, high=1.0), s.real(40), axis=0, reverse=False),
        ],
        mixes="axis",
    )
)

# --- ufunc.accumulate -----------------------------------------------------------------------------------------------


def _accumulate_jvp(tangents, y, xs, params):
    x, t, axis = xs[0], densify(tangents[0]), params["axis"]
    if x.shape[axis] < 2:
        return t
    by_state, by_input = UFUNCS[params["ufunc"]].partials
    z, state, x = cut(y, axis, 1), cut(y, axis, 0, -1), cut(x, axis, 1)
    zero = np.zeros_like(z)
    b = zero if by_input is None else densify(cut(t, axis, 1) * by_input(z, state, x))
    a = _weigh(by_state, cut(y, axis, 0, 1), z, state, x, axis, np.zeros_like)
    return bind(recur_p, a, np.concatenate([cut(t, axis, 0, 1), b], axis=axis), axis=axis, reverse=False)


def _weigh(partial, first, z, state, x, axis, begin):
    """Return the partial derivatives of the steps along an axis, after a first one like `first` that `begin` makes."""
    steps = np.zeros_like(z) if partial is None else densify(np.ones_like(z) * partial(z, state, x))
    return np.concatenate([begin(first), steps], axis=axis)


def _accumulate_vjp(ct, y, x, *, ufunc, axis):
    if x.shape[axis] < 2:
        return ct
    by_state, by_input = UFUNCS[ufunc].partials
    steps = (cut(y, axis, 0, 1), cut(y, axis, 1), cut(y, axis, 0, -1), cut(x, axis, 1), axis)
    a = after(_weigh(by_state, *steps, np.zeros_like), axis)
    b = _weigh(by_input, *steps, np.ones_like)
    pull = lambda g: bind(recur_p, a, g, axis=axis, reverse=True) * b
    c = pull(densify(ct))
    if ufunc not in _CHOICES:
        return c
    ones = ct if type(ct) is Masked else np.ones_like(y)
    return Masked(c, lambda: pull(ones_where_live(ones)) != 0)


_CHOICES = (np.maximum, np.minimum, np.fmax, np.fmin)  # what the running extreme left out took no part


def _accumulate(ufunc, x, axis):
    """Run a ufunc along an axis; arrays of a device answer no ``ufunc.accumulate``, so there it goes step by step."""
    if isinstance(x, np.ndarray):
        return ufunc.accumulate(x, axis=axis)
    if ufunc is np.multiply:
        return np.cumprod(x, axis=axis)
    x = x != 0 if ufunc in _LOGICAL else x
    parts = [cut(x, axis, i, i + 1) for i in range(x.shape[axis])]
    return np.concatenate(list(itertools.accumulate(parts, ufunc)), axis=axis) if parts else np.copy(x)


_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)
accumulate_p: Any = register(
    Primitive(
        "accumulation",
        lambda x, *, ufunc, axis: _accumulate(ufunc, x, axis),
        jvp=_accumulate_jvp,
        vjp=(_accumulate_vjp,),
        selects=True,
        archetype="scan",
        samples=lambda s: [
            call(s.real(3, 4), ufunc=np.multiply, axis=1),
            call(np.array([2.0, 0.0, 3.0, 0.0, 1.5]), ufunc=np.multiply, axis=0),
            call(s.real(6), ufunc=np.maximum, axis=0),
        ],
        mixes="axis",
        doc="The running result of a ufunc along an axis.",
    )
)
accumulate_p.batch = shift(accumulate_p)

accumulate_flat_p: Any = register(
    Primitive(
        "flat_accumulation",
        lambda x, *, ufunc, axis: _accumulate(ufunc, x, axis),
        flat=True,
        archetype="flat",
        samples=lambda s: [call(s.real(3, 4), ufunc=np.logical_and, axis=1)],
        doc="The running result along an axis of a ufunc that has no derivative.",
    )
)
accumulate_flat_p.batch = shift(accumulate_flat_p)

reduce_flat_p: Any = register(
    Primitive(
        "flat_reduction",
        lambda x, *, ufunc, axis: (
            ufunc.reduce(x, axis=axis)
            if isinstance(x, np.ndarray)
            else cut(_accumulate(ufunc, x, axis), axis, -1).squeeze(axis)
        ),
        flat=True,
        archetype="flat",
        samples=lambda s: [call(s.real(3, 4), ufunc=np.logical_xor, axis=1)],
        doc="The result along an axis of a ufunc that has no derivative.",
    )
)
reduce_flat_p.batch = shift(reduce_flat_p)

cumsum_p: Any = linear(
    "cumsum_along",
    lambda x, *, axis: np.cumsum(x, axis=axis),
    lambda ct, x, *, axis: reverse_along(bind(cumsum_p, reverse_along(ct, axis), axis=axis), axis),
    lambda size, batched, xs, params: bind(cumsum_p, *xs, **shift_axes(params)),
    samples=lambda s: [call(s.real(3, 4), axis=1), call(s.real(5), axis=0)],
    archetype="scan",
    mixes="axis",
    moves=True,
    doc="The running sum along an axis.",
)


def scan_along(ufunc: Any, a: Any, axis: int) -> Any:
    """Accumulate along an axis with a ufunc."""
    if ufunc is np.add:
        return bind(cumsum_p, a, axis=axis)
    operation: Any = UFUNCS[ufunc]
    prim = accumulate_flat_p if operation.flat else accumulate_p
    return bind(prim, a, ufunc=ufunc, axis=axis)


def flatten(a: Any, axis: Any) -> tuple[Any, int]:
    """Return an array and the axis to work along: the array flattened if `axis` is None."""
    a = as_array(a)
    if axis is None or (a.ndim == 0 and axis in (0, -1)):
        return a.reshape((a.size,)), 0
    return a, normalize_axis(axis, a.ndim)


def _along(s):
    return [call(s.real(3, 4)), call(s.real(3, 4), axis=0), call(s.real(2, 3, 4), -1), call(s.real()), call(s.real(0))]


def _summable(a):
    """Return what cumsum and cumprod add up: narrow integers and booleans as full ones, as NumPy does."""
    return a.astype(np.result_type(a.dtype, np.int_)) if a.dtype.kind in "bi" else a


@public(np.cumsum, methods=("cumsum",), samples=_along)
def cumsum(a, axis=None, dtype=None, out=None):
    """Return the running sum along an axis, or of the flattened array.

    >>> fad.grad(lambda x: fad.numpy.cumsum(x).sum())(np.array([1.0, 2.0, 3.0]))
    array([3., 2., 1.])
    """
    refuse_out(out)
    a, axis = flatten(a, axis)
    return scan_along(np.add, convert(_summable(a), dtype), axis)


@public(np.cumprod, methods=("cumprod",), samples=lambda s: [*_along(s), call(np.array([2.0, 0.0, 3.0, 0.0, 1.5]))])
def cumprod(a, axis=None, dtype=None, out=None):
    """Return the running product along an axis; its derivative is exact where there are zeros.

    >>> fad.grad(lambda x: fad.numpy.cumprod(x).sum())(np.array([1.0, 2.0, 3.0]))
    array([9., 4., 2.])
    """
    refuse_out(out)
    a, axis = flatten(a, axis)
    return scan_along(np.multiply, convert(_summable(a), dtype), axis)


def _cumulative(ufunc, neutral):
    def cumulative(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        refuse_out(out)
        x = as_array(x)
        if axis is None:
            if x.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        x = x.reshape((1,)) if x.ndim == 0 else x
        axis = normalize_axis(axis, x.ndim)
        y = scan_along(ufunc, convert(_summable(x), dtype), axis)
        if not include_initial:
            return y
        shape = tuple(1 if i == axis else d for i, d in enumerate(y.shape))
        return np.concatenate([np.full_like(y, neutral, shape=shape), y], axis=axis)

    return cumulative


def _sample_cumulative(s):
    return [call(s.real(4)), call(s.real(3, 4), axis=1, include_initial=True), call(s.real())]


_CUMULATIVE = """Return the running {what} along an axis, with `include_initial` the empty one in front.

>>> fad.numpy.{name}(np.array([1.0, 2.0, 3.0]))
array([1., {second}., 6.])
"""

cumulative_sum = public(
    np.cumulative_sum, name="cumulative_sum", samples=_sample_cumulative,
    doc=_CUMULATIVE.format(what="sum", name="cumulative_sum", second=3),
)(_cumulative(np.add, 0))  # fmt: skip
cumulative_prod = public(
    np.cumulative_prod, name="cumulative_prod", samples=_sample_cumulative,
    doc=_CUMULATIVE.format(what="product", name="cumulative_prod", second=2),
)(_cumulative(np.multiply, 1))  # fmt: skip

# --- ufunc methods --------------------------------------------------------------------------------------------------


def _only_axis(method, a, axis):
    """Return the axis that a method of ufuncs works along."""
    axes = find_reduced_axes(axis, a.ndim)
    if not a.ndim:
        raise TypeError(f"cannot {method} on a scalar")
    if len(axes) != 1:
        raise ValueError(f"{method} does not allow multiple axes")
    return axes[0]


def _accumulate_method(ufunc):
    def accumulate(array, axis=0, dtype=None, out=None):
        refuse_out(out)
        a = convert(as_array(array), dtype)
        return scan_along(ufunc, a, _only_axis("accumulate", a, axis))

    return accumulate


def _outer_method(ufunc):
    def outer(A, B, /, **options):
        A, B = strong(as_array(A)), strong(as_array(B))
        return UFUNCS.get(ufunc, ufunc)(A.reshape(A.shape + (1,) * B.ndim), B, **options)

    return outer


def _reduce_by_scan(ufunc):
    """Reduce with a ufunc that has no reduction of its own (subtract, divide, hypot ...): the last entry of its scan.

    NumPy begins with the ufunc's identity, if it has one, which is seen in ``np.hypot.reduce([-1.0])``: it is 1.
    """
    name, identity = ufunc.__name__, ufunc.identity

    def reduce_along(a, k):
        if UFUNCS[ufunc].flat:
            return np.expand_dims(bind(reduce_flat_p, a, ufunc=ufunc, axis=k), k)
        if not a.shape[k]:
            if identity is None:
                raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
            dtype = ufunc.resolve_dtypes((a.dtype, a.dtype, None))[-1]
            return np.full_like(a, identity, dtype=dtype, shape=(*a.shape[:k], 1, *a.shape[k + 1 :]))
        if ufunc is np.hypot and a.shape[k] == 1:
            return np.hypot(a, np.zeros_like(a))
        return cut(scan_along(ufunc, a, k), k, -1)

    def reduce(a, axis=0, keepdims=False, where=True, initial=None):
        if where is not True or initial is not None:
            raise MissingRuleError(f"{name}.reduce of a traced value takes no where and no initial")
        a = as_array(a)
        axes = normalize_axes(axis, a.ndim)
        if len(axes) > 1 and identity is None:
            raise ValueError(f"reduction operation '{name}' is not reorderable, so at most one axis may be specified")
        for k in axes:
            a = reduce_along(a, k)
        return a if keepdims else a[tuple(0 if k in axes else slice(None) for k in range(a.ndim))]

    return reduce


def _part(ufunc, a, axis, i, j):
    """Reduce a part of an array; one element is its own result, which a reduction would join to the identity."""
    if j > i + 1:
        return ufunc.reduce(cut(a, axis, i, j), axis=axis, keepdims=True)
    return scan_along(ufunc, cut(a, axis, i, i + 1), axis)


def _reduceat_method(ufunc):
    def reduceat(array, indices, axis=0, dtype=None, out=None):
        refuse_out(out)
        a, indices = convert(as_array(array), dtype), outcome(as_array(indices))
        axis = _only_axis("reduceat", a, axis)
        if indices.ndim != 1:
            raise ValueError(f"{ufunc.__name__}.reduceat takes a vector of indices, not one of {indices.ndim} axes")
        bounds = [int(i) for i in indices] + [a.shape[axis]]
        if [i for i in bounds[:-1] if not 0 <= i < bounds[-1]]:
            raise IndexError(
                f"an index of {ufunc.__name__}.reduceat is out of bounds for axis {axis} of size {bounds[-1]}"
            )
        parts = [_part(ufunc, a, axis, i, j) for i, j in itertools.pairwise(bounds)]
        return np.concatenate(parts or [scan_along(ufunc, cut(a, axis, 0, 0), axis)], axis=axis)

    return reduceat


def _sample_outer(s):
    # One draw for both operands keeps them apart from each other: maximum and its like have a kink at a tie.
    x, y, z = s.positive(5), s.positive(5), s.positive(3)
    return [call(x[:3], x[3:]), call(y[:3, None], y[3:]), call(z[0], z[1:])]


def _sample_accumulate(s):
    return [call(s.positive(4)), call(s.positive(3, 4), axis=1)]


def _sample_powers(s):
    return [call(s.real(4, low=0.3, high=1.2)), call(s.real(3, 4, low=0.3, high=1.2), axis=1)]


_DIFFERENTIABLE = (
    np.add, np.multiply, np.subtract, np.divide, np.power, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp,
    np.logaddexp2, np.hypot, np.remainder, np.fmod, np.copysign, np.heaviside,
)  # fmt: skip
_FLAT = (np.floor_divide, np.logical_and, np.logical_or, np.logical_xor)
_INTEGER = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm)
_COMPARE = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)


def _kinks_of_outer(x: Any, y: Any) -> tuple:
    return at_multiples(np.multiply.outer(x, np.ones_like(y)), y)


def _kinks_along(ufunc: Any) -> Any:
    def kinks(x: Any, axis: int = 0) -> tuple:
        if ufunc is not np.power and x.dtype.kind == "c":
            return ()  # NumPy refuses it
        found = np.moveaxis(ufunc.accumulate(x, axis=axis), axis, 0)
        if ufunc is np.power:  # the cut of complex powers
            return (np.pi - np.abs(np.angle(found[1:-1])),)
        return at_multiples(found[:-1], np.moveaxis(x, axis, 0)[1:])

    return kinks


def _install(ufunc: Any, flat: bool) -> None:
    """Give a ufunc of two operands its methods."""
    name = ufunc.__name__
    jumps = ufunc in (np.remainder, np.fmod)
    outer: dict[str, Any] = {"kinks": _kinks_of_outer} if jumps else {}
    along: dict[str, Any] = {}
    if jumps or ufunc is np.power:
        along["kinks"] = _kinks_along(ufunc)
    samples = _sample_powers if ufunc is np.power else _sample_accumulate
    public([ufunc, "outer"], name=f"{name}.outer", samples=_sample_outer, flat=flat, **outer)(_outer_method(ufunc))
    public([ufunc, "accumulate"], name=f"{name}.accumulate", samples=samples, flat=flat, **along)(
        _accumulate_method(ufunc)
    )
    if ufunc is np.power:
        REFUSED[(ufunc, "reduce")] = "NumPy's value is not the repeated power. Write np.power.accumulate(x)[-1]"
    elif (ufunc, "reduce") not in UFUNC_METHODS:
        reducer(ufunc, _reduce_by_scan(ufunc), _sample_accumulate, flat, **along)
    answer([ufunc, "reduceat"], _reduceat_method(ufunc))


_PLACE: dict[Any, str] = {np.add: "add", np.multiply: "multiply", np.maximum: "max", np.minimum: "min"}
for _ufunc in _DIFFERENTIABLE:
    _install(_ufunc, False)
for _ufunc in _FLAT:
    _install(_ufunc, True)
for _ufunc in _INTEGER:
    answer([_ufunc, "outer"], _outer_method(_ufunc))
    answer([_ufunc, "accumulate"], _accumulate_method(_ufunc))
    answer([_ufunc, "reduce"], _reduce_by_scan(_ufunc))
for _ufunc in (*_COMPARE, np.arctan2, np.float_power):
    public([_ufunc, "outer"], name=f"{_ufunc.__name__}.outer", samples=_sample_outer, flat=_ufunc in _COMPARE)(
        _outer_method(_ufunc)
    )
for _ufunc in (*_DIFFERENTIABLE, *_FLAT, *_INTEGER):
    REFUSED[(_ufunc, "at")] = f"it writes into its first argument. Write x = x.at[i].{_PLACE.get(_ufunc, 'set')}(v)"
add_reduceat = public(
    [np.add, "reduceat"], name="add.reduceat", constants=(1,),
    samples=lambda s: [call(s.real(6), np.array([0, 3, 1])), call(s.real(3, 4), np.array([0, 2]), axis=1)],
)(_reduceat_method(np.add))  # fmt: skip
