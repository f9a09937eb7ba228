"""Functions of SciPy's linear algebra written in products and solutions, for a device whose library has these alone.

Nothing here runs on the host, where SciPy goes by Schur's form. The iterations look at numbers to know when to stop, so
a device is waited for. Sources: Higham, Functions of Matrices (2008), chapters 5, 6 and 11; for the discrete Riccati
equation, Chu, Fan, Lin and Wang, Int. J. Control 77 (2004).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like
from fad.backends.counterparts import scipy_function
from fad.errors import BackendFunctionError
from fad.ops.linalg.common import eye_like, h

_STEPS = 100
_expm = scipy_function("linalg.expm")


def _in_double(function: Callable) -> Callable:
    """Let a function of matrices work in double precision, and give its operands' precision."""

    @functools.wraps(function)
    def run(*xs: Any, **params: Any) -> Any:
        dtype = np.result_type(*xs)
        double = np.complex128 if dtype.kind == "c" else np.float64
        return function(*[x.astype(double) for x in xs], **params).astype(dtype)

    return run


def _size(a: Any) -> float:
    return float(np.max(np.sum(np.abs(a), -2)))


def _balance(a: Any) -> float:
    """Return the factor that brings a matrix to a determinant of magnitude 1, where iterations converge soonest."""
    return float(np.exp(-np.linalg.slogdet(a)[1] / a.shape[-1]))


# --- roots, logarithms and powers -----------------------------------------------------------------------------------


@_in_double
def sqrtm(a):
    """Return the principal square root of a matrix without eigenvalues on the negative real axis.

    By the product form of Denman and Beavers' iteration (Higham, 6.29): x tends to the root, and m to 1.
    """
    one, x, m = eye_like(a, a.shape[-1]), a, a
    for _ in range(_STEPS):
        off = _size(m - one)
        if not np.isfinite(off) or off < 1e-15 * len(a):
            break
        square = _balance(m) if off > 0.01 else 1.0
        inverse = np.linalg.inv(m) / square
        x = 0.5 * square**0.5 * (x + x @ inverse)
        before, m = off, 0.5 * (one + 0.5 * (square * m + inverse))
        if before < 1e-8:  # it converges quadratically, and rounding is all that is left
            break
    if not _size(x @ x - a) <= 1e-8 * _size(a):
        raise BackendFunctionError(
            "on a device the iteration for the square root of a matrix does not converge: it needs a matrix without "
            "eigenvalues that are zero or negative. Compute it on the host with fad.device_get(x)"
        )
    return x


@_in_double
def logm(A):
    """Return the principal logarithm: of a root near 1 by Padé's approximant as a sum of fractions (Higham, 11.18)."""
    one, doublings = eye_like(A, A.shape[-1]), 0
    while _size(A - one) > 0.25:
        A, doublings = sqrtm(A), doublings + 1
    x = A - one
    nodes, weights = (0.5 * v.astype(object) for v in np.polynomial.legendre.leggauss(8))  # Python's numbers
    terms = [w * np.linalg.solve(one + (0.5 + p) * x, x) for p, w in zip(nodes, weights, strict=True)]
    return 2.0**doublings * sum(terms[1:], terms[0])


def fractional_matrix_power(A, t):
    """Return a real power: the whole part by products, and the rest by the logarithm."""
    return _power(A, t=t)


@_in_double
def _power(a, *, t):
    whole = int(np.floor(t))
    power = np.linalg.matrix_power(a, whole)
    return power if whole == t else power @ _expm((t - whole) * logm(a))


# --- equations ------------------------------------------------------------------------------------------------------


@_in_double
def solve_sylvester(a, b, q):
    """Solve ``a x + x b = q`` as a linear system for the elements of x, whose matrix has (x.size)**2 elements."""
    n, m = q.shape
    system = np.kron(a, eye_like(b, m)) + np.kron(eye_like(a, n), b.T)
    return np.linalg.solve(system, q.reshape(-1)).reshape(n, m)


@_in_double
def solve_continuous_are(a, b, q, r):
    """Solve the equation by the sign of its Hamiltonian matrix (Higham, section 2.8), and a step of Newton's method."""
    n = len(a)
    g = b @ np.linalg.solve(r, h(b))
    z = np.concatenate([np.concatenate([a, -g], 1), np.concatenate([-q, -h(a)], 1)], 0)
    for _ in range(_STEPS):
        scaled = _balance(z) * z
        before, z = z, 0.5 * (scaled + np.linalg.inv(scaled))
        if not _size(z - before) > 1e-13 * _size(z):
            break
    one = eye_like(a, n)
    left = np.concatenate([z[:n, n:], z[n:, n:] + one], 0)
    right = -np.concatenate([z[:n, :n] + one, z[n:, :n]], 0)
    basis, corner = np.linalg.qr(left)
    x = np.linalg.solve(corner, h(basis) @ right)
    x = solve_sylvester(h(a - g @ x), a - g @ x, -(q + x @ g @ x))
    return 0.5 * (x + h(x))


@_in_double
def solve_discrete_are(a, b, q, r):
    """Solve the equation by doubling, which keeps its structure: x is what the third matrix tends to."""
    g, x, one = b @ np.linalg.solve(r, h(b)), q, eye_like(a, len(a))
    for _ in range(_STEPS):
        w = np.linalg.inv(one + g @ x)
        a, g, before, x = a @ w @ a, g + a @ w @ g @ h(a), x, x + h(a) @ x @ w @ a
        if not _size(x - before) > 1e-15 * _size(x):
            break
    return 0.5 * (x + h(x))


# --- pivots ---------------------------------------------------------------------------------------------------------


def column_order(a: Any) -> Any:
    """Return the order in which each column is the longest of what is left, by exchanges as LAPACK's pivoted QR."""
    n = a.shape[1]
    places = like(a, np.arange(n))
    order, rest = places, a
    for j in range(min(a.shape)):
        lengths = np.where(places < j, -1.0, np.sum((rest * rest.conj()).real, 0))
        p = np.argmax(lengths)
        exchanged = np.where(places == j, p, np.where(places == p, j, places))
        order, rest = order[exchanged], rest[:, exchanged]
        v = rest[:, j : j + 1] / np.sqrt(np.max(lengths))
        rest = rest - v @ (h(v) @ rest)
    return order.astype(np.int32)
