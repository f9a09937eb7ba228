"""Bessel functions of every kind, with the derivative in the argument; in the order where there is one in closed form.

The recurrence ``C' = (C_{v-1} - C_{v+1}) / 2`` is used rather than the one that divides by the argument,
so that the derivatives at 0 are right.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from fad.core.primitives.primitive import Primitive
from fad.core.primitives.samples import call
from fad.errors import DerivativeError
from fad.scipy.special import formulas
from fad.scipy.special.build import choose, polynomial, previous, real_only, special, special_multi, strong, whole
from fad.scipy.special.quadrature import ive_order, kve_order

_ORDER = "the order of a Bessel function has no derivative in closed form"
_AS_INTEGRAL = f"{_ORDER}; where the argument is positive, write it as an integral with fad.scipy.integrate.quad"


def _samples(low=0.3, high=6.0, orders=(0.5, 2.0, 3.7)):
    def draw(s):
        xs = [call(v, s.real(3, 4, low=low, high=high)) for v in orders]
        return [*xs, call(1.5, s.real(low=low, high=high))]

    return draw


# --- of a real or complex order -------------------------------------------------------------------------------------


def _both(v, x, function):
    """Return (C_{v-1} - C_{v+1}) / 2."""
    return 0.5 * (function(v - 1.0, x) - function(v + 1.0, x))


# In whole orders that are plain numbers those of real arguments are on a device too, for derivatives of j0 and i0.
_WHOLE: dict[str, Any] = dict(integers=(0,))
jv: Primitive = special(
    "jv",
    _AS_INTEGRAL,
    lambda _z, v, x: _both(v, x, jv),
    samples=_samples(),
    complex=True,
    elsewhere=formulas.jv,
    **_WHOLE,
)
jn = jv
yv = special("yv", _AS_INTEGRAL, lambda _z, v, x: _both(v, x, sc.yv), samples=_samples(), complex=True)
hankel1 = special("hankel1", _ORDER, lambda _z, v, x: _both(v, x, sc.hankel1), samples=_samples(), complex=True)
hankel2 = special("hankel2", _ORDER, lambda _z, v, x: _both(v, x, sc.hankel2), samples=_samples(), complex=True)
hankel1e = special(
    "hankel1e", _ORDER, lambda z, v, x: _both(v, x, sc.hankel1e) - 1j * z, samples=_samples(), complex=True
)
hankel2e = special(
    "hankel2e", _ORDER, lambda z, v, x: _both(v, x, sc.hankel2e) + 1j * z, samples=_samples(), complex=True
)


def _jve(_z, v, x):
    real_only("jve", x)
    return _both(v, x, sc.jve)


def _yve(_z, v, x):
    real_only("yve", x)
    return _both(v, x, sc.yve)


jve = special("jve", _ORDER, _jve, samples=_samples())
yve = special("yve", _ORDER, _yve, samples=_samples())


def _positive_argument(name, x):
    if x.dtype.kind == "c":
        raise DerivativeError(
            f"scipy.special.{name} of complex numbers has no derivative in its order that fad could give, only of real "
            "positive ones. Keep the order constant (fad.stop_gradient)"
        )


def _kv_order(_z, v, x):
    _positive_argument("kv", x)
    return np.exp(-x) * kve_order(v, x)


def _kve_order(_z, v, x):
    _positive_argument("kve", x)
    return kve_order(v, x)


def _iv_order(_z, v, x):
    _positive_argument("iv", x)
    return np.exp(x) * ive_order(v, x)


def _ive_order(_z, v, x):
    _positive_argument("ive", x)
    return ive_order(v, x)


def _ive_slope(z, v, x):
    real_only("ive", x)
    return 0.5 * (ive(v - 1.0, x) + ive(v + 1.0, x)) - np.sign(x) * z


_MODIFIED = ((0.2, 3.0), (0.3, 6.0))
kv = special(
    "kv", _kv_order, lambda _z, v, x: -0.5 * (sc.kv(v - 1.0, x) + sc.kv(v + 1.0, x)), domain=_MODIFIED, complex=True
)
kve = special(
    "kve",
    _kve_order,
    lambda z, v, x: z - 0.5 * (sc.kve(v - 1.0, x) + sc.kve(v + 1.0, x)),
    domain=_MODIFIED,
    complex=True,
)
iv: Primitive = special(
    "iv",
    _iv_order,
    lambda _z, v, x: 0.5 * (iv(v - 1.0, x) + iv(v + 1.0, x)),
    domain=_MODIFIED,
    complex=True,
    elsewhere=formulas.iv,
    **_WHOLE,
)
ive = special("ive", _ive_order, _ive_slope, domain=_MODIFIED, elsewhere=formulas.ive, **_WHOLE)


# --- of integer order -----------------------------------------------------------------------------------------------


def _yn(_z, n, x):
    n = whole(n)
    lower = choose(n == 0, -sc.yn(1, x), sc.yn(previous(n), x))  # Y_{-1} = -Y_1
    return 0.5 * (lower - sc.yn(n + 1, x))


def _kn(_z, n, x):
    n = whole(n)
    return -0.5 * (kn(abs(n - 1), x) + kn(n + 1, x))


def _integer_samples(s):
    return [call(2, s.real(3, 4, low=0.3, high=6.0)), call(s.ints(0, 4, (4,)), s.real(4, low=0.3, high=6.0))]


yn = special("yn", "an integer order", _yn, integers=(0,), samples=_integer_samples)
kn = special("kn", "an integer order", _kn, integers=(0,), samples=_integer_samples, elsewhere=formulas.kn)

_AWAY = (0.3, 8.0)
j0 = special("j0", lambda _z, x: -sc.j1(x), domain=(-8.0, 8.0), steep=None)
j1 = special("j1", lambda _z, x: 0.5 * (sc.j0(x) - jv(2.0, x)), domain=(-8.0, 8.0), steep=None)
y0 = special("y0", lambda _z, x: -sc.y1(x), domain=_AWAY)
y1 = special("y1", lambda z, x: sc.y0(x) - z / x, domain=_AWAY)
i0 = special("i0", lambda _z, x: sc.i1(x), domain=(-4.0, 4.0), steep=None)
i1 = special("i1", lambda _z, x: 0.5 * (sc.i0(x) + iv(2.0, x)), domain=(-4.0, 4.0), steep=None)
i0e = special("i0e", lambda z, x: sc.i1e(x) - np.sign(x) * z, domain=(0.3, 4.0))
i1e = special("i1e", lambda z, x: 0.5 * (sc.i0e(x) + ive(2.0, x)) - np.sign(x) * z, domain=(0.3, 4.0))
k0 = special("k0", lambda _z, x: -sc.k1(x), domain=_AWAY)
k1 = special("k1", lambda z, x: -sc.k0(x) - z / x, domain=_AWAY)
k0e = special("k0e", lambda z, x: z - sc.k1e(x), domain=_AWAY)
k1e = special("k1e", lambda z, x: z - sc.k0e(x) - z / x, domain=_AWAY)

# --- spherical ------------------------------------------------------------------------------------------------------


def _spherical(name, lower_sign, upper_sign):
    """Make a spherical Bessel function: f_n' = (+-n f_{n-1} +- (n+1) f_{n+1}) / (2n + 1)."""
    function = getattr(sc, name)

    def forward(n, z):
        y = function(n, z)
        return y.astype(z.dtype) if getattr(z, "dtype", y.dtype) != y.dtype else y

    def partial(_y, n, z):
        low, high = prim(previous(n), z), prim(n + 1, z)
        return (lower_sign * n * low + upper_sign * (n + 1) * high) / (2 * n + 1)

    prim = special(
        name,
        "an integer order",
        partial,
        numpy=forward,
        integers=(0,),
        complex=True,
        samples=lambda s: [
            call(2, s.real(3, 4, low=0.5, high=6.0)),
            call(s.ints(0, 4, (4,)), s.real(4, low=0.5, high=6.0)),
        ],
    )

    def public(n, z, derivative=False):
        z = z if hasattr(z, "dtype") else np.asarray(z, dtype=float)[()]
        z = z.astype(function(0, np.ones((), z.dtype)).dtype)  # integers and single precision as SciPy takes them
        n = n if type(n) is int else np.asarray(n)
        return partial(None, n, z) if derivative else prim(n, z)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"""Return the spherical Bessel function {name} of integer order n, or its derivative in z.

    Parameters
    ----------
    n : int, or array of int
        The order, at least 0; it has no derivative.
    z : array_like, real or complex
        The argument.
    derivative : bool
        Whether to return the derivative in z instead.

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    ValueError
        The operands cannot be broadcast against each other.

    Examples
    --------
    >>> fad.scipy.special.{name}(0, 1.0).round(6)
    {forward(0, np.float64(1.0)).round(6)!r}
    >>> fad.grad(fad.scipy.special.{name}, argnums=1)(0, 1.0).round(6)
    {getattr(sc, name)(0, 1.0, derivative=True).round(6)!r}
    """
    return public


spherical_jn = _spherical("spherical_jn", 1.0, -1.0)
spherical_yn = _spherical("spherical_yn", 1.0, -1.0)
spherical_in = _spherical("spherical_in", 1.0, 1.0)
spherical_kn = _spherical("spherical_kn", -1.0, -1.0)

# --- derivatives of any order, as functions -------------------------------------------------------------------------


def _nth(function, sign, outer, name=None):
    """Return the n-th derivative as a function (v, z, n): a binomial sum of neighbouring orders (DLMF 10.6.7)."""

    def derivative(v, z, n=1):
        if int(n) != n or n < 0:
            raise ValueError("the order of the derivative must be a non-negative integer")
        n = int(n)
        terms = [math.comb(n, k) * sign**k * function(v - n + 2.0 * k, z) for k in range(n + 1)]
        return (outer / 2.0) ** n * sum(terms[1:], terms[0])

    derivative.__name__ = derivative.__qualname__ = name or f"{function.__name__}p"
    derivative.__doc__ = f"""Return the n-th derivative in z of scipy.special.{function.__name__}(v, z) (DLMF 10.6.7).

    Parameters
    ----------
    v : array_like, real
        The order of the function; it has no derivative.
    z : array_like, real or complex
        The argument.
    n : int
        The order of the derivative, at least 0.

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    ValueError
        if n is negative or no integer.

    Examples
    --------
    >>> fad.scipy.special.{derivative.__name__}(0, 1.0).round(6)
    {np.asarray(derivative(0, 1.0))[()].round(6)!r}
    """
    return derivative


jvp = _nth(sc.jv, -1.0, 1.0)
yvp = _nth(sc.yv, -1.0, 1.0)
ivp = _nth(sc.iv, 1.0, 1.0)
kvp = _nth(sc.kv, 1.0, -1.0)
h1vp = _nth(sc.hankel1, -1.0, 1.0, "h1vp")
h2vp = _nth(sc.hankel2, -1.0, 1.0, "h2vp")

# --- Kelvin: ber + i bei = J_0(x exp(3 pi i / 4)), ker + i kei = K_0(x exp(pi i / 4)) -------------------------------

_KEI = complex(math.sqrt(0.5), math.sqrt(0.5))
_BEI = complex(-math.sqrt(0.5), math.sqrt(0.5))


def _second_ber(x):
    z = x * _BEI
    return 0.5j * (sc.jv(0.0, z) - sc.jv(2.0, z))


def _second_ker(x):
    z = x * _KEI
    return 0.5j * (sc.kv(0.0, z) + sc.kv(2.0, z))


ber = special("ber", lambda _z, x: sc.berp(x), domain=(0.3, 5.0))
bei = special("bei", lambda _z, x: sc.beip(x), domain=(0.3, 5.0))
ker = special("ker", lambda _z, x: sc.kerp(x), domain=(0.3, 5.0))
kei = special("kei", lambda _z, x: sc.keip(x), domain=(0.3, 5.0))
berp = special("berp", lambda _z, x: np.real(_second_ber(x)), domain=(0.3, 5.0))
beip = special("beip", lambda _z, x: np.imag(_second_ber(x)), domain=(0.3, 5.0))
kerp = special("kerp", lambda _z, x: np.real(_second_ker(x)), domain=(0.3, 5.0))
keip = special("keip", lambda _z, x: np.imag(_second_ker(x)), domain=(0.3, 5.0))


def _points(low, high):
    return lambda s: [call(s.real(3, 4, low=low, high=high)), call(s.real(low=low, high=high))]


kelvin = special_multi(
    "kelvin", lambda zs, x: (zs[2], zs[3], _second_ber(x), _second_ker(x)), results=4, samples=_points(0.3, 5.0)
)

# --- Airy -----------------------------------------------------------------------------------------------------------

airy = special_multi(
    "airy", lambda zs, x: (zs[1], x * zs[0], zs[3], x * zs[2]), results=4, samples=_points(-3.0, 3.0), complex=True
)


def _airye(zs, x):
    real_only("airye", x)
    a, ap, b, bp = zs
    root = np.sqrt(np.maximum(x, 0.0))  # the scaling of Bi is 1 for x < 0, and Ai's has no real value there
    return ap + root * a, x * a + root * ap, bp - root * b, x * b - root * bp


airye = special_multi("airye", _airye, results=4, samples=_points(0.3, 3.0))


def _itairy(_zs, x):
    up, down = sc.airy(x), sc.airy(-x)
    return up[0], up[2], down[0], down[2]


# SciPy itself has seven digits of these integrals beyond 1.
itairy = special_multi("itairy", _itairy, results=4, samples=_points(0.1, 0.8))

# --- integrals of Bessel functions ----------------------------------------------------------------------------------

_SMALL = [(-1.0) ** k / (4.0**k * math.factorial(k) ** 2) for k in range(1, 14)]


def _drop(value, x, alternating):
    """Return (1 - J_0(x)) / x or (I_0(x) - 1) / x, by the power series for small x."""
    near = np.abs(x) < 1.5
    u = np.where(near, x, np.ones_like(x))
    total = 0.0
    for c in reversed(_SMALL):
        total = total * (u * u) + (-c if alternating else abs(c))
    far = np.where(near, np.ones_like(x), x)
    return np.where(near, total * u, (value - 1.0) * (-1.0 if alternating else 1.0) / far)


itj0y0 = special_multi("itj0y0", lambda _zs, x: (sc.j0(x), sc.y0(x)), results=2, samples=_points(0.3, 6.0))
iti0k0 = special_multi("iti0k0", lambda _zs, x: (sc.i0(x), sc.k0(x)), results=2, samples=_points(0.3, 4.0))
it2j0y0 = special_multi(
    "it2j0y0", lambda _zs, x: (_drop(sc.j0(x), x, True), -sc.y0(x) / x), results=2, samples=_points(0.3, 6.0)
)
it2i0k0 = special_multi(
    "it2i0k0", lambda _zs, x: (_drop(sc.i0(x), x, False), -sc.k0(x) / x), results=2, samples=_points(0.3, 4.0)
)
besselpoly = special(
    "besselpoly",
    lambda _z, a, power, v: sc.besselpoly(a, power + 1.0, v - 1.0) - sc.besselpoly(a, power + 1.0, v + 1.0),
    "the exponent",
    "the order",
    samples=lambda s: [call(s.real(3, 4, low=0.3, high=3.0), 1.0, 3.0)],
)

# --- Struve ---------------------------------------------------------------------------------------------------------


def _struve_term(v, x):
    return (0.5 * x) ** v * sc.rgamma(v + 1.5) / math.sqrt(math.pi)


def _struve_slope(function, sign):
    """Return the slope in x, (F_{v-1} + sign F_{v+1} + term) / 2.

    F_{-1} is F_1 with that sign, and a constant: its own recurrence begins with F_{-2}, which has a pole at x = 0.
    """

    def slope(_z, v, x):
        w = np.where(v == -1.0, 1.0, v)
        above = sign * function(w + 1.0, x)
        below = np.where(w == 0.0, 2 / math.pi + above, function(np.where(w == 0.0, 1.0, w) - 1.0, x))
        total = 0.5 * (below + above + _struve_term(w, x))
        return np.where(v == -1.0, sign * total, total)

    return slope


struve = special("struve", _ORDER, _struve_slope(sc.struve, -1.0), samples=_samples())
modstruve = special("modstruve", _ORDER, _struve_slope(sc.modstruve, 1.0), samples=_samples(high=4.0))
# H_0(x) / x is 2 / pi times the sum of (-x^2)^k / (2k + 1)!!^2 (DLMF 11.2).
_STRUVE = [2 / math.pi * (-1.0) ** k / math.prod(range(1, 2 * k + 2, 2)) ** 2 for k in range(11)]


def _struve_over(x):
    near = np.abs(x) < 1.5
    low, high = np.where(near, x, 0.0), np.where(near, 1.0, x)
    return np.where(near, polynomial(low * low, _STRUVE), sc.struve(strong(0.0, x.dtype), high) / high)


itstruve0 = special("itstruve0", lambda _z, x: sc.struve(strong(0.0, x.dtype), x), domain=(0.3, 6.0))
it2struve0 = special("it2struve0", lambda _z, x: -_struve_over(x), domain=(0.3, 6.0))
itmodstruve0 = special("itmodstruve0", lambda _z, x: sc.modstruve(strong(0.0, x.dtype), x), domain=(0.3, 4.0))
wright_bessel = special(
    "wright_bessel",
    "its first parameter",
    "its second parameter",
    lambda _z, a, b, x: sc.wright_bessel(a, b + a, x),
    samples=lambda s: [call(0.8, 1.3, s.real(3, 4, low=0.3, high=3.0))],
)

log_wright_bessel = special(
    "log_wright_bessel",
    "its first parameter",
    "its second parameter",
    lambda z, a, b, x: np.exp(sc.log_wright_bessel(a, b + a, x) - z),
    samples=lambda s: [call(0.8, 1.3, s.real(3, 4, low=0.3, high=3.0))],
)
