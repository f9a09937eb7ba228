"""Distributions of several variables: densities only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from fad.scipy.stats.base import operands

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _array(x: Any) -> Any:
    return x if hasattr(x, "dtype") and x.dtype.kind in "fc" else np.asarray(x, dtype=float)[()]


class _MultivariateNormal:
    """The normal distribution of vectors, along the last axis: ``logpdf`` and ``pdf``."""

    def logpdf(self, x, mean=None, cov=1):
        """Return the log density at `x` of shape (..., n); `cov` is a matrix, a diagonal, or a number.

        Raises LinAlgError if the covariance is not positive definite.

        >>> import numpy as np, fad
        >>> from fad.scipy.stats import multivariate_normal
        >>> fad.grad(lambda m: multivariate_normal.logpdf(np.array([1.0, 2.0]), m, np.eye(2)))(np.zeros(2))
        array([1., 2.])
        """
        x = _array(x)
        x = x.reshape((*x.shape, 1)) if x.ndim == 0 else x
        cov = _array(cov)
        n = x.shape[-1]
        if cov.ndim < 2:
            cov = cov * np.eye(n)
        d = x if mean is None else x - mean
        root = np.linalg.cholesky(cov)
        z = np.linalg.solve(root, d[..., None])[..., 0]
        half_log_det = np.sum(np.log(np.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
        return -0.5 * np.sum(z * z, axis=-1) - half_log_det - n * _HALF_LOG_TAU

    def pdf(self, x, mean=None, cov=1):
        """Return the density; see `logpdf`."""
        return np.exp(self.logpdf(x, mean, cov))


class _Dirichlet:
    """The Dirichlet distribution on the simplex: ``logpdf`` and ``pdf``."""

    def logpdf(self, x, alpha):
        """Return the log density at `x` of shape (n, ...), components in front, as in SciPy; `alpha` has shape (n,).

        `x` may leave out the last component, which is then one minus the sum of the others.

        >>> import numpy as np, fad
        >>> from fad.scipy.stats import dirichlet
        >>> fad.grad(lambda a: dirichlet.logpdf(np.array([0.2, 0.8]), a))(np.array([1.0, 1.0])).round(6)
        array([-0.609438,  0.776856])
        """
        x, alpha = operands((x, alpha))
        if x.shape[0] == alpha.shape[0] - 1:
            x = np.concatenate([x, 1.0 - np.sum(x, axis=0, keepdims=True)])
        if x.shape[0] != alpha.shape[0]:
            raise ValueError(f"x has {x.shape[0]} components in front, but alpha has {alpha.shape[0]}")
        weights = (alpha - 1.0).reshape(alpha.shape + (1,) * (x.ndim - 1))
        return np.sum(sc.xlogy(weights, x), axis=0) + sc.gammaln(np.sum(alpha)) - np.sum(sc.gammaln(alpha))

    def pdf(self, x, alpha):
        """Return the density; see `logpdf`."""
        return np.exp(self.logpdf(x, alpha))


multivariate_normal = _MultivariateNormal()
dirichlet = _Dirichlet()
