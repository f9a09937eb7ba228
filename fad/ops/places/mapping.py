"""Functions mapped over the axes or parts of an array, and the windows that slide along it."""

from __future__ import annotations

import functools

import numpy as np

from fad.core.handles.buffers import Taken
from fad.core.handles.makers import wrap_made
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array, as_shape, beside, normalize_axis
from fad.ops.places.functional_updates import At
from fad.ops.places.indexing import pick


@public(
    np.apply_along_axis,
    samples=lambda s: [
        call(lambda v: v[0] * v[1:], 0, s.real(3, 2)),
        call(lambda v: np.sum(v * v), 1, s.real(2, 3, 2)),
        call(lambda v: v[:, None] * v, -1, s.real(2, 3)),
    ],
    own=True,
)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """Call a function of vectors on each vector along an axis; ``fad.vmap`` does the same without the loop.

    >>> fad.numpy.apply_along_axis(lambda row: row / row.sum(), 1, np.ones((2, 4)))
    array([[0.25, 0.25, 0.25, 0.25],
           [0.25, 0.25, 0.25, 0.25]])
    """
    arr = as_array(arr)
    axis = normalize_axis(axis, arr.ndim)
    vectors = np.moveaxis(arr, axis, -1)
    if 0 in vectors.shape[:-1]:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [as_array(func1d(vectors[i], *args, **kwargs)) for i in np.ndindex(*vectors.shape[:-1])]
    y = np.stack(results).reshape(vectors.shape[:-1] + results[0].shape)
    rank = results[0].ndim
    lead = vectors.ndim - 1
    return np.moveaxis(y, tuple(range(lead, lead + rank)), tuple(range(axis, axis + rank)))


@public(
    np.apply_over_axes,
    samples=lambda s: [call(np.sum, s.real(2, 3, 4), (0, 2)), call(np.sum, s.real(2, 3), -1)],
    own=True,
)
def apply_over_axes(func, a, axes):
    """Call ``func(a, axis)`` for one axis after the other; an axis that is lost comes back with length 1.

    >>> fad.numpy.apply_over_axes(np.sum, np.ones((2, 3)), [0, 1])
    array([[6.]])
    """
    value = as_array(a)
    n = value.ndim
    for axis in np.atleast_1d(axes):
        axis = int(axis) + n if axis < 0 else int(axis)
        result = func(value, axis)
        if result.ndim != value.ndim:
            result = np.expand_dims(result, axis)
            if result.ndim != value.ndim:
                raise ValueError("function is not returning an array of the correct shape")
        value = result
    return value


_windows = np.lib.stride_tricks.sliding_window_view


@public(
    _windows,
    samples=lambda s: [
        call(s.real(6), 3),
        call(s.real(4, 5), (2, 3)),
        call(s.real(4, 5), 2, axis=-1),
        call(s.real(5), (2, 2), axis=(0, 0)),
    ],
)
def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    """Return every window of a shape in an array: the windows' own axes stand at the end."""
    x, window = as_array(x), as_shape(window_shape)
    if writeable and type(x) is Tracer:
        raise MissingRuleError("sliding_window_view of a traced array is read-only: write into the array itself")
    return _taken(x, window=window, axis=axis)


def _all_windows(x, window, axis):
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if len(axes) != len(window):
        raise ValueError(f"window_shape {window} must give one size for each of the axes {axes}")
    for i, size in zip(axes, window, strict=True):
        i = normalize_axis(i, x.ndim)
        n = x.shape[i] - size + 1
        if size < 0 or n < 1:
            raise ValueError("window shape cannot be larger than input array shape, nor negative")
        windows = x[(slice(None),) * i + (np.arange(n)[:, None] + np.arange(size),)]
        x = np.moveaxis(windows, i + 1, -1)
    return x


_taken = Taken(_all_windows, lambda x, window, axis: _windows(x, window, axis))


@public(
    np.piecewise,
    samples=lambda s: [
        call(s.real(3), [np.array([True, False, False]), np.array([False, True, True])], [lambda v: v * v, np.mean]),
        call(s.real(3), [[True, False, False], [False, True, False]], [lambda v: v * v, 2.0, lambda v: 3 * v]),
        call(s.real(2), [True, False], [lambda v, n: v**n, lambda v, n: n * v], 3),
        call(s.real(2, 2), np.array([[True, False], [False, False]]), [lambda v: v * v, lambda v: v - 1]),
        call(s.real(2, 2), np.array([True, False]), [lambda v: v * v]),
        call(s.real(), True, [lambda v: v * v]),
    ],
    own=True,
    raises="ValueError: There are more than one function more than conditions, or fewer functions.",
)
def piecewise(x, condlist, funclist, *args, **kw):
    """Evaluate a function defined by parts; a function for which no condition holds applies elsewhere.

    As in NumPy, a function is given only the elements that its condition holds for.

    >>> f = lambda x: fad.numpy.piecewise(x, [x < 0, x >= 0], [0.0, lambda v: v**2])
    >>> fad.grad(lambda x: f(x).sum())(np.array([-1.0, 3.0]))
    array([0., 6.])
    """
    x = as_array(x)
    conditions = _conditions(condlist, x.ndim)
    n = len(conditions)
    if len(funclist) == n + 1:
        conditions.append(~functools.reduce(np.logical_or, conditions))
    elif len(funclist) != n:
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    out = np.zeros_like(x)
    for condition, f in zip(conditions, funclist, strict=True):
        values = pick(x, condition)
        if values.size:
            part = beside(out, f(values, *args, **kw) if callable(f) else f)
            out = At(out)[condition].set(part.astype(out.dtype))  # as an assignment to NumPy's own result does
    return wrap_made(out.astype(x.dtype, copy=False))  # an array, even of a number


def _conditions(condlist, ndim):
    """Return the conditions of a `piecewise`; NumPy takes one that stands alone for a list of one."""
    several = isinstance(condlist, (list, tuple)) or np.ndim(condlist) > 0
    if not several or (ndim and type(condlist[0]) is not list and np.ndim(condlist[0]) == 0):
        condlist = [condlist]
    conditions = [as_array(c).astype(bool) for c in condlist]
    if len({c.shape for c in conditions}) > 1:
        raise ValueError(f"the conditions of piecewise have different shapes: {[c.shape for c in conditions]}")
    return conditions
