"""``scipy.stats``, differentiable: densities, distribution functions and quantiles of the common distributions.

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
from fad.scipy.stats.discrete import bernoulli, binom, geom, nbinom, poisson
from fad.scipy.stats.multivariate import dirichlet, multivariate_normal

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "gamma",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "halfnorm",
    "invgamma",
    "laplace",
    "logistic",
    "lognorm",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rayleigh",
    "t",
    "uniform",
    "vonmises",
    "weibull_min",
]
