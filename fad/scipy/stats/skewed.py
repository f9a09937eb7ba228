"""Continuous distributions made of the normal one: skewed, truncated, inverse Gaussian; the forms are SciPy's.

Where a quantile has no formula it is SciPy's, with the derivative of the equation that it solves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from fad.core.primitives.archetypes import elementwise
from fad.ops.ufuncs.elementwise import is_at_an_edge
from fad.scipy.registration import on_host
from fad.scipy.special.build import chain, inverse
from fad.scipy.stats.base import Continuous
from fad.scipy.stats.continuous import HALF_LOG_TAU

_SHAPE = (0.7, 3.0)


def _by_scipy(name: str, method: str, partials: tuple, domain: tuple = (-2.0, 2.0)) -> Any:
    """Return a method of a standard distribution that SciPy computes, from its partial derivatives."""
    run = getattr(getattr(scipy.stats, name), method)

    def forward(x, shape):
        on_host(f"scipy.stats.{name}.{method}", x, shape)
        return run(x, shape).astype(np.result_type(x, shape))[()]

    doc = f"What scipy.stats.{name}.{method} computes."
    return elementwise(
        f"scipy.{name}_{method}", *partials, forward=forward, domain=domain, doc=doc, steep=is_at_an_edge
    )


def _normal_logpdf(y):
    return -0.5 * y * y - HALF_LOG_TAU


johnsonsu = Continuous(
    "johnsonsu",
    ("a", "b"),
    logpdf=lambda y, a, b: np.log(b) + _normal_logpdf(a + b * np.arcsinh(y)) - 0.5 * np.log1p(y * y),
    cdf=lambda y, a, b: sc.ndtr(a + b * np.arcsinh(y)),
    sf=lambda y, a, b: sc.ndtr(-a - b * np.arcsinh(y)),
    logcdf=lambda y, a, b: sc.log_ndtr(a + b * np.arcsinh(y)),
    logsf=lambda y, a, b: sc.log_ndtr(-a - b * np.arcsinh(y)),
    ppf=lambda q, a, b: np.sinh((sc.ndtri(q) - a) / b),
    isf=lambda q, a, b: np.sinh((-sc.ndtri(q) - a) / b),
    valid=lambda a, b: (b > 0) & np.isfinite(a),
    domains=((-1.0, 1.0), _SHAPE),
)


def _invgauss_logs(y, mu):
    """Return the logarithms of the two terms of the distribution function, and of what replaces the first above."""
    root = np.sqrt(y)
    inner, outer = (y / mu - 1.0) / root, (y / mu + 1.0) / root
    return sc.log_ndtr(inner), 2.0 / mu + sc.log_ndtr(-outer), sc.log_ndtr(-inner)


def _invgauss_logcdf(y, mu):
    first, second, _ = _invgauss_logs(y, mu)
    return first + np.log1p(np.exp(second - first))


def _invgauss_logsf(y, mu):
    _, second, first = _invgauss_logs(y, mu)
    return first + np.log1p(-np.exp(second - first))


_invgauss_cdf = lambda y, mu: np.exp(_invgauss_logcdf(y, mu))
_invgauss_sf = lambda y, mu: np.exp(_invgauss_logsf(y, mu))
_invgauss_ppf = _by_scipy("invgauss", "ppf", inverse(chain(_invgauss_cdf), 0, 0), ((0.1, 0.9), (0.5, 2.0)))
_invgauss_isf = _by_scipy("invgauss", "isf", inverse(chain(_invgauss_sf), 0, 0), ((0.1, 0.9), (0.5, 2.0)))
invgauss = Continuous(
    "invgauss",
    ("mu",),
    logpdf=lambda y, mu: -HALF_LOG_TAU - (1.5 * sc.xlogy(y, y) + 0.5 * ((y - mu) / mu) ** 2) / y,  # -inf at 0
    cdf=_invgauss_cdf,
    sf=_invgauss_sf,
    logcdf=_invgauss_logcdf,
    logsf=_invgauss_logsf,
    ppf=_invgauss_ppf,
    isf=_invgauss_isf,
    domains=((0.5, 2.0),),
    support=(0.0, math.inf),
    points=(0.6, 3.0),
)


# The slopes follow from the density and from Owen's T function: A. Azzalini, A class of distributions which includes
# the normal ones, Scandinavian Journal of Statistics 12 (1985).
_skewnorm_slopes = (
    lambda _z, y, a: 2.0 * np.exp(_normal_logpdf(y)) * sc.ndtr(a * y),
    lambda _z, y, a: -np.exp(-0.5 * y * y * (1.0 + a * a)) / (math.pi * (1.0 + a * a)),
)
_skewnorm_cdf = _by_scipy("skewnorm", "cdf", _skewnorm_slopes)
_skewnorm_ppf = _by_scipy("skewnorm", "ppf", inverse(_skewnorm_slopes, 0, 0), ((0.1, 0.9), (-2.0, 2.0)))
skewnorm = Continuous(
    "skewnorm",
    ("a",),
    logpdf=lambda y, a: math.log(2.0) + _normal_logpdf(y) + sc.log_ndtr(a * y),
    cdf=_skewnorm_cdf,
    sf=lambda y, a: _skewnorm_cdf(-y, -a),
    ppf=_skewnorm_ppf,
    isf=lambda q, a: -_skewnorm_ppf(q, -a),
    valid=lambda a: np.isfinite(a),
    domains=((-2.0, 2.0),),
)


def _exponnorm_tail(y, k):
    return np.exp((0.5 / k - y) / k + sc.log_ndtr(y - 1.0 / k))


_exponnorm_cdf = lambda y, k: sc.ndtr(y) - _exponnorm_tail(y, k)
_exponnorm_sf = lambda y, k: sc.ndtr(-y) + _exponnorm_tail(y, k)
_exponnorm_ppf = _by_scipy("exponnorm", "ppf", inverse(chain(_exponnorm_cdf), 0, 0), ((0.1, 0.9), (0.5, 2.0)))
_exponnorm_isf = _by_scipy("exponnorm", "isf", inverse(chain(_exponnorm_sf), 0, 0), ((0.1, 0.9), (0.5, 2.0)))
exponnorm = Continuous(
    "exponnorm",
    ("K",),
    logpdf=lambda y, k: (0.5 / k - y) / k + sc.log_ndtr(y - 1.0 / k) - np.log(k),
    cdf=_exponnorm_cdf,
    sf=_exponnorm_sf,
    ppf=_exponnorm_ppf,
    isf=_exponnorm_isf,
    domains=((0.5, 2.0),),
)


def _log_mass(a, b):
    """Return the logarithm of the probability between a and b of a normal number, accurate in both tails."""
    right = a > 0
    low, high = np.where(right, -b, a), np.where(right, -a, b)
    central = high > 0
    middle = np.log1p(-sc.ndtr(np.where(central, low, -1.0)) - sc.ndtr(np.where(central, -high, -1.0)))
    high = sc.log_ndtr(np.where(central, -1.0, high))
    return np.where(central, middle, high + np.log(-np.expm1(sc.log_ndtr(np.where(central, -2.0, low)) - high)))


def _truncnorm_log(part, rest, a, b):
    """Return the logarithm of a part of the mass between a and b; by the rest where it is near 0."""
    mass = _log_mass(a, b)
    found, other = part - mass, rest - mass
    near = found > -0.1
    return np.where(near, np.log1p(-np.exp(np.where(near, other, -1.0))), found)


def _truncnorm_ppf(q, a, b):
    return _truncnorm_quantile(np.log(q), np.log1p(-q), a, b)


def _truncnorm_quantile(log_below, log_above, a, b):
    left, mass = a < 0, _log_mass(a, b)
    end, share = sc.log_ndtr(np.where(left, a, -b)), np.where(left, log_below, log_above) + mass
    y = sc.ndtri_exp(np.logaddexp(end, share))
    return np.where(left, y, -y)


truncnorm = Continuous(
    "truncnorm",
    ("a", "b"),
    logpdf=lambda y, a, b: _normal_logpdf(y) - _log_mass(a, b),
    cdf=lambda y, a, b: np.exp(_log_mass(a, y) - _log_mass(a, b)),
    sf=lambda y, a, b: np.exp(_log_mass(y, b) - _log_mass(a, b)),
    logcdf=lambda y, a, b: _truncnorm_log(_log_mass(a, y), _log_mass(y, b), a, b),
    logsf=lambda y, a, b: _truncnorm_log(_log_mass(y, b), _log_mass(a, y), a, b),
    ppf=_truncnorm_ppf,
    isf=lambda q, a, b: _truncnorm_quantile(np.log1p(-q), np.log(q), a, b),
    support=lambda a, b: (a, b),
    valid=lambda a, b: a < b,
    domains=((-2.2, -1.2), (1.2, 2.2)),
    points=(-0.8, 0.8),
)
