"""Some eigenvalues and singular values of a large sparse matrix, with derivatives.

ARPACK finds the pairs. A pair (x, v) of ``A v = x M v`` with ``w^H M v = 1``, w being the vector found, solves a square
system whose matrix has one more row and column than A; so it is differentiated by the implicit function theorem
(`fad.transforms.implicit`), by sparse factorisations alone. The vector is then given the length 1 again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg as sla

from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.optimize.common import run
from fad.scipy.sparse.array import SparseArray, from_scipy, is_sparse
from fad.scipy.sparse.products import Pattern
from fad.scipy.sparse.systems import Checked, solve_system
from fad.scipy.versions import SINCE_1_18
from fad.transforms.implicit import implicit_root

_NOT_SIMPLE = (
    "{} found an eigenvalue (or singular value) that is not simple: others coincide with it, or a singular value is 0, "
    "so that it has no derivative of its own. Ask for others (k, which, sigma), or differentiate a function of all of "
    "them together, such as the trace"
)


def _as_matrix(a: Any, name: str) -> SparseArray:
    if is_sparse(a):
        return from_scipy(a)
    if not hasattr(a, "dtype") or getattr(a, "ndim", 0) != 2 or isinstance(a, sla.LinearOperator):
        raise TypeError(
            f"{name} has derivatives in the entries of a matrix, sparse or dense, and was given {type(a).__name__}"
        )
    a = as_array(a)
    rows, columns = (places.ravel() for places in np.indices(a.shape))
    return SparseArray(a.ravel(), Pattern(rows, columns, a.shape))


def _is_plain(*matrices: Any) -> bool:
    return not has_tracer(matrices) and not any(isinstance(a, SparseArray) for a in matrices)


def _find(solve: Callable, n: int, *matrices: SparseArray | None) -> tuple[Any, Any]:
    """Return the eigenvalues and the vectors, one a row, that a solver finds for plain matrices."""
    given = [a for a in matrices if a is not None]

    def solver(*entries: Any) -> tuple[Any, dict]:
        left = iter(entries)
        plain = [None if a is None else a.pattern.matrix(np.asarray(next(left))) for a in matrices]
        values, vectors = solve(*plain)
        return np.concatenate([values[:, None], vectors.T], axis=1), {}

    found = stop_gradient(run(solver, *[a.data for a in given])[0])
    return found[:, 0], found[:, 1 : n + 1]


def _follow(name: str, a: SparseArray, m: SparseArray | None, value: Any, vector: Any) -> tuple[Any, Any]:
    """Return an eigenvalue and its vector with derivatives in the entries of the matrices."""
    times = (lambda v: v) if m is None else (lambda v: m @ v)
    fixed = np.conj(stop_gradient(times(vector)))

    def equation(pair: Any) -> Any:
        v, x = pair[:-1], pair[-1]
        return np.concatenate([a @ v - x * times(v), (fixed @ v)[None] - 1.0])

    border = stop_gradient(_border(a, m, value, times(vector), fixed))
    method = Checked(_NOT_SIMPLE.format(name), 1e10)
    pair = implicit_root(
        equation, np.concatenate([vector, value[None]]), lambda _, y: solve_system(border, y, method)
    )
    v = pair[:-1]
    return pair[-1], v / np.sqrt(np.real(np.conj(v) @ times(v)))


def _border(a: SparseArray, m: SparseArray | None, value: Any, column: Any, row: Any) -> SparseArray:
    """Return the matrix of the equation of a pair, ``[[A - x M, -M v], [w^H M, 0]]``."""
    n, along = a.shape[0], np.arange(a.shape[0])
    mass = SparseArray(np.ones(n), Pattern(along, along, (n, n))) if m is None else m
    data = [a.data, -value * mass.data, -column, row]
    rows = [a.pattern.rows, mass.pattern.rows, along, np.full(n, n)]
    columns = [a.pattern.columns, mass.pattern.columns, np.full(n, n), along]
    pattern = Pattern(np.concatenate(rows), np.concatenate(columns), (n + 1, n + 1))
    dtype = np.result_type(*data)
    return SparseArray(np.concatenate([x.astype(dtype) for x in data]), pattern)


def _collect(pairs: list, return_vectors: bool) -> Any:
    values = np.stack([x for x, _ in pairs])
    return (values, np.stack([v for _, v in pairs], axis=1)) if return_vectors else values


def eigsh(A: Any, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None, ncv: Any = None,
          maxiter: Any = None, tol: float = 0, return_eigenvectors: bool = True, Minv: Any = None, OPinv: Any = None,
          mode: str = "normal", rng: Any = None) -> Any:  # fmt: skip
    """Return some eigenvalues and eigenvectors of a symmetric (Hermitian) sparse matrix, as ARPACK finds them.

    A simple eigenvalue has derivatives of every order, and so has its vector, in the entries of `A` and `M`. All
    entries are varied as they are given: of a symmetric matrix made of its parameters both halves.

    Parameters
    ----------
    A : SparseArray, sparse matrix of SciPy's, or array (n, n)
    k : int
        How many.
    M : sparse matrix, or array (n, n)
        Of the generalised problem ``A v = x M v``.
    sigma, which, v0, ncv, maxiter, tol, mode, rng
        As in SciPy: which eigenvalues are looked for, and how. They have no derivative.
    return_eigenvectors : bool
        Whether to return vectors, too. Their sign is ARPACK's.
    Minv, OPinv : operators
        For plain matrices alone.

    Returns
    -------
    values (k,), or (values, vectors (n, k))

    Raises
    ------
    DerivativeError
        if a derivative is taken of an eigenvalue that is not simple.
    TypeError
        if the matrix is a LinearOperator and something is traced.

    Examples
    --------
    >>> a = fad.scipy.sparse.diags(np.arange(1.0, 6.0))
    >>> fad.grad(lambda s: fad.scipy.sparse.linalg.eigsh(s * a, 1, return_eigenvectors=False)[0])(2.0).round(9)
    np.float64(5.0)
    """
    options = {"sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol, "mode": mode}
    options |= {} if rng is None else {"rng": rng}
    if _is_plain(A, M):
        given = {**options, "return_eigenvectors": return_eigenvectors, "Minv": Minv, "OPinv": OPinv}
        return sla.eigsh(A, k, M, **given)
    return _pairs("eigsh", A, k, M, return_eigenvectors, options, (Minv, OPinv))


def _pairs(name: str, A: Any, k: int, M: Any, return_vectors: bool, options: dict, operators: tuple) -> Any:
    if has_tracer(options) or any(operator is not None for operator in operators):
        raise TypeError(f"{name} with traced entries takes no operators, and its settings are constants")
    a, m = _as_matrix(A, name), None if M is None else _as_matrix(M, name)

    def solve(a: Any, m: Any) -> tuple:
        find = functools.partial(getattr(sla, name), a.tocsc(), k, None if m is None else m.tocsc(), **options)
        values, vectors = find()
        if not return_vectors:  # SciPy returns the values alone in another order
            order = [np.argmin(np.abs(values - x)) for x in find(return_eigenvectors=False)]
            values, vectors = values[order], vectors[:, order]
        return values, vectors

    values, vectors = _find(solve, a.shape[0], a, m)
    if name == "eigsh":
        values = np.real(values)
    else:
        a = SparseArray(a.data.astype(values.dtype), a.pattern)
        m = None if m is None else SparseArray(m.data.astype(values.dtype), m.pattern)
    pairs = [_follow(name, a, m, values[i], vectors[i]) for i in range(values.shape[0])]
    if name == "eigsh":
        pairs = [(np.real(x), v) for x, v in pairs]
    return _collect(pairs, return_vectors)


def eigs(A: Any, k: int = 6, M: Any = None, sigma: Any = None, which: str = "LM", v0: Any = None, ncv: Any = None,
         maxiter: Any = None, tol: float = 0, return_eigenvectors: bool = True, Minv: Any = None, OPinv: Any = None,
         OPpart: Any = None, rng: Any = None) -> Any:  # fmt: skip
    """Return some eigenvalues and eigenvectors of a sparse square matrix, as ARPACK finds them; complex ones.

    Parameters
    ----------
    A : SparseArray, sparse matrix of SciPy's, or array (n, n)
    k : int
        How many.
    M : sparse matrix, or array (n, n)
        Of the generalised problem ``A v = x M v``.
    sigma, which, v0, ncv, maxiter, tol, rng
        As in SciPy: which eigenvalues are looked for, and how. They have no derivative.
    return_eigenvectors : bool
        Whether to return vectors, too. Their length is 1 and their phase ARPACK's, in which they do not turn.
    Minv, OPinv, OPpart
        For plain matrices alone.

    Returns
    -------
    values (k,), or (values, vectors (n, k))

    Raises
    ------
    DerivativeError
        if a derivative is taken of an eigenvalue that is not simple.
    TypeError
        if the matrix is a LinearOperator and something is traced.

    Examples
    --------
    >>> a = fad.scipy.sparse.diags(np.arange(1.0, 6.0))
    >>> largest = lambda s: fad.scipy.sparse.linalg.eigs(s * a, 1, return_eigenvectors=False)[0].real
    >>> fad.grad(largest)(2.0).round(9)
    np.float64(5.0)
    """
    options = {"sigma": sigma, "which": which, "v0": v0, "ncv": ncv, "maxiter": maxiter, "tol": tol}
    options |= {} if rng is None else {"rng": rng}
    if _is_plain(A, M):
        given = {**options, "return_eigenvectors": return_eigenvectors, "Minv": Minv, "OPinv": OPinv, "OPpart": OPpart}
        return sla.eigs(A, k, M, **given)
    return _pairs("eigs", A, k, M, return_eigenvectors, options, (Minv, OPinv, OPpart))


def svds(A: Any, k: int = 6, ncv: Any = None, tol: float = 0, which: str = "LM", v0: Any = None, maxiter: Any = None,
         return_singular_vectors: Any = True, solver: str = "arpack", rng: Any = None, options: Any = None,
         **older: Any) -> Any:  # fmt: skip
    """Return some singular values and vectors of a sparse matrix, as SciPy finds them.

    A simple singular value that is not 0 has derivatives of every order, and so have its vectors: with them it is an
    eigenvalue of ``[[0, A], [A^H, 0]]``.

    Parameters
    ----------
    A : SparseArray, sparse matrix of SciPy's, or array (m, n)
    k : int
        How many.
    ncv, tol, which, v0, maxiter, solver, rng, options, **older
        As in SciPy: which ones are looked for, and how. They have no derivative.
    return_singular_vectors : bool, "u" or "vh"
        Whether to return vectors, too; "u" and "vh" give both here.

    Returns
    -------
    values (k,), or (u (m, k), values, vh (k, n))

    Raises
    ------
    DerivativeError
        if a derivative is taken of a singular value that is 0, or not simple.
    TypeError
        if the matrix is a LinearOperator and something is traced.

    Examples
    --------
    >>> a = fad.scipy.sparse.diags(np.arange(1.0, 6.0))
    >>> fad.grad(lambda s: fad.scipy.sparse.linalg.svds(s * a, 1, return_singular_vectors=False)[0])(2.0).round(9)
    np.float64(5.0)
    """
    given = {"ncv": ncv, "tol": tol, "which": which, "v0": v0, "maxiter": maxiter, "solver": solver, **older}
    given |= {"options": options} if rng is None else {"options": options, "rng": rng}
    if _is_plain(A):
        return sla.svds(A, k, return_singular_vectors=return_singular_vectors, **given)
    if SINCE_1_18 and rng is None and v0 is None:  # it starts anywhere, and a jitted program has one start for all
        given["rng"] = np.random.default_rng(0)
    a = _as_matrix(A, "svds")
    n, total = a.shape[0], sum(a.shape)

    def solve(a: Any) -> tuple:
        u, values, vh = sla.svds(a, k, **given)
        return values, np.concatenate([u, vh.conj().T]) / np.sqrt(2.0)

    values, vectors = _find(solve, total, a)
    rows, columns = a.pattern.rows, a.pattern.columns + n
    pattern = Pattern(np.concatenate([rows, columns]), np.concatenate([columns, rows]), (total, total))
    both = SparseArray(np.concatenate([a.data, np.conj(a.data)]), pattern)
    pairs = [_follow("svds", both, None, np.real(values[i]), vectors[i]) for i in range(values.shape[0])]
    values, vectors = _collect([(np.real(x), v * np.sqrt(2.0)) for x, v in pairs], True)
    if return_singular_vectors is False:
        return values
    return vectors[:n], values, np.conj(vectors[n:]).T
