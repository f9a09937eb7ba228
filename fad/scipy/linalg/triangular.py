"""Systems and factors: solve_triangular, cholesky, cho_factor, cho_solve, lu, lu_factor, lu_solve, and banded ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from fad.backends import behind, like
from fad.core.primitives.primitive import Primitive
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array
from fad.ops.linalg.common import batch_stacks, h, inexact, make_known, matrices, over_stacks, rule_batch, t
from fad.ops.linalg.decompositions import cholesky as _cholesky
from fad.ops.linalg.factors import triangular_p
from fad.scipy.bands import from_triangle
from fad.scipy.bands import solve_banded as solve_bands
from fad.scipy.linalg.common import definite, regular, scipy_function, sl
from fad.scipy.versions import FACTORS

# --- triangular systems ----------------------------------------------------------------------------------------------


def _solve(a: Any, b: Any, lower: bool, unit: bool = False) -> Any:
    if b.ndim == 1:
        return bind(triangular_p, matrices(a), b[:, None], lower=lower, unit=unit)[..., 0]
    return bind(triangular_p, matrices(a), matrices(b), lower=lower, unit=unit)


def _transpose(a: Any, trans: Any, lower: bool) -> tuple:
    """Return a matrix transposed (1, "T") or conjugated too (2, "C"), and which of its triangles counts then."""
    if trans in (0, "N"):
        return a, lower
    if trans in (1, "T"):
        return t(a), not lower
    if trans in (2, "C"):
        return h(a), not lower
    raise ValueError(f"trans must be 0, 1, 2, 'N', 'T' or 'C', not {trans!r}")


@scipy_function("solve_triangular", order="F", samples=lambda s: [
    call(regular(s, 3), s.real(3, 2)), call(regular(s, 3), s.real(3), lower=True),
    call(regular(s, 3), s.real(3), trans=1), call(regular(s, 3), s.real(3, 1), trans="C", lower=True),
    call(0.3 * s.real(3, 3), s.real(3), unit_diagonal=True)])  # fmt: skip
def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    """Solve systems with a triangular matrix, of which only the one triangle is read.

    Raises numpy.linalg.LinAlgError for a zero on the diagonal.

    >>> fad.scipy.linalg.solve_triangular(2 * np.eye(2), np.array([2.0, 4.0]))
    array([1., 2.])
    >>> fad.grad(lambda a: fad.scipy.linalg.solve_triangular(a, np.array([2.0, 4.0])).sum())(2 * np.eye(2))
    array([[-0.5, -1. ],
           [-0. , -1. ]])
    """
    a, lower = _transpose(matrices(a), trans, bool(lower))
    return _solve(a, inexact(as_array(b)), lower, bool(unit_diagonal))


# --- cholesky --------------------------------------------------------------------------------------------------------


@scipy_function("cholesky", order=FACTORS, numerical=False, samples=lambda s: [
    call(definite(s, 3)), call(definite(s, 3), lower=True), call(s.positive())])  # fmt: skip
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """Return the Cholesky factor: upper with ``a = u^H u``, or lower with ``a = l l^H``.

    The derivative is that among Hermitian matrices.

    >>> fad.scipy.linalg.cholesky(4 * np.eye(2))
    array([[2., 0.],
           [0., 2.]])
    >>> fad.grad(lambda a: fad.scipy.linalg.cholesky(a)[0, 0])(4 * np.eye(2))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    return _cholesky(np.atleast_2d(as_array(a)), upper=not lower)


@scipy_function("cho_factor", order=FACTORS, numerical=False, samples=lambda s: [
    call(definite(s, 3)), call(definite(s, 3), lower=True), call(s.positive())])  # fmt: skip
def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """Return the Cholesky factor for `cho_solve`, and `lower`; in the other triangle stands what SciPy leaves there.

    >>> fad.scipy.linalg.cho_factor(4 * np.eye(2))[0]
    array([[2., 0.],
           [0., 2.]])
    """
    a, lower = np.atleast_2d(as_array(a)), bool(lower)
    factor = _cholesky(a, upper=not lower)
    keeps, numbered = _of_cho_factor(lower)
    if keeps:
        factor = factor + (np.triu(a, 1) if lower else np.tril(a, -1))
    if a.ndim > 2 or (numbered and behind(a).name == "numpy"):
        return factor, like(a, np.full(a.shape[:-2], lower))
    return factor, lower


@functools.cache
def _of_cho_factor(lower: bool) -> tuple:
    """Return whether SciPy's factor keeps the other triangle, and whether `lower` comes back as an array.

    From 1.18 on the triangle is cleared, and an array comes back for one matrix as it does for a stack.
    """
    factor, flag = scipy.linalg.cho_factor(np.array([[2.0, 1.0], [1.0, 2.0]]), lower)
    return bool(factor[(0, 1) if lower else (1, 0)]), isinstance(flag, np.ndarray)


def _cho_solve_samples(s):
    return [
        call((sl.cho_factor(definite(s, 3))[0], False), s.real(3)),
        call((sl.cho_factor(definite(s, 3), lower=True)[0], True), s.real(3, 2)),
    ]


@scipy_function("cho_solve", order="F", samples=_cho_solve_samples)
def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """Solve ``a x = b`` given what `cho_factor` returned for `a`.

    >>> fad.scipy.linalg.cho_solve(fad.scipy.linalg.cho_factor(4 * np.eye(2)), np.array([4.0, 8.0]))
    array([1., 2.])
    """
    c, lower = c_and_lower
    c, b, lower = as_array(c), inexact(as_array(b)), bool(np.all(lower))  # one flag, or one for each of a stack
    first, second = (c, h(c)) if lower else (h(c), c)
    return _solve(second, _solve(first, b, True), False)


# --- lu --------------------------------------------------------------------------------------------------------------


def _lu_rule_jvp(tangents, y, xs, params):
    low, up = y
    inner = bind(triangular_p, low, tangents[0], lower=True, unit=True)
    inner = t(bind(triangular_p, t(up), t(inner), lower=True, unit=False))
    return low @ np.tril(inner, -1), np.triu(inner) @ up


def _lu_rule_vjp(ct, y, a, *known_factors):
    low, up = y
    inner = np.tril(t(low) @ ct[0], -1) + np.triu(ct[1] @ t(up))
    inner = bind(triangular_p, t(low), inner, lower=False, unit=True)
    return t(bind(triangular_p, up, t(inner), lower=False, unit=False))


# Square matrices that need no pivoting, and their factors.
_lu_rule_p: Primitive = Primitive(
    "lu_rule",
    lambda a, low, up: (low, up),
    jvp=_lu_rule_jvp,
    vjp=(_lu_rule_vjp, None, None),
    batch=rule_batch(lambda: _lu_rule_p),
    multi=True,
)


def _rows_and_factors(a):
    rows, low, up = sl.lu(a, p_indices=True)
    return np.argsort(rows), rows, low, up


_lu_known_p: Primitive = make_known("lu_known", over_stacks(_rows_and_factors, 4), batch_stacks(lambda: _lu_known_p))


def _lu(a: Any) -> tuple:
    """Return ``(rows, low, up)`` with ``a = (low @ up)[rows]``."""
    order, rows, low, up = bind(_lu_known_p, a)
    k = min(a.shape[-2:])
    if k == 0:
        return rows, low, up
    a = np.take_along_axis(a, np.broadcast_to(order[..., None], a.shape), axis=-2)
    l1, u1 = bind(_lu_rule_p, a[..., :k, :k], low[..., :k, :], up[..., :, :k])
    if a.shape[-2] > k:
        rest = t(bind(triangular_p, t(u1), t(a[..., k:, :]), lower=True, unit=False))
        return rows, np.concatenate([l1, rest], -2), u1
    if a.shape[-1] > k:
        rest = bind(triangular_p, l1, a[..., k:], lower=True, unit=True)
        return rows, l1, np.concatenate([u1, rest], -1)
    return rows, l1, u1


def _lu_samples(s):
    return [
        call(s.real(3, 3)), call(s.real(4, 2)), call(s.real(2, 3)), call(s.real(3, 3), permute_l=True),
        call(s.real(3, 3), p_indices=True),
    ]  # fmt: skip


@scipy_function("lu", samples=_lu_samples)
def lu(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
    """Return permutation, lower and upper factor, ``a = p @ l @ u``; the permutation is constant.

    Raises numpy.linalg.LinAlgError where a leading block has no inverse: the factors have no derivative there.

    >>> fad.scipy.linalg.lu(np.array([[2.0, 1.0], [1.0, 2.0]]))[2]
    array([[2. , 1. ],
           [0. , 1.5]])
    """
    a = inexact(as_array(a))
    rows, low, up = _lu(a)
    if permute_l and 0 in a.shape[-2:]:
        return low, up  # SciPy's rows are none
    if permute_l:
        return np.take_along_axis(low, np.broadcast_to(rows[..., None], low.shape), axis=-2), up
    if p_indices:
        return rows.astype(np.int32), low, up
    p = (rows[..., :, None] == like(rows, np.arange(rows.shape[-1]))).astype(low.real.dtype)
    return p, low, up


_pivots_p: Primitive = Primitive(
    "lu_pivots",
    lambda a: sl.lu_factor(a)[1] if a.ndim == 2 else np.stack([sl.lu_factor(x)[1] for x in a]),
    flat=True,
    batch=lambda size, batched, xs, params: np.stack([bind(_pivots_p, x) for x in xs[0]]),
    archetype="flat",
)


@scipy_function("lu_factor", order="F", samples=lambda s: [call(s.real(3, 3)), call(s.real(4, 2)), call(s.real(2, 3))])
def lu_factor(a, overwrite_a=False, check_finite=True):
    """Return both factors in one matrix, and the pivots, for `lu_solve`.

    >>> fad.scipy.linalg.lu_factor(np.array([[2.0, 1.0], [1.0, 2.0]]))[0]
    array([[2. , 1. ],
           [0.5, 1.5]])
    """
    a = matrices(a)
    _, low, up = _lu(a)
    k = min(a.shape[-2:])
    both = np.concatenate([np.tril(low[..., :k, :], -1) + up[..., :k], up[..., k:]], -1)
    return both if a.shape[-2] <= k else np.concatenate([both, low[..., k:, :]], -2), bind(_pivots_p, a)


@scipy_function("lu_solve", order="F", samples=lambda s: [
    call(sl.lu_factor(s.real(3, 3)), s.real(3)), call(sl.lu_factor(s.real(3, 3)), s.real(3, 2), trans=1),
    call(sl.lu_factor(s.real(3, 3)), s.real(3), trans=2)], constants=())  # fmt: skip
def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """Solve ``a x = b`` given what `lu_factor` returned for `a`.

    >>> fad.scipy.linalg.lu_solve(fad.scipy.linalg.lu_factor(2 * np.eye(2)), np.array([2.0, 4.0]))
    array([1., 2.])
    """
    factors, pivots = lu_and_piv
    factors, b = as_array(factors), inexact(as_array(b))
    order = _order(pivots)
    if trans == 0:
        return _solve(factors, _solve(factors, b[order], True, True), False)
    outer, lower = _transpose(factors, trans, False)
    y = _solve(_transpose(factors, trans, True)[0], _solve(outer, b, lower), False, True)
    return y[np.argsort(order)]


def _order(pivots):
    """Return the order of rows that a sequence of exchanges leads to."""
    order = list(range(len(pivots)))
    for i, p in enumerate(pivots):
        p = int(p)
        order[i], order[p] = order[p], order[i]
    return np.array(order)


# --- bands -----------------------------------------------------------------------------------------------------------


def _solve_banded(ab: Any, b: Any, solve: Callable) -> Any:
    """Solve a system stored by its diagonals, or each of a stack of them: a vector belongs to all of the stack."""
    if ab.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise ValueError("shapes of ab and b are not compatible.")
    if ab.ndim == 2 and b.ndim <= 2:
        return solve(ab, b)
    lead = np.broadcast_shapes(ab.shape[:-2], b.shape[:-2])
    ab = np.broadcast_to(ab, (*lead, *ab.shape[-2:]))
    b = np.broadcast_to(b, (*lead, *b.shape[-2:]))
    found = np.stack([solve(ab[i], b[i]) for i in np.ndindex(*lead)])
    return found.reshape((*lead, *found.shape[1:]))


@scipy_function("solve_banded", samples=lambda s: [
    call((1, 1), s.real(3, 4) + np.array([[0.0], [6.0], [0.0]], s.dtype), s.real(4)),
    call((0, 1), s.real(2, 3) + np.array([[0.0], [5.0]], s.dtype), s.real(3, 2)),
    call((1, 0), s.real(2, 2, 3) + np.array([[5.0], [0.0]], s.dtype), s.real(3)),
    call((1, 1), s.real(3, 1) + np.array([[0.0], [6.0], [0.0]], s.dtype), s.real(2, 1, 1))])  # fmt: skip
def solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True):
    """Solve systems whose matrices are stored by their diagonals, in time linear in their size; nothing is overwritten.

    >>> import numpy as np, fad
    >>> from fad.scipy.linalg import solve_banded
    >>> ab = np.array([[0.0, 1.0], [2.0, 4.0]])  # [[2, 1], [0, 4]]
    >>> fad.jvp(lambda ab: solve_banded((0, 1), ab, np.array([3.0, 4.0])), (ab,), (ab,))
    (array([1., 1.]), array([-1., -1.]))
    """
    ab, b = inexact(as_array(ab)), inexact(as_array(b))
    below, above = l_and_u
    if below + above + 1 != ab.shape[-2]:
        raise ValueError(
            "invalid values for the number of lower and upper diagonals: "
            f"l+u+1 ({below + above + 1}) does not equal ab.shape[0] ({ab.shape[-2]})"
        )
    return _solve_banded(ab, b, lambda ab, b: solve_bands(ab, b, below, above))


@scipy_function("solveh_banded", samples=lambda s: [
    call(0.5 * s.real(3, 4) + np.array([[0.0], [0.0], [6.0]], s.dtype), s.real(4)),
    call(0.5 * s.real(2, 3) + np.array([[5.0], [0.0]], s.dtype), s.real(3, 2), lower=True),
    call(0.5 * s.real(2, 2, 3) + np.array([[0.0], [5.0]], s.dtype), s.real(3))])  # fmt: skip
def solveh_banded(ab, b, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True):
    """Solve systems with Hermitian positive-definite matrices, of which one triangle is stored by its diagonals.

    Raises numpy.linalg.LinAlgError for a matrix that is not positive definite.

    >>> fad.scipy.linalg.solveh_banded(np.array([[2.0, 2.0], [0.0, 0.0]]), np.array([2.0, 4.0]), lower=True)
    array([1., 2.])
    """
    ab, b = inexact(as_array(ab)), inexact(as_array(b))
    n = ab.shape[-2] - 1
    return _solve_banded(ab, b, lambda ab, b: solve_bands(from_triangle(ab, bool(lower)), b, n, n, definite=True))
