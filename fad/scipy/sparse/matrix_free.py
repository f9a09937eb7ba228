"""Linear operators given by functions that may use traced values, and iterations that solve with them.

The solution is differentiated by the implicit function theorem (`fad.transforms.implicit.custom_linear_solve`): in the
right-hand side, and in all that the function uses. The transposed operator is that of the function's derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg as sla

from fad.core.primitives.primitive import has_tracer
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.holders import HOLDERS
from fad.scipy.host import plain as value
from fad.scipy.optimize.common import Problem, run
from fad.scipy.sparse.array import is_sparse
from fad.transforms.implicit import custom_linear_solve


class LinearOperator:
    """A matrix given by its products with vectors, which may depend on traced values.

    cg, bicgstab, gmres, minres and their like solve with it; it multiplies vectors and matrices.

    Parameters
    ----------
    shape : (int, int)
    matvec : callable
        From a vector (n,) to its product with the matrix (m,).
    rmatvec : callable
        The same for the conjugate transposed matrix; solvers do not need it.
    matmat, rmatmat : callable
        The same for matrices of columns; by default column by column.
    dtype : dtype
        Of the matrix; by default double precision.

    Raises
    ------
    ValueError
        where it multiplies a vector of another length.
    NotImplementedError
        where the conjugate transposed matrix multiplies, and no `rmatvec` was given.

    Examples
    --------
    >>> from fad.scipy.sparse.linalg import LinearOperator, cg
    >>> def solve(scale):
    ...     return cg(LinearOperator((2, 2), lambda v: scale * v), np.ones(2))[0]
    >>> fad.jvp(solve, (2.0,), (1.0,))
    (array([0.5, 0.5]), array([-0.25, -0.25]))
    """

    __array_ufunc__ = None  # NumPy's operators leave it to this class
    ndim = 2

    def __init__(self, shape: Any, matvec: Callable, rmatvec: Callable | None = None, matmat: Callable | None = None,
                 dtype: Any = None, rmatmat: Callable | None = None):  # fmt: skip
        self.shape = tuple(int(n) for n in shape)
        self.dtype = np.dtype(float if dtype is None else dtype)
        self._matvec, self._rmatvec, self._matmat, self._rmatmat = matvec, rmatvec, matmat, rmatmat

    def is_written(self) -> bool:
        """Return that its function may hold traced values."""
        return True

    def matvec(self, x: Any) -> Any:
        """Return the product with a vector."""
        return self._apply(self._matvec, x, self.shape)

    def rmatvec(self, x: Any) -> Any:
        """Return the product of the conjugate transposed matrix with a vector."""
        if self._rmatvec is None:
            raise NotImplementedError("rmatvec is not defined")
        return self._apply(self._rmatvec, x, self.shape[::-1])

    def _apply(self, function: Callable, x: Any, shape: tuple) -> Any:
        x = as_array(x)
        if x.shape not in ((shape[1],), (shape[1], 1)):
            raise ValueError(f"dimension mismatch: an operator of shape {shape} and a vector of shape {x.shape}")
        y = as_array(function(x))
        return y.reshape(shape[0]) if x.ndim == 1 else y.reshape(shape[0], 1)

    def matmat(self, x: Any) -> Any:
        """Return the products with the columns of a matrix."""
        if self._matmat is not None:
            return self._matmat(x)
        return np.stack([self.matvec(x[:, j]) for j in range(x.shape[1])], axis=1)

    def rmatmat(self, x: Any) -> Any:
        """Return the products of the conjugate transposed matrix with the columns of a matrix."""
        if self._rmatmat is not None:
            return self._rmatmat(x)
        return np.stack([self.rmatvec(x[:, j]) for j in range(x.shape[1])], axis=1)

    @property
    def H(self) -> LinearOperator:
        """The conjugate transposed operator."""
        return LinearOperator(self.shape[::-1], self._rmatvec or self.rmatvec, self._matvec, None, self.dtype)

    @property
    def T(self) -> LinearOperator:
        """The transposed operator."""
        forward, back = self._rmatvec or self.rmatvec, self._matvec
        turned = (lambda x: np.conj(forward(np.conj(x)))), (lambda x: np.conj(back(np.conj(x))))
        return LinearOperator(self.shape[::-1], *turned, None, self.dtype)

    def dot(self, x: Any) -> Any:
        """Return the product with a vector, with a matrix of columns, or with a number."""
        if not np.ndim(x):
            forward, back = self._matvec, self._rmatvec or self.rmatvec
            times = (lambda v: x * forward(v)), (lambda v: np.conj(x) * back(v))
            return LinearOperator(self.shape, *times, None, self.dtype)
        return self.matvec(x) if np.ndim(x) == 1 else self.matmat(x)

    __mul__ = __matmul__ = dot

    def __rmul__(self, factor: Any) -> LinearOperator:
        return self.dot(factor)

    def __add__(self, other: Any) -> LinearOperator:
        other = aslinearoperator(other)
        (f, back), (g, other_back) = [(x._matvec, x._rmatvec or x.rmatvec) for x in (self, other)]
        dtype = np.result_type(self.dtype, other.dtype)
        return LinearOperator(self.shape, lambda v: f(v) + g(v), lambda v: back(v) + other_back(v), None, dtype)

    __radd__ = __add__

    def __neg__(self) -> LinearOperator:
        return self.dot(-1.0)

    def __sub__(self, other: Any) -> LinearOperator:
        return self + (-other)


HOLDERS.append(LinearOperator)


def aslinearoperator(A: Any) -> Any:
    """Return a matrix, dense or sparse, or an operator as a `LinearOperator`.

    Parameters
    ----------
    A : array, SparseArray, sparse matrix of SciPy's, or operator

    Returns
    -------
    LinearOperator

    Raises
    ------
    TypeError
        if the argument is none of these.

    Examples
    --------
    >>> fad.scipy.sparse.linalg.aslinearoperator(2 * np.eye(2)).matvec(np.ones(2))
    array([2., 2.])
    """
    if isinstance(A, LinearOperator):
        return A
    if is_sparse(A) or (hasattr(A, "ndim") and A.ndim == 2 and not isinstance(A, sla.LinearOperator)):
        return LinearOperator(A.shape, lambda v: A @ v, lambda v: A.conj().T @ v, None, A.dtype)
    if isinstance(A, sla.LinearOperator):
        matrix = getattr(A, "A", None)
        return LinearOperator(A.shape, A._matvec if matrix is None else lambda v: matrix @ v, A._rmatvec, None, A.dtype)
    raise TypeError(f"a matrix or an operator was expected, not {type(A).__name__}")


def solve_matrix_free(name: str, A: Any, b: Any, M: Any, settings: dict) -> Any:
    """Return the solution of ``A x = b`` by one of SciPy's iterations, for an operator or a dense matrix."""
    operator, b = aslinearoperator(A), as_array(b)
    n = operator.shape[0]
    if operator.shape[1] != n:
        raise ValueError(f"matrix must be square (has shape {operator.shape})")
    if b.shape not in ((n,), (n, 1)):
        raise ValueError(f"b must be a vector of length {n}, not of shape {b.shape}")
    if isinstance(M, LinearOperator) or has_tracer((M,)):
        raise TypeError(f"the preconditioner M of {name} is a constant: make it of plain values, outside")
    b = b.reshape(n).astype(np.result_type(b.dtype, operator.dtype), copy=False)
    forward, back = (_solve_by(name, settings, M, turned) for turned in (False, True))
    return custom_linear_solve(_as_function(operator._matvec, n), b, forward, back)


def _as_function(matvec: Callable, n: int) -> Callable:
    """Return a product as a function that holds the program's own: what is traced is looked for in functions first."""
    return lambda x: as_array(matvec(x)).reshape(n)


def _solve_by(name: str, settings: dict, M: Any, turned: bool) -> Callable:
    """Return a solver of linear systems on plain values, of which `turned` has the transposed operator."""
    preconditioner = sla.aslinearoperator(M).T if turned and M is not None else M

    def solve(matvec: Callable, b: Any) -> Any:
        problem = Problem(matvec, (), b)

        def solver(b: Any, held: Any) -> tuple[Any, dict]:
            f = problem.at(held)
            matrix = sla.LinearOperator((b.size, b.size), matvec=lambda v: value(f(v)), dtype=b.dtype)
            x, info = getattr(sla, name)(matrix, b, M=preconditioner, **settings)
            if info:
                raise DerivativeError(
                    f"scipy.sparse.linalg.{name} did not converge (info = {info}), so there is no solution to "
                    "differentiate. Give it more steps (maxiter) or a preconditioner (M)"
                )
            return x, {}

        return run(solver, b, problem.held)[0]

    return solve
