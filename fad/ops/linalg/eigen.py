"""Eigenvalues and eigenvectors: eigh, eigvalsh, eig, eigvals. The formulas are in docs/design/linalg.md.

A decomposition under a derivative is done in two steps. The first finds the values and vectors, and is constant;
between the two, repeated values are parted (`fad.core.primitives.limits`); the second gives the values and vectors
back, and knows their derivatives. So the formulas never meet a division by zero, at any order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive, public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.errors import DerivativeError
from fad.ops.linalg.common import (
    batch_stacks,
    column,
    conj,
    diagonal,
    eps,
    eye_like,
    flag,
    h,
    hermitian_part,
    make_known,
    matrices,
    part,
    reciprocal_gaps,
    row,
    rule_batch,
    t,
    warn_if_repeated,
)


def diag_matrix(d: Any) -> Any:
    """Return diagonal matrices with the given diagonals."""
    return column(d) * eye_like(d, d.shape[-1])


# --- Hermitian matrices --------------------------------------------------------------------------------------------


def _eigh_jvp(tangents, y, xs, params):
    w, v = y
    p = h(v) @ tangents[0] @ v
    dw = diagonal(p)
    return dw.real if p.dtype.kind == "c" else dw, v @ (reciprocal_gaps(w) * p)


def _eigh_vjp(ct, y, *xs):
    w, v = y
    gw, gv = ct
    if gv is None:
        return (conj(v) * row(gw)) @ t(v)
    p = reciprocal_gaps(w) * (t(v) @ gv)
    return conj(v) @ (p if gw is None else p + diag_matrix(gw)) @ t(v)


eigh_rule_p: Primitive = Primitive(
    "eigh_rule",
    lambda a, w, v: (w, v),
    jvp=_eigh_jvp,
    vjp=(_eigh_vjp, None, None),
    batch=rule_batch(lambda: eigh_rule_p),
    archetype="rule",
    multi=True,
    skips_unread=True,
    mixes=2,
)
eigh_known_p: Primitive = make_known(
    "eigh_known", lambda a, *, uplo: tuple(np.linalg.eigh(a, uplo)), batch_stacks(lambda: eigh_known_p)
)


def _eigh_differentiated(a, *, uplo):
    w, v = bind(eigh_known_p, a, uplo=uplo)
    return bind(eigh_rule_p, hermitian_part(a, uplo), *part(w, v, a))


def _eigh_direct_jvp(tangents, y, xs, params):
    warn_if_repeated(y[0])
    return _eigh_jvp([0.5 * (tangents[0] + h(tangents[0]))], y, xs, params)


# The rule is for the eager tape, which records operations one by one.
eigh_p: Primitive = Primitive(
    "eigh_of",
    lambda a, *, uplo: tuple(np.linalg.eigh(a, uplo)),
    jvp=_eigh_direct_jvp,
    batch=batch_stacks(lambda: eigh_p),
    multi=True,
    differentiated=_eigh_differentiated,
)


def _triangle(uplo: str) -> str:
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return uplo.upper()


def _hermitian(s, n, *stack):
    x = s.real(*stack, n, n)
    return x + h(x)


def _hermitian_samples(s):
    return [call(_hermitian(s, 3)), call(_hermitian(s, 4), "U"), call(_hermitian(s, 2, 3)), call(_hermitian(s, 1))]


# The vectors of a Hermitian matrix may be turned in the complex plane, and differences leave the Hermitian matrices:
# so both are compared on functions of the matrix, in tests/ops/test_linalg_contract.py.
_GAUGE: dict[str, Any] = dict(numerical=False, gauge="the phases of the vectors, and the triangle that is read")


@public(np.linalg.eigh, samples=_hermitian_samples, **_GAUGE)
def eigh(a, UPLO="L"):
    """Return eigenvalues, ascending, and orthonormal eigenvectors of Hermitian matrices.

    The derivative is that among Hermitian matrices, so that a gradient is Hermitian. At repeated eigenvalues it is
    exact for every result that does not depend on the choice of vectors; for others a GaugeDependenceWarning is given.

    >>> import fad
    >>> fad.grad(lambda a: np.sum(np.linalg.eigh(a).eigenvalues ** 2))(np.eye(2)).round(12)
    array([[2., 0.],
           [0., 2.]])
    """
    return np.linalg._linalg.EighResult(*bind(eigh_p, matrices(a), uplo=_triangle(UPLO)))


@public(np.linalg.eigvalsh, samples=_hermitian_samples, **_GAUGE)
def eigvalsh(a, UPLO="L"):
    """Return the eigenvalues of Hermitian matrices, ascending.

    >>> fad.grad(lambda a: fad.numpy.linalg.eigvalsh(a)[-1])(np.diag(np.array([1.0, 2.0])))
    array([[0., 0.],
           [0., 1.]])
    """
    return bind(eigh_p, matrices(a), uplo=_triangle(UPLO))[0]


# --- general matrices ----------------------------------------------------------------------------------------------


def _largest(v):
    """Return a mask of the largest component of each vector, which NumPy makes real."""
    size = np.abs(v)
    return np.where(size == size.max(-2, keepdims=True), 1.0, 0.0)


_largest_p: Primitive = Primitive(
    "largest_component", _largest, flat=True, batch=lambda size, batched, xs, params: bind(_largest_p, xs[0])
)


def _normalization(v, dv):
    """Return the multiple of each vector that keeps its length 1 and its largest component real."""
    along = np.sum(conj(v) * dv, -2, keepdims=True)
    if v.dtype.kind != "c":
        return along
    pick = bind(_largest_p, v).astype(v.real.dtype)
    turn = (np.sum(pick * dv, -2, keepdims=True) / np.sum(pick * v, -2, keepdims=True)).imag
    return along.real + 1j * turn


def _eig_jvp(tangents, y, xs, params):
    w, v = y
    p = np.linalg.solve(v, tangents[0] @ v)
    dv = v @ (reciprocal_gaps(w) * p)
    return diagonal(p), dv - v * _normalization(v, dv)


_eig_rule_p: Primitive = Primitive(
    "eig_rule",
    lambda a, w, v: (w, v),
    jvp=_eig_jvp,
    batch=rule_batch(lambda: _eig_rule_p),
    archetype="rule",
    multi=True,
    mixes=2,
)


def _defective(v):
    return np.bool_(bool((np.linalg.cond(v) > eps(v) ** -0.75).any()))


_defective_p = flag("is_defective", _defective)


def _vectors_followed(a, w, v):
    """Return eigenvalues and vectors, known without their derivative, with it."""
    if a.size and bool(bind(_defective_p, v)):
        raise DerivativeError(
            f"eigenvalues of a matrix of shape {a.shape} that has no basis of eigenvectors (a Jordan block) are not "
            "differentiable: they move with the square root of a change. Use the trace, the determinant or powers "
            "of the matrix instead, or a Hermitian matrix and np.linalg.eigh"
        )
    w, v = part(w, v, a)
    return bind(_eig_rule_p, a, w, v / np.sqrt(np.sum((v * conj(v)).real, -2, keepdims=True)))


def _eig_direct_jvp(tangents, y, xs, params):
    warn_if_repeated(y[0])
    return _eig_jvp(tangents, y, xs, params)


def general(name: str, decompose: Callable) -> Primitive:
    """Make the operation that finds eigenvalues and vectors of length 1, with their largest component real."""
    known_p: Primitive = make_known(f"{name}_known", decompose, batch_stacks(lambda: known_p), kind_varies=True)
    prim: Primitive = Primitive(
        f"{name}_of",
        decompose,
        jvp=_eig_direct_jvp,
        batch=batch_stacks(lambda: prim),
        multi=True,
        kind_varies=True,
        differentiated=lambda a: _vectors_followed(a, *bind(known_p, a)), refuses="infinite",
    )
    return prim


@functools.cache
def _may_be_real() -> bool:
    """Return whether NumPy gives real eigenvalues of real matrices where all of them are, as it did before 2.5."""
    return np.linalg.eigvals([[1.0]]).dtype.kind == "f"


def _eig(a):
    w, v = np.linalg.eig(a)
    # The library of a device may give complex numbers where NumPy gives real ones.
    if a.dtype.kind == "f" and type(w) is not np.ndarray and _may_be_real() and not bool(np.any(w.imag)):
        return w.real, v.real
    return w, v


eig_p = general("eig", _eig)


def _general_samples(s):
    x = s.real(3, 3)
    turn = np.array([[0.2, 1.5, 0.1], [-1.1, 0.4, 0.3], [0.2, -0.1, 2.0]], s.dtype)
    return [call(x @ x.T + np.diag(np.arange(3.0)).astype(s.dtype)), call(turn + 0.05 * s.real(3, 3))]


def _jumps(a):
    """Return 0 for the vectors to which LAPACK gives another sign or phase close by, else 1."""
    shaken = 3e-3 * np.random.default_rng(0).uniform(-1.0, 1.0, (24, *a.shape))
    shaken = shaken * (1.0 + 1.0j) if a.dtype.kind == "c" else shaken
    v, w = np.linalg.eig(a)[1], np.linalg.eig(a + shaken)[1]
    return (np.where(np.sum(v.conj() * w, axis=-2).real > 0.5, 1.0, 0.0),)


@public(np.linalg.eig, samples=_general_samples, kinks=_jumps)
def eig(a):
    """Return eigenvalues and eigenvectors of square matrices.

    The derivative of the vectors is that of NumPy's own: of length 1, and with their largest component real.
    Raises DerivativeError where the matrix has no basis of eigenvectors.

    >>> fad.numpy.linalg.eig(np.diag(np.array([1.0, 2.0]))).eigenvalues.real
    array([1., 2.])
    """
    return np.linalg._linalg.EigResult(*bind(eig_p, matrices(a)))


@public(np.linalg.eigvals, samples=_general_samples)
def eigvals(a):
    """Return the eigenvalues of square matrices.

    >>> fad.numpy.linalg.eigvals(np.diag(np.array([1.0, 2.0]))).real
    array([1., 2.])
    """
    return bind(eig_p, matrices(a))[0]
