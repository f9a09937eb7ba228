"""The error functions, the normal distribution's, Dawson's and Fresnel's integrals, and exponential integrals."""

from __future__ import annotations

import math

import numpy as np
import scipy.special as sc

from fad.backends import like
from fad.core.primitives.primitive import answer
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer
from fad.scipy.special import faddeeva, formulas, voigt
from fad.scipy.special.build import branch, polynomial, special, special_multi, whole
from fad.scipy.special.voigt import wofz_p, wofz_slope

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_TWO = math.sqrt(2)

# Asymptotic series of 1 - 2 x dawsn(x) = -sum (2k-1)!! / (2 x^2)^k; with alternating signs, of erfcx'.
_DOUBLE = [math.prod(range(1, 2 * k, 2)) for k in range(1, 14)]
_DAWSON = [-float(c) for c in _DOUBLE]
_SCALED = [c * (-1.0) ** k for k, c in enumerate(_DOUBLE, start=1)]


def _far(coefficients, x):
    """Sum c_k u**k from k = 1 on, with u = 1 / (2 x^2)."""
    u = 0.5 / (x * x)
    return u * polynomial(u, coefficients)


def _erfcx_slope(z, x):
    # 2 x erfcx(x) - 2 / sqrt(pi) cancels for large x, where the asymptotic series holds.
    if x.dtype.kind == "c":
        return 1j * wofz_slope(z, 1j * x)
    near = 2.0 * x * z - _TWO_OVER_ROOT_PI
    far = x > 12.0
    return np.where(far, _TWO_OVER_ROOT_PI * _far(_SCALED, np.where(far, x, np.ones_like(x))), near)


def _complex_dawsn_slope(near, z):
    # In the upper half plane dawsn(z) is i sqrt(pi) / 2 (exp(-z^2) - w(z)), of which w is small; the slope is even.
    far = np.abs(z) > 12.0
    x = np.where(far, np.where(np.imag(z) < 0, -z, z), 12.0 + 0.0 * z)
    above = np.imag(x) > 1e-3
    large = np.where(above, x, 12.0 + 0.0 * x)
    exponential = (2j / _TWO_OVER_ROOT_PI) * large * np.exp(-large * large)
    return np.where(far, _far(_DAWSON, x) - np.where(above, exponential, 0.0), near)


def _dawsn_slope(z, x):
    near = 1.0 - 2.0 * x * z
    if x.dtype.kind == "c":
        return _complex_dawsn_slope(near, x)
    far = np.abs(x) > 12.0
    return np.where(far, _far(_DAWSON, np.where(far, x, np.ones_like(x))), near)


erf = special("erf", lambda _z, x: _TWO_OVER_ROOT_PI * np.exp(-x * x), complex=True, lower="erf({0})", steep=None)
erfc = special("erfc", lambda _z, x: -_TWO_OVER_ROOT_PI * np.exp(-x * x), complex=True, lower="erfc({0})", steep=None)
erfcx = special("erfcx", _erfcx_slope, complex=True, steep=None)
erfi = special("erfi", lambda _z, x: _TWO_OVER_ROOT_PI * np.exp(x * x), complex=True, elsewhere=faddeeva.erfi)
dawsn = special("dawsn", _dawsn_slope, complex=True, elsewhere=faddeeva.dawsn)


def wofz(z, /, **options):
    """Return Faddeeva's function exp(-z**2) erfc(-i z): complex, for real arguments too.

    Parameters
    ----------
    z : array_like, complex or real

    Returns
    -------
    complex ndarray or scalar

    Raises
    ------
    TypeError
        the operand is a string.

    Examples
    --------
    >>> fad.scipy.special.wofz(0.0)
    np.complex128(1+0j)
    >>> fad.jvp(fad.scipy.special.wofz, (0.0,), (1.0,))[1].round(6)
    np.complex128(1.128379j)
    """
    if type(z) is Tracer and z.dtype.kind == "f":
        z = z.astype(sc.wofz(np.zeros((), z.dtype)).dtype)  # SciPy before 1.18 leaves single precision
    return wofz_p(z, **options)


answer(sc.wofz, wofz)
erfinv = special("erfinv", lambda z, _x: np.exp(z * z) / _TWO_OVER_ROOT_PI, domain=(-0.9, 0.9))
erfcinv = special("erfcinv", lambda z, _x: -np.exp(z * z) / _TWO_OVER_ROOT_PI, domain=(0.1, 1.9))

# --- the normal distribution ----------------------------------------------------------------------------------------

_DENSITY = 1 / math.sqrt(2 * math.pi)


def normal_density(x):
    return _DENSITY * np.exp(-0.5 * x * x)


def _hazard(x):
    """Return the normal density over its distribution function, without underflow in the lower tail."""
    if x.dtype.kind == "c":
        return math.sqrt(2 / math.pi) / sc.erfcx(x * (-1 / _ROOT_TWO))
    return branch(
        x < 0,
        lambda t: math.sqrt(2 / math.pi) / sc.erfcx(t * (-1 / _ROOT_TWO)),
        lambda t: normal_density(t) / sc.ndtr(t),
        x,
        -1.0,
        1.0,
    )


ndtr = special("ndtr", lambda _z, x: normal_density(x), complex=True, lower="normal_cdf({0})", steep=None)
log_ndtr = special("log_ndtr", lambda _z, x: _hazard(x), complex=True, steep=None)
ndtri = special("ndtri", lambda z, _p: np.exp(0.5 * z * z) / _DENSITY, domain=(0.05, 0.95))
ndtri_exp = special("ndtri_exp", lambda z, _y: 1.0 / _hazard(z), domain=(-4.0, -0.1))
nrdtrimn = special(
    "nrdtrimn",
    lambda z, p, std, _x: -std * np.exp(0.5 * sc.ndtri(p) ** 2) / _DENSITY,
    lambda _z, p, _std, _x: -sc.ndtri(p),
    lambda z, _p, _std, _x: 1.0,
    domain=((0.1, 0.9), (0.5, 2.0), (-2.0, 2.0)),
    elsewhere=formulas.nrdtrimn,
)


def _deviation_slope(z, _mean, p, _x):
    q = sc.ndtri(p)
    return -z / q * np.exp(0.5 * q * q) / _DENSITY


nrdtrisd = special(
    "nrdtrisd",
    lambda _z, _mean, p, _x: -1.0 / sc.ndtri(p),
    _deviation_slope,
    lambda _z, _mean, p, _x: 1.0 / sc.ndtri(p),
    domain=((-2.0, 0.0), (0.6, 0.9), (0.5, 2.0)),
    elsewhere=formulas.nrdtrisd,
)
owens_t = special(
    "owens_t",
    lambda _z, h, a: -0.5 * normal_density(h) * sc.erf(a * h * (1 / _ROOT_TWO)),
    lambda _z, h, a: np.exp(-0.5 * h * h * (1.0 + a * a)) / ((2 * math.pi) * (1.0 + a * a)),
)

voigt_profile = special(
    "voigt_profile",
    voigt.in_x,
    voigt.in_sigma,
    voigt.in_gamma,
    domain=((-2.0, 2.0), (0.5, 1.5), (0.2, 1.2)),
    elsewhere=faddeeva.voigt_profile,
)

# --- integrals with two results -------------------------------------------------------------------------------------

_QUARTER = complex(math.sqrt(0.5), math.sqrt(0.5))  # exp(i pi / 4)


def _one_real(low=-2.0, high=2.0):
    return lambda s: [call(s.real(3, 4, low=low, high=high)), call(s.real(low=low, high=high))]


def _fresnel(_zs, x):
    t = (math.pi / 2) * x * x
    return np.sin(t), np.cos(t)


def _compute_modified_fresnel(sign):
    def partial(zs, x):
        phase = np.exp((1j * sign) * x * x)
        return -phase, (-2j * sign) * x * zs[1] - (_QUARTER.conjugate() if sign > 0 else _QUARTER) / math.sqrt(math.pi)

    return partial


def _hyperbolic_sinc(x):
    if x.dtype.kind == "c":
        return np.sinc(x * (1j / math.pi))
    return 0.5 * (sc.exprel(x) + sc.exprel(-x))


fresnel = special_multi("fresnel", _fresnel, results=2, samples=_one_real(), complex=True, elsewhere=faddeeva.fresnel)
modfresnelp, modfresnelm = (
    special_multi(
        name, _compute_modified_fresnel(sign), results=2, samples=_one_real(0.2, 2.0), elsewhere=getattr(faddeeva, name)
    )
    for name, sign in (("modfresnelp", 1.0), ("modfresnelm", -1.0))
)
sici = special_multi(
    "sici", lambda _zs, x: (np.sinc(x / math.pi), np.cos(x) / x), results=2, samples=_one_real(0.3, 4.0), complex=True
)
shichi = special_multi(
    "shichi", lambda _zs, x: (_hyperbolic_sinc(x), np.cosh(x) / x), results=2, samples=_one_real(0.3, 3.0), complex=True
)

# --- exponential integrals and the dilogarithm ----------------------------------------------------------------------

expi = special("expi", lambda _z, x: np.exp(x) / x, domain=(0.3, 3.0), complex=True)
exp1 = special("exp1", lambda _z, x: -np.exp(-x) / x, domain=(0.3, 3.0), complex=True)


def _expn_slope(_z, n, x):
    # E_n' = -E_{n-1}, and E_{-1} in closed form, which SciPy does not have.
    n = whole(n)
    last = like(x, np.asarray(n == 0)) if type(n) is int else n == 0
    return -np.where(last, np.exp(-x) * (1.0 + 1.0 / x) / x, sc.expn(like(x, np.where(last, 1, n - 1)), x))


expn = special(
    "expn",
    "an integer order",
    _expn_slope,
    integers=(0,),
    samples=lambda s: [
        call(2, s.real(3, 4, low=0.3, high=3.0)),
        call(s.ints(0, 4, (4,)), s.real(4, low=0.3, high=3.0)),
    ],
)

_LOG_SERIES = [(-1.0) ** k / (k + 1) for k in range(30)]


def _log_over(x):
    """Return log(x) / (x - 1), which is 1 at x == 1, by a series near it so that every derivative is right."""
    near = np.abs(x - 1.0) < 0.25
    u = np.where(near, x - 1.0, np.zeros_like(x))
    far = np.where(near, 2.0, x)
    return np.where(near, polynomial(u, _LOG_SERIES), np.log(far) / (far - 1.0))


spence = special("spence", lambda _z, x: -_log_over(x), domain=(0.3, 2.5), complex=True)
