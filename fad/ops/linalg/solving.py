"""Linear systems and determinants: solve, inv, det, slogdet, tensorsolve, tensorinv."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.backends import like
from fad.backends.counterparts import with_notes
from fad.core.primitives.archetypes import align, cast, fit
from fad.core.primitives.limits import line
from fad.core.primitives.primitive import Primitive, public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.values import may_ask
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.ops.linalg.common import (
    conj,
    diagonal,
    eps,
    eye_like,
    flag,
    h,
    matrices,
    real_dtype,
    row,
    scale_of,
    t,
    trace,
)
from fad.ops.linalg.factors import (
    batch_factors,
    find_factors,
    invert_factored_p,
    is_one_matrix,
    multiply_pivots,
    solve_columns,
    solve_factored_p,
)

# --- solve ---------------------------------------------------------------------------------------------------------


def _solve(a, b):
    """Solve, with one stack for both: the library of a device may not broadcast them."""
    if type(a) not in (np.ndarray, Tracer) and type(b) is not Tracer and a.shape[:-2] != b.shape[:-2]:
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (np.broadcast_to(x, stack + x.shape[-2:]) for x in (a, b))
    return np.linalg.solve(a, b)


with_notes(_solve, host=np.linalg.solve)

def _solve_jvp(tangents, y, xs, params):
    da, db = tangents
    right = None if da is None else -(da @ y)
    if db is not None:
        right = db if right is None else right + db
    return cast(_solve(xs[0], right), y.dtype)


def _solve_left(ct, y, a, b):
    return fit(-(_solve(t(a), ct) @ t(y)), a.shape, a.dtype)


def _solve_right(ct, y, a, b):
    return fit(_solve(t(a), ct), b.shape, b.dtype)


def _make_solve(name: str, **facts: Any) -> Primitive:
    """Make the operation that solves systems; right-hand sides are matrices here, always."""

    def batch(size, batched, xs, params):
        a, b = xs
        if not batched[0] and a.ndim == 2 and b.ndim == 3:  # one factorisation for all batch elements
            return solve_columns(size, b, lambda b: bind(prim, a, b))
        return bind(prim, *align(batched, xs))

    prim = Primitive(
        name, _solve, jvp=_solve_jvp, vjp=(_solve_left, _solve_right), batch=batch, refuses="singular", mixes=2, **facts
    )
    return prim


solve_rule_p = _make_solve("solve_rule")


def _solve_differentiated(a, b):
    if is_one_matrix(a, b):
        return bind(solve_factored_p, a, b, *find_factors(a), transposed=False)
    return bind(solve_rule_p, a, b)


solve_p = _make_solve("solve_matrix", differentiated=_solve_differentiated)


def regular(s: Any, *shape: int) -> Any:
    """Return sample matrices well away from singular ones."""
    x = s.real(*shape)
    return x + 5.0 * np.eye(shape[-1], dtype=x.dtype)


@public(
    np.linalg.solve,
    samples=lambda s: [
        call(regular(s, 3, 3), s.real(3)),
        call(regular(s, 3, 3), s.real(3, 2)),
        call(regular(s, 2, 3, 3), s.real(3, 2)),
        call(regular(s, 2, 3, 3), s.real(3)),
        call(regular(s, 3, 3), s.real(2, 3, 1)),
    ],
)
def solve(a, b):
    """Solve linear systems with square matrices; `b` is a vector if it has one axis, else a stack of matrices.

    Raises numpy.linalg.LinAlgError for a singular matrix.

    >>> fad.numpy.linalg.solve(2 * np.eye(2), np.array([1.0, 2.0]))
    array([0.5, 1. ])
    >>> fad.grad(lambda a: fad.numpy.linalg.solve(a, np.array([1.0, 2.0])).sum())(2 * np.eye(2))
    array([[-0.25, -0.5 ],
           [-0.25, -0.5 ]])
    """
    a, b = matrices(a), as_array(b)
    if b.ndim == 1:
        return bind(solve_p, a, b[:, None])[..., 0]
    return bind(solve_p, a, matrices(b))


# --- inv -----------------------------------------------------------------------------------------------------------

inv_p: Primitive = Primitive(
    "inverse",
    np.linalg.inv,
    jvp=lambda tangents, y, xs, params: -(y @ tangents[0] @ y),
    vjp=(lambda ct, y, a: -(t(y) @ ct @ t(y)),),
    batch=lambda size, batched, xs, params: bind(inv_p, xs[0]),
    refuses="singular", mixes=2,
)


@public(np.linalg.inv, samples=lambda s: [call(regular(s, 3, 3)), call(regular(s, 2, 1, 2, 2)), call(regular(s, 1, 1))])
def inv(a):
    """Return inverse matrices.

    Raises numpy.linalg.LinAlgError for a singular matrix.

    >>> fad.numpy.linalg.inv(2 * np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> fad.grad(lambda a: fad.numpy.linalg.inv(a)[0, 0])(2 * np.eye(2))
    array([[-0.25, -0.  ],
           [-0.  , -0.  ]])
    """
    return bind(inv_p, matrices(a))


# --- det and slogdet -----------------------------------------------------------------------------------------------


def _solve_for(da, a, factors):
    """Return ``a^-1 da``, by the factors of `a` if they are known."""
    return bind(solve_factored_p, a, da, *factors, transposed=False) if factors else np.linalg.solve(a, da)


def _invert(a, factors):
    return bind(invert_factored_p, a, *factors) if factors else np.linalg.inv(a)


def _det(a, *factors):
    if a.ndim > 2 or not factors:
        return np.linalg.det(a)
    sign, log = multiply_pivots(*factors)
    return a.dtype.type(sign * np.exp(log))


def _det_jvp(tangents, y, xs, params):
    return cast(y * trace(_solve_for(tangents[0], xs[0], xs[1:])), y.dtype)


def _det_vjp(ct, y, a, *factors):
    return (ct * y)[..., None, None] * t(_invert(a, factors))


det_rule_p: Primitive = Primitive(
    "det_rule", _det, jvp=_det_jvp, vjp=(_det_vjp, None, None), batch=batch_factors(lambda: det_rule_p), mixes=2,
    text=lambda a, *factors: f"np.linalg.det({a})",
)  # fmt: skip


REGULAR = 0.4  # a determinant beyond this power of the rounding error, times the lengths of the rows, is not near zero
_BY_COFACTORS = 4  # rows of matrices whose determinants are differentiated by cofactors;
_UNASKED = 32  # and of those of a loop's body, where it cannot be asked whether they are singular


def _alternate(a):
    """Return the signs of cofactors, like the squares of a chessboard."""
    n = a.shape[-1]
    return like(a, np.array([[(-1) ** (i + j) for j in range(n)] for i in range(n)], a.dtype))


def _expand_minors(around, rows, columns):
    """Return the minors of some of the rows and columns that follow upon each element, cyclically."""
    i, *rest = rows
    if not rest:
        return around[i, columns[0]]
    terms = [around[i, j] * _expand_minors(around, rest, [c for c in columns if c != j]) for j in columns]
    total = terms[0]
    for k, term in enumerate(terms[1:], 1):
        total = total - term if k % 2 else total + term
    return total


def _expand(a):
    """Return the cofactors of matrices of up to four rows, as products of their elements."""
    n = a.shape[-1]
    if n < 2:
        return np.ones_like(a)
    wide = np.concatenate([a, a[..., : n - 1]], axis=-1)
    wide = np.concatenate([wide, wide[..., : n - 1, :]], axis=-2)
    around = {(i, j): wide[..., i : i + n, j : j + n] for i in range(1, n) for j in range(1, n)}
    found = _expand_minors(around, range(1, n), range(1, n))
    return found if n % 2 else found * _alternate(a)


def _maybe_singular(a, *factors):
    """Whether a determinant is so small beside the lengths of the rows that singular values must be looked at."""
    size = np.sqrt((np.abs(a) ** 2).sum(-1)).prod(-1)
    det = np.abs(_det(a, *factors))
    return np.bool_(a.size and bool((~(det > eps(a) ** REGULAR * size)).any()))


def _invert_for_cofactors(a):
    if not _maybe_singular(a):
        return np.linalg.det(a)[..., None, None] * t(np.linalg.inv(a))
    u, s, vh = np.linalg.svd(a)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * ((conj(u) * row(_others(s))) @ conj(vh)).astype(a.dtype)


def _others(s):
    """Return, for each singular value, the product of the others."""
    return np.prod(np.where(like(s, np.eye(s.shape[-1], dtype=bool)), 1.0, row(s)), -1)


def _cofactors_jvp(tangents, y, xs, params):
    n = xs[0].shape[-1]
    kept = np.array([[k for k in range(n) if k != i] for i in range(n)])
    minors, moved = (x[..., kept[:, None, :, None], kept[None, :, None, :]] for x in (xs[0], tangents[0]))
    return _alternate(y) * np.sum(_cofactors(minors) * moved, (-2, -1))


cofactors_p: Primitive = Primitive(
    "cofactors", _invert_for_cofactors, jvp=_cofactors_jvp, mixes=2,
    batch=lambda size, batched, xs, params: bind(cofactors_p, xs[0]),
    text=lambda a: f"np.linalg.det({a})[..., None, None] * np.linalg.inv({a}).swapaxes(-1, -2)",
)  # fmt: skip


def _cofactors(a):
    """Return the derivatives of determinants by the elements, which exist for singular matrices as well."""
    return _expand(a) if a.shape[-1] <= _BY_COFACTORS else bind(cofactors_p, a)


det_by_cofactors_p: Primitive = Primitive(
    "det_by_cofactors",
    np.linalg.det,
    jvp=lambda tangents, y, xs, params: cast(np.sum(_cofactors(xs[0]) * tangents[0], (-2, -1)), y.dtype),
    vjp=(lambda ct, y, a: ct[..., None, None] * _cofactors(a),),
    batch=lambda size, batched, xs, params: bind(det_by_cofactors_p, xs[0]),
    mixes=2,
)


def _nearly_singular(a):
    """Return by which matrices to go away from singular ones, or zeros where there is no need."""
    u, s, vh = np.linalg.svd(a)
    small = s <= eps(a) ** REGULAR * scale_of(s)
    n = s.shape[-1]
    step = np.where(small, 0.05 * scale_of(s) * like(s, np.linspace(1.0, 0.5, n)), 0.0)
    return ((u * row(step)) @ vh).astype(a.dtype)


_away_p: Primitive = Primitive(
    "away_from_singular", _nearly_singular, flat=True, batch=lambda size, batched, xs, params: bind(_away_p, xs[0])
)


maybe_singular_p = flag("may_be_singular", _maybe_singular)


def _det_differentiated(a):
    if a.shape[-1] <= _BY_COFACTORS or (a.shape[-1] <= _UNASKED and not may_ask(a)):
        return bind(det_by_cofactors_p, a)
    # det * inv is the adjugate, and has a limit where the matrix is singular.
    factors = find_factors(a) if is_one_matrix(a) else ()
    if bool(bind(maybe_singular_p, a, *factors)):
        return bind(det_rule_p, a + line(a) * bind(_away_p, a))
    return bind(det_rule_p, a, *factors)


def _det_direct_jvp(tangents, y, xs, params):
    # The adjugate by singular values: for the eager tape, which records operations one by one.
    u, s, vh = np.linalg.svd(xs[0])
    inner = h(u) @ tangents[0] @ h(vh)
    return cast(np.linalg.det(u) * np.linalg.det(vh) * np.sum(_others(s) * diagonal(inner), -1), y.dtype)


det_p: Primitive = Primitive(
    "determinant",
    np.linalg.det,
    jvp=_det_direct_jvp,
    batch=lambda size, batched, xs, params: bind(det_p, xs[0]),
    differentiated=_det_differentiated,
)


@public(
    np.linalg.det,
    samples=lambda s: [call(s.real(3, 3)), call(regular(s, 2, 3, 3)), call(s.real(1, 1))],
    raises="LinAlgError: The array has fewer than two axes, or its matrices are not square.",
)
def det(a):
    """Return determinants. The derivative, the adjugate, is exact for singular matrices too, to every order.

    >>> import fad
    >>> fad.grad(np.linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]])).round(12)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    return bind(det_p, matrices(a))


def _of_singular(error):
    return DerivativeError(
        f"the logarithm of a determinant has no derivative where the matrix is singular ({error}), for there it is "
        "-inf. Use np.linalg.det, or add a small multiple of the identity"
    )


def _slogdet(a, *factors):
    if a.ndim > 2 or not factors:
        return tuple(np.linalg.slogdet(a))
    sign, log = multiply_pivots(*factors)
    return a.dtype.type(sign), real_dtype(a).type(log)


def _slogdet_jvp(tangents, y, xs, params):
    try:
        d = trace(_solve_for(tangents[0], xs[0], xs[1:]))
    except np.linalg.LinAlgError as error:
        raise _of_singular(error) from None
    if d.dtype.kind != "c":
        return None, d
    return y[0] * (1j * d.imag), d.real


def _slogdet_vjp(ct, y, a, *factors):
    c = ct[1][..., None, None]
    if a.dtype.kind == "c":
        c = c - 1j * (1j * ct[0] * y[0]).real[..., None, None]
    try:
        return c * t(_invert(a, factors))
    except np.linalg.LinAlgError as error:
        raise _of_singular(error) from None


def _make_slogdet(name: str, **facts: Any) -> Primitive:
    prim: Primitive = Primitive(
        name, _slogdet, jvp=_slogdet_jvp, vjp=(_slogdet_vjp, None, None), batch=batch_factors(lambda: prim),
        multi=True, mixes=2, text=lambda a, *factors: f"tuple(np.linalg.slogdet({a}))", **facts,
    )  # fmt: skip
    return prim


slogdet_rule_p = _make_slogdet("slogdet_rule")
slogdet_p = _make_slogdet(
    "sign_and_log_of_determinant",
    differentiated=lambda a: bind(slogdet_rule_p, a, *(find_factors(a) if is_one_matrix(a) else ())),
)


@public(
    np.linalg.slogdet,
    samples=lambda s: [call(s.real(3, 3)), call(regular(s, 2, 3, 3)), call(s.real(1, 1))],
    raises="LinAlgError: The array has fewer than two axes, or its matrices are not square.",
)
def slogdet(a):
    """Return sign (or phase) and logarithm of the absolute value of determinants.

    Raises numpy.linalg.LinAlgError when differentiated at a singular matrix, where the logarithm is infinite.

    >>> fad.numpy.linalg.slogdet(np.eye(2))
    SlogdetResult(sign=np.float64(1.0), logabsdet=np.float64(0.0))
    >>> fad.grad(lambda a: fad.numpy.linalg.slogdet(a)[1])(2 * np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    return np.linalg._linalg.SlogdetResult(*bind(slogdet_p, matrices(a)))


# --- tensors -------------------------------------------------------------------------------------------------------


@public(np.linalg.tensorsolve, samples=lambda s: [
    call(regular(s, 6, 6).reshape(2, 3, 6), s.real(2, 3)),
    call(np.moveaxis(regular(s, 6, 6).reshape(2, 3, 3, 2), 0, -1), s.real(3, 2).T, axes=(0,)),
    call(np.moveaxis(regular(s, 6, 6).reshape(2, 3, 6), 2, 1), s.real(2, 3), axes=(1,)),
])  # fmt: skip
def tensorsolve(a, b, axes=None):
    """Solve ``tensordot(a, x, x.ndim) == b`` for x.

    >>> fad.numpy.linalg.tensorsolve(2 * np.eye(2), np.array([1.0, 2.0]))
    array([0.5, 1. ])
    """
    a, b = as_array(a), as_array(b)
    if axes is not None:
        order = list(range(a.ndim))
        for k in axes:
            order.remove(k)
            order.append(k)
        a = np.transpose(a, order)
    shape = a.shape[b.ndim - a.ndim :]  # all of it if both have one rank; NumPy takes a `b` of more axes as well
    n = math.prod(shape)
    if a.size != n * n:
        raise np.linalg.LinAlgError(
            "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    return np.linalg.solve(a.reshape(n, n), b.reshape(-1)).reshape(shape)


@public(np.linalg.tensorinv, samples=lambda s: [
    call(regular(s, 6, 6).reshape(2, 3, 6)), call(regular(s, 6, 6).reshape(6, 3, 2), ind=1)])  # fmt: skip
def tensorinv(a, ind=2):
    """Return the inverse of a tensor seen as a matrix from its last axes to its first `ind`.

    >>> fad.numpy.linalg.tensorinv(2 * np.eye(2), ind=1)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    a = as_array(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    front, back = a.shape[:ind], a.shape[ind:]
    return np.linalg.inv(a.reshape(math.prod(front), math.prod(back))).reshape(back + front)


def identity(a: Any) -> Any:
    """Return identity matrices of the shape and dtype of a stack of square matrices."""
    return np.broadcast_to(eye_like(a, a.shape[-1]), a.shape)
