"""Elliptic integrals and functions, in Legendre's form (parameter m) and in Carlson's.

The derivatives in m of Legendre's integrals are Carlson's R_D (DLMF 19.25), which has no removable singularity at
m = 0, and Carlson's own are of the family `quadrature.carlson`, so no order of derivative meets 0 / 0.
"""

from __future__ import annotations

import math

import numpy as np

from fad.core.primitives.samples import call
from fad.errors import DerivativeError
from fad.scipy.special import formulas
from fad.scipy.special.build import draw_samples, number, special, special_multi
from fad.scipy.special.quadrature import carlson_p

# --- complete -------------------------------------------------------------------------------------------------------


def _rd(x, y, z):
    return elliprd(x, y, z)


def _k_slope(m):
    return _rd(0.0, 1.0, 1.0 - m) / 6.0


def _e_slope(m):
    return _rd(0.0, 1.0 - m, 1.0) / -6.0


ellipk = special("ellipk", lambda _z, m: _k_slope(m), domain=(-1.0, 0.8))
ellipkm1 = special("ellipkm1", lambda _z, p: _rd(0.0, 1.0, p) / -6.0, domain=(0.2, 1.5))
ellipe = special("ellipe", lambda _z, m: _e_slope(m), domain=(-1.0, 0.8), elsewhere=formulas.ellipe)

# --- incomplete: F(phi + n pi) = F(phi) + 2 n K ---------------------------------------------------------------------


def _reduce(phi):
    turns = np.rint(phi / math.pi)
    r = phi - math.pi * turns
    return turns, np.sin(r), np.cos(r)


def first_kind_slope(phi, m):
    """Return the derivative of ellipkinc(phi, m) in m."""
    turns, s, c = _reduce(phi)
    whole = np.where(turns == 0, 0.0, 2.0 * turns * _k_slope(np.where(turns == 0, 0.0, m)))
    return s * s * s / 6.0 * _rd(c * c, 1.0, 1.0 - m * s * s) + whole


def _second_kind_slope(phi, m):
    turns, s, c = _reduce(phi)
    whole = np.where(turns == 0, 0.0, 2.0 * turns * _e_slope(np.where(turns == 0, 0.0, m)))
    return s * s * s / -6.0 * _rd(c * c, 1.0 - m * s * s, 1.0) + whole


_INCOMPLETE = ((-4.0, 4.0), (-1.0, 0.8))
ellipkinc = special(
    "ellipkinc",
    lambda _z, phi, m: 1.0 / np.sqrt(1.0 - m * np.sin(phi) ** 2),
    lambda _z, phi, m: first_kind_slope(phi, m),
    domain=_INCOMPLETE,
)
ellipeinc = special(
    "ellipeinc",
    lambda _z, phi, m: np.sqrt(1.0 - m * np.sin(phi) ** 2),
    lambda _z, phi, m: _second_kind_slope(phi, m),
    domain=_INCOMPLETE,
)


def _jacobi_argument(zs, _u, m):
    sn, cn, dn, _ = zs
    return cn * dn, -sn * dn, -m * sn * cn, dn


def _jacobi_parameter(zs, _u, m):
    sn, cn, dn, phi = zs
    amplitude = -dn * first_kind_slope(phi, m)  # of phi at constant u = F(phi, m)
    return cn * amplitude, -sn * amplitude, -(sn * sn + 2.0 * m * sn * cn * amplitude) / (2.0 * dn), amplitude


ellipj = special_multi(
    "ellipj",
    _jacobi_argument,
    _jacobi_parameter,
    results=4,
    samples=lambda s: [
        call(s.real(3, 4), s.real(3, 4, low=0.1, high=0.9)),
        call(s.real(), s.real(4, low=0.1, high=0.9)),
        call(s.real(4), 0.3),
    ],
)

# --- Carlson's symmetric integrals ----------------------------------------------------------------------------------

_AXES = (0.3, 3.0)


def _principal(x, y):
    """Return whether Cauchy's principal value is meant, which the integrals below do not give."""
    return (y < 0) if y.dtype.kind == "f" else np.zeros_like(y, dtype=bool)


def _rc_x(z, x, y):
    cut = _principal(x, y)
    safe_y = np.where(cut, 1.0, y)
    above = (z - 1.0 / np.sqrt(x)) / (2.0 * np.where(cut, y - x, 1.0))
    return np.where(cut, above, _rd(safe_y, safe_y, x) / -6.0)


def _rc_y(z, x, y):
    cut = _principal(x, y)
    safe_y = np.where(cut, 1.0, y)
    above = (z - np.sqrt(x) / y) / (2.0 * np.where(cut, x - y, 1.0))
    return np.where(cut, above, _rd(x, safe_y, safe_y) / -3.0)


elliprc = special("elliprc", _rc_x, _rc_y, domain=_AXES, complex=True, elsewhere=formulas.elliprc)
elliprf = special(
    "elliprf",
    lambda _v, x, y, z: _rd(y, z, x) / -6.0,
    lambda _v, x, y, z: _rd(x, z, y) / -6.0,
    lambda _v, x, y, z: _rd(x, y, z) / -6.0,
    domain=_AXES,
    complex=True,
    elsewhere=formulas.elliprf,
)
elliprd = special(
    "elliprd",
    lambda _v, x, y, z: -0.75 * carlson_p(x, y, z, exponents=(1.5, 0.5, 1.5)),
    lambda _v, x, y, z: -0.75 * carlson_p(y, x, z, exponents=(1.5, 0.5, 1.5)),
    lambda _v, x, y, z: -2.25 * carlson_p(z, x, y, exponents=(2.5, 0.5, 0.5)),
    domain=_AXES,
    complex=True,
    elsewhere=formulas.elliprd,
)
elliprg = special(
    "elliprg",
    lambda _v, x, y, z: 0.125 * carlson_p(x, y, z, exponents=(1.5, 0.5, 0.5), power=1.0),
    lambda _v, x, y, z: 0.125 * carlson_p(y, x, z, exponents=(1.5, 0.5, 0.5), power=1.0),
    lambda _v, x, y, z: 0.125 * carlson_p(z, x, y, exponents=(1.5, 0.5, 0.5), power=1.0),
    domain=_AXES,
    complex=True,
    elsewhere=formulas.elliprg,
)


def _third_kind(k):
    def partial(_v, x, y, z, p):
        if p.dtype.kind == "f" and np.any(number(p) < 0):
            raise DerivativeError(
                "scipy.special.elliprj with p < 0 is a principal value, whose derivative fad does not have. "
                "Transform it to p > 0 by DLMF 19.20.14 first"
            )
        if k == 3:
            return -1.5 * carlson_p(p, x, y, z, exponents=(2.0, 0.5, 0.5, 0.5))
        first, *rest = (x, y, z)[k:] + (x, y, z)[:k]
        return -0.75 * carlson_p(first, *rest, p, exponents=(1.5, 0.5, 0.5, 1.0))

    return partial


elliprj = special(
    "elliprj",
    *[_third_kind(k) for k in range(4)],
    samples=lambda s: draw_samples(s, *[_AXES] * 4),
    complex=True,
    elsewhere=formulas.elliprj,
)
