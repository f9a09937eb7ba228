"""Continuous distributions, each from its standard form: on the line, the half line, an interval, the circle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from fad.scipy.stats.base import Continuous, Distribution, operands

HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)

# --- on the whole line ----------------------------------------------------------------------------------------------

norm = Continuous(
    "norm",
    (),
    logpdf=lambda y: -0.5 * y * y - HALF_LOG_TAU,
    cdf=sc.ndtr,
    sf=lambda y: sc.ndtr(-y),
    ppf=sc.ndtri,
    isf=lambda q: -sc.ndtri(q),
    logcdf=sc.log_ndtr,
    logsf=lambda y: sc.log_ndtr(-y),
)
t = Continuous(
    "t",
    ("df",),
    cdf=lambda y, df: sc.stdtr(df, y),
    sf=lambda y, df: sc.stdtr(df, -y),
    domains=((2.0, 6.0),),
    ppf=lambda q, df: sc.stdtrit(df, q),
    isf=lambda q, df: -sc.stdtrit(df, q),
    logpdf=lambda y, df: (
        sc.gammaln(0.5 * df + 0.5)
        - sc.gammaln(0.5 * df)
        - 0.5 * np.log(math.pi * df)
        - 0.5 * (df + 1.0) * np.log1p(y * y / df)
    ),
)
laplace = Continuous(
    "laplace",
    (),
    logpdf=lambda y: -np.abs(y) - math.log(2.0),
    points=(0.3, 2.0),
    cdf=lambda y: np.where(y > 0, 1.0 - 0.5 * np.exp(-np.abs(y)), 0.5 * np.exp(-np.abs(y))),
    sf=lambda y: np.where(y < 0, 1.0 - 0.5 * np.exp(-np.abs(y)), 0.5 * np.exp(-np.abs(y))),
    ppf=lambda q: np.where(q > 0.5, -np.log(2.0 * (1.0 - q)), np.log(2.0 * q)),
    isf=lambda q: np.where(q > 0.5, np.log(2.0 * (1.0 - q)), -np.log(2.0 * q)),
)
logistic = Continuous(
    "logistic",
    (),
    logpdf=lambda y: sc.log_expit(y) + sc.log_expit(-y),
    cdf=sc.expit,
    sf=lambda y: sc.expit(-y),
    ppf=sc.logit,
    isf=lambda q: -sc.logit(q),
    logcdf=sc.log_expit,
    logsf=lambda y: sc.log_expit(-y),
)
cauchy = Continuous(
    "cauchy",
    (),
    logpdf=lambda y: -math.log(math.pi) - np.log1p(y * y),
    cdf=lambda y: np.arctan2(np.ones_like(y), -y) / math.pi,
    sf=lambda y: np.arctan2(np.ones_like(y), y) / math.pi,
    ppf=lambda q: -1.0 / np.tan(math.pi * q),
    isf=lambda q: 1.0 / np.tan(math.pi * q),
)


def _grow(y):
    """Return ``exp(y)``, less than infinity, for probabilities that are 0 and 1 long before."""
    return np.exp(np.minimum(y, 700.0))


gumbel_r = Continuous(
    "gumbel_r",
    (),
    logpdf=lambda y: -y - np.exp(-y),
    cdf=lambda y: np.exp(-_grow(-y)),
    sf=lambda y: -np.expm1(-_grow(-y)),
    ppf=lambda q: -np.log(-np.log(q)),
    isf=lambda q: -np.log(-np.log1p(-q)),
    logcdf=lambda y: -np.exp(-y),
)
gumbel_l = Continuous(
    "gumbel_l",
    (),
    logpdf=lambda y: y - np.exp(y),
    cdf=lambda y: -np.expm1(-_grow(y)),
    sf=lambda y: np.exp(-_grow(y)),
    ppf=lambda q: np.log(-np.log1p(-q)),
    isf=lambda q: np.log(-np.log(q)),
    logsf=lambda y: -np.exp(y),
)

# --- on the half line -----------------------------------------------------------------------------------------------

_HALF_LINE: dict[str, Any] = {"support": (0.0, math.inf), "points": (0.6, 3.0)}
expon = Continuous(
    "expon",
    (),
    logpdf=lambda y: -y,
    cdf=lambda y: -np.expm1(-y),
    sf=lambda y: np.exp(-y),
    ppf=lambda q: -np.log1p(-q),
    isf=lambda q: -np.log(q),
    logsf=lambda y: -y,
    **_HALF_LINE,
)
gamma = Continuous(
    "gamma",
    ("a",),
    logpdf=lambda y, a: sc.xlogy(a - 1.0, y) - y - sc.gammaln(a),
    cdf=lambda y, a: sc.gammainc(a, y),
    sf=lambda y, a: sc.gammaincc(a, y),
    ppf=lambda q, a: sc.gammaincinv(a, q),
    isf=lambda q, a: sc.gammainccinv(a, q),
    domains=((0.7, 3.0),),
    **_HALF_LINE,
)
invgamma = Continuous(
    "invgamma",
    ("a",),
    logpdf=lambda y, a: -((a + 1.0) * sc.xlogy(y, y) + 1.0) / y - sc.gammaln(a),  # -inf at 0
    cdf=lambda y, a: sc.gammaincc(a, 1.0 / y),
    sf=lambda y, a: sc.gammainc(a, 1.0 / y),
    ppf=lambda q, a: 1.0 / sc.gammainccinv(a, q),
    isf=lambda q, a: 1.0 / sc.gammaincinv(a, q),
    domains=((0.7, 3.0),),
    **_HALF_LINE,
)
chi2 = Continuous(
    "chi2",
    ("df",),
    cdf=lambda y, df: sc.gammainc(0.5 * df, 0.5 * y),
    sf=lambda y, df: sc.gammaincc(0.5 * df, 0.5 * y),
    ppf=lambda q, df: 2.0 * sc.gammaincinv(0.5 * df, q),
    isf=lambda q, df: 2.0 * sc.gammainccinv(0.5 * df, q),
    logpdf=lambda y, df: sc.xlogy(0.5 * df - 1.0, y) - 0.5 * y - sc.gammaln(0.5 * df) - 0.5 * math.log(2.0) * df,
    domains=((1.5, 5.0),),
    **_HALF_LINE,
)


def _f_logpdf(y, n, d):
    log_beta = sc.betaln(0.5 * n, 0.5 * d)
    return (
        0.5 * n * np.log(n)
        + 0.5 * d * np.log(d)
        + sc.xlogy(0.5 * n - 1.0, y)
        - 0.5 * (n + d) * np.log(d + n * y)
        - log_beta
    )


f = Continuous(
    "f",
    ("dfn", "dfd"),
    logpdf=_f_logpdf,
    cdf=lambda y, n, d: sc.fdtr(n, d, y),
    sf=lambda y, n, d: sc.fdtrc(n, d, y),
    ppf=lambda q, n, d: sc.fdtri(n, d, q),
    isf=lambda q, n, d: 1.0 / sc.fdtri(d, n, q),
    domains=((2.2, 5.0), (2.2, 5.0)),
    **_HALF_LINE,
)
lognorm = Continuous(
    "lognorm",
    ("s",),
    logpdf=lambda y, s: -np.log(y) * (0.5 * np.log(y) / s**2 + 1.0) - np.log(s) - HALF_LOG_TAU,  # -inf at 0
    cdf=lambda y, s: sc.ndtr(np.log(y) / s),
    sf=lambda y, s: sc.ndtr(-np.log(y) / s),
    ppf=lambda q, s: np.exp(s * sc.ndtri(q)),
    isf=lambda q, s: np.exp(-s * sc.ndtri(q)),
    domains=((0.5, 1.5),),
    **_HALF_LINE,
)
weibull_min = Continuous(
    "weibull_min",
    ("c",),
    logpdf=lambda y, c: np.log(c) + sc.xlogy(c - 1.0, y) - y**c,
    cdf=lambda y, c: -np.expm1(-(y**c)),
    sf=lambda y, c: np.exp(-(y**c)),
    logsf=lambda y, c: -(y**c),
    ppf=lambda q, c: (-np.log1p(-q)) ** (1.0 / c),
    isf=lambda q, c: (-np.log(q)) ** (1.0 / c),
    domains=((0.7, 3.0),),
    **_HALF_LINE,
)
rayleigh = Continuous(
    "rayleigh",
    (),
    logpdf=lambda y: np.log(y) - 0.5 * y * y,
    cdf=lambda y: -np.expm1(-0.5 * y * y),
    sf=lambda y: np.exp(-0.5 * y * y),
    logsf=lambda y: -0.5 * y * y,
    ppf=lambda q: np.sqrt(-2.0 * np.log1p(-q)),
    isf=lambda q: np.sqrt(-2.0 * np.log(q)),
    **_HALF_LINE,
)
halfnorm = Continuous(
    "halfnorm",
    (),
    logpdf=lambda y: 0.5 * math.log(2.0 / math.pi) - 0.5 * y * y,
    cdf=lambda y: sc.erf(y / math.sqrt(2.0)),
    sf=lambda y: sc.erfc(y / math.sqrt(2.0)),
    ppf=lambda q: sc.ndtri(0.5 * (1.0 + q)),
    isf=lambda q: -sc.ndtri(0.5 * q),
    **_HALF_LINE,
)
pareto = Continuous(
    "pareto",
    ("b",),
    logpdf=lambda y, b: np.log(b) - (b + 1.0) * np.log(y),
    cdf=lambda y, b: -np.expm1(-b * np.log(y)),
    sf=lambda y, b: y**-b,
    logsf=lambda y, b: -b * np.log(y),
    ppf=lambda q, b: (1.0 - q) ** (-1.0 / b),
    isf=lambda q, b: q ** (-1.0 / b),
    domains=((0.8, 3.0),),
    support=(1.0, math.inf),
    points=(2.5, 5.0),
)

# --- on an interval -------------------------------------------------------------------------------------------------

_INTERVAL: dict[str, Any] = {"support": (0.0, 1.0), "points": (0.2, 0.75)}
uniform = Continuous(
    "uniform",
    (),
    logpdf=lambda y: 0.0 * y,
    cdf=lambda y: y,
    sf=lambda y: 1.0 - y,
    ppf=lambda q: q,
    isf=lambda q: 1.0 - q,
    **_INTERVAL,
)
beta = Continuous(
    "beta",
    ("a", "b"),
    cdf=lambda y, a, b: sc.betainc(a, b, y),
    sf=lambda y, a, b: sc.betaincc(a, b, y),
    ppf=lambda q, a, b: sc.betaincinv(a, b, q),
    isf=lambda q, a, b: sc.betainccinv(a, b, q),
    logpdf=lambda y, a, b: sc.xlogy(a - 1.0, y) + sc.xlog1py(b - 1.0, -y) - sc.betaln(a, b),
    domains=((0.7, 3.0), (0.7, 3.0)),
    **_INTERVAL,
)


class _VonMises(Distribution):
    """The von Mises distribution on the circle: density only."""

    def __init__(self):
        super().__init__("vonmises", ("kappa",), ((0.5, 4.0),), (-1.0, 1.0))
        for method in ("logpdf", "pdf"):
            self._register(method, self.points)

    def logpdf(self, x, *args, **named):
        """Return the logarithm of the density, periodic in `x`."""
        x, kappa, loc, scale = operands((x, *self._parameters(args, named, ("loc", "scale"))))
        y = (x - loc) / scale
        return kappa * (np.cos(y) - 1.0) - math.log(2 * math.pi) - np.log(sc.i0e(kappa)) - np.log(scale)

    def pdf(self, x, *args, **named):
        """Return the density."""
        return np.exp(self.logpdf(x, *args, **named))


vonmises = _VonMises()
