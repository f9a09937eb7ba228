"""Least squares with a sparse matrix: ``lsqr`` and ``lsmr``, differentiated by the equations of what they find.

With r the residual, ``r + A x = b`` and ``A^H r = damp^2 x``; of a wide matrix the solution of least length is
``x = A^H y`` with ``A x + damp^2 y = b``. Both are square sparse systems.
"""

from __future__ import annotations

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
from fad.transforms.implicit import implicit_root

_DEPENDENT = (
    "the solution of least squares has no derivative: columns (or, of a wide matrix, rows) of the sparse matrix depend "
    "on each other. Give a damp greater than 0, or leave the redundant ones out"
)


def _solve(name: str, A: Any, b: Any, damp: Any, settings: dict, x0: Any) -> tuple[Any, dict]:
    """Return the solution, and what SciPy says of it but under jit and vmap."""
    if not is_sparse(A):
        raise TypeError(
            f"{name} of traced values takes a sparse matrix, not {type(A).__name__}; for a dense one use "
            "fad.scipy.linalg.lstsq"
        )
    if x0 is not None and A.shape[0] < A.shape[1]:
        raise NotImplementedError(f"{name} of a wide matrix with traced values begins at zero: leave x0 out")
    a, b = from_scipy(A), as_array(b)
    if b.ndim == 2 and b.shape[1] == 1:
        b = b[:, 0]
    if b.ndim != 1 or b.shape[0] != a.shape[0]:
        raise ValueError(f"b must be a vector of length {a.shape[0]}, not of shape {b.shape}")
    dtype = np.result_type(a.dtype, b.dtype, float)
    a, b = SparseArray(a.data.astype(dtype), a.pattern), b.astype(dtype)
    start = stop_gradient(x0)

    def solver(entries: Any, b: Any, damp: Any) -> tuple[Any, dict]:
        found = getattr(sla, name)(a.pattern.matrix(np.asarray(entries)), b, float(damp), x0=start, **settings)
        report = {"status": found[1], "nit": found[2], "all": found}
        return found[0], report

    x, _, report = run(solver, a.data, b, damp)
    x = stop_gradient(x)
    tall = a.shape[0] >= a.shape[1]
    system = (_of_tall if tall else _of_wide)(a, damp * damp)
    turned = stop_gradient(a)
    if tall:
        known = np.concatenate([stop_gradient(b) - turned @ x, x])
    else:  # the multipliers of the rows belong to the solution
        along = np.arange(a.shape[0])
        diagonal = Pattern(along, along, (along.size,) * 2)
        damping = SparseArray(stop_gradient(damp * damp) * np.ones(along.size), diagonal)
        gram = turned @ turned.conj().T + damping
        known = np.concatenate([x, solve_system(gram, stop_gradient(b), Checked(_DEPENDENT, 1e12))])
    right = np.concatenate([b, np.zeros(a.shape[1], dtype)] if tall else [np.zeros(a.shape[1], dtype), b])
    held, method = stop_gradient(system), Checked(_DEPENDENT, 1e12)
    z = implicit_root(lambda z: system @ z - right, known, lambda _, y: solve_system(held, y, method))
    return (z[a.shape[0] :] if tall else z[: a.shape[1]]), report


def _of_tall(a: SparseArray, square: Any) -> SparseArray:
    """Return ``[[I, A], [A^H, -damp^2 I]]``, for the residual and the solution."""
    m, n = a.shape
    return _assemble(a, m, n, np.ones(m), -square * np.ones(n), 0, m, np.ones_like)


def _of_wide(a: SparseArray, square: Any) -> SparseArray:
    """Return ``[[I, -A^H], [A, damp^2 I]]``, for the solution and the multipliers of the rows."""
    m, n = a.shape
    return _assemble(a, n, m, np.ones(n), square * np.ones(m), n, 0, lambda x: -np.ones_like(x))


def _assemble(
    a: SparseArray, first: int, second: int, upper: Any, lower: Any, down: int, right: int, sign: Callable
) -> SparseArray:
    along, below = np.arange(first), first + np.arange(second)
    rows, columns = a.pattern.rows + down, a.pattern.columns + right
    data = [upper, lower, a.data, sign(stop_gradient(a.data).real) * np.conj(a.data)]
    pattern = Pattern(
        np.concatenate([along, below, rows, columns]), np.concatenate([along, below, columns, rows]),
        (first + second,) * 2,
    )  # fmt: skip
    dtype = np.result_type(*data)
    return SparseArray(np.concatenate([x.astype(dtype) for x in data]), pattern)


def _lengths(A: Any, b: Any, damp: Any, x: Any) -> tuple:
    """Return the norms of the residual, without and with the damping, of its product with A^H, and of the solution."""
    a = from_scipy(A)
    r = as_array(b).reshape(-1) - a @ x
    r1, size = np.linalg.norm(r), np.linalg.norm(x)
    return r1, np.sqrt(r1**2 + (damp * size) ** 2), np.linalg.norm(a.conj().T @ r - damp**2 * x), size


def _is_plain(A: Any, *others: Any) -> bool:
    return not isinstance(A, SparseArray) and not has_tracer((A, *others))


def lsqr(A: Any, b: Any, damp: Any = 0.0, atol: float = 1e-6, btol: float = 1e-6, conlim: float = 1e8,
         iter_lim: Any = None, show: bool = False, calc_var: bool = False, x0: Any = None) -> tuple:  # fmt: skip
    """Minimise ``norm(A x - b)**2 + damp**2 norm(x)**2`` for a sparse matrix, by LSQR.

    The solution is as accurate as the tolerances; its derivatives are those of the least squares problem, in the
    entries of `A`, in `b` and in `damp`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (m, n)
    b : array (m,)
    damp : float
        How much the length of the solution counts.
    atol, btol, conlim, iter_lim, show
        As in SciPy: when the iteration ends, and whether it prints.
    calc_var : bool
        For plain arguments alone.
    x0 : array (n,)
        Where to begin; it has no derivative.

    Returns
    -------
    (x, istop, itn, r1norm, r2norm, anorm, acond, arnorm, xnorm, var)
        As in SciPy. Where something is traced, `istop` and `itn` are those of the last run, and `anorm`, `acond` and
        `var` None.

    Raises
    ------
    DerivativeError
        if a derivative is taken where columns (of a wide matrix rows) depend on each other.
    TypeError
        if the matrix is not sparse and something is traced.

    Examples
    --------
    >>> a = fad.scipy.sparse.csr_array(np.array([[1.0], [1.0]]))
    >>> fad.grad(lambda b: fad.scipy.sparse.linalg.lsqr(a, b)[0][0])(np.array([1.0, 3.0]))
    array([0.5, 0.5])
    """
    if _is_plain(A, b, damp, x0):
        return sla.lsqr(A, b, damp, atol, btol, conlim, iter_lim, show, calc_var, x0)
    settings = {"atol": atol, "btol": btol, "conlim": conlim, "iter_lim": iter_lim, "show": show}
    x, report = _solve("lsqr", A, b, damp, settings, x0)
    r1, r2, ar, size = _lengths(A, b, damp, x)
    return x, report.get("status"), report.get("nit"), r1, r2, None, None, ar, size, None


def lsmr(A: Any, b: Any, damp: Any = 0.0, atol: float = 1e-6, btol: float = 1e-6, conlim: float = 1e8,
         maxiter: Any = None, show: bool = False, x0: Any = None) -> tuple:  # fmt: skip
    """Minimise ``norm(A x - b)**2 + damp**2 norm(x)**2`` for a sparse matrix, by LSMR; see `lsqr`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (m, n)
    b : array (m,)
    damp : float
        How much the length of the solution counts.
    atol, btol, conlim, maxiter, show
        As in SciPy: when the iteration ends, and whether it prints.
    x0 : array (n,)
        Where to begin; it has no derivative.

    Returns
    -------
    (x, istop, itn, normr, normar, norma, conda, normx)
        As in SciPy. Where something is traced, `istop` and `itn` are those of the last run, `norma` and `conda` None.

    Raises
    ------
    DerivativeError
        if a derivative is taken where columns (of a wide matrix rows) depend on each other.
    TypeError
        if the matrix is not sparse and something is traced.

    Examples
    --------
    >>> a = fad.scipy.sparse.csr_array(np.array([[1.0], [1.0]]))
    >>> fad.grad(lambda b: fad.scipy.sparse.linalg.lsmr(a, b)[0][0])(np.array([1.0, 3.0]))
    array([0.5, 0.5])
    """
    if _is_plain(A, b, damp, x0):
        return sla.lsmr(A, b, damp, atol, btol, conlim, maxiter, show, x0)
    settings = {"atol": atol, "btol": btol, "conlim": conlim, "maxiter": maxiter, "show": show}
    x, report = _solve("lsmr", A, b, damp, settings, x0)
    r1, _, ar, size = _lengths(A, b, damp, x)
    return x, report.get("status"), report.get("nit"), r1, ar, None, None, size
