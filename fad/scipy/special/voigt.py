"""Faddeeva's function w, whose recurrence cancels far from 0, and the derivatives of Voigt's profile."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.core.primitives.samples import call
from fad.scipy.special import faddeeva
from fad.scipy.special.build import polynomial, special

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_FAR = 12.0
# (2k - 1)!!, the coefficients of the asymptotic series of w (DLMF 7.12): of i / (sqrt(pi) z) in 1 / (2 z^2).
_DOUBLE = [float(math.prod(range(1, 2 * k, 2))) for k in range(32)]


def wofz_slope(w: Any, z: Any) -> Any:
    """Return w'(z) = 2 i / sqrt(pi) - 2 z w(z), of which far from 0 nearly equal numbers would be subtracted."""
    far = np.abs(z) > _FAR
    x = np.where(far, z, _FAR + 0.0 * z)
    y = np.imag(x)
    # The series is that of the upper half plane. Below the axis 2 exp(-z^2) is added, on it half of that.
    weight = 1.0 - np.sign(y) * (np.abs(y) > 1e-3)
    below = np.where(weight == 0, _FAR + 0.0 * x, x)
    u = 0.5 / (x * x)
    series = (-1j * _TWO_OVER_ROOT_PI) * u * polynomial(u, _DOUBLE[1:14])
    series = series - 2.0 * weight * below * np.exp(-below * below)
    return np.where(far, series, 1j * _TWO_OVER_ROOT_PI - 2.0 * z * w)


wofz_p = special(
    "wofz",
    wofz_slope,
    complex=True,
    samples=lambda s: [call(s.real(3, 4) + 1j * s.real(3, 4))],
    elsewhere=faddeeva.wofz,
)


_Operands = tuple[Any, Any, Any]


def _split(x: Any, sigma: Any, gamma: Any) -> tuple[Any, _Operands, _Operands]:
    """Return where sigma is narrow, so that the series in sigma / (x + i gamma) holds; operands there, and elsewhere.

    The series of the profile is the real part of ``i q / pi * sum (2k - 1)!! (sigma q)^2k`` with q = 1 / (x + i gamma).
    It is exact at sigma = 0, at every order of derivative that is less than its length.
    """
    narrow = (64.0 * sigma * sigma < x * x + gamma * gamma) & (gamma >= 0) & (sigma >= 0)
    there = np.where(narrow, x, 1.0), np.where(narrow, sigma, 0.0), np.where(narrow, gamma, 1.0)
    elsewhere = np.where(narrow, 0.0, x), np.where(narrow, 1.0, sigma), np.where(narrow, 1.0, gamma)
    return narrow, there, elsewhere


def _series(x: Any, sigma: Any, gamma: Any, weights: list) -> tuple:
    q = 1.0 / (x + np.complex128(1j) * gamma)  # in double precision, for the coefficients are large
    return q, polynomial((sigma * q) ** 2, weights) / math.pi


def _gaussian(x: Any, sigma: Any, gamma: Any, factor: Any) -> Any:
    """Return what a Gaussian has beyond the series, near the real axis: `factor(z, sigma)` times its complex form."""
    near = 10.0 * gamma < sigma
    width = np.where(near, sigma, 1.0)
    z = np.where(near, x + 1j * gamma, 1e3) / width
    return np.where(near, np.real(factor(z, width) * np.exp(-0.5 * z * z)) / (width * math.sqrt(2 * math.pi)), 0.0)


def _wide(x: Any, sigma: Any, gamma: Any) -> tuple:
    """Return z, for which the profile is the real part of w(z) / (sigma sqrt(2 pi)), and the derivative in x."""
    scale = math.sqrt(2.0) * sigma
    z = (x + 1j * gamma) / scale
    return z, wofz_slope(wofz_p(z), z) / (scale * sigma * math.sqrt(2 * math.pi))


_ODD = [(2 * k + 1) * c for k, c in enumerate(_DOUBLE)]
_EVEN = [2 * k * c for k, c in enumerate(_DOUBLE)][1:]


def in_x(_v, x, sigma, gamma):
    narrow, there, elsewhere = _split(x, sigma, gamma)
    q, total = _series(*there, _ODD)
    series = np.real(-1j * q * q * total) + _gaussian(*there, lambda z, s: -z / s)
    return np.where(narrow, series, np.real(_wide(*elsewhere)[1]))


def in_sigma(v, x, sigma, gamma):
    narrow, there, elsewhere = _split(x, sigma, gamma)
    q, total = _series(*there, _EVEN)
    series = there[1] * np.real(1j * q**3 * total) + _gaussian(*there, lambda z, s: (z * z - 1.0) / s)
    z, slope = _wide(*elsewhere)
    return np.where(narrow, series, -v / elsewhere[1] - np.real(z * slope) * math.sqrt(2.0))


def in_gamma(_v, x, sigma, gamma):
    narrow, there, elsewhere = _split(x, sigma, gamma)
    q, total = _series(*there, _ODD)
    series = np.real(q * q * total) + _gaussian(*there, lambda z, s: -1j * z / s)
    return np.where(narrow, series, -np.imag(_wide(*elsewhere)[1]))
