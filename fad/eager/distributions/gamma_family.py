"""The gamma distribution and those made of it: exponential, chi-squared, beta, Dirichlet, Student's t, Kumaraswamy.

Draws of `fad.random.gamma` have derivatives in the concentration, so gradients flow through all of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad import random
from fad.core.tracing.tracer import Tracer
from fad.eager.core.composite import composite
from fad.eager.core.mode import is_recording
from fad.eager.distributions import constraints
from fad.eager.distributions.base import (
    EULER,
    Distribution,
    as_parameter,
    as_parameters,
    as_plain,
    draw,
    draw_uniform,
    log_beta,
)
from fad.eager.ops import functions as f
from fad.eager.ops.creation import randn, zeros_like
from fad.eager.ops.shaping import stack
from fad.eager.rng import drawn_key, generator
from fad.eager.tensor import Tensor


def _draw_gamma(concentration: Tensor, shape: Any) -> Tensor:
    """Draw numbers of rate 1, worked out in double precision: those of small concentrations are very small."""
    dtype, tiny = concentration.dtype, np.finfo(concentration.dtype).tiny
    if type(concentration.value) is not Tracer and not (is_recording() and concentration.requires_grad):
        a = as_plain(concentration)  # without a derivative, in less time
        return draw(lambda shape: np.maximum(generator().standard_gamma(a, shape), tiny), shape, concentration)
    key = drawn_key()

    def compute(a):
        return np.maximum(random.gamma(key, a.astype(np.float64), shape), tiny).astype(dtype)

    return composite("StandardGammaBackward0", compute, concentration)


def _draw_shares(concentration: Tensor, shape: Any) -> Tensor:
    """Draw vectors of positive numbers that add up to 1."""
    limits = np.finfo(concentration.dtype)
    x = _draw_gamma(concentration.double(), shape)
    shares = (x / x.sum(-1, keepdim=True)).to(concentration.dtype)
    return f.clamp(shares, float(limits.tiny), 1.0 - float(limits.epsneg))


class Exponential(Distribution):
    """Waiting times with a rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None):
        self.rate = as_parameter(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = stddev = property(lambda self: 1.0 / self.rate)
    mode = property(lambda self: zeros_like(self.rate))
    variance = property(lambda self: self.rate**-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the rate."""
        shape = self._extended_shape(sample_shape)
        return draw(lambda shape: generator().exponential(size=shape), shape, self.rate) / self.rate

    def _log_density(self, value: Tensor) -> Tensor:
        return f.log(self.rate) - self.rate * value

    def entropy(self) -> Tensor:
        return 1.0 - f.log(self.rate)

    def cdf(self, value: Any) -> Tensor:
        return -f.expm1(-self.rate * self._as_value(value))

    def icdf(self, value: Any) -> Tensor:
        return -f.log1p(-self._as_value(value)) / self.rate


class Gamma(Distribution):
    """The gamma distribution of a concentration and a rate.

    >>> import fad.eager as torch
    >>> a = torch.tensor(2.0, requires_grad=True)
    >>> Gamma(a, 1.0).rsample((3,)).sum().backward()
    >>> bool(a.grad > 0)
    True
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = as_parameters(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: f.clamp((self.concentration - 1.0) / self.rate, 0.0))
    variance = property(lambda self: self.concentration / self.rate**2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        return _draw_gamma(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def _log_density(self, value: Tensor) -> Tensor:
        a, b = self.concentration, self.rate
        return a * f.log(b) + f.xlogy(a - 1.0, value) - b * value - f.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - f.log(self.rate) + f.lgamma(a) + (1.0 - a) * f.digamma(a)

    def cdf(self, value: Any) -> Tensor:
        return f.igamma(self.concentration, self.rate * self._as_value(value))


class Chi2(Gamma):
    """The distribution of a sum of `df` squares of standard normal numbers."""

    arg_constraints = {"df": constraints.positive, **Gamma.arg_constraints}

    def __init__(self, df: Any, validate_args: bool | None = None):
        self.df = as_parameter(df)
        super().__init__(0.5 * self.df, 0.5, validate_args=validate_args)


class InverseGamma(Distribution):
    """The distribution of one over a number of the gamma distribution."""

    arg_constraints = Gamma.arg_constraints
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = as_parameters(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    base_dist = property(lambda self: Gamma(self.concentration, self.rate, validate_args=False))
    mode = property(lambda self: self.rate / (self.concentration + 1.0))

    @property
    def mean(self) -> Tensor:
        return self.rate / f.clamp(self.concentration - 1.0, 0.0)

    @property
    def variance(self) -> Tensor:
        a = f.clamp(self.concentration, 2.0)
        return self.rate**2 / ((a - 1.0) ** 2 * (a - 2.0))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        return 1.0 / self.base_dist.rsample(sample_shape)

    def _log_density(self, value: Tensor) -> Tensor:
        return self.base_dist.log_prob(1.0 / value) - 2.0 * f.log(value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + f.log(self.rate) + f.lgamma(a) - (1.0 + a) * f.digamma(a)

    def cdf(self, value: Any) -> Tensor:
        return 1.0 - self.base_dist.cdf(1.0 / self._as_value(value))


class Beta(Distribution):
    """The beta distribution, of numbers between 0 and 1."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = as_parameters(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))

    @property
    def mode(self) -> Tensor:
        return self.as_dirichlet().mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1.0))

    def as_dirichlet(self) -> Dirichlet:
        """Return the distribution of the number and of what lacks to 1."""
        return Dirichlet(stack([self.concentration1, self.concentration0], -1), validate_args=False)

    def log_norm(self) -> Tensor:
        """Return the logarithm of the beta function of the parameters."""
        return log_beta(self.concentration1, self.concentration0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        return self.as_dirichlet().rsample(sample_shape)[..., 0]

    def _log_density(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return f.xlogy(a - 1.0, value) + f.xlogy(b - 1.0, 1.0 - value) - self.log_norm()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        own = (a - 1.0) * f.digamma(a) + (b - 1.0) * f.digamma(b)
        return self.log_norm() - own + (a + b - 2.0) * f.digamma(a + b)


class Dirichlet(Distribution):
    """Vectors of positive numbers that add up to 1.

    >>> import fad.eager as torch
    >>> Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.ndim < 1:
            raise ValueError("Dirichlet needs a concentration of one axis or more")
        self.concentration = as_parameter(concentration)
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    mean = property(lambda self: self.concentration / self._total().unsqueeze(-1))

    @property
    def mode(self) -> Tensor:
        above = f.clamp(self.concentration - 1.0, 0.0)
        total = above.sum(-1, keepdim=True)
        inside = f.where(total > 0.0, above / f.where(total > 0.0, total, 1.0), math.nan)
        largest = zeros_like(above).scatter(-1, self.concentration.argmax(-1, keepdim=True), 1.0)
        return f.where((self.concentration < 1.0).all(-1, keepdim=True), largest, inside)

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self._total().unsqueeze(-1)
        return a * (total - a) / (total**2 * (total + 1.0))

    def _total(self) -> Tensor:
        return self.concentration.sum(-1)

    def log_norm(self) -> Tensor:
        """Return the logarithm of the beta function of the concentration."""
        return f.lgamma(self.concentration).sum(-1) - f.lgamma(self._total())

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to the concentration."""
        return _draw_shares(self.concentration, self._extended_shape(sample_shape))

    def _log_density(self, value: Tensor) -> Tensor:
        return f.xlogy(self.concentration - 1.0, value).sum(-1) - self.log_norm()

    def entropy(self) -> Tensor:
        a, total, n = self.concentration, self._total(), self.concentration.shape[-1]
        return self.log_norm() + (total - n) * f.digamma(total) - ((a - 1.0) * f.digamma(a)).sum(-1)


class StudentT(Distribution):
    """Student's t distribution of `df` degrees of freedom, a place and a scale."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = as_parameters(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    mode = property(lambda self: self.loc)
    mean = property(lambda self: f.where(self.df > 1.0, self.loc, math.nan))

    @property
    def variance(self) -> Tensor:
        df = f.clamp(self.df, 2.0)
        return f.where(self.df > 1.0, self.scale**2 * df / (df - 2.0), math.nan)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to all parameters."""
        shape = self._extended_shape(sample_shape)
        half = 0.5 * self.df
        noise = randn(*shape, dtype=self.df.dtype) * f.sqrt(half / _draw_gamma(half, shape))
        return self.loc + self.scale * noise

    def _log_norm(self) -> Tensor:
        return f.log(self.scale) + 0.5 * f.log(self.df) + log_beta(0.5 * self.df, as_parameter(0.5))

    def _log_density(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * f.log1p(z**2 / self.df) - self._log_norm()

    def entropy(self) -> Tensor:
        more = 0.5 * (self.df + 1.0)
        return more * (f.digamma(more) - f.digamma(0.5 * self.df)) + self._log_norm()


class FisherSnedecor(Distribution):
    """The distribution of a quotient of two sums of squares, by their degrees of freedom: of Fisher and Snedecor."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        self.df1, self.df2 = as_parameters(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = f.where(self.df2 > 2.0, self.df2, math.nan)
        return df2 / (df2 - 2.0)

    @property
    def mode(self) -> Tensor:
        df1 = f.where(self.df1 > 2.0, self.df1, math.nan)
        return (df1 - 2.0) / df1 * self.df2 / (self.df2 + 2.0)

    @property
    def variance(self) -> Tensor:
        df1, df2 = self.df1, f.where(self.df2 > 4.0, self.df2, math.nan)
        return 2.0 * df2**2 * (df1 + df2 - 2.0) / (df1 * (df2 - 2.0) ** 2 * (df2 - 4.0))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        shape = self._extended_shape(sample_shape)
        above, below = _draw_gamma(0.5 * self.df1, shape), _draw_gamma(0.5 * self.df2, shape)
        return (above / self.df1) / (below / self.df2)

    def _log_density(self, value: Tensor) -> Tensor:
        a, b, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        return a * f.log(ratio) + (a - 1.0) * f.log(value) - (a + b) * f.log1p(ratio * value) - log_beta(a, b)


class Kumaraswamy(Distribution):
    """Numbers between 0 and 1, much as the beta distribution's, whose distribution function is elementary."""

    arg_constraints = Beta.arg_constraints
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self.concentration1, self.concentration0 = as_parameters(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    mean = property(lambda self: self._moment(1.0))
    variance = property(lambda self: self._moment(2.0) - self._moment(1.0) ** 2)

    def _moment(self, n: float) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return b * f.exp(log_beta(1.0 + n / a, b))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return f.where((a < 1.0) | (b < 1.0), math.nan, ((a - 1.0) / (a * b - 1.0)) ** (1.0 / a))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, so that gradients flow to both parameters."""
        return self.icdf(draw_uniform(self._extended_shape(sample_shape), self.concentration1))

    def _log_density(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return f.log(a * b) + f.xlogy(a - 1.0, value) + f.xlogy(b - 1.0, 1.0 - value**a)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (1.0 - 1.0 / b) + (1.0 - 1.0 / a) * (f.digamma(b + 1.0) + EULER) - f.log(a * b)

    def cdf(self, value: Any) -> Tensor:
        return 1.0 - (1.0 - self._as_value(value) ** self.concentration1) ** self.concentration0

    def icdf(self, value: Any) -> Tensor:
        rest = (1.0 - self._as_value(value)) ** (1.0 / self.concentration0)
        return (1.0 - rest) ** (1.0 / self.concentration1)
