"""Sparse matrices whose entries may be traced: their places are constant, their products with dense arrays linear."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse

from fad import tree
from fad.core.tracer import LEAVING, Tracer, bind
from fad.errors import TracerConversionError
from fad.ops.indexing import pick
from fad.ops.structural import as_array
from fad.ops.taking import at
from fad.scipy.sparse.products import Pattern, sparse_matmul_p

# --- the matrix -----------------------------------------------------------------------------------------------------


_SOLVE = (
    "fad.scipy.sparse.linalg solves with it, spsolve(a, b); multiply with a @ x, make it dense with a.toarray(), or "
    "return it from the transformed function and use SciPy outside"
)
_TRACED = f"the entries of this sparse array are traced, which SciPy's matrices cannot hold. {_SOLVE}"


class SparseArray:
    """A sparse matrix whose entries may be traced; a tree whose one leaf is `data`.

    Made by `csr_array`, `csc_array` and `coo_array` in SciPy's forms. It multiplies dense vectors and matrices from
    both sides, is scaled, added to one with the same places, transposed, and turned into a dense array. Where the
    entries are plain numbers, as in what a jitted function returns, it has all attributes and methods of SciPy's
    ``csr_array``; SciPy's functions take ``a.tocsr()`` or ``a.tocsc()``.

    Parameters
    ----------
    data : array (nnz,)
        The entries, which are differentiated.
    pattern : Pattern
        Where they lie.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.sparse import coo_array
    >>> rows, columns = np.array([0, 1, 1]), np.array([0, 0, 1])
    >>> def f(data):
    ...     return np.sum(coo_array((data, (rows, columns)), shape=(2, 2)) @ np.array([1.0, 2.0]))
    >>> fad.grad(f)(np.array([1.0, 2.0, 3.0]))
    array([1., 1., 2.])
    """

    __array_ufunc__ = None  # NumPy's operators leave it to this class
    ndim = 2

    def __init__(self, data: Any, pattern: Pattern):
        self.data = data
        self.pattern = pattern

    def __repr__(self) -> str:
        return f"<fad sparse array of shape {self.shape}, {self.nnz} entries of dtype {self.dtype}>"

    def __str__(self) -> str:
        """Say what to write as well: SciPy's errors show what they were given in this way."""
        plain = "SciPy takes its .tocsr() or .tocsc()"
        return f"{repr(self)[:-1]}; {'fad.scipy.sparse.linalg solves with it' if self._is_traced() else plain}>"

    def _is_traced(self) -> bool:
        return type(self.data) is not np.ndarray

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("data", "pattern") or not hasattr(scipy.sparse.csr_array, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if self._is_traced():
            raise AttributeError(f"{name!r} of a sparse array is SciPy's: {_TRACED}")
        return getattr(self.tocsr(), name)

    def __array__(self, *_: Any, **__: Any) -> Any:
        if sys._getframe(1).f_code in LEAVING:
            return np.array(None)  # of an object: SciPy leaves its product to this class
        if self._is_traced():
            raise TracerConversionError(f"SciPy takes no sparse array of traced entries: {_SOLVE}")
        raise TypeError(
            "a sparse array is not made dense by itself: write a.toarray() for a dense array, and a.tocsr() or "
            "a.tocsc() for what SciPy's functions take"
        )

    @property
    def shape(self) -> tuple:
        return self.pattern.shape

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def nnz(self) -> int:
        return self.pattern.rows.size

    @property
    def indptr(self) -> Any:
        """Where each row begins in `data` and `indices`, and where the last one ends."""
        return self._by_rows().indptr.copy()

    @property
    def indices(self) -> Any:
        """The column of each entry."""
        return self._by_rows().columns.copy()

    def _by_rows(self) -> Pattern:
        if self.pattern.order is not None:
            raise ValueError("the entries of this sparse array are not in the order of rows: write a.tocsr()")
        return self.pattern

    @property
    def T(self) -> SparseArray:
        """The transposed matrix."""
        return SparseArray(self.data, self.pattern.transpose())

    def conj(self) -> SparseArray:
        """Return the complex conjugate."""
        return SparseArray(np.conj(self.data), self.pattern)

    def toarray(self) -> Any:
        """Return the dense matrix."""
        zero = np.zeros_like(self.data, shape=self.shape)
        return at(zero)[self.pattern.rows, self.pattern.columns].add(self.data)

    todense = toarray

    def tocsr(self) -> Any:
        """Return SciPy's matrix of these entries; traced ones in the order of rows, those at one place added up."""
        return self._sort_by_rows() if type(self.data) is Tracer else self.pattern.matrix(self.data)

    def tocsc(self) -> Any:
        """Return SciPy's matrix by columns; traced entries in that order, those at one place added up."""
        return self.T.tocsr().T

    def tocoo(self) -> Any:
        """Return SciPy's matrix of places and entries; traced entries as they are."""
        return self if type(self.data) is Tracer else self.tocsr().tocoo()

    def copy(self) -> SparseArray:
        """Return a sparse array with entries of its own."""
        return SparseArray(self.data.copy(), self.pattern)

    def _sort_by_rows(self) -> SparseArray:
        places = self.pattern.rows * np.int64(self.shape[1]) + self.pattern.columns
        if np.all(places[1:] > places[:-1]):
            return self
        kept, inverse = np.unique(places, return_inverse=True)
        data = at(np.zeros_like(self.data, shape=kept.shape))[inverse].add(self.data)
        return SparseArray(data, Pattern(*np.divmod(kept, self.shape[1]), self.shape))

    def __getitem__(self, key: Any) -> Any:
        """Return what SciPy's matrix gives at an index: a part of the matrix, or one entry."""
        a = self._sort_by_rows()
        numbers = a.pattern.matrix(np.arange(1, a.nnz + 1))[key]  # which entries are there; 0 where none is
        if not scipy.sparse.issparse(numbers):
            return pick(a.data, (numbers - 1,)) if numbers else np.zeros_like(a.data, shape=())
        numbers = numbers.tocoo()
        if numbers.ndim == 1:
            raise TypeError("a row or column of a sparse array of traced entries is a matrix: write a[i : i + 1]")
        rows, columns = numbers.coords
        return SparseArray(pick(a.data, (numbers.data - 1,)), Pattern(rows, columns, numbers.shape))

    def matvec(self, x: Any) -> Any:
        """Return the product with a vector, as SciPy's iterative solvers ask for it."""
        return self @ x

    def rmatvec(self, x: Any) -> Any:
        """Return the product of the conjugate transposed matrix with a vector."""
        return self.conj().T @ x

    def diagonal(self) -> Any:
        """Return the main diagonal."""
        on = self.pattern.rows == self.pattern.columns
        zero = np.zeros_like(self.data, shape=(min(self.shape),))
        return at(zero)[self.pattern.rows[on]].add(pick(self.data, (np.nonzero(on)[0],)))

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum of all entries, or over the rows (axis 0) or columns (axis 1)."""
        if axis is None:
            return np.sum(self.data)
        places = self.pattern.columns if axis in (0, -2) else self.pattern.rows
        zero = np.zeros_like(self.data, shape=(self.shape[1 if axis in (0, -2) else 0],))
        return at(zero)[places].add(self.data)

    def _times(self, x: Any, transposed: bool) -> Any:
        x = as_array(x)
        inner = self.shape[0 if transposed else 1]
        if x.ndim not in (1, 2) or x.shape[0] != inner:
            raise ValueError(f"a sparse array of shape {self.shape} cannot be multiplied with one of shape {x.shape}")
        columns = x if x.ndim == 2 else x[:, None]
        y = bind(sparse_matmul_p, self.data, columns, pattern=self.pattern, transposed=transposed)
        return y if x.ndim == 2 else y[:, 0]

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseArray) or scipy.sparse.issparse(other):
            return self._times_sparse(from_scipy(other)._sort_by_rows())
        return self._times(other, False)

    dot = __matmul__

    def _times_sparse(self, other: SparseArray) -> SparseArray:
        """Multiply each entry with those of the row of the other matrix that its column names; add up what meets."""
        if self.shape[1] != other.shape[0]:
            raise ValueError(f"a sparse array of shape {self.shape} cannot be multiplied with one of {other.shape}")
        begins, met = other.pattern.indptr[self.pattern.columns], np.diff(other.pattern.indptr)[self.pattern.columns]
        left = np.repeat(np.arange(self.nnz), met)
        right = np.arange(left.size) + np.repeat(begins - (np.cumsum(met) - met), met)
        pattern = Pattern(self.pattern.rows[left], other.pattern.columns[right], (self.shape[0], other.shape[1]))
        return SparseArray(pick(self.data, (left,)) * pick(other.data, (right,)), pattern)._sort_by_rows()

    def __rmatmul__(self, other: Any) -> Any:
        if scipy.sparse.issparse(other):
            return from_scipy(other) @ self
        other = as_array(other)
        return self._times(other, True) if other.ndim == 1 else self._times(other.T, True).T

    def __mul__(self, factor: Any) -> SparseArray:
        if np.ndim(factor):
            raise ValueError("a sparse array is multiplied by numbers; for a product with an array write a @ x")
        return SparseArray(self.data * factor, self.pattern)

    __rmul__ = __mul__

    def multiply(self, other: Any) -> SparseArray:
        """Return the entries times those of a number, a dense array that broadcasts, or a sparse matrix."""
        if isinstance(other, SparseArray) or scipy.sparse.issparse(other):
            return self._multiply_sparse(from_scipy(other))
        other = as_array(other)
        if not other.ndim:
            return self * other
        factors = np.broadcast_to(other, self.shape)
        return SparseArray(self.data * pick(factors, (self.pattern.rows, self.pattern.columns)), self.pattern)

    def _multiply_sparse(self, other: SparseArray) -> SparseArray:
        if other.shape != self.shape:
            raise ValueError(f"sparse arrays of the shapes {self.shape} and {other.shape} cannot be multiplied")
        a, b = self._sort_by_rows(), other._sort_by_rows()
        here, there = (x.pattern.rows * np.int64(self.shape[1]) + x.pattern.columns for x in (a, b))
        _, left, right = np.intersect1d(here, there, assume_unique=True, return_indices=True)
        pattern = Pattern(a.pattern.rows[left], a.pattern.columns[left], self.shape)
        return SparseArray(pick(a.data, (left,)) * pick(b.data, (right,)), pattern)

    def power(self, n: Any) -> SparseArray:
        """Return the powers of the entries."""
        a = self._sort_by_rows()
        return SparseArray(a.data**n, a.pattern)

    def __abs__(self) -> SparseArray:
        a = self._sort_by_rows()
        return SparseArray(np.abs(a.data), a.pattern)

    def __truediv__(self, divisor: Any) -> SparseArray:
        return self * (1.0 / divisor)

    def __neg__(self) -> SparseArray:
        return SparseArray(-self.data, self.pattern)

    def __add__(self, other: Any) -> SparseArray:
        other = from_scipy(other) if scipy.sparse.issparse(other) else other
        if not isinstance(other, SparseArray) or other.shape != self.shape:
            raise ValueError("a sparse array is added to a sparse array of the same shape; or write a.toarray() + b")
        if other.pattern is self.pattern:
            return SparseArray(self.data + other.data, self.pattern)
        rows, columns = (
            np.concatenate([getattr(self.pattern, k), getattr(other.pattern, k)]) for k in ("rows", "columns")
        )
        return SparseArray(np.concatenate([self.data, other.data]), Pattern(rows, columns, self.shape))

    __radd__ = __add__

    def __sub__(self, other: Any) -> SparseArray:
        return self + (-other)

    def __rsub__(self, other: Any) -> SparseArray:
        return -self + other


tree.register_node(SparseArray, lambda a: ((a.data,), a.pattern), lambda pattern, data: SparseArray(data[0], pattern))


def _floating(data: Any) -> Any:
    data = as_array(data)
    return data if data.dtype.kind in "fc" else data.astype(float)


def from_scipy(matrix: Any) -> SparseArray:
    """Return a SciPy sparse matrix as a `SparseArray`; one of these as it is.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        In any format.

    Returns
    -------
    SparseArray

    Raises
    ------
    TypeError
        if the argument is no sparse matrix.

    Examples
    --------
    >>> import scipy.sparse
    >>> from fad.scipy.sparse import from_scipy
    >>> from_scipy(scipy.sparse.eye_array(3))
    <fad sparse array of shape (3, 3), 3 entries of dtype float64>
    """
    if isinstance(matrix, SparseArray):
        return matrix
    if not scipy.sparse.issparse(matrix) or matrix.ndim != 2:
        raise TypeError(f"a sparse matrix was expected, not {type(matrix).__name__}")
    matrix = matrix.tocsr()
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return SparseArray(_floating(matrix.data), Pattern(rows, matrix.indices, matrix.shape, matrix.indptr))


def issparse(x: Any) -> bool:
    """Return whether a value is a sparse matrix: SciPy's, or a `SparseArray`.

    Parameters
    ----------
    x : any value

    Returns
    -------
    bool

    Examples
    --------
    >>> fad.scipy.sparse.issparse(fad.scipy.sparse.diags(np.ones(2))), fad.scipy.sparse.issparse(np.eye(2))
    (True, False)
    """
    return isinstance(x, SparseArray) or scipy.sparse.issparse(x)


def _shape(shape: Any, rows: Any, columns: Any) -> tuple:
    if shape is not None:
        return tuple(shape)
    return (int(rows.max()) + 1, int(columns.max()) + 1) if rows.size else (0, 0)


def _check(data: Any, rows: Any, columns: Any, shape: tuple, indptr: Any = None) -> SparseArray:
    if data.ndim != 1 or data.shape[0] != rows.size or rows.size != columns.size:
        raise ValueError("row, column, and data arrays must be vectors of the same length")
    for name, places, n in (("row", rows, shape[0]), ("column", columns, shape[1])):
        if places.size and (places.min() < 0 or places.max() >= n):
            raise ValueError(f"a {name} index lies outside of the shape {shape}")
    return SparseArray(data, Pattern(rows, columns, shape, indptr))


def _compress(given: Any, shape: Any, by_rows: bool) -> SparseArray:
    data, indices, indptr = given
    data, indices, indptr = _floating(data), np.asarray(indices), np.asarray(indptr)
    if indptr.ndim != 1 or indptr[0] != 0 or indptr[-1] != indices.size or np.any(np.diff(indptr) < 0):
        raise ValueError("indptr must begin with 0, never decrease, and end with the number of entries")
    outer = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    if by_rows:
        shape = (indptr.size - 1, _shape(shape, outer, indices)[1]) if shape is None else tuple(shape)
        if shape[0] != indptr.size - 1:
            raise ValueError(f"index pointer size {indptr.size} should be {shape[0] + 1}")
        return _check(data, outer, indices, shape, indptr)
    shape = (_shape(shape, indices, outer)[0], indptr.size - 1) if shape is None else tuple(shape)
    if shape[1] != indptr.size - 1:
        raise ValueError(f"index pointer size {indptr.size} should be {shape[1] + 1}")
    return _check(data, indices, outer, shape)


def _make(given: Any, shape: Any, by_rows: bool | None) -> SparseArray:
    if isinstance(given, SparseArray) or scipy.sparse.issparse(given):
        return from_scipy(given)
    if type(given) is tuple and len(given) == 3 and by_rows is not None:
        return _compress(given, shape, by_rows)
    if type(given) is tuple and len(given) == 2 and isinstance(given[1], (tuple, list)):
        data, (rows, columns) = given
        rows, columns = np.asarray(rows), np.asarray(columns)
        return _check(_floating(data), rows, columns, _shape(shape, rows, columns))
    if type(given) is Tracer:
        raise TypeError(
            "the places of a sparse array's entries are constant, and cannot be read off a traced dense array: "
            "give its entries and their places, (data, (rows, columns))"
        )
    return from_scipy(scipy.sparse.csr_array(np.asarray(given)))


def csr_array(arg1: Any, shape: Any = None) -> SparseArray:
    """Return a sparse array from ``(data, indices, indptr)``, ``(data, (rows, columns))``, or a plain matrix.

    `data` may be traced; the places of the entries are constants. Entries at one place add up.

    Parameters
    ----------
    arg1 : tuple, matrix or array
        ``(data, indices, indptr)``, or what scipy.sparse takes.
    shape : (int, int)
        Of the matrix; by default as large as the places need.

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
    return _make(arg1, shape, True)


def csc_array(arg1: Any, shape: Any = None) -> SparseArray:
    """Return a sparse array from ``(data, indices, indptr)`` by columns, ``(data, (rows, columns))``, or a matrix.

    Parameters
    ----------
    arg1 : tuple, matrix or array
        ``(data, indices, indptr)``, or what scipy.sparse takes.
    shape : (int, int)
        Of the matrix; by default as large as the places need.

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
    return _make(arg1, shape, False)


def coo_array(arg1: Any, shape: Any = None) -> SparseArray:
    """Return a sparse array from ``(data, (rows, columns))``, or a plain matrix.

    Parameters
    ----------
    arg1 : tuple, matrix or array
        ``(data, (rows, columns))``, or what scipy.sparse takes.
    shape : (int, int)
        Of the matrix; by default as large as the places need.

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
    return _make(arg1, shape, None)


def matmul(a: Any, b: Any) -> Any:
    """Multiply a sparse matrix, SciPy's or one of these, with a dense array, on either side: ``a @ b``.

    Parameters
    ----------
    a, b : SparseArray or array
        Shapes (m, n) and (n,) or (n, k), or the other way round.

    Returns
    -------
    array

    Raises
    ------
    TypeError
        if neither operand is a sparse matrix.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, fad
    >>> a = scipy.sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
    >>> fad.grad(lambda x: np.sum(fad.scipy.sparse.matmul(a, x)))(np.ones(2))
    array([3., 3.])
    """
    if isinstance(a, SparseArray) or scipy.sparse.issparse(a):
        return from_scipy(a) @ b
    if isinstance(b, SparseArray) or scipy.sparse.issparse(b):
        return from_scipy(b).__rmatmul__(a)
    raise TypeError("one operand of fad.scipy.sparse.matmul must be a sparse matrix; for dense ones write a @ b")
