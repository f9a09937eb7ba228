"""``scipy.stats``, differentiable: the common distributions, and what describes samples.

``norm.logpdf(x, loc, scale)`` and related functions have SciPy's names and signatures, and derivatives in the argument,
the shapes, ``loc`` and ``scale``, to any order. Quantiles (``ppf``) are differentiated implicitly.
A count (the argument of a discrete distribution, the n of a binomial) is an integer and has no derivative.
"""

from __future__ import annotations

from fad.scipy.stats.continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    f,
    gamma,
    gumbel_l,
    gumbel_r,
    halfnorm,
    invgamma,
    laplace,
    logistic,
    lognorm,
    norm,
    pareto,
    rayleigh,
    t,
    uniform,
    vonmises,
    weibull_min,
)
from fad.scipy.stats.descriptive import (
    entropy,
    gmean,
    hmean,
    kurtosis,
    moment,
    pmean,
    sem,
    skew,
    variation,
    zmap,
    zscore,
)
from fad.scipy.stats.discrete import bernoulli, binom, geom, nbinom, poisson
from fad.scipy.stats.families import (
    burr,
    burr12,
    chi,
    erlang,
    fisk,
    genextreme,
    gengamma,
    genpareto,
    gompertz,
    halfcauchy,
    invweibull,
    loglaplace,
    loguniform,
    lomax,
    maxwell,
    nakagami,
    powerlaw,
    reciprocal,
    triang,
    weibull_max,
)
from fad.scipy.stats.multivariate import dirichlet, multivariate_normal
from fad.scipy.stats.skewed import exponnorm, invgauss, johnsonsu, skewnorm, truncnorm

__all__ = [
    "bernoulli", "beta", "binom", "burr", "burr12", "cauchy", "chi", "chi2", "dirichlet", "entropy", "erlang",
    "expon", "exponnorm", "f", "fisk", "gamma", "genextreme", "gengamma", "genpareto", "geom", "gmean", "gompertz",
    "gumbel_l", "gumbel_r", "halfcauchy", "halfnorm", "hmean", "invgamma", "invgauss", "invweibull", "johnsonsu",
    "kurtosis", "laplace", "logistic", "loglaplace", "lognorm", "loguniform", "lomax", "maxwell", "moment",
    "multivariate_normal", "nakagami", "nbinom", "norm", "pareto", "pmean", "poisson", "powerlaw", "rayleigh",
    "reciprocal", "sem", "skew", "skewnorm", "t", "triang", "truncnorm", "uniform", "variation", "vonmises",
    "weibull_max", "weibull_min", "zmap", "zscore",
]  # fmt: skip
