"""Sparse matrices made of sparse matrices whose entries may be traced: blocks, Kronecker products, triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.ops.arrangement.structural import as_array
from fad.ops.places.indexing import pick
from fad.scipy.sparse.array import SparseArray, SparseMatrix, from_scipy, is_sparse
from fad.scipy.sparse.construct import diags as make_diagonals
from fad.scipy.sparse.entries import make_floating
from fad.scipy.sparse.products import Pattern


def _as_sparse(block: Any) -> SparseArray:
    """Return a block as a sparse array: a sparse matrix, or a dense one, of which every entry is kept."""
    if is_sparse(block):
        return from_scipy(block)
    dense = np.atleast_2d(make_floating(block))
    rows, columns = (places.ravel() for places in np.indices(dense.shape))
    return SparseMatrix(dense.ravel(), Pattern(rows, columns, dense.shape))


def _kind_of(*made: Any) -> type[SparseArray]:
    """Return the class of what is composed of matrices: SciPy's older one, where no part is a sparse array."""
    return SparseArray if any(type(a) is SparseArray for a in made) else SparseMatrix


def block_array(blocks: Any, *, format: Any = None, dtype: Any = None) -> SparseArray:
    """Return a sparse array of blocks, whose entries may be traced.

    Parameters
    ----------
    blocks : list of lists of matrices
        None stands for zeros.
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
        if blocks beside each other differ in height, or above each other in width, or nothing says how large one is.

    Examples
    --------
    >>> import numpy as np
    >>> from fad.scipy.sparse import block_array, diags
    >>> d = diags(np.array([2.0]))
    >>> block_array([[d, None], [d, d]]).toarray()
    array([[2., 0.],
           [2., 2.]])
    """
    return _compose(blocks, dtype, SparseArray)


def _compose(blocks: Any, dtype: Any, kind: type[SparseArray] | None = None) -> SparseArray:
    made = [[None if block is None else _as_sparse(block) for block in row] for row in blocks]
    heights = [_find_length(row, 0, f"blocks[{i},:]") for i, row in enumerate(made)]
    widths = [_find_length(column, 1, f"blocks[:,{j}]") for j, column in enumerate(zip(*made, strict=True))]
    below, right = np.cumsum([0, *heights]), np.cumsum([0, *widths])
    rows, columns, data = [], [], []
    for i, row in enumerate(made):
        for j, block in enumerate(row):
            if block is not None:
                rows.append(block.pattern.rows + below[i])
                columns.append(block.pattern.columns + right[j])
                data.append(block.data)
    entries = np.concatenate(data)
    entries = entries if dtype is None else entries.astype(dtype)
    kind = kind or _kind_of(*[block for row in made for block in row])
    return kind(entries, Pattern(np.concatenate(rows), np.concatenate(columns), (below[-1], right[-1])))


def _find_length(blocks: Any, axis: int, where: str) -> int:
    """Return the length that blocks have in common along an axis."""
    lengths = {block.shape[axis] for block in blocks if block is not None}
    if len(lengths) != 1:
        problem = "has incompatible dimensions" if lengths else "is all None, so that nothing says how large it is"
        raise ValueError(f"{where} {problem}")
    return lengths.pop()


def bmat(blocks: Any, format: Any = None, dtype: Any = None) -> SparseArray:
    """Return a sparse array of blocks, as `block_array` does.

    Parameters
    ----------
    blocks : list of lists of matrices
        None stands for zeros.
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
        if the blocks do not fit.

    Examples
    --------
    >>> import numpy as np, fad
    >>> d = fad.scipy.sparse.diags(np.array([2.0]))
    >>> fad.scipy.sparse.bmat([[d, d]]).toarray()
    array([[2., 2.]])
    """
    return _compose(blocks, dtype)


def vstack(blocks: Any, format: Any = None, dtype: Any = None) -> SparseArray:
    """Return sparse matrices one below the other.

    Parameters
    ----------
    blocks : list of matrices
        Of one width.
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
        if the widths differ.

    Examples
    --------
    >>> import numpy as np, fad
    >>> d = fad.scipy.sparse.diags(np.array([2.0]))
    >>> fad.scipy.sparse.vstack([d, 2 * d]).toarray()
    array([[2.],
           [4.]])
    """
    return _compose([[block] for block in blocks], dtype)


def hstack(blocks: Any, format: Any = None, dtype: Any = None) -> SparseArray:
    """Return sparse matrices side by side.

    Parameters
    ----------
    blocks : list of matrices
        Of one height.
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
        if the heights differ.

    Examples
    --------
    >>> import numpy as np, fad
    >>> d = fad.scipy.sparse.diags(np.array([2.0]))
    >>> fad.scipy.sparse.hstack([d, 2 * d]).toarray()
    array([[2., 4.]])
    """
    return _compose([list(blocks)], dtype)


def block_diag(mats: Any, format: Any = None, dtype: Any = None) -> SparseArray:
    """Return sparse matrices along the diagonal of one.

    Parameters
    ----------
    mats : list of matrices, arrays or numbers
        The blocks.
    format : str
        Ignored: a `SparseArray` has one form.
    dtype : dtype
        Of the entries.

    Returns
    -------
    SparseArray

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.scipy.sparse.block_diag([fad.scipy.sparse.diags(np.array([2.0])), np.ones((1, 2))]).toarray()
    array([[2., 0., 0.],
           [0., 1., 1.]])
    """
    made = list(mats)
    return _compose([[m if i == j else None for j in range(len(made))] for i, m in enumerate(made)], dtype)


def kron(A: Any, B: Any, format: Any = None) -> SparseArray:
    """Return the Kronecker product of two sparse matrices.

    Parameters
    ----------
    A, B : matrices
        Of any shapes.
    format : str
        Ignored: a `SparseArray` has one form.

    Returns
    -------
    SparseArray

    Examples
    --------
    >>> import numpy as np, fad
    >>> d = fad.scipy.sparse.diags(np.array([2.0, 3.0]))
    >>> fad.scipy.sparse.kron(d, np.ones((1, 2))).toarray()
    array([[2., 2., 0., 0.],
           [0., 0., 3., 3.]])
    """
    a, b = _as_sparse(A), _as_sparse(B)
    left, right = np.repeat(np.arange(a.nnz), b.nnz), np.tile(np.arange(b.nnz), a.nnz)
    rows = a.pattern.rows[left].astype(np.int64) * b.shape[0] + b.pattern.rows[right]
    columns = a.pattern.columns[left].astype(np.int64) * b.shape[1] + b.pattern.columns[right]
    shape = (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    return _kind_of(a, b)(pick(a.data, (left,)) * pick(b.data, (right,)), Pattern(rows, columns, shape))


def kronsum(A: Any, B: Any, format: Any = None) -> SparseArray:
    """Return the Kronecker sum of two square sparse matrices, ``kron(I, A) + kron(B, I)``.

    Parameters
    ----------
    A, B : matrices
        Square.
    format : str
        Ignored: a `SparseArray` has one form.

    Returns
    -------
    SparseArray

    Raises
    ------
    ValueError
        if a matrix is not square.

    Examples
    --------
    >>> import numpy as np, fad
    >>> d = fad.scipy.sparse.diags(np.array([2.0, 3.0]))
    >>> fad.scipy.sparse.kronsum(d, d).diagonal()
    array([4., 5., 5., 6.])
    """
    a, b = _as_sparse(A), _as_sparse(B)
    if a.shape[0] != a.shape[1] or b.shape[0] != b.shape[1]:
        raise ValueError(f"kronsum takes square matrices, not those of the shapes {a.shape} and {b.shape}")
    eyes = [_kind_of(a, b)(np.ones(n), Pattern(np.arange(n), np.arange(n), (n, n))) for n in (a.shape[0], b.shape[0])]
    return kron(eyes[1], a) + kron(b, eyes[0])


def tril(A: Any, k: int = 0, format: Any = None) -> SparseArray:
    """Return what lies on the k-th diagonal of a sparse matrix and below.

    Parameters
    ----------
    A : matrix
        Of any shape.
    k : int
        The diagonal; 0 is the main one.
    format : str
        Ignored: a `SparseArray` has one form.

    Returns
    -------
    SparseArray

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.scipy.sparse.tril(np.ones((2, 2))).toarray()
    array([[1., 0.],
           [1., 1.]])
    """
    a = _as_sparse(A)
    return _keep(a, a.pattern.columns <= a.pattern.rows + k)


def triu(A: Any, k: int = 0, format: Any = None) -> SparseArray:
    """Return what lies on the k-th diagonal of a sparse matrix and above.

    Parameters
    ----------
    A : matrix
        Of any shape.
    k : int
        The diagonal; 0 is the main one.
    format : str
        Ignored: a `SparseArray` has one form.

    Returns
    -------
    SparseArray

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.scipy.sparse.triu(np.ones((2, 2))).toarray()
    array([[1., 1.],
           [0., 1.]])
    """
    a = _as_sparse(A)
    return _keep(a, a.pattern.columns >= a.pattern.rows + k)


def _keep(a: SparseArray, there: Any) -> SparseArray:
    (kept,) = np.nonzero(there)
    return type(a)(pick(a.data, (kept,)), Pattern(a.pattern.rows[kept], a.pattern.columns[kept], a.shape))


def spdiags(data: Any, diags: Any, m: Any = None, n: int | None = None, format: Any = None) -> SparseArray:
    """Return a sparse array from its diagonals, of which row i of `data` has the entries by their columns.

    Parameters
    ----------
    data : array (k, n)
        The entries, which may be traced.
    diags : array (k,)
        Where each diagonal lies.
    m, n : int
        The shape of the matrix; a tuple as `m` is both.
    format : str
        Ignored: a `SparseArray` has one form.

    Returns
    -------
    SparseArray

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.scipy.sparse.spdiags(np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 1], 2, 2).toarray()
    array([[1., 4.],
           [0., 2.]])
    """
    entries = np.atleast_2d(as_array(data))
    offsets = [int(k) for k in np.atleast_1d(diags)]
    shape = (len(entries[0]),) * 2 if m is None else m if n is None else (m, n)
    made = []
    for row, k in zip(entries, offsets, strict=True):
        start = max(k, 0)
        stop = min(shape[0] + k, shape[1], row.shape[0])
        filled = row[start:stop]
        length = min(shape[0] + min(k, 0), shape[1] - start)
        made.append(np.concatenate([filled, 0.0 * row[: length - filled.shape[0]]]))
    return make_diagonals(made, offsets, shape)


def find(A: Any) -> tuple:
    """Return the rows, the columns and the values of a sparse matrix's entries; those at one place are added up.

    Parameters
    ----------
    A : matrix
        Of any shape.

    Returns
    -------
    (rows, columns, values) : arrays (nnz,)
        Ordered by rows. Entries that are 0 are there, where they are traced.

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.scipy.sparse.find(fad.scipy.sparse.diags(np.array([2.0, 3.0])))
    (array([0, 1]), array([0, 1]), array([2., 3.]))
    """
    a = _as_sparse(A)._sort_by_rows()
    return a.pattern.rows, a.pattern.columns, a.data
