"""Equations with matrices as unknowns: Sylvester, Lyapunov, Riccati."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.archetypes import cast
from fad.core.primitives.primitive import Primitive
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array
from fad.ops.linalg.common import (
    batch_stacks,
    eye_like,
    h,
    hermitian_part,
    inexact,
    make_known,
    over_stacks,
    rule_batch,
    t,
)
from fad.scipy.linalg.common import definite, double, regular, scipy_function, sl

# --- Sylvester and Lyapunov ----------------------------------------------------------------------------------------


def sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve ``a x + x b = q``."""
    return bind(_sylvester_p, a, b, q)


def _sylvester_jvp(tangents, y, xs, params):
    da, db, dq = tangents
    right = dq
    for term in (None if da is None else -(da @ y), None if db is None else -(y @ db)):
        if term is not None:
            right = term if right is None else right + term
    return cast(sylvester(xs[0], xs[1], right), y.dtype)


def _sylvester_vjp(k, ct, y, a, b, q):
    back = sylvester(t(a), t(b), ct)
    return back if k == 2 else -(t(y) @ back) if k else -(back @ t(y))


_sylvester_p: Primitive = Primitive(
    "sylvester",
    over_stacks(sl.solve_sylvester),
    jvp=_sylvester_jvp,
    vjp=_sylvester_vjp,
    batch=rule_batch(lambda: _sylvester_p),
)


@scipy_function("solve_sylvester", samples=lambda s: [
    call(regular(s, 3), regular(s, 2), s.real(3, 2)), call(regular(s, 1), regular(s, 2), s.real(1, 2))])  # fmt: skip
def solve_sylvester(a, b, q):
    """Solve ``a x + x b = q``.

    Raises numpy.linalg.LinAlgError if an eigenvalue of `a` is minus one of `b`.

    >>> fad.scipy.linalg.solve_sylvester(np.eye(2), np.eye(2), 2 * np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """
    return sylvester(*(inexact(as_array(x)) for x in (a, b, q)))


@scipy_function(
    "solve_continuous_lyapunov",
    samples=lambda s: [call(regular(s, 3), s.real(3, 3))],
    raises="ValueError: The matrices are not square, or of different sizes.",
)
def solve_continuous_lyapunov(a, q):
    """Solve ``a x + x a^H = q``.

    >>> fad.scipy.linalg.solve_continuous_lyapunov(np.eye(2), 2 * np.eye(2))
    array([[1., 0.],
           [0., 1.]])
    """
    a = inexact(as_array(a))
    return sylvester(a, h(a), inexact(as_array(q)))


def _stein(a: Any, q: Any) -> Any:
    """Solve ``a x a^H - x + q = 0`` for stacks of matrices, as a linear system for the elements of x."""
    n = a.shape[-1]
    b = np.conjugate(a) if a.dtype.kind == "c" else a
    product = a[..., :, None, :, None] * b[..., None, :, None, :]
    product = product.reshape(*product.shape[:-4], n * n, n * n)
    x = np.linalg.solve(eye_like(product, n * n) - product, q.reshape(*q.shape[:-2], n * n, 1))
    return x.reshape(q.shape)


@scipy_function("solve_discrete_lyapunov", samples=lambda s: [
    call(double(0.2 * s.real(3, 3)), double(s.real(3, 3)))], constants=("method",))  # fmt: skip
def solve_discrete_lyapunov(a, q, method=None):
    """Solve ``a x a^H - x + q = 0``.

    >>> fad.scipy.linalg.solve_discrete_lyapunov(0.5 * np.eye(2), 3 * np.eye(2)).round(6)
    array([[4., 0.],
           [0., 4.]])
    """
    return _stein(double(as_array(a)), double(as_array(q)))


# --- Riccati -------------------------------------------------------------------------------------------------------
# With the gain k that the solution x belongs to, both equations are stationary in k; so the change of x solves a
# Lyapunov equation whose right-hand side is the change of the equation at constant x and k.


def _directions(tangents: Any, xs: Any) -> list:
    return [np.zeros_like(x) if d is None else d for d, x in zip(tangents[:4], xs[:4], strict=True)]


def _continuous_jvp(tangents, y, xs, params):
    a, b, _, r = xs[:4]
    da, db, dq, dr = _directions(tangents, xs)
    k = np.linalg.solve(r, h(b) @ y)
    closed = a - b @ k
    moved = y @ (da - db @ k)
    return cast(-sylvester(h(closed), closed, dq + moved + h(moved) + h(k) @ dr @ k), y.dtype)


def _discrete_jvp(tangents, y, xs, params):
    a, b, _, r = xs[:4]
    da, db, dq, dr = _directions(tangents, xs)
    k = np.linalg.solve(r + h(b) @ y @ b, h(b) @ y @ a)
    closed = a - b @ k
    moved = h(closed) @ y @ (da - db @ k)
    return cast(_stein(h(closed), dq + moved + h(moved) + h(k) @ dr @ k), y.dtype)


def _riccati(name: str, solver: Any, jvp: Any) -> Any:
    """Return the function of a, b, q, r that solves a Riccati equation, differentiable."""
    solve = over_stacks(solver)
    found: Primitive = make_known(name + "_known", lambda *xs: (solve(*xs),), batch_stacks(lambda: found))
    rule: Any = Primitive(name + "_rule", lambda *xs: xs[4], jvp=jvp, batch=rule_batch(lambda: rule))

    def solution(a, b, q, r):
        a, b, q, r = (inexact(as_array(x)) for x in (a, b, q, r))
        q, r = hermitian_part(q), hermitian_part(r)
        return bind(rule, a, b, q, r, bind(found, a, b, q, r)[0])

    return solution


_continuous = _riccati("continuous_riccati", sl.solve_continuous_are, _continuous_jvp)
_discrete = _riccati("discrete_riccati", sl.solve_discrete_are, _discrete_jvp)


def _without_cross_terms(a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> tuple:
    """Return an equation in standard form: inputs ``u - r^-1 s^H x`` have no weight `s` with the states any more."""
    if e is not None:
        raise MissingRuleError("a Riccati equation with e has no rule for traced values: bring it to standard form")
    if s is None:
        return a, b, q, r
    a, b, q, r, s = (inexact(as_array(x)) for x in (a, b, q, r, s))
    gain = np.linalg.solve(hermitian_part(r), h(s))
    return a - b @ gain, b, q - s @ gain, r


def _riccati_samples(s):
    return [call(*map(double, (s.real(3, 3), s.real(3, 2), definite(s, 3), definite(s, 2))))]


# The solution is that for the Hermitian parts of q and r, which SciPy wants to be Hermitian: no differences at others.
_NOTES: dict[str, Any] = dict(samples=_riccati_samples, numerical=False, constants=("e", "balanced"))


@scipy_function("solve_continuous_are", **_NOTES)
def solve_continuous_are(a, b, q, r, e=None, s=None, balanced=True):
    """Solve ``a^H x + x a - (x b + s) r^-1 (b^H x + s^H) + q = 0``, a Riccati equation with q and r Hermitian.

    >>> fad.scipy.linalg.solve_continuous_are(*[np.eye(1)] * 4).round(6)
    array([[2.414214]])
    """
    return _continuous(*_without_cross_terms(a, b, q, r, e, s))


@scipy_function("solve_discrete_are", **_NOTES)
def solve_discrete_are(a, b, q, r, e=None, s=None, balanced=True):
    """Solve ``a^H x a - x - (a^H x b + s) (r + b^H x b)^-1 (b^H x a + s^H) + q = 0``, with q and r Hermitian.

    >>> fad.scipy.linalg.solve_discrete_are(*[np.eye(1)] * 4).round(6)
    array([[1.618034]])
    """
    return _discrete(*_without_cross_terms(a, b, q, r, e, s))
