"""Linear systems, inverses, least squares, determinants and norms of scipy.linalg, with all of SciPy's options."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fad.core.primitives.samples import call
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array
from fad.ops.linalg import singular
from fad.ops.linalg.common import (
    eps,
    hermitian_part,
    inexact,
)
from fad.ops.reductions.norms import kinks_of_matrix
from fad.ops.ufuncs.conversion import as_python_number
from fad.scipy.linalg.common import double, refuse_options, regular, scipy_function, sl
from fad.scipy.versions import FACTORS, SINCE_1_18

# --- plain solves ---------------------------------------------------------------------------------------------------


@scipy_function("inv", samples=lambda s: [call(regular(s, 3))])
def inv(a, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False):
    """Return the inverse of a matrix.

    >>> fad.scipy.linalg.inv(2 * np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> fad.grad(lambda a: fad.scipy.linalg.inv(a)[0, 0])(2 * np.eye(2))
    array([[-0.25, -0.  ],
           [-0.  , -0.  ]])
    """
    return np.linalg.inv(_assume(a, assume_a, lower))


@scipy_function("det", samples=lambda s: [call(double(s.real(3, 3)))])
def det(a, overwrite_a=False, check_finite=True):
    """Return the determinant; the derivative is exact for singular matrices too.

    >>> fad.scipy.linalg.det(2 * np.eye(2))
    np.float64(4.0)
    >>> fad.grad(fad.scipy.linalg.det)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 4., -3.],
           [-2.,  1.]])
    """
    return np.linalg.det(double(as_array(a)))  # SciPy's result is double, always


def _sample_pinv(s):
    # Far from a lower rank, where the derivatives grow without bound.
    tall, wide = (2.0 * np.eye(*shape, dtype=s.dtype) + 0.5 * s.real(*shape) for shape in ((3, 2), (2, 3)))
    return [call(tall.astype(s.dtype)), call(wide.astype(s.dtype), rtol=1e-10)]


@scipy_function("pinv", order=FACTORS, samples=_sample_pinv)
def pinv(a, *, atol=None, rtol=None, return_rank=False, check_finite=True):
    """Return the pseudo-inverse; the derivative is that among matrices of the same rank.

    >>> fad.scipy.linalg.pinv(np.diag(np.array([1.0, 2.0])))
    array([[1. , 0. ],
           [0. , 0.5]])
    """
    refuse_options(atol=atol)
    a = inexact(as_array(a))
    rtol = eps(a) * max(a.shape[-2:]) if rtol is None else rtol
    y = singular.pinv(a, rtol)
    return (y, int(np.linalg.matrix_rank(a, rtol=rtol))) if return_rank else y


def _assume(a: Any, assume_a: str | None, lower: bool) -> Any:
    """Return the matrix that SciPy reads from `a` under an assumption."""
    a = inexact(as_array(a))
    if assume_a is not None and not _knows_structure(assume_a):
        raise ValueError(f"{assume_a} is not a recognized matrix structure")
    if assume_a in (None, "gen", "general", "banded"):
        return a
    if assume_a in ("diagonal", "tridiagonal"):
        beside = int(assume_a == "tridiagonal")
        return np.triu(np.tril(a, beside), -beside)
    if assume_a in ("her", "hermitian", "pos", "positive definite"):
        return hermitian_part(a, "L" if lower else "U")
    if assume_a in ("upper triangular", "lower triangular"):
        return np.triu(a) if assume_a.startswith("upper") else np.tril(a)
    if assume_a in ("sym", "symmetric"):
        read, mirrored = (np.tril(a), np.tril(a, -1)) if lower else (np.triu(a), np.triu(a, 1))
        return read + mirrored.swapaxes(-1, -2)
    raise MissingRuleError(f"assume_a={assume_a!r} has no rule for traced matrices; leave it out")


@functools.cache
def _knows_structure(name: str) -> bool:
    """Return whether SciPy's `solve` has a name for a structure."""
    try:
        sl.solve(np.eye(3), np.ones(3), assume_a=name)  # of one equation some releases find no tridiagonal solution
    except ValueError:
        return False
    return True


def _apply_structure(s):
    return [
        call(regular(s, 3), s.real(3), assume_a=name) for name in ("upper triangular", "lower triangular", "general")
    ]


@scipy_function("solve", samples=lambda s: [
    call(regular(s, 3), s.real(3)), call(regular(s, 3), s.real(3, 2), transposed=True), call(s.positive(), s.real(2)),
    *_apply_structure(s)],
    constants=("assume_a",))  # fmt: skip
def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None, transposed=False):
    """Solve ``a x = b``, or ``a^T x = b`` if `transposed`, for a square matrix of a known structure or of any.

    >>> fad.scipy.linalg.solve(2 * np.eye(2), np.array([2.0, 4.0]))
    array([1., 2.])
    >>> fad.grad(lambda b: fad.scipy.linalg.solve(2 * np.eye(2), b).sum())(np.array([2.0, 4.0]))
    array([0.5, 0.5])
    """
    a = _assume(np.atleast_2d(as_array(a)), assume_a, lower)
    b = np.atleast_1d(inexact(as_array(b)))
    if a.shape == (1, 1):  # a number divides all of b, whatever its shape
        return np.linalg.solve(a, b.reshape(1, -1)).reshape(b.shape)
    return np.linalg.solve(a.swapaxes(-1, -2) if transposed else a, b)


@scipy_function("lstsq", order=FACTORS, constants=("cond",), samples=lambda s: [
    call(s.real(4, 2), s.real(4)), call(regular(s, 3), s.real(3, 2))])  # fmt: skip
def lstsq(a, b, cond=None, overwrite_a=False, overwrite_b=False, check_finite=True, lapack_driver=None):
    """Return the least-squares solution of smallest norm, squared residuals, rank and singular values.

    >>> fad.scipy.linalg.lstsq(np.ones((2, 1)), np.array([1.0, 3.0]))[0].round(6)
    array([2.])
    """
    a, b = inexact(as_array(a)), inexact(as_array(b))
    driver = "gelsd" if lapack_driver is None else lapack_driver
    if driver not in ("gelsd", "gelsy", "gelss"):
        raise ValueError(f'LAPACK driver "{driver}" is not found')
    if SINCE_1_18 and cond is not None and cond < 0.0:
        raise ValueError("Expected rcond >= 0.")
    given = driver == "gelss" and cond is not None and cond >= 0.0
    x, residuals, rank, s = singular.least_squares(
        a, b, lambda a: cond if given else eps(a) if cond is None else singular.share_of_gelsd(a, cond)
    )
    if driver == "gelsy":
        return x, np.zeros_like(x, shape=(0,)), rank.astype(np.int64), None
    if a.shape == (0, 0):
        residuals = np.sum(b.real, 0, keepdims=b.ndim == 1)  # of no equation
    return x, _residuals(residuals, x, a.shape, b.shape), rank.astype(np.int64), s


def _residuals(residuals: Any, x: Any, of_a: tuple, of_b: tuple) -> Any:
    """Return NumPy's residuals, which are empty for a matrix of less than full rank, in the form of SciPy's."""
    full, deficient = _residuals_of_scipy(x.dtype)
    if residuals.size == 0:
        if of_a[-2] <= of_a[-1] or deficient.size == 0:
            return residuals.astype(x.dtype)
        residuals = np.full_like(x, np.nan, shape=of_b[1:] or (1,))
    residuals = residuals.astype(full.dtype)
    if len(of_b) > 1:
        return residuals
    return residuals[0] if isinstance(full, np.generic) else residuals.reshape(())


@functools.cache
def _residuals_of_scipy(dtype: Any) -> tuple:
    """Return the residual of one system of full rank and of one that is not, as this SciPy gives it.

    Versions differ in its dtype for complex systems, in its kind, and in whether it is NaN or left out.
    """
    ones = np.ones((2, 1), dtype)
    return sl.lstsq(ones, ones[:, 0])[1], sl.lstsq(0 * ones, ones[:, 0])[1]


@scipy_function("norm", kinks=kinks_of_matrix, samples=lambda s: [
    call(s.real(3, 2)), call(s.real(3), 1), call(s.real(2, 3), "nuc")])  # fmt: skip
def norm(a, ord=None, axis=None, keepdims=False, check_finite=True):
    """Return a vector or matrix norm, as ``numpy.linalg.norm``.

    >>> fad.scipy.linalg.norm(np.array([3.0, 4.0]))
    5.0
    >>> fad.grad(fad.scipy.linalg.norm)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    a = as_array(a)
    y = np.linalg.norm(a, ord, axis, keepdims)
    by_lapack = axis is None and not keepdims and ord in {1: (None, 2), 2: (1, np.inf)}.get(a.ndim, ())
    return as_python_number(y) if by_lapack else y
