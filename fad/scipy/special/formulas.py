"""Functions of SciPy written in others, for a device whose library has the others alone.

Nothing here runs on the host. Degrees of polynomials are integers; the recurrences of DLMF 18.9 lead up to them, so a
device is waited for where they live there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.special as sc

from fad.backends.counterparts import scipy_function
from fad.errors import BackendFunctionError
from fad.scipy.special.build import choose, number
from fad.scipy.special.precision import in_double
from fad.scipy.special.quadrature import carlson_p

# --- elliptic integrals, as those of DLMF 19.16 and 19.23 -----------------------------------------------------------


def _carlson(factor: float, *exponents: float) -> Callable:
    return lambda *xs: factor * carlson_p(*xs, exponents=exponents)


_rf = _carlson(0.5, 0.5, 0.5, 0.5)
_rd = _carlson(1.5, 0.5, 0.5, 1.5)
_rc = _carlson(0.5, 0.5, 1.0)
_rj = _carlson(1.5, 0.5, 0.5, 0.5, 1.0)
elliprf, elliprd = in_double(_rf), in_double(_rd)


@in_double
def elliprc(x, y):
    """Return R_C; Cauchy's principal value for negative y by DLMF 19.2.20."""
    if y.dtype.kind == "c":
        return _rc(x, y)
    below = y < 0
    size = np.abs(y)
    return np.where(below, np.sqrt(x / (x + size)), 1.0) * _rc(np.where(below, x + size, x), size)


@in_double
def elliprj(x, y, z, p):
    """Return R_J; NaN for negative p, whose principal value is not here."""
    if p.dtype.kind == "c":
        return _rj(x, y, z, p)
    return np.where(p < 0, np.nan, _rj(x, y, z, np.abs(p)))


@in_double
def elliprg(x, y, z):
    """Return R_G by its symmetric integral, DLMF 19.23.7."""

    def term(v, *rest):
        return v * carlson_p(v, *rest, exponents=(1.5, 0.5, 0.5), power=1.0)

    return 0.25 * (term(x, y, z) + term(y, x, z) + term(z, x, y))


@in_double
def ellipe(m):
    """Return the complete integral of the second kind by DLMF 19.25.1."""
    zero, one = np.zeros_like(m), np.ones_like(m)
    return _rf(zero, one - m, one) - m * _rd(zero, one - m, one) * (1.0 / 3.0)


@in_double
def agm(a, b):
    """Return the arithmetic-geometric mean of numbers of one sign; 18 steps are enough for any two."""
    sign = np.where((a < 0) & (b < 0), -1.0, 1.0)
    a, b = a * sign, b * sign
    for _ in range(18):
        a, b = 0.5 * (a + b), np.sqrt(a) * np.sqrt(b)
    return a * sign


# --- distributions --------------------------------------------------------------------------------------------------


@in_double
def nrdtrimn(p, std, x):
    return x - std * sc.ndtri(p)


@in_double
def nrdtrisd(mean, p, x):
    return (x - mean) / sc.ndtri(p)


@in_double
def gdtria(p, b, x):
    return sc.gammaincinv(b, p) / x


@in_double
def gdtrix(a, b, p):
    return sc.gammaincinv(b, p) / a


@in_double
def stdtr(df, t):
    """Return Student's distribution function by the incomplete beta function, from the nearer side."""
    tail = 0.5 * sc.betainc(0.5 * df, 0.5 + 0.0 * df, df / (df + t * t))
    return np.where(t < 0, tail, 1.0 - tail)


@in_double
def stdtrit(df, p):
    """Return its inverse: by the tail, or by the part in the middle where that is the smaller."""
    half = 0.5 + 0.0 * df
    far = sc.betaincinv(0.5 * df, half, 2.0 * np.minimum(p, 1.0 - p))  # df / (df + t^2)
    middle = np.abs(p + (p - 1.0))
    near = sc.betaincinv(half, 0.5 * df, middle)  # t^2 / (df + t^2)
    square = np.where(middle > 0.5, df * (1.0 - far) / far, df * near / (1.0 - near))
    return np.where(p < 0.5, -1.0, 1.0) * np.sqrt(square)


@in_double
def betainccinv(a, b, y):
    return np.where(y < 0.5, 1.0 - sc.betaincinv(b, a, y), sc.betaincinv(a, b, 1.0 - y))


@in_double
def powm1(x, y):
    """Return x**y - 1, without cancellation near 0."""
    exponent = y * np.log(np.where(x == 0, 1.0, np.abs(x)))
    return np.where((x > 0) & (np.abs(exponent) < 0.5), np.expm1(exponent), x**y - 1.0)


# --- polynomials ----------------------------------------------------------------------------------------------------


def _recurrence(coefficients: Callable, argument: Callable = lambda x: x, factor: Callable | None = None) -> Callable:
    """Return the polynomials of ``P_k = (a x + b) P_{k-1} - c P_{k-2}``, where ``a, b, c = coefficients(k, *others)``.

    `argument` is applied to x first, and `factor`, a function of degree and parameters, multiplies the result.
    """

    def evaluate(n, *others):
        *params, x = others
        degrees = number(n)
        if degrees.dtype.kind not in "iu":
            raise BackendFunctionError(
                "on a device polynomials have integer degrees; others are hypergeometric functions, which the host has"
            )
        x = argument(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
        below, at = np.zeros_like(x), np.ones_like(x)
        found = choose(n == 0, at, below)
        for k in range(1, int(np.max(degrees, initial=0)) + 1):
            a, b, c = coefficients(k, *params)
            below, at = at, (a * x + b) * at - c * below
            found = choose(n == k, at, found)
        return found if factor is None else factor(n, *params) * found

    return evaluate


def _jacobi(k, a, b):
    if k == 1:
        return 0.5 * (a + b + 2.0), 0.5 * (a - b), 0.0
    s = 2.0 * k + a + b
    scale = 1.0 / (2.0 * k * (k + a + b) * (s - 2.0))
    return (
        (s - 1.0) * s * (s - 2.0) * scale,
        (s - 1.0) * (a * a - b * b) * scale,
        2.0 * (k + a - 1.0) * (k + b - 1.0) * s * scale,
    )


def _sh_jacobi(k, p, q):
    return _jacobi(k, p - q, q - 1.0)


def _shift(x):
    return 2.0 * x - 1.0


def _half(x):
    return 0.5 * x


eval_jacobi = _recurrence(_jacobi)
eval_sh_jacobi = _recurrence(_sh_jacobi, _shift, lambda n, p, q: 1.0 / sc.binom(2.0 * n + p - 1.0, 1.0 * n))
eval_legendre = _recurrence(lambda k: ((2.0 * k - 1.0) / k, 0.0, (k - 1.0) / k))
eval_sh_legendre = _recurrence(lambda k: ((2.0 * k - 1.0) / k, 0.0, (k - 1.0) / k), _shift)
eval_gegenbauer = _recurrence(lambda k, a: (2.0 * (k + a - 1.0) / k, 0.0, (k + 2.0 * a - 2.0) / k))
eval_chebyt = _recurrence(lambda k: (1.0 if k == 1 else 2.0, 0.0, 1.0))
eval_chebyu = _recurrence(lambda k: (2.0, 0.0, 1.0))
eval_chebyc = _recurrence(lambda k: (1.0 if k == 1 else 2.0, 0.0, 1.0), _half, lambda n: 2.0)
eval_chebys = _recurrence(lambda k: (2.0, 0.0, 1.0), _half)
eval_sh_chebyt = _recurrence(lambda k: (1.0 if k == 1 else 2.0, 0.0, 1.0), _shift)
eval_sh_chebyu = _recurrence(lambda k: (2.0, 0.0, 1.0), _shift)
eval_genlaguerre = _recurrence(lambda k, a: (-1.0 / k, (2.0 * k - 1.0 + a) / k, (k - 1.0 + a) / k))
eval_laguerre = _recurrence(lambda k: (-1.0 / k, (2.0 * k - 1.0) / k, (k - 1.0) / k))
eval_hermite = _recurrence(lambda k: (2.0, 0.0, 2.0 * (k - 1.0)))
eval_hermitenorm = _recurrence(lambda k: (1.0, 0.0, k - 1.0))


def kn(n, x):
    """Return the modified Bessel function of the second kind of whole order, by the recurrence, which grows."""
    x = x.astype(np.float64)
    below, at = sc.k1(x), sc.k0(x)  # K_{-1} = K_1
    order = abs(n)
    found = choose(order == 0, at, below)
    for k in range(int(np.max(np.abs(number(n)), initial=0))):
        below, at = at, below + (2.0 * k / x) * at if k else below
        found = choose(order == k + 1, at, found)
    return found


# --- Bessel functions of whole order --------------------------------------------------------------------------------

_HIGHEST = 8  # the order up to which series and recurrence lose few digits
_FAR = 30.0  # where the recurrence of I_n does not yet lose any; that of J_n holds from its order on


def _of_order(name: str, sign: float, first: Callable, second: Callable, scaled: bool = False) -> Callable:
    """Make J_n (`sign` -1) or I_n (1) of a whole number n and real numbers from those of order 0 and 1.

    By the series (DLMF 10.2.2, 10.25.2) where it loses no digits, and by the recurrence (10.6.1, 10.29.1) beyond.
    """
    lacking = scipy_function(f"special.{name}")

    @in_double
    def of_order(x, *, n):
        if n < 2:
            return second(x) if n else first(x)
        end, terms = (max(n, 2.0), 30) if sign < 0 else (_FAR, 64)
        near = np.abs(x) <= end
        low = np.where(near, x, np.zeros_like(x))
        term = (0.5 * low) ** n * (1.0 / math.factorial(n))
        total, square = term, 0.25 * sign * low * low
        for k in range(1, terms):
            term = term * square * (1.0 / (k * (n + k)))
            total = total + term
        x = np.where(near, np.ones_like(x), x)
        below, at = first(x), second(x)
        for k in range(1, n):
            below, at = at, sign * (below - (2.0 * k / x) * at)
        return np.where(near, total * np.exp(-np.abs(low)) if scaled else total, at)

    def function(v, x):
        if hasattr(v, "dtype") or int(v) != v or abs(v) > _HIGHEST or x.dtype.kind == "c":
            return lacking(v, x)  # which says so
        y = of_order(x, n=abs(int(v)))
        return -y if sign < 0 and v < 0 and int(v) % 2 else y

    return function


jv = _of_order("jv", -1.0, sc.j0, sc.j1)
iv = _of_order("iv", 1.0, sc.i0, sc.i1)
ive = _of_order("ive", 1.0, sc.i0e, sc.i1e, scaled=True)
