"""Hypergeometric functions, in the argument; their parameters have no derivative in closed form."""

from __future__ import annotations

import scipy.special as sc

from fad.core.primitives.samples import call
from fad.scipy.special.build import special

_WHY = "a parameter of a hypergeometric function has no derivative in closed form"
hyp0f1 = special(
    "hyp0f1",
    _WHY,
    lambda _z, b, x: sc.hyp0f1(b + 1.0, x) / b,
    samples=lambda s: [call(1.5, s.real(3, 4))],
    complex=True,
)
hyp1f1 = special(
    "hyp1f1",
    _WHY,
    _WHY,
    lambda _z, a, b, x: a / b * sc.hyp1f1(a + 1.0, b + 1.0, x),
    complex=True,
    samples=lambda s: [call(0.7, 1.9, s.real(3, 4)), call(-2.0, 0.5, s.real(4))],
)
hyp2f1 = special(
    "hyp2f1",
    _WHY,
    _WHY,
    _WHY,
    lambda _z, a, b, c, x: a * b / c * sc.hyp2f1(a + 1.0, b + 1.0, c + 1.0, x),
    complex=True,
    samples=lambda s: [call(0.7, 1.2, 1.9, s.real(3, 4, low=-0.8, high=0.6)), call(-2.0, 1.5, 0.5, s.real(4))],
)
hyperu = special(
    "hyperu",
    _WHY,
    _WHY,
    lambda _z, a, b, x: -a * sc.hyperu(a + 1.0, b + 1.0, x),
    samples=lambda s: [call(0.7, 1.3, s.real(3, 4, low=0.3, high=4.0))],
)
