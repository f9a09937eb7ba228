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
from fad.scipy.stats.multivariate import dirichlet, multivariate_normal

__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "entropy", "expon", "f", "gamma", "geom",
    "gmean", "gumbel_l", "gumbel_r", "halfnorm", "hmean", "invgamma", "kurtosis", "laplace", "logistic",
    "lognorm", "moment", "multivariate_normal", "nbinom", "norm", "pareto", "pmean", "poisson", "rayleigh",
    "sem", "skew", "t", "uniform", "variation", "vonmises", "weibull_min", "zmap", "zscore",
]  # fmt: skip
