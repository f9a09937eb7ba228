"""Sparse matrices made of diagonals, whose entries may be traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.ops.arrangement.structural import as_array
from fad.scipy.sparse.array import SparseArray, SparseMatrix
from fad.scipy.sparse.forms import coo_array


def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None
) -> SparseArray:
    """Return a sparse array from its diagonals, which may be traced.

    Parameters
    ----------
    diagonals : array (n,), or sequence of arrays
        The entries of each diagonal; one number fills a diagonal where `shape` is given.
    offsets : int, or sequence of int
        Where each diagonal lies: k > 0 above the main one, k < 0 below it.
    shape : (int, int)
        Of the matrix; by default square, and as large as the first diagonal needs.
    format : str
        Ignored: a `SparseArray` has one form.
    dtype : dtype
        Of the entries; by default that of the diagonals, at least floating-point.

    Returns
    -------
    SparseArray

    Raises
    ------
    ValueError
        if the diagonals and offsets differ in number, or a diagonal does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from fad.scipy.sparse import diags_array
    >>> diags_array([np.array([1.0, 2.0]), np.array([5.0])], offsets=[0, 1]).toarray()
    array([[1., 5.],
           [0., 2.]])
    """
    if np.ndim(offsets) == 0:
        offsets = [offsets]
        if np.ndim(diagonals[0]) == 0:
            diagonals = [diagonals]
    entries = [np.atleast_1d(as_array(d)) for d in diagonals]
    offsets = [int(k) for k in offsets]
    if len(entries) != len(offsets):
        raise ValueError(f"{len(entries)} diagonals were given, and {len(offsets)} offsets: each needs its own")
    if shape is None:
        shape = (entries[0].shape[0] + abs(offsets[0]),) * 2
    rows, columns, filled = [], [], []
    for d, k in zip(entries, offsets, strict=True):
        length = min(shape[0] + min(k, 0), shape[1] - max(k, 0))
        if length < 0 or d.ndim != 1 or d.shape[0] not in (1, length):
            raise ValueError(f"a diagonal of shape {d.shape} at offset {k} does not fit a matrix of shape {shape}")
        rows.append(np.arange(length) + max(-k, 0))
        columns.append(np.arange(length) + max(k, 0))
        filled.append(np.broadcast_to(d, (length,)))
    data = np.concatenate(filled)
    data = data if dtype is None else data.astype(dtype)
    return coo_array((data, (np.concatenate(rows), np.concatenate(columns))), shape)


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: Any = None, dtype: Any = None) -> SparseArray:
    """Return a sparse array from its diagonals, as `diags_array` does.

    Parameters
    ----------
    diagonals : array (n,), or sequence of arrays
        The entries of each diagonal.
    offsets : int, or sequence of int
        Where each diagonal lies.
    shape : (int, int)
        Of the matrix.
    format : str
        Ignored: a `SparseArray` has one form.
    dtype : dtype
        Of the entries.

    Returns
    -------
    SparseArray

    Raises
    ------
    ValueError
        if the diagonals and offsets differ in number, or a diagonal does not fit.

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.scipy.sparse.diags(np.array([1.0, 2.0]), 1).toarray()
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]])
    """
    a = diags_array(diagonals, offsets=offsets, shape=shape, dtype=dtype)
    return SparseMatrix(a.data, a.pattern)
