"""Distributions of a place and a scale: normal, Laplace, Cauchy, Gumbel, their halves, uniform, and von Mises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.eager.core.mode import no_grad
from fad.eager.distributions import constraints
from fad.eager.distributions.base import (
    EULER,
    LOG_ROOT,
    Distribution,
    as_parameter,
    as_parameters,
    as_plain,
    draw,
    draw_uniform,
    is_true,
)
from fad.eager.ops import functions as f
from fad.eager.ops.creation import full_like, randn, zeros_like
from fad.eager.ops.nodes import as_node, special_function
from fad.eager.rng import generator
from fad.eager.tensor import Tensor

_i0e, _i1e = as_node("i0e", special_function("i0e")), as_node("i1e", special_function("i1e"))


class _LocationScale(Distribution):
    """A standard distribution that is stretched by a scale and moved to a place."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = as_parameters(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        return self.loc + self.scale * self._draw_standard(self._extended_shape(sample_shape))

    def _draw_standard(self, shape: Any) -> Tensor:
        raise NotImplementedError

    def _standardize(self, value: Any) -> Tensor:
        return (self._as_value(value) - self.loc) / self.scale


class Normal(_LocationScale):
    """The normal distribution of a mean and a standard deviation.

    >>> import fad.eager as torch
    >>> Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale * self.scale)

    def _draw_standard(self, shape: Any) -> Tensor:
        return randn(*shape, dtype=self.loc.dtype)

    def _log_density(self, value: Tensor) -> Tensor:
        z = self._standardize(value)
        return -0.5 * z * z - f.log(self.scale) - LOG_ROOT

    def entropy(self) -> Tensor:
        return 0.5 + LOG_ROOT + f.log(self.scale)

    def cdf(self, value: Any) -> Tensor:
        return 0.5 * (1.0 + f.erf(self._standardize(value) / math.sqrt(2.0)))

    def icdf(self, value: Any) -> Tensor:
        return self.loc + self.scale * math.sqrt(2.0) * f.erfinv(2.0 * self._as_value(value) - 1.0)


class Laplace(_LocationScale):
    """The distribution whose density falls exponentially on both sides of a place."""

    variance = property(lambda self: 2.0 * self.scale**2)

    def _draw_standard(self, shape: Any) -> Tensor:
        return draw(lambda shape: generator().laplace(size=shape), shape, self.loc)

    def _log_density(self, value: Tensor) -> Tensor:
        return -f.log(2.0 * self.scale) - f.abs(value - self.loc) / self.scale

    def entropy(self) -> Tensor:
        return 1.0 + f.log(2.0 * self.scale)

    def cdf(self, value: Any) -> Tensor:
        z = self._standardize(value)
        return 0.5 - 0.5 * f.sign(z) * f.expm1(-f.abs(z))

    def icdf(self, value: Any) -> Tensor:
        p = self._as_value(value) - 0.5
        return self.loc - self.scale * f.sign(p) * f.log1p(-2.0 * f.abs(p))


class Cauchy(_LocationScale):
    """The distribution of Cauchy and Lorentz, which has neither a mean nor a variance.

    >>> import fad.eager as torch
    >>> Cauchy(0.0, 1.0).cdf(torch.tensor(1.0))
    tensor(0.7500)
    """

    mode = property(lambda self: self.loc)
    mean = property(lambda self: full_like(self.loc, math.nan))
    variance = property(lambda self: full_like(self.loc, math.inf))

    def _draw_standard(self, shape: Any) -> Tensor:
        return draw(lambda shape: generator().standard_cauchy(size=shape), shape, self.loc)

    def _log_density(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - f.log(self.scale) - f.log1p(self._standardize(value) ** 2)

    def entropy(self) -> Tensor:
        return math.log(4.0 * math.pi) + f.log(self.scale)

    def cdf(self, value: Any) -> Tensor:
        return f.atan(self._standardize(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Tensor:
        return f.tan(math.pi * (self._as_value(value) - 0.5)) * self.scale + self.loc


class Gumbel(_LocationScale):
    """The distribution of the largest of many: of Gumbel.

    >>> Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    mode = property(lambda self: self.loc)
    mean = property(lambda self: self.loc + self.scale * EULER)
    stddev = property(lambda self: (math.pi / math.sqrt(6.0)) * self.scale)
    variance = property(lambda self: self.stddev**2)

    def _draw_standard(self, shape: Any) -> Tensor:
        return draw(lambda shape: generator().gumbel(size=shape), shape, self.loc)

    def _log_density(self, value: Tensor) -> Tensor:
        z = self._standardize(value)
        return -z - f.exp(-z) - f.log(self.scale)

    def entropy(self) -> Tensor:
        return f.log(self.scale) + (1.0 + EULER)

    def cdf(self, value: Any) -> Tensor:
        return f.exp(-f.exp(-self._standardize(value)))

    def icdf(self, value: Any) -> Tensor:
        return self.loc - self.scale * f.log(-f.log(self._as_value(value)))


class _Half(Distribution):
    """The magnitudes of numbers of a distribution that is symmetric about 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None):
        self.scale = as_parameter(scale)
        super().__init__(self.scale.shape, validate_args=validate_args)

    base_dist = property(lambda self: self._whole(0.0, self.scale, validate_args=False))
    mode = property(lambda self: zeros_like(self.scale))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the scale."""
        return f.abs(self.base_dist.rsample(sample_shape))

    def _log_density(self, value: Tensor) -> Tensor:
        return f.where(value >= 0, self.base_dist.log_prob(value) + math.log(2.0), -math.inf)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2.0)

    def cdf(self, value: Any) -> Tensor:
        return 2.0 * self.base_dist.cdf(value) - 1.0

    def icdf(self, value: Any) -> Tensor:
        return self.base_dist.icdf(0.5 * (self._as_value(value) + 1.0))


class HalfNormal(_Half):
    """The magnitudes of normal numbers of mean 0."""

    _whole = Normal
    mean = property(lambda self: self.scale * math.sqrt(2.0 / math.pi))
    variance = property(lambda self: self.scale**2 * (1.0 - 2.0 / math.pi))


class HalfCauchy(_Half):
    """The magnitudes of numbers of Cauchy's distribution about 0."""

    _whole = Cauchy
    mean = property(lambda self: full_like(self.scale, math.inf))
    variance = property(lambda self: full_like(self.scale, math.inf))


class Uniform(Distribution):
    """Numbers between two ends, all alike.

    >>> import fad.eager as torch
    >>> Uniform(0.0, 2.0).log_prob(torch.tensor(1.0)).exp()
    tensor(0.5000)
    """

    arg_constraints = {"low": constraints.real, "high": constraints.real}
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None):
        self.low, self.high = as_parameters(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and not is_true(self.low.value < self.high.value):
            raise ValueError("Uniform needs a low that is below high")

    support = property(lambda self: constraints.interval(self.low, self.high))
    mean = property(lambda self: 0.5 * (self.low + self.high))
    mode = property(lambda self: full_like(self.low, math.nan))
    variance = property(lambda self: (self.high - self.low) ** 2 / 12.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the ends."""
        unit = draw(generator().random, self._extended_shape(sample_shape), self.low)
        return self.low + (self.high - self.low) * unit

    def _log_density(self, value: Tensor) -> Tensor:
        inside = (value >= self.low) & (value < self.high)
        return f.where(inside, -f.log(self.high - self.low), -math.inf)

    def entropy(self) -> Tensor:
        return f.log(self.high - self.low)

    def cdf(self, value: Any) -> Tensor:
        return f.clamp((self._as_value(value) - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, value: Any) -> Tensor:
        return self.low + (self.high - self.low) * self._as_value(value)


class VonMises(Distribution):
    """Angles about a place, the more narrowly, the larger the concentration."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        self.loc, self.concentration = as_parameters(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 1.0 - _i1e(self.concentration) / _i0e(self.concentration))  # the circular one

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw angles, without history."""
        loc, concentration = as_plain(self.loc), as_plain(self.concentration)
        make = lambda shape: np.mod(loc + generator().vonmises(0.0, concentration, shape) + math.pi, 2 * math.pi)
        return draw(make, self._extended_shape(sample_shape), self.loc) - math.pi

    def _log_density(self, value: Tensor) -> Tensor:
        k = self.concentration
        return k * (f.cos(value - self.loc) - 1.0) - math.log(2.0 * math.pi) - f.log(_i0e(k))


class Weibull(Distribution):
    """The distribution of Weibull, of a scale and a concentration.

    >>> import fad.eager as torch
    >>> Weibull(1.0, 2.0).cdf(torch.tensor(1.0))
    tensor(0.6321)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self.scale, self.concentration = as_parameters(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    mean = property(lambda self: self.scale * self._moment(1.0))
    variance = property(lambda self: self.scale**2 * (self._moment(2.0) - self._moment(1.0) ** 2))

    def _moment(self, n: float) -> Tensor:
        return f.exp(f.lgamma(1.0 + n / self.concentration))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * (f.clamp(k - 1.0, 0.0) / k) ** (1.0 / k)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        return self.icdf(draw_uniform(self._extended_shape(sample_shape), self.scale))

    def _log_density(self, value: Tensor) -> Tensor:
        k, log_z = self.concentration, f.log(value / self.scale)
        return f.log(k / self.scale) + (k - 1.0) * log_z - f.exp(k * log_z)

    def entropy(self) -> Tensor:
        return EULER * (1.0 - 1.0 / self.concentration) + f.log(self.scale / self.concentration) + 1.0

    def cdf(self, value: Any) -> Tensor:
        return -f.expm1(-((self._as_value(value) / self.scale) ** self.concentration))

    def icdf(self, value: Any) -> Tensor:
        return self.scale * (-f.log1p(-self._as_value(value))) ** (1.0 / self.concentration)


class Pareto(Distribution):
    """The distribution of Pareto: above a scale, with a density that falls as the power -alpha - 1."""

    arg_constraints = {"scale": constraints.positive, "alpha": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self.scale, self.alpha = as_parameters(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    support = property(lambda self: constraints.greater_than_eq(self.scale))
    mode = property(lambda self: self.scale)

    @property
    def mean(self) -> Tensor:
        a = f.clamp(self.alpha, 1.0)
        return a * self.scale / (a - 1.0)

    @property
    def variance(self) -> Tensor:
        a = f.clamp(self.alpha, 2.0)
        return self.scale**2 * a / ((a - 1.0) ** 2 * (a - 2.0))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        return self.icdf(draw_uniform(self._extended_shape(sample_shape), self.scale))

    def _log_density(self, value: Tensor) -> Tensor:
        return f.log(self.alpha / value) - self.alpha * f.log(value / self.scale)

    def entropy(self) -> Tensor:
        return f.log(self.scale / self.alpha) + 1.0 + 1.0 / self.alpha

    def cdf(self, value: Any) -> Tensor:
        return 1.0 - (self._as_value(value) / self.scale) ** -self.alpha

    def icdf(self, value: Any) -> Tensor:
        return self.scale * (1.0 - self._as_value(value)) ** (-1.0 / self.alpha)
