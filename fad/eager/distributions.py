"""``torch.distributions``: those that policies and probabilistic models draw from.

Draws come from `fad.eager`'s random numbers (``torch.manual_seed``). ``rsample()`` keeps its history, ``sample()`` not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.eager.core.mode import no_grad
from fad.eager.nn import functional as F
from fad.eager.ops import functions as f
from fad.eager.ops.creation import as_tensor, bernoulli, multinomial, randn
from fad.eager.ops.elementwise import digamma, lgamma
from fad.eager.ops.linalg import linalg
from fad.eager.ops.shaping import broadcast_tensors, diagonal
from fad.eager.rng import generator
from fad.eager.tensor import Tensor
from fad.eager.unsupported import explain_missing

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


class Distribution:
    """What distributions share: `log_prob`, draws by `sample`, and moments."""

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the parameters, where the distribution can."""
        raise NotImplementedError(f"{type(self).__name__} has no draws with gradients here: use sample()")

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        return self.rsample(sample_shape)


class Normal(Distribution):
    """The normal distribution of a mean and a standard deviation.

    >>> import fad.eager as torch
    >>> Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    def __init__(self, loc: Any, scale: Any):
        self.loc, self.scale = broadcast_tensors(_number(loc), _number(scale))
        if not bool(np.all(np.asarray(self.scale.detach()) > 0)):
            raise ValueError("the standard deviation of a normal distribution is positive")

    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale * self.scale)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the mean and the deviation."""
        return self.loc + self.scale * randn(*sample_shape, *self.loc.shape, dtype=self.loc.dtype)

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        z = (value - self.loc) / self.scale
        return -0.5 * z * z - f.log(self.scale) - _LOG_ROOT

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT + f.log(self.scale)


class Categorical(Distribution):
    """Class numbers, with probabilities in the last axis, or their logarithms.

    >>> import fad.eager as torch
    >>> Categorical(torch.tensor([1.0, 3.0])).log_prob(torch.tensor(1)).exp()
    tensor(0.7500)
    """

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None):
        if (probs is None) == (logits is None):
            raise ValueError("give either probs or logits")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
            self.logits = f.log(f.clamp(self.probs, *_inside(self.probs)))
        elif logits is not None:
            self.logits = logits - f.logsumexp(logits, -1, keepdim=True)
            self.probs = f.softmax(self.logits, -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw class numbers."""
        n = math.prod(sample_shape)
        drawn = multinomial(self.probs, n, replacement=True)
        return drawn.movedim(-1, 0).reshape((*sample_shape, *self.probs.shape[:-1]))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of class numbers."""
        shape = np.broadcast_shapes(tuple(value.shape), tuple(self.logits.shape[:-1]))
        wide = self.logits.expand(*shape, self.logits.shape[-1])
        return f.gather(wide, -1, value.long().expand(*shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.probs * self.logits).sum(-1)


class Bernoulli(Distribution):
    """One with a probability, else zero; or by the logarithm of the odds."""

    def __init__(self, probs: Any = None, logits: Any = None):
        if (probs is None) == (logits is None):
            raise ValueError("give either probs or logits")
        if probs is not None:
            self.probs = _number(probs)
            inside = f.clamp(self.probs, *_inside(self.probs))
            self.logits = f.log(inside) - f.log1p(-inside)
        else:
            self.logits = _number(logits)
            self.probs = f.sigmoid(self.logits)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw ones and zeros."""
        return bernoulli(self.probs.detach().expand(*sample_shape, *self.probs.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of ones and zeros."""
        logits, value = broadcast_tensors(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")


def _draw(draw: Any, sample_shape: Any, like: Tensor) -> Tensor:
    return Tensor(np.asarray(draw((*sample_shape, *like.shape)), like.dtype))


class Uniform(Distribution):
    """Numbers between two ends, all alike.

    >>> import fad.eager as torch
    >>> Uniform(0.0, 2.0).log_prob(torch.tensor(1.0)).exp()
    tensor(0.5000)
    """

    def __init__(self, low: Any, high: Any):
        self.low, self.high = broadcast_tensors(_number(low), _number(high))

    mean = property(lambda self: 0.5 * (self.low + self.high))
    variance = property(lambda self: (self.high - self.low) ** 2 / 12.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the ends."""
        return self.low + (self.high - self.low) * _draw(generator().random, sample_shape, self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, -inf outside."""
        inside = (value >= self.low) & (value < self.high)
        return f.where(inside, -f.log(self.high - self.low), -math.inf)

    def entropy(self) -> Tensor:
        return f.log(self.high - self.low)


class Exponential(Distribution):
    """Waiting times with a rate."""

    def __init__(self, rate: Any):
        self.rate = _number(rate)

    mean = property(lambda self: 1.0 / self.rate)
    variance = property(lambda self: self.rate**-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the rate."""
        return _draw(lambda shape: generator().exponential(size=shape), sample_shape, self.rate) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        return f.log(self.rate) - self.rate * value

    def entropy(self) -> Tensor:
        return 1.0 - f.log(self.rate)


class Laplace(Distribution):
    """The distribution whose density falls exponentially on both sides of a place."""

    def __init__(self, loc: Any, scale: Any):
        self.loc, self.scale = broadcast_tensors(_number(loc), _number(scale))

    mean = property(lambda self: self.loc)
    variance = property(lambda self: 2.0 * self.scale**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        return self.loc + self.scale * _draw(lambda shape: generator().laplace(size=shape), sample_shape, self.loc)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        return -f.log(2.0 * self.scale) - f.abs(value - self.loc) / self.scale

    def entropy(self) -> Tensor:
        return 1.0 + f.log(2.0 * self.scale)


class Gamma(Distribution):
    """The gamma distribution of a concentration and a rate."""

    def __init__(self, concentration: Any, rate: Any):
        self.concentration, self.rate = broadcast_tensors(_number(concentration), _number(rate))

    mean = property(lambda self: self.concentration / self.rate)
    variance = property(lambda self: self.concentration / self.rate**2)

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        draw = lambda shape: generator().standard_gamma(np.asarray(self.concentration.detach()), shape)
        return _draw(draw, sample_shape, self.rate) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        a, b = self.concentration, self.rate
        return a * f.log(b) + (a - 1.0) * f.log(value) - b * value - lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - f.log(self.rate) + lgamma(a) + (1.0 - a) * digamma(a)


class Beta(Distribution):
    """The beta distribution, of numbers between 0 and 1."""

    def __init__(self, concentration1: Any, concentration0: Any):
        self.concentration1, self.concentration0 = broadcast_tensors(_number(concentration1), _number(concentration0))

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        a, b = (np.asarray(x.detach()) for x in (self.concentration1, self.concentration0))
        return _draw(lambda shape: generator().beta(a, b, shape), sample_shape, self.concentration1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density."""
        a, b = self.concentration1, self.concentration0
        return (a - 1.0) * f.log(value) + (b - 1.0) * f.log1p(-value) - (lgamma(a) + lgamma(b) - lgamma(a + b))


class Poisson(Distribution):
    """Counts with a rate."""

    def __init__(self, rate: Any):
        self.rate = _number(rate)

    mean = variance = property(lambda self: self.rate)

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        return _draw(lambda shape: generator().poisson(np.asarray(self.rate.detach()), shape), sample_shape, self.rate)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of counts."""
        return value * f.log(self.rate) - self.rate - lgamma(value + 1.0)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors, of a mean and a covariance matrix, or its lower Cholesky factor.

    >>> import fad.eager as torch
    >>> MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, scale_tril: Tensor | None = None):
        if (covariance_matrix is None) == (scale_tril is None):
            raise ValueError("give either covariance_matrix or scale_tril")
        self.loc = loc
        self.scale_tril = linalg.cholesky(covariance_matrix) if scale_tril is None else scale_tril

    mean = property(lambda self: self.loc)
    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the mean and the factor."""
        noise = randn(*sample_shape, *self.loc.shape, dtype=self.loc.dtype)
        return self.loc + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return f.log(diagonal(self.scale_tril, 0, -2, -1)).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density of vectors."""
        z = linalg.solve_triangular(self.scale_tril, (value - self.loc).unsqueeze(-1), upper=False).squeeze(-1)
        return -0.5 * (z * z).sum(-1) - self._half_log_det() - self.loc.shape[-1] * _LOG_ROOT

    def entropy(self) -> Tensor:
        return self.loc.shape[-1] * (0.5 + _LOG_ROOT) + self._half_log_det()


class Independent(Distribution):
    """A distribution whose last axes are one event: their logarithms are added."""

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int):
        self.base_dist, self.over = base_distribution, list(range(-reinterpreted_batch_ndims, 0))

    mean = property(lambda self: self.base_dist.mean)
    variance = property(lambda self: self.base_dist.variance)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow."""
        return self.base_dist.rsample(sample_shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        return self.base_dist.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density of whole events."""
        rows = self.base_dist.log_prob(value)
        return rows.sum(self.over) if self.over else rows

    def entropy(self) -> Tensor:
        rows = self.base_dist.entropy()
        return rows.sum(self.over) if self.over else rows


def kl_divergence(p: Any, q: Any) -> Tensor:
    """Return the divergence of two distributions of one kind, normal or categorical."""
    if type(p) is Normal and type(q) is Normal:
        ratio, shift = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
        return 0.5 * (ratio + shift - 1.0 - f.log(ratio))
    if type(p) is Categorical and type(q) is Categorical:
        return (p.probs * (p.logits - q.logits)).sum(-1)
    raise NotImplementedError(f"there is no divergence of {type(p).__name__} and {type(q).__name__} here")


def _number(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else as_tensor(x, np.dtype("float32"))


def _inside(p: Tensor) -> tuple[float, float]:
    eps = float(np.finfo(p.dtype).eps)
    return eps, 1.0 - eps


__all__ = [
    "Bernoulli", "Beta", "Categorical", "Distribution", "Exponential", "Gamma", "Independent", "Laplace",
    "MultivariateNormal", "Normal", "Poisson", "Uniform", "kl_divergence",
]  # fmt: skip

__getattr__ = explain_missing("torch.distributions", globals())
