"""Solutions of differential equations: Mathieu, parabolic cylinder and spheroidal functions, which SciPy returns with
their derivative.

The derivative of the second result follows from the differential equation itself.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.special as sc

from fad.backends import like
from fad.core.primitives.primitive import answer
from fad.core.primitives.samples import call
from fad.errors import DerivativeError
from fad.scipy.special import formulas
from fad.scipy.special.build import number, special, special_multi
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


def _characteristic(cosines):
    """Return the derivative in q of a characteristic value, an eigenvalue of a tridiagonal matrix D + q E.

    The matrix is that of the recurrence of Fourier's coefficients (DLMF 28.4), of cosines or of sines of even or of odd
    multiples, made symmetric. With its eigenvector v the derivative is ``v E v``; those of v are eigh's.
    """

    def partial(a, m, q):
        m, q = _double(m), _double(q)
        nowhere = 0.0 * (a + q)  # NaN where there is no value
        m, q = np.where(np.isfinite(m), m, 0.0), np.where(np.isfinite(q), q, 0.0)
        odd = m % 2.0
        matrix, coupling = _recurrence(odd, q, cosines, _coefficients(m, q))
        index = (m - (0.0 if cosines else 2.0) + (0.0 if cosines else 1.0) * odd) // 2.0
        vectors = np.linalg.eigh(matrix)[1]
        index = np.clip(index, 0.0, matrix.shape[-1] - 1.0).astype(int)
        index = np.broadcast_to(index, matrix.shape[:-2])[..., None, None]
        v = np.take_along_axis(vectors, np.broadcast_to(index, (*matrix.shape[:-1], 1)), axis=-1)
        return np.sum(v * (coupling @ v), axis=(-2, -1)) + nowhere

    return partial


def _double(x):
    return x.astype(float) if hasattr(x, "astype") else np.float64(x)


def _coefficients(m, q):
    """Return how many coefficients there are to double precision: they fall off beyond the turning point."""
    m, q = np.abs(number(m)), np.abs(number(q))
    needed, n = np.sqrt(0.25 * m * m + 0.5 * q) + 3.0 * np.sqrt(np.sqrt(q)) + 16.0, 32
    while np.any(needed > n):  # few sizes, for what jit records holds for one of them
        n *= 2
        if n > 2048:
            raise DerivativeError(
                "scipy.special.mathieu_a and mathieu_b have derivatives for orders up to 4000 and |q| up to 7e6; "
                "keep q constant (fad.stop_gradient)"
            )
    return n


def _recurrence(odd, q, cosines, n):
    """Return ``D + q E`` and E: the constant matrices of even and of odd multiples, chosen by `odd`, 0 or 1."""
    k = np.arange(n)
    first = 0.0 if cosines else 2.0
    squares = [np.diag((2.0 * k + start) ** 2) for start in (first, 1.0)]
    even = np.eye(n, k=1) + np.eye(n, k=-1)
    uneven = even.copy()
    uneven[0, 0] = 1.0 if cosines else -1.0
    if cosines:
        even[0, 1] = even[1, 0] = math.sqrt(2.0)
    odd, q = odd[..., None, None], q[..., None, None]
    squares, (even, uneven) = [like(q, x) for x in squares], [like(q, x) for x in (even, uneven)]
    coupling = even + odd * (uneven - even)
    return squares[0] + odd * (squares[1] - squares[0]) + q * coupling, coupling


def _values(s):
    return [
        call(2.0, s.real(3, 4, low=0.2, high=5.0)), call(1.0, s.real(low=0.2, high=5.0)),
        call(s.ints(1, 7, (4,)), s.real(4, low=-3.0, high=9.0)),
    ]  # fmt: skip


mathieu_a = special("mathieu_a", _ORDER, _characteristic(cosines=True), samples=_values)
mathieu_b = special("mathieu_b", _ORDER, _characteristic(cosines=False), samples=_values)


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
