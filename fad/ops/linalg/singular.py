"""Singular values: svd, svdvals, pinv, lstsq, matrix_rank, cond. The formulas are in docs/design/linalg.md."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like
from fad.backends.counterparts import with_notes
from fad.core.primitives.archetypes import cast
from fad.core.primitives.primitive import Primitive, public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.ops.linalg.common import (
    batch_stacks,
    broadcast_batch,
    column,
    conj,
    diagonal,
    eps,
    h,
    hermitian_part,
    inexact,
    make_known,
    matrices,
    part_pairs,
    reciprocal_gaps,
    row,
    rule_batch,
    t,
    warn_if_repeated,
)
from fad.ops.linalg.decompositions import with_rest
from fad.ops.linalg.eigen import diag_matrix
from fad.ops.reductions.norms import kinks_of_matrix

# --- the rule: for the reduced decomposition a = u s vh ---------------------------------------------------------------


def _safe(s):
    """Return singular values to divide by: zeros, which `parted` leaves nowhere on its line, become 1."""
    return np.where(s == 0, 1.0, s)


def _svd_jvp(tangents, y, xs, params):
    u, s, vh = y
    da = tangents[0]
    p = h(u) @ da @ h(vh)
    f = reciprocal_gaps(s * s)
    x = f * (p * row(s) + column(s) * h(p))
    z = f * (column(s) * p + h(p) * row(s))
    if p.dtype.kind == "c":
        turn = diag_matrix(1j * diagonal(p).imag / (2.0 * _safe(s)))
        x, z = x + turn, z - turn
    du, dvh = u @ x, -(z @ vh)
    if u.shape[-2] > s.shape[-1]:
        du = du + (da @ h(vh) - u @ p) / row(_safe(s))
    if vh.shape[-1] > s.shape[-1]:
        dvh = dvh + (h(u) @ da - p @ vh) / column(_safe(s))
    ds = diagonal(p)
    return du, ds.real if p.dtype.kind == "c" else ds, dvh


def _svd_vjp(ct, y, *xs):
    u, s, vh = y
    gu, gs, gv = ct
    if gu is None and gv is None:
        return (conj(u) * row(gs)) @ conj(vh)
    f = reciprocal_gaps(s * s)
    p = 0.0 if gs is None else diag_matrix(gs)
    phases = 0.0
    if gu is not None:
        on_u = t(u) @ gu
        x = f * on_u
        p = p + x * row(s) + h(column(s) * x)
        phases = phases + diagonal(on_u)
    if gv is not None:
        on_v = gv @ t(vh)
        z = -(f * on_v)
        p = p + column(s) * z + h(z * row(s))
        phases = phases + diagonal(on_v)
    if u.dtype.kind == "c":
        p = p + diag_matrix(1j * phases.imag / (2.0 * _safe(s)))
    c = conj(u) @ p @ conj(vh)
    if gu is not None and u.shape[-2] > s.shape[-1]:
        c = c + ((gu - conj(u) @ on_u) / row(_safe(s))) @ conj(vh)
    if gv is not None and vh.shape[-1] > s.shape[-1]:
        c = c + conj(u) @ ((gv - on_v @ conj(vh)) / column(_safe(s)))
    return c


_svd_rule_p: Primitive = Primitive(
    "svd_rule",
    lambda a, u, s, vh: (u, s, vh),
    jvp=_svd_jvp,
    vjp=(_svd_vjp, None, None, None),
    batch=rule_batch(lambda: _svd_rule_p),
    archetype="rule",
    multi=True,
    skips_unread=True,
    mixes=2,
)
svd_known_p: Primitive = make_known(
    "svd_known", lambda a, *, full: tuple(np.linalg.svd(a, full_matrices=full)), batch_stacks(lambda: svd_known_p)
)


def _svd_differentiated(a, *, full):
    u, s, vh = bind(svd_known_p, a, full=full)
    k = s.shape[-1]
    u1, s1, vh1 = bind(_svd_rule_p, a, *part_pairs(u[..., :k], s, vh[..., :k, :], a))
    if u.shape[-1] > k:
        u1 = with_rest(u1, u[..., k:])
    if vh.shape[-2] > k:
        vh1 = h(with_rest(h(vh1), h(vh[..., k:, :])))
    return u1, s1, vh1


def _svd_direct_jvp(tangents, y, xs, params):
    u, s, vh = y
    warn_if_repeated(s, zero=True)
    k = s.shape[-1]
    du, ds, dvh = _svd_jvp(tangents, (u[..., :k], s, vh[..., :k, :]), xs, params)
    return _with_rest_tangent(du, u, k), ds, h(_with_rest_tangent(h(dvh), h(vh), k))


def _with_rest_tangent(du, u, k):
    if u.shape[-1] == k:
        return du
    return np.concatenate([du, -(u[..., :k] @ (h(du) @ u[..., k:]))], -1)


# The rule is for the eager tape, which records operations one by one.
svd_p: Primitive = Primitive(
    "svd_of",
    lambda a, *, full: tuple(np.linalg.svd(a, full_matrices=full)),
    jvp=_svd_direct_jvp,
    batch=batch_stacks(lambda: svd_p),
    multi=True,
    differentiated=_svd_differentiated,
    refuses="infinite",
)

# --- svd and svdvals -----------------------------------------------------------------------------------------------


def _svd_samples(s):
    return [
        call(s.real(3, 3), full_matrices=False), call(s.real(4, 2), full_matrices=False),
        call(s.real(2, 4), False), call(s.real(2, 3, 2), compute_uv=False), call(s.real(2, 4)), call(s.real(3, 1)),
    ]  # fmt: skip


@public(np.linalg.svd, samples=_svd_samples, numerical=False, gauge="the phases of pairs of vectors, and full_matrices")
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """Return the singular value decomposition of matrices.

    At repeated singular values, and at zero ones, the derivative is exact for every result that does not depend on the
    choice of vectors; for others a GaugeDependenceWarning is given.

    >>> import fad
    >>> def nuclear(a):
    ...     return np.sum(np.linalg.svd(a, compute_uv=False))
    >>> fad.grad(nuclear)(np.eye(2)).round(12)
    array([[1., 0.],
           [0., 1.]])
    """
    a = matrices(a)
    if hermitian:
        return _svd_hermitian(a, compute_uv)
    u, s, vh = bind(svd_p, a, full=bool(full_matrices and compute_uv))
    return np.linalg._linalg.SVDResult(u, s, vh) if compute_uv else s


def _svd_hermitian(a, compute_uv):
    """Return the decomposition of Hermitian matrices, from eigenvalues: their signs go into vh."""
    w, v = np.linalg.eigh(a)
    order = np.argsort(np.abs(stop_gradient(w)), axis=-1)[..., ::-1]
    w = np.take_along_axis(w, order, axis=-1)
    s = np.abs(w)
    if not compute_uv:
        return s
    v = np.take_along_axis(v, np.broadcast_to(row(order), v.shape), axis=-1)
    sign = np.where(w >= 0, np.ones_like(w), -1.0)
    return np.linalg._linalg.SVDResult(v, s, h(v * row(sign)))


@public(
    np.linalg.svdvals,
    samples=lambda s: [call(s.real(3, 3)), call(s.real(2, 3, 2))],
    raises="LinAlgError: The array has fewer than two axes.",
)
def svdvals(x, /):
    """Return the singular values of matrices, descending.

    >>> fad.numpy.linalg.svdvals(np.diag(np.array([1.0, 2.0])))
    array([2., 1.])
    """
    return np.linalg.svd(as_array(x), compute_uv=False)


# --- pinv and lstsq --------------------------------------------------------------------------------------------------


def _pinv_jvp(tangents, y, xs, params):
    # The derivative at constant rank: Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973).
    a, da = xs[0], tangents[0]
    dh, yh = h(da), h(y)
    at_rank = y @ yh @ (dh - dh @ a @ y) + (dh - y @ a @ dh) @ yh @ y
    return cast(at_rank - y @ da @ y, y.dtype)


def _pinv_vjp(ct, y, a, cutoff):
    g, yh = t(ct), h(y)
    left = g @ y @ yh
    right = yh @ y @ g
    return t(h(left - a @ y @ left) + h(right - right @ y @ a) - y @ g @ y)


def _pinv_batch(size, batched, xs, params):
    a, cutoff = xs
    if batched[1]:
        a, cutoff = broadcast_batch(size, batched, xs)
        cutoff = cutoff.reshape(size, *(1,) * (a.ndim - 2 - cutoff.ndim), *cutoff.shape[1:])
    return bind(pinv_p, a, cutoff)


def _pinv(a, cutoff):
    if isinstance(a, np.ndarray):
        return np.linalg.pinv(a, cutoff)
    # Elsewhere a mask as an index, which leaves small singular values out, may wait for the device.
    u, s, vh = np.linalg.svd(conj(a), full_matrices=False)
    counts = s > np.expand_dims(cutoff, -1) * np.max(s, axis=-1, keepdims=True)
    inverse = np.where(counts, 1.0 / np.where(counts, s, np.ones_like(s)), np.zeros_like(s))
    return t(vh) @ (inverse[..., None] * t(u))


with_notes(_pinv, host=np.linalg.pinv)

pinv_p = Primitive("pseudoinverse", _pinv, jvp=_pinv_jvp, vjp=(_pinv_vjp, None), batch=_pinv_batch, refuses="infinite")


def _near_rank(s, m, n):
    """Return a sample matrix of full rank, well away from lower ones."""
    return s.real(m, n) + 5.0 * np.eye(m, n, dtype=s.dtype)


@public(np.linalg.pinv, constants=(1, "rtol"), samples=lambda s: [
    call(_near_rank(s, 3, 3)), call(_near_rank(s, 4, 2)), call(_near_rank(s, 2, 4), 1e-10),
    call(np.stack([_near_rank(s, 3, 2), _near_rank(s, 3, 2)]), rtol=np.array([1e-10, 1e-9]))])  # fmt: skip
def pinv(a, rcond=None, hermitian=False, *, rtol=None):
    """Return pseudo-inverses; singular values below `rcond` times the largest count as 0.

    The derivative is that among matrices of the same rank, beyond which the pseudo-inverse jumps.

    >>> fad.numpy.linalg.pinv(np.diag(np.array([1.0, 2.0])))
    array([[1. , 0. ],
           [0. , 0.5]])
    """
    a = matrices(a)
    if rcond is not None and rtol is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    cutoff = rtol if rcond is None else rcond
    cutoff = 1e-15 if cutoff is None else cutoff
    if a.size == 0:
        return t(conj(a))
    return bind(pinv_p, hermitian_part(a) if hermitian else a, like(a, as_array(cutoff)))


@public(np.linalg.lstsq, constants=(2, "rcond"), samples=lambda s: [
    call(_near_rank(s, 4, 2), s.real(4)), call(_near_rank(s, 3, 3), s.real(3, 2)),
    call(_near_rank(s, 2, 4), s.real(2)), call(_near_rank(s, 4, 2), s.real(4, 2), rcond=1e-10)])  # fmt: skip
def lstsq(a, b, rcond=None):
    """Return the least-squares solution of smallest norm, the sums of squared residuals, rank and singular values.

    The derivative is that among matrices of the same rank.

    >>> fad.numpy.linalg.lstsq(np.ones((2, 1)), np.array([1.0, 3.0]))[0]
    array([2.])
    """
    a, b = inexact(as_array(a)), inexact(as_array(b))
    return least_squares(a, b, lambda a: eps(a) * max(a.shape) if rcond is None else share_of_gelsd(a, rcond))


def share_of_gelsd(a: Any, rcond: float) -> float:
    """Return below which share of the largest singular value LAPACK's gelsd takes the others for 0."""
    return rcond if 0.0 < rcond < 1.0 else eps(a) / 2.0


def least_squares(a: Any, b: Any, share_of: Callable) -> tuple:
    """Solve as `lstsq` does; singular values of up to a share of the largest, found from the matrix, count as 0."""
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise np.linalg.LinAlgError(
            f"lstsq takes a matrix and a vector or matrix, but the shapes are {a.shape} and {b.shape}"
        )
    m, n = a.shape
    if b.shape[0] != m:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = cast(a, dtype), cast(b, dtype)  # the precision of all that follows, as in NumPy
    share = share_of(a)
    x = pinv(a, share) @ b
    s = np.linalg.svd(a, compute_uv=False)
    rank = matrix_rank(a, rtol=share).astype(np.int32)
    residuals = np.zeros_like(x, shape=(0,), dtype=np.empty((), dtype).real.dtype)
    if m > n and bool(rank == n):
        rest = b - a @ x
        residuals = np.sum((rest * conj(rest)).real, 0, keepdims=b.ndim == 1)
    return x, residuals, rank, s


# --- matrix_rank and cond --------------------------------------------------------------------------------------------


def _rank_batch(size, batched, xs, params):
    x = xs[0]
    if x.ndim < 3:
        return np.any(x != 0, axis=tuple(range(1, x.ndim))).astype(int)
    return bind(matrix_rank_p, x, **params)


def _rank(a, *, tol, hermitian, **options):
    if a.ndim > 1 and 0 in a.shape[-2:]:
        return np.count_nonzero(a, axis=(-2, -1))  # none; NumPy 2.0 has no answer
    if isinstance(a, (np.ndarray, np.generic)) or a.ndim < 2:
        return np.linalg.matrix_rank(a, tol=tol, hermitian=hermitian, **options)
    s = np.abs(np.linalg.eigvalsh(a)) if hermitian else np.linalg.svd(a, compute_uv=False)
    if tol is None:
        rtol = options.get("rtol")
        tol = s.max(-1) * (max(a.shape[-2:]) * eps(a) if rtol is None else rtol)
    return np.count_nonzero(s > (tol[..., None] if np.ndim(tol) else tol), axis=-1)


matrix_rank_p = Primitive(
    "rank_of",
    _rank,
    flat=True,
    batch=_rank_batch,
    archetype="flat",
)


@public(np.linalg.matrix_rank, flat=True, samples=lambda s: [
    call(s.real(3, 2)), call(s.real(2, 3, 3), tol=0.1), call(s.real(3, 3), rtol=1e-3),
    call(np.diag([1.0, 1e-2, 1e-4]), rtol=1e-3), call(np.diag([10.0, 1e-2, 1e-4]), tol=1e-3),
    call(np.diag([1.0, -1.0, 0.0]), hermitian=True)],
    raises="ValueError: Both `tol` and `rtol` are given.")  # fmt: skip
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """Return the number of singular values above a tolerance; flat.

    >>> fad.numpy.linalg.matrix_rank(np.ones((3, 3)))
    np.int64(1)
    """
    options = {} if rtol is None else {"rtol": rtol}
    rank = bind(matrix_rank_p, as_array(A), tol=tol, hermitian=hermitian, **options)
    return rank if hasattr(rank, "dtype") else np.int64(rank)


def _kinks_of_cond(x, p=None):
    inverse = np.linalg.inv(x) if x.shape[-1] == x.shape[-2] else x
    return *kinks_of_matrix(x)[:3], *kinks_of_matrix(inverse)[:2]


@public(np.linalg.cond, kinks=_kinks_of_cond, samples=lambda s: [
    call(_near_rank(s, 3, 3)), call(_near_rank(s, 3, 2), 2), call(_near_rank(s, 3, 2), -2),
    call(np.stack([_near_rank(s, 3, 3), _near_rank(s, 3, 3)])), call(_near_rank(s, 3, 3), "fro"),
    call(_near_rank(s, 4, 3), 2), call(_near_rank(s, 3, 4), -2),
    call(_near_rank(s, 3, 3), 1)],
    raises="LinAlgError: The array is empty, or has fewer than two axes.")  # fmt: skip
def cond(x, p=None):
    """Return condition numbers: largest by smallest singular value, or ``norm(x, p) * norm(inv(x), p)``.

    >>> fad.numpy.linalg.cond(np.diag(np.array([1.0, 2.0])))
    np.float64(2.0)
    """
    x = as_array(x)
    if x.ndim > 1 and 0 in x.shape[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = np.linalg.svd(x, compute_uv=False)
        y = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        none = np.isnan(y) & ~np.any(np.isnan(x), axis=(-2, -1))  # of the zero matrix, as NumPy says
        return np.where(none, y.dtype.type(np.inf), y)[()]
    y = np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))
    return y.astype(_dtype_of_cond(x.dtype))


@functools.cache
def _dtype_of_cond(dtype: np.dtype) -> np.dtype:
    """Return the dtype of NumPy's product of norms: in NumPy 2.0 it is complex for complex matrices."""
    return np.linalg.cond(np.array([[1]], dtype), 1).dtype
