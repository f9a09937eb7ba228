"""Sparse matrices whose entries may be traced: their places are constant, their products with dense arrays linear."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np
import scipy.sparse

from fad import tree
from fad.core.tracing.tracer import LEAVING, Tracer, bind
from fad.errors import TracerConversionError
from fad.ops.arrangement.structural import as_array
from fad.ops.places.indexing import pick
from fad.ops.places.taking import at
from fad.scipy.sparse.entries import Entries, make_floating
from fad.scipy.sparse.products import Pattern, sparse_matmul_p

# --- the matrix -----------------------------------------------------------------------------------------------------


_SOLVE = (
    "fad.scipy.sparse.linalg solves with it, spsolve(a, b); multiply with a @ x, make it dense with a.toarray(), or "
    "return it from the transformed function and use SciPy outside"
)
_TRACED = f"the entries of this sparse array are traced, which SciPy's matrices cannot hold. {_SOLVE}"


class SparseArray(Entries):
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

    def __repr__(self) -> str:
        return f"<fad sparse array of shape {self.shape}, {self.nnz} entries of dtype {self.dtype}>"

    def __str__(self) -> str:
        """Say what to write as well: SciPy's errors show what they were given in this way."""
        plain = "SciPy takes its .tocsr() or .tocsc()"
        return f"{repr(self)[:-1]}; {'fad.scipy.sparse.linalg solves with it' if self._is_traced() else plain}>"

    def _is_traced(self) -> bool:
        return type(self.data) is not np.ndarray

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("data", "pattern") or not hasattr(self._kind, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if self._is_traced():
            raise AttributeError(f"{name!r} of a sparse array is SciPy's: {_TRACED}")
        return getattr(self.tocsr(), name)

    _kind = scipy.sparse.csr_array

    def _in_scipys_class(self, matrix: Any) -> Any:
        return matrix if isinstance(matrix, self._kind) else self._kind(matrix)

    def __array__(self, *_: Any, **__: Any) -> Any:
        if sys._getframe(1).f_code in LEAVING:
            return np.array(None)  # of an object: SciPy leaves its product to this class
        if self._is_traced():
            raise TracerConversionError(f"SciPy takes no sparse array of traced entries: {_SOLVE}")
        raise TypeError(
            "a sparse array is not made dense by itself: write a.toarray() for a dense array, and a.tocsr() or "
            "a.tocsc() for what SciPy's functions take"
        )

    # --- other forms ------------------------------------------------------------------------------------------------

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """Return the dense matrix."""
        if out is not None:
            raise NotImplementedError("a sparse array of traced entries is not written into out: x[...] = a.toarray()")
        zero = np.zeros_like(self.data, shape=self.shape)
        return at(zero)[self.pattern.rows, self.pattern.columns].add(self.data)

    todense = toarray

    def tocsr(self, copy: bool = False) -> Any:
        """Return SciPy's matrix of these entries; traced ones in the order of rows, those at one place added up."""
        if type(self.data) is not Tracer:
            return self._in_scipys_class(self.pattern.matrix(self.data).copy())  # SciPy sums entries up in place
        a = self._sort_by_rows()
        return self._like(a.data, a.pattern) if copy or (a is self and self.format != "csr") else a

    def tocsc(self, copy: bool = False) -> Any:
        """Return SciPy's matrix by columns; traced entries in that order, those at one place added up."""
        if type(self.data) is not Tracer:
            return self.tocsr().tocsc()
        return self if self.format == "csc" and not copy else self._turn().tocsr(True)._turn()

    def tocoo(self, copy: bool = True) -> Any:
        """Return SciPy's matrix of places and entries; traced entries as they are."""
        return self._in_form("coo") if type(self.data) is Tracer else self.tocsr().tocoo()

    def _in_form(self, form: str) -> SparseArray:
        made = self._like(self.data, self.pattern)
        made.format = form
        return made

    def asformat(self, format: Any, copy: bool = False) -> Any:
        """Return the matrix in one of SciPy's forms: traced entries have the order that SciPy's have there."""
        if type(self.data) is not Tracer:
            return self.tocsr().asformat(format)
        if format in ("csr", "csc", None):
            return self if format is None else getattr(self, f"to{format}")(copy)
        return self._sort_by_rows()._in_form(format) if format != "coo" else self.tocoo()

    def tolil(self, copy: bool = False) -> Any:
        """Return the matrix in a form that is written: traced entries are written in any."""
        return self.asformat("lil")

    def todok(self, copy: bool = False) -> Any:
        """Return the matrix in a form that is written: traced entries are written in any."""
        return self.asformat("dok")

    def todia(self, copy: bool = False) -> Any:
        """Return the matrix; traced entries have one form."""
        return self.asformat("dia")

    def tobsr(self, blocksize: Any = None, copy: bool = True) -> Any:
        """Return the matrix; traced entries have one form."""
        return self.asformat("bsr")

    # --- products ---------------------------------------------------------------------------------------------------

    def matvec(self, x: Any) -> Any:
        """Return the product with a vector, as SciPy's iterative solvers ask for it."""
        return self @ x

    def rmatvec(self, x: Any) -> Any:
        """Return the product of the conjugate transposed matrix with a vector."""
        return self.conj().T @ x

    def _times(self, x: Any, transposed: bool) -> Any:
        x = as_array(x)
        inner = self.shape[0 if transposed else 1]
        if x.ndim not in (1, 2) or x.shape[0] != inner:
            raise ValueError(f"a sparse array of shape {self.shape} cannot be multiplied with one of shape {x.shape}")
        columns = x if x.ndim == 2 else x[:, None]
        y = bind(sparse_matmul_p, self.data, columns, pattern=self.pattern, transposed=transposed)
        return y if x.ndim == 2 else y[:, 0]

    def __matmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return self._times_sparse(from_scipy(other)._sort_by_rows())
        return self._times(other, False)

    def dot(self, other: Any) -> Any:
        """Return the product with a number, a dense array or a sparse matrix."""
        return self @ other if is_sparse(other) or np.ndim(other) else self._scale(other)

    def _times_sparse(self, other: SparseArray) -> SparseArray:
        """Multiply each entry with those of the row of the other matrix that its column names; add up what meets."""
        if self.shape[1] != other.shape[0]:
            raise ValueError(f"a sparse array of shape {self.shape} cannot be multiplied with one of {other.shape}")
        begins, met = other.pattern.indptr[self.pattern.columns], np.diff(other.pattern.indptr)[self.pattern.columns]
        left = np.repeat(np.arange(self.nnz), met)
        right = np.arange(left.size) + np.repeat(begins - (np.cumsum(met) - met), met)
        pattern = Pattern(self.pattern.rows[left], other.pattern.columns[right], (self.shape[0], other.shape[1]))
        return self._like(pick(self.data, (left,)) * pick(other.data, (right,)), pattern)._sort_by_rows()

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return from_scipy(other) @ self
        other = as_array(other)
        return self._times(other, True) if other.ndim == 1 else self._times(other.T, True).T

    def _scale(self, factor: Any) -> SparseArray:
        return self._like(self.data * factor, self.pattern)

    def __mul__(self, factor: Any) -> Any:
        return self.multiply(factor)

    __rmul__ = __mul__

    def multiply(self, other: Any) -> SparseArray:
        """Return the entries times those of a number, a dense array that broadcasts, or a sparse matrix."""
        if is_sparse(other):
            return self._multiply_sparse(from_scipy(other))
        other = as_array(other)
        if not other.ndim:
            return self._scale(other)
        if np.broadcast_shapes(other.shape, self.shape) != self.shape:
            raise ValueError(f"a sparse array of shape {self.shape} cannot be multiplied by one of shape {other.shape}")
        factors = np.broadcast_to(other, self.shape)
        return self._like(self.data * pick(factors, (self.pattern.rows, self.pattern.columns)), self.pattern)

    def _multiply_sparse(self, other: SparseArray) -> SparseArray:
        if other.shape != self.shape:
            return self.multiply(other.toarray()) if 1 in other.shape else other.multiply(self.toarray())
        a, b = self._sort_by_rows(), other._sort_by_rows()
        here, there = a.pattern.find_places(), b.pattern.find_places()
        _, left, right = np.intersect1d(here, there, assume_unique=True, return_indices=True)
        pattern = Pattern(a.pattern.rows[left], a.pattern.columns[left], self.shape)
        return self._like(pick(a.data, (left,)) * pick(b.data, (right,)), pattern)

    def __truediv__(self, divisor: Any) -> Any:
        if is_sparse(divisor):
            raise NotImplementedError("a quotient of sparse matrices is dense: write a.toarray() / b.toarray()")
        return self.multiply(1.0 / divisor)

    def __pow__(self, n: Any) -> Any:
        return self.power(n)

    # --- sums -------------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if not is_sparse(other):
            return self._add_dense(as_array(other), self)
        other = from_scipy(other)
        if other.shape != self.shape:
            raise ValueError(f"sparse arrays of the shapes {self.shape} and {other.shape} cannot be added")
        if other.pattern is self.pattern:
            return self._like(self.data + other.data, self.pattern)
        rows, columns = (
            np.concatenate([getattr(self.pattern, k), getattr(other.pattern, k)]) for k in ("rows", "columns")
        )
        return self._like(np.concatenate([self.data, other.data]), Pattern(rows, columns, self.shape))

    __radd__ = __add__

    def _add_dense(self, other: Any, sparse: SparseArray) -> Any:
        """Return the dense sum with an array; 0 is added as Python's sum begins with it."""
        if not other.ndim:
            if type(other) is not Tracer and not other:
                return sparse.copy()
            raise NotImplementedError(
                "adding a nonzero scalar to a sparse array is not supported: it is dense, write a.toarray() + b"
            )
        return sparse.toarray() + np.broadcast_to(other, self.shape)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def maximum(self, other: Any) -> Any:
        """Return the greater of the elements and those of a number, a dense array or a sparse matrix."""
        return self._choose_of_two(np.maximum, other)

    def minimum(self, other: Any) -> Any:
        """Return the less of the elements and those of a number, a dense array or a sparse matrix."""
        return self._choose_of_two(np.minimum, other)

    def _choose_of_two(self, choice: Any, other: Any) -> Any:
        if not is_sparse(other):
            other = as_array(other)
            if other.ndim:
                return choice(self.toarray(), other)
            if type(other) is not Tracer and choice(0, other) == 0:
                a = self._sort_by_rows()
                return self._like(choice(a.data, other), a.pattern)
            rows, columns = (places.ravel() for places in np.indices(self.shape))
            return self._like(choice(self.toarray(), other).ravel(), Pattern(rows, columns, self.shape))
        other = from_scipy(other)
        both = (abs(self) + abs(other))._sort_by_rows()  # the places of either
        ours, theirs = (pick(x.toarray(), (both.pattern.rows, both.pattern.columns)) for x in (self, other))
        return self._like(choice(ours, theirs), both.pattern)


class SparseMatrix(SparseArray):
    """A sparse matrix of SciPy's older classes, ``csr_matrix`` and the like, whose entries may be traced.

    As there, ``a * x`` is the product of matrices, ``a**2`` too, and sums along an axis keep both axes.
    """

    _kind = scipy.sparse.csr_matrix

    def __mul__(self, other: Any) -> Any:
        return self.dot(other)

    def __rmul__(self, other: Any) -> Any:
        return other @ self if is_sparse(other) or np.ndim(other) else self._scale(other)

    def __pow__(self, n: Any) -> Any:
        n = operator.index(n)
        if n < 0 or self.shape[0] != self.shape[1]:
            raise ValueError("a matrix has powers if it is square, and the exponent is 0 or greater")
        power: Any = from_scipy(scipy.sparse.eye(self.shape[0], dtype=self.dtype))
        for _ in range(n):
            power = power @ self
        return power

    def _turn_sum(self, sums: Any, over_rows: bool) -> Any:
        return sums[None, :] if over_rows else sums[:, None]

    def getH(self) -> SparseMatrix:
        """Return the conjugate transposed matrix."""
        return self.conj().T

    def getrow(self, i: int) -> Any:
        """Return one row, as a matrix."""
        return self[[i], :]

    def getcol(self, j: int) -> Any:
        """Return one column, as a matrix."""
        return self[:, [j]]


for _class in (SparseArray, SparseMatrix):
    tree.register_node(
        _class, lambda a: ((a.data,), (type(a), a.pattern)), lambda parts, data: parts[0](data[0], parts[1])
    )


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
    kind = SparseMatrix if isinstance(matrix, scipy.sparse.spmatrix) else SparseArray
    matrix = matrix.tocsr()
    if isinstance(matrix, SparseArray):  # what stands for a matrix has been written
        return matrix
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return kind(make_floating(matrix.data), Pattern(rows, matrix.indices, matrix.shape, matrix.indptr))


def is_sparse(x: Any) -> bool:
    """Return whether a value is a sparse matrix: SciPy's, or one of these."""
    return isinstance(x, SparseArray) or scipy.sparse.issparse(x)


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
    return is_sparse(x)


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
    if is_sparse(a):
        return from_scipy(a) @ b
    if is_sparse(b):
        return from_scipy(b).__rmatmul__(a)
    raise TypeError("one operand of fad.scipy.sparse.matmul must be a sparse matrix; for dense ones write a @ b")
