"""``torch.distributions``: those that policies and variational models draw from.

Draws come from the face's random numbers (``torch.manual_seed``). ``rsample()`` keeps its history, ``sample()`` not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.eager import functions as f
from fad.eager.creation import as_tensor, bernoulli, multinomial, randn
from fad.eager.further import broadcast_tensors
from fad.eager.missing import explained
from fad.eager.mode import no_grad
from fad.eager.nn import functional as F
from fad.eager.tensor import Tensor

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


class Normal:
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


class Categorical:
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
        else:
            self.logits = logits - f.logsumexp(logits, -1, keepdim=True)
            self.probs = f.softmax(self.logits, -1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw class numbers."""
        n = math.prod(sample_shape)
        drawn = multinomial(self.probs, n, replacement=True)
        return drawn.movedim(-1, 0).reshape(*sample_shape, *self.probs.shape[:-1])

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of class numbers."""
        shape = np.broadcast_shapes(tuple(value.shape), tuple(self.logits.shape[:-1]))
        wide = self.logits.expand(*shape, self.logits.shape[-1])
        return f.gather(wide, -1, value.long().expand(*shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.probs * self.logits).sum(-1)


class Bernoulli:
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


__all__ = ["Bernoulli", "Categorical", "Normal", "kl_divergence"]

__getattr__ = explained("torch.distributions", globals())
