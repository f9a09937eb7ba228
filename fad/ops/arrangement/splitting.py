"""Parts of arrays: NumPy's functions that split along an axis, insert into it and delete from it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import outcome
from fad.ops.arrangement.arranging import having
from fad.ops.arrangement.structural import as_array, beside, flatten, normalize_axes, normalize_axis
from fad.ops.layout.memory_order import lay_out_like

# --- split -------------------------------------------------------------------------------------------------------


@public(
    np.array_split,
    samples=lambda s: [call(s.real(7), 3), call(s.real(2, 5), [1, 3], axis=1), call(s.real(3, 2), 4)],
)
def array_split(ary, indices_or_sections, axis=0):
    """Split an array into a number of parts, nearly equal, or at given places; returns a list of arrays.

    Parameters
    ----------
    ary : array
        What is split.
    indices_or_sections : int or sequence of int
        How many parts of about equal size, or the places where they begin.
    axis : int
        Along which.

    Returns
    -------
    list of arrays

    Examples
    --------
    >>> fad.numpy.array_split(np.arange(5.0), 2)
    [array([0., 1., 2.]), array([3., 4.])]
    """
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
    """Split an array into a number of equal parts, or at given places; returns a list of arrays.

    >>> fad.numpy.split(np.array([1.0, 2.0, 3.0, 4.0]), 2)
    [array([1., 2.]), array([3., 4.])]
    """
    ary = as_array(ary)
    if not hasattr(indices_or_sections, "__len__") and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division: np.array_split allows unequal parts")
    return array_split(ary, indices_or_sections, axis)


def _split_at(name, rank, axis, words, shape):
    def split_at(ary, indices_or_sections):
        ary = as_array(ary)
        if ary.ndim < rank:
            raise ValueError(f"{name} only works on arrays of {rank} or more dimensions")
        return split(ary, indices_or_sections, axis(ary.ndim))

    doc = f"""Split an array along {words} into equal parts, or at given places; returns a list of arrays.

    Parameters
    ----------
    ary : array
        Of at least {rank} axes.
    indices_or_sections : int or sequence of int
        How many parts, or the places where they begin.

    Returns
    -------
    list of arrays

    Examples
    --------
    >>> fad.numpy.{name}(np.arange(4.0).reshape({shape}), 2)[0]
    {np.split(np.arange(4.0).reshape(shape), 2, axis(len(shape)))[0]!r}
    """
    shapes = [(4, 4, 4), (2, 4)][: 1 if rank == 3 else 2]
    raises = f"ValueError: The array has fewer axes than {rank}, or the parts do not divide the axis."
    return public(
        getattr(np, name), name=name, doc=doc,
        samples=lambda s: [call(s.real(*shape), p) for shape in shapes for p in (2, [1])],
        raises=raises,
    )(split_at)  # fmt: skip


hsplit = _split_at("hsplit", 1, lambda n: 1 if n > 1 else 0, "the second axis", (4,))
vsplit = _split_at("vsplit", 2, lambda n: 0, "the first axis", (2, 2))
dsplit = _split_at("dsplit", 3, lambda n: 2, "the third axis", (1, 2, 2))


@public(*having("unstack"), samples=lambda s: [call(s.real(3, 2)), call(s.real(2, 3), axis=1)])
def unstack(x, /, *, axis=0):
    """Split an array into its slices along an axis; returns a tuple.

    >>> fad.numpy.unstack(np.eye(2))
    (array([1., 0.]), array([0., 1.]))
    """
    x = as_array(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(np.moveaxis(x, axis, 0))


# --- insert and delete -------------------------------------------------------------------------------------------


def _along(arr, axis):
    """Return an array and a non-negative axis; with no axis, the flattened array."""
    arr = as_array(arr)
    return (flatten(arr), 0) if axis is None else (arr, normalize_axis(axis, arr.ndim))


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
    """Return an array without the slices that `obj` names: an integer, several, a mask or a slice.

    >>> fad.grad(lambda x: fad.numpy.delete(x, 1).sum())(np.array([1.0, 2.0, 3.0]))
    array([1., 0., 1.])
    """
    arr, axis = _along(arr, axis)
    n = arr.shape[axis]
    left = np.delete(np.arange(n), _places(obj, n, "delete"))
    rest = arr[(slice(None),) * axis + (left,)]
    one = np.ndim(obj) == 0 or (np.size(obj) == 1 and as_array(obj).dtype.kind in "iu")  # or a slice
    return lay_out_like(rest, arr) if one else rest  # of several, NumPy takes the rest by an index, too


def _put_between(arr: Any, place: int, values: Any, axis: int) -> Any:
    """Return an array with slices along an axis put before a place."""
    before, after = ((slice(None),) * axis + (part,) for part in (slice(place), slice(place, None)))
    values = np.broadcast_to(values, (*arr.shape[:axis], values.shape[axis], *arr.shape[axis + 1 :]))
    return np.concatenate((arr[before], values, arr[after]), axis).astype(arr.dtype, copy=False)


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
    """Return an array with values inserted before the places that `obj` names.

    >>> fad.numpy.insert(np.array([1.0, 2.0]), 1, 9.0)
    array([1., 9., 2.])
    >>> fad.grad(lambda v: fad.numpy.insert(np.array([1.0, 2.0]), 1, v).sum())(9.0)
    np.float64(1.0)
    """
    arr, axis = _along(arr, axis)
    n = arr.shape[axis]
    places = _places(obj, n, "insert")
    values = beside(arr, values)
    values = values if values.dtype == arr.dtype else values.astype(arr.dtype)
    if places.size == 1:  # one place: the values are whole slices, as many as there are along the axis
        values = values.reshape((1,) * (arr.ndim - values.ndim) + values.shape) if values.ndim < arr.ndim else values
        values = values if places.ndim else np.moveaxis(values, 0, axis)
        return lay_out_like(_put_between(arr, int(places.reshape(())), values, axis), arr)
    rest = (*arr.shape[:axis], places.size, *arr.shape[axis + 1 :])
    joined = np.concatenate((arr, np.broadcast_to(values, rest)), axis)
    order = np.argsort(np.concatenate((np.arange(n) + 0.5, places)), kind="stable")
    return lay_out_like(joined[(slice(None),) * axis + (order,)].astype(arr.dtype, copy=False), arr)


@public(np.trim_zeros, samples=lambda s: [call(s.real(4)), call(s.real(3), "f")])
def trim_zeros(filt, trim="fb", axis=None):
    """Return an array without the slices of zeros at its fronts ("f"), its backs ("b") or both.

    >>> fad.numpy.trim_zeros(np.array([0.0, 1.0, 2.0, 0.0]))
    array([1., 2.])
    """
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
