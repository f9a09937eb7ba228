"""Changing the arrangement of elements, not their values: reshape, transpose, broadcast, join, convert.

Here are the few primitives with rules; NumPy's many other names are written in them (see
`fad/ops/arrangement/arranging.py`).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fad.backends import ARRAYS, is_numpy_scalar, like
from fad.core.primitives.archetypes import cast, fit, linear
from fad.core.primitives.cotangent import Masked
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import Primitive, has_tracer, on_device, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.array_likes import open_array_like
from fad.core.tracing.tracer import Tracer, add_methods, bind, strong, tracer
from fad.core.tracing.views import RUNS, ViewRule, as_one_array, is_array, layout, shares, snapshot, version_of
from fad.errors import MissingRuleError
from fad.ops.layout.asking import example
from fad.ops.layout.elements import join_elements
from fad.ops.layout.index_layout import can_broadcast
from fad.ops.layout.memory_order import lay_out, refuse_copy, requests_copy
from fad.ops.layout.packing import is_of_numpy, pack, pack_numbers


def _reshapes_memory(x: Any, y: Any, params: dict) -> bool:
    """Return whether NumPy's reshape is a view: that depends on how the array lies in memory."""
    if not x.shape:
        return is_array(x)  # an example of a batch of such arrays is a number, which lies nowhere
    RUNS.asked = True
    a = layout(x)
    if type(a) is np.ndarray and a.flags.c_contiguous:
        return True
    return type(a) in ARRAYS and shares(a.reshape(params["shape"]), a)


def inverse(axes: tuple) -> tuple:
    """Return the permutation that undoes `axes`."""
    out = [0] * len(axes)
    for i, a in enumerate(axes):
        out[a] = i
    return tuple(out)


# --- reshape -----------------------------------------------------------------------------------------------------

reshape_p: Any = linear(
    "reshape_to",
    lambda x, *, shape: x.reshape(shape) if type(x) is np.ndarray else np.reshape(x, shape),
    lambda ct, x, *, shape: ct.reshape(x.shape),
    lambda size, batched, xs, params: bind(reshape_p, xs[0], shape=(size, *params["shape"])),
    samples=lambda s: [call(s.real(3, 4), shape=(2, 6)), call(s.real(), shape=(1, 1)), call(s.real(0, 2), shape=(0,))],
    moves=True,
    dependence="moved",
    cheap=True,
    doc="The elements in another shape.",
)


reshape_p.view = ViewRule(_reshapes_memory, lambda x, y, shape: bind(reshape_p, y, shape=x.shape))


def _shape(x: Any, shape: tuple) -> tuple:
    """Resolve a -1 in a new shape."""
    if -1 in shape:
        known = 1
        for d in shape:
            known *= d if d != -1 else 1
        if shape.count(-1) > 1 or known == 0 or x.size % known:
            raise ValueError(f"cannot reshape array of size {x.size} into shape {shape}")
        return tuple(x.size // known if d == -1 else d for d in shape)
    return shape


def as_array(x: Any) -> Any:
    """Return an array or tracer; nested lists that hold tracers are stacked."""
    if type(x) is Tracer:
        return x
    x = open_array_like(x)
    if hasattr(x, "dtype"):
        return x
    if type(x) in (list, tuple) and has_tracer(x):
        y = pack_numbers(x)
        y = stack(x) if y is None else y
        return lay_out(y, "C") if y.ndim > 2 else y  # a stack of matrices may lie as they do
    try:
        return np.asarray(x)
    except TypeError:
        if type(x) not in (list, tuple) or not on_device(x):
            raise
    return stack(x)


def beside(near: Any, x: Any) -> Any:
    """Return `x` as an array; what is no array yet becomes one where the array `near` lives."""
    if hasattr(x, "dtype") and not is_numpy_scalar(x):
        return x
    x = as_array(x)
    return like(near, np.asarray(x) if is_numpy_scalar(x) else x)


def as_shape(shape: Any) -> tuple:
    if type(shape) is tuple and {int}.issuperset(map(type, shape)):
        return shape
    return tuple(map(operator.index, shape if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)))


@public(
    np.reshape,
    samples=lambda s: [call(s.real(3, 4), (2, -1)), call(s.real(3, 4), (4, 3), order="F"), call(s.real(), (1,))],
)
def reshape(a, /, shape=None, order="C", *, newshape=None, copy=None):
    """Give an array a new shape; `order` "C" or "F" as in NumPy.

    >>> fad.grad(lambda x: fad.numpy.reshape(x, (2, 2))[0].sum())(np.array([1.0, 2.0, 3.0, 4.0]))
    array([1., 1., 0., 0.])
    """
    a = as_array(a)
    shape = newshape if shape is None else shape
    whole = shape is None
    shape = a.shape if whole else _shape(a, as_shape(shape))
    if order == "K" and not whole:
        raise ValueError("order 'K' is not permitted for reshaping")
    order = _memory_order(order, a)
    y = bind(reshape_p, a.T, shape=shape[::-1]).T if order == "F" else bind(reshape_p, a, shape=shape)
    if type(y) is Tracer and type(y.memory) is not tuple and is_array(a):
        refuse_copy(copy, "creating a copy while reshaping.")
    return snapshot(y) if requests_copy(copy) and type(y) is Tracer else y


def _flags(a: Any) -> Any:
    """Return how a host array lies in memory; None for numbers and arrays of a device."""
    plain = layout(a)
    return plain.flags if type(plain) is np.ndarray else None


def _memory_order(order: str, a: Any) -> str:
    """Return "C" or "F" for an order that depends on how an array lies in memory."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if order in ("C", "F") or (flags := _flags(a)) is None:
        return "F" if order == "F" else "C"
    RUNS.laid_out = True
    return "F" if flags.f_contiguous and not flags.c_contiguous else "C"


def _axes_as_they_lie(x: Any) -> list:
    """Return the axes of a plain array from the slowest to the fastest, for ``order="K"``."""
    RUNS.laid_out = True
    if any(n > 1 and not stride for n, stride in zip(x.shape, x.strides, strict=True)):
        raise MissingRuleError(
            f"order='K' takes the elements of an array of shape {x.shape} as they lie in memory, and some of them lie "
            "in one place (np.broadcast_to): write order='C' or order='F'"
        )
    return sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))


def _reshape_method(self, *shape, order="C", copy=None):
    if not shape:
        raise TypeError("reshape() takes exactly 1 argument (0 given)")
    shape = shape[0] if len(shape) == 1 and type(shape[0]) is not int else shape
    if order == "C" and copy is None:
        try:
            return bind(reshape_p, self, shape=_shape(self, as_shape(shape)))
        except (TypeError, ValueError):
            pass  # raised again below, in NumPy's words
    return reshape(self, shape, order=order, copy=copy)


add_methods(reshape=_reshape_method)


@public(np.ravel, methods=("ravel",), samples=lambda s: [call(s.real(3, 4)), call(s.real(2, 3), order="F")])
def ravel(a, order="C"):
    """Return the elements as a vector.

    >>> fad.numpy.ravel(np.eye(2))
    array([1., 0., 0., 1.])
    """
    a = as_array(a)
    flags = _flags(a) if type(a) is Tracer and is_array(a) else None
    if order == "C" and flags is not None and flags.c_contiguous:
        return bind(reshape_p, a, shape=(a.size,))
    if order == "K" and a.ndim > 1 and flags is not None and not flags.forc:
        return ravel(a.transpose(_axes_as_they_lie(layout(a))))
    order = _memory_order(order, a)
    if flags is not None and order in ("C", "F") and not flags[f"{order}_CONTIGUOUS"]:
        y = reshape(a, (-1,) if a.size else (0,), order=order)  # of which NumPy's reshape may be a view, but not ravel
        return y.copy() if RUNS.buffers else snapshot(y)
    return reshape(a, (-1,), order=order) if a.size else bind(reshape_p, a, shape=(0,))


add_methods(flatten=lambda self, order="C": snapshot(ravel(self, order)))


# --- transpose ---------------------------------------------------------------------------------------------------

transpose_p: Any = linear(
    "permute",
    lambda x, *, axes: np.transpose(x, axes),
    lambda ct, x, *, axes: bind(transpose_p, ct, axes=inverse(axes)),
    lambda size, batched, xs, params: bind(transpose_p, xs[0], axes=(0, *(a + 1 for a in params["axes"]))),
    samples=lambda s: [call(s.real(3, 4), axes=(1, 0)), call(s.real(2, 3, 4), axes=(1, 2, 0))],
    moves=True,
    dependence="moved",
    cheap=True,
    doc="The array with its axes in another order.",
)


transpose_p.view = ViewRule(
    lambda x, y, params: is_array(x), lambda x, y, axes: bind(transpose_p, y, axes=inverse(axes))
)


def normalize_axis(axis: int, ndim: int) -> int:
    """Return a non-negative axis number.

    Raises numpy.exceptions.AxisError as NumPy does.
    """
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis % ndim if ndim else 0


def along(a: Any, axis: Any) -> tuple:
    """Return an array and one of its axes: flattened for None, and one element for a number, as in np.take."""
    a = as_array(a)
    if axis is None:
        return flatten(a), 0
    a = a if a.ndim else np.ravel(a)
    return a, normalize_axis(axis, a.ndim)


def flatten(a: Any) -> Any:
    """Return the elements of an array as a vector, which a vector is already."""
    return a if a.ndim == 1 else np.ravel(a)


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return a tuple of non-negative, different axis numbers; None means all."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (normalize_axis(axis, ndim),)
    axes = tuple(normalize_axis(a, ndim) for a in axis)
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return axes


def find_reduced_axes(axis: Any, ndim: int) -> tuple:
    """Return the axes to reduce; of a 0-d array NumPy lets axis 0 and -1 pass for none."""
    if ndim == 0 and type(axis) is int and axis in (0, -1):
        return ()
    return normalize_axes(axis, ndim)


@public(
    np.transpose, np.permute_dims,
    samples=lambda s: [call(s.real(3, 4)), call(s.real(2, 3, 4), (2, 0, 1)), call(s.real(2, 3, 4), (-1, 0, 1))],
)  # fmt: skip
def transpose(a, axes=None):
    """Permute the axes; without `axes` reverse them.

    >>> fad.numpy.permute_dims(np.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    a = as_array(a)
    n = a.ndim
    if not n:  # of Python's numbers NumPy makes arrays, and its own it leaves
        return a if isinstance(a, (np.ndarray, np.generic)) else as_one_array(strong(a))
    axes = tuple(range(n))[::-1] if axes is None else normalize_axes(tuple(axes), n)
    if len(axes) != n:
        raise ValueError("axes don't match array")
    return a if axes == tuple(range(n)) else bind(transpose_p, a, axes=axes)


def _transpose_method(self, *axes):
    return transpose(self, None if not axes or axes[0] is None else axes[0] if np.iterable(axes[0]) else axes)


add_methods(transpose=_transpose_method, T=property(transpose))


def matrix_transpose(x):
    """Swap the last two axes.

    >>> fad.numpy.matrix_transpose(np.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = as_array(x)
    if x.ndim < 2:
        raise ValueError(f"matrix transpose needs at least 2 dimensions, but the array has {x.ndim}")
    return bind(transpose_p, x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


add_methods(mT=property(matrix_transpose))
matrix_transpose = public(
    np.matrix_transpose,
    samples=lambda s: [call(s.real(2, 3, 4))],
    raises="ValueError: The array has fewer than two axes.",
)(matrix_transpose)


@public(np.swapaxes, methods=("swapaxes",), samples=lambda s: [call(s.real(2, 3, 4), 0, -1)])
def swapaxes(a, axis1, axis2):
    """Exchange two axes.

    >>> fad.numpy.swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = as_array(a)
    axes = list(range(a.ndim))
    i, j = normalize_axis(axis1, a.ndim), normalize_axis(axis2, a.ndim)
    axes[i], axes[j] = j, i
    return transpose(a, axes)


@public(np.moveaxis, samples=lambda s: [call(s.real(2, 3, 4), 0, -1), call(s.real(2, 3, 4), (0, 1), (2, 0))])
def moveaxis(a, source, destination):
    """Move axes to other positions; the rest keep their order.

    >>> fad.numpy.moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    a = as_array(a)
    source, destination = normalize_axes(source, a.ndim), normalize_axes(destination, a.ndim)
    if source == destination and a.ndim:
        return a
    if len(source) != len(destination):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [i for i in range(a.ndim) if i not in source]
    for d, s in sorted(zip(destination, source, strict=True)):
        order.insert(d, s)
    return transpose(a, order)


# --- broadcast ---------------------------------------------------------------------------------------------------


def _broadcast_batch(size, batched, xs, params):
    x, shape = xs[0], params["shape"]
    missing = len(shape) - (x.ndim - 1)
    x = x.reshape((size,) + (1,) * missing + x.shape[1:])
    return bind(broadcast_p, x, shape=(size, *shape))


broadcast_p: Any = linear(
    "broadcast",
    lambda x, *, shape: np.broadcast_to(x, shape),
    lambda ct, x, *, shape: fit(ct, x.shape, ct.dtype),
    _broadcast_batch,
    samples=lambda s: [
        call(s.real(3, 1), shape=(2, 3, 4)),
        call(s.real(), shape=(2, 2)),
        call(s.real(4), shape=(0, 4)),
    ],
    moves=True,
    dependence="moved",
    cheap=True,
    doc="The array repeated to a larger shape.",
)


broadcast_p.view = ViewRule(lambda x, y, params: is_array(x), None)


@public(np.broadcast_to, samples=lambda s: [call(s.real(3, 1), (2, 3, 4)), call(s.real(), 3)])
def broadcast_to(array, shape, subok=False):
    """Repeat an array along new or unit axes, to a shape.

    >>> fad.grad(lambda x: fad.numpy.broadcast_to(x, (3, 2)).sum())(np.array([1.0, 2.0]))
    array([3., 3.])
    """
    array = as_array(array)
    shape = as_shape(shape)
    if not can_broadcast(array.shape, shape):
        raise ValueError(f"an array of shape {array.shape} cannot be broadcast to the shape {shape}")
    if array.shape != shape:
        return bind(broadcast_p, array, shape=shape)
    if type(array) is not Tracer:
        return array
    array = array if is_array(array) else as_one_array(snapshot(strong(array)))
    value = array.wrapped
    y = tracer(value if type(value) is Tracer else np.broadcast_to(value, value.shape), array.owner, array.info)
    y.memory = array, broadcast_p, {"shape": shape}, version_of(array)
    return y


# --- join --------------------------------------------------------------------------------------------------------


def _concatenate_cotangents(ct, y, *xs, axis):
    before, stop, parts = (slice(None),) * axis, 0, []
    for x in xs:
        start, stop = stop, stop + x.shape[axis]
        parts.append(ct[(*before, slice(start, stop))])
    return parts


def _concatenate_jvp(tangents, y, xs, params):
    filled = [np.zeros_like(x, dtype=y.dtype) if t is None else t for t, x in zip(tangents, xs, strict=True)]
    t = cast(bind(concatenate_p, *filled, **params), y.dtype)
    if all(t is not None for t in tangents):
        return t
    truths = [np.full_like(x, s is not None, dtype=bool) for s, x in zip(tangents, xs, strict=True)]
    return Masked(t, lambda: bind(concatenate_p, *truths, **params), clean=True)


def _concatenate_batch(size, batched, xs, params):
    full = [x if b else np.broadcast_to(x, (size, *np.shape(x))) for x, b in zip(xs, batched, strict=True)]
    return bind(concatenate_p, *full, axis=params["axis"] + 1)


concatenate_p: Any = register(
    Primitive(
        "join",
        lambda *xs, axis: np.concatenate(xs, axis),
        jvp=_concatenate_jvp,
        vjp_of_all=_concatenate_cotangents,
        batch=_concatenate_batch,
        saves="none",
        archetype="linear",
        samples=lambda s: [
            call(s.real(3, 4), s.real(2, 4), axis=0),
            call(s.real(3, 1), s.real(3, 2), s.real(3, 0), axis=1),
        ],
        moves=True,
        dependence="moved",
        fresh=True,
        doc="Arrays one after another along an axis.",
    )
)


def _together(xs: Any) -> list:
    """Return a list of arrays; lists and numbers among them become arrays where the others live."""
    xs = [as_array(x) if type(x) in (list, tuple) and has_tracer(x) else open_array_like(x) for x in xs]
    near = next((x for x in xs if hasattr(x, "shape") and not is_numpy_scalar(x)), None)
    return [as_array(x) if near is None else beside(near, x) for x in xs]


def _flatten(arrays: list, given: list) -> list:
    """Return arrays flattened; Python's numbers among what was given take the dtype of the others where they can."""
    weak = [type(x) in (int, float, complex) for x in given]
    if any(weak) and not all(weak):
        dtype = np.result_type(*[type(x)() if w else y.dtype for x, y, w in zip(given, arrays, weak, strict=True)])
        arrays = [y.astype(dtype) if w else y for y, w in zip(arrays, weak, strict=True)]
    return [x if x.ndim == 1 else ravel(x) for x in arrays]


@public(
    np.concatenate, np.concat,
    samples=lambda s: [
        call([s.real(3, 4), s.real(2, 4)]),
        call((s.real(3, 1), s.real(3, 2)), axis=-1),
        call([s.real(3, 2), s.real(4)], axis=None),
    ],
)  # fmt: skip
def concatenate(arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Join arrays along an existing axis; with ``axis=None``, flattened.

    >>> fad.grad(lambda x: fad.numpy.concatenate([x, x]).sum())(np.array([1.0, 2.0]))
    array([2., 2.])
    """
    refuse_out(out)
    given, arrays = [example(x) for x in arrays], _together(arrays)
    if axis is None:
        arrays, axis = _flatten(arrays, given), 0
    if not arrays:
        raise ValueError("need at least one array to concatenate")
    axis = normalize_axis(axis, arrays[0].ndim) if arrays[0].ndim else axis
    if any(x.ndim == 0 for x in arrays):
        raise ValueError("zero-dimensional arrays cannot be concatenated: use np.stack")
    y = bind(concatenate_p, *arrays, axis=axis)
    return y if dtype is None else y.astype(dtype)


@public(
    np.stack,
    samples=lambda s: [call([s.real(3), s.real(3)]), call([s.real(2, 3)] * 2, axis=-1), call([s.real(), 1.0])],
)
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Join arrays of one shape along a new axis.

    >>> fad.numpy.stack([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    array([[1., 2.],
           [3., 4.]])
    """
    refuse_out(out)
    arrays = _together(arrays)
    if not arrays:
        raise ValueError("need at least one array to stack")
    shapes = {x.shape for x in arrays}
    if len(shapes) > 1:
        raise ValueError(f"all input arrays must have the same shape, but they have {sorted(shapes)}")
    shape = arrays[0].shape
    axis = normalize_axis(axis, len(shape) + 1)
    y = None if shape else pack(arrays)
    if y is None:
        wide = (*shape[:axis], 1, *shape[axis:])
        joined = arrays if axis else join_elements(arrays) or arrays
        parts = [_widen(x, axis, wide) if x.shape == shape else x for x in joined]
        y = parts[0] if len(parts) == 1 < len(arrays) else bind(concatenate_p, *parts, axis=axis)
    return y if dtype is None else y.astype(dtype)


def _widen(x: Any, axis: int, shape: tuple) -> Any:
    """Insert a unit axis: outside programs by indexing, which is quicker than to reshape."""
    if type(x) is Tracer and is_of_numpy(x):
        return x[(*[slice(None)] * axis, None)]
    return bind(reshape_p, x, shape=shape)
