"""Distributions of several variables: densities, entropy and draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc

from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.special.build import number
from fad.scipy.special.gamma import multigammaln
from fad.scipy.stats.base import Draws, _exp, operands

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _register_methods(distribution: Draws, samples: dict) -> Any:
    """Enter the methods of a distribution into the registry, each with its samples."""
    for method, drawn in samples.items():
        register_method = public(name=f"scipy.stats.{distribution.name}.{method}", samples=drawn, complex=False)
        setattr(distribution, method, register_method(getattr(distribution, method)))
    return distribution


def _as_vectors(x: Any, mean: Any, cov: Any) -> tuple:
    """Return points less their mean and the matrix of the covariance, as SciPy reads them."""
    mean, cov = _as_mean_and_matrix(mean, cov)
    x = x[..., None] if mean.size == 1 and x.ndim < 2 else x
    return x - mean, cov


def _as_mean_and_matrix(mean: Any, cov: Any) -> tuple:
    """Return the mean as a vector and the covariance as a matrix.

    The mean says how long a vector is, or else the covariance: of numbers there are as many points as `x` has.
    """
    n = np.size(as_array(mean)) if mean is not None else cov.shape[-1] if cov.ndim > 1 else 1
    mean = np.zeros(n) if mean is None else as_array(mean)
    mean = mean.reshape(1) if n == 1 else mean
    if mean.ndim != 1:
        raise ValueError(f"the mean has shape {mean.shape}, but is to be a vector")
    cov = cov * np.eye(n) if cov.ndim == 0 else np.diag(cov) if cov.ndim == 1 else cov
    if cov.shape[-2:] != (n, n):
        raise ValueError(f"the covariance is one of {cov.shape[-1]} variables, but the mean has {n} numbers")
    return mean, cov


def _squeeze(y: Any) -> Any:
    """Return what SciPy returns of one point, or of points along an axis of length 1."""
    return np.squeeze(y)[()]


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
        x, cov = operands((x, 1 if cov is None else cov))
        d, cov = _as_vectors(x, mean, cov)
        if allow_singular:
            return _squeeze(self._on_subspace(d, cov))
        root = np.linalg.cholesky(cov)
        z = np.linalg.solve(root, d[..., None])[..., 0]
        half_log_det = np.sum(np.log(np.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
        return _squeeze(-0.5 * np.sum(z * z, axis=-1) - half_log_det - cov.shape[-1] * _HALF_LOG_TAU)

    def keep(self, mean=None, cov=1, allow_singular=False, **_):
        """Return the attributes of the distribution with such parameters, by name."""
        (cov,) = operands((1 if cov is None else cov,))
        mean, cov = _as_mean_and_matrix(mean, cov)
        return {"mean": mean, "cov": cov, "dim": mean.size, "allow_singular": allow_singular}

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

    def keep(self, alpha, **_):
        """Return the attributes of the distribution with such parameters, by name."""
        return {"alpha": operands((alpha,))[0]}

    def pdf(self, x, alpha):
        """Return the density; see `logpdf`."""
        return np.exp(self.logpdf(x, alpha))


class _MultivariateT(Draws):
    """Student's distribution of vectors, along the last axis: ``logpdf``, ``pdf`` and ``rvs``.

    References
    ----------
    scipy.stats.multivariate_t, https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.multivariate_t.html

    Examples
    --------
    >>> fad.grad(lambda m: fad.scipy.stats.multivariate_t.logpdf(np.ones(2), m, np.eye(2), 4.0))(np.zeros(2))
    array([1., 1.])
    """

    name = "multivariate_t"

    def logpdf(self, x, loc=None, shape=1, df=1):
        """Return the log density at `x` of shape (..., n); `shape` is a positive definite matrix, or a number.

        >>> fad.grad(fad.scipy.stats.multivariate_t.logpdf, 3)(np.ones(2), np.zeros(2), np.eye(2), 4.0).round(6)
        np.float64(0.047267)
        """
        x, shape, df = operands((x, 1 if shape is None else shape, df))
        if np.any(number(np.isinf(df))):
            return multivariate_normal.logpdf(x, loc, shape)
        d, shape = _as_vectors(x, loc, shape)
        n = shape.shape[-1]
        root = np.linalg.cholesky(shape)
        z = np.linalg.solve(root, d[..., None])[..., 0]
        half_log_det = np.sum(np.log(np.diagonal(root)))
        t = 0.5 * (df + n)
        constant = sc.gammaln(t) - sc.gammaln(0.5 * df) - 0.5 * n * np.log(df * math.pi) - half_log_det
        return _squeeze(constant - t * np.log1p(np.sum(z * z, axis=-1) / df))

    def keep(self, loc=None, shape=1, df=1, **_):
        """Return the attributes of the distribution with such parameters, by name."""
        (shape,) = operands((1 if shape is None else shape,))
        loc, shape = _as_mean_and_matrix(loc, shape)
        return {"loc": loc, "shape": shape, "df": df, "dim": loc.size}

    def pdf(self, x, loc=None, shape=1, df=1):
        """Return the density; see `logpdf`."""
        return np.exp(self.logpdf(x, loc, shape, df))


class _Wishart(Draws):
    """Wishart's distribution of positive definite matrices: ``logpdf``, ``pdf`` and ``rvs``.

    References
    ----------
    scipy.stats.wishart, https://docs.scipy.org/doc/scipy/reference/generated/scipy.stats.wishart.html

    Examples
    --------
    >>> fad.grad(lambda s: fad.scipy.stats.wishart.logpdf(s * np.eye(2), 4, np.eye(2)))(2.0)
    np.float64(-0.5)
    """

    name = "wishart"

    def logpdf(self, x, df, scale):
        """Return the log density at matrices `x` of shape (n, n), or (n, n, m) for m of them, as in SciPy.

        >>> fad.grad(fad.scipy.stats.wishart.logpdf)(2.0, 3.0, 1.0)
        np.float64(-0.25)
        """
        x, df, scale = operands((x, df, scale))
        scale = np.diag(scale) if scale.ndim == 1 else np.atleast_2d(scale)
        n = scale.shape[-1]
        if x.ndim < 2:
            x = x.reshape(1, 1, *x.shape) if n == 1 else np.diag(x) if x.ndim else x * np.eye(n)
        if np.any(number(df <= n - 1)):
            raise ValueError(f"Degrees of freedom must be greater than the dimension of scale matrix minus 1, {n - 1}.")
        matrices = np.moveaxis(x, (0, 1), (-2, -1))
        scale_log_det = np.linalg.slogdet(scale)[1]
        inner = np.trace(np.linalg.solve(scale, matrices), axis1=-2, axis2=-1)
        of_x = 0.5 * (df - n - 1.0) * np.linalg.slogdet(matrices)[1] - 0.5 * inner
        return of_x - 0.5 * df * (n * math.log(2.0) + scale_log_det) - multigammaln(0.5 * df, n)

    def keep(self, df, scale, **_):
        """Return the attributes of the distribution with such parameters, by name."""
        (scale,) = operands((scale,))
        scale = np.diag(scale) if scale.ndim == 1 else np.atleast_2d(scale)
        return {"df": df, "scale": scale, "dim": scale.shape[-1]}

    def pdf(self, x, df, scale):
        """Return the density; see `logpdf`."""
        return np.exp(self.logpdf(x, df, scale))


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


def _t_samples(s):
    return [call(s.real(2, 3), s.real(3), s.positive(), s.positive()), call(s.real(2), None, 1, 3.0)]


def _wishart_samples(s):
    factor = np.array([[2.0, 0.5], [0.5, 1.0]]).astype(s.dtype)
    one = call(s.positive(), s.positive() + 1.0, s.positive())
    return [call(s.positive() * factor, s.positive() + 3.0, factor), one]


multivariate_t = _register_methods(_MultivariateT(), {"logpdf": _t_samples, "pdf": _t_samples})
wishart = _register_methods(_Wishart(), {"logpdf": _wishart_samples, "pdf": _wishart_samples})
