"""Quotients of polynomials: division of one signal by another, and partial fractions, with simple poles."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.samples import call
from fad.core.tracing.tracer import outcome
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import registrar
from fad.scipy.signal.convolution import convolve
from fad.scipy.signal.filters import lfilter

register_function = registrar("signal")


@register_function(
    "deconvolve", raises="ValueError: An array is empty, or has several axes.",
    samples=lambda s: [call(s.real(6), s.positive(3)), call(s.real(3), s.positive(1)), call(s.real(2), s.positive(3))],
)  # fmt: skip
def deconvolve(signal, divisor):
    """Return the quotient and the remainder of a signal that was made by a convolution with `divisor`.

    >>> import numpy as np, fad
    >>> fad.grad(lambda d: fad.scipy.signal.deconvolve(np.array([1.0, 3.0, 2.0]), d)[0][1])(np.array([1.0, 1.0]))
    array([-1., -1.])
    """
    num, den = (np.atleast_1d(as_array(x)) for x in (signal, divisor))
    for name, x in (("signal", num), ("divisor", den)):
        if x.ndim != 1 or not x.size:
            raise ValueError(f"Parameter {name} must be non-empty 1d array, but its shape is {x.shape}!")
    steps = num.shape[0] - den.shape[0] + 1
    if steps < 1:
        return [], num
    quotient = lfilter(num, den, np.eye(1, steps)[0])
    return quotient, num - convolve(den, quotient, mode="full")


def _fractions(s):
    poles = np.array([-1.0, 0.5, 2.0]) + 0.1 * s.real(3, low=-1.0, high=1.0).real
    denominator = np.poly(poles).astype(s.dtype)
    return [call(s.positive(2), denominator), call(s.positive(4), 2.0 * denominator)]


_FRACTIONS: dict = {
    "complex": False, "raises": "ValueError: All of `a` is zero, or poles of traced values coincide.",
}  # fmt: skip


def _trim(x: Any, end: str, name: str) -> Any:
    """Return coefficients in double precision without the zeros at an end, which are constants."""
    x = np.atleast_1d(as_array(x))
    x = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    found = np.flatnonzero(outcome(x != 0))
    if not found.size:
        if name == "a":
            raise ValueError("Denominator `a` is zero.")
        return x[:0]
    return x[found[0] :] if end == "front" else x[: found[-1] + 1]


def _find_poles(name: str, a: Any, tol: float) -> Any:
    """Return the roots of a polynomial, in SciPy's order of partial fractions, if they lie apart."""
    poles = np.roots(a)
    plain = outcome(poles)
    gaps = np.abs(plain[:, None] - plain) + np.diag(np.full(plain.shape[0], np.inf))
    if plain.shape[0] > 1 and gaps.min() <= tol:
        raise ValueError(
            f"{name} of traced values needs simple poles, and two are closer than tol={tol}: the residues of "
            "poles that meet jump, and have no derivative"
        )
    return np.take(poles, np.argsort(np.abs(plain)))  # as SciPy sorts them


def _find_residues(poles: Any, numerator: Any) -> Any:
    """Return the residues at simple poles of a numerator over the product of ``x - p``."""
    n = poles.shape[0]
    apart = poles[:, None] - poles + np.eye(n)
    return np.polyval(numerator, poles) / np.prod(apart, axis=1)


@register_function("residue", samples=_fractions, rounding="single", **_FRACTIONS)
def residue(b, a, tol=1e-3, rtype="avg"):
    """Return residues, poles and the polynomial of the partial fractions of ``b / a``, whose poles are simple.

    >>> import numpy as np, fad
    >>> fad.grad(lambda b: fad.scipy.signal.residue(b, np.array([1.0, 3.0, 2.0]))[0][0])(np.array([1.0, 5.0])).round(9)
    array([-1.,  1.])
    """
    b, a = _trim(b, "front", "b"), _trim(a, "front", "a")
    poles = _find_poles("residue", a, tol)
    if not b.shape[0]:
        return np.zeros(poles.shape), poles, np.array([])
    k, rest = (np.zeros(0), b) if b.shape[0] < a.shape[0] else _divide(b, a)
    return _find_residues(poles, rest) / a[0], poles, k


def _divide(b: Any, a: Any) -> tuple:
    """Return quotient and remainder of polynomials, the latter with as many coefficients as there can be."""
    quotient = lfilter(b, a, np.eye(1, b.shape[0] - a.shape[0] + 1)[0])
    return quotient, (b - np.convolve(a, quotient))[quotient.shape[0] :]


@register_function("residuez", samples=_fractions, rounding="single", **_FRACTIONS)
def residuez(b, a, tol=1e-3, rtype="avg"):
    """Return residues, poles and the polynomial of the partial fractions of ``b / a`` in powers of ``z**-1``.

    >>> import numpy as np, fad
    >>> fad.scipy.signal.residuez(np.array([1.0]), np.array([1.0, -0.75, 0.125]))[0].round(9)
    array([-1.,  2.])
    """
    b, a = _trim(b, "back", "b"), _trim(a, "back", "a")
    if outcome(a[0] == 0):
        raise ValueError("First coefficient of determinant `a` must be non-zero.")
    poles = _find_poles("residuez", a, tol)
    if not b.shape[0]:
        return np.zeros(poles.shape), poles, np.array([])
    k, rest = (np.zeros(0), b[::-1]) if b.shape[0] < a.shape[0] else _divide(b[::-1], a[::-1])
    return _find_residues(1.0 / poles, rest) * -poles / a[-1], poles, k[::-1]
