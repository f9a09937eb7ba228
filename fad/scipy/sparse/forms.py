"""Sparse matrices from their entries and places, in SciPy's forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from fad.core.tracing.tracer import Tracer
from fad.ops.places.indexing import pick
from fad.scipy.sparse.array import SparseArray, SparseMatrix, from_scipy, is_sparse
from fad.scipy.sparse.entries import make_floating
from fad.scipy.sparse.products import Pattern


def _shape(shape: Any, rows: Any, columns: Any) -> tuple:
    if shape is not None:
        return tuple(shape)
    return (int(rows.max()) + 1, int(columns.max()) + 1) if rows.size else (0, 0)


def _check(data: Any, rows: Any, columns: Any, shape: tuple, form: str, indptr: Any = None) -> SparseArray:
    if data.ndim != 1 or data.shape[0] != rows.size or rows.size != columns.size:
        raise ValueError("row, column, and data arrays must be vectors of the same length")
    for name, places, n in (("row", rows, shape[0]), ("column", columns, shape[1])):
        if places.size and (places.min() < 0 or places.max() >= n):
            raise ValueError(f"a {name} index lies outside of the shape {shape}")
    made = SparseArray(data, Pattern(rows, columns, shape, indptr))
    made.format = form
    return made


def _compress(given: Any, shape: Any, by_rows: bool) -> SparseArray:
    data, indices, indptr = given
    data, indices, indptr = make_floating(data), np.asarray(indices), np.asarray(indptr)
    if indptr.ndim != 1 or indptr[0] != 0 or indptr[-1] != indices.size or np.any(np.diff(indptr) < 0):
        raise ValueError("indptr must begin with 0, never decrease, and end with the number of entries")
    outer = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    if by_rows:
        shape = (indptr.size - 1, _shape(shape, outer, indices)[1]) if shape is None else tuple(shape)
        if shape[0] != indptr.size - 1:
            raise ValueError(f"index pointer size {indptr.size} should be {shape[0] + 1}")
        return _check(data, outer, indices, shape, "csr", indptr)
    shape = (_shape(shape, indices, outer)[0], indptr.size - 1) if shape is None else tuple(shape)
    if shape[1] != indptr.size - 1:
        raise ValueError(f"index pointer size {indptr.size} should be {shape[1] + 1}")
    return _check(data, indices, outer, shape, "csc")


def _order(a: SparseArray, by_rows: bool) -> SparseArray:
    """Return a matrix with its entries in the order of rows, or of columns; those at one place are added up."""
    ordered = a._sort_by_rows() if by_rows else a._turn()._sort_by_rows()._turn()
    return ordered._in_form("csr" if by_rows else "csc")


def _make(given: Any, shape: Any, by_rows: bool | None) -> SparseArray:
    if is_sparse(given):
        a = from_scipy(given)
        a = SparseArray(a.data, a.pattern)
        return a if by_rows is None else _order(a, by_rows)
    if type(given) is tuple and len(given) == 3 and by_rows is not None:
        return _compress(given, shape, by_rows)
    if type(given) is tuple and len(given) == 2 and isinstance(given[1], (tuple, list)):
        data, (rows, columns) = given
        rows, columns = np.asarray(rows), np.asarray(columns)
        made = _check(make_floating(data), rows, columns, _shape(shape, rows, columns), "coo")
        return made if by_rows is None else _order(made, by_rows)
    if type(given) is Tracer:
        raise TypeError(
            "the places of a sparse array's entries are constant, and cannot be read off a traced dense array: "
            "give its entries and their places, (data, (rows, columns))"
        )
    return from_scipy(scipy.sparse.csr_array(np.asarray(given)))


def _cast(a: SparseArray, dtype: Any) -> SparseArray:
    if dtype is None or np.dtype(dtype) == a.dtype:
        return a
    if np.dtype(dtype).kind not in "fc":
        raise TypeError(f"the entries of a sparse array that is differentiated are floating-point, not {dtype}")
    a.data = a.data.astype(dtype)
    return a


def older(make: Callable) -> Callable:
    """Return a function that makes a matrix of SciPy's older classes in the place of an array."""

    def create(*args: Any, **kwargs: Any) -> SparseMatrix:
        made = make(*args, **kwargs)
        matrix = SparseMatrix(made.data, made.pattern)
        matrix.format = made.format
        return matrix

    create.__name__, create.__doc__ = make.__name__, make.__doc__
    return create


def csr_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> SparseArray:
    """Return a sparse array from ``(data, indices, indptr)``, ``(data, (rows, columns))``, or a plain matrix.

    `data` may be traced; the places of the entries are constants. Entries at one place add up.

    Parameters
    ----------
    arg1 : tuple, matrix or array
        ``(data, indices, indptr)``, or what scipy.sparse takes.
    shape : (int, int)
        Of the matrix; by default as large as the places need.
    dtype : dtype
        Of the entries, a floating-point one; by default that of the data.
    copy : bool
        Ignored: what is written into the matrix is not seen in the data.

    Returns
    -------
    SparseArray

    Raises
    ------
    ValueError
        if the entries and their indices differ in number, or an index lies outside of the shape.

    Examples
    --------
    >>> import numpy as np
    >>> from fad.scipy.sparse import csr_array
    >>> csr_array((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 1, 2]))).toarray()
    array([[0., 1.],
           [2., 0.]])
    """
    return _cast(_make(arg1, shape, True), dtype)


def csc_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> SparseArray:
    """Return a sparse array from ``(data, indices, indptr)`` by columns, ``(data, (rows, columns))``, or a matrix.

    Parameters
    ----------
    arg1 : tuple, matrix or array
        ``(data, indices, indptr)``, or what scipy.sparse takes.
    shape : (int, int)
        Of the matrix; by default as large as the places need.
    dtype : dtype
        Of the entries, a floating-point one; by default that of the data.
    copy : bool
        Ignored: what is written into the matrix is not seen in the data.

    Returns
    -------
    SparseArray

    Raises
    ------
    ValueError
        if the entries and their indices differ in number, or an index lies outside of the shape.

    Examples
    --------
    >>> fad.scipy.sparse.csc_array(np.diag(np.array([2.0, 3.0]))).toarray()
    array([[2., 0.],
           [0., 3.]])
    """
    return _cast(_make(arg1, shape, False), dtype)


def coo_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> SparseArray:
    """Return a sparse array from ``(data, (rows, columns))``, or a plain matrix.

    Parameters
    ----------
    arg1 : tuple, matrix or array
        ``(data, (rows, columns))``, or what scipy.sparse takes.
    shape : (int, int)
        Of the matrix; by default as large as the places need.
    dtype : dtype
        Of the entries, a floating-point one; by default that of the data.
    copy : bool
        Ignored: what is written into the matrix is not seen in the data.

    Returns
    -------
    SparseArray

    Raises
    ------
    ValueError
        if the entries and their indices differ in number, or an index lies outside of the shape.

    Examples
    --------
    >>> fad.scipy.sparse.coo_array((np.array([2.0, 3.0]), ([0, 1], [1, 0])), shape=(2, 2)).toarray()
    array([[0., 2.],
           [3., 0.]])
    """
    return _cast(_make(arg1, shape, None), dtype)


def dia_array(arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> SparseArray:
    """Return a sparse array from ``(data, offsets)``, diagonals whose entries stand by their columns, or a matrix.

    Parameters
    ----------
    arg1 : tuple, matrix or array
        ``(data, offsets)``: row i of `data` is the diagonal at ``offsets[i]``; or what scipy.sparse takes.
    shape : (int, int)
        Of the matrix; needed with diagonals.
    dtype : dtype
        Of the entries, a floating-point one; by default that of the data.
    copy : bool
        Ignored: what is written into the matrix is not seen in the data.

    Returns
    -------
    SparseArray

    Raises
    ------
    ValueError
        if no shape is given, the diagonals and offsets differ in number, or an offset appears twice.

    Examples
    --------
    >>> fad.scipy.sparse.dia_array((np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 1]), shape=(2, 2)).toarray()
    array([[1., 4.],
           [0., 2.]])
    """
    if type(arg1) is not tuple or len(arg1) != 2 or not np.ndim(arg1[0]):
        return _cast(_make(arg1, shape, None), dtype)
    if shape is None:
        raise ValueError("expected a shape argument")
    data, offsets = np.atleast_2d(make_floating(arg1[0])), np.atleast_1d(np.asarray(arg1[1]))
    if data.ndim != 2 or data.shape[0] != offsets.size or np.unique(offsets).size != offsets.size:
        raise ValueError(f"{offsets.size} different offsets were needed for the diagonals of shape {data.shape}")
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    kept = np.nonzero((rows >= 0) & (rows < shape[0]) & (columns < shape[1]))
    return _cast(_check(pick(data, kept), rows[kept], columns[kept], tuple(shape), "dia"), dtype)


def bsr_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, blocksize: Any = None
) -> SparseArray:
    """Return a sparse array from ``(data, indices, indptr)``, of dense blocks by rows, or from a matrix.

    Parameters
    ----------
    arg1 : tuple, matrix or array
        ``(data, indices, indptr)`` with data of the shape (blocks, r, c), or what scipy.sparse takes.
    shape : (int, int)
        Of the matrix; by default as large as the places need.
    dtype : dtype
        Of the entries, a floating-point one; by default that of the data.
    copy : bool
        Ignored: what is written into the matrix is not seen in the data.
    blocksize : (int, int)
        Of the blocks, which `data` says by itself.

    Returns
    -------
    SparseArray

    Raises
    ------
    ValueError
        if the blocks and their indices differ in number, or an index lies outside of the shape.

    Examples
    --------
    >>> blocks = np.array([[[1.0, 2.0], [3.0, 4.0]]])
    >>> fad.scipy.sparse.bsr_array((blocks, np.array([1]), np.array([0, 1]))).toarray()
    array([[0., 0., 1., 2.],
           [0., 0., 3., 4.]])
    """
    if type(arg1) is not tuple or len(arg1) != 3:
        return _cast(_make(arg1, shape, None), dtype)
    data, indices, indptr = make_floating(arg1[0]), np.asarray(arg1[1]), np.asarray(arg1[2])
    if data.ndim != 3 or indptr[-1] != indices.size or data.shape[0] != indices.size:
        raise ValueError(f"{indices.size} blocks of two axes were needed, not data of shape {data.shape}")
    _, r, c = data.shape
    outer = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    rows = np.broadcast_to(outer[:, None, None] * r + np.arange(r)[:, None], data.shape).ravel()
    columns = np.broadcast_to(indices[:, None, None] * c + np.arange(c), data.shape).ravel()
    if shape is None:
        shape = ((indptr.size - 1) * r, (int(indices.max()) + 1 if indices.size else 0) * c)
    return _cast(_check(data.ravel(), rows, columns, tuple(shape), "bsr"), dtype)
