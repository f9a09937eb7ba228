"""Density estimates: a normal kernel around each point of a data set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from fad import tree
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.linalg import solve_triangular
from fad.scipy.special import logsumexp

_ARRAYS = (
    "dataset", "_weights", "_neff", "factor", "_data_covariance", "_data_cho_cov", "covariance", "cho_cov", "log_det",
)  # fmt: skip


def _columns(x: Any) -> Any:
    x = as_array(x)
    x = x if x.dtype.kind == "f" else x.astype(float)
    return x.reshape((1, -1)) if x.ndim < 2 else x


class gaussian_kde:
    """The density of points, estimated as a mean of normal densities around the points of a data set.

    It is differentiable in the data, the weights, the bandwidth and the points, and is a tree of its arrays.

    Parameters
    ----------
    dataset : array_like, real
        Of shape (n,), or (d, n) for n points of d coordinates.
    bw_method : "scott", "silverman", number or callable, optional
        The factor of the bandwidth, or what finds it of the estimate.
    weights : array_like, real, optional
        Of shape (n,); scaled to the sum 1.

    Raises
    ------
    ValueError
        if there are less than two numbers, more dimensions than points, or weights of another length.
    numpy.linalg.LinAlgError
        if the covariance of the data is singular.

    References
    ----------
    D. W. Scott, Multivariate Density Estimation (1992); B. W. Silverman, Density Estimation (1986).

    Examples
    --------
    >>> from fad.scipy.stats import gaussian_kde
    >>> data = np.array([-1.0, 0.0, 0.5, 2.0])
    >>> fad.grad(lambda h: gaussian_kde(data, h).logpdf(0.3)[0])(0.5).round(4)
    np.float64(-1.0075)
    """

    def __init_subclass__(cls) -> None:
        tree.register_node(cls, _flatten, _unflatten)

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None):
        self.dataset = _columns(dataset)
        if not self.dataset.size > 1:
            raise ValueError("`dataset` input should have multiple elements.")
        self.d, self.n = self.dataset.shape
        if weights is None:
            self._weights = np.full_like(self.dataset, 1.0 / self.n, shape=(self.n,), dtype=float)
        else:
            weights = as_array(weights).astype(float)
            if weights.ndim != 1:
                raise ValueError("`weights` input should be one-dimensional.")
            if weights.shape[0] != self.n:
                raise ValueError("`weights` input should be of length n")
            self._weights = weights / np.sum(weights)
        self._neff = 1 / np.sum(self._weights * self._weights)
        if self.d > self.n:
            raise ValueError(
                "Number of dimensions is greater than number of samples. gaussian_kde takes each column of `dataset` "
                "for a point: transpose it"
            )
        self.set_bandwidth(bw_method)

    @property
    def weights(self) -> Any:
        """The weights of the points, with the sum 1."""
        return self._weights

    @property
    def neff(self) -> Any:
        """The effective number of points."""
        return self._neff

    @property
    def inv_cov(self) -> Any:
        """The inverse of the covariance of the kernel."""
        return np.linalg.inv(self.covariance)

    def scotts_factor(self) -> Any:
        """Return Scott's factor of the bandwidth."""
        return self.neff ** (-1.0 / (self.d + 4))

    def silverman_factor(self) -> Any:
        """Return Silverman's factor of the bandwidth."""
        return (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4))

    def covariance_factor(self) -> Any:
        """Return the factor of the bandwidth that was chosen: Scott's by default."""
        return self.scotts_factor()

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Choose the factor of the bandwidth: "scott", "silverman", a number, or a function of this object."""
        if bw_method == "scott":
            self.covariance_factor = self.scotts_factor  # type: ignore[method-assign]
        elif bw_method == "silverman":
            self.covariance_factor = self.silverman_factor  # type: ignore[method-assign]
        elif callable(bw_method) and type(bw_method) is not Tracer:
            self.covariance_factor = lambda: bw_method(self)  # type: ignore[method-assign]
        elif type(bw_method) is Tracer or (np.isscalar(bw_method) and not isinstance(bw_method, str)):
            self.covariance_factor = lambda: bw_method  # type: ignore[method-assign]
        elif bw_method is not None:
            raise ValueError("`bw_method` should be 'scott', 'silverman', a scalar or a callable.")
        self._compute_covariance()

    def _compute_covariance(self) -> None:
        self.factor = self.covariance_factor()
        if not hasattr(self, "_data_cho_cov"):
            spread: Any = np.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights)
            self._data_covariance = spread.reshape((self.d, self.d))
            self._data_cho_cov = np.linalg.cholesky(self._data_covariance)
        self.covariance = self._data_covariance * self.factor**2
        self.cho_cov = self._data_cho_cov * self.factor
        self.log_det = 2 * np.sum(np.log(np.diagonal(self.cho_cov) * math.sqrt(2 * math.pi)))

    def _distances(self, points: Any) -> Any:
        """Return half the squared distances between data and points, of shape (n, m), in units of the kernel."""
        points = _columns(points)
        d, m = points.shape
        if d != self.d:
            if d != 1 or m != self.d:
                raise ValueError(f"points have dimension {d}, dataset has dimension {self.d}")
            points = points.reshape((self.d, 1))
        data, points = (solve_triangular(self.cho_cov, v, lower=True) for v in (self.dataset, points))
        total: Any = 0.0
        for k in range(self.d):
            total = total + 0.5 * (data[k][:, None] - points[k][None, :]) ** 2
        return total

    def evaluate(self, points: Any) -> Any:
        """Return the density at points of shape (m,) or (d, m), as a vector of length m."""
        return np.sum(self.weights[:, None] * np.exp(-self._distances(points)), axis=0) * np.exp(-0.5 * self.log_det)

    __call__ = evaluate

    def pdf(self, x: Any) -> Any:
        """Return the density: `evaluate` by another name."""
        return self.evaluate(x)

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the density, accurate far from the data."""
        return logsumexp(-self._distances(x), axis=0, b=self.weights[:, None]) - 0.5 * self.log_det

    def _overlap(self, means: Any, cov: Any) -> Any:
        """Return the densities at the data, with a covariance added to the kernel's, around means of shape (d, ...)."""
        root = np.linalg.cholesky(self.covariance + cov)
        z = solve_triangular(root, self.dataset - means, lower=True)
        log_det = np.sum(np.log(np.diagonal(root))) + 0.5 * self.d * math.log(2 * math.pi)
        return np.sum(self.weights * np.exp(-0.5 * np.sum(z * z, axis=0) - log_det))

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """Return the integral of this density times a normal one."""
        mean, cov = np.squeeze(as_array(mean)).reshape(-1), as_array(cov)
        cov = cov.reshape((1, 1)) if cov.ndim == 0 else cov.reshape((1, -1)) if cov.ndim == 1 else cov
        if mean.shape != (self.d,):
            raise ValueError(f"mean does not have dimension {self.d}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"covariance does not have dimension {self.d}")
        return self._overlap(mean[:, None], cov)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Return the probability between two numbers, of data of one dimension."""
        if self.d != 1:
            raise ValueError("integrate_box_1d() only handles 1D pdfs")
        return np.sum(self.weights * (self._below(high) - self._below(low)))

    def _below(self, end: Any) -> Any:
        """Return the probability that each kernel has below a number, which may be infinite."""
        far = np.isinf(end)
        z = (np.where(far, 0.0, end) - self.dataset[0]) / self.cho_cov[0, 0]
        return np.where(far, end > 0, sc.ndtr(z))

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None, *, rng: Any = None) -> Any:
        """Return the probability of a box: of plain values, by SciPy's integration."""
        if any(type(x) is Tracer for x in (self.dataset, self.factor, self.weights, low_bounds, high_bounds)):
            raise NotImplementedError(
                "integrate_box integrates numerically, in dimensions that have no formula; of traced values use "
                "integrate_box_1d, or a sum over a grid of evaluate(points)"
            )
        plain = scipy.stats.gaussian_kde(self.dataset, float(self.factor), self.weights)
        return plain.integrate_box(low_bounds, high_bounds, maxpts, rng=rng)

    def integrate_kde(self, other: Any) -> Any:
        """Return the integral of this density times another estimated one."""
        if other.d != self.d:
            raise ValueError("KDEs are not the same dimensionality")
        weights, total = other.weights, 0.0
        for i in range(other.n):
            total = total + weights[i] * self._overlap(other.dataset[:, i : i + 1], other.covariance)
        return total

    def marginal(self, dimensions: Any) -> gaussian_kde:
        """Return the estimate of some of the coordinates, by their numbers."""
        chosen = np.atleast_1d(dimensions)
        if chosen.dtype.kind not in "iu":
            raise ValueError("Elements of `dimensions` must be integers - the indices of the marginal variables.")
        places = [int(i) % self.d if -self.d <= i < self.d else -1 for i in chosen]
        if -1 in places:
            raise ValueError(f"Dimensions {dimensions} are invalid for a distribution in {self.d} dimensions.")
        if len(set(places)) != len(places):
            raise ValueError("All elements of `dimensions` must be unique.")
        return type(self)(self.dataset[places], self.covariance_factor(), self.weights)

    def resample(self, size: Any = None, seed: Any = None) -> Any:
        """Return random points of the estimate, as SciPy draws them; of plain data alone."""
        if any(type(x) is Tracer for x in (self.dataset, self.factor, self.weights)):
            raise DerivativeError(
                "resample has no derivative in the data, for SciPy's draws do not follow it; draw indices and standard "
                "normal numbers outside the function: dataset[:, indices] + cho_cov @ z"
            )
        return scipy.stats.gaussian_kde(self.dataset, float(self.factor), self.weights).resample(size, seed)


def _flatten(kde: gaussian_kde) -> tuple:
    rest = (kde.d, kde.n)
    return [getattr(kde, name) for name in _ARRAYS], (type(kde), rest)


def _unflatten(kind: Any, leaves: Any) -> gaussian_kde:
    kde = object.__new__(kind[0])
    vars(kde).update(zip(_ARRAYS, leaves, strict=True))
    kde.d, kde.n = kind[1]
    kde.covariance_factor = lambda: kde.factor  # type: ignore[method-assign]
    return kde


tree.register_node(gaussian_kde, _flatten, _unflatten)


def _kde_samples(s):
    return [
        call(s.real(6), s.real(3), s.positive(6)),
        call(s.real(2, 5), s.real(2, 3), s.positive(5)),
        call(s.real(5), s.real(2), s.positive(5), 0.4),
        call(s.real(5), s.real(), s.positive(5), "silverman"),
    ]


def _use(make: Any) -> Any:
    def evaluate(dataset, points, weights=None, bw_method=None):
        kde = make(dataset, bw_method, weights)
        box = kde.integrate_box_1d(-0.3, 1.0) if kde.d == 1 else kde.integrate_gaussian(np.zeros(kde.d), np.eye(kde.d))
        return kde(points), kde.logpdf(points), box

    return evaluate


# SciPy rounds the ends of a box in the precision of the data
_facts: dict = {"samples": _kde_samples, "complex": False, "rounding": "single"}
public(_use(scipy.stats.gaussian_kde), name="scipy.stats.gaussian_kde", **_facts)(_use(gaussian_kde))
