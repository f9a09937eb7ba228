"""Distributions of transformed numbers: in general, log-normal, and the relaxed forms of coins and classes."""

from __future__ import annotations

import math
from typing import Any

from fad.eager.core.mode import no_grad
from fad.eager.distributions import constraints
from fad.eager.distributions.base import Distribution, as_parameter, draw_uniform, sum_last
from fad.eager.distributions.composed import Independent
from fad.eager.distributions.discrete import WithClasses, WithOdds
from fad.eager.distributions.location_scale import Normal
from fad.eager.distributions.transforms import ComposeTransform, ExpTransform, SigmoidTransform, Transform
from fad.eager.nn import functional as F
from fad.eager.ops import functions as f
from fad.eager.tensor import Tensor


class TransformedDistribution(Distribution):
    """The distribution of numbers of another one, transformed.

    >>> import fad.eager as torch
    >>> d = torch.distributions
    >>> squashed = TransformedDistribution(d.Normal(torch.zeros(2), 1.0), [d.TanhTransform(cache_size=1)])
    >>> bool((squashed.sample((5,)).abs() < 1).all())
    True
    """

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"TransformedDistribution needs a transform or a list of them, not {transforms}")
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        whole = ComposeTransform(self.transforms)
        before = whole.domain.event_dim if self.transforms else 0
        after = whole.codomain.event_dim if self.transforms else 0
        shape = (*batch, *event)
        if len(shape) < before:
            raise ValueError(f"these transforms need {before} axes or more, and the distribution has the shape {shape}")
        out = tuple(whole.forward_shape(shape))
        wide = tuple(whole.inverse_shape(out))
        if wide != shape:
            base_distribution = base_distribution.expand(wide[: len(wide) - len(event)])
        if before > len(event):
            base_distribution = Independent(base_distribution, before - len(event))
        self.base_dist = base_distribution
        cut = len(out) - max(after, len(event) + after - before)
        super().__init__(out[:cut], out[cut:], validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        return constraints.independent(last, max(0, len(self.event_shape) - last.event_dim))

    def expand(self, batch_shape: Any) -> Any:
        """Return the same distribution expanded to a batch shape."""
        new = super().expand(batch_shape)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self.event_shape))
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return new

    def _as_value(self, x: Any) -> Tensor:
        return self.base_dist._as_value(x)

    def _transform(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        return self._transform(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow."""
        return self._transform(self.base_dist.rsample(sample_shape))

    def _log_density(self, value: Tensor) -> Tensor:
        n, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.invert(y)
            n += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_last(transform.log_abs_det_jacobian(x, y), n - transform.domain.event_dim)
            y = x
        return total + sum_last(self.base_dist.log_prob(y), n - len(self.base_dist.event_shape))

    def _turn(self, p: Any) -> Any:
        """Return probabilities, or one minus them where the transforms fall."""
        sign = math.prod(t.sign for t in self.transforms)
        return p if isinstance(sign, int) and sign == 1 else sign * (p - 0.5) + 0.5

    def cdf(self, value: Any) -> Tensor:
        value = self._as_value(value)
        for transform in reversed(self.transforms):
            value = transform.invert(value)
        return self._turn(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Tensor:
        return self._transform(self.base_dist.icdf(self._turn(self._as_value(value))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"


class LogNormal(TransformedDistribution):
    """The distribution of numbers whose logarithms are normal.

    >>> LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: f.exp(self.loc + 0.5 * self.scale**2))
    mode = property(lambda self: f.exp(self.loc - self.scale**2))
    variance = property(lambda self: f.expm1(self.scale**2) * f.exp(2.0 * self.loc + self.scale**2))

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogitRelaxedBernoulli(WithOdds):
    """The logarithms of the odds of a relaxed coin: `RelaxedBernoulli` before the sigmoid."""

    support = constraints.real
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = as_parameter(temperature)
        self._take_odds(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the odds and the temperature."""
        unit = draw_uniform(self._extended_shape(sample_shape), self.logits)
        return (f.log(unit) - f.log1p(-unit) + self.logits) / self.temperature

    def _log_density(self, value: Tensor) -> Tensor:
        shift = self.logits - value * self.temperature
        return f.log(self.temperature) + shift - 2.0 * F.softplus(shift)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 in place of a coin's, through which gradients flow; at a low temperature near 0 or 1."""

    support = constraints.unit_interval

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)


class ExpRelaxedCategorical(WithClasses):
    """The logarithms of relaxed classes: `RelaxedOneHotCategorical` before the exponential."""

    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = as_parameter(temperature)
        self._take_classes(probs, logits, False, validate_args)

    def entropy(self) -> Tensor:
        raise NotImplementedError("ExpRelaxedCategorical has no entropy here")

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the probabilities and the temperature."""
        unit = draw_uniform(self._extended_shape(sample_shape), self.logits)
        return f.log_softmax((self.logits - f.log(-f.log(unit))) / self.temperature, -1)

    def _log_density(self, value: Tensor) -> Tensor:
        n = self.logits.shape[-1]
        scores = f.log_softmax(self.logits - value * self.temperature, -1).sum(-1)
        return scores + math.lgamma(n) + (n - 1) * f.log(self.temperature)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Probabilities in place of vectors of one 1, through which gradients flow; at a low temperature near those."""

    support = constraints.simplex

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    probs = property(lambda self: self.base_dist.probs)
    logits = property(lambda self: self.base_dist.logits)
