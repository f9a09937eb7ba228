"""``scipy.stats``, differentiable: the common distributions, and what describes samples.

``norm.logpdf(x, loc, scale)`` and related functions have SciPy's names and signatures, and derivatives in the argument,
the shapes, ``loc`` and ``scale``, to any order. Quantiles (``ppf``) are differentiated implicitly.
A count (the argument of a discrete distribution, the n of a binomial) is an integer and has no derivative.
"""

from __future__ import annotations

from fad.scipy.stats.comparisons import ttest_1samp, ttest_ind, ttest_rel
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
from fad.scipy.stats.density import gaussian_kde
from fad.scipy.stats.descriptive import (
    describe,
    entropy,
    gmean,
    gstd,
    gzscore,
    hmean,
    iqr,
    kurtosis,
    median_abs_deviation,
    moment,
    pmean,
    scoreatpercentile,
    sem,
    skew,
    trim_mean,
    variation,
    zmap,
    zscore,
)
from fad.scipy.stats.discrete import bernoulli, binom, geom, nbinom, poisson
from fad.scipy.stats.distances import boxcox_llf, chisquare, energy_distance, f_oneway, wasserstein_distance
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
from fad.scipy.stats.multivariate import dirichlet, multivariate_normal, multivariate_t, wishart
from fad.scipy.stats.ranked import kendalltau, ks_2samp
from fad.scipy.stats.relations import linregress, pearsonr, rankdata, spearmanr
from fad.scipy.stats.skewed import exponnorm, invgauss, johnsonsu, skewnorm, truncnorm

__all__ = [
    "bernoulli", "beta", "binom", "boxcox_llf", "burr", "burr12", "cauchy", "chi", "chi2", "chisquare", "describe",
    "dirichlet", "energy_distance", "entropy", "erlang", "expon", "exponnorm", "f", "f_oneway", "fisk", "gamma",
    "gaussian_kde", "genextreme", "gengamma", "genpareto", "geom", "gmean", "gompertz", "gstd", "gumbel_l",
    "gumbel_r", "gzscore", "halfcauchy", "halfnorm", "hmean", "invgamma", "invgauss", "invweibull", "iqr",
    "johnsonsu", "kendalltau", "ks_2samp", "kurtosis", "laplace", "linregress", "logistic", "loglaplace", "lognorm",
    "loguniform", "lomax", "maxwell", "median_abs_deviation", "moment", "multivariate_normal", "multivariate_t",
    "nakagami", "nbinom", "norm", "pareto", "pearsonr", "pmean", "poisson", "powerlaw", "rankdata", "rayleigh",
    "reciprocal", "scoreatpercentile", "sem", "skew", "skewnorm", "spearmanr", "t", "triang", "trim_mean", "truncnorm",
    "ttest_1samp", "ttest_ind", "ttest_rel", "uniform", "variation", "vonmises", "wasserstein_distance", "weibull_max",
    "weibull_min", "wishart", "zmap", "zscore",
]  # fmt: skip
