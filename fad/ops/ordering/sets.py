"""Sets: unique elements and what two sets share. Values carry derivatives, places and counts are flat.

Of equal elements the first in the array carries the derivative. How many elements there are depends on the numbers:
batch elements of a vmap that differ in it are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fad.backends import like
from fad.core.primitives.archetypes import flat
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind, outcome, stack_list
from fad.core.tracing.views import unwrap
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.ops.ordering.sorting import permute_back_p, sort_with_order
from fad.ops.places.indexing import pick


def _ravel(x: Any) -> Any:
    x = as_array(x)
    return x.reshape((x.size,))


def _starts(s: Any, equal_nan: bool) -> Any:
    """Return a plain mask: where a run of equal elements of a sorted vector starts."""
    first = outcome(s[:1] != s[:1]) | True
    new = s[1:] != s[:-1]
    if equal_nan and s.dtype.kind in "fc":
        new = new & ~(np.isnan(s[1:]) & np.isnan(s[:-1]))
    return np.concatenate([first, outcome(new)])


class _Found(NamedTuple):
    values: Any
    indices: Any
    inverse: Any
    counts: Any


def _unique(x: Any, equal_nan: bool) -> _Found:
    """Return the unique elements of an array, where each stands first, the inverse, and the counts."""
    flat_x = _ravel(x)
    s, order = sort_with_order(flat_x, 0, "stable")
    mask = _starts(s, equal_nan)
    rank = np.broadcast_to(np.cumsum(mask) - 1, mask.shape)
    inverse = bind(permute_back_p, like(order, rank), order, axis=0).reshape(np.shape(x))
    places = np.flatnonzero(mask)
    return _Found(pick(s, (places,)), pick(order, (places,)), inverse, np.diff(np.append(places, mask.size)))


def _unique_slices(x: Any, axis: int, equal_nan: bool) -> _Found:
    """Return the unique slices along an axis, and what `_unique` returns beside them."""
    plain = unwrap(outcome(x))
    _, *rest = np.unique(
        plain, return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan
    )
    return _Found(pick(x, (slice(None),) * normalize_axis(axis, x.ndim) + (rest[0],)), *rest)


def _sample_ties(s):
    return np.array([1.5, -0.5, 1.5, 2.0, -0.5, 0.25], dtype=s.dtype)


@public(np.unique, numerical=False, samples=lambda s: [
    call(s.real(5)), call(s.real(2, 3), return_index=True, return_inverse=True, return_counts=True),
    call(s.real(3, 2), axis=0, return_index=True)])  # fmt: skip
def unique(
    ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *, equal_nan=True, sorted=True
):
    """Return the sorted unique elements, and where requested their first places, the inverse, and their counts.

    >>> fad.grad(lambda x: fad.numpy.unique(x).sum())(np.array([2.0, 1.0, 2.0]))
    array([1., 1., 0.])
    """
    ar = as_array(ar)
    found = _unique(ar, equal_nan) if axis is None else _unique_slices(ar, axis, equal_nan)
    wanted = [found.values]
    for flag, part in ((return_index, found.indices), (return_inverse, found.inverse), (return_counts, found.counts)):
        if flag:
            wanted.append(part)
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


@public(np.unique_values, numerical=False, complex=False, samples=lambda s: [call(s.real(2, 3))])
def unique_values(x, /):
    """Return the unique elements, sorted.

    >>> fad.numpy.sort(fad.numpy.unique_values(np.array([2.0, 1.0, 2.0])))
    array([1., 2.])
    """
    return _unique(as_array(x), False).values


@public(np.unique_counts, numerical=False, samples=lambda s: [call(s.real(2, 3))])
def unique_counts(x, /):
    """Return the unique elements and their counts.

    >>> fad.numpy.unique_counts(np.array([2.0, 1.0, 2.0])).counts
    array([1, 2])
    """
    found = _unique(as_array(x), False)
    return _COUNTS(found.values, found.counts)


@public(np.unique_inverse, numerical=False, samples=lambda s: [call(s.real(2, 3))])
def unique_inverse(x, /):
    """Return the unique elements and the indices that rebuild the array from them.

    >>> fad.numpy.unique_inverse(np.array([2.0, 1.0, 2.0])).inverse_indices
    array([1, 0, 1])
    """
    found = _unique(as_array(x), False)
    return _INVERSE(found.values, found.inverse)


@public(np.unique_all, numerical=False, samples=lambda s: [call(s.real(2, 3))])
def unique_all(x, /):
    """Return the unique elements, their first places, the inverse, and their counts.

    >>> fad.numpy.unique_all(np.array([2.0, 1.0, 2.0])).counts
    array([1, 2])
    """
    return _ALL(*_unique(as_array(x), False))


# NumPy's own named tuples, which it does not export.
_COUNTS: Callable = type(np.unique_counts(np.arange(1)))
_INVERSE: Callable = type(np.unique_inverse(np.arange(1)))
_ALL: Callable = type(np.unique_all(np.arange(1)))

# --- two sets -------------------------------------------------------------------------------------------------------


def _isin_batch(size, batched, xs, params):
    rows = [bind(isin_p, *(x[i] if b else x for x, b in zip(xs, batched, strict=True)), **params) for i in range(size)]
    return np.stack(rows)


isin_p: Any = flat(
    "is_among",
    lambda x, among, *, invert: np.isin(x, among, invert=invert),
    batch=_isin_batch,
    samples=lambda s: [call(s.ints(0, 5, (2, 3)), s.ints(0, 5, (4,)), invert=False)],
    doc="Which elements are among others.",
)


@public(np.isin, flat=True, samples=lambda s: [
    call(s.ints(0, 5, (2, 3)), s.ints(0, 5, (4,))), call(s.real(3), np.array([0.5]), invert=True)])  # fmt: skip
def isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    """Return for each element whether it is among others; flat.

    >>> fad.numpy.isin(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0]))
    array([False,  True, False])
    """
    return bind(isin_p, as_array(element), as_array(test_elements), invert=bool(invert))


@public(np.union1d, numerical=False, samples=lambda s: [call(s.real(4), s.real(3))])
def union1d(ar1, ar2):
    """Return the sorted elements of either array, each once.

    >>> fad.numpy.union1d(np.array([1.0, 3.0]), np.array([2.0, 3.0]))
    array([1., 2., 3.])
    """
    return np.unique(np.concatenate((stack_list(ar1), stack_list(ar2)), axis=None))  # where Python's numbers are weak


@public(np.intersect1d, numerical=False, samples=lambda s: [
    call(_sample_ties(s), np.array([2.0, 1.5, 7.0], dtype=s.dtype)),
    call(_sample_ties(s), np.array([2.0, 1.5, 7.0], dtype=s.dtype), return_indices=True)])  # fmt: skip
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """Return the sorted elements of both arrays, each once; the first array's carry the derivative.

    >>> fad.numpy.intersect1d(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))
    array([2., 3.])
    """
    a, b = _unique(as_array(ar1), False), _unique(as_array(ar2), False)
    mask = np.flatnonzero(outcome(isin(a.values, b.values)))
    values = pick(a.values, (mask,)).astype(np.result_type(a.values, b.values))
    if not return_indices:
        return values
    of_b = np.flatnonzero(outcome(isin(b.values, a.values)))
    return values, pick(a.indices, (mask,)), pick(b.indices, (of_b,))


@public(np.setdiff1d, numerical=False, samples=lambda s: [call(_sample_ties(s), np.array([2.0, 7.0], dtype=s.dtype))])
def setdiff1d(ar1, ar2, assume_unique=False):
    """Return the elements of the first array that are not in the second; sorted, each once, unless assumed unique.

    >>> fad.numpy.setdiff1d(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0]))
    array([1., 3.])
    """
    a = _ravel(ar1) if assume_unique else np.unique(as_array(ar1))
    mask = np.flatnonzero(outcome(isin(a, as_array(ar2), invert=True)))
    return pick(a, (mask,))


@public(np.setxor1d, numerical=False, samples=lambda s: [call(_sample_ties(s), np.array([2.0, 7.0], dtype=s.dtype))])
def setxor1d(ar1, ar2, assume_unique=False):
    """Return the sorted elements of exactly one of the arrays.

    >>> fad.numpy.setxor1d(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0]))
    array([1., 3., 4.])
    """
    a, b = (_ravel(x) if assume_unique else np.unique(as_array(x)) for x in (ar1, ar2))
    return np.sort(np.concatenate([setdiff1d(a, b, True), setdiff1d(b, a, True)]))
