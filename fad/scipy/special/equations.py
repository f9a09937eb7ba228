"""Solutions of differential equations: Mathieu, parabolic cylinder and spheroidal functions, which SciPy returns with
their derivative.

The derivative of the second result follows from the differential equation itself.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as sc

from fad.core.primitive import answer
from fad.core.samples import call
from fad.scipy.special import formulas
from fad.scipy.special.build import special, special_multi
from fad.scipy.special.elliptic import elliprd

_DEGREE = math.pi / 180
_ORDER = "an integer order"
_Q = "the parameter q of a Mathieu function"


def _in_double(ufunc):
    """Return the function computed in double precision: SciPy's single precision loops give NaN, or never end."""

    def forward(*xs, **options):
        dtype = np.result_type(*xs)
        ys = ufunc(np.asarray(xs[0], dtype=float), *[np.asarray(x, dtype=float)[()] for x in xs[1:]], **options)
        if dtype != np.float32:
            return ys
        return tuple(y.astype(dtype) for y in ys) if type(ys) is tuple else ys.astype(dtype)

    forward.__name__ = ufunc.__name__
    return forward


# --- Mathieu --------------------------------------------------------------------------------------------------------

_ANGLES = np.arange(64) * (360.0 / 64)


def _mean(function):
    """Return the derivative in q of a characteristic value: the mean of 2 cos(2x) under the squared function."""

    def partial(_a, m, q):
        y = function(m[..., None] if hasattr(m, "ndim") else m, q[..., None], _ANGLES)[0]
        weight = 2.0 * np.cos(2.0 * _DEGREE * _ANGLES)
        return ((weight * y * y).sum(-1) / (y * y).sum(-1)).astype(q.dtype)

    return partial


def _values(s):
    return [call(2.0, s.real(3, 4, low=0.2, high=5.0)), call(1.0, s.real(low=0.2, high=5.0))]


mathieu_a = special("mathieu_a", _ORDER, _mean(sc.mathieu_cem), samples=_values, order=1)
mathieu_b = special("mathieu_b", _ORDER, _mean(sc.mathieu_sem), samples=_values, order=1)


def _angular(value):
    # x is in degrees, the derivative that SciPy returns is in radians.
    def partial(zs, m, q, x):
        y, slope = zs
        return _DEGREE * slope, -_DEGREE * (value(m, q) - 2.0 * q * np.cos(2.0 * _DEGREE * x)) * y

    return partial


def _radial(value):
    def partial(zs, m, q, x):
        y, slope = zs
        return slope, (value(m, q) - 2.0 * q * np.cosh(2.0 * x)) * y

    return partial


def _mathieu(name, partial, low, high):
    ufunc = getattr(sc, name)
    prim = special_multi(
        name,
        _ORDER,
        _Q,
        partial,
        results=2,
        numpy=_in_double(ufunc),
        samples=lambda s: [
            call(2.0, 1.5, s.real(3, 4, low=low, high=high)),
            call(1.0, 0.7, s.real(low=low, high=high)),
        ],
    )
    answer(ufunc, prim)
    return prim


mathieu_cem = _mathieu("mathieu_cem", _angular(sc.mathieu_a), 10.0, 80.0)
mathieu_sem = _mathieu("mathieu_sem", _angular(sc.mathieu_b), 10.0, 80.0)
mathieu_modcem1 = _mathieu("mathieu_modcem1", _radial(sc.mathieu_a), 0.2, 1.2)
mathieu_modcem2 = _mathieu("mathieu_modcem2", _radial(sc.mathieu_a), 0.2, 1.2)
mathieu_modsem1 = _mathieu("mathieu_modsem1", _radial(sc.mathieu_b), 0.2, 1.2)
mathieu_modsem2 = _mathieu("mathieu_modsem2", _radial(sc.mathieu_b), 0.2, 1.2)

# --- parabolic cylinder ---------------------------------------------------------------------------------------------

_CYLINDER = "the order of a parabolic cylinder function"


def _cylinder(name, potential, order):
    return special_multi(
        name,
        _CYLINDER,
        lambda zs, v, x: (zs[1], potential(v, x) * zs[0]),
        results=2,
        samples=lambda s: [call(order, s.real(3, 4)), call(order, s.real())],
    )


pbdv = _cylinder("pbdv", lambda v, x: 0.25 * x * x - v - 0.5, 1.5)
pbvv = _cylinder("pbvv", lambda v, x: 0.25 * x * x - v - 0.5, 1.5)
pbwa = _cylinder("pbwa", lambda a, x: a - 0.25 * x * x, 0.8)

# --- spheroidal wave functions --------------------------------------------------------------------------------------

_SPHEROIDAL = "a parameter of a spheroidal wave function"


# SciPy's radial functions of the second kind lose all digits on parts of their domain, so nothing is built on them.
_UNRELIABLE = "SciPy's values of it are not accurate enough"


def _prolate(value, m, c, x, zs):
    y, slope = zs
    return slope, (2.0 * x * slope - (value - c * c * x * x - m * m / (1.0 - x * x)) * y) / (1.0 - x * x)


def _oblate_angular(value, m, c, x, zs):
    y, slope = zs
    return slope, (2.0 * x * slope - (value + c * c * x * x - m * m / (1.0 - x * x)) * y) / (1.0 - x * x)


def _oblate_radial(value, m, c, x, zs):
    y, slope = zs
    return slope, ((value - c * c * x * x - m * m / (1.0 + x * x)) * y - 2.0 * x * slope) / (1.0 + x * x)


def _eigenvalue(name):
    return special(
        name,
        *[_SPHEROIDAL] * 3,
        numpy=_in_double(getattr(sc, name)),
        answers=(getattr(sc, name),),
        samples=lambda s: [call(1.0, 2.0, 1.3)],
    )


pro_cv = _eigenvalue("pro_cv")
obl_cv = _eigenvalue("obl_cv")


def _spheroidal(name, equation, value, low, high):
    reliable = equation is not None
    plain = special_multi(
        name,
        *[_SPHEROIDAL] * 3,
        (lambda zs, m, n, c, x: equation(value(m, n, c), m, c, x, zs)) if reliable else _UNRELIABLE,
        results=2,
        numpy=_in_double(getattr(sc, name)),
        samples=lambda s: [call(1.0, 2.0, 1.3, s.real(3, low=low, high=high) if reliable else 1.7)],
    )
    given = special_multi(
        f"{name}_cv",
        *[_SPHEROIDAL] * 4,
        (lambda zs, m, n, c, cv, x: equation(cv, m, c, x, zs)) if reliable else _UNRELIABLE,
        results=2,
        numpy=_in_double(getattr(sc, f"{name}_cv")),
        samples=lambda s: [
            call(1.0, 2.0, 1.3, float(value(1.0, 2.0, 1.3)), s.real(3, low=low, high=high) if reliable else 1.7)
        ],
    )
    answer(getattr(sc, name), plain)
    answer(getattr(sc, f"{name}_cv"), given)
    return plain, given


pro_ang1, pro_ang1_cv = _spheroidal("pro_ang1", _prolate, pro_cv, 0.1, 0.8)
pro_rad1, pro_rad1_cv = _spheroidal("pro_rad1", _prolate, pro_cv, 1.3, 3.0)
pro_rad2, pro_rad2_cv = _spheroidal("pro_rad2", None, pro_cv, 1.3, 3.0)
obl_ang1, obl_ang1_cv = _spheroidal("obl_ang1", _oblate_angular, obl_cv, 0.1, 0.8)
obl_rad1, obl_rad1_cv = _spheroidal("obl_rad1", _oblate_radial, obl_cv, 0.3, 3.0)
obl_rad2, obl_rad2_cv = _spheroidal("obl_rad2", None, obl_cv, 0.3, 3.0)

# --- the arithmetic-geometric mean ----------------------------------------------------------------------------------


def _agm(z, a, b):
    # M(a, b) = pi s / (4 K(m)), s = a + b, m = ((a - b) / s)^2.
    s = a + b
    m = ((a - b) / s) ** 2
    slope = elliprd(0.0, 1.0, 1.0 - m) / 6.0
    return z / s - z * slope / sc.ellipk(m) * 4.0 * (a - b) * b / (s * s * s)


agm = special("agm", _agm, lambda z, a, b: _agm(z, b, a), domain=(0.4, 3.0), elsewhere=formulas.agm)
