"""Functions of a sparse matrix whose entries may be traced: norms, the inverse, the exponential and its action."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse.linalg as sla

from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.host import host_function, needs_host_call
from fad.scipy.linalg import expm as expm_of_dense
from fad.scipy.sparse.array import SparseArray, from_scipy, is_sparse
from fad.scipy.sparse.factors import splu
from fad.scipy.sparse.products import Pattern

# --- norms, inverse, exponential --------------------------------------------------------------------------------------


def _is_plain(a: Any) -> bool:
    return not isinstance(a, SparseArray) and not has_tracer((a,))


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Return a norm of a sparse matrix, or of its rows or columns.

    Parameters
    ----------
    x : SparseArray, or a sparse matrix of SciPy's
    ord : None, "fro", 1, -1, inf, -inf or 2
        Which norm; None and "fro" are the root of the sum of squares, 2 of a matrix its greatest singular value.
        Along an axis also 0, which counts.
    axis : int
        0 for the norms of the columns, 1 for those of the rows; by default that of the matrix.

    Returns
    -------
    number, or array along an axis

    Raises
    ------
    ValueError
        if there is no such norm or axis.
    NotImplementedError
        for the norm 2 of a matrix with traced entries: ``svds(x, 1)`` has it.

    Examples
    --------
    >>> a = fad.scipy.sparse.diags(np.array([3.0, 4.0]))
    >>> fad.grad(lambda s: fad.scipy.sparse.linalg.norm(s * a))(2.0)
    np.float64(5.0)
    """
    if _is_plain(x):
        return sla.norm(x, ord, axis)
    a = x._sort_by_rows()
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is not None and not isinstance(axis, tuple):
        return _norm_along(a, ord, axis)
    if ord in (None, "fro", "f"):
        return np.linalg.norm(a.data)
    if ord in (1, -1, np.inf, -np.inf):
        sums = np.ravel(abs(a).sum(axis=0 if abs(ord) == 1 else 1))
        return np.max(sums) if ord > 0 else np.min(sums)
    if ord == 2:
        raise NotImplementedError("the norm 2 of a sparse matrix with traced entries is svds(x, 1)[1][0]")
    raise ValueError("Invalid norm order for matrices.")


def _norm_along(a: SparseArray, ord: Any, axis: int) -> Any:
    if not -2 <= axis < 2:
        raise ValueError(f"Invalid axis {axis!r} for an array with shape {a.shape!r}")
    if ord in (None, 2):
        return np.linalg.norm(a.toarray(), axis=axis)
    if ord == 0:
        return np.sum(a.toarray() != 0, axis=axis)
    return np.linalg.norm(a.toarray(), ord, axis)


def inv(A: Any) -> Any:
    """Return the inverse of a sparse square matrix, as a sparse matrix with every entry.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)

    Returns
    -------
    SparseArray (n, n)

    Raises
    ------
    numpy.linalg.LinAlgError
        if the matrix is singular.
    TypeError
        if the argument is no sparse matrix.

    Examples
    --------
    >>> a = fad.scipy.sparse.diags(np.array([2.0, 4.0]))
    >>> fad.jvp(lambda s: fad.scipy.sparse.linalg.inv(s * a).toarray(), (1.0,), (1.0,))[1]
    array([[-0.5 ,  0.  ],
           [ 0.  , -0.25]])
    """
    if _is_plain(A):
        return sla.inv(A)
    return _fill(A, splu(A).solve(np.eye(A.shape[0], dtype=A.dtype)))


def expm(A: Any) -> Any:
    """Return the exponential of a sparse square matrix, as a sparse matrix with every entry.

    Computed densely where entries are traced; `expm_multiply` needs products with the matrix alone.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)

    Returns
    -------
    SparseArray (n, n)

    Raises
    ------
    ValueError
        if the matrix is not square.

    Examples
    --------
    >>> a = fad.scipy.sparse.diags(np.array([0.0, 1.0]))
    >>> fad.jvp(lambda s: fad.scipy.sparse.linalg.expm(s * a).toarray(), (0.0,), (1.0,))[1]
    array([[0., 0.],
           [0., 1.]])
    """
    if _is_plain(A):
        return sla.expm(A)
    dense = A.toarray() if is_sparse(A) else A
    return _fill(A, expm_of_dense(dense)) if is_sparse(A) else expm_of_dense(dense)


def _fill(like: Any, dense: Any) -> SparseArray:
    """Return a dense matrix as a sparse one of the class of another, with every entry."""
    rows, columns = (places.ravel() for places in np.indices(dense.shape))
    return type(from_scipy(like))(dense.ravel(), Pattern(rows, columns, dense.shape))


# --- the action of the exponential ------------------------------------------------------------------------------------

_TERMS, _LONGEST = 55, 7.0  # of Taylor's series, and the norm up to which they give the derivatives, too


def expm_multiply(A: Any, B: Any, start: Any = None, stop: Any = None, num: Any = None, endpoint: Any = None,
                  traceA: Any = None) -> Any:  # fmt: skip
    """Return ``expm(t A) @ B`` by products with the matrix alone, at t = 1 or at evenly spaced times.

    Taylor's series in steps, by Al-Mohy and Higham, Computing the Action of the Matrix Exponential, SIAM J. Sci.
    Comput. 33 (2011), of which the derivatives are taken as of any other sum.

    Parameters
    ----------
    A : SparseArray, sparse matrix of SciPy's, or array (n, n)
    B : array (n,) or (n, m)
    start, stop : float
        The first and the last time; all three or none are given. They have no derivative.
    num : int
        How many times there are.
    endpoint : bool
        Whether `stop` is the last time, which it is by default.
    traceA : float
        Ignored: it does not change the result.

    Returns
    -------
    array like `B`, or with one more axis in front for the times

    Raises
    ------
    ValueError
        if the matrix is not square, or does not fit `B`.

    Examples
    --------
    >>> a = fad.scipy.sparse.diags(np.array([0.0, 1.0]))
    >>> fad.grad(lambda s: fad.scipy.sparse.linalg.expm_multiply(s * a, np.ones(2))[1])(0.0)
    np.float64(1.0)
    """
    if _is_plain(A) and not has_tracer((B, start, stop)):
        return sla.expm_multiply(A, B, start, stop, num, endpoint, traceA)
    if has_tracer((start, stop)):
        raise TypeError("the times of expm_multiply are constants: scale the matrix, expm_multiply(t * a, b)")
    a, b = from_scipy(A) if is_sparse(A) else as_array(A), as_array(B)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(f"the matrices A and B have incompatible shapes: {a.shape} and {b.shape}")
    single = start is None and stop is None and num is None
    times = [1.0] if single else np.linspace(start, stop, num or 50, endpoint=endpoint is None or endpoint)
    data = a.data if isinstance(a, SparseArray) else a
    dtype = np.result_type(data.dtype, b.dtype, np.float32)

    def act(data: Any, b: Any) -> list:
        return _act(SparseArray(data, a.pattern) if isinstance(a, SparseArray) else data, b.astype(dtype), times)

    on_host = needs_host_call((data, b))
    found = host_function("scipy.sparse.linalg.expm_multiply", act)(data, b) if on_host else act(data, b)
    return found[0] if single else np.stack(found)


def _act(a: Any, b: Any, times: Any) -> list:
    """Return the action at times, one after the other."""
    n = a.shape[0]
    plain = stop_gradient(a.data if isinstance(a, SparseArray) else a)
    matrix = np.asarray(plain) if not isinstance(a, SparseArray) else a.pattern.matrix(np.asarray(plain)).copy()
    shift = matrix.trace() / max(n, 1)  # of the matrix, which makes it smaller; a number
    columns = np.ravel(abs(matrix).sum(axis=0)) + abs(shift)
    size = float(np.max(columns, initial=0.0))
    found, now = [], 0.0
    for t in times:
        span = float(t) - now
        steps = max(math.ceil(abs(span) * size / _LONGEST), 1)
        for _ in range(steps if span else 0):
            b = _step(a, b, span / steps, shift, size)
        now = float(t)
        found.append(b)
    return found


def _step(a: Any, b: Any, h: float, shift: Any, size: float) -> Any:
    term, total, rest = b, b, 1.0
    for k in range(1, _TERMS + 1):
        term = (a @ term - shift * term) * (h / k)
        total = total + term
        rest *= abs(h) * size / k
        if k * rest < 1e-18:  # what its derivative adds is nothing beside the sum's either
            break
    return np.exp(h * shift) * total
