"""A factorisation of a sparse matrix that solves with many right-hand sides: ``splu``, ``factorized``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse.linalg as sla

from fad.core.tracing.tracer import Tracer
from fad.scipy.sparse.array import SparseArray, from_scipy
from fad.scipy.sparse.systems import Direct, check_system, solve_system


class Factors:
    """The factors of a sparse matrix, as SciPy's ``SuperLU`` has them: it solves with traced right-hand sides, too.

    Made by `splu`. Where the matrix is plain, it has SciPy's attributes: ``L``, ``U``, ``perm_r``, ``perm_c``, ``nnz``.

    Parameters
    ----------
    matrix : SparseArray, shape (n, n)

    Examples
    --------
    >>> import numpy as np, scipy.sparse, fad
    >>> factors = fad.scipy.sparse.linalg.splu(scipy.sparse.diags_array([2.0, 4.0]))
    >>> fad.grad(lambda b: np.sum(factors.solve(b)))(np.ones(2))
    array([0.5 , 0.25])
    """

    def __init__(self, matrix: SparseArray):
        self._matrix = matrix
        self._method = Direct()
        self.shape = matrix.shape
        if type(matrix.data) is not Tracer:
            self.solve(np.zeros(self.shape[0]))  # a singular matrix is an error at once, as in SciPy

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Return the solution of ``A x = rhs``, with "T" of ``A.T x = rhs``, with "H" of ``A.conj().T x = rhs``.

        Parameters
        ----------
        rhs : array, shape (n,) or (n, m)
        trans : "N", "T" or "H"

        Returns
        -------
        array like `rhs`, differentiable in it and in the entries of the matrix

        Raises
        ------
        ValueError
            if the shapes do not fit, or there is no such `trans`.
        """
        if trans not in ("N", "T", "H"):
            raise ValueError(f"trans must be 'N', 'T' or 'H', not {trans!r}")
        a, b = check_system(self._matrix.conj() if trans == "H" else self._matrix, rhs)
        return solve_system(a, b, self._method, trans != "N")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or type(self._matrix.data) is Tracer or not hasattr(sla.SuperLU, name):
            raise AttributeError(f"the factors of a sparse matrix have no attribute {name!r}")
        return getattr(sla.splu(self._matrix.tocsr().tocsc()), name)


def splu(A: Any, permc_spec: Any = None, diag_pivot_thresh: Any = None, relax: Any = None, panel_size: Any = None,
         options: Any = None) -> Factors:  # fmt: skip
    """Factorise a sparse square matrix, to solve with several right-hand sides.

    Parameters
    ----------
    A : SciPy's sparse matrix, or a `fad.scipy.sparse.SparseArray`, shape (n, n)
    permc_spec, diag_pivot_thresh, relax, panel_size, options
        Ignored: they do not change the solution.

    Returns
    -------
    Factors
        Its ``solve(b)`` is differentiable in `b` and in the entries of a `SparseArray`.

    Raises
    ------
    numpy.linalg.LinAlgError
        if the matrix is singular.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, fad
    >>> a = scipy.sparse.csc_array(np.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> fad.jacobian(fad.scipy.sparse.linalg.splu(a).solve)(np.ones(2))
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    a, _ = check_system(A, np.zeros(A.shape[0]))
    return Factors(from_scipy(a))


def factorized(A: Any) -> Callable:
    """Return a function that solves with a sparse square matrix: ``splu(A).solve``.

    Parameters
    ----------
    A : SciPy's sparse matrix, or a `fad.scipy.sparse.SparseArray`, shape (n, n)

    Returns
    -------
    callable
        From a right-hand side (n,) or (n, m) to the solution; differentiable.

    Raises
    ------
    numpy.linalg.LinAlgError
        if the matrix is singular.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, fad
    >>> solve = fad.scipy.sparse.linalg.factorized(scipy.sparse.diags_array([2.0, 4.0]))
    >>> fad.grad(lambda b: np.sum(solve(b)))(np.ones(2))
    array([0.5 , 0.25])
    """
    return splu(A).solve
