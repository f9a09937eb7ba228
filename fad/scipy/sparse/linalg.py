"""``scipy.sparse.linalg``, differentiable: linear systems with a sparse matrix.

The solution is differentiated by the implicit function theorem (`fad.scipy.sparse.systems`).
"""

from __future__ import annotations

from typing import Any

import scipy.sparse
import scipy.sparse.linalg as sla

from fad.core.primitives.docstring_sections import refer
from fad.core.primitives.primitive import has_tracer
from fad.scipy.holders import take_plain
from fad.scipy.registration import missing
from fad.scipy.sparse.array import from_scipy, is_sparse
from fad.scipy.sparse.eigen import eigs, eigsh, svds
from fad.scipy.sparse.factors import factorized, splu
from fad.scipy.sparse.functions import expm, expm_multiply, inv, norm
from fad.scipy.sparse.least import lsmr, lsqr
from fad.scipy.sparse.matrix_free import LinearOperator, aslinearoperator, solve_matrix_free
from fad.scipy.sparse.systems import Direct, Iterative, check_system, solve_system


def _plain(a: Any, b: Any) -> bool:
    return scipy.sparse.issparse(a) and not has_tracer((b,))


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """Solve ``A x = b`` by a sparse factorisation, for a dense vector or matrix `b`.

    Parameters
    ----------
    A : SciPy's sparse matrix, or a `fad.scipy.sparse.SparseArray`, shape (n, n)
    b : array, shape (n,) or (n, m)
    permc_spec, use_umfpack
        As in SciPy, for plain arguments.

    Returns
    -------
    array like `b`, differentiable in `b` and in the entries of a `SparseArray`

    Raises
    ------
    numpy.linalg.LinAlgError
        if the matrix is singular, where SciPy warns and gives NaN for plain arguments.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, fad
    >>> a = scipy.sparse.diags_array([2.0, 4.0])
    >>> fad.grad(lambda b: np.sum(fad.scipy.sparse.linalg.spsolve(a, b)))(np.ones(2))
    array([0.5 , 0.25])
    """
    if _plain(a := A, b):
        return sla.spsolve(a, b, permc_spec, use_umfpack)
    return solve_system(*check_system(A, b), Direct())


def _iterate(name: str, A: Any, b: Any, x0: Any, M: Any, settings: dict) -> tuple:
    if _plain(A, b):
        return getattr(sla, name)(A, b, x0, M=M, **settings)
    M = take_plain(M)
    if has_tracer((x0,)):
        x0 = None  # where an iteration begins does not matter to the solution
    if not is_sparse(A):
        return solve_matrix_free(name, A, b, M, {k: v for k, v in settings.items() if k != "callback"}), 0
    a, b = check_system(A, b)
    if b.ndim == 2 and b.shape[1] != 1:
        raise ValueError(f"b must be a vector, not of shape {b.shape}")
    # A guess belongs to this right-hand side; systems for derivatives have others.
    method = Iterative(name, {k: v for k, v in settings.items() if k != "callback"}, M)
    return solve_system(a, b, method), method.info


def cg(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Any = None, M: Any = None,
       callback: Any = None) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by conjugate gradients, for a symmetric (Hermitian) positive definite matrix.

    The derivative is as accurate as the tolerance `rtol`. Returns ``(x, info)``, as SciPy does. The guess `x0` and the
    `callback` are SciPy's for plain arguments; with traced ones every solve begins at zero.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
        Symmetric (Hermitian) and positive definite.
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol, atol : float, keyword only
        The residual is at most ``max(rtol * norm(b), atol)``.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    DerivativeError
        if the iteration did not converge, for traced arguments.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, fad
    >>> a = scipy.sparse.diags_array([2.0, 4.0])
    >>> fad.grad(lambda b: np.sum(fad.scipy.sparse.linalg.cg(a, b)[0]))(np.ones(2)).round(6)
    array([0.5 , 0.25])
    """
    return _iterate("cg", A, b, x0, M, {"rtol": rtol, "atol": atol, "maxiter": maxiter, "callback": callback})


def bicgstab(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Any = None,
             M: Any = None, callback: Any = None) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by the stabilised method of biconjugate gradients; see `cg`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol, atol : float, keyword only
        The residual is at most ``max(rtol * norm(b), atol)``.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    ValueError
        if the matrix is not square, or `b` does not fit it.

    Examples
    --------
    >>> fad.scipy.sparse.linalg.bicgstab(fad.scipy.sparse.csr_array(2 * np.eye(2)), np.array([2.0, 4.0]))[0]
    array([1., 2.])
    """
    return _iterate("bicgstab", A, b, x0, M, {"rtol": rtol, "atol": atol, "maxiter": maxiter, "callback": callback})


def gmres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, restart: Any = None,
          maxiter: Any = None, M: Any = None, callback: Any = None, callback_type: Any = None) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by the generalised method of minimal residuals; see `cg`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol, atol : float, keyword only
        The residual is at most ``max(rtol * norm(b), atol)``.
    restart : int, keyword only
        How many steps there are before the basis is begun again.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.
    callback_type : str, keyword only
        What it is called with, as in SciPy.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    ValueError
        if the matrix is not square, or `b` does not fit it.

    Examples
    --------
    >>> fad.scipy.sparse.linalg.gmres(fad.scipy.sparse.csr_array(2 * np.eye(2)), np.array([2.0, 4.0]))[0]
    array([1., 2.])
    """
    settings = {"rtol": rtol, "atol": atol, "restart": restart, "maxiter": maxiter, "callback": callback}
    if callback is not None:
        settings["callback_type"] = callback_type
    return _iterate("gmres", A, b, x0, M, settings)


def bicg(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Any = None, M: Any = None,
         callback: Any = None) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by biconjugate gradients; see `cg`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol, atol : float, keyword only
        The residual is at most ``max(rtol * norm(b), atol)``.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    ValueError
        if the matrix is not square, or `b` does not fit it.

    Examples
    --------
    >>> fad.scipy.sparse.linalg.bicg(fad.scipy.sparse.csr_array(2 * np.eye(2)), np.array([2.0, 4.0]))[0]
    array([1., 2.])
    """
    settings = {"rtol": rtol, "atol": atol, "callback": callback}
    return _iterate("bicg", A, b, x0, M, settings | ({} if maxiter is None else {"maxiter": maxiter}))


def cgs(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Any = None, M: Any = None,
        callback: Any = None) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by the squared method of conjugate gradients; see `cg`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol, atol : float, keyword only
        The residual is at most ``max(rtol * norm(b), atol)``.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    ValueError
        if the matrix is not square, or `b` does not fit it.

    Examples
    --------
    >>> fad.scipy.sparse.linalg.cgs(fad.scipy.sparse.csr_array(2 * np.eye(2)), np.array([2.0, 4.0]))[0]
    array([1., 2.])
    """
    settings = {"rtol": rtol, "atol": atol, "callback": callback}
    return _iterate("cgs", A, b, x0, M, settings | ({} if maxiter is None else {"maxiter": maxiter}))


def tfqmr(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Any = None, M: Any = None,
          callback: Any = None) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by quasi-minimal residuals without the transposed matrix; see `cg`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol, atol : float, keyword only
        The residual is at most ``max(rtol * norm(b), atol)``.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    ValueError
        if the matrix is not square, or `b` does not fit it.

    Examples
    --------
    >>> fad.scipy.sparse.linalg.tfqmr(fad.scipy.sparse.csr_array(2 * np.eye(2)), np.array([2.0, 4.0]))[0]
    array([1., 2.])
    """
    settings = {"rtol": rtol, "atol": atol, "callback": callback}
    return _iterate("tfqmr", A, b, x0, M, settings | ({} if maxiter is None else {"maxiter": maxiter}))


def lgmres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Any = None, M: Any = None,
           callback: Any = None, inner_m: int = 30, outer_k: int = 3) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by minimal residuals, with directions of earlier rounds; see `cg`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol, atol : float, keyword only
        The residual is at most ``max(rtol * norm(b), atol)``.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.
    inner_m, outer_k : int, keyword only
        Steps of a round, and how many directions it takes from the rounds before.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    ValueError
        if the matrix is not square, or `b` does not fit it.

    Examples
    --------
    >>> fad.scipy.sparse.linalg.lgmres(fad.scipy.sparse.csr_array(2 * np.eye(2)), np.array([2.0, 4.0]))[0]
    array([1., 2.])
    """
    settings = {"rtol": rtol, "atol": atol, "callback": callback, "inner_m": inner_m, "outer_k": outer_k}
    return _iterate("lgmres", A, b, x0, M, settings | ({} if maxiter is None else {"maxiter": maxiter}))


def gcrotmk(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Any = None,
            M: Any = None, callback: Any = None, m: int = 20, k: Any = None) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by conjugate residuals with nested orthogonal directions, GCROT(m, k); see `cg`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol, atol : float, keyword only
        The residual is at most ``max(rtol * norm(b), atol)``.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.
    m, k : int, keyword only
        Steps of a round, and how many directions are kept between rounds.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    ValueError
        if the matrix is not square, or `b` does not fit it.

    Examples
    --------
    >>> fad.scipy.sparse.linalg.gcrotmk(fad.scipy.sparse.csr_array(2 * np.eye(2)), np.array([2.0, 4.0]))[0]
    array([1., 2.])
    """
    settings = {"rtol": rtol, "atol": atol, "callback": callback, "m": m, "k": k}
    return _iterate("gcrotmk", A, b, x0, M, settings | ({} if maxiter is None else {"maxiter": maxiter}))


def minres(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, shift: Any = 0.0, maxiter: Any = None,
           M: Any = None, callback: Any = None, show: bool = False, check: bool = False) -> tuple:  # fmt: skip
    """Solve ``(A - shift I) x = b`` by minimal residuals, for a symmetric matrix that need not be definite; see `cg`.

    Parameters
    ----------
    A : SparseArray, or a sparse matrix of SciPy's (n, n)
        Symmetric.
    b : array (n,)
        The right-hand side.
    x0 : array (n,)
        Where to begin; it has no derivative.
    rtol : float, keyword only
        The residual is at most about ``rtol`` times the norms of the matrix and the solution.
    shift : float, keyword only
        What is taken from the diagonal.
    maxiter : int, keyword only
        Greatest number of steps.
    M : matrix or operator, keyword only
        Preconditioner.
    callback : callable, keyword only
        Called after each step.
    show, check : bool, keyword only
        Whether to print, and to look whether the matrix is symmetric; for plain arguments alone.

    Returns
    -------
    (x, info)
        `info` is 0 where the iteration converged.

    Raises
    ------
    DerivativeError
        if the iteration did not converge, for traced arguments.

    Examples
    --------
    >>> a = fad.scipy.sparse.diags(np.array([2.0, -4.0]))
    >>> fad.grad(lambda b: np.sum(fad.scipy.sparse.linalg.minres(a, b)[0]))(np.ones(2)).round(6)
    array([ 0.5 , -0.25])
    """
    if _plain(A, (b, shift)):
        settings = {"rtol": rtol, "shift": shift, "maxiter": maxiter, "show": show, "check": check}
        return sla.minres(A, b, x0, M=M, callback=callback, **settings)
    if has_tracer((shift,)) or shift:
        if not is_sparse(A):
            raise NotImplementedError("minres of an operator takes shift=0: let its function take shift * v off")
        A = from_scipy(A) - shift * from_scipy(scipy.sparse.eye_array(A.shape[0]))
    return _iterate("minres", A, b, x0, M, {"rtol": rtol, "maxiter": maxiter})


__all__ = [
    "LinearOperator", "aslinearoperator", "bicg", "bicgstab", "cg", "cgs", "eigs", "eigsh", "expm", "expm_multiply",
    "factorized", "gcrotmk", "gmres", "inv", "lgmres", "lsmr", "lsqr", "minres", "norm", "splu", "spsolve", "svds",
    "tfqmr",
]  # fmt: skip
__getattr__ = missing("sparse.linalg")
refer({name: globals()[name] for name in __all__}, sla)
