"""Random numbers as pure functions of a key: the same key gives the same numbers, on every backend.

The bits come from Philox 4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
written with integer NumPy. A key is an array of two uint32; `split` and `fold_in` make new ones. Every call with one
key gives the same numbers, so each use needs its own key.
"""

from __future__ import annotations

from fad.random.distributions import (
    bernoulli,
    bits,
    categorical,
    cauchy,
    choice,
    exponential,
    gumbel,
    laplace,
    logistic,
    multivariate_normal,
    normal,
    permutation,
    rademacher,
    randint,
    truncated_normal,
    uniform,
)
from fad.random.gamma_family import beta, dirichlet, gamma, poisson, t
from fad.random.keys import as_key as as_key
from fad.random.keys import fold_in, key, philox, split
from fad.random.parameters import document_draws

__all__ = [
    "bernoulli", "beta", "bits", "categorical", "cauchy", "choice", "dirichlet", "exponential", "fold_in", "gamma",
    "gumbel", "key", "laplace", "logistic", "multivariate_normal", "normal", "permutation", "philox", "poisson",
    "rademacher", "randint", "split", "t", "truncated_normal", "uniform",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


document_draws({name: globals()[name] for name in __all__})
