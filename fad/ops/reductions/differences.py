"""Differences and integrals of samples: diff, ediff1d, gradient, trapezoid."""

from __future__ import annotations

import numpy as np

from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind, stack_list
from fad.ops.arrangement.arranging import having
from fad.ops.arrangement.structural import as_array, beside, normalize_axes, normalize_axis
from fad.ops.layout.memory_order import lay_out_as_copy
from fad.ops.reductions.reduction import sum_p
from fad.ops.reductions.scans import cut


def _beside(extra, a, axis):
    """Return what is to be joined to an array along an axis: a number becomes one slice."""
    extra = beside(a, extra)
    if extra.ndim:
        return extra
    return np.broadcast_to(extra, tuple(1 if i == axis else d for i, d in enumerate(a.shape)))


@public(np.diff, samples=lambda s: [
    call(s.real(5)), call(s.real(3, 4), axis=0), call(s.real(3, 5), 2), call(s.real(3), prepend=0.5, append=s.real(2)),
    call(s.real(3, 4), 0), call(s.real(3), 0, prepend=0.5), call(s.bools(5))])  # fmt: skip
def diff(a, n=1, axis=-1, prepend=np._NoValue, append=np._NoValue):
    """Return the n-th differences along an axis.

    >>> fad.jacobian(fad.numpy.diff)(np.array([1.0, 4.0, 9.0]))
    array([[-1.,  1.,  0.],
           [ 0., -1.,  1.]])
    """
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    a = as_array(a)
    if n == 0:
        return a
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis(axis, a.ndim)
    parts = [] if prepend is np._NoValue else [_beside(prepend, a, axis)]
    parts.append(a)
    if append is not np._NoValue:
        parts.append(_beside(append, a, axis))
    a = np.concatenate(parts, axis=axis) if len(parts) > 1 else a
    for _ in range(n):
        high, low = cut(a, axis, 1), cut(a, axis, 0, -1)
        a = high != low if a.dtype.kind == "b" else high - low
    return a


@public(
    np.ediff1d,
    samples=lambda s: [call(s.real(5)), call(s.real(2, 3), to_end=s.real(2), to_begin=1.5)],
    raises="TypeError: A value put before or after is of a kind that the array cannot hold, as 1.5 beside integers.",
)
def ediff1d(ary, to_end=None, to_begin=None):
    """Return the differences of the flattened array, with values put before and after.

    >>> fad.numpy.ediff1d(np.array([1.0, 4.0, 9.0]))
    array([3., 5.])
    """
    ary = as_array(ary)
    ary = ary.reshape((ary.size,))
    parts = [ary[1:] - ary[:-1]]
    parts = parts if to_begin is None else [_end(ary, to_begin, "to_begin"), *parts]
    parts = parts if to_end is None else [*parts, _end(ary, to_end, "to_end")]
    return np.concatenate(parts).astype(ary.dtype, copy=False) if len(parts) > 1 else parts[0]  # in its byte order


def _end(ary, values, name):
    """Return what `ediff1d` puts before or after the differences, in their dtype, if that can hold it."""
    if not np.can_cast(as_array(values).dtype, ary.dtype, "same_kind"):
        raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
    return np.ravel(beside(ary, values)).astype(ary.dtype)


def _slopes(f, h, axis, edge_order):
    """Return the derivative of samples along one axis; `h` is a step, or the steps between the coordinates."""
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    at = lambda start, stop: cut(f, axis, start, stop)
    if np.ndim(h) == 0:
        inner = (at(2, None) - at(0, -2)) / (2.0 * h)
        first, last = _edges_even(at, h, edge_order)
    else:
        shape = tuple(-1 if i == axis else 1 for i in range(f.ndim))
        p, q = h[:-1].reshape(shape), h[1:].reshape(shape)
        inner = at(0, -2) * (-q / (p * (p + q))) + at(1, -1) * ((q - p) / (p * q)) + at(2, None) * (p / (q * (p + q)))
        first, last = _edges_uneven(at, h, edge_order)
    return np.concatenate([first, inner, last], axis=axis).astype(f.dtype)


def _edges_even(at, h, edge_order):
    if edge_order == 1:
        return (at(1, 2) - at(0, 1)) / h, (at(-1, None) - at(-2, -1)) / h
    first = (-1.5 * at(0, 1) + 2.0 * at(1, 2) - 0.5 * at(2, 3)) / h
    return first, (0.5 * at(-3, -2) - 2.0 * at(-2, -1) + 1.5 * at(-1, None)) / h


def _edges_uneven(at, h, edge_order):
    if edge_order == 1:
        return (at(1, 2) - at(0, 1)) / h[0], (at(-1, None) - at(-2, -1)) / h[-1]
    p, q = h[0], h[1]
    first = (
        at(0, 1) * (-(2.0 * p + q) / (p * (p + q))) + at(1, 2) * ((p + q) / (p * q)) - at(2, 3) * (p / (q * (p + q)))
    )
    p, q = h[-2], h[-1]
    last = (
        at(-3, -2) * (q / (p * (p + q)))
        - at(-2, -1) * ((q + p) / (p * q))
        + at(-1, None) * ((2.0 * q + p) / (q * (p + q)))
    )
    return first, last


def _steps(spacings, shape, axes):
    """Return one step, or array of steps, per axis."""
    if not spacings:
        return [1.0] * len(axes)
    spacings = [stack_list(h) for h in spacings]
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        return spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    steps = []
    for h, axis in zip(spacings, axes, strict=True):
        if np.ndim(h) > 1:
            raise ValueError("distances must be either scalars or 1d")
        if np.ndim(h) and len(h) != shape[axis]:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        steps.append(np.diff(h) if np.ndim(h) else h)
    return steps


@public(np.gradient, samples=lambda s: [
    call(s.real(5)), call(s.real(4, 5), 0.5, edge_order=2),
    call(s.real(4), np.array([0.0, 1.0, 1.5, 3.0]), edge_order=2),
    call(s.real(4, 3), axis=0), call(s.real(4, 3), 2.0, np.array([0.0, 1.0, 1.5]))])  # fmt: skip
def gradient(f, *varargs, axis=None, edge_order=1):
    """Return the derivative of samples by second-order differences, along each axis (a tuple if several).

    >>> fad.numpy.gradient(np.array([1.0, 4.0, 9.0]))
    array([3., 4., 5.])
    """
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    f = as_array(f)
    axes = normalize_axes(axis, f.ndim)
    f = f if f.dtype.kind in "fc" else f.astype(float)
    steps = _steps(varargs, f.shape, axes)
    found = [lay_out_as_copy(_slopes(f, h, k, edge_order), f) for h, k in zip(steps, axes, strict=True)]
    return found[0] if len(axes) == 1 else tuple(found)


@public(np.trapezoid, *having("trapz"), samples=lambda s: [
    call(s.real(5)), call(s.real(3, 4), dx=0.5, axis=0), call(s.real(3, 4), np.array([0.0, 1.0, 1.5, 3.0])),
    call(s.real(3, 4), s.real(3, 4))])  # fmt: skip
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integrate samples along an axis by the trapezoidal rule.

    >>> fad.grad(fad.numpy.trapezoid)(np.array([1.0, 2.0, 3.0]))
    array([0.5, 1. , 0.5])
    """
    y, given = as_array(y), axis  # a negative axis is counted in each array for itself
    axis = normalize_axis(axis, y.ndim)
    if x is not None:
        x = as_array(x)
        dx = (
            np.diff(x).reshape(tuple(-1 if i == axis else 1 for i in range(y.ndim)))
            if x.ndim == 1
            else np.diff(x, axis=given)
        )
    means = (cut(y, axis, 1) + cut(y, axis, 0, -1)) * (0.5 * dx)
    return bind(sum_p, means, axis=(normalize_axis(given, means.ndim),), keepdims=False)
