"""NumPy's functions that take elements by their places, put them there, and find places.

Places are integers and have no derivative. Where a result's *shape* depends on values (nonzero, compress), it splits
the batch elements of a vmap that disagree, as a Python ``if`` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitives.archetypes import flat
from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, add_methods, bind, outcome
from fad.core.tracing.values import depth
from fad.ops.arrangement.structural import along, as_array, beside, flatten, normalize_axis
from fad.ops.layout.memory_order import lay_out
from fad.ops.places.functional_updates import At
from fad.ops.places.indexing import pick

_MODES = ("raise", "wrap", "clip")


def at(x: Any) -> At:
    """Return what updates a copy of an array at an index: ``at(x)[i].set(v)``, and add, multiply, min, max, get.

    Traced arrays have it as ``x.at``; this function serves plain arrays too, into which a traced value is to be put.

    Parameters
    ----------
    x : array
        Of any shape and dtype; it is not changed.

    Returns
    -------
    object
        ``at(x)[index].set(v)``, ``add``, ``multiply``, ``min`` and others return a changed copy of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> at(np.zeros(3))[1].set(2.5)
    array([0. , 2.5, 0. ])
    """
    return At(as_array(x))


def _bring_into_bounds(indices: Any, n: int, mode: str) -> Any:
    """Bring indices into an axis of length n as `mode` says; "raise" leaves that to the indexing."""
    indices = as_array(indices)
    if mode not in _MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap', not {mode!r}")
    if indices.dtype.kind not in "iub":
        raise TypeError(f"Cannot take at indices of dtype {indices.dtype}; they must be integers")
    indices = indices.astype(np.intp) if indices.dtype.kind == "b" else indices
    if mode == "wrap":
        return indices % n
    return np.clip(indices, 0, n - 1) if mode == "clip" else indices


@public(
    np.take,
    methods=("take",),
    samples=lambda s: [
        call(s.real(3, 4), s.ints(-12, 12, (2, 3))),
        call(s.real(3, 4), s.ints(0, 4, (2, 3)), axis=1),
        call(s.real(2, 3, 2), 1, axis=-2),
        call(s.real(3, 4), np.array([-5, 7, 2]), axis=0, mode="wrap"),
        call(s.real(3, 4), [-5, 7, 2], axis=0, mode="clip"),
    ],
)
def take(a, indices, axis=None, out=None, mode="raise"):
    """Take elements at places along an axis, or of the flattened array.

    >>> fad.grad(lambda x: fad.numpy.take(x, [0, 0, 1]).sum())(np.array([1.0, 2.0, 3.0]))
    array([2., 1., 0.])
    """
    refuse_out(out)
    a, axis = along(a, axis)
    if 0 in a.shape[:axis]:  # NumPy takes nothing then, and does not look at the indices
        return a.reshape((*a.shape[:axis], *np.shape(indices), *a.shape[axis + 1 :]))
    taken = pick(a, (slice(None),) * axis + (_bring_into_bounds(indices, a.shape[axis], mode),))
    return (
        lay_out(taken, "C") if type(taken) is Tracer else taken
    )  # as NumPy's function makes it, and its index does not


def _grid(shape: tuple, indices: Any, axis: int) -> tuple:
    """Return the index that takes along an axis: the given indices there, a range along every other axis."""
    rank = len(shape)
    ranges = [like(indices, np.arange(n).reshape((-1,) + (1,) * (rank - i - 1))) for i, n in enumerate(shape)]
    return (*ranges[:axis], indices, *ranges[axis + 1 :])


def _along(arr: Any, indices: Any, axis: Any) -> tuple:
    arr, indices = as_array(arr), as_array(indices)
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    arr, axis = (flatten(arr), 0) if axis is None else (arr, normalize_axis(axis, arr.ndim))
    if arr.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return arr, indices, axis


@public(
    np.take_along_axis,
    samples=lambda s: [
        call(s.real(3, 4), s.ints(0, 4, (3, 2)), 1),
        call(s.real(3, 4), s.ints(0, 3, (2, 1)), axis=0),
        call(s.real(2, 2), s.ints(0, 4, (3,)), None),
    ],
)
def take_along_axis(arr, indices, axis=-1):
    """Take elements along an axis, at places given for each position along the others.

    >>> fad.numpy.take_along_axis(np.array([3.0, 1.0, 2.0]), np.array([1, 2, 0]), axis=0)
    array([1., 2., 3.])
    """
    arr, indices, axis = _along(arr, indices, axis)
    return pick(arr, _grid(arr.shape, indices, axis))


@public(
    samples=lambda s: [
        call(s.real(3, 4), np.argsort(s.real(3, 4), axis=1)[:, :2], s.real(3, 2), 1),
        call(s.real(3, 4), s.ints(0, 3, (1, 4)), 0.5, axis=0),
        call(s.real(4), np.array([1, 3]), s.real(), None),
    ],
)
def put_along_axis(arr, indices, values, axis):
    """Return a copy of an array with values put along an axis, at places given for each position along the others.

    ``numpy.put_along_axis`` changes its array in place; this function returns the changed array.

    Parameters
    ----------
    arr : array
        Is not changed.
    indices : array of int
        Of the rank of `arr`; places along `axis`.
    values : array_like
        What is put there; broadcast to `indices`.
    axis : int or None
        Along which; None takes the flattened array.

    Returns
    -------
    array
        A changed copy of `arr`.

    Examples
    --------
    >>> import numpy as np
    >>> put_along_axis(np.zeros((2, 2)), np.array([[1], [0]]), 5.0, axis=1)
    array([[0., 5.],
           [5., 0.]])
    """
    shape = np.shape(arr)
    flattened, indices, axis_ = _along(arr, indices, axis)
    changed = At(flattened)[_grid(flattened.shape, indices, axis_)].set(values)
    return changed.reshape(shape) if axis is None else changed


@public(
    np.compress,
    samples=lambda s: [
        call([False, True, True], s.real(3, 4), axis=0),
        call(np.array([True, False, True]), s.real(3, 4), axis=-1),
        call([True, False, True], s.real(3, 4)),
    ],
)
def compress(condition, a, axis=None, out=None):
    """Take the slices along an axis for which a condition holds.

    >>> fad.grad(lambda x: fad.numpy.compress([True, False], x).sum())(np.array([1.0, 2.0]))
    array([1., 0.])
    """
    refuse_out(out)
    condition = outcome(as_array(condition))
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return take(a, np.flatnonzero(condition), axis)


add_methods(compress=lambda self, condition, axis=None, out=None: compress(condition, self, axis, out))


@public(
    np.extract,
    samples=lambda s: [call(np.array([[True, False], [True, True]]), s.real(2, 2)), call([1, 0], s.real(2))],
    raises="IndexError: The condition is true beyond the end of the array.",
)
def extract(condition, arr):
    """Take the elements of the flattened array where a condition holds.

    >>> fad.grad(lambda x: fad.numpy.extract(x > 1, x).sum())(np.array([1.0, 2.0]))
    array([0., 1.])
    """
    return take(arr, np.flatnonzero(outcome(np.ravel(as_array(condition)) != 0)))


@public(
    np.choose,
    methods=("choose",),
    samples=lambda s: [
        call(np.array([2, 0, 1]), [s.real(3), s.real(3), s.real()]),
        call(np.array([[0], [1]]), (s.real(3), s.real(2, 3))),
        call(np.array([-1, 5]), [s.real(2), s.real(2)], mode="wrap"),
        call(1, [s.real(2), s.real(2)]),
    ],
)
def choose(a, choices, out=None, mode="raise"):
    """Choose each element from the array in `choices` that the integer in `a` names.

    >>> fad.numpy.choose([0, 1], [np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    array([1., 4.])
    """
    refuse_out(out)
    choices = [x if type(x) in (int, float, complex) else as_array(x) for x in choices]
    dtype = np.result_type(*choices)
    choices = [as_array(x) for x in choices]
    a = beside(choices[0], a)
    places = _bring_into_bounds(a, len(choices), mode)
    if mode == "raise" and outcome(np.any((places < 0) | (places >= len(choices)))):
        raise ValueError("invalid entry in choice array")
    places, *choices = np.broadcast_arrays(places, *choices)
    stacked = np.stack([x if x.dtype == dtype else x.astype(dtype) for x in choices])
    chosen = take_along_axis(stacked, places[None], 0)[0]
    return lay_out(chosen, "C") if type(chosen) is Tracer else chosen


# --- places ------------------------------------------------------------------------------------------------------


def _search_batch(size, batched, xs, params):
    a, v = xs
    if not batched[0]:
        return bind(searchsorted_p, a, v, **params)
    rows = [bind(searchsorted_p, a[i], v[i] if batched[1] else v, **params) for i in range(size)]
    return np.stack(rows) if rows else np.zeros_like(v, shape=(0, *v.shape[batched[1] :]), dtype=np.intp)


searchsorted_p: Any = flat(
    "search_sorted",
    lambda a, v, *, side: np.searchsorted(a, v, side),
    batch=_search_batch,
    samples=lambda s: [
        call(np.sort(s.real(5)), s.real(2, 3), side="left"),
        call(np.sort(s.real(5)), s.real(), side="right"),
    ],
    complex=False,
    doc="Where values would be put into a sorted vector.",
)


def _sort(s):
    return np.sort(s.real(5))


@public(
    np.searchsorted,
    flat=True,
    methods=("searchsorted",),
    samples=lambda s: [
        call(_sort(s), s.real(2, 3)),
        call(_sort(s), s.real(4), side="right"),
        call(np.array([3.0, 1.0, 2.0]), 1.5, sorter=[1, 2, 0]),
    ],
    raises='ValueError: `side` is neither "left" nor "right", or the sorted array has several axes.',
)
def searchsorted(a, v, side="left", sorter=None):
    """Find where to insert values into a sorted vector so that it stays sorted; integers, and so flat.

    >>> fad.numpy.searchsorted(np.array([1.0, 2.0, 3.0]), 2.5)
    np.int64(2)
    """
    a = as_array(a)
    a = a if sorter is None else pick(a, (beside(a, sorter),))
    return bind(searchsorted_p, a, beside(a, v), side=side)


@public(
    np.digitize,
    flat=True,
    samples=lambda s: [call(s.real(3, 4), _sort(s)), call(s.real(4), _sort(s)[::-1], right=True)],
    complex=False,
)
def digitize(x, bins, right=False):
    """Find the number of the bin that each value falls into; integers, and so flat.

    >>> fad.numpy.digitize([0.5, 1.5], np.array([0.0, 1.0, 2.0]))
    array([1, 2])
    """
    bins, x = as_array(bins), as_array(x)
    if x.dtype.kind == "c":
        raise TypeError("x may not be complex")
    side = "left" if right else "right"
    if outcome(np.all(bins[1:] >= bins[:-1])):
        return searchsorted(bins, x, side)
    if outcome(np.all(bins[1:] <= bins[:-1])):
        return bins.size - searchsorted(np.flip(bins), x, side)
    raise ValueError("bins must be monotonically increasing or decreasing")


@public(
    np.nonzero,
    flat=True,
    methods=("nonzero",),
    samples=lambda s: [call(s.bools(3, 4)), call(s.real(4))],
    raises="ValueError: The array is a number.",
)
def nonzero(a):
    """Return the places of the elements that are not zero, one plain index array per axis.

    >>> fad.numpy.nonzero(np.array([0.0, 3.0, 2.0]))
    (array([1, 2]),)
    """
    return np.nonzero(outcome(as_array(a) != 0))


@public(np.flatnonzero, flat=True, samples=lambda s: [call(s.bools(3, 4)), call(s.real(4))])
def flatnonzero(a):
    """Return the places in the flattened array of the elements that are not zero, as a plain array.

    >>> fad.numpy.flatnonzero(np.array([0.0, 3.0, 2.0]))
    array([1, 2])
    """
    return np.flatnonzero(outcome(as_array(a) != 0))


@public(np.argwhere, flat=True, samples=lambda s: [call(s.bools(3, 4)), call(s.real(4))])
def argwhere(a):
    """Return the places of the elements that are not zero, one row each, as a plain array.

    >>> fad.numpy.argwhere(np.array([0.0, 1.0, 1.0]))
    array([[1],
           [2]])
    """
    return np.argwhere(outcome(as_array(a) != 0))


@public(np.unravel_index, flat=True, samples=lambda s: [call(s.ints(0, 12, (5,)), (3, 4)), call(7, (3, 4), order="F")])
def unravel_index(indices, shape, order="C"):
    """Return the places along each axis of flat places in an array of a shape.

    >>> fad.numpy.unravel_index(6, (3, 4))
    (np.int64(1), np.int64(2))
    """
    indices = as_array(indices)
    shape = shape if isinstance(shape, tuple) else (int(shape),)
    size = int(np.prod(shape))
    if outcome(np.any((indices < 0) | (indices >= size))):
        raise ValueError(f"index is out of bounds for array with size {size}")
    found = []
    for n in reversed(shape) if order == "C" else shape:
        found.append(indices % n)
        indices = indices // n
    return tuple(reversed(found)) if order == "C" else tuple(found)


@public(
    np.ravel_multi_index,
    flat=True,
    samples=lambda s: [
        call((s.ints(0, 3, (5,)), s.ints(0, 4, (5,))), (3, 4)),
        call((np.array([4, -1]), np.array([3, 0])), (3, 4), mode=("wrap", "clip"), order="F"),
    ],
)
def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """Return the flat places of places along each axis in an array of a shape.

    >>> fad.numpy.ravel_multi_index((1, 2), (3, 4))
    np.int64(6)
    """
    modes = mode if isinstance(mode, tuple) else (mode,) * len(dims)
    total, step = 0, 1
    parts = list(zip(multi_index, dims, modes, strict=True))
    for index, n, how in parts if order == "F" else reversed(parts):
        index = _bring_into_bounds(index, n, how)
        if how == "raise" and outcome(np.any((index < 0) | (index >= n))):
            raise ValueError("invalid entry in coordinates array")
        total, step = total + index * step, step * n
    return total


@public(
    np.ix_,
    flat=True,
    samples=lambda s: [call(s.ints(0, 3, (2,)), s.ints(0, 3, (3,))), call([0, 1], np.array([True, False, True]))],
    raises="ValueError: An argument has several axes.",
)
def ix_(*args):
    """Return index arrays that select the grid of all combinations of their elements.

    >>> fad.numpy.ix_([0, 1], np.array([2.0]))
    (array([[0],
           [1]]), array([[2.]]))
    """
    found = []
    for i, x in enumerate(args):
        x = as_array(x)
        if x.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        x = flatnonzero(x) if x.dtype.kind == "b" else x
        found.append(x.reshape((1,) * i + (-1,) + (1,) * (len(args) - i - 1)))
    return tuple(found)


@public(
    np.bincount,
    samples=lambda s: [
        call(np.array([0, 2, 2, 1]), s.real(4)),
        call(np.array([0, 3]), weights=s.real(2), minlength=6),
        call(s.ints(0, 4, (5,))),
    ],
    complex=False,
)
def bincount(x, /, weights=None, minlength=0):
    """Count how often each non-negative integer occurs, or add up the weights of each; linear in the weights.

    >>> fad.grad(lambda w: fad.numpy.bincount([0, 1, 1], w)[1])(np.array([1.0, 2.0, 3.0]))
    array([0., 1., 1.])
    """
    x = as_array(x)
    if x.size and not np.can_cast(x.dtype, np.intp):
        safe = f"to {np.dtype(np.intp)!r} according to the rule 'safe'"
        raise TypeError(f"Cannot cast array data from {x.dtype!r} {safe}")
    x = x.astype(np.intp, copy=False)
    if x.ndim != 1 or (x.size and outcome(np.min(x)) < 0):
        raise ValueError("bincount takes a vector of non-negative integers")
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    n = max(minlength, int(outcome(np.max(x))) + 1 if x.size else 0)
    if not x.size and not depth(weights):
        return np.zeros(n, np.intp)  # NumPy leaves the weights of nothing out
    weights = np.ones_like(x, dtype=np.intp) if weights is None else as_array(weights).astype(np.float64)
    if weights.shape != x.shape:
        raise ValueError("The weights and list don't have the same length.")
    return At(np.zeros_like(weights, shape=(n,)))[(x,)].add(weights)
