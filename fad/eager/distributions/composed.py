"""Distributions of vectors, and those made of others: independent axes, mixtures, and the normal one of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.eager.core.mode import no_grad
from fad.eager.distributions import constraints
from fad.eager.distributions.base import LOG_ROOT, Distribution, is_true, sum_last
from fad.eager.distributions.discrete import Categorical
from fad.eager.ops import functions as f
from fad.eager.ops.creation import randn
from fad.eager.ops.linalg import linalg
from fad.eager.ops.shaping import diagonal
from fad.eager.tensor import Size, Tensor


class MultivariateNormal(Distribution):
    """The normal distribution of vectors, of a mean and a covariance or precision matrix, or its lower Cholesky factor.

    >>> import fad.eager as torch
    >>> MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise ValueError("give either covariance_matrix or precision_matrix or scale_tril")
        if given[0].ndim < 2 or loc.ndim < 1:
            raise ValueError("MultivariateNormal needs a vector as loc, and a matrix")
        if scale_tril is None and validate_args is not False and self._validate_args:
            _check_symmetric(given[0])
        root = given[0]
        if scale_tril is None:
            root = linalg.cholesky(root if precision_matrix is None else linalg.inv(root))
        n = loc.shape[-1]
        batch = np.broadcast_shapes(loc.shape[:-1], root.shape[:-2])
        self.loc, self.scale_tril = loc.expand(*batch, n), root.expand(*batch, n, n)
        super().__init__(batch, (n,), validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: (self.scale_tril**2).sum(-1))
    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: linalg.inv(self.covariance_matrix))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the mean and the factor."""
        noise = randn(*self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def half_log_det(self) -> Tensor:
        """Return half of the logarithm of the covariance's determinant."""
        return f.log(diagonal(self.scale_tril, 0, -2, -1)).sum(-1)

    def squared_distance(self, shift: Tensor) -> Tensor:
        """Return the square of the length of vectors, measured by the covariance (Mahalanobis)."""
        z = linalg.solve_triangular(self.scale_tril, shift.unsqueeze(-1), upper=False).squeeze(-1)
        return (z * z).sum(-1)

    def _log_density(self, value: Tensor) -> Tensor:
        return -0.5 * self.squared_distance(value - self.loc) - self.half_log_det() - self.loc.shape[-1] * LOG_ROOT

    def entropy(self) -> Tensor:
        return self.loc.shape[-1] * (0.5 + LOG_ROOT) + self.half_log_det()


def _check_symmetric(matrix: Tensor) -> None:
    if not is_true(constraints.is_symmetric(matrix.value)):
        raise ValueError("MultivariateNormal needs a symmetric covariance or precision matrix")


class Independent(Distribution):
    """A distribution whose last axes are one event: their logarithms are added.

    >>> import fad.eager as torch
    >>> d = torch.distributions
    >>> Independent(d.Normal(torch.zeros(2, 3), 1.0), 1).event_shape
    torch.Size([3])
    """

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None):
        n = reinterpreted_batch_ndims
        batch = base_distribution.batch_shape
        if n > len(batch):
            raise ValueError(f"Independent needs a distribution of {n} axes or more, not of the shape {batch}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        cut = len(batch) - n
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)
    support = property(lambda self: constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims))

    def expand(self, batch_shape: Any) -> Any:
        """Return the same distribution expanded to a batch shape."""
        new = super().expand(batch_shape)
        new.base_dist = self.base_dist.expand((*batch_shape, *self.event_shape[: self.reinterpreted_batch_ndims]))
        return new

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow."""
        return self.base_dist.rsample(sample_shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        return self.base_dist.sample(sample_shape)

    def _as_value(self, x: Any) -> Tensor:
        return self.base_dist._as_value(x)

    def log_prob(self, value: Any) -> Tensor:
        """Return the logarithm of the density of whole events."""
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one kind, which lie along the last axis of a batch.

    >>> import fad.eager as torch
    >>> d = torch.distributions
    >>> parts = d.Normal(torch.tensor([-1.0, 1.0]), 1.0)
    >>> MixtureSameFamily(d.Categorical(torch.ones(2)), parts).mean
    tensor(0.)
    """

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Any, validate_args: bool | None = None
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("MixtureSameFamily needs a Categorical as mixture_distribution")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("MixtureSameFamily needs a distribution as component_distribution")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        *batch, n = component_distribution.batch_shape
        if n != mixture_distribution.probs.shape[-1]:
            raise ValueError(
                f"MixtureSameFamily needs as many components as there are weights, not {n} and "
                f"{mixture_distribution.probs.shape[-1]}"
            )
        batch = np.broadcast_shapes(tuple(batch), mixture_distribution.batch_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args)

    support = property(lambda self: self.component_distribution.support)

    def expand(self, batch_shape: Any) -> Any:
        """Return the same distribution expanded to a batch shape."""
        new = super().expand(batch_shape)
        n = self.component_distribution.batch_shape[-1]
        new.component_distribution = self.component_distribution.expand((*batch_shape, n))
        new.mixture_distribution = self.mixture_distribution.expand(batch_shape)
        return new

    def _average(self, each: Tensor) -> Tensor:
        """Return the weighted sum over the components, which lie before the event's axes."""
        probs, n = self.mixture_distribution.probs, len(self.event_shape)
        return (probs.reshape(*probs.shape, *(1,) * n) * each).sum(-1 - n)

    @property
    def mean(self) -> Tensor:
        return self._average(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        parts, axis = self.component_distribution, -1 - len(self.event_shape)
        return self._average(parts.variance + (parts.mean - self.mean.unsqueeze(axis)) ** 2)

    def _as_value(self, x: Any) -> Tensor:
        return self.component_distribution._as_value(x)

    def _beside_components(self, value: Any) -> Tensor:
        return self._as_value(value).unsqueeze(-1 - len(self.event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Leave it to the components, along whose axis the value is not yet."""

    def _log_density(self, value: Tensor) -> Tensor:
        each = self.component_distribution.log_prob(self._beside_components(value))
        return f.logsumexp(each + f.log_softmax(self.mixture_distribution.logits, -1), -1)

    def cdf(self, value: Any) -> Tensor:
        each = self.component_distribution.cdf(self._beside_components(value))
        return (each * self.mixture_distribution.probs).sum(-1)

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        shape, n = Size((*sample_shape, *self._batch_shape)), len(self.event_shape)
        chosen = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
        parts = self.component_distribution.expand((*self._batch_shape, self.component_distribution.batch_shape[-1]))
        index = chosen.reshape(*shape, 1, *(1,) * n).expand(*shape, 1, *self.event_shape)
        return f.gather(parts.sample(sample_shape), len(shape), index).squeeze(len(shape))
