"""Reductions: sum, prod, max, min, logsumexp, and the flat ones (argmax, all, any, count_nonzero).

Inside a primitive `axis` is a tuple of non-negative numbers and `keepdims` a bool; the public functions see to that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.archetypes import linear
from fad.core.primitives.cotangent import Selection
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind, stop
from fad.ops.arrangement.structural import as_array, beside, find_reduced_axes
from fad.ops.ufuncs.elementwise import add, maximum, minimum, multiply

_HOST = (np.ndarray, np.generic)
NOTHING = np._NoValue  # NumPy's own mark for "not given"


# --- what reductions share -----------------------------------------------------------------------------------------


def keep_shape(shape: tuple, axis: tuple) -> tuple:
    """Return a shape with the reduced axes kept as ones."""
    return tuple(1 if i in axis else d for i, d in enumerate(shape))


def keep(x: Any, shape: tuple, axis: tuple, keepdims: bool) -> Any:
    """Give a reduced array its axes back, as ones."""
    return x if keepdims else x.reshape(keep_shape(shape, axis))


def stretch_back(x: Any, shape: tuple, axis: tuple, keepdims: bool) -> Any:
    """Return a reduced array in the shape that it had before, read-only: each number stands for all that it came from.

    One number is stretched by hand, in a seventh of the time that ``np.broadcast_to`` takes.
    """
    if type(x) is np.float64:
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))  # type: ignore[arg-type]
    return np.broadcast_to(keep(x, shape, axis, keepdims), shape)


def drop(x: Any, axis: tuple, keepdims: bool) -> Any:
    """Take the unit axes of a reduced array away, unless they are to be kept: the inverse of `keep`."""
    return x if keepdims else x.reshape(tuple(d for i, d in enumerate(x.shape) if i not in axis))


def as_scalar(x: Any) -> Any:
    """Return a 0-d array as a NumPy scalar, which is what NumPy's reductions give."""
    return x[()] if x.ndim == 0 else x


def shift_axes(params: dict) -> dict:
    """Return parameters with every axis moved behind a leading batch axis."""
    axis = params["axis"]
    return {**params, "axis": tuple(a + 1 for a in axis) if type(axis) is tuple else axis + 1}


def shift(prim: Primitive) -> Any:
    """Return the batching rule of an operation of one operand along axes: all axes move by one."""
    return lambda size, batched, xs, params: bind(prim, *xs, **shift_axes(params))


def absent(x: Any) -> bool:
    return x is NOTHING or x is None


def is_true(keepdims: Any) -> bool:
    return keepdims is not NOTHING and bool(keepdims)


_NUMBERS = (np.generic, bool, int, float, complex, type(None))


def as_mask(where: Any) -> Any:
    """Return a reduction's `where` as a mask, or True; NumPy takes numbers by their truth, and arrays of bool alone."""
    if where is NOTHING or where is True:
        return True
    if isinstance(where, _NUMBERS):
        return where != 0 if type(where) is Tracer else bool(where)
    where = as_array(where)
    if where.dtype != bool:
        raise TypeError(f"Cannot cast array data from {where.dtype!r} to dtype('bool') according to the rule 'safe'")
    return where


def check_mask(a: Any, mask: Any) -> None:
    """Raise NumPy's error where a mask has axes, or elements along them, that the array to reduce has not."""
    shape = np.broadcast_shapes(a.shape, np.shape(mask))
    if shape != a.shape:
        raise ValueError(f"non-broadcastable operand with shape {a.shape} doesn't match the broadcast shape {shape}")


def select(a: Any, mask: Any, neutral: Any) -> Any:
    """Apply a reduction's mask: what it excludes becomes neutral, and has no derivative."""
    if mask is True:
        return a
    check_mask(a, mask)
    return np.where(mask, a, neutral)


def _first(y: Any, initial: Any) -> Any:
    """Return what a reduction begins with in the dtype that it is done in, as NumPy does."""
    if type(initial) in (int, float) and y.dtype.kind in "fc":
        return initial
    return convert(beside(y, initial), y.dtype)[()]


def convert(a: Any, dtype: Any) -> Any:
    return a if dtype is None or a.dtype == dtype else a.astype(dtype)


def sample_axes(s):
    return [
        call(s.real(3, 4)),
        call(s.real(3, 4), axis=0),
        call(s.real(2, 3, 4), axis=(0, -1), keepdims=True),
        call(s.real()),
    ]


def sample_primitive(s):
    return [
        call(s.real(3, 4), axis=(0, 1), keepdims=False),
        call(s.real(2, 3, 4), axis=(0, 2), keepdims=True),
        call(s.real(3), axis=(), keepdims=False),
    ]


def reduction(name: str, forward: Any, jvp: Any, vjp: Any, samples: Any = sample_primitive, **slots: Any) -> Primitive:
    """Make a nonlinear reduction: ``jvp(t, y, x, axis, keepdims)`` and ``vjp(ct, y, x, axis, keepdims)``."""
    prim = Primitive(name, forward, archetype="reduction", samples=samples, **slots)
    prim.jvp = lambda tangents, y, xs, params: jvp(tangents[0], y, xs[0], **params)
    prim.vjp = (vjp,)
    prim.batch = shift(prim)
    return register(prim)


def reducer(ufunc: Any, function: Any, samples: Any, flat: Any = False, **notes: Any) -> None:
    """Let a reduction answer for ``ufunc.reduce``, whose axis is 0 unless said otherwise."""

    @public([ufunc, "reduce"], name=f"{ufunc.__name__}.reduce", samples=samples, flat=flat, **notes)
    def reduce(array, axis=0, dtype=None, out=None, keepdims=False, initial=NOTHING, where=True):
        refuse_out(out)
        options = {} if dtype is None else {"dtype": dtype}
        if initial is not NOTHING:
            options["initial"] = initial
        return function(array, axis, keepdims=keepdims, where=where, **options)

    reduce.__doc__ = f"Reduce over axes (0 unless given) with {ufunc.__name__}."


def sample_reduce(s):
    return [call(s.real(3, 4)), call(s.real(3, 4), axis=1), call(s.real(3, 4), axis=None, keepdims=True)]


# --- sum -----------------------------------------------------------------------------------------------------------


def _add_up(x, *, axis, keepdims):
    if type(x) is not np.ndarray:
        return np.sum(x, axis=axis, keepdims=keepdims)
    if len(axis) == x.ndim and not keepdims:
        return np.add.reduce(x, axis=None)
    return np.add.reduce(x, axis=axis, keepdims=keepdims)  # quicker than np.sum, but GPU arrays do not answer it


sum_p: Any = linear(
    "sum_over",
    _add_up,
    lambda ct, x, *, axis, keepdims: stretch_back(ct, x.shape, axis, keepdims),
    lambda size, batched, xs, params: bind(sum_p, *xs, **shift_axes(params)),
    samples=sample_primitive,
    archetype="reduction",
    moves=True,
    combines=add,
    doc="The sum over axes.",
)


@public(np.sum, methods=("sum",), samples=lambda s: [
    *sample_axes(s), call(s.real(3, 4), axis=1, initial=2.0, where=s.bools(3, 4)), call(s.real(3), dtype="float64"),
    call(s.real(0, 3), axis=0)])  # fmt: skip
def sum(a, axis=None, dtype=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Sum over axes.

    >>> fad.grad(fad.numpy.sum)(np.array([1.0, 2.0]))
    array([1., 1.])
    >>> fad.numpy.sum(np.ones((2, 3)), axis=0)
    array([2., 2., 2.])
    """
    if out is not None:
        refuse_out(out)
    if dtype is None and type(a) is Tracer and initial is NOTHING and where is NOTHING:  # as most calls are
        return bind(sum_p, a, axis=find_reduced_axes(axis, a.ndim), keepdims=is_true(keepdims))
    a, mask = convert(as_array(a), dtype), as_mask(where)
    axes = find_reduced_axes(axis, a.ndim)
    y = convert(bind(sum_p, select(a, mask, 0), axis=axes, keepdims=is_true(keepdims)), dtype)
    return y if absent(initial) else y + _first(y, initial)


reducer(np.add, sum, sample_reduce)

# --- prod ----------------------------------------------------------------------------------------------------------


def _others(x, axis):
    """Return for each element the product of all others along `axis`, without dividing: zeros do no harm."""
    rest = tuple(i for i in range(x.ndim) if i not in axis)
    order = rest + axis
    moved = x.transpose(order)
    flat_x = moved.reshape((*(x.shape[i] for i in rest), -1)) if x.size else moved
    if not x.size:
        return np.ones_like(x)
    one = np.ones_like(flat_x[..., :1])
    before = np.cumprod(np.concatenate([one, flat_x[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([one, flat_x[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return (before * after).reshape(moved.shape).transpose(tuple(np.argsort(order).tolist()))


prod_p: Any = reduction(
    "product_over",
    lambda x, *, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims),
    lambda t, y, x, axis, keepdims: np.sum(t * _others(x, axis), axis=axis, keepdims=keepdims),
    lambda ct, y, x, axis, keepdims: keep(ct, x.shape, axis, keepdims) * _others(x, axis),
    lambda s: [*sample_primitive(s), call(np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.5]]), axis=(1,), keepdims=False)],
    combines=multiply,
    doc="The product over axes.",
)


@public(np.prod, methods=("prod",), samples=lambda s: [
    *sample_axes(s), call(s.real(3, 4), axis=1, initial=2.0, where=s.bools(3, 4)), call(s.real(0, 3), axis=0),
])  # fmt: skip
def prod(a, axis=None, dtype=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Multiply over axes; the derivative is exact where there are zeros, to any order.

    >>> fad.grad(fad.numpy.prod)(np.array([1.0, 2.0, 3.0]))
    array([6., 3., 2.])
    """
    refuse_out(out)
    a, mask = convert(as_array(a), dtype), as_mask(where)
    axes = find_reduced_axes(axis, a.ndim)
    y = convert(bind(prod_p, select(a, mask, 1), axis=axes, keepdims=is_true(keepdims)), dtype)
    return y if absent(initial) else y * _first(y, initial)


reducer(np.multiply, prod, sample_reduce)

# --- max and min ----------------------------------------------------------------------------------------------------


def _winners(y, x, axis, keepdims):
    """Return where the extreme is attained, and how often: ties share the derivative. NaN is attained by NaN."""
    y = keep(y, x.shape, axis, keepdims)
    mine = x == y
    count = _add_up(mine, axis=axis, keepdims=True)
    if type(count) is np.ndarray and count.all():
        return mine, count
    mine = mine | ((x != x) & (y != y))
    return mine, np.sum(mine, axis=axis, keepdims=True)


def _extreme_jvp(t, y, x, axis, keepdims):
    mine, count = _winners(y, x, axis, keepdims)
    return np.sum(np.where(mine, t / count.astype(t.dtype), 0.0), axis=axis, keepdims=keepdims)


def _extreme_vjp(ct, y, x, axis, keepdims):
    if type(ct) is type(y) is np.float64 and type(x) is np.ndarray:  # of all elements, as most are
        mine = x == y
        if count := np.add.reduce(mine, axis=None):
            return Selection(mine) * stretch_back(ct / count, x.shape, axis, keepdims)
    mine, count = _winners(y, x, axis, keepdims)
    return Selection(mine) * np.broadcast_to(keep(ct, x.shape, axis, keepdims) / count.astype(ct.dtype), x.shape)


def _extreme_op(name, reduce, doc, combines=None):
    ufunc = None if combines is None else combines.forward

    def forward(x, *, axis, keepdims):
        if type(x) is np.ndarray and ufunc is not None:
            return ufunc.reduce(x, axis=axis, keepdims=keepdims)  # quicker than np.max, but no GPU's arrays answer it
        return reduce(x, axis=axis, keepdims=keepdims)

    return reduction(name, forward, _extreme_jvp, _extreme_vjp, combines=combines, doc=doc)


def _fmax(x, axis, keepdims):
    if isinstance(x, _HOST):
        return np.fmax.reduce(x, axis=axis, keepdims=keepdims)
    return _leaving_out(np.max, -np.inf, x, axis, keepdims)


def _fmin(x, axis, keepdims):
    if isinstance(x, _HOST):
        return np.fmin.reduce(x, axis=axis, keepdims=keepdims)
    return _leaving_out(np.min, np.inf, x, axis, keepdims)


def _leaving_out(reduce, worst, x, axis, keepdims):
    """Reduce what is no NaN, on a device: its arrays answer no ``ufunc.reduce``, and their `nanmax` may wait."""
    if x.dtype.kind not in "fc":
        return reduce(x, axis=axis, keepdims=keepdims)
    missing = np.isnan(x)
    worst = complex(worst, worst) if x.dtype.kind == "c" else worst
    y = reduce(np.where(missing, worst, x), axis=axis, keepdims=keepdims)
    return np.where(np.all(missing, axis=axis, keepdims=keepdims), np.nan, y)


max_p: Any = _extreme_op("max_over", np.max, "The maximum over axes; ties share the derivative.", maximum)
min_p: Any = _extreme_op("min_over", np.min, "The minimum over axes; ties share the derivative.", minimum)
fmax_p: Any = _extreme_op("fmax_over", _fmax, "The maximum over axes of what is not NaN.")
fmin_p: Any = _extreme_op("fmin_over", _fmin, "The minimum over axes of what is not NaN.")


def _extreme(prim, ufunc, a, axis, out, keepdims, initial, where):
    refuse_out(out)
    a, mask = as_array(a), as_mask(where)
    axes = find_reduced_axes(axis, a.ndim)
    if mask is not True:
        if absent(initial):
            raise ValueError(
                f"reduction operation '{ufunc.__name__}' does not have an identity, "
                "so to use a where mask one has to specify 'initial'"
            )
        a = select(a, mask, _first(a, initial))
    initial = initial if absent(initial) else _first(a, initial)
    if not absent(initial) and 0 in [a.shape[i] for i in axes]:
        shape = tuple(1 if i in axes else d for i, d in enumerate(a.shape))
        return as_scalar(drop(np.full_like(a, initial, shape=shape), axes, is_true(keepdims)))
    y = bind(prim, a, axis=axes, keepdims=is_true(keepdims))
    return y if absent(initial) else ufunc(y, initial)


def _sample_extreme(s):
    return [*sample_axes(s), call(s.real(3, 4), axis=1, initial=0.1, where=s.bools(3, 4)), call(s.real(3, 0), axis=0)]


def _max(a, axis=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Return the maximum over axes; ties share the derivative equally.

    >>> fad.grad(fad.numpy.max)(np.array([1.0, 3.0, 2.0]))
    array([0., 1., 0.])
    """
    return _extreme(max_p, np.maximum, a, axis, out, keepdims, initial, where)


def _min(a, axis=None, out=None, keepdims=NOTHING, initial=NOTHING, where=NOTHING):
    """Return the minimum over axes; ties share the derivative equally.

    >>> fad.grad(fad.numpy.min)(np.array([1.0, 3.0, 2.0]))
    array([1., 0., 0.])
    """
    return _extreme(min_p, np.minimum, a, axis, out, keepdims, initial, where)


max = public(np.max, np.amax, name="max", methods=("max",), samples=_sample_extreme)(_max)
min = public(np.min, np.amin, name="min", methods=("min",), samples=_sample_extreme)(_min)
amax, amin = max, min
reducer(np.maximum, _max, sample_reduce)
reducer(np.minimum, _min, sample_reduce)
reducer(np.fmax, lambda a, axis, keepdims, initial=NOTHING, where=True: _extreme(
    fmax_p, np.fmax, a, axis, None, keepdims, initial, where), sample_reduce)  # fmt: skip
reducer(np.fmin, lambda a, axis, keepdims, initial=NOTHING, where=True: _extreme(
    fmin_p, np.fmin, a, axis, None, keepdims, initial, where), sample_reduce)  # fmt: skip


@public(np.ptp, methods=("ptp",), samples=sample_axes)
def ptp(a, axis=None, out=None, keepdims=NOTHING):
    """Return maximum minus minimum over axes.

    >>> fad.grad(fad.numpy.ptp)(np.array([1.0, 3.0, 2.0]))
    array([-1.,  1.,  0.])
    """
    refuse_out(out)
    a = as_array(a)
    return _max(a, axis, keepdims=keepdims) - _min(a, axis, keepdims=keepdims)


# --- log of a sum of exponentials -----------------------------------------------------------------------------------


def _logsumexp(x, *, axis, keepdims):
    if not isinstance(x, _HOST):
        return _logsumexp_elsewhere(x, axis, keepdims)
    m = np.max(x.real, axis=axis, keepdims=True, initial=-np.inf)
    if not np.isfinite(m).all():
        m = np.where(np.isfinite(m), m, np.zeros_like(m))
    with np.errstate(divide="ignore"):
        y = np.log(np.add.reduce(np.exp(x - m), axis=axis, keepdims=True)) + m
    return as_scalar(drop(y, axis, keepdims))


def _logsumexp_elsewhere(x, axis, keepdims):
    """Compute the same on a device, whose arrays answer no ``ufunc.reduce``, and asking nothing of the host."""
    nothing = 0 in [x.shape[a] for a in axis]
    m = np.zeros_like(x.real, shape=keep_shape(x.shape, axis)) if nothing else np.max(x.real, axis=axis, keepdims=True)
    m = np.where(np.isfinite(m), m, 0.0)
    y = np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True)) + m
    return drop(y, axis, keepdims)


def _softmax(y, x, axis, keepdims):
    """Return the weights exp(x - y). Where y is infinite they are shared by the elements equal to it."""
    y = keep(y, x.shape, axis, keepdims)
    if type(y) is np.ndarray and np.isfinite(y).all():
        return np.exp(x - y)
    infinite = np.isinf(y)
    ties = infinite & (x == y)
    share = ties / np.maximum(np.sum(ties, axis=axis, keepdims=True), 1).astype(y.dtype)
    weight = np.exp(np.where(infinite, 0.0, x) - np.where(infinite, 0.0, y))
    return np.where(infinite, share, weight)


logsumexp_p: Any = reduction(
    "logsumexp_over",
    _logsumexp,
    lambda t, y, x, axis, keepdims: np.sum(t * _softmax(y, x, axis, keepdims), axis=axis, keepdims=keepdims),
    lambda ct, y, x, axis, keepdims: keep(ct, x.shape, axis, keepdims) * _softmax(y, x, axis, keepdims),
    lambda s: [*sample_primitive(s), call(np.array([[-np.inf, 1.0], [2.0, 0.5]]), axis=(1,), keepdims=False)],
    doc="log(sum(exp(x))) over axes, without overflow.",
)


@public(samples=lambda s: [*sample_axes(s), call(s.real(3, 4), axis=1, b=s.positive(3, 4))])
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    """Return ``log(sum(b * exp(a)))`` over axes, without overflow; exact derivatives with entries of -inf.

    Parameters
    ----------
    a : array
    axis : int, tuple of int, or None for all
    b : array, optional
        Weights, broadcast against `a`.
    keepdims : bool
        Keep the reduced axes with size one.
    return_sign : bool
        Return the logarithm of the absolute value, and the sign; without it a negative sum gives NaN.

    Returns
    -------
    array, or (array, sign)

    Examples
    --------
    >>> logsumexp(np.array([1000.0, 1000.0]))
    np.float64(1000.6931471805599)
    """
    a = as_array(a)
    if b is None:
        y = bind(logsumexp_p, a, axis=find_reduced_axes(axis, a.ndim), keepdims=bool(keepdims))
        return (y, np.ones_like(y)) if return_sign else y
    a, b = np.broadcast_arrays(a, as_array(b))
    axes = find_reduced_axes(axis, a.ndim)
    live = b != 0
    m = stop(np.max(np.where(live, a, -np.inf), axis=axes, keepdims=True))
    m = np.where(np.isfinite(m), m, 0.0)
    total = np.sum(np.where(live, b * np.exp(np.where(live, a - m, 0.0)), 0.0), axis=axes, keepdims=True)
    sign = np.sign(total)
    y = drop(np.log(np.abs(total) if return_sign else total) + m, axes, keepdims)
    return (y, drop(sign, axes, keepdims)) if return_sign else y




def _logaddexp_reduce(a, axis, keepdims=False, where=True, initial=NOTHING):
    a, mask = as_array(a), as_mask(where)
    find_reduced_axes(axis, a.ndim)  # NumPy looks at the axes before the dtype
    if a.dtype.kind == "c":
        raise TypeError("ufunc 'logaddexp' is not defined for complex numbers: write np.log(np.sum(np.exp(x)))")
    a = a if a.dtype.kind == "f" else a.astype(np.result_type(a.dtype, np.float16))
    y = logsumexp(select(a, mask, -np.inf), axis, keepdims=keepdims)
    return y if absent(initial) else np.logaddexp(y, initial)


reducer(np.logaddexp, _logaddexp_reduce, sample_reduce)
