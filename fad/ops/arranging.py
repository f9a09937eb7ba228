"""NumPy's many names for arranging elements, written in the few primitives of the structural room.

Joining and splitting, repeating, flipping and rolling, inserting and deleting. Padding and diagonals have rooms of
their own. Only `roll` is a primitive: a shift is its own transpose, backwards.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fad.backends import is_numpy_scalar
from fad.core.archetypes import linear
from fad.core.primitive import public
from fad.core.samples import call
from fad.core.tracer import bind, outcome, strong
from fad.ops.structural import along, as_array, as_shape, beside, normalize_axes, normalize_axis


def having(*names: str) -> list:
    """Return those of NumPy's functions of these names that this version of NumPy has."""
    return [getattr(np, name) for name in names if name in np.__all__]


# --- ranks and axes ----------------------------------------------------------------------------------------------


@public(
    np.rollaxis, samples=lambda s: [call(s.real(2, 3, 4), 2), call(s.real(2, 3, 4), 0, 3), call(s.real(2, 3, 4), -1, 1)]
)
def rollaxis(a, axis, start=0):
    """Move an axis backwards until it stands before `start`."""
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
    """View arrays with at least one axis; one array gives one result, several a tuple."""
    return x if x.ndim else x.reshape(1)


@public(np.atleast_2d, samples=_rank_samples)
@_of_each
def atleast_2d(x):
    """View arrays with at least two axes, new ones in front; one array gives one result, several a tuple."""
    return x if x.ndim > 1 else x.reshape((1, x.size))


@public(np.atleast_3d, samples=_rank_samples)
@_of_each
def atleast_3d(x):
    """View arrays with at least three axes: (n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1)."""
    if x.ndim > 2:
        return x
    return x.reshape((*x.shape, 1)) if x.ndim == 2 else x.reshape((1, x.size, 1))


@public(
    np.broadcast_arrays,
    samples=lambda s: [call(s.real(3, 1), s.real(4)), call(s.real(2, 3), s.real(), s.real(3))],
)
def broadcast_arrays(*args, subok=False):
    """Broadcast arrays against each other, to one shape; returns a tuple."""
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
)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Return the coordinate arrays of a grid, from a vector per axis."""
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
    """Join arrays along the second axis; vectors along their only one."""
    arrays = _sequence(tup, np.atleast_1d)
    return np.concatenate(arrays, 0 if arrays and arrays[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@public(np.vstack, *having("row_stack"), samples=_two)
def vstack(tup, *, dtype=None, casting="same_kind"):
    """Join arrays along the first axis; vectors become rows."""
    return np.concatenate(_sequence(tup, np.atleast_2d), 0, dtype=dtype, casting=casting)


@public(np.dstack, samples=_two)
def dstack(tup):
    """Join arrays along the third axis."""
    return np.concatenate(_sequence(tup, np.atleast_3d), 2)


@public(np.column_stack, samples=lambda s: [call([s.real(3), s.real(3)]), call([s.real(3), s.real(3, 2)])])
def column_stack(tup):
    """Join vectors as columns, and matrices beside them."""
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
    """Assemble an array from nested lists of blocks: the innermost along the last axis, the next before it."""
    depth = _depth(arrays)
    rank = max(depth, *(as_array(x).ndim for x in _blocks(arrays)), 0)
    near = next((x for x in _blocks(arrays) if hasattr(x, "shape") and not is_numpy_scalar(x)), None)
    return _assemble(arrays if depth else np.copy(arrays), depth, rank, near)


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
    """Join `values` to the end of an array; with no axis, both flattened."""
    return np.concatenate((as_array(arr), np.ravel(beside(arr, values)) if axis is None else values), axis=axis)


# --- split -------------------------------------------------------------------------------------------------------


@public(
    np.array_split,
    samples=lambda s: [call(s.real(7), 3), call(s.real(2, 5), [1, 3], axis=1), call(s.real(3, 2), 4)],
)
def array_split(ary, indices_or_sections, axis=0):
    """Split an array into a number of parts, nearly equal, or at given places; returns a list of arrays."""
    ary = as_array(ary)
    axis = normalize_axis(axis, ary.ndim)
    n = ary.shape[axis]
    if hasattr(indices_or_sections, "__len__"):
        places = [0, *(int(i) for i in indices_or_sections), n]
    else:
        parts = int(indices_or_sections)
        if parts <= 0:
            raise ValueError("number sections must be larger than 0.")
        small, extra = divmod(n, parts)
        places = [i * small + min(i, extra) for i in range(parts + 1)]
    front = (slice(None),) * axis
    return [ary[(*front, slice(i, j))] for i, j in itertools.pairwise(places)]


@public(np.split, samples=lambda s: [call(s.real(6), 3), call(s.real(2, 6), (2, 3), -1)])
def split(ary, indices_or_sections, axis=0):
    """Split an array into a number of equal parts, or at given places; returns a list of arrays."""
    ary = as_array(ary)
    if not hasattr(indices_or_sections, "__len__") and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division: np.array_split allows unequal parts")
    return array_split(ary, indices_or_sections, axis)


def _split_at(name, rank, axis):
    def split_at(ary, indices_or_sections):
        ary = as_array(ary)
        if ary.ndim < rank:
            raise ValueError(f"{name} only works on arrays of {rank} or more dimensions")
        return split(ary, indices_or_sections, axis(ary.ndim))

    split_at.__name__ = name
    split_at.__doc__ = "Split an array along one axis into equal parts, or at given places; returns a list of arrays."
    shapes = [(4, 4, 4), (2, 4)][: 1 if rank == 3 else 2]
    return public(getattr(np, name), samples=lambda s: [call(s.real(*shape), p) for shape in shapes for p in (2, [1])])(
        split_at
    )


hsplit = _split_at("hsplit", 1, lambda n: 1 if n > 1 else 0)
vsplit = _split_at("vsplit", 2, lambda n: 0)
dsplit = _split_at("dsplit", 3, lambda n: 2)


@public(*having("unstack"), samples=lambda s: [call(s.real(3, 2)), call(s.real(2, 3), axis=1)])
def unstack(x, /, *, axis=0):
    """Split an array into its slices along an axis; returns a tuple."""
    x = as_array(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(np.moveaxis(x, axis, 0))


# --- repeat ------------------------------------------------------------------------------------------------------


@public(
    np.tile,
    samples=lambda s: [
        call(s.real(2, 3), 2),
        call(s.real(3), (2, 2)),
        call(s.real(2, 3), (2, 1, 2)),
        call(s.real(), 3),
    ],
)
def tile(A, reps):
    """Repeat a whole array along its axes, `reps` times each."""
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
    """Repeat each element along an axis: a number of times, or as often as `repeats` says for each."""
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
    return a[(slice(None),) * axis + (np.repeat(np.arange(n), repeats),)]


@public(np.resize, samples=lambda s: [call(s.real(2, 3), (4, 2)), call(s.real(4), 3), call(s.real(0), (2,))])
def resize(a, new_shape):
    """Return an array of a new shape, filled with repeated copies of the elements in order."""
    a = as_array(a)
    new_shape = as_shape(new_shape)
    if any(d < 0 for d in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    n = int(np.prod(new_shape))
    if a.size == 0 or n == 0:
        return np.zeros_like(a, shape=new_shape)
    return np.ravel(a)[np.arange(n) % a.size].reshape(new_shape)


# --- flip and roll -----------------------------------------------------------------------------------------------


@public(np.flip, samples=lambda s: [call(s.real(2, 3)), call(s.real(2, 3), 1), call(s.real(2, 3, 4), (0, -1))])
def flip(m, axis=None):
    """Reverse the order of elements along axes, all of them if none is named."""
    m = strong(as_array(m))
    axes = normalize_axes(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(m.ndim))]


@public(np.fliplr, samples=lambda s: [call(s.real(2, 3)), call(s.real(2, 3, 2))])
def fliplr(m):
    """Reverse the second axis."""
    m = as_array(m)
    if m.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return m[:, ::-1]


@public(np.flipud, samples=lambda s: [call(s.real(3)), call(s.real(2, 3))])
def flipud(m):
    """Reverse the first axis."""
    m = as_array(m)
    if m.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return m[::-1]


@public(
    np.rot90,
    samples=lambda s: [call(s.real(2, 3), k) for k in (1, 2, 3, 4)] + [call(s.real(2, 3, 4), -1, axes=(2, 1))],
)
def rot90(m, k=1, axes=(0, 1)):
    """Turn an array by k quarter turns in the plane of two axes, from the first towards the second."""
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


roll_p = linear(
    "roll_round",
    lambda x, *, shift, axis: np.roll(x, shift, axis),
    lambda ct, x, *, shift, axis: bind(roll_p, ct, shift=tuple(-n for n in shift), axis=axis),
    lambda size, batched, xs, params: bind(
        roll_p, *xs, shift=params["shift"], axis=tuple(a + 1 for a in params["axis"])
    ),
    samples=lambda s: [call(s.real(3, 4), shift=(1, -2), axis=(0, 1))],
    moves=True,
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
    """Shift elements along axes; what leaves at one end comes in at the other."""
    a = as_array(a)
    shift = outcome(as_array(shift))
    if axis is None:
        return roll(np.ravel(a), int(shift.sum()), 0).reshape(a.shape)
    axes = tuple(normalize_axis(i, a.ndim) for i in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if shift.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    pairs = np.broadcast(shift, axes)
    shift, axes = zip(*[(int(n), int(i)) for n, i in pairs], strict=True) if pairs.size else ((), ())
    return bind(roll_p, a, shift=shift, axis=axes)


# --- insert and delete -------------------------------------------------------------------------------------------


def _along(arr, axis):
    """Return an array and a non-negative axis; with no axis, the flattened array."""
    arr = as_array(arr)
    return (np.ravel(arr), 0) if axis is None else (arr, normalize_axis(axis, arr.ndim))


def _places(obj: Any, n: int, word: str) -> Any:
    """Return the non-negative places along an axis of length n that an `obj` of insert or delete names."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(n))
    places = outcome(as_array(obj))
    if places.dtype.kind == "b":
        if places.ndim != 1 or (word == "delete" and places.size != n):
            raise ValueError(f"a mask to {word} must have the shape {(n,)}, but it has {places.shape}")
        return np.flatnonzero(places)
    places = places.astype(np.intp)
    limit = n if word == "insert" else n - 1
    if places.size and (places.min() < -n or places.max() > limit):
        raise IndexError(f"{word} at {places.tolist()} is out of bounds for an axis of size {n}")
    return np.where(places < 0, places + n, places)


@public(
    np.delete,
    samples=lambda s: [
        call(s.real(5), 1),
        call(s.real(2, 3), [0, -1], axis=1),
        call(s.real(4, 2), slice(None, None, 2), axis=0),
        call(s.real(2, 3), 2),
    ],
)
def delete(arr, obj, axis=None):
    """Return an array without the slices that `obj` names: an integer, several, a mask or a slice."""
    arr, axis = _along(arr, axis)
    n = arr.shape[axis]
    left = np.delete(np.arange(n), _places(obj, n, "delete"))
    return arr[(slice(None),) * axis + (left,)]


@public(
    np.insert,
    samples=lambda s: [
        call(s.real(5), 1, 0.5),
        call(s.real(2, 3), 1, s.real(3), axis=0),
        call(s.real(2, 3), [0, 2], s.real(2, 2), axis=1),
        call(s.real(4), [3, 1, 1], s.real(3)),
        call(s.real(4), [1], s.real(3)),
        call(s.real(2, 2), slice(0, 2), s.real(), axis=1),
    ],
)
def insert(arr, obj, values, axis=None):
    """Return an array with values inserted before the places that `obj` names."""
    arr, axis = _along(arr, axis)
    n = arr.shape[axis]
    places = _places(obj, n, "insert")
    values = beside(arr, values)
    values = values if values.dtype == arr.dtype else values.astype(arr.dtype)
    if places.size == 1:  # one place: the values are whole slices, as many as there are along the axis
        values = values.reshape((1,) * (arr.ndim - values.ndim) + values.shape) if values.ndim < arr.ndim else values
        values = values if places.ndim else np.moveaxis(values, 0, axis)
        places = np.repeat(places, values.shape[axis])
    rest = (*arr.shape[:axis], places.size, *arr.shape[axis + 1 :])
    joined = np.concatenate((arr, np.broadcast_to(values, rest)), axis)
    order = np.argsort(np.concatenate((np.arange(n) + 0.5, places)), kind="stable")
    return joined[(slice(None),) * axis + (order,)]


@public(np.trim_zeros, samples=lambda s: [call(s.real(4)), call(s.real(3), "f")])
def trim_zeros(filt, trim="fb", axis=None):
    """Return an array without the slices of zeros at its fronts ("f"), its backs ("b") or both."""
    filt, trim = as_array(filt), trim.lower()
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = normalize_axes(axis, filt.ndim)
    if not axes:
        return filt
    places = np.argwhere(outcome(filt != 0))
    kept = [slice(None)] * filt.ndim
    for a in axes:
        if not len(places):
            kept[a] = slice(0, 0)
            continue
        first, last = int(places[:, a].min()), int(places[:, a].max()) + 1
        kept[a] = slice(first if "f" in trim else None, last if "b" in trim else None)
    return filt[tuple(kept)]
