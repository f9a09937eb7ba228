"""Polynomials by their coefficients, the highest power first, as ``numpy.polyval`` and related functions have them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fad.backends import like
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind, outcome
from fad.core.tracing.values import traces_of
from fad.ops.arrangement.structural import as_array, beside
from fad.ops.places.functional_updates import At


@public(
    np.polyval,
    samples=lambda s: [call(s.real(4), s.real(3, 2)), call(s.real(1), s.real()), call([1.0, s.real()], s.real(3))],
)
def polyval(p, x):
    """Evaluate a polynomial, coefficients of the highest power first, by Horner's rule.

    >>> fad.grad(fad.numpy.polyval, argnums=1)(np.array([1.0, 2.0, 3.0]), 2.0)
    np.float64(6.0)
    """
    p, x = _pair(p, x)
    y = np.zeros_like(x)
    for c in p:
        y = y * x + c
    return y


_NO_VECTORS = "ValueError: Coefficients are no vector, and the two have different lengths."


def _pair(a, b):
    """Return two arrays; where one is given as a list or number, it becomes an array where the other lives."""
    return beside(b, a), beside(a, b)


def _check_has_axes(p):
    if not p.ndim:
        raise TypeError("len() of unsized object: a polynomial is a vector of coefficients, and no number")


def _same_length(a, b):
    a, b = (np.atleast_1d(x) for x in _pair(a, b))
    n = max(len(a), len(b))
    return _lengthen(a, n), _lengthen(b, n)


def _lengthen(a, n):
    """Return coefficients with zeros in front; NumPy joins them only where it has to, which refuses other ranks."""
    return a if len(a) == n else np.concatenate((np.zeros_like(a, shape=(n - len(a),)), a))


@public(
    np.polyadd,
    samples=lambda s: [call(s.real(3), s.real(2)), call(s.real(2), s.real(4)), call(s.real(2), 1.0)],
    raises=_NO_VECTORS,
)
def polyadd(a1, a2):
    """Add two polynomials.

    >>> fad.numpy.polyadd(np.array([1.0, 2.0]), np.array([1.0, 0.0, 0.0]))
    array([1., 1., 2.])
    """
    a, b = _same_length(a1, a2)
    return a + b


@public(
    np.polysub, samples=lambda s: [call(s.real(3), s.real(2)), call(s.real(2), s.real(4))], raises=_NO_VECTORS
)
def polysub(a1, a2):
    """Subtract two polynomials.

    >>> fad.numpy.polysub(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([0., 2.])
    """
    a, b = _same_length(a1, a2)
    return a - b


def _without_leading_zeros(a):
    places = np.flatnonzero(outcome(a != 0))
    return a[int(places[0]) :] if places.size else np.zeros_like(a, shape=(1,))


@public(
    np.polymul,
    samples=lambda s: [call(s.real(3), s.real(2)), call(s.real(2), s.real(4)), call(s.real(2), 2.0)],
    raises="ValueError: Coefficients are no vector.",
)
def polymul(a1, a2):
    """Multiply two polynomials, without their leading zeros; a shape that depends on the values is NumPy's own.

    >>> fad.numpy.polymul(np.array([1.0, 1.0]), np.array([1.0, -1.0]))
    array([ 1.,  0., -1.])
    """
    a, b = (np.atleast_1d(x) for x in _pair(a1, a2))
    if a.ndim > 1 or b.ndim > 1:
        raise ValueError("Polynomial must be 1d only.")
    a, b = _without_leading_zeros(a), _without_leading_zeros(b)
    rows = [np.pad(a * b[i], (i, b.size - 1 - i)) for i in range(b.size)]
    return np.sum(np.stack(rows), axis=0, dtype=rows[0].dtype)


@public(
    np.polyder,
    samples=lambda s: [call(s.real(4)), call(s.real(4), 2), call(s.real(2), 3), call(s.real(3), 0)],
    raises="ValueError: The order `m` is negative.",
)
def polyder(p, m=1):
    """Return the coefficients of the m-th derivative of a polynomial.

    >>> fad.numpy.polyder(np.array([1.0, 2.0, 3.0]))
    array([2., 2.])
    """
    p = as_array(p)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    _check_has_axes(p)
    for _ in range(m):
        p = p[:-1] * like(p, np.arange(p.size - 1, 0, -1))
    return p


@public(np.polyint, samples=lambda s: [
    call(s.real(3)), call(s.real(3), 2, [1.0, s.real()]), call(s.real(3), 2, s.real()), call(s.real(3), 0),
], raises="ValueError: The order `m` is negative.")  # fmt: skip
def polyint(p, m=1, k=None):
    """Return the coefficients of the m-th antiderivative of a polynomial, with `k` as the constants of integration.

    Returns
    -------
    array

    Examples
    --------
    >>> fad.numpy.polyint(np.array([2.0, 3.0]))
    array([1., 3., 0.])
    """
    p = as_array(p)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    _check_has_axes(p)
    k = np.zeros_like(p, shape=(max(m, 1),)) if k is None else np.atleast_1d(beside(p, k))
    k = np.broadcast_to(k, (m,)) if k.size == 1 else k
    if k.size < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        p = np.concatenate((p / like(p, np.arange(p.size, 0, -1)), k[i : i + 1]))
    return p


@public(
    np.polydiv,
    samples=lambda s: [
        call(np.array([1.0, 2.5, -1.0, 0.5]), np.array([2.0, 1.0])),
        call(np.array([1.0, 2.0]), np.array([0.5, 1.0, 2.0])),
        call(np.array([1.0, -2.0, 3.0]), [2.0]),
    ],
)
def polydiv(u, v):
    """Divide one polynomial by another; returns quotient and remainder.

    >>> fad.numpy.polydiv(np.array([1.0, 0.0, -1.0]), np.array([1.0, -1.0]))
    (array([1., 1.]), array([0.]))
    """
    u, v = (np.atleast_1d(a) for a in _pair(u, v))
    dtype = np.result_type(u[:1] + v[:1], 1.0)
    r, v = u.astype(dtype), v.astype(dtype)
    n, scale = v.size, 1.0 / v[0]
    quotient = []
    for k in range(u.size - n + 1):
        quotient.append(scale * r[k])
        r = At(r)[k : k + n].add(-quotient[-1] * v)
    q = np.stack(quotient) if quotient else np.zeros_like(r, shape=(1,))
    zero = outcome(np.abs(r) <= 1e-8)
    first = next((i for i in range(r.size - 1) if not zero[i]), r.size - 1)
    return q, r[first:]


@public(np.poly, samples=lambda s: [call(s.real(3)), call(s.real(1)), call(s.real(0)), call(s.real(2, 2))])
def poly(seq_of_zeros):
    """Return the coefficients of the polynomial with the given roots, or the characteristic polynomial of a matrix.

    >>> fad.numpy.poly(np.array([1.0, 2.0]))
    array([ 1., -3.,  2.])
    """
    zeros = np.atleast_1d(as_array(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.size:
        zeros = np.linalg.eigvals(zeros)
    elif zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not zeros.size:
        return 1.0
    zeros = zeros.astype(np.mintypecode(zeros.dtype.char))  # as NumPy does: of integers, and half precision, double
    a = np.ones_like(zeros, shape=(1,))
    for z in zeros:
        a = np.pad(a, (0, 1)) - np.pad(a * z, (1, 0))
    if a.dtype.kind == "c":
        plain = outcome(zeros)
        if (np.sort(plain) == np.sort(plain.conjugate())).all():
            return a.real
    return a


@public(
    np.roots,
    samples=lambda s: [call(np.array([1.0, -3.0, 2.2, -0.3])), call(s.positive(2)), call([2.0, -1.0, 0.0])],
)
def roots(p):
    """Return the roots of a polynomial: the eigenvalues of its companion matrix.

    >>> fad.numpy.roots(np.array([1.0, -3.0, 2.0]))
    array([2., 1.])
    """
    p = np.atleast_1d(as_array(p))
    if p.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    p = p if p.dtype.kind in "fc" else p.astype(float)
    found = np.flatnonzero(outcome(p != 0))
    if not found.size:
        return np.zeros_like(p, shape=(0,))
    trailing = p.size - int(found[-1]) - 1
    p = p[int(found[0]) : int(found[-1]) + 1]
    n = p.size - 1
    if n == 0:
        return np.zeros_like(p, shape=(trailing,))
    companion = At(np.diag(np.ones_like(p, shape=(n - 1,)), -1))[0].set(-p[1:] / p[0])
    found = np.linalg.eigvals(companion)
    # In a batch real roots are asked about too, as they are where others of the batch are complex.
    asked = found.dtype.kind == "c" or any(trace.batched for trace in traces_of(found))
    if p.dtype.kind != "c" and asked and outcome(np.all(found.imag == 0)):
        found = found.real  # as NumPy does, whose eigvals may be complex throughout
    return np.concatenate((found, np.zeros_like(found, shape=(trailing,))))


# --- the powers of a vector ------------------------------------------------------------------------------------------


def _powers(x, *, count, increasing):
    """Return the powers of the elements of x along its last axis, which has length one."""
    if not isinstance(x, np.ndarray):  # a device's arrays answer no ``ufunc.accumulate``
        y = np.concatenate(_columns(x, count), axis=-1)
        return y if increasing else y[..., ::-1]
    y = np.empty((*x.shape[:-1], count), x.dtype)
    rising = y if increasing else y[..., ::-1]
    rising[..., :1], rising[..., 1:] = 1, x
    np.multiply.accumulate(rising[..., 1:], axis=-1, out=rising[..., 1:])
    return y


def _columns(x, count):
    """Return the powers of x one by one, the lowest first."""
    columns = [np.ones_like(x), x]
    while len(columns) < count:
        columns.append(columns[-1] * x)
    return columns[:count]


def _split_powers(y, increasing):
    """Return where the lowest power is, where the others are, and where those are that are one lower than these."""
    if increasing:
        return (..., slice(None, 1)), (..., slice(1, None)), (..., slice(None, -1))
    return (..., slice(-1, None)), (..., slice(None, -1)), (..., slice(1, None))


def _exponents(y, increasing):
    """Return the exponents of the powers but the lowest."""
    exponents = np.arange(1, y.shape[-1]).astype(y.real.dtype)
    return like(y, exponents if increasing else exponents[::-1])


def _powers_jvp(tangents, y, xs, params):
    increasing = params["increasing"]
    lowest, _, one_lower = _split_powers(y, increasing)
    parts = [np.zeros_like(y[lowest]), y[one_lower] * _exponents(y, increasing)]
    return np.concatenate(parts if increasing else parts[::-1], axis=-1) * tangents[0]


def _powers_vjp(ct, y, x, *, count, increasing):
    _, higher, one_lower = _split_powers(y, increasing)
    return np.einsum("...k,...k,k->...", ct[higher], y[one_lower], _exponents(y, increasing))[..., None]


powers_p: Any = register(
    Primitive(
        "powers",
        _powers,
        jvp=_powers_jvp,
        vjp=(_powers_vjp,),
        batch=lambda size, batched, xs, params: bind(powers_p, *xs, **params),
        samples=lambda s: [
            call(s.real(3, 1), count=4, increasing=True),
            call(s.real(2, 2, 1), count=3, increasing=False),
            call(s.real(2, 1), count=1, increasing=True),
        ],
        dependence="elementwise",
        doc="The powers of the elements of an array whose last axis has length one, along that axis.",
    )
)


@public(
    np.vander,
    samples=lambda s: [call(s.real(3)), call(s.real(3), 4, increasing=True), call(s.real(2), 1)],
    raises="ValueError: `x` is no vector.",
)
def vander(x, N=None, increasing=False):
    """Return the matrix of the powers of a vector's elements, falling from left to right, or rising.

    >>> fad.numpy.vander(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 1.],
           [2., 1.],
           [3., 1.]])
    >>> fad.grad(lambda x: fad.numpy.vander(x, 3)[0, 0])(np.array([2.0, 3.0]))
    array([4., 0.])
    """
    x = as_array(x)
    x = x.astype(np.promote_types(x.dtype, int))
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = x.shape[0] if N is None else operator.index(N)
    if count < 1:
        return np.zeros_like(x, shape=(x.shape[0], count))
    if any(trace.compiled for trace in traces_of(x)):  # the columns become one loop with what reads them
        columns = _columns(x, count)
        return np.stack(columns if increasing else columns[::-1], axis=1)
    return bind(powers_p, x[:, None], count=int(count), increasing=bool(increasing))


@public(
    np.polyfit,
    samples=lambda s: [
        call(s.real(6), s.real(6), 2), call(s.real(5), s.real(5, 2), 1, w=s.positive(5)),
        call(s.real(6), s.real(6), 2, cov=True), call(s.real(6), s.real(6, 2), 1, w=s.positive(6), cov="unscaled"),
    ],
)  # fmt: skip
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """Fit a polynomial of degree `deg` to points by least squares, weighted by `w`; returns its coefficients.

    With `cov` also their covariance, "unscaled" by the residuals or not; with `full` what `np.linalg.lstsq` finds of
    the residuals, the rank and the singular values, and `rcond`.

    >>> fad.numpy.polyfit(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]), 1).round(6)
    array([2., 1.])
    """
    x, y, w = as_array(x) + 0.0, as_array(y) + 0.0, None if w is None else as_array(w) + 0.0
    _check_points(x, y, w, deg)
    rcond = x.shape[0] * np.finfo(x.dtype).eps.item() if rcond is None else rcond
    lhs, rhs = np.vander(x, int(deg) + 1), y
    if w is not None:
        lhs, rhs = lhs * w[:, None], rhs * (w[:, None] if y.ndim == 2 else w)
    scale = np.sqrt(np.sum(lhs * lhs, axis=0))
    lhs = lhs / scale
    c, residuals, rank, s = np.linalg.lstsq(lhs, rhs, rcond)
    c = c / (scale[:, None] if c.ndim == 2 else scale)
    if full:
        return c, residuals, rank, s, rcond
    return (c, _covariance(lhs, scale, residuals, y, cov)) if cov else c


def _covariance(lhs, scale, residuals, y, cov):
    """Return the covariance of the coefficients of a fit, for each column of `y`."""
    base = np.linalg.inv(lhs.T @ lhs) / np.outer(scale, scale)
    base = base if y.ndim == 1 else base[:, :, None]
    if isinstance(cov, str) and cov == "unscaled":
        return base
    points, order = lhs.shape
    if points <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    return base * (residuals / (points - order))


def _check_points(x, y, w, deg):
    """Raise NumPy's errors about what cannot be fitted."""
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1 or not x.size:
        raise TypeError("expected 1D vector for x" if x.ndim != 1 else "expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if w is not None and w.shape != y.shape[:1]:
        raise TypeError(f"expected one weight for each of the {y.shape[0]} points, but w has shape {w.shape}")
