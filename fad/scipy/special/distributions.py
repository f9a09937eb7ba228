"""Distribution functions and their inverses in every argument, by the incomplete gamma and beta functions.

Each distribution function is written once in terms of gammainc and betainc; the chain rule gives its partials,
and the implicit function theorem those of the inverses. A count that SciPy rounds down has no derivative.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from fad.backends import like
from fad.core.primitives.samples import call
from fad.scipy.special import formulas
from fad.scipy.special.build import chain, inverse, number, special, whole
from fad.scipy.special.gamma import beta_density
from fad.scipy.special.quadrature import betainc_first, betainc_second

_COUNT = "a number of events, which is an integer"
_P = (0.1, 0.9)


def _counts(*ranges):
    """Draw samples with whole numbers first, then probabilities."""

    def draw(s):
        return [
            call(*[r if type(r) is not tuple else s.real(3, 4, low=r[0], high=r[1]) for r in ranges]),
            call(*[r if type(r) is not tuple else s.real(low=r[0], high=r[1]) for r in ranges]),
        ]

    return draw


# --- chi square, gamma, Poisson -------------------------------------------------------------------------------------

_chi = chain(lambda v, x: sc.gammainc(0.5 * v, 0.5 * x))
_chi_upper = chain(lambda v, x: sc.gammaincc(0.5 * v, 0.5 * x))
chdtr = special("chdtr", *_chi, domain=((0.7, 6.0), (0.5, 8.0)))
chdtrc = special("chdtrc", *_chi_upper, domain=((0.7, 6.0), (0.5, 8.0)))
chdtri = special("chdtri", *inverse(_chi_upper, 1, 1), domain=((0.7, 6.0), _P))
chdtriv = special("chdtriv", *inverse(_chi, 0, 0), domain=(_P, (0.5, 6.0)))

_gamma = chain(lambda a, b, x: sc.gammainc(b, a * x))
_gamma_upper = chain(lambda a, b, x: sc.gammaincc(b, a * x))
_GDTR = ((0.5, 2.0), (0.7, 4.0), (0.3, 3.0))
gdtr = special("gdtr", *_gamma, domain=_GDTR)
gdtrc = special("gdtrc", *_gamma_upper, domain=_GDTR)
gdtria = special("gdtria", *inverse(_gamma, 0, 0), domain=(_P, (0.7, 4.0), (0.3, 3.0)), elsewhere=formulas.gdtria)
gdtrib = special("gdtrib", *inverse(_gamma, 1, 1), domain=((0.5, 2.0), _P, (0.3, 3.0)))
gdtrix = special("gdtrix", *inverse(_gamma, 2, 2), domain=((0.5, 2.0), (0.7, 4.0), _P), elsewhere=formulas.gdtrix)

_of_poisson = lambda k, m: sc.gammaincc(k + 1.0, m)
_poisson = chain(_of_poisson)


def _poisson_density(_z, k, m):
    return np.exp(sc.xlogy(np.floor(k), m) - m - sc.gammaln(np.floor(k) + 1.0))


pdtr = special("pdtr", _COUNT, lambda z, k, m: -_poisson_density(z, k, m), samples=_counts(3.0, (0.5, 6.0)))
pdtrc = special("pdtrc", _COUNT, _poisson_density, samples=_counts(3.0, (0.5, 6.0)))
pdtri = special("pdtri", _COUNT, lambda z, k, y: -1.0 / _poisson_density(y, k, z), samples=_counts(3.0, _P))
pdtrik = special("pdtrik", *inverse(_poisson, 0, 0, _of_poisson), domain=(_P, (2.0, 8.0)))

# --- beta, binomial, F ----------------------------------------------------------------------------------------------

_beta = chain(lambda a, b, x: sc.betainc(a, b, x))
btdtria = special("btdtria", *inverse(_beta, 0, 0), domain=(_P, (0.7, 4.0), _P))
btdtrib = special("btdtrib", *inverse(_beta, 1, 1), domain=((0.7, 4.0), _P, _P))

_of_binomial = lambda k, n, p: sc.betaincc(k + 1.0, n - k, p)
_binomial = chain(_of_binomial)


def _binomial_density(_z, k, n, p):
    k, n = np.floor(k), whole(n)
    last = k >= n
    return np.where(last, 0.0, beta_density(k + 1.0, np.where(last, 1.0, n - k), p))


_BINOMIAL = _counts(2.0, 5, _P)
bdtr = special(
    "bdtr", _COUNT, _COUNT, lambda z, k, n, p: -_binomial_density(z, k, n, p), integers=(1,), samples=_BINOMIAL
)
bdtrc = special("bdtrc", _COUNT, _COUNT, _binomial_density, integers=(1,), samples=_BINOMIAL)
bdtri = special(
    "bdtri", _COUNT, _COUNT, lambda z, k, n, y: -1.0 / _binomial_density(y, k, n, z), integers=(1,), samples=_BINOMIAL
)
bdtrik = special("bdtrik", *inverse(_binomial, 0, 0, _of_binomial), domain=((0.3, 0.8), (6.0, 9.0), (0.3, 0.7)))
bdtrin = special("bdtrin", *inverse(_binomial, 1, 1), domain=((2.0, 4.0), (0.2, 0.8), (0.3, 0.7)))

_of_negative_binomial = lambda k, n, p: sc.betainc(n, k + 1.0, p)
_negative_binomial = chain(_of_negative_binomial)


def _negative_density(_z, k, n, p):
    return beta_density(whole(n), np.floor(k) + 1.0, p)


nbdtr = special("nbdtr", _COUNT, _COUNT, _negative_density, samples=_BINOMIAL)
nbdtrc = special("nbdtrc", _COUNT, _COUNT, lambda z, k, n, p: -_negative_density(z, k, n, p), samples=_BINOMIAL)
nbdtri = special("nbdtri", _COUNT, _COUNT, lambda z, k, n, y: 1.0 / _negative_density(y, k, n, z), samples=_BINOMIAL)
nbdtrik = special(
    "nbdtrik",
    *inverse(_negative_binomial, 0, 0, _of_negative_binomial),
    domain=((0.4, 0.8), (3.0, 6.0), (0.3, 0.6)),
)
nbdtrin = special("nbdtrin", *inverse(_negative_binomial, 1, 1), domain=((2.0, 5.0), (0.2, 0.8), (0.3, 0.6)))

_of_f = lambda n, d, x: sc.betainc(0.5 * n, 0.5 * d, n * x / (n * x + d))
_f = chain(_of_f)
_f_upper = chain(lambda n, d, x: sc.betainc(0.5 * d, 0.5 * n, d / (n * x + d)))
_F = ((1.5, 6.0), (1.5, 6.0), (0.3, 4.0))
fdtr = special("fdtr", *_f, domain=_F)
fdtrc = special("fdtrc", *_f_upper, domain=_F)
fdtri = special("fdtri", *inverse(_f, 2, 2), domain=((1.5, 6.0), (1.5, 6.0), _P))
fdtridfd = special("fdtridfd", *inverse(_f, 1, 1, _of_f), domain=((1.5, 6.0), (0.72, 0.8), (2.5, 3.0)))

# --- Student's t ----------------------------------------------------------------------------------------------------


def _t_density(_z, df, t):
    norm = np.exp(sc.gammaln(0.5 * df + 0.5) - sc.gammaln(0.5 * df))
    return norm / np.sqrt(math.pi * df) * (1.0 + t * t / df) ** (-0.5 * (df + 1.0))


def _t_freedom(z, df, t):
    # 1/2 + sign(t)/2 betainc(1/2, df/2, y), y = t^2 / (df + t^2); the chain rule's second term is -t / (2 df) density.
    # Far out, by the complement: the derivative of betainc(df/2, 1/2, 1 - y).
    far = t * t > df
    near_t, far_t = np.where(far, 0.0, t), np.where(far, t, 1.0)
    near = betainc_second(0.5 + 0.0 * df, 0.5 * df, near_t * near_t / (df + near_t * near_t))
    beyond = -betainc_first(0.5 * df, 0.5 + 0.0 * df, df / (df + far_t * far_t))
    return np.sign(t) * 0.25 * np.where(far, beyond, near) - 0.5 * t / df * _t_density(z, df, t)


_student = (_t_freedom, _t_density)
stdtr = special("stdtr", *_student, domain=((1.2, 8.0), (-3.0, 3.0)), elsewhere=formulas.stdtr)
stdtrit = special("stdtrit", *inverse(_student, 1, 1), domain=((1.2, 8.0), _P), elsewhere=formulas.stdtrit)
stdtridf = special("stdtridf", *inverse(_student, 0, 0, sc.stdtr), domain=((0.84, 0.87), (1.9, 2.1)))

# --- non-central: in the argument, and for chi square in the shift --------------------------------------------------

_FREEDOM = "degrees of freedom of a non-central distribution"


def _compute_shifted_chi_density(x, df, shift):
    root = np.sqrt(shift * x)
    half = 0.5 * df - 1.0
    log_power = 0.5 * half * (np.log(x) - np.log(shift))
    return 0.5 * np.exp(log_power - 0.5 * (np.sqrt(x) - np.sqrt(shift)) ** 2) * sc.ive(half, root)


_noncentral = (
    lambda _z, x, df, shift: _compute_shifted_chi_density(x, df, shift),
    _FREEDOM,
    lambda _z, x, df, shift: -_compute_shifted_chi_density(x, df + 2.0, shift),
)
chndtr = special("chndtr", *_noncentral, samples=_counts((0.5, 8.0), 3.5, (0.4, 3.0)))
chndtrix = special("chndtrix", *inverse(_noncentral, 0, 0, sc.chndtr), samples=_counts(_P, 3.5, (0.4, 3.0)))
chndtrinc = special("chndtrinc", *inverse(_noncentral, 2, 2, sc.chndtr), samples=_counts((4.0, 8.0), 3.5, (0.3, 0.45)))

# --- Kolmogorov and Smirnov -----------------------------------------------------------------------------------------

_TERMS = np.arange(1.0, 40.0)
_ODD = 2.0 * np.arange(0.0, 12.0) + 1.0


def _kolmogorov_density(_z, x):
    """Return the derivative of the survival function: by its theta series, or for small x by the one dual to it."""
    small = x < 1.0
    none = x < 0.04  # where the density is less than the smallest number, and 0 from 0 on
    high = np.where(small, 1.0, x)[..., None]
    low = np.where(small & (x >= 0.04), x, 1.0)[..., None]
    signs = np.where(_TERMS % 2 == 0, 1.0, -1.0)
    far = 8.0 * (signs * _TERMS**2 * high * np.exp(-2.0 * (_TERMS * high) ** 2)).sum(-1)
    c = (_ODD * math.pi) ** 2 / 8.0
    terms = np.exp(-c / (low * low)) * (2.0 * c / (low * low) - 1.0) / (low * low)
    near = -math.sqrt(2.0 * math.pi) * terms.sum(-1)
    return np.where(none, 0.0, np.where(small, near, far)).astype(x.dtype)


kolmogorov = special("kolmogorov", _kolmogorov_density, domain=(0.4, 2.0))
kolmogi = special("kolmogi", lambda z, p: 1.0 / _kolmogorov_density(p, z), domain=(0.05, 0.95))


def _smirnov_slope(_p, n, d):
    """Return the second derivative in d of Smirnov's statistic, by its sum over the sample (Birnbaum and Tingey 1951).

    The sum is that of d C(n, j) (d + j/n)**(j-1) (1 - d - j/n)**(n-j) over j with d + j/n < 1.
    """
    j = like(d, np.arange(float(np.max(number(n), initial=0)) + 1.0))
    n, d = (n[..., None] if np.ndim(n) else n), d[..., None]
    inside = d + j / n < 1.0
    base, rest = d + j / n, np.where(inside, 1.0 - d - j / n, 1.0)
    count = np.where(inside, sc.gammaln(n + 1.0) - sc.gammaln(j + 1.0) - sc.gammaln(np.maximum(n - j, 0.0) + 1.0), 0.0)
    term = np.exp(count + np.log(d) + (j - 1.0) * np.log(base) + (n - j) * np.log(rest))
    slope = 1.0 / d + (j - 1.0) / base - (n - j) / rest
    bend = -1.0 / d**2 - (j - 1.0) / base**2 - (n - j) / rest**2
    return np.sum(np.where(inside, term * (slope * slope + bend), 0.0), axis=-1)


# SciPy keeps the density of Smirnov's one-sided statistic for itself; where it is not found, there is no derivative.
_smirnov_density: Any = getattr(sc._ufuncs, "_smirnovp", None)
_SIZE = "a sample size, which is an integer"
if _smirnov_density is not None:
    special(
        "smirnov_density",
        _SIZE,
        _smirnov_slope,
        numpy=_smirnov_density,
        integers=(0,),
        samples=lambda s: [call(5, s.real(3, 4, low=0.1, high=0.7)), call(8, s.real(low=0.1, high=0.7))],
    )
    smirnov = special(
        "smirnov",
        _SIZE,
        lambda _z, n, d: _smirnov_density(n, d),
        integers=(0,),
        samples=lambda s: [call(5, s.real(3, 4, low=0.1, high=0.7)), call(8, s.real(low=0.1, high=0.7))],
    )
    smirnovi = special(
        "smirnovi",
        _SIZE,
        lambda z, n, _p: 1.0 / _smirnov_density(n, z),
        integers=(0,),
        samples=lambda s: [call(5, s.real(3, 4, low=0.1, high=0.9)), call(8, s.real(low=0.1, high=0.9))],
    )

# --- without derivatives: they keep their values, and are batched --------------------------------------------------

_NONCENTRAL = "non-central F and t have no derivative in closed form"


def _refuse(name, *point):
    return special(name, *[_NONCENTRAL] * len(point), samples=lambda s: [call(*point)])


chndtridf = _refuse("chndtridf", 4.0, 0.4, 1.5)
ncfdtr = _refuse("ncfdtr", 2.0, 3.0, 1.5, 0.8)
ncfdtri = _refuse("ncfdtri", 2.0, 3.0, 1.5, 0.4)
ncfdtridfd = _refuse("ncfdtridfd", 2.0, 0.4, 1.5, 0.8)
ncfdtridfn = _refuse("ncfdtridfn", 0.4, 3.0, 1.5, 0.8)
ncfdtrinc = _refuse("ncfdtrinc", 2.0, 3.0, 0.4, 0.8)
nctdtr = _refuse("nctdtr", 3.0, 0.5, 0.8)
nctdtridf = _refuse("nctdtridf", 0.6, 0.5, 0.8)
nctdtrinc = _refuse("nctdtrinc", 3.0, 0.6, 0.8)
nctdtrit = _refuse("nctdtrit", 3.0, 0.5, 0.6)
