"""Decompositions and solves in SciPy's signatures: eigh (generalised too), eig, svd, qr, polar, inv, solve, lstsq."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from fad.backends import like
from fad.core.primitives.primitive import Primitive
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.core.tracing.values import depth, stop_gradient
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array
from fad.ops.layout.memory_order import lay_out
from fad.ops.linalg.common import (
    batch_stacks,
    conj,
    diagonal,
    eps,
    flag,
    h,
    hermitian_part,
    inexact,
    make_known,
    matrices,
    over_stacks,
    part,
    reciprocal_gaps,
    row,
    rule_batch,
)
from fad.ops.linalg.eigen import diag_matrix, eigh_rule_p, general
from fad.scipy.linalg import formulas
from fad.scipy.linalg.common import (
    definite,
    double,
    refuse_options,
    regular,
    scipy_function,
    sl,
)
from fad.scipy.linalg.solving import pinv
from fad.scipy.versions import FACTORS

_GAUGE: dict[str, Any] = dict(numerical=False, gauge="the phases of the vectors, and the triangle that is read")


def _hermitian(s, n):
    x = s.real(n, n)
    return x + np.conjugate(x.T)


# --- eigh: a v = b v diag(w), v^H b v = 1 ---------------------------------------------------------------------------


def _pencil_jvp(tangents, y, xs, params):
    w, v = y
    da, db = (np.zeros_like(x) if d is None else d for d, x in zip(tangents[:2], xs[:2], strict=True))
    p, m = h(v) @ da @ v, h(v) @ db @ v
    dw = diagonal(p - m * row(w))
    mixing = reciprocal_gaps(w) * (p - m * row(w)) - 0.5 * diag_matrix(diagonal(m))
    return dw.real if dw.dtype.kind == "c" else dw, v @ mixing


_pencil_p: Primitive = Primitive(
    "eigh_pencil_rule",
    lambda a, b, w, v: (w, v),
    jvp=_pencil_jvp,
    batch=rule_batch(lambda: _pencil_p),
    multi=True,
)


def _values_and_vectors(a, *b, lower):
    return sl.eigh(a, *b, lower=lower)


_eigh_known_p: Primitive = make_known(
    "scipy_eigh_known", over_stacks(_values_and_vectors, 2), batch_stacks(lambda: _eigh_known_p)
)


def _eigh_differentiated(a, *b, lower):
    w, v = bind(_eigh_known_p, a, *b, lower=lower)
    uplo = "L" if lower else "U"
    operands = [hermitian_part(inexact(as_array(x)), uplo) for x in (a, *b)]
    return bind(_pencil_p if b else eigh_rule_p, *operands, *part(w, v, max((a, *b), key=depth)))


_eigh_p: Primitive = Primitive(
    "scipy_eigh",
    over_stacks(_values_and_vectors, 2),
    batch=batch_stacks(lambda: _eigh_p),
    multi=True,
    differentiated=_eigh_differentiated, refuses="indefinite",
)


def _eigh(a: Any, b: Any, lower: bool, type: int, chosen: Any) -> tuple:
    if type != 1:
        raise MissingRuleError(f"eigh(type={type}) has no rule for traced matrices; bring the problem to type 1")
    operands = [matrices(x) for x in (a, b) if x is not None]
    w, v = bind(_eigh_p, *operands, lower=bool(lower))
    if chosen is not None:
        first, last = chosen
        w, v = w[..., first : last + 1], v[..., first : last + 1]
    return w, v


def _eigh_samples(s):
    # In double precision, for LAPACK may turn the vectors the other way round in single.
    a, b = double(_hermitian(s, 3)), double(definite(s, 3))
    return [call(a), call(a, lower=False), call(a, b)]


@scipy_function("eigh", order="F", samples=lambda s: [
    *_eigh_samples(s), call(_hermitian(s, 3), definite(s, 3), eigvals_only=True)], **_GAUGE)  # fmt: skip
def eigh(
    a, b=None, *, lower=True, eigvals_only=False, overwrite_a=False, overwrite_b=False, type=1, check_finite=True,
    subset_by_index=None, subset_by_value=None, driver=None,
):  # fmt: skip
    """Return eigenvalues and eigenvectors of a Hermitian matrix, or of ``a v = w b v`` with b positive definite.

    As with ``numpy.linalg.eigh``, the derivative is that among Hermitian matrices, and exact at repeated eigenvalues.

    >>> fad.scipy.linalg.eigh(np.diag(np.array([1.0, 2.0])))[0]
    array([1., 2.])
    >>> fad.grad(lambda a: fad.scipy.linalg.eigh(a)[0][1])(np.diag(np.array([1.0, 2.0])))
    array([[0., 0.],
           [0., 1.]])
    """
    refuse_options(subset_by_value=subset_by_value)
    w, v = _eigh(a, b, lower, type, subset_by_index)
    return w if eigvals_only else (w, v)


@scipy_function("eigvalsh", samples=_eigh_samples, **_GAUGE)
def eigvalsh(
    a, b=None, *, lower=True, overwrite_a=False, overwrite_b=False, type=1, check_finite=True,
    subset_by_index=None, subset_by_value=None, driver=None,
):  # fmt: skip
    """Return the eigenvalues of a Hermitian matrix, or of ``a v = w b v`` with b positive definite.

    >>> fad.scipy.linalg.eigvalsh(np.diag(np.array([1.0, 2.0])))
    array([1., 2.])
    """
    refuse_options(subset_by_value=subset_by_value)
    return _eigh(a, b, lower, type, subset_by_index)[0]


# --- eig -----------------------------------------------------------------------------------------------------------


def _general(s):
    # In double precision, for in single LAPACK may turn the vectors the other way round, and find another order.
    x = double(s.real(3, 3) + np.diag([0.0, 12.0, 24.0]).astype(s.dtype))  # far apart, so that real ones stay real
    return [call(x), call(x, right=False)]


def _complex_eig(a):
    """Return SciPy's values and vectors, both complex: NumPy's are found in double precision, in another order."""
    w, v = sl.eig(a) if isinstance(a, np.ndarray) else np.linalg.eig(a)
    kind = np.result_type(w.dtype, np.complex64)
    return w.astype(kind), v.astype(kind)


_eig_p = general("scipy_eig", over_stacks(_complex_eig, 2))


def _one_matrix(a: Any, b: Any) -> Any:
    """Return the matrix that has the eigenvalues and vectors of ``a v = w b v``."""
    a = matrices(a)
    return a if b is None else np.linalg.solve(b, a)


_all_real_p = flag("all_are_real", lambda w: np.bool_(bool((w.imag == 0).all())))


def _turn_to_scipys(a, b, w, v):
    """Return the matrix T with which ``w @ abs(T)`` and ``v @ T`` are SciPy's values and vectors of a pencil.

    Those of the one matrix that has them come in another order, and each vector times another number of length 1.
    """
    turn = np.zeros_like(v)
    i = j = np.arange(v.shape[-1])
    values, vectors = sl.eig(a, b) if isinstance(v, np.ndarray) else (w[0], v)
    if np.all(np.isfinite(values)):
        i, j = linear_sum_assignment(np.abs(w[0][:, None] - values))
    shared = np.sum(conj(v[:, i]) * vectors[:, j], 0)
    turn[i, j] = np.where(np.abs(shared) > 0.9, shared / np.abs(np.where(shared == 0, 1.0, shared)), 1.0)
    return turn


_turn_known_p: Primitive = Primitive(
    "turn_to_scipys", over_stacks(_turn_to_scipys), flat=True, batch=batch_stacks(lambda: _turn_known_p),
    archetype="flat", at_limit=True,
)  # fmt: skip


def _eig_of(a: Any, b: Any) -> tuple:
    """Return complex values and vectors of a matrix, or of a pencil."""
    w, v = bind(_eig_p, _one_matrix(a, b))
    if b is None:
        return w, v
    turn = bind(_turn_known_p, matrices(a), matrices(b), w[..., None, :], v)
    return (w[..., None, :] @ np.abs(turn))[..., 0, :], v @ turn


def _turn_left_to_scipys(a: Any, w: Any, of_left: Any, v: Any) -> Any:
    """Return the permutation and phases that make vectors of the adjoint SciPy's left ones, beside the values w.

    On a device, where there is no function of SciPy's, the phases are those of the right vectors of the adjoint.
    """
    if not isinstance(v, np.ndarray):
        nearest = np.argmin(np.abs(w[0][:, None] - np.conj(of_left[0])), 1)
        return (like(v, np.arange(v.shape[-1]))[:, None] == nearest).astype(v.dtype)
    turn = np.zeros_like(v)
    i = j = k = np.arange(v.shape[-1])
    values, vectors = sl.eig(a, left=True, right=False)
    if np.all(np.isfinite(values)):
        i, j = linear_sum_assignment(np.abs(w[0][:, None] - np.conj(of_left[0])))
        k = linear_sum_assignment(np.abs(w[0][:, None] - values))[1]
    shared = np.sum(conj(v[:, j]) * vectors[:, k], 0)
    turn[j, i] = np.where(np.abs(shared) > 0.9, shared / np.abs(np.where(shared == 0, 1.0, shared)), 1.0)
    return turn


_turn_left_p: Primitive = Primitive(
    "turn_left_to_scipys", over_stacks(_turn_left_to_scipys), flat=True, batch=batch_stacks(lambda: _turn_left_p),
    archetype="flat", at_limit=True,
)  # fmt: skip


def _left_of(a: Any, w: Any) -> Any:
    """Return the left eigenvectors beside eigenvalues: the right ones of the adjoint matrix."""
    values, vectors = _eig_of(np.conj(np.swapaxes(as_array(a), -1, -2)), None)
    return vectors @ bind(_turn_left_p, matrices(a), w[..., None, :], values[..., None, :], vectors)


@scipy_function("eig", order=FACTORS, samples=lambda s: [
    *_general(s), call(_general(s)[0].args[0], left=True), call(_general(s)[0].args[0], left=True, right=False)])
def eig(
    a, b=None, left=False, right=True, overwrite_a=False, overwrite_b=False, check_finite=True,
    homogeneous_eigvals=False,
):  # fmt: skip
    """Return complex eigenvalues and right eigenvectors of length 1, of a matrix or of ``a v = w b v``.

    Left ones, of a matrix alone, stand before the right ones. The vectors are real where the matrices and all
    eigenvalues are.

    >>> fad.scipy.linalg.eig(np.diag(np.array([1.0, 2.0])))[0]
    array([1.+0.j, 2.+0.j])
    """
    refuse_options(left=left and b is not None, homogeneous_eigvals=homogeneous_eigvals)
    w, v = _eig_of(a, b)
    vectors = [*([_left_of(a, w)] if left else []), *([v] if right else [])]
    if not vectors:
        return w
    kinds = as_array(a).dtype.kind + ("" if b is None else as_array(b).dtype.kind)
    real = "c" not in kinds and bool(bind(_all_real_p, stop_gradient(w)))
    return (w, *[u.real if real else u for u in vectors])


def _spread(s):
    return [call(s.real(3, 3) + np.diag([0.0, 12.0, 24.0]).astype(s.dtype))]


@scipy_function("eigvals", samples=_spread)
def eigvals(a, b=None, overwrite_a=False, check_finite=True, homogeneous_eigvals=False):
    """Return complex eigenvalues of a matrix or of ``a v = w b v``.

    >>> fad.scipy.linalg.eigvals(np.diag(np.array([1.0, 2.0])))
    array([1.+0.j, 2.+0.j])
    """
    refuse_options(homogeneous_eigvals=homogeneous_eigvals)
    return _eig_of(a, b)[0]


# --- svd, polar, orth, null_space ------------------------------------------------------------------------------------


@scipy_function("svd", order=FACTORS, samples=lambda s: [
    call(s.real(3, 2), full_matrices=False), call(s.real(2, 3), compute_uv=False)],
    numerical=False, gauge="the phases of pairs of vectors, and full_matrices")  # fmt: skip
def svd(a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, lapack_driver="gesdd"):
    """Return the singular value decomposition ``(u, s, vh)``, or s alone.

    >>> fad.scipy.linalg.svd(np.diag(np.array([1.0, 2.0])))[1]
    array([2., 1.])
    >>> fad.grad(lambda a: fad.scipy.linalg.svd(a)[1][0])(np.diag(np.array([1.0, 2.0])))
    array([[0., 0.],
           [0., 1.]])
    """
    found = np.linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


@scipy_function("svdvals", samples=lambda s: [call(s.real(3, 2))])
def svdvals(a, overwrite_a=False, check_finite=True):
    """Return the singular values, descending.

    >>> fad.scipy.linalg.svdvals(np.diag(np.array([1.0, 2.0])))
    array([2., 1.])
    """
    return np.linalg.svd(a, compute_uv=False)


@scipy_function("polar", samples=lambda s: [
    call(regular(s, 3)), call(s.real(3, 2)), call(s.real(2, 3), side="left")],
    raises='ValueError: `side` is neither "left" nor "right", or the array is no matrix.')  # fmt: skip
def polar(a, side="right"):
    """Return the polar decomposition: a unitary factor, and a Hermitian positive semidefinite one.

    >>> fad.scipy.linalg.polar(np.diag(np.array([1.0, 2.0])))[1].round(6)
    array([[1., 0.],
           [0., 2.]])
    """
    if side not in ("right", "left"):
        raise ValueError("`side` must be either 'right' or 'left'")
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    p = (h(vh) * row(s)) @ vh if side == "right" else (u * row(s)) @ h(u)
    return u @ vh, p


def _rank(s: Any, shape: tuple, rcond: float | None) -> int:
    if not s.size:
        return 0
    cutoff = eps(s) * max(shape) if rcond is None else rcond
    return int(np.sum(s > np.max(s) * cutoff))


@scipy_function("orth", order=FACTORS, samples=lambda s: [call(s.real(3, 2))], **_GAUGE,
    raises="ValueError: The array has fewer than two axes, is empty, or has infinities or NaNs.")  # fmt: skip
def orth(A, rcond=None):
    """Return an orthonormal basis of the range; only what does not depend on the choice has a derivative.

    >>> abs(fad.scipy.linalg.orth(np.diag(np.array([1.0, 0.0]))))
    array([[1.],
           [0.]])
    """
    u, s, _ = np.linalg.svd(A, full_matrices=False)
    return u[..., : _rank(s, A.shape, rcond)]


@scipy_function("null_space", order="F", samples=lambda s: [call(s.real(2, 3))], **_GAUGE)
def null_space(A, rcond=None, *, overwrite_a=False, check_finite=True, lapack_driver="gesdd"):
    """Return an orthonormal basis of the null space; only what does not depend on the choice has a derivative.

    >>> abs(fad.scipy.linalg.null_space(np.array([[1.0, 0.0]])))
    array([[0.],
           [1.]])
    """
    _, s, vh = np.linalg.svd(A, full_matrices=True)
    return h(vh[..., _rank(s, A.shape, rcond) :, :])


# --- qr --------------------------------------------------------------------------------------------------------------


@scipy_function("qr", samples=lambda s: [
    call(s.real(3, 3)), call(s.real(3, 2), mode="economic"), call(s.real(2, 3), mode="r"),
    call(s.real(3, 2), mode="economic", pivoting=True)])  # fmt: skip
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """Return the QR decomposition, "full", "economic" or "r", with the constant permutation if `pivoting`.

    >>> abs(fad.scipy.linalg.qr(np.array([[3.0, 0.0], [4.0, 5.0]]))[1]).round(6)
    array([[5., 4.],
           [0., 3.]])
    """
    names: dict[str, Any] = {"full": "complete", "r": "complete", "economic": "reduced"}
    if mode not in names:
        raise MissingRuleError(f"qr(mode={mode!r}) has no rule for traced matrices; use 'full', 'economic' or 'r'")
    a = inexact(as_array(a))
    order = ()
    if pivoting:
        order = (bind(_column_order_p, a),)
        a = np.take_along_axis(a, np.broadcast_to(row(order[0]), a.shape), axis=-1)
    q, r = np.linalg.qr(a, names[mode])
    return (r, *order) if mode == "r" else (lay_out(q, FACTORS), r, *order)


def _column_order(a):
    return sl.qr(a, mode="r", pivoting=True)[1] if isinstance(a, np.ndarray) else formulas.column_order(a)


_column_order_p: Primitive = Primitive(
    "qr_column_order",
    _column_order,
    flat=True,
    batch=lambda size, batched, xs, params: np.stack([bind(_column_order_p, x) for x in xs[0]]),
    archetype="flat",
)


# --- what is made of them ---------------------------------------------------------------------------------------------


@scipy_function("pinvh", samples=lambda s: [
    call(definite(s, 3)), call(definite(s, 3) + np.tril(s.real(3, 3), -1), lower=False),
    call(definite(s, 3) + np.triu(s.real(3, 3), 1))], **_GAUGE)  # fmt: skip
def pinvh(a, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True):
    """Return the pseudo-inverse of a Hermitian matrix; the derivative is that among those of the same rank.

    >>> fad.scipy.linalg.pinvh(np.diag(np.array([1.0, 2.0])))
    array([[1. , 0. ],
           [0. , 0.5]])
    """
    refuse_options(atol=atol)
    return pinv(hermitian_part(inexact(as_array(a)), "L" if lower else "U"), rtol=rtol, return_rank=return_rank)


@scipy_function("orthogonal_procrustes", samples=lambda s: [call(s.real(4, 3), s.real(4, 3))])
def orthogonal_procrustes(A, B, check_finite=True):
    """Return the unitary matrix that takes A nearest to B, and the sum of singular values of ``A^H B``.

    >>> fad.scipy.linalg.orthogonal_procrustes(np.eye(2), 2 * np.eye(2))[0].round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    A, B = as_array(A), as_array(B)
    if A.ndim != 2 or A.shape != B.shape:
        raise ValueError(f"the shapes of A and B differ ({A.shape} vs {B.shape}), or they are no matrices")
    u, s, vh = np.linalg.svd(h(h(B) @ A))
    return u @ vh, np.sum(s)


def _from_diagonals(d: Any, e: Any) -> Any:
    d, e = inexact(as_array(d)), inexact(as_array(e))
    return np.diag(d) + np.diag(e, 1) + np.diag(e, -1)


def _tridiagonal_samples(s):
    return [call(double(s.real(4)), double(s.real(3)))]


@scipy_function("eigvalsh_tridiagonal", samples=_tridiagonal_samples, complex=False)
def eigvalsh_tridiagonal(d, e, select="a", select_range=None, check_finite=True, tol=0.0, lapack_driver="auto"):
    """Return the eigenvalues of a real symmetric tridiagonal matrix, as a dense one.

    >>> fad.scipy.linalg.eigvalsh_tridiagonal(np.array([1.0, 2.0]), np.array([0.0]))
    array([1., 2.])
    """
    refuse_options(select_range=select_range)
    return eigvalsh(_from_diagonals(d, e))
