"""More continuous distributions: extremes, powers, those of gamma and of an interval; the forms are SciPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from fad.scipy.stats.base import Continuous

_HALF_LINE: dict[str, Any] = {"support": (0.0, math.inf), "points": (0.6, 3.0)}
_SHAPE = (0.7, 3.0)


def _softplus(z):
    return -sc.log_expit(-z)


# --- extremes -------------------------------------------------------------------------------------------------------


def _log1p_ratio(c, y):
    """Return ``log1p(c y) / c``, and its limit y for c = 0, with its derivatives."""
    u = c * y
    near = np.abs(u) < 0.01
    small = np.where(near, u, 0.0)
    series: Any = 1.0 / 11
    for k in range(10, 0, -1):
        series = 1.0 / k - small * series
    return np.where(near, y * series, np.log1p(np.where(near, 1.0, u)) / np.where(near, 1.0, c))


def _genextreme_logpdf(y, c):
    s = _log1p_ratio(-c, y)
    at_end = (c == 1) & (y == 1)
    return -np.exp(-s) - (1.0 - c) * np.where(at_end, 0.0, s)


def _genextreme_support(c):
    end = 1.0 / np.where(c == 0, 1.0, c)
    return np.where(c < 0, end, -np.inf), np.where(c > 0, end, np.inf)


genextreme = Continuous(
    "genextreme",
    ("c",),
    logpdf=_genextreme_logpdf,
    cdf=lambda y, c: np.exp(-np.exp(-_log1p_ratio(-c, y))),
    sf=lambda y, c: -np.expm1(-np.exp(-_log1p_ratio(-c, y))),
    logcdf=lambda y, c: -np.exp(-_log1p_ratio(-c, y)),
    ppf=lambda q, c: -sc.boxcox(-np.log(q), c),
    isf=lambda q, c: -sc.boxcox(-np.log1p(-q), c),
    support=_genextreme_support,
    valid=lambda c: np.isfinite(c),
    domains=((-0.2, 0.3),),
)
genpareto = Continuous(
    "genpareto",
    ("c",),
    logpdf=lambda y, c: -(c + 1.0) * _log1p_ratio(c, y),
    cdf=lambda y, c: -np.expm1(-_log1p_ratio(c, y)),
    sf=lambda y, c: np.exp(-_log1p_ratio(c, y)),
    logsf=lambda y, c: -_log1p_ratio(c, y),
    ppf=lambda q, c: -sc.boxcox1p(-q, -c),
    isf=lambda q, c: -sc.boxcox(q, -c),
    support=lambda c: (np.zeros_like(c), np.where(c < 0, -1.0 / np.where(c < 0, c, -1.0), np.inf)),
    valid=lambda c: np.isfinite(c),
    domains=((-0.1, 0.4),),
    points=(0.6, 3.0),
)
invweibull = Continuous(
    "invweibull",
    ("c",),
    logpdf=lambda y, c: np.log(c) - (c + 1.0) * np.log(y) - y**-c,
    cdf=lambda y, c: np.exp(-(y**-c)),
    sf=lambda y, c: -np.expm1(-(y**-c)),
    logcdf=lambda y, c: -(y**-c),
    ppf=lambda q, c: (-np.log(q)) ** (-1.0 / c),
    isf=lambda q, c: (-np.log1p(-q)) ** (-1.0 / c),
    domains=(_SHAPE,),
    **_HALF_LINE,
)
weibull_max = Continuous(
    "weibull_max",
    ("c",),
    logpdf=lambda y, c: np.log(c) + sc.xlogy(c - 1.0, -y) - (-y) ** c,
    cdf=lambda y, c: np.exp(-((-y) ** c)),
    sf=lambda y, c: -np.expm1(-((-y) ** c)),
    logcdf=lambda y, c: -((-y) ** c),
    ppf=lambda q, c: -((-np.log(q)) ** (1.0 / c)),
    isf=lambda q, c: -((-np.log1p(-q)) ** (1.0 / c)),
    domains=(_SHAPE,),
    support=(-math.inf, 0.0),
    points=(-3.0, -0.6),
)
def _grow(y):
    """Return ``exp(y) - 1``, less than infinity, for probabilities that are 0 and 1 long before."""
    return np.expm1(np.minimum(y, 700.0))


gompertz = Continuous(
    "gompertz",
    ("c",),
    logpdf=lambda y, c: np.log(c) + y - c * np.expm1(y),
    cdf=lambda y, c: -np.expm1(-c * _grow(y)),
    sf=lambda y, c: np.exp(-c * _grow(y)),
    logsf=lambda y, c: -c * np.expm1(y),
    ppf=lambda q, c: np.log1p(-np.log1p(-q) / c),
    isf=lambda q, c: np.log1p(-np.log(q) / c),
    domains=((0.3, 1.2),),
    support=(0.0, math.inf),
    points=(0.4, 1.5),
)

# --- powers ---------------------------------------------------------------------------------------------------------

lomax = Continuous(
    "lomax",
    ("c",),
    logpdf=lambda y, c: np.log(c) - (c + 1.0) * np.log1p(y),
    cdf=lambda y, c: -np.expm1(-c * np.log1p(y)),
    sf=lambda y, c: np.exp(-c * np.log1p(y)),
    logsf=lambda y, c: -c * np.log1p(y),
    ppf=lambda q, c: np.expm1(-np.log1p(-q) / c),
    isf=lambda q, c: np.expm1(-np.log(q) / c),
    domains=(_SHAPE,),
    **_HALF_LINE,
)
powerlaw = Continuous(
    "powerlaw",
    ("a",),
    logpdf=lambda y, a: np.log(a) + sc.xlogy(a - 1.0, y),
    cdf=lambda y, a: y**a,
    sf=lambda y, a: -np.expm1(a * np.log(y)),
    logcdf=lambda y, a: a * np.log(y),
    ppf=lambda q, a: q ** (1.0 / a),
    isf=lambda q, a: np.exp(np.log1p(-q) / a),
    domains=(_SHAPE,),
    support=(0.0, 1.0),
    points=(0.2, 0.75),
)
burr = Continuous(
    "burr",
    ("c", "d"),
    logpdf=lambda y, c, d: (
        np.log(c) + np.log(d) + sc.xlogy(c * d - 1.0, y) - (d + 1.0) * _softplus(c * np.log(y))
    ),
    cdf=lambda y, c, d: np.exp(d * sc.log_expit(c * np.log(y))),
    sf=lambda y, c, d: -np.expm1(d * sc.log_expit(c * np.log(y))),
    logcdf=lambda y, c, d: d * sc.log_expit(c * np.log(y)),
    ppf=lambda q, c, d: np.expm1(-np.log(q) / d) ** (-1.0 / c),
    isf=lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (-1.0 / c),
    domains=(_SHAPE, _SHAPE),
    **_HALF_LINE,
)
burr12 = Continuous(
    "burr12",
    ("c", "d"),
    logpdf=lambda y, c, d: np.log(c) + np.log(d) + sc.xlogy(c - 1.0, y) - (d + 1.0) * _softplus(c * np.log(y)),
    cdf=lambda y, c, d: -np.expm1(-d * _softplus(c * np.log(y))),
    sf=lambda y, c, d: np.exp(-d * _softplus(c * np.log(y))),
    logsf=lambda y, c, d: -d * _softplus(c * np.log(y)),
    ppf=lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (1.0 / c),
    isf=lambda q, c, d: np.expm1(-np.log(q) / d) ** (1.0 / c),
    domains=(_SHAPE, _SHAPE),
    **_HALF_LINE,
)
fisk = Continuous(
    "fisk",
    ("c",),
    logpdf=lambda y, c: np.log(c) + sc.xlogy(c - 1.0, y) - 2.0 * _softplus(c * np.log(y)),
    cdf=lambda y, c: sc.expit(c * np.log(y)),
    sf=lambda y, c: sc.expit(-c * np.log(y)),
    logcdf=lambda y, c: sc.log_expit(c * np.log(y)),
    logsf=lambda y, c: sc.log_expit(-c * np.log(y)),
    ppf=lambda q, c: np.exp(sc.logit(q) / c),
    isf=lambda q, c: np.exp(-sc.logit(q) / c),
    domains=(_SHAPE,),
    **_HALF_LINE,
)
loglaplace = Continuous(
    "loglaplace",
    ("c",),
    logpdf=lambda y, c: np.log(0.5 * c) + sc.xlogy(np.where(y < 1, c, -c) - 1.0, y),
    cdf=lambda y, c: np.where(y < 1, 0.5 * y**c, 1.0 - 0.5 * y**-c),
    sf=lambda y, c: np.where(y < 1, 1.0 - 0.5 * y**c, 0.5 * y**-c),
    ppf=lambda q, c: np.where(q < 0.5, (2.0 * q) ** (1.0 / c), (2.0 * (1.0 - q)) ** (-1.0 / c)),
    isf=lambda q, c: np.where(q > 0.5, (2.0 * (1.0 - q)) ** (1.0 / c), (2.0 * q) ** (-1.0 / c)),
    domains=(_SHAPE,),
    support=(0.0, math.inf),
    points=(1.5, 3.0),
)

# --- of the families of Cauchy and gamma ------------------------------------------------------------------------------

halfcauchy = Continuous(
    "halfcauchy",
    (),
    logpdf=lambda y: math.log(2.0 / math.pi) - np.log1p(y * y),
    cdf=lambda y: 2.0 / math.pi * np.arctan(y),
    sf=lambda y: 2.0 / math.pi * np.arctan2(np.ones_like(y), y),
    ppf=lambda q: np.tan(0.5 * math.pi * q),
    isf=lambda q: 1.0 / np.tan(0.5 * math.pi * q),
    **_HALF_LINE,
)
maxwell = Continuous(
    "maxwell",
    (),
    logpdf=lambda y: 0.5 * math.log(2.0 / math.pi) + 2.0 * np.log(y) - 0.5 * y * y,
    cdf=lambda y: sc.gammainc(1.5, 0.5 * y * y),
    sf=lambda y: sc.gammaincc(1.5, 0.5 * y * y),
    ppf=lambda q: np.sqrt(2.0 * sc.gammaincinv(1.5, q)),
    isf=lambda q: np.sqrt(2.0 * sc.gammainccinv(1.5, q)),
    **_HALF_LINE,
)
chi = Continuous(
    "chi",
    ("df",),
    logpdf=lambda y, df: (
        math.log(2.0) * (1.0 - 0.5 * df) - sc.gammaln(0.5 * df) + sc.xlogy(df - 1.0, y) - 0.5 * y * y
    ),
    cdf=lambda y, df: sc.gammainc(0.5 * df, 0.5 * y * y),
    sf=lambda y, df: sc.gammaincc(0.5 * df, 0.5 * y * y),
    ppf=lambda q, df: np.sqrt(2.0 * sc.gammaincinv(0.5 * df, q)),
    isf=lambda q, df: np.sqrt(2.0 * sc.gammainccinv(0.5 * df, q)),
    domains=((1.5, 5.0),),
    **_HALF_LINE,
)
nakagami = Continuous(
    "nakagami",
    ("nu",),
    logpdf=lambda y, nu: (
        math.log(2.0) + sc.xlogy(nu, nu) - sc.gammaln(nu) + sc.xlogy(2.0 * nu - 1.0, y) - nu * y * y
    ),
    cdf=lambda y, nu: sc.gammainc(nu, nu * y * y),
    sf=lambda y, nu: sc.gammaincc(nu, nu * y * y),
    ppf=lambda q, nu: np.sqrt(sc.gammaincinv(nu, q) / nu),
    isf=lambda q, nu: np.sqrt(sc.gammainccinv(nu, q) / nu),
    domains=(_SHAPE,),
    support=(0.0, math.inf),
    points=(0.4, 1.5),
)
erlang = Continuous(
    "erlang",
    ("a",),
    logpdf=lambda y, a: sc.xlogy(a - 1.0, y) - y - sc.gammaln(a),
    cdf=lambda y, a: sc.gammainc(a, y),
    sf=lambda y, a: sc.gammaincc(a, y),
    ppf=lambda q, a: sc.gammaincinv(a, q),
    isf=lambda q, a: sc.gammainccinv(a, q),
    domains=(_SHAPE,),
    **_HALF_LINE,
)


def _choose_by_sign(lower, upper):
    """Return the incomplete gamma function of y**c: the lower one for positive c, for negative c the upper one."""
    return lambda y, a, c: np.where(c > 0, lower(a, y**c), upper(a, y**c))


def _choose_quantile(lower, upper):
    return lambda q, a, c: np.where(c > 0, lower(a, q), upper(a, q)) ** (1.0 / c)


gengamma = Continuous(
    "gengamma",
    ("a", "c"),
    logpdf=lambda y, a, c: np.log(np.abs(c)) + sc.xlogy(c * a - 1.0, y) - y**c - sc.gammaln(a),
    cdf=_choose_by_sign(sc.gammainc, sc.gammaincc),
    sf=_choose_by_sign(sc.gammaincc, sc.gammainc),
    ppf=_choose_quantile(sc.gammaincinv, sc.gammainccinv),
    isf=_choose_quantile(sc.gammainccinv, sc.gammaincinv),
    valid=lambda a, c: (a > 0) & (c != 0),
    domains=(_SHAPE, (0.6, 1.8)),
    **_HALF_LINE,
)
# --- on an interval -------------------------------------------------------------------------------------------------


def _log_uniform(name: str) -> Continuous:
    return Continuous(
        name,
        ("a", "b"),
        logpdf=lambda y, a, b: -np.log(y) - np.log(np.log(b / a)),
        cdf=lambda y, a, b: np.log(y / a) / np.log(b / a),
        sf=lambda y, a, b: np.log(b / y) / np.log(b / a),
        ppf=lambda q, a, b: np.exp(np.log(a) + q * np.log(b / a)),
        isf=lambda q, a, b: np.exp(np.log(b) - q * np.log(b / a)),
        support=lambda a, b: (a, b),
        valid=lambda a, b: (a > 0) & (a < b),
        domains=((0.2, 0.4), (2.5, 4.0)),
        points=(0.7, 1.8),
    )


loguniform, reciprocal = _log_uniform("loguniform"), _log_uniform("reciprocal")


def _triangle(rising, falling):
    """Return a function of triang: one form below the mode, another one above, neither used at an end."""

    def choose(y, c):
        below = y < c
        return np.where(
            below, rising(np.where(below, y, 0.25), np.where(below, c, 0.5)),
            falling(np.where(below, 0.75, y), np.where(below, 0.5, c)),
        )  # fmt: skip

    return choose


_triang_ppf = _triangle(lambda q, c: np.sqrt(c * q), lambda q, c: 1.0 - np.sqrt((1.0 - c) * (1.0 - q)))
triang = Continuous(
    "triang",
    ("c",),
    logpdf=_triangle(lambda y, c: np.log(2.0 * y / c), lambda y, c: _log_of_falling(y, c)),
    cdf=_triangle(lambda y, c: y * y / c, lambda y, c: (y * y - 2.0 * y + c) / (c - 1.0)),
    sf=_triangle(lambda y, c: 1.0 - y * y / c, lambda y, c: (1.0 - y) ** 2 / (1.0 - c)),
    ppf=_triang_ppf,
    isf=lambda q, c: 1.0 - _triang_ppf(q, 1.0 - c),
    valid=lambda c: (c >= 0) & (c <= 1),
    domains=((0.76, 0.9),),
    support=(0.0, 1.0),
    points=(0.2, 0.6),
)


def _log_of_falling(y, c):
    """Return the logarithm of the density at the mode and above, also where both are at the end 1."""
    end = (c == 1) & (y == 1)
    return math.log(2.0) + np.log(np.where(end, 1.0, 1.0 - y)) - np.log(np.where(end, 1.0, 1.0 - c))
