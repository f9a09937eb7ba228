"""Distributions of several variables: densities, entropy and draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from fad.core.primitive import public
from fad.core.samples import call
from fad.core.values import stop_gradient
from fad.ops.structural import as_array
from fad.scipy.special.build import number
from fad.scipy.stats.base import Draws, _exp, operands

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _register_methods(distribution: Draws, samples: dict) -> Any:
    """Enter the methods of a distribution into the registry, each with its samples."""
    for method, drawn in samples.items():
        register_method = public(name=f"scipy.stats.{distribution.name}.{method}", samples=drawn, complex=False)
        setattr(distribution, method, register_method(getattr(distribution, method)))
    return distribution


class _MultivariateNormal(Draws):
    """The normal distribution of vectors, along the last axis: ``logpdf``, ``pdf``, ``entropy`` and ``rvs``.

    References
    ----------
    scipy.stats.multivariate_normal, https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.multivariate_normal.html

    Examples
    --------
    >>> fad.grad(lambda m: fad.scipy.stats.multivariate_normal.logpdf(np.ones(2), m))(np.zeros(2))
    array([1., 1.])
    """

    name = "multivariate_normal"

    def logpdf(self, x, mean=None, cov=1, allow_singular=False):
        """Return the log density at `x` of shape (..., n); `cov` is a matrix, a diagonal, or a number.

        With `allow_singular` the covariance may have eigenvalues 0: then it is the density on the subspace of the
        others, -inf away from it, with the derivative among covariances of the same rank.
        Raises LinAlgError if the covariance is not positive definite (or semidefinite).

        >>> import numpy as np, fad
        >>> from fad.scipy.stats import multivariate_normal
        >>> fad.grad(lambda m: multivariate_normal.logpdf(np.array([1.0, 2.0]), m, np.eye(2)))(np.zeros(2))
        array([1., 2.])
        """
        x, cov = operands((x, cov))
        x = x.reshape((*x.shape, 1)) if x.ndim == 0 else x
        n = x.shape[-1]
        if cov.ndim < 2:
            cov = cov * np.eye(n)
        d = x if mean is None else x - as_array(mean)
        if allow_singular:
            return self._on_subspace(d, cov)
        root = np.linalg.cholesky(cov)
        z = np.linalg.solve(root, d[..., None])[..., 0]
        half_log_det = np.sum(np.log(np.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
        return -0.5 * np.sum(z * z, axis=-1) - half_log_det - n * _HALF_LOG_TAU

    def _on_subspace(self, d, cov):
        w, v = np.linalg.eigh(cov)
        size = stop_gradient(w)
        least = float(1e6 * np.finfo(w.dtype).eps) * np.max(np.abs(size))  # SciPy's
        if np.any(number(size < -least)):
            raise np.linalg.LinAlgError("the covariance has a negative eigenvalue: it must be positive semidefinite")
        kept = size > least
        z = d @ v
        squares = np.sum(np.where(kept, z * z / np.where(kept, w, 1.0), 0.0), axis=-1)
        half_log_det = 0.5 * np.sum(np.log(np.where(kept, w, 1.0)))
        away = np.where(kept, 0.0, stop_gradient(z))
        inside = np.sqrt(np.sum(away * away, axis=-1)) < 1e3 * least
        return np.where(inside, -0.5 * squares - half_log_det - np.sum(kept) * _HALF_LOG_TAU, -np.inf)

    def pdf(self, x, mean=None, cov=1, allow_singular=False):
        """Return the density; see `logpdf`."""
        return _exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean=None, cov=1):
        """Return the differential entropy, in nats; `cov` is a matrix, a diagonal, or a number.

        >>> import numpy as np, fad
        >>> from fad.scipy.stats import multivariate_normal
        >>> fad.grad(lambda v: multivariate_normal.entropy(np.zeros(2), v))(np.array([1.0, 4.0]))
        array([0.5  , 0.125])
        """
        (cov,) = operands((cov,))
        if cov.ndim < 2:
            cov = cov * np.eye(1 if mean is None else np.size(mean))
        root = np.linalg.cholesky(cov)
        return np.sum(np.log(np.diagonal(root))) + root.shape[-1] * (_HALF_LOG_TAU + 0.5)


class _Dirichlet(Draws):
    """The Dirichlet distribution on the simplex: ``logpdf``, ``pdf`` and ``rvs``.

    References
    ----------
    scipy.stats.dirichlet, https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.dirichlet.html

    Examples
    --------
    >>> fad.scipy.stats.dirichlet.pdf(np.array([0.5, 0.5]), np.ones(2)).round(6)
    np.float64(1.0)
    """

    name = "dirichlet"

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


def _normal_samples(s):
    return [
        call(s.real(2, 3), s.real(3), s.positive(3)),
        call(s.real(3), s.real(3), s.positive()),
        call(s.real(2, 2), None, np.array([[2.0, 0.5], [0.5, 1.0]]).astype(s.dtype).tolist()),
    ]


def _dirichlet_samples(s):
    return [call(s.real(3, low=0.2, high=0.4), s.positive(3)), call(s.real(2, 4, low=0.1, high=0.4), s.positive(3))]


multivariate_normal = _register_methods(
    _MultivariateNormal(),
    {
        "logpdf": _normal_samples,
        "pdf": _normal_samples,
        "entropy": lambda s: [call(s.real(3), s.positive(3)), call(None, s.positive())],
    },
)
dirichlet = _register_methods(_Dirichlet(), {"logpdf": _dirichlet_samples, "pdf": _dirichlet_samples})
