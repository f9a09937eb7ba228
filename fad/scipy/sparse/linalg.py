"""``scipy.sparse.linalg``, differentiable: linear systems with a sparse matrix.

The solution is differentiated by the implicit function theorem: forward derivatives solve the same system with another
right-hand side, reverse ones the transposed system, by the same method and to the same tolerance. The method itself,
a factorisation or an iteration, is never differentiated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg as sla

from fad.core.archetypes import cast
from fad.core.docstring_sections import refer
from fad.core.primitive import Primitive, has_tracer, register
from fad.core.samples import call
from fad.core.tracer import bind
from fad.errors import DerivativeError
from fad.ops.structural import as_array
from fad.scipy.registration import missing, on_host
from fad.scipy.sparse.array import SparseArray, from_scipy
from fad.scipy.sparse.products import at_places, run_batch_as_columns, sample_pattern, sparse_matmul_p

# --- how a system is solved -----------------------------------------------------------------------------------------


class Direct:
    """A sparse factorisation. The last one is kept: the backward pass solves with the matrix of the forward pass."""

    def __init__(self) -> None:
        self.last: Any = (None, None)

    def __call__(self, matrix: Any, b: Any, transposed: bool) -> Any:
        key, factors = self.last
        if key is None or key.dtype != matrix.dtype or not np.array_equal(key, matrix.data):
            try:
                factors = sla.splu(matrix.tocsc())
            except RuntimeError as error:
                raise np.linalg.LinAlgError(f"the sparse matrix is singular: {error}") from None
            self.last = (matrix.data.copy(), factors)
        trans = "T" if transposed else "N"
        if b.dtype.kind == "c" and matrix.dtype.kind != "c":
            return factors.solve(b.real.copy(), trans) + 1j * factors.solve(b.imag.copy(), trans)
        return factors.solve(b.astype(matrix.dtype), trans)


class Iterative:
    """One of SciPy's iterations, with its settings; `info` says how the last one ended."""

    def __init__(self, name: str, settings: dict, preconditioner: Any):
        self.name = name
        self.settings = settings
        self.preconditioner = preconditioner
        self.info = 0

    def __call__(self, matrix: Any, b: Any, transposed: bool) -> Any:
        m = self.preconditioner
        if m is not None and transposed:
            m = sla.aslinearoperator(m).T
        solve = getattr(sla, self.name)
        columns = []
        for k in range(b.shape[1]):
            x, self.info = solve(matrix.T if transposed else matrix, b[:, k], M=m, **self.settings)
            if self.info:
                raise DerivativeError(
                    f"scipy.sparse.linalg.{self.name} did not converge (info = {self.info}), so there is no solution "
                    "to differentiate. Give it more steps (maxiter) or a preconditioner (M), or use spsolve"
                )
            columns.append(x)
        return np.stack(columns, axis=1)


# --- the primitive --------------------------------------------------------------------------------------------------


def _forward(data, b, *, pattern, transposed, method):
    on_host("a sparse linear system", data, b)
    return method(pattern.matrix(data), b, transposed)


def _jvp(tangents, y, xs, params):
    td, tb = tangents
    places = {k: params[k] for k in ("pattern", "transposed")}
    right = None if td is None else -bind(sparse_matmul_p, td, y, **places)
    if tb is not None:
        right = tb if right is None else right + tb
    return cast(bind(sparse_solve_p, xs[0], right, **params), y.dtype)


def _back(ct, data, params):
    return bind(sparse_solve_p, data, ct, **{**params, "transposed": not params["transposed"]})


def _entries(ct, y, data, b, **params):
    return cast(-at_places(_back(ct, data, params), y, params["pattern"], params["transposed"]), data.dtype)


def _samples(s):
    found = []
    iterative = Iterative("gmres", {"rtol": 10 * np.finfo(s.dtype).eps}, None)
    for method, n, transposed in ((Direct(), 2, False), (iterative, 1, True)):
        pattern = sample_pattern(4, 4, True)
        data = s.real(pattern.rows.size)
        data[pattern.rows == pattern.columns] += 8.0
        found.append(call(data, s.real(4, n), pattern=pattern, transposed=transposed, method=method))
    return found


sparse_solve_p: Any = register(
    Primitive(
        "scipy.sparse.solution",
        _forward,
        jvp=_jvp,
        vjp=(_entries, lambda ct, y, data, b, **params: cast(_back(ct, data, params), b.dtype)),
        batch=lambda size, batched, xs, params: run_batch_as_columns(
            lambda *ops: bind(sparse_solve_p, *ops, **params), size, batched, xs
        ),
        samples=_samples,
        refuses="singular",
        doc="The solution of a sparse linear system, given by its entries.",
    )
)

# --- SciPy's names --------------------------------------------------------------------------------------------------


def _system(a: Any, b: Any) -> tuple[SparseArray, Any]:
    if not isinstance(a, SparseArray) and not scipy.sparse.issparse(a):
        raise TypeError(
            f"the matrix of a sparse system must be sparse, not {type(a).__name__}; for a dense one use "
            "fad.scipy.linalg.solve, for a function x -> A x fad.custom_linear_solve"
        )
    a, b = from_scipy(a), as_array(b)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"matrix must be square (has shape {a.shape})")
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(f"matrix - rhs dimension mismatch ({a.shape} - {b.shape})")
    return a, b if b.dtype.kind in "fc" else b.astype(float)


def _solve(a: SparseArray, b: Any, method: Any) -> Any:
    columns = b if b.ndim == 2 else b[:, None]
    x = bind(sparse_solve_p, a.data, columns, pattern=a.pattern, transposed=False, method=method)
    return x if b.ndim == 2 else x[:, 0]


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
    return _solve(*_system(A, b), Direct())


def _iterate(name: str, A: Any, b: Any, x0: Any, M: Any, settings: dict) -> tuple:
    if _plain(A, b):
        return getattr(sla, name)(A, b, x0, M=M, **settings)
    if has_tracer((x0,)):
        x0 = None  # where an iteration begins does not matter to the solution
    a, b = _system(A, b)
    if b.ndim == 2 and b.shape[1] != 1:
        raise ValueError(f"b must be a vector, not of shape {b.shape}")
    # A guess belongs to this right-hand side; systems for derivatives have others.
    method = Iterative(name, {k: v for k, v in settings.items() if k != "callback"}, M)
    return _solve(a, b, method), method.info


def cg(A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Any = None, M: Any = None,
       callback: Any = None) -> tuple:  # fmt: skip
    """Solve ``A x = b`` by conjugate gradients, for a symmetric (Hermitian) positive definite matrix.

    The derivative is as accurate as the tolerance `rtol`. Returns ``(x, info)``, as SciPy does. The guess `x0` and the
    `callback` are SciPy's for plain arguments; with traced ones every solve begins at zero.

    Parameters
    ----------
    A : SparseArray, matrix or LinearOperator (n, n)
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
    A : SparseArray, matrix or LinearOperator (n, n)
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
    A : SparseArray, matrix or LinearOperator (n, n)
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


__all__ = ["bicgstab", "cg", "gmres", "spsolve"]
__getattr__ = missing("sparse.linalg")
refer({name: globals()[name] for name in __all__}, sla)
