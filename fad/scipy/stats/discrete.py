"""Discrete distributions: differentiable in their real parameters, not in their counts."""

from __future__ import annotations

import numpy as np
import scipy.special as sc

from fad.scipy.stats.base import Discrete


def _binom_logpmf(k, n, p):
    ways = sc.gammaln(n + 1.0) - sc.gammaln(k + 1.0) - sc.gammaln(n - k + 1.0)
    return ways + sc.xlogy(k, p) + sc.xlog1py(n - k, -p)


def _binom_tail(function, at_most, k, n, p):
    last = k >= n
    return np.where(last, at_most, function(k + 1.0, np.where(last, 1.0, n - k), p))


_PROBABILITY = (0.2, 0.8)
poisson = Discrete(
    "poisson",
    ("mu",),
    logpmf=lambda k, mu: sc.xlogy(k, mu) - sc.gammaln(k + 1.0) - mu,
    cdf=lambda k, mu: sc.pdtr(k, mu),
    sf=lambda k, mu: sc.pdtrc(k, mu),
    domains=((0.7, 4.0),),
    counts=(0, 1, 3, 6),
)
binom = Discrete(
    "binom",
    ("n", "p"),
    logpmf=_binom_logpmf,
    cdf=lambda k, n, p: _binom_tail(sc.betaincc, 1.0, k, n, p),
    sf=lambda k, n, p: _binom_tail(sc.betainc, 0.0, k, n, p),
    most=lambda n, p: n,
    domains=((7, 7), _PROBABILITY),
    counts=(0, 2, 5, 7),
)
bernoulli = Discrete(
    "bernoulli",
    ("p",),
    logpmf=lambda k, p: sc.xlogy(k, p) + sc.xlog1py(1.0 - k, -p),
    cdf=lambda k, p: 1.0 - p * (1.0 - k),
    sf=lambda k, p: p * (1.0 - k),
    most=lambda p: 1.0,
    domains=(_PROBABILITY,),
    counts=(0, 1, 1, 0),
)
nbinom = Discrete(
    "nbinom",
    ("n", "p"),
    cdf=lambda k, n, p: sc.betainc(n, k + 1.0, p),
    sf=lambda k, n, p: sc.betaincc(n, k + 1.0, p),
    logpmf=lambda k, n, p: sc.gammaln(n + k) - sc.gammaln(k + 1.0) - sc.gammaln(n) + n * np.log(p) + sc.xlog1py(k, -p),
    domains=((1.5, 5.0), _PROBABILITY),
    counts=(0, 1, 3, 6),
)
geom = Discrete(
    "geom",
    ("p",),
    logpmf=lambda k, p: sc.xlog1py(k - 1.0, -p) + np.log(p),
    cdf=lambda k, p: -np.expm1(np.log1p(-p) * k),
    sf=lambda k, p: np.exp(np.log1p(-p) * k),
    least=1,
    domains=(_PROBABILITY,),
    counts=(1, 2, 3, 6),
)
