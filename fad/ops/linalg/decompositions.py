"""Triangular decompositions: cholesky and qr. The formulas are in docs/design/linalg.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends.counterparts import definite
from fad.core.primitives.archetypes import align
from fad.core.primitives.primitive import Primitive, public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.core.tracing.values import may_ask
from fad.errors import DerivativeError
from fad.ops.layout.memory_order import lay_out
from fad.ops.linalg.common import (
    batch_stacks,
    conj,
    diagonal,
    eps,
    eye_like,
    flag,
    h,
    hermitian_part,
    make_known,
    matrices,
    rule_batch,
    t,
)
from fad.ops.linalg.factors import solve_lower, solve_upper

# --- cholesky ------------------------------------------------------------------------------------------------------


def _factor(a):
    return np.linalg.cholesky(a) if type(a) is np.ndarray else definite(np.linalg.cholesky(a), a)


def _lower_half(x):
    """Return the lower triangle with half the diagonal."""
    if type(x) is np.ndarray and x.ndim == 2:
        low = np.tril(x)
        low.reshape(-1)[:: len(low) + 1] *= 0.5
        return low
    return np.tril(x) - 0.5 * (diagonal(x)[..., None] * eye_like(x, x.shape[-1]))


def _cholesky_jvp(tangents, y, xs, params):
    left = solve_lower(y, tangents[0])
    return y @ _lower_half(h(solve_lower(y, h(left))))


_BLOCK = 96  # columns of a factor that its pullback takes at a time


def _pull_back_half(ct, y):
    """Return the transpose of the jvp, for the cotangent ct of a factor y: the pullback is its Hermitian part."""
    left = solve_upper(t(y), _lower_half(t(y) @ ct))
    return t(solve_upper(h(y), t(left)))


def _pull_back(ct, y):
    """Return the cotangent of a Hermitian matrix for that of its factor y."""
    if y.dtype.kind == "c" or y.shape[-1] <= _BLOCK:
        c = _pull_back_half(ct, y)
        return 0.5 * (c + h(c))
    if ct.ndim > 2 or y.ndim > 2:
        return np.stack([_pull_back(*pair) for pair in zip(*np.broadcast_arrays(ct, y), strict=True)])
    return _pull_back_in_blocks(np.tril(ct), y)


def _pull_back_in_blocks(f, y):
    """Return the same for a large real factor: products of blocks from the last one on, as in Murray 2016.

    Each block of columns of the factor is pulled back to what lies left of it; `f` becomes the lower triangle.
    """
    n = len(y)
    for start in reversed(range(0, n, _BLOCK)):
        end = min(start + _BLOCK, n)
        inverse, before = np.linalg.inv(y[start:end, start:end]), y[start:end, :start]
        below = f[end:, start:end] @ inverse
        f[end:, start:end] = below
        f[end:, :start] -= below @ before
        here = f[start:end, start:end] - np.tril(below.T @ y[end:, start:end])
        c = inverse.T @ _lower_half(y[start:end, start:end].T @ here) @ inverse
        c = c + c.T
        f[start:end, :start] -= below.T @ y[end:, :start] + c @ before
        f[start:end, start:end] = _lower_half(c)
    return 0.5 * (f + f.T)


def _pull_back_jvp(tangents, z, xs, params):
    (ct, y), (dct, dy) = xs, tangents
    s, dp = _pull_back_half(ct, y), 0.0
    if dct is not None:
        dp = dp + t(y) @ dct
    if dy is not None:
        dp = dp + t(dy) @ ct
    right = _lower_half(dp)
    if dy is not None:
        right = right - t(dy) @ s @ conj(y)
    d = t(solve_upper(h(y), t(solve_upper(t(y), right))))
    if dy is not None:
        d = d - t(solve_upper(h(y), t(s @ conj(dy))))
    return 0.5 * (d + h(d))


cholesky_pullback_p: Primitive = Primitive(
    "cholesky_pullback",
    _pull_back,
    jvp=_pull_back_jvp,
    batch=lambda size, batched, xs, params: bind(cholesky_pullback_p, *align(batched, xs)),
    mixes=2,
)


def _cholesky_vjp(ct, y, a):
    return bind(cholesky_pullback_p, ct, y)


cholesky_rule_p: Primitive = Primitive(
    "cholesky_rule",
    _factor,
    jvp=_cholesky_jvp,
    vjp=(_cholesky_vjp,),
    batch=lambda size, batched, xs, params: bind(cholesky_rule_p, xs[0]),
    refuses="indefinite", mixes=2,
)
# The rule is for the eager tape, which records operations one by one.
cholesky_p: Primitive = Primitive(
    "cholesky_of",
    _factor,
    jvp=lambda tangents, y, xs, params: _cholesky_jvp([0.5 * (tangents[0] + h(tangents[0]))], y, xs, params),
    batch=lambda size, batched, xs, params: bind(cholesky_p, xs[0]),
    differentiated=lambda a: bind(cholesky_rule_p, hermitian_part(a)), refuses="indefinite",
)


def _definite(s, *shape):
    x = s.real(*shape)
    return x @ h(x) + 2.0 * np.eye(shape[-1], dtype=x.dtype)


@public(
    np.linalg.cholesky,
    samples=lambda s: [call(_definite(s, 3, 3)), call(_definite(s, 2, 3, 3)), call(_definite(s, 2, 2), upper=True)],
    numerical=False,
    gauge="the triangle that is read",
)
def cholesky(a, /, *, upper=False):
    """Return the Cholesky factor of Hermitian positive-definite matrices: lower, or upper with ``a = u^H u``.

    The derivative is that among Hermitian matrices, so that a gradient is Hermitian.
    Raises numpy.linalg.LinAlgError for a matrix that is not positive definite; on a device, which would have to be
    waited for, its factor is NaN.

    >>> fad.numpy.linalg.cholesky(4 * np.eye(2))
    array([[2., 0.],
           [0., 2.]])
    >>> fad.grad(lambda a: fad.numpy.linalg.cholesky(a)[0, 0])(4 * np.eye(2))
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    a = matrices(a)
    return lay_out(h(bind(cholesky_p, h(a))), "C") if upper else bind(cholesky_p, a)


# --- qr ------------------------------------------------------------------------------------------------------------


FULL_RANK = 4  # rounding errors of the largest element on the diagonal of r, above which all others are


def _plain_rank(r):
    size = np.abs(diagonal(r))
    return np.bool_(size.size and bool((size <= FULL_RANK * eps(r) * size.max(-1, keepdims=True)).any()))


_dependent_p = flag("has_dependent_columns", _plain_rank)


def _skew(c):
    """Return the skew-Hermitian matrix with the lower triangle of `c`; its diagonal keeps the one of r real."""
    low = np.tril(c, -1)
    skew = low - h(low)
    if c.dtype.kind != "c":
        return skew
    return skew + (1j * diagonal(c).imag)[..., None] * eye_like(c, c.shape[-1])


def _refuse_dependent(r):
    if _plain_rank(r):
        raise _dependent(r.shape)
    return r


# A triangular factor whose columns are independent: in the body of a loop, where that cannot be asked.
independent_p: Primitive = Primitive(
    "independent_columns",
    _refuse_dependent,
    jvp=lambda tangents, y, xs, params: tangents[0],
    vjp=(lambda ct, y, r: ct,),
    batch=batch_stacks(lambda: independent_p),
    archetype="linear",
    saves="none",
)


def _right_divide(x, r, lower=False):
    """Return x r^-1 for a triangular matrix r."""
    if not may_ask(r):
        r = bind(independent_p, r)  # or its transpose, which has the same diagonal
    try:
        return t((solve_upper if lower else solve_lower)(t(r), t(x)))
    except np.linalg.LinAlgError:  # forward mode comes here before r can be looked at
        raise _dependent(r.shape) from None


def _dependent(shape):
    return DerivativeError(
        f"the factors of qr have no derivative where the first {shape[-1]} columns of the matrix are linearly "
        "dependent. Use np.linalg.svd or pinv, or add a small multiple of the identity"
    )


def _qr_jvp(tangents, y, xs, params):
    q, r = y
    da = _right_divide(tangents[0], r)
    c = h(q) @ da
    skew = _skew(c)
    return da + q @ (skew - c), (c - skew) @ r


def _qr_vjp(ct, y, a):
    # Re sum(ct_q (da r^-1 + q (skew - c)) + ct_r (c - skew) r), with c = q^H da r^-1 and skew linear in c.
    q, r = y
    gq, gr = ct
    parts = [] if gq is None else [t(q) @ gq]
    parts += [] if gr is None else [-(gr @ t(r))]
    inside = sum(parts[1:], parts[0])  # multiplies skew - c
    back = conj(q) @ (_skew_transpose(inside) - inside)
    return _right_divide(back if gq is None else gq + back, t(r), lower=True)


def _skew_transpose(g):
    low = np.tril(g - h(g), -1)
    if g.dtype.kind != "c":
        return low
    return low + (1j * diagonal(g).imag)[..., None] * eye_like(g, g.shape[-1])


qr_rule_p: Primitive = Primitive(
    "qr_rule",
    lambda a: tuple(np.linalg.qr(a)),
    jvp=_qr_jvp,
    vjp=(_qr_vjp,),
    batch=batch_stacks(lambda: qr_rule_p),
    multi=True,
    skips_unread=True,
    mixes=2,
)


# The rest of a unitary matrix, given some of its columns: any orthonormal basis, moved as little as possible.
_rest_p: Primitive = Primitive(
    "rest_of_unitary",
    lambda q, rest: rest,
    jvp=lambda tangents, y, xs, params: -(xs[0] @ (h(tangents[0]) @ y)),
    vjp=(lambda ct, y, q, rest: -(conj(y) @ h(t(q) @ ct)), None),
    batch=rule_batch(lambda: _rest_p),
)


def with_rest(q: Any, rest: Any) -> Any:
    """Return a unitary matrix of columns `q` and of `rest`, known without its derivative."""
    return np.concatenate([q, bind(_rest_p, q, rest)], -1)


def _complete(a):
    return (np.linalg.qr(a, "complete")[0][..., min(a.shape[-2:]) :],)


_qr_rest_p: Primitive = make_known("qr_rest", _complete, batch_stacks(lambda: _qr_rest_p))


def _qr_differentiated(a, *, mode):
    m, n = a.shape[-2:]
    k = min(m, n)
    q, r = bind(qr_rule_p, a[..., :k] if n > k else a)
    if r.size and may_ask(r) and bool(bind(_dependent_p, r)):
        raise _dependent(r.shape)
    if n > k:
        r = np.concatenate([r, h(q) @ a[..., k:]], -1)
    if mode == "complete" and m > k:
        q = with_rest(q, bind(_qr_rest_p, a)[0])
        r = np.concatenate([r, np.zeros_like(r, shape=(*r.shape[:-2], m - k, n))], -2)
    return q, r


def _qr_direct_jvp(tangents, y, xs, params):
    q, r = y
    a, da = xs[0], tangents[0]
    m, n = a.shape[-2:]
    k = min(m, n)
    q1, r1 = q[..., :k], r[..., :k, :k]
    dq, dr = _qr_jvp([da[..., :k]], (q1, r1), xs, params)
    if n > k:
        dr = np.concatenate([dr, h(dq) @ a[..., k:] + h(q1) @ da[..., k:]], -1)
    if q.shape[-1] > k:
        dq = np.concatenate([dq, -(q1 @ (h(dq) @ q[..., k:]))], -1)
        dr = np.concatenate([dr, np.zeros_like(dr, shape=(*dr.shape[:-2], m - k, n))], -2)
    return dq, dr


qr_p: Primitive = Primitive(
    "qr_of",
    lambda a, *, mode: tuple(np.linalg.qr(a, mode)),
    jvp=_qr_direct_jvp,
    batch=batch_stacks(lambda: qr_p),
    multi=True,
    differentiated=_qr_differentiated,
)


def _qr_samples(s):
    # LAPACK turns a column by the sign of its pivot's real part, which jumps at 0: a large diagonal keeps away from it.
    stack = (np.eye(4, 3) + 0.25 * s.real(2, 4, 3)).astype(s.dtype)
    return [
        call(s.real(3, 3)), call(s.real(4, 2)), call(s.real(2, 4)), call(stack),
        call(s.real(4, 2), mode="r"), call(s.real(2, 3), "complete"), call(s.real(4, 1), "reduced"),
        call(s.real(2, 3, 3), "raw"), call(s.real(4, 2), "raw"), call(s.real(2, 4), "raw"),
    ]  # fmt: skip


def _reflectors(a):
    """Return what LAPACK makes of matrices, transposed as by NumPy: R and below it the vectors v, and the factors tau.

    The reflection 1 - tau v v^H turns a column into a multiple of the first unit vector. v begins with a 1, not kept.
    """
    steps = []
    while a.shape[-2] and a.shape[-1]:
        alpha, top, below = a[..., 0, 0], a[..., 0, 1:], a[..., 1:, 0]
        if below.shape[-1] or a.dtype.kind == "c":
            left = np.sum((below * conj(below)).real, -1) + alpha.imag**2
            if bool(np.any(left == 0)):
                raise DerivativeError(
                    "qr(mode='raw') has no derivative where a column is zero below the diagonal: the sign of R jumps "
                    "there. mode='reduced' has one"
                )
            beta = np.sqrt(left + alpha.real**2) * np.where(alpha.real < 0, 1.0, -1.0).astype(alpha.real.dtype)
            tau = (beta - alpha) / beta
            v = below / (alpha - beta)[..., None]
        else:  # a last row stays
            beta, tau, v = alpha, np.zeros_like(alpha), below
        w = conj(tau)[..., None] * (top + np.sum(conj(v)[..., None] * a[..., 1:, 1:], -2))
        steps.append((beta, top - w, v, tau))
        a = a[..., 1:, 1:] - v[..., None] * w[..., None, :]
    found = a
    for beta, row, v, _ in reversed(steps):
        first = np.concatenate([beta[..., None, None], row[..., None, :]], -1)
        found = np.concatenate([first, np.concatenate([v[..., None], found], -1)], -2)
    taus = np.stack([tau for *_, tau in steps], -1) if steps else np.zeros_like(a, shape=(*a.shape[:-2], 0))
    return np.swapaxes(found, -1, -2), taus


@public(np.linalg.qr, samples=_qr_samples)
def qr(a, mode="reduced"):
    """Return the QR decomposition of matrices, wide or tall: "reduced", "complete", "r" or "raw".

    The first min(m, n) columns must be linearly independent for a derivative; DerivativeError says so.
    With "complete", the columns of q that belong to no column of `a` are any orthonormal basis: only what does not
    depend on the choice has a derivative.

    >>> fad.numpy.linalg.qr(np.array([[3.0, 0.0], [4.0, 5.0]])).R.round(6)
    array([[-5., -4.],
           [ 0.,  3.]])
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    a = matrices(a)
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if mode == "raw":
        return _reflectors(a)
    q, r = bind(qr_p, a, mode="complete" if mode == "complete" else "reduced")
    return r if mode == "r" else np.linalg._linalg.QRResult(q, r)
