"""Matrices of a structure: block_diag, toeplitz, circulant, hankel, companion, leslie, and systems with them."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import scipy.linalg

from fad.backends import like
from fad.core.primitives.samples import call
from fad.ops.arrangement.structural import as_array
from fad.ops.linalg.common import conj
from fad.scipy.linalg.common import double, scipy_function


@scipy_function("block_diag", samples=lambda s: [
    call(s.real(2, 2), s.real(1, 3), s.real(2)), call(s.real(2, 1)), call(s.real(2, 2), 1.5)])  # fmt: skip
def block_diag(*arrs):
    """Return a matrix with the given matrices along its diagonal; vectors count as rows.

    >>> fad.scipy.linalg.block_diag(np.eye(2), 3.0)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 3.]])
    >>> fad.grad(lambda b: fad.scipy.linalg.block_diag(np.eye(2), b).sum())(3.0)
    np.float64(1.0)
    """
    blocks = [np.atleast_2d(as_array(a)) for a in arrs]
    width = sum(b.shape[-1] for b in blocks)
    dtype = np.result_type(*[b.dtype for b in blocks])
    rows, left = [], 0
    near = next((b for b in blocks if type(b) is not np.ndarray), blocks[0])
    for b in blocks:
        b = like(near, b)
        *lead, m, n = b.shape
        before = np.zeros_like(near, shape=(*lead, m, left), dtype=dtype)
        after = np.zeros_like(near, shape=(*lead, m, width - left - n), dtype=dtype)
        rows.append(np.concatenate([before, b, after], -1))
        left += n
    return np.concatenate(rows, -2)


def _along(values: Any, index: Any) -> Any:
    return values[..., index]


@functools.cache
def _ravels(name: str) -> bool:
    """Return whether this SciPy's function strings out arrays of several axes: newer ones take them for stacks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(scipy.linalg, name)(np.ones((1, 1))).ndim == 2


def _vectors(name: str, c: Any, r: Any) -> tuple:
    """Return two vectors, or stacks of as many, as a function of this SciPy takes them."""
    if (c.ndim > 1 or r.ndim > 1) and _ravels(name):
        return c.reshape(-1), r.reshape(-1)
    lead = np.broadcast_shapes(c.shape[:-1], r.shape[:-1])
    return np.broadcast_to(c, lead + c.shape[-1:]), np.broadcast_to(r, lead + r.shape[-1:])


@scipy_function("toeplitz", samples=lambda s: [
    call(s.real(3)), call(s.real(3), s.real(4)), call(s.real(3), s.real(1))])  # fmt: skip
def toeplitz(c, r=None):
    """Return the matrix with constant diagonals, first column `c` and first row `r`, by default ``conj(c)``.

    >>> fad.scipy.linalg.toeplitz(np.array([1.0, 2.0, 3.0]))
    array([[1., 2., 3.],
           [2., 1., 2.],
           [3., 2., 1.]])
    >>> fad.grad(lambda c: fad.scipy.linalg.toeplitz(c).sum())(np.array([1.0, 2.0, 3.0]))
    array([3., 4., 2.])
    """
    c = np.atleast_1d(as_array(c))
    c, r = _vectors("toeplitz", c, conj(c) if r is None else np.atleast_1d(as_array(r)))
    m, n = c.shape[-1], r.shape[-1]
    i, j = np.indices((m, n))
    return _along(np.concatenate([c[..., ::-1], r[..., 1:]], -1), m - 1 - i + j)


@scipy_function("circulant", samples=lambda s: [call(s.real(4))])
def circulant(c):
    """Return the matrix whose columns are `c`, turned by one place more each.

    >>> fad.scipy.linalg.circulant(np.array([1.0, 2.0, 3.0]))
    array([[1., 3., 2.],
           [2., 1., 3.],
           [3., 2., 1.]])
    """
    c = np.atleast_1d(as_array(c))
    i, j = np.indices((c.shape[-1],) * 2)
    return _along(c, (i - j) % c.shape[-1])


@scipy_function("hankel", samples=lambda s: [call(s.real(3)), call(s.real(3), s.real(4))])
def hankel(c, r=None):
    """Return the matrix with constant antidiagonals, first column `c` and last row `r` (by default zeros).

    Arrays of several axes are what they are in the installed SciPy: strung out before 1.19, and stacks from then on.

    >>> fad.scipy.linalg.hankel(np.array([1.0, 2.0, 3.0]))
    array([[1., 2., 3.],
           [2., 3., 0.],
           [3., 0., 0.]])
    """
    c = as_array(c)
    c, r = _vectors("hankel", c, np.zeros_like(c) if r is None else as_array(r))
    i, j = np.indices((c.shape[-1], r.shape[-1]))
    return _along(np.concatenate([c, r[..., 1:]], -1), i + j)


@scipy_function("companion", samples=lambda s: [call(s.positive(4))])
def companion(a):
    """Return the companion matrix of a polynomial, highest power first.

    >>> fad.scipy.linalg.companion(np.array([1.0, -3.0, 2.0]))
    array([[ 3., -2.],
           [ 1.,  0.]])
    """
    a = as_array(a)
    n = a.shape[-1] - 1
    if n < 1:
        raise ValueError("The length of `a` along the last axis must be at least 2")
    first = -a[..., None, 1:] / a[..., None, :1]
    below = np.broadcast_to(like(first, np.eye(n - 1, n, dtype=first.dtype)), (*first.shape[:-2], n - 1, n))
    return np.concatenate([first, below], -2)


@scipy_function("convolution_matrix", constants=(1,), samples=lambda s: [
    call(s.real(3), 4), call(s.real(3), 4, mode="same"), call(s.real(3), 5, mode="valid")])  # fmt: skip
def convolution_matrix(a, n, mode="full"):
    """Return the matrix that convolves a vector of length `n` with `a`.

    >>> fad.scipy.linalg.convolution_matrix(np.array([1.0, 2.0]), 2)
    array([[1., 0.],
           [2., 1.],
           [0., 2.]])
    """
    a = as_array(a)
    if n <= 0:
        raise ValueError("n must be a positive integer.")
    if mode not in ("full", "same", "valid"):
        raise ValueError("'mode' argument must be one of ('full', 'valid', 'same')")
    m = a.shape[-1]
    i, j = np.indices((m + n - 1, n))
    inside = (i >= j) & (i - j < m)
    shifted = _along(a, np.where(inside, i - j, 0))
    full = np.where(like(a, inside), shifted, np.zeros_like(shifted))
    if mode == "full":
        return full
    length = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    cut = (m + n - 1 - length) // 2 if mode == "same" else min(m, n) - 1
    return full[..., cut : cut + length, :]


@scipy_function("fiedler", samples=lambda s: [call(s.real(4)), call(s.real(1)), call(s.real(2, 3))])
def fiedler(a):
    """Return the symmetric matrix of distances between the numbers of a vector.

    >>> fad.scipy.linalg.fiedler(np.array([1.0, 2.0, 4.0]))
    array([[0., 1., 3.],
           [1., 0., 2.],
           [3., 2., 0.]])
    """
    a = np.atleast_1d(as_array(a))
    if a.size < 2:
        return np.zeros_like(a, shape=(1, 1) if a.size else (0,), dtype=float)
    return np.abs(a[..., :, None] - a[..., None, :])


@scipy_function(
    "leslie",
    samples=lambda s: [call(s.real(4), s.real(3)), call(s.real(2), s.real(1))],
    raises="ValueError: `s` is not one shorter than `f`.",
)
def leslie(f, s):
    """Return the Leslie matrix of a population: births `f` in the first row, survivals `s` below the diagonal.

    >>> fad.scipy.linalg.leslie(np.array([1.0, 2.0]), np.array([0.5]))
    array([[1. , 2. ],
           [0.5, 0. ]])
    """
    f, s = np.atleast_1d(as_array(f)), np.atleast_1d(as_array(s))
    n = f.shape[-1]
    if n != s.shape[-1] + 1 or n < 2:
        raise ValueError("leslie takes n births, two at least, and n - 1 survivals: the last axes do not fit")
    lead = np.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    f, s = np.broadcast_to(f, (*lead, n)), np.broadcast_to(s, (*lead, n - 1))
    below = s[..., :, None] * like(s, np.eye(n - 1, n, dtype=s.dtype))
    return np.concatenate([f[..., None, :], below], -2)


@scipy_function(
    "khatri_rao",
    samples=lambda s: [call(s.real(2, 3), s.real(4, 3))],
    raises="ValueError: The matrices have different numbers of columns.",
)
def khatri_rao(a, b):
    """Return the Kronecker products of the columns of two matrices.

    >>> fad.scipy.linalg.khatri_rao(np.eye(2), np.ones((1, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    a, b = as_array(a), as_array(b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("The number of columns for both arrays should be equal.")
    both = a[..., :, None, :] * b[..., None, :, :]
    return both.reshape(*both.shape[:-3], a.shape[-2] * b.shape[-2], a.shape[-1])


@scipy_function(
    "diagsvd",
    constants=(1, 2),
    samples=lambda s: [call(s.real(2), 3, 2), call(s.real(2), 2, 3)],
    raises="ValueError: The vector has neither `M` nor `N` elements.",
)
def diagsvd(s, M, N):
    """Return the M by N matrix with singular values `s` on its diagonal.

    >>> fad.scipy.linalg.diagsvd(np.array([1.0, 2.0]), 2, 3)
    array([[1., 0., 0.],
           [0., 2., 0.]])
    """
    s = as_array(s)
    n = s.shape[-1]
    if n not in (M, N):
        raise ValueError("Length of s must be M or N.")
    square = s[:, None] * like(s, np.eye(n, dtype=s.dtype))
    rest = np.zeros_like(s, shape=(M - n, N) if n == N else (M, N - n))
    return np.concatenate([square, rest], 0 if n == N else 1)


def _column_and_row(c_or_cr: Any) -> tuple:
    return c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)


def _dominant(s, n):
    x = s.real(n)
    return x + 8.0 * np.eye(1, n, dtype=x.dtype)[0]


@scipy_function("solve_toeplitz", samples=lambda s: [
    call((_dominant(s, 3), s.real(3)), s.real(3)), call(_dominant(s, 3), s.real(3, 2))])  # fmt: skip
def solve_toeplitz(c_or_cr, b, check_finite=True):
    """Solve a system with a Toeplitz matrix, given by its first column and row, as a dense one.

    >>> fad.scipy.linalg.solve_toeplitz(np.array([2.0, 1.0]), np.array([3.0, 3.0]))
    array([1., 1.])
    """
    return np.linalg.solve(double(toeplitz(*_column_and_row(c_or_cr))), double(as_array(b)))


@scipy_function("matmul_toeplitz", samples=lambda s: [
    call((s.real(3), s.real(4)), s.real(4)), call(s.real(3), s.real(3, 2))],
    raises="ValueError: `x` has another length than the matrix has columns.")  # fmt: skip
def matmul_toeplitz(c_or_cr, x, check_finite=False, workers=None):
    """Multiply with a Toeplitz matrix, given by its first column and row.

    >>> fad.scipy.linalg.matmul_toeplitz(np.array([1.0, 2.0]), np.array([1.0, 1.0])).round(6)
    array([3., 3.])
    """
    return double(toeplitz(*_column_and_row(c_or_cr))) @ double(as_array(x))


@scipy_function("solve_circulant", samples=lambda s: [
    call(_dominant(s, 3), s.real(3)), call(_dominant(s, 3), s.real(3, 2))])  # fmt: skip
def solve_circulant(c, b, singular="raise", tol=None, caxis=-1, baxis=0, outaxis=0):
    """Solve systems with circulant matrices, as dense ones; vectors lie along `caxis`, `baxis` and `outaxis`.

    >>> fad.scipy.linalg.solve_circulant(np.array([2.0, 1.0]), np.array([3.0, 3.0])).round(6)
    array([1., 1.])
    """
    if singular != "raise":
        raise ValueError("solve_circulant of traced values takes singular='raise' alone")
    c, b = np.atleast_1d(as_array(c)), np.atleast_1d(as_array(b))
    for name, x, axis in (("caxis", c, caxis), ("baxis", b, baxis)):
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(f"{name!r} entry is out of bounds")
    if c.shape[caxis] != b.shape[baxis]:
        raise ValueError(f"Shapes of c {c.shape} and b {b.shape} are incompatible")
    if b.size == 0:
        return np.zeros_like(b, dtype=np.result_type(c.dtype, b.dtype, np.float32))
    matrix, b = circulant(np.moveaxis(c, caxis, -1)), np.moveaxis(b, baxis, -1)
    if c.ndim == 1:  # one matrix, and a column for each vector
        columns = np.linalg.solve(matrix, b.reshape(-1, b.shape[-1]).T)
        x = columns.T.reshape(b.shape)
    else:
        x = np.linalg.solve(matrix, b[..., None])[..., 0]
    return np.moveaxis(x, -1, outaxis)
