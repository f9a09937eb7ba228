"""Creation: arrays like another, ranges between traced ends, arrays from nested lists that hold traced values."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from fad.backends import like as constant_like
from fad.backends import made_like
from fad.core.primitives.archetypes import flat
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, add_methods, bind, outcome, strong
from fad.core.tracing.views import as_one_array, is_array, layout, snapshot
from fad.ops.arrangement.structural import as_array, as_shape, beside, normalize_axis
from fad.ops.layout.asking import result_type
from fad.ops.layout.memory_order import duplicate, lay_out, lay_out_as, lay_out_like, refuse_copy, requests_copy
from fad.ops.places.functional_updates import At
from fad.ops.ufuncs.conversion import array_of_objects

# --- like another array ------------------------------------------------------------------------------------------


def _like(name: str, make: Any, doc: str) -> Any:
    """Return the flat primitive of ``zeros_like`` and related functions: it reads its operand's shape and dtype."""

    def batch(size, batched, xs, params):
        shape = params["shape"]
        shape = xs[0].shape if shape is None else (size, *shape)
        return bind(prim, xs[0], shape=shape, dtype=params["dtype"])

    prim = flat(
        name,
        lambda x, *, shape, dtype: make(x, dtype=dtype) if shape is None else made_like(make, x, shape, dtype),
        batch=batch,
        samples=lambda s: [
            call(s.real(3, 4), shape=None, dtype=None),
            call(s.real(3), shape=(2,), dtype=np.dtype("f4")),
        ],
        doc=doc,
        shape_only=True,
        cheap=True,
    )
    return prim


zeros_p: Any = _like("zeros_from", np.zeros_like, "Zeros of a shape, on the backend of x.")
ones_p: Any = _like("ones_from", np.ones_like, "Ones of a shape, on the backend of x.")


def _order_like(y: Any, a: Any, order: str) -> Any:
    """Return what was made like an array in the order requested; "K", the array's own, is that of the primitive."""
    laid = y if order == "K" else lay_out_like(y, a) if order == "A" else lay_out(y, order)
    return as_one_array(laid)


def _shape(shape):
    return None if shape is None else as_shape(shape)


_samples = lambda s: [call(s.real(3, 4)), call(s.real(3, 4), dtype=int), call(s.real()), call(s.real(3), shape=(2, 2))]


@public(np.zeros_like, flat=True, samples=_samples)
def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Return zeros of the shape and dtype of an array.

    >>> fad.numpy.zeros_like(np.array([1.0, 2.0]))
    array([0., 0.])
    """
    a = as_array(a)
    return _order_like(
        bind(zeros_p, a, shape=_shape(shape), dtype=None if dtype is None else np.dtype(dtype)), a, order
    )


@public(np.ones_like, flat=True, samples=_samples)
def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Return ones of the shape and dtype of an array.

    >>> fad.numpy.ones_like(np.array([1.0, 2.0]))
    array([1., 1.])
    """
    a = as_array(a)
    return _order_like(bind(ones_p, a, shape=_shape(shape), dtype=None if dtype is None else np.dtype(dtype)), a, order)


@public(np.empty_like, flat=True, samples=lambda s: [call(s.real(0, 2)), call(s.real(3), shape=(0,))])
def empty_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Return an array of the shape and dtype of another; of a traced one, zeros.

    >>> fad.numpy.empty_like(np.ones((2, 3))).shape
    (2, 3)
    """
    return zeros_like(a, dtype=dtype, order=order, shape=shape)


@public(
    np.full_like,
    samples=lambda s: [call(s.real(3, 4), 0.5), call(s.real(3, 2), s.real(2)), call(s.real(3), s.real(), shape=(2, 2))],
)
def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Return an array like another, filled with a value, which through ``fad.numpy.full_like`` may be traced.

    >>> fad.numpy.full_like(np.array([1.0, 2.0]), 7.0)
    array([7., 7.])
    """
    zeros = zeros_like(a, dtype=dtype, order=order, shape=shape)
    value = beside(zeros, fill_value).astype(zeros.dtype)
    if not zeros.ndim:
        return as_one_array(At(zeros)[...].set(value))  # an array still: sums without axes are NumPy's scalars
    filled = np.broadcast_to(_drop_leading(value, zeros.ndim), zeros.shape) + zeros
    return lay_out_as(filled.astype(zeros.dtype, copy=False), layout(zeros))  # sums have the machine's byte order


def _drop_leading(x: Any, rank: int) -> Any:
    """Drop axes of length one in front of the last `rank`, as NumPy does with what it writes."""
    while x.ndim > rank and x.shape[0] == 1:
        x = x[0]
    return x


@public(
    np.full, samples=lambda s: [call((2, 3), s.real()), call((2, 3), s.real(3)), call(2, s.real(), dtype="float32")]
)
def full(shape, fill_value, dtype=None, order="C", *, device=None, like=None):
    """Return an array of a shape, filled with a value that may be traced.

    >>> fad.grad(lambda x: fad.numpy.full((2, 3), x).sum())(1.0)
    np.float64(6.0)
    """
    shape = as_shape(shape)
    filled = np.broadcast_to(_drop_leading(as_array(fill_value), len(shape)), shape)
    laid: Literal["C", "F"] = "F" if order == "F" else "C"
    return np.copy(filled, order=laid) if dtype is None else filled.astype(dtype, order=laid)


# --- arrays from values ------------------------------------------------------------------------------------------


def _array_samples(s):
    return [call(s.real(3)), call([s.real(), s.real()]), call([[s.real(2), s.real(2)]]), call([s.real(2), [1.0, 2.0]])]


def _as(object, dtype):
    if dtype is not None and type(object) in (list, tuple) and np.dtype(dtype).kind == "O":
        return array_of_objects(object)
    x = strong(as_array(object))
    return x if dtype is None else x.astype(dtype, copy=False)


@public(np.array, samples=lambda s: [*_array_samples(s), call([s.real()], dtype="float32"), call(s.real(2), ndmin=3)])
def array(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, ndmax=0, like=None):
    """Make an array of a nested list, which may hold traced values: they are stacked.

    ``numpy.array([x, 1.0])`` cannot be made to work for a traced x, this function can.

    >>> fad.grad(lambda x: fad.numpy.array([x, 2 * x]).sum())(1.0)
    np.float64(3.0)
    """
    x = _as(object, dtype)
    if x is not object:
        refuse_copy(copy, "copy while creating an array as requested")
    if type(x) is Tracer:
        copied = x is object and requests_copy(copy)
        x = _copy_ordered(x, order) if copied else lay_out(x, order) if order in ("C", "F") else x
    return x.reshape((1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


@public(np.asarray, samples=_array_samples)
def asarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """Make an array of a nested list, which may hold traced values; a traced array is returned as it is.

    >>> fad.grad(lambda x: fad.numpy.asarray([x, 2 * x]).sum())(1.0)
    np.float64(3.0)
    """
    return _arrange(_as(a, dtype), order, copy, a)


@public(np.asanyarray, samples=_array_samples)
def asanyarray(a, dtype=None, order=None, *, device=None, copy=None, like=None):
    """Make an array of a nested list, which may hold traced values; a traced array is returned as it is.

    >>> fad.grad(lambda x: fad.numpy.asanyarray([x, 2 * x]).sum())(1.0)
    np.float64(3.0)
    """
    return _arrange(_as(a, dtype), order, copy, a)


def _arrange(x: Any, order: Any, copy: bool | None, given: Any) -> Any:
    """Return an array, or a copy of it where one is requested or it lies in memory in another order."""
    if x is not given:
        refuse_copy(copy, "copy while creating an array as requested")
    if requests_copy(copy):
        return np.copy(x, order=order or "K")
    return lay_out(x, order) if order in ("C", "F") else x


@public(np.ascontiguousarray, samples=_array_samples)
def ascontiguousarray(a, dtype=None, *, like=None):
    """Return the array, with at least one axis; a copy if it does not lie in C order.

    >>> fad.numpy.ascontiguousarray(np.eye(2).T)
    array([[1., 0.],
           [0., 1.]])
    """
    return np.atleast_1d(lay_out(_as(a, dtype), "C"))


@public(np.asfortranarray, samples=_array_samples)
def asfortranarray(a, dtype=None, *, like=None):
    """Return the array, with at least one axis; a copy if it does not lie in Fortran's order.

    >>> fad.numpy.asfortranarray(np.eye(2)).flags.f_contiguous
    True
    """
    return np.atleast_1d(lay_out(_as(a, dtype), "F"))


@public(np.require, samples=lambda s: [call(s.real(3)), call(s.real(2), dtype="float32", requirements="C")])
def require(a, dtype=None, requirements=None, *, like=None):
    """Return the array; a copy if it does not lie in memory as required, or is a view and must not be one.

    >>> fad.numpy.require(np.array([1.0, 2.0]), requirements="C")
    array([1., 2.])
    """
    required = {r.upper()[:1] for r in requirements or ()}
    x = _as(a, dtype)
    order = "C" if "C" in required else "F" if "F" in required else None
    y = _arrange(x, order, None, x)
    return np.copy(y, order="K") if "O" in required and y.base is not None else y


@public(np.asarray_chkfinite, samples=_array_samples)
def asarray_chkfinite(a, dtype=None, order=None):
    """Return the array, or raise ValueError if it holds NaN or infinities.

    >>> fad.numpy.asarray_chkfinite(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    a = _as(a, dtype)
    if a.dtype.kind in "fc" and not outcome(np.all(np.isfinite(a))):
        raise ValueError("array must not contain infs or NaNs")
    return a


@public(np.copy, samples=lambda s: [call(s.real(3, 4)), call([1.0, s.real()]), call(s.real(2, 3), order="F")])
def copy(a, order="K", subok=False):
    """Return a copy: an array that stays what it is when the other is changed.

    >>> fad.numpy.copy(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    return as_one_array(_copy_ordered(as_array(a), order))


def _copy_ordered(a: Any, order: str) -> Any:
    a = strong(a) if type(a) is Tracer and not a.shape else a
    if type(a) is not Tracer:
        return a
    return duplicate(a) if order == "K" else snapshot(lay_out_like(a, a) if order == "A" else lay_out(a, order))


def _copy_method(self: Tracer, order: str = "C") -> Any:
    y = _copy_ordered(self, order)
    return y if self.shape or not is_array(self) else as_one_array(y)  # a NumPy scalar's copy is a scalar


add_methods(copy=_copy_method)


# --- ranges ------------------------------------------------------------------------------------------------------


@public(
    np.arange,
    samples=lambda s: [call(s.positive(), 5.5), call(s.real(), s.real() + 6.0, 0.75), call(np.float64(4.2))],
    complex=False,
)
def arange(start, stop=None, step=None, dtype=None, *, device=None, like=None):
    """Return the numbers from `start` to before `stop`, in steps; start and step may be traced.

    How many there are is piecewise constant, so `stop` has no derivative.

    >>> fad.numpy.arange(3.0)
    array([0., 1., 2.])
    """
    start, stop, step = (0 if stop is None else start), (start if stop is None else stop), (1 if step is None else step)
    kinds = [x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype for x in (start, stop, step)]
    kind = np.result_type(*kinds, np.int_)  # NumPy begins with integers
    n = max(0, math.ceil(outcome(np.ceil((stop - start) / step))))
    # NumPy adds in the operands' own precision, and takes the difference in that of the result.
    first, second = as_array(start).astype(kind), as_array(start + step).astype(kind)
    stride = second - first
    y = first + constant_like(stride, np.arange(n)) * stride
    return y if dtype is None else y.astype(dtype)


def _beside_numbers(kind, *ends):
    """Return a dtype in the byte order of the only array among the ends: beside Python's numbers NumPy keeps it."""
    own = [x.dtype for x in ends if hasattr(x, "dtype")]
    return own[0] if len(own) == 1 and own[0].newbyteorder("=") == kind else kind


_NUMBERS = frozenset({int, float, complex})


def _linear_samples(s):
    return [
        call(s.real(), s.real(), 5),
        call(s.real(3), 2.0, 4, endpoint=False),
        call(s.real(2, 1), s.real(2), num=3, axis=-1),
        call(s.real(), s.real(), 4, retstep=True),
        call(s.real(), s.real(), 1),
    ]


@public(np.linspace, samples=_linear_samples)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """Return `num` evenly spaced numbers from `start` to `stop`, both of which may be traced.

    >>> fad.numpy.linspace(0.0, 1.0, 3)
    array([0. , 0.5, 1. ])
    >>> fad.grad(lambda b: fad.numpy.linspace(0.0, b, 3).sum())(1.0)
    np.float64(1.5)
    """
    num = num.__index__()
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if type(start) in _NUMBERS and type(stop) in _NUMBERS:  # `num` alone was traced
        return np.linspace(start, stop, num, endpoint, retstep, dtype, axis)
    start, stop = (x if type(x) in _NUMBERS else as_array(x) for x in (start, stop))
    kind = result_type(start, stop, float(num))
    start, stop = (x * 1.0 if hasattr(x, "dtype") and x.dtype.kind in "biu" else x for x in (start, stop))
    delta = stop - start
    div = num - 1 if endpoint else num
    y = constant_like(delta, np.arange(num, dtype=kind).reshape((-1,) + (1,) * delta.ndim))
    step = delta / div if div > 0 else np.nan * delta
    y = y * delta if div <= 0 else y * step
    y = (y + start).astype(_beside_numbers(kind, start, stop))
    if endpoint and num > 1:
        y = At(y)[-1].set(stop)
    y = np.moveaxis(y, 0, normalize_axis(axis, y.ndim))
    if dtype is not None:
        y = (np.floor(y) if np.dtype(dtype).kind in "iu" else y).astype(dtype)
    return (y, step.astype(kind)) if retstep else y


@public(
    np.logspace,
    samples=lambda s: [
        call(s.real(), s.real(), 4),
        call(s.real(2), 1.5, 3, base=2.0),
        call(s.real(), s.real(), 3, base=s.positive(2)),
        call(s.real(), s.real(), 3, base=s.positive(2), axis=-1),
    ],
)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Return `num` numbers evenly spaced in the logarithm, from base**start to base**stop; all three may be traced.

    >>> fad.numpy.logspace(0.0, 2.0, 3)
    array([  1.,  10., 100.])
    """
    if np.ndim(base):
        base = as_array(base)
        rank = max(np.ndim(start), np.ndim(stop), base.ndim)
        start, stop = (as_array(x).reshape((1,) * (rank - np.ndim(x)) + np.shape(x)) for x in (start, stop))
        base = np.expand_dims(base.reshape((1,) * (rank - base.ndim) + base.shape), axis)
    y = base ** linspace(start, stop, num, endpoint, axis=axis)
    return y if dtype is None else y.astype(dtype)


@public(
    np.geomspace,
    samples=lambda s: [
        call(s.positive(), s.positive(), 4),
        call(-s.positive(2), -s.positive(2), 3, axis=1),
        call(s.positive(), s.positive(), 3, endpoint=False),
    ],
)
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Return `num` numbers in geometric progression from `start` to `stop`, both of which may be traced.

    >>> fad.numpy.geomspace(1.0, 100.0, 3)
    array([  1.,  10., 100.])
    >>> fad.grad(lambda b: fad.numpy.geomspace(1.0, b, 3).sum())(100.0)
    np.float64(1.05)
    """
    start, stop = beside(stop, start), beside(start, stop)
    if outcome(np.any(start == 0)) or outcome(np.any(stop == 0)):
        raise ValueError("Geometric sequence cannot include zero")
    kind = np.result_type(start, stop, float if dtype is None else dtype, 1.0)
    start, stop = start.astype(kind), stop.astype(kind)
    sign = np.sign(start)
    start, stop = np.broadcast_arrays(start / sign, stop / sign)
    y = logspace(np.log10(start), np.log10(stop), num, endpoint)
    if num > 0:
        exact = num > 1 and endpoint
        y = np.concatenate([start[None], y[1:-1], stop[None]] if exact else [start[None], y[1:]])
    y = np.moveaxis(y * sign, 0, normalize_axis(axis, y.ndim))
    return y if dtype is None else y.astype(dtype)
