"""NumPy's many names for arranging elements, written in the few primitives of `structural`.

Joining, repeating, flipping and rolling; splitting, padding and diagonals have modules of their own. Only `roll` is a
primitive: a shift is its own transpose, backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import is_numpy_scalar
from fad.core.primitives.archetypes import linear
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind, outcome, strong
from fad.ops.arrangement.structural import (
    along,
    as_array,
    as_shape,
    beside,
    find_reduced_axes,
    normalize_axes,
    normalize_axis,
    reshape_p,
)
from fad.ops.layout.memory_order import lay_out


def having(*names: str) -> list:
    """Return those of NumPy's functions of these names that this version of NumPy has."""
    return [getattr(np, name) for name in names if name in np.__all__]


# --- ranks and axes ----------------------------------------------------------------------------------------------


@public(np.expand_dims, samples=lambda s: [call(s.real(3, 4), 1), call(s.real(3), (0, -1))])
def expand_dims(a, axis):
    """Insert unit axes.

    >>> fad.numpy.expand_dims(np.array([1.0, 2.0]), 0)
    array([[1., 2.]])
    """
    a = as_array(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    n = a.ndim + len(axes)
    axes = normalize_axes(tuple(axes), n)
    old = iter(a.shape)
    return bind(reshape_p, a, shape=tuple(1 if i in axes else next(old) for i in range(n)))


@public(np.squeeze, methods=("squeeze",), samples=lambda s: [call(s.real(1, 3, 1)), call(s.real(1, 3, 1), -1)])
def squeeze(a, axis=None):
    """Remove unit axes.

    >>> fad.numpy.squeeze(np.ones((1, 3, 1))).shape
    (3,)
    """
    a = as_array(a)
    if axis is None:
        axes = tuple(i for i, d in enumerate(a.shape) if d == 1)
    else:
        axes = find_reduced_axes(axis, a.ndim)
        if any(a.shape[i] != 1 for i in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return bind(reshape_p, a, shape=tuple(d for i, d in enumerate(a.shape) if i not in axes))


@public(
    np.rollaxis, samples=lambda s: [call(s.real(2, 3, 4), 2), call(s.real(2, 3, 4), 0, 3), call(s.real(2, 3, 4), -1, 1)]
)
def rollaxis(a, axis, start=0):
    """Move an axis backwards until it stands before `start`.

    >>> fad.numpy.rollaxis(np.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    a = as_array(a)
    n = a.ndim
    axis = normalize_axis(axis, n)
    if not -n <= start <= n:
        raise np.exceptions.AxisError(f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in")
    start = start + n if start < 0 else start
    return np.moveaxis(a, axis, start - (axis < start))


def _of_each(f):
    """Return a function of many arrays that gives one result for one array, else a tuple."""

    def of_each(*arys):
        found = tuple(f(as_array(x)) for x in arys)
        return found[0] if len(found) == 1 else found

    of_each.__name__, of_each.__doc__ = f.__name__, f.__doc__
    return of_each


def _rank_samples(s):
    return [call(s.real()), call(s.real(3)), call(s.real(2, 3), s.real(2)), call(s.real(2, 3, 4))]


@public(np.atleast_1d, samples=_rank_samples)
@_of_each
def atleast_1d(x):
    """View arrays with at least one axis; one array gives one result, several a tuple.

    >>> fad.numpy.atleast_1d(1.0)
    array([1.])
    """
    return x if x.ndim else x.reshape(1)


@public(np.atleast_2d, samples=_rank_samples)
@_of_each
def atleast_2d(x):
    """View arrays with at least two axes, new ones in front; one array gives one result, several a tuple.

    >>> fad.numpy.atleast_2d(np.array([1.0, 2.0]))
    array([[1., 2.]])
    """
    return x if x.ndim > 1 else x.reshape((1, x.size))


@public(np.atleast_3d, samples=_rank_samples)
@_of_each
def atleast_3d(x):
    """View arrays with at least three axes: (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1).

    >>> fad.numpy.atleast_3d(1.0)
    array([[[1.]]])
    """
    if x.ndim > 2:
        return x
    return x.reshape((*x.shape, 1)) if x.ndim == 2 else x.reshape((1, x.size, 1))


@public(
    np.broadcast_arrays,
    samples=lambda s: [call(s.real(3, 1), s.real(4)), call(s.real(2, 3), s.real(), s.real(3))],
    raises="ValueError: The operands cannot be broadcast against each other.",
)
def broadcast_arrays(*args, subok=False):
    """Broadcast arrays against each other, to one shape; returns a tuple.

    >>> fad.numpy.broadcast_arrays(np.array([1.0, 2.0]), 3.0)
    (array([1., 2.]), array([3., 3.]))
    """
    arrays = [as_array(x) for x in args]
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    return tuple(x if x.shape == shape else np.broadcast_to(x, shape) for x in arrays)


@public(
    np.meshgrid,
    samples=lambda s: [
        call(s.real(3), s.real(4)),
        call(s.real(2), s.real(3), s.real(4), indexing="ij"),
        call(s.real(2), s.real(3), sparse=True),
    ],
    raises='ValueError: `indexing` is neither "xy" nor "ij".',
)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Return the coordinate arrays of a grid, from a vector per axis.

    >>> fad.numpy.meshgrid(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    (array([[1., 2.],
           [1., 2.]]), array([[3., 3.],
           [4., 4.]]))
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    n = len(xi)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else range(n)
    grids = [as_array(x).reshape(tuple(-1 if d == order[i] else 1 for d in range(n))) for i, x in enumerate(xi)]
    grids = grids if sparse else broadcast_arrays(*grids)
    return tuple([x.copy() for x in grids] if copy else grids)


# --- join --------------------------------------------------------------------------------------------------------


def _two(s):
    return [call([s.real(3), s.real(3)]), call([s.real(2, 3), s.real(2, 3)]), call((s.real(2, 3, 2), s.real(2, 3, 2)))]


def _sequence(tup: Any, f: Any) -> list:
    if not isinstance(tup, (list, tuple)) and not hasattr(tup, "dtype"):
        raise TypeError("arrays to stack must be passed as a sequence type such as list or tuple")
    return [f(as_array(x)) for x in tup]


@public(np.hstack, samples=_two)
def hstack(tup, *, dtype=None, casting="same_kind"):
    """Join arrays along the second axis; vectors along their only one.

    >>> fad.numpy.hstack((np.array([1.0, 2.0]), np.array([3.0])))
    array([1., 2., 3.])
    """
    arrays = _sequence(tup, np.atleast_1d)
    return np.concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@public(np.vstack, *having("row_stack"), samples=_two)
def vstack(tup, *, dtype=None, casting="same_kind"):
    """Join arrays along the first axis; vectors become rows.

    >>> fad.numpy.vstack((np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    array([[1., 2.],
           [3., 4.]])
    """
    return np.concatenate(_sequence(tup, np.atleast_2d), 0, dtype=dtype, casting=casting)


@public(
    np.dstack,
    samples=_two,
    raises="ValueError: The arrays have other lengths along an axis that they are not joined along.",
)
def dstack(tup):
    """Join arrays along the third axis.

    >>> fad.numpy.dstack((np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    array([[[1., 3.],
            [2., 4.]]])
    """
    return np.concatenate(_sequence(tup, np.atleast_3d), 2)


@public(
    np.column_stack,
    samples=lambda s: [call([s.real(3), s.real(3)]), call([s.real(3), s.real(3, 2)])],
    raises="ValueError: The arrays have other lengths along an axis that they are not joined along.",
)
def column_stack(tup):
    """Join vectors as columns, and matrices beside them.

    >>> fad.numpy.column_stack((np.array([1.0, 2.0]), np.array([3.0, 4.0])))
    array([[1., 3.],
           [2., 4.]])
    """
    arrays = _sequence(tup, as_array)
    return np.concatenate([x if x.ndim > 1 else x.reshape((x.size, 1)) for x in arrays], 1)


@public(
    np.block,
    samples=lambda s: [
        call([[s.real(2, 2), s.real(2, 3)], [s.real(1, 2), s.real(1, 3)]]),
        call([s.real(3), 1.0, s.real(2)]),
        call(s.real(2, 2)),
    ],
)
def block(arrays):
    """Assemble an array from nested lists of blocks: the innermost along the last axis, the next before it.

    >>> fad.numpy.block([[np.eye(2), np.ones((2, 1))]])
    array([[1., 0., 1.],
           [0., 1., 1.]])
    """
    depth = _depth(arrays)
    rank = max(depth, *(as_array(x).ndim for x in _blocks(arrays)), 0)
    near = next((x for x in _blocks(arrays) if hasattr(x, "shape") and not is_numpy_scalar(x)), None)
    return _assemble(arrays if depth else lay_out(np.copy(arrays), "C"), depth, rank, near)


def _depth(arrays):
    if type(arrays) is tuple:
        raise TypeError("np.block takes lists of blocks, not tuples")
    if type(arrays) is not list:
        return 0
    if not arrays:
        raise ValueError("List depths are mismatched or a list of np.block is empty")
    depths = {_depth(x) for x in arrays}
    if len(depths) > 1:
        raise ValueError(f"List depths are mismatched: lists of blocks have depths {sorted(depths)}")
    return 1 + depths.pop()


def _blocks(arrays):
    return [x for part in arrays for x in _blocks(part)] if type(arrays) is list else [arrays]


def _assemble(arrays, depth, rank, near):
    if type(arrays) is not list:
        x = as_array(arrays) if near is None else beside(near, arrays)
        return x.reshape((1,) * (rank - x.ndim) + x.shape)
    return np.concatenate([_assemble(x, depth - 1, rank, near) for x in arrays], axis=-depth)


@public(
    np.append,
    samples=lambda s: [call(s.real(2, 3), s.real(4)), call(s.real(2, 3), s.real(2, 1), axis=1), call(s.real(3), 1.0)],
)
def append(arr, values, axis=None):
    """Join `values` to the end of an array; with no axis, both flattened.

    >>> fad.grad(lambda x: fad.numpy.append(x, x[:1]).sum())(np.array([1.0, 2.0]))
    array([2., 1.])
    """
    arr = strong(as_array(arr))
    return np.concatenate((arr, beside(arr, values).reshape(-1) if axis is None else values), axis=axis)


# --- repeat ------------------------------------------------------------------------------------------------------


@public(
    np.tile,
    samples=lambda s: [
        call(s.real(2, 3), 2),
        call(s.real(3), (2, 2)),
        call(s.real(2, 3), (2, 1, 2)),
        call(s.real(), 3),
    ],
    raises="ValueError: A number of repetitions is negative.",
)
def tile(A, reps):
    """Repeat a whole array along its axes, `reps` times each.

    >>> fad.numpy.tile(np.array([1.0, 2.0]), 2)
    array([1., 2., 1., 2.])
    >>> fad.grad(lambda x: fad.numpy.tile(x, 2).sum())(np.array([1.0, 2.0]))
    array([2., 2.])
    """
    A = as_array(A)
    reps = as_shape(reps)
    rank = max(A.ndim, len(reps))
    shape = (1,) * (rank - A.ndim) + A.shape
    reps = (1,) * (rank - len(reps)) + reps
    wide = np.broadcast_to(
        A.reshape([n for d in shape for n in (1, d)]),
        tuple(n for r, d in zip(reps, shape, strict=True) for n in (r, d)),
    )
    return wide.reshape([r * d for r, d in zip(reps, shape, strict=True)]).copy()


@public(
    np.repeat,
    methods=("repeat",),
    samples=lambda s: [
        call(s.real(2, 3), 2),
        call(s.real(2, 3), 2, axis=1),
        call(s.real(2, 3), [1, 0, 2], axis=-1),
        call(s.real(), 3),
        call(s.real(3), np.array([2])),
    ],
)
def repeat(a, repeats, axis=None):
    """Repeat each element along an axis: a number of times, or as often as `repeats` says for each.

    >>> fad.grad(lambda x: fad.numpy.repeat(x, 3).sum())(np.array([1.0, 2.0]))
    array([3., 3.])
    """
    a, axis = along(a, axis)
    repeats = outcome(as_array(repeats))
    n = a.shape[axis]
    if repeats.size == 1:
        times = int(repeats.reshape(()))
        if times < 0:
            raise ValueError("repeats may not contain negative values.")
        wide = a.reshape((*a.shape[: axis + 1], 1, *a.shape[axis + 1 :]))
        wide = np.broadcast_to(wide, (*a.shape[: axis + 1], times, *a.shape[axis + 1 :]))
        return wide.reshape((*a.shape[:axis], n * times, *a.shape[axis + 1 :])).copy()
    return lay_out(a[(slice(None),) * axis + (np.repeat(np.arange(n), repeats),)], "C")


@public(
    np.resize,
    samples=lambda s: [call(s.real(2, 3), (4, 2)), call(s.real(4), 3), call(s.real(0), (2,))],
    raises="ValueError: A length is negative.",
)
def resize(a, new_shape):
    """Return an array of a new shape, filled with repeated copies of the elements in order.

    >>> fad.numpy.resize(np.array([1.0, 2.0, 3.0]), (2, 2))
    array([[1., 2.],
           [3., 1.]])
    """
    a = as_array(a)
    new_shape = as_shape(new_shape)
    if any(d < 0 for d in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    n = int(np.prod(new_shape))
    if a.size == 0 or n == 0:
        return np.zeros_like(a, shape=new_shape)
    y = np.ravel(a)[np.arange(n) % a.size].reshape(new_shape)
    return y.astype(a.dtype.newbyteorder("="), copy=False)  # NumPy concatenates


# --- flip and roll -----------------------------------------------------------------------------------------------


@public(np.flip, samples=lambda s: [call(s.real(2, 3)), call(s.real(2, 3), 1), call(s.real(2, 3, 4), (0, -1))])
def flip(m, axis=None):
    """Reverse the order of elements along axes, all of them if none is named.

    >>> fad.numpy.flip(np.array([1.0, 2.0, 3.0]))
    array([3., 2., 1.])
    """
    m = strong(as_array(m))
    axes = normalize_axes(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(m.ndim))]


@public(
    np.fliplr,
    samples=lambda s: [call(s.real(2, 3)), call(s.real(2, 3, 2))],
    raises="ValueError: The array has fewer than two axes.",
)
def fliplr(m):
    """Reverse the second axis.

    >>> fad.numpy.fliplr(np.eye(2))
    array([[0., 1.],
           [1., 0.]])
    """
    m = as_array(m)
    if m.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return m[:, ::-1]


@public(np.flipud, samples=lambda s: [call(s.real(3)), call(s.real(2, 3))], raises="ValueError: The array is a number.")
def flipud(m):
    """Reverse the first axis.

    >>> fad.numpy.flipud(np.eye(2))
    array([[0., 1.],
           [1., 0.]])
    """
    m = as_array(m)
    if m.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return m[::-1]


@public(
    np.rot90,
    samples=lambda s: [call(s.real(2, 3), k) for k in (1, 2, 3, 4)] + [call(s.real(2, 3, 4), -1, axes=(2, 1))],
)
def rot90(m, k=1, axes=(0, 1)):
    """Turn an array by k quarter turns in the plane of two axes, from the first towards the second.

    >>> fad.numpy.rot90(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[2., 4.],
           [1., 3.]])
    """
    m = as_array(m)
    if len(tuple(axes)) != 2:
        raise ValueError("len(axes) must be 2.")
    try:
        i, j = normalize_axes(tuple(axes), m.ndim)
    except np.exceptions.AxisError:
        raise ValueError(f"Axes={axes} out of range for array of ndim={m.ndim}.") from None
    k %= 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, (i, j))
    return np.swapaxes(flip(m, j), i, j) if k == 1 else flip(np.swapaxes(m, i, j), j)


roll_p: Any = linear(
    "roll_round",
    lambda x, *, shift, axis: np.roll(x, shift, axis),
    lambda ct, x, *, shift, axis: bind(roll_p, ct, shift=tuple(-n for n in shift), axis=axis),
    lambda size, batched, xs, params: bind(
        roll_p, *xs, shift=params["shift"], axis=tuple(a + 1 for a in params["axis"])
    ),
    samples=lambda s: [call(s.real(3, 4), shift=(1, -2), axis=(0, 1))],
    moves=True,
    doc="The array with its elements moved round along axes.",
)


@public(
    np.roll,
    samples=lambda s: [
        call(s.real(2, 3), 2),
        call(s.real(2, 3), -1, axis=1),
        call(s.real(2, 3, 4), (1, 2), axis=(0, 2)),
        call(s.real(2, 3), 1, axis=(0, 1)),
        call(s.real(4), (1, 2), axis=0),
    ],
)
def roll(a, shift, axis=None):
    """Shift elements along axes; what leaves at one end comes in at the other.

    >>> fad.numpy.roll(np.array([1.0, 2.0, 3.0]), 1)
    array([3., 1., 2.])
    """
    a = as_array(a)
    if axis is None and a.ndim == 1:
        axis = 0
    if type(shift) is int and type(axis) is int:
        return bind(roll_p, a, shift=(shift,), axis=(normalize_axis(axis, a.ndim),))
    shift = outcome(as_array(shift))
    if axis is None:
        return roll(np.ravel(a), sum(map(int, np.ravel(shift))), 0).reshape(a.shape)
    axes = tuple(normalize_axis(i, a.ndim) for i in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if shift.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    pairs = np.broadcast(shift, axes)
    shift, axes = zip(*[(int(n), int(i)) for n, i in pairs], strict=True) if pairs.size else ((), ())
    return bind(roll_p, a, shift=shift, axis=axes)
