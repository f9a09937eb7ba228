"""The gamma family: gamma, beta, binomials, zeta, and the incomplete functions with their inverses."""

from __future__ import annotations

import math

import numpy as np
import scipy.special as sc

from fad.backends.counterparts import scipy_function
from fad.core.primitives.primitive import Primitive
from fad.core.primitives.samples import call
from fad.scipy.special import formulas
from fad.scipy.special.build import as_double, inverse, number, special, strong
from fad.scipy.special.quadrature import betainc_first, betainc_second, gammainc_order
from fad.transforms.jvp import jvp

# --- gamma and its logarithmic derivatives --------------------------------------------------------------------------


def _rgamma_slope(z, x):
    # By reflection left of 1/2: 1/gamma is entire, but digamma has poles there.
    reflect = np.real(x) < 0.5
    left = np.where(reflect, 1.0 - x, 1.0 + 0.0 * x)
    angle = math.pi * np.where(reflect, x, 0.0 * x)
    reflected = sc.gamma(left) * (np.cos(angle) - np.sin(angle) * sc.digamma(left) / math.pi)
    return np.where(reflect, reflected, -z * sc.digamma(np.where(reflect, 1.0 + 0.0 * x, x)))


gamma = special("gamma", lambda z, x: z * sc.digamma(x), domain=(0.3, 4.0), complex=True)
gammaln = special("gammaln", lambda _z, x: sc.digamma(x), domain=(0.3, 6.0))
loggamma = special("loggamma", lambda _z, x: sc.digamma(x), domain=(0.3, 6.0), complex=True)
rgamma = special("rgamma", _rgamma_slope, complex=True)
gammasgn = special("gammasgn", None)

_BERNOULLI = [
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
    854513 / 138,
]
_SHIFT = 14


def _complex_polygamma(n, z):
    """Return polygamma(n, z) of complex z, n >= 1: SciPy has it for real arguments only.

    The recurrence moves z to the right, where the asymptotic series (Euler and Maclaurin's) holds.
    """
    s = n + 1
    found = np.real(number(z))
    steps = _SHIFT + (max(0, int(np.ceil(-np.min(found)))) if found.size else 0)
    total = 0.0 * z
    for k in range(steps):
        total = total + (z + k) ** -s
    return (-1.0) ** s * math.factorial(n) * (total + _zeta_tail(float(s), z + steps))


def _zeta_tail(s, a):
    """Return the sum of (a + k)**-s over k >= 0 by Euler and Maclaurin's formula, for large a."""
    total = a ** (1.0 - s) / (s - 1.0) + 0.5 * a**-s
    rising = s  # s (s+1) ... (s + 2j - 2) / (2j)!
    factor = 0.5
    for j, b in enumerate(_BERNOULLI, start=1):
        total = total + b * factor * rising * a ** (1.0 - s - 2 * j)
        rising = rising * (s + (2 * j - 1)) * (s + 2 * j)
        factor /= (2 * j + 1) * (2 * j + 2)
    return total


_scipy_polygamma = scipy_function("special.polygamma")


def _polygamma_forward(n, x):
    if not np.iscomplexobj(x):
        y = _scipy_polygamma(n, x)
        return y.astype(np.float32) if getattr(x, "dtype", None) == np.float32 else y
    orders = np.unique(n)
    if len(orders) == 1:
        n = int(orders[0])
        return sc.digamma(x) if n == 0 else _complex_polygamma(n, x).astype(x.dtype)
    return np.select([n == k for k in orders], [_polygamma_forward(int(k), x) for k in orders])


polygamma_p: Primitive = special(
    "polygamma",
    "an integer order",
    lambda _z, n, x: polygamma_p(n + 1, x),
    numpy=_polygamma_forward,
    elsewhere=_polygamma_forward,
    integers=(0,),
    samples=lambda s: [
        call(1, s.real(3, 4, low=0.3, high=4.0)),
        call(s.ints(0, 4, (4,)), s.real(4, low=0.3, high=4.0)),
    ],
    complex=True,
)


def polygamma(n, x):
    """Return the derivative of order n + 1 of log(gamma(x)); n are integers. Complex x are allowed, unlike in SciPy.

    Parameters
    ----------
    n : int, or array of int
        The order, at least 0; it has no derivative.
    x : array_like, real or complex
        The argument.

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    DerivativeError
        a derivative in the order `n` is requested.

    Examples
    --------
    >>> fad.scipy.special.polygamma(1, 1.0).round(6)
    np.float64(1.644934)
    >>> fad.grad(lambda x: fad.scipy.special.polygamma(1, x))(1.0).round(6)
    np.float64(-2.404114)
    """
    return polygamma_p(n, as_double(x))


digamma = special("digamma", lambda _z, x: polygamma_p(1, x), domain=(0.3, 6.0), complex=True)
psi = digamma


def multigammaln(a, d):
    """Return the logarithm of the multivariate gamma function of dimension `d` (an integer), elementwise in `a`.

    Parameters
    ----------
    a : array_like, real
        Greater than (d - 1) / 2.
    d : int
        The dimension; it has no derivative.

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    ValueError
        `d` is no positive integer, or `a` is not above ``(d - 1) / 2``.

    Examples
    --------
    >>> fad.scipy.special.multigammaln(2.0, 1)
    np.float64(0.0)
    """
    if int(d) != d or d < 1:
        raise ValueError("d should be a positive integer (dimension)")
    if np.any(number(a) <= 0.5 * (d - 1)):
        raise ValueError(f"condition a ({number(a)}) > 0.5 * (d-1) ({0.5 * (d - 1)}) not met")
    total = np.float64(0.25 * d * (d - 1) * math.log(math.pi))
    for j in range(int(d)):
        total = total + sc.gammaln(a - 0.5 * j)
    return total


# --- beta, binomials, Pochhammer ------------------------------------------------------------------------------------

def _digamma_step(x, h, y):
    """Return digamma(y) - digamma(x) for y = x + h: of large x the difference of their series, not of their values."""
    far = (x > 20.0) & (y > 20.0)
    near = sc.digamma(np.where(far, 1.0, y)) - sc.digamma(np.where(far, 1.0, x))
    x, h, y = np.where(far, x, 20.0), np.where(far, h, 0.0), np.where(far, y, 20.0)
    p, q = 1.0 / (x * x), 1.0 / (y * y)
    total, term, power = 1 / 12, 1.0, 1.0
    for k, b in enumerate(_BERNOULLI[1:5], start=2):
        power = power * p
        term = q * term + power  # (q**k - p**k) / (q - p)
        total = total + b / (2 * k) * term
    change = -h / (x * y)  # of 1/x
    return np.where(far, np.log1p(h / x) - change * (0.5 + (1.0 / x + 1.0 / y) * total), near)


beta = special(
    "beta",
    lambda z, a, b: -z * _digamma_step(a, b, a + b),
    lambda z, a, b: -z * _digamma_step(b, a, a + b),
    domain=(0.3, 3.0),
)
betaln = special(
    "betaln",
    lambda _z, a, b: -_digamma_step(a, b, a + b),
    lambda _z, a, b: -_digamma_step(b, a, a + b),
    domain=(0.3, 3.0),
)


def _is_pole(x):
    return (x <= 0.0) & (x == np.floor(x))


def _poch_base(z, a, m):
    # gamma(a + m) / gamma(a): where a is a pole of gamma, 1/gamma(a) has a zero and a slope. If m is a whole number,
    # what a step left of zero adds is a sum of 1 / (a + j): by reflection, for a + m is rounded, and the poles are
    # near.
    pole = _is_pole(a)
    steps = (m == np.floor(m)) & (a < 0.5) & (a + m < 0.5)
    zero = pole & ~steps
    x, top = np.where(zero, a, 1.0), np.where(zero, a + m, 1.0)
    at_zero = sc.gamma(top) * _rgamma_slope(sc.rgamma(x), x) + z * sc.digamma(top)
    left = z * (sc.digamma(np.where(steps, 1.0 - a - m, 1.0)) - sc.digamma(np.where(steps, 1.0 - a, 1.0)))
    other = pole | steps
    regular = z * _digamma_step(np.where(other, 1.0, a), np.where(other, 0.0, m), np.where(other, 1.0, a + m))
    return np.where(steps, left, np.where(zero, at_zero, regular))


def _poch_steps(z, a, m):
    jumps = _is_pole(a) & _is_pole(a + m)  # beside such an m the function is zero, or nearly
    return z * sc.digamma(np.where(jumps, math.nan, a + m))


poch = special(
    "poch",
    _poch_base,
    _poch_steps,
    domain=((0.5, 3.0), (0.2, 2.0)),
)


def _binom_upper(z, n, k):
    pole = (n - k + 1.0 <= 0.0) & (z == 0)
    x = np.where(pole, n - k + 1.0, 1.0)
    # Where 1/gamma(n-k+1) is 0, the derivative of the quotient is that of this factor alone; but the other's, 0 times
    # z, counts in the second derivative.
    top = np.where(pole, n, 1.0) + 1.0
    limit = sc.gamma(top) * sc.rgamma(k + 1.0) * _rgamma_slope(sc.rgamma(x), x) + z * sc.digamma(top)
    regular = z * _digamma_step(np.where(pole, 1.0, n - k + 1.0), np.where(pole, 0.0, k), np.where(pole, 1.0, n + 1.0))
    return np.where(pole, limit, regular)


def _binom_lower(z, n, k):
    high = (n - k + 1.0 <= 0.0) & (z == 0)
    low = (k + 1.0 <= 0.0) & (z == 0)
    x, y = np.where(high, n - k + 1.0, 1.0), np.where(low, k + 1.0, 1.0)
    top = sc.gamma(np.where(high | low, n, 1.0) + 1.0)
    below, rest = np.where(high, k, 1.0) + 1.0, np.where(low, n - k, 1.0) + 1.0
    at_high = -top * sc.rgamma(below) * _rgamma_slope(sc.rgamma(x), x) - z * sc.digamma(below)
    at_low = top * sc.rgamma(rest) * _rgamma_slope(sc.rgamma(y), y) + z * sc.digamma(rest)
    regular = z * (sc.digamma(np.where(high, 1.0, n - k + 1.0)) - sc.digamma(np.where(low, 1.0, k + 1.0)))
    return np.where(high, at_high, np.where(low, at_low, regular))


binom = special("binom", _binom_upper, _binom_lower, domain=((3.2, 6.0), (0.2, 2.8)))


def comb(N, k, *, exact=False, repetition=False):
    """Return the number of combinations of N things taken k at a time, continued to real numbers; 0 where k > N.

    Parameters
    ----------
    N : array_like, real
        Number of things.
    k : array_like, real
        How many are taken.
    exact, repetition : bool
        As of scipy.special.comb; an exact count has no derivative.

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    ValueError
        `exact` is true, and an argument is no integer.

    Examples
    --------
    >>> fad.scipy.special.comb(4, 2)
    np.float64(6.0)
    """
    if exact:
        return sc.comb(N, k, exact=True, repetition=repetition)
    if repetition:
        return comb(N + k - 1, k)
    N, k = _as_arrays(N, k)
    return np.where((k <= N) & (N >= 0) & (k >= 0), sc.binom(N, k), 0.0)[()]


def _as_arrays(*xs):
    """Return numbers as SciPy's asarray gives them: a Python number, or an integer, makes the result double."""
    kept = all(hasattr(x, "dtype") and x.dtype.kind not in "biu" for x in xs)
    return xs if kept else map(as_double, xs)


def perm(N, k, exact=False):
    """Return the number of arrangements of k of N things, continued to real numbers; 0 where k > N.

    Parameters
    ----------
    N : array_like, real
        Number of things.
    k : array_like, real
        How many are taken.
    exact : bool
        Whether to compute with Python's integers, which have no derivative.

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    ValueError
        `exact` is true, and an argument is no integer.

    Examples
    --------
    >>> fad.scipy.special.perm(4, 2)
    np.float64(12.0)
    """
    if exact:
        return sc.perm(N, k, exact=True)
    N, k = _as_arrays(N, k)
    return np.where((k <= N) & (N >= 0) & (k >= 0), sc.poch(N - k + 1, k), 0.0)[()]


def factorial(n, exact=False):
    """Return n!, continued to real numbers as gamma(n + 1); 0 for negative n.

    Parameters
    ----------
    n : array_like, real
        With `exact` an int.
    exact : bool
        Whether to compute with Python's integers, which have no derivative.

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    ValueError
        `exact` is true, and an argument is no integer.

    Examples
    --------
    >>> fad.scipy.special.factorial(4)
    np.float64(24.0)
    >>> fad.grad(fad.scipy.special.factorial)(4.0).round(4)
    np.float64(36.1468)
    """
    if exact:
        return sc.factorial(n, exact=True)
    found = np.where(n < 0, 0.0, sc.gamma(np.where(n < 0, 0.0 * n, n) + 1.0))
    return found.astype(np.result_type(found, float)) if isinstance(n, np.ndarray) else found[()]


# --- zeta -----------------------------------------------------------------------------------------------------------


def _hurwitz(s, q):
    """Return Hurwitz's zeta function as a sum of differentiable operations, for its derivative in s."""
    total = q**-s
    for k in range(1, _SHIFT):
        total = total + (q + float(k)) ** -s
    return total + _zeta_tail(s, q + float(_SHIFT))


def _zeta_order(_z, s, q):
    # In double precision, then back: the sum has small and large terms.
    return jvp(lambda s: _hurwitz(s, q), (s,), (np.ones_like(s),))[1]


def _riemann(s):
    # To the left of 0 by reflection (DLMF 25.4.1), for which Euler and Maclaurin's formula would take more terms.
    left = s < 0.0
    right = _hurwitz(np.where(left, 1.0 - s, s), strong(1.0, s.dtype))
    x = np.where(left, s, -0.5)
    factor = 2.0 * (2.0 * math.pi) ** (x - 1.0) * np.sin(0.5 * math.pi * x) * sc.gamma(1.0 - x)
    return np.where(left, factor * right, right)


def _riemann_slope(_z, s):
    return jvp(_riemann, (s,), (np.ones_like(s),))[1]


_hurwitz_p: Primitive = special(
    "zeta",
    _zeta_order,
    lambda _z, s, q: -s * _hurwitz_p(s + 1.0, q),
    numpy=sc._ufuncs._zeta,
    elsewhere=scipy_function("special.zeta"),
    domain=((1.5, 4.0), (0.5, 3.0)),
)
_riemann_p = special(
    "riemann_zeta",
    _riemann_slope,
    numpy=sc._ufuncs._riemann_zeta,
    elsewhere=lambda s: _hurwitz_p(s, 1.0),
    domain=(1.5, 4.0),
)
zetac = special("zetac", _riemann_slope, domain=(1.5, 4.0))


def zeta(x, q=None, out=None):
    """Return Riemann's zeta function of x, or Hurwitz's ``sum of (k + q)**-x over k >= 0`` if q is given.

    The derivative in x is that of Euler and Maclaurin's formula (DLMF 25.11.43), accurate to rounding.

    Parameters
    ----------
    x : array_like, real
        Greater than 1 where `q` is given.
    q : array_like, real
        Start of the sum; by default 1, Riemann's function.

    Returns
    -------
    ndarray or scalar

    Raises
    ------
    ValueError
        The operands cannot be broadcast against each other.

    Examples
    --------
    >>> import fad, fad.scipy.special
    >>> fad.grad(fad.scipy.special.zeta)(2.0).round(12)
    np.float64(-0.937548254316)
    """
    if out is not None:
        return sc.zeta(x, q, out)
    return _riemann_p(x) if q is None else _hurwitz_p(x, q)


# --- the incomplete gamma functions ---------------------------------------------------------------------------------


def gamma_density(a, x):
    """Return x**(a-1) exp(-x) / gamma(a)."""
    return np.exp(sc.xlogy(a - 1.0, x) - x - sc.gammaln(a))


def _positive(function):
    """Give a derivative in the order that is 0 at x = 0."""

    def partial(_z, a, x):
        inside = x > 0
        return np.where(inside, function(a, np.where(inside, x, 1.0)), 0.0)

    return partial


_ORDER = _positive(gammainc_order)
lower_partials = (_ORDER, lambda _z, a, x: gamma_density(a, x))
upper_partials = (lambda z, a, x: -_ORDER(z, a, x), lambda _z, a, x: -gamma_density(a, x))
_GAMMA_DOMAIN = ((0.5, 4.0), (0.3, 5.0))
gammainc = special("gammainc", *lower_partials, domain=_GAMMA_DOMAIN)
gammaincc = special("gammaincc", *upper_partials, domain=_GAMMA_DOMAIN)
gammaincinv = special("gammaincinv", *inverse(lower_partials, 1, 1), domain=((0.5, 4.0), (0.1, 0.9)))
gammainccinv = special("gammainccinv", *inverse(upper_partials, 1, 1), domain=((0.5, 4.0), (0.1, 0.9)))

# --- the incomplete beta functions ----------------------------------------------------------------------------------


def beta_density(a, b, x):
    """Return x**(a-1) (1-x)**(b-1) / beta(a, b)."""
    return np.exp(sc.xlogy(a - 1.0, x) + sc.xlog1py(b - 1.0, -x) - sc.betaln(a, b))


beta_partials = (
    lambda _z, a, b, x: betainc_first(a, b, x),
    lambda _z, a, b, x: betainc_second(a, b, x),
    lambda _z, a, b, x: beta_density(a, b, x),
)


def _negate(partial):
    return lambda z, a, b, x: -partial(z, a, b, x)


beta_upper_partials = tuple(_negate(p) for p in beta_partials)
_BETA_DOMAIN = ((0.5, 4.0), (0.5, 4.0), (0.1, 0.9))
betainc = special("betainc", *beta_partials, domain=_BETA_DOMAIN)
betaincc = special(
    "betaincc",
    *beta_upper_partials,
    domain=_BETA_DOMAIN,
    elsewhere=lambda a, b, x: sc.betainc(b, a, 1.0 - x),
)
betaincinv = special("betaincinv", *inverse(beta_partials, 2, 2), domain=_BETA_DOMAIN)
betainccinv = special(
    "betainccinv", *inverse(beta_upper_partials, 2, 2), domain=_BETA_DOMAIN, elsewhere=formulas.betainccinv
)
