"""Sets of inputs, one for each element of an array: sparse matrices of booleans, element by input, or `Blocks`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from fad.sparse.blocks import Blocks

LIMIT = 1 << 25  # places of one matrix: beyond, it takes more memory than a sparse derivative is likely to be worth


class TooMany(Exception):
    """Sets were requested that together have more members than the limit."""

    def __init__(self, size: int, members: int):
        super().__init__(f"{size} elements depend on {math.ceil(members / size)} inputs each")


def identity(start: int, size: int, inputs: int) -> Any:
    """Return the sets of `size` inputs themselves, the first of which is number `start`."""
    return _matrix(np.arange(start, start + size), np.arange(size + 1), (size, inputs))


def nothing(size: int, inputs: int) -> Any:
    """Return empty sets."""
    return _matrix(np.zeros(0, np.intp), np.zeros(size + 1, np.intp), (size, inputs))


def _matrix(columns: Any, indptr: Any, shape: tuple) -> Any:
    kind = kind_of_index(max(*shape, columns.size))
    columns, indptr = columns.astype(kind, copy=False), indptr.astype(kind, copy=False)
    return scipy.sparse.csr_array((np.ones(columns.size, bool), columns, indptr), shape=shape)


def kind_of_index(most: int) -> Any:
    """Return the smaller of SciPy's dtypes of indices that holds a number: half the memory, and what solvers take."""
    return np.int32 if most <= np.iinfo(np.int32).max else np.int64


def plain(sets: Any) -> Any:
    """Return sets as a sparse matrix."""
    if type(sets) is not Blocks:
        return sets
    members = sets.count()
    if members > LIMIT:
        raise TooMany(sets.bits.size, members)
    return sets.expand(kind_of_index(max(sets.inputs, sets.bits.size, members)))


def gather(sets: Any, places: Any) -> Any:
    """Return the sets of the elements at `places`, in its order; those of place -1 are empty."""
    places = places.reshape(-1)
    if type(sets) is Blocks:
        return sets.gather(places)
    counts = np.diff(sets.indptr)
    some = places >= 0
    total = int(counts[places[some]].sum(dtype=np.int64))
    if total > LIMIT:
        raise TooMany(places.size, total)
    if some.all():
        same = places.size == sets.shape[0] and np.array_equal(places, np.arange(places.size))
        return sets if same else sets[places]
    indptr = np.concatenate([[0], np.cumsum(some)])
    return _matrix(places[some], indptr, (places.size, sets.shape[0])) @ sets


def through(rows: Any, columns: Any, size: int, sets: Any) -> Any:
    """Return the sets of `size` elements, of which number ``rows[i]`` depends on element ``columns[i]`` of `sets`."""
    if type(sets) is Blocks:
        found = sets.scatter(rows, columns, size)
        if found is not None:
            return found
        sets = plain(sets)
    total = int(np.diff(sets.indptr)[columns].sum(dtype=np.int64))
    if total > LIMIT:
        raise TooMany(size, total)
    kind = sets.indices.dtype if max(rows.size, size, *sets.shape) <= LIMIT else np.int64
    places = rows.astype(kind, copy=False), columns.astype(kind, copy=False)
    return scipy.sparse.csr_array((np.ones(rows.size, bool), places), shape=(size, sets.shape[0])) @ sets


def spread(sets: Any, shape: tuple, to: tuple) -> Any:
    """Broadcast the sets of an array of one shape to another."""
    if shape == to:
        return sets
    return gather(sets, np.broadcast_to(numbers(shape), to))


def sort_by_counting(keys: Any, most: int) -> Any:
    """Return the stable order of numbers below `most`; argsort takes ten times as long."""
    one_row = np.arange(keys.size, dtype=keys.dtype), keys, np.array([0, keys.size], keys.dtype)
    return scipy.sparse.csr_array(one_row, shape=(1, most)).tocsc().data


def numbers(shape: tuple, start: int = 0) -> Any:
    """Return the numbers of an array's elements, counted from `start`."""
    size = math.prod(shape)
    return np.arange(start, start + size, dtype=kind_of_index(start + size)).reshape(shape)


def union(parts: list) -> Any:
    """Return the union of sets, element by element; parts that are None are empty.

    Where one part holds all of it, that is returned, so that the results of many operations share their sets.
    """
    out = None
    for part in parts:
        if part is not None and part is not out:
            out = part if out is None else _join(out, part)
    return out


def _join(a: Any, b: Any) -> Any:
    if type(a) is type(b) is Blocks:
        found = a.join(b)
        if found is not None:
            return found
    a, b = plain(a), plain(b)
    both = a + b
    return a if both.nnz == a.nnz else b if both.nnz == b.nnz else both


def over(sets: Any, shape: tuple, axes: tuple) -> Any:
    """Return the union over axes, which stay with length 1."""
    axes = tuple(a % len(shape) for a in axes)
    kept = tuple(1 if i in axes else d for i, d in enumerate(shape))
    if kept == shape:
        return sets
    if type(sets) is Blocks:
        found = sets.over(shape, axes)
        if found is not None:
            return found
    sets = plain(sets)
    if axes == tuple(range(len(shape) - len(axes), len(shape))) and math.prod(shape):
        return _join_rows(sets, math.prod([shape[i] for i in axes]))
    target = np.broadcast_to(numbers(kept), shape).reshape(-1)
    return through(target, np.arange(target.size), math.prod(kept), sets)


def _join_rows(sets: Any, many: int) -> Any:
    """Return the unions of so many sets each that lie one after the other."""
    size = sets.shape[0] // many
    if size == 1:
        members = np.flatnonzero(np.bincount(sets.indices, minlength=sets.shape[1]))
        return _matrix(members, np.array([0, members.size]), (1, sets.shape[1]))
    found = _matrix(sets.indices.copy(), sets.indptr[::many].copy(), (size, sets.shape[1]))
    found.sum_duplicates()
    return found


def stack(parts: list) -> Any:
    """Return the sets of several arrays, as sparse matrices, one after the other."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([part.indices.size for part in parts])
    indptr = [parts[0].indptr, *[p.indptr[1:] + end for p, end in zip(parts[1:], ends[:-1], strict=True)]]
    return _matrix(
        np.concatenate([p.indices for p in parts]),
        np.concatenate(indptr),
        (sum(p.shape[0] for p in parts), parts[0].shape[1]),
    )


def everything(sets: Any, size: int) -> Any:
    """Let each of `size` elements depend on whatever any element depends on."""
    sets = plain(sets)
    whole = over(sets, (sets.shape[0],), (0,)) if sets.shape[0] else nothing(1, sets.shape[1])
    return gather(whole, np.zeros(size, np.intp))
