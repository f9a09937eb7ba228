"""Distributions of whole numbers, and of classes: as numbers, as vectors of one 1, and as counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.eager.core.mode import no_grad
from fad.eager.distributions import constraints
from fad.eager.distributions.base import (
    Distribution,
    as_parameter,
    as_parameters,
    as_plain,
    draw,
    is_true,
    keep_inside,
    sum_last,
)
from fad.eager.nn import functional as F
from fad.eager.ops import functions as f
from fad.eager.ops.creation import arange, eye, full_like, multinomial, zeros_like
from fad.eager.rng import generator
from fad.eager.tensor import Tensor


class WithOdds(Distribution):
    """A distribution of a probability, or of the logarithm of its odds, and perhaps of another number."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def _take_odds(self, probs: Any, logits: Any, validate_args: bool | None, **others: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("give either probs or logits")
        *more, given = as_parameters(*others.values(), logits if probs is None else probs)
        vars(self).update(zip(others, more, strict=True))
        if probs is None:
            self.logits = given
            Distribution.__init__(self, given.shape, validate_args=validate_args)
            self.probs = f.sigmoid(given)
        else:
            self.probs = given
            Distribution.__init__(self, given.shape, validate_args=validate_args)
            inside = keep_inside(given)
            self.logits = f.log(inside) - f.log1p(-inside)

    param_shape = property(lambda self: self.probs.shape)


class Bernoulli(WithOdds):
    """One with a probability, else zero; or by the logarithm of the odds."""

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take_odds(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1.0 - self.probs))

    @property
    def mode(self) -> Tensor:
        likely = (self.probs > 0.5).to(self.probs.dtype)
        return f.where(self.probs == 0.5, math.nan, likely)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw ones and zeros."""
        probs = as_plain(self.probs)
        return draw(lambda shape: generator().random(shape) < probs, self._extended_shape(sample_shape), self.probs)

    def _log_density(self, value: Tensor) -> Tensor:
        logits, value = as_parameters(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return zeros and ones, along a first axis."""
        return self._put_values(arange(2, dtype=self.probs.dtype), expand)


class Geometric(WithOdds):
    """How often something fails before it succeeds with a probability.

    >>> Geometric(0.25).mean
    tensor(3.)
    """

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take_odds(probs, logits, validate_args)
        if self._validate_args and not is_true(self.probs.value > 0.0):
            raise ValueError("Geometric needs a positive probability")

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw counts of failures."""
        probs = as_plain(self.probs)
        make = lambda shape: generator().geometric(probs, shape) - 1
        return draw(make, self._extended_shape(sample_shape), self.probs)

    def _log_density(self, value: Tensor) -> Tensor:
        return f.xlogy(value, 1.0 - self.probs) + f.log(self.probs)

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Binomial(WithOdds):
    """How many of `total_count` trials succeed."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **WithOdds.arg_constraints}
    has_enumerate_support = True
    total_count: Tensor

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take_odds(probs, logits, validate_args, total_count=total_count)

    support = property(lambda self: constraints.integer_interval(0, self.total_count))
    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.mean * (1.0 - self.probs))
    mode = property(lambda self: f.minimum(f.floor((self.total_count + 1.0) * self.probs), self.total_count))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw counts."""
        n, probs = np.asarray(self.total_count.detach(), np.int64), as_plain(self.probs)
        make = lambda shape: generator().binomial(n, probs, shape)
        return draw(make, self._extended_shape(sample_shape), self.probs)

    def _log_density(self, value: Tensor) -> Tensor:
        n, logits = self.total_count, self.logits
        ways = f.lgamma(n + 1.0) - f.lgamma(value + 1.0) - f.lgamma(n - value + 1.0)
        return ways + value * logits - n * F.softplus(logits)

    def entropy(self) -> Tensor:
        log_prob = self._log_density(self.enumerate_support(expand=False))
        return -(f.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return the counts from 0 on, along a first axis, for one number of trials."""
        counts = as_plain(self.total_count)
        if counts.size == 0 or counts.min() != counts.max():
            raise NotImplementedError("the values of a Binomial are listed for one total_count, not for different ones")
        return self._put_values(arange(int(counts.max()) + 1, dtype=self.probs.dtype), expand)


class NegativeBinomial(WithOdds):
    """How many trials succeed before `total_count` of them failed."""

    arg_constraints = {"total_count": constraints.nonnegative, **WithOdds.arg_constraints}
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take_odds(probs, logits, validate_args, total_count=total_count)

    mean = property(lambda self: self.total_count * f.exp(self.logits))
    variance = property(lambda self: self.mean / f.sigmoid(-self.logits))
    mode = property(lambda self: f.clamp(f.floor((self.total_count - 1.0) * f.exp(self.logits)), 0.0))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw counts: Poisson's, of a rate of the gamma distribution."""
        n, odds = as_plain(self.total_count), np.exp(as_plain(self.logits))
        make = lambda shape: generator().poisson(generator().standard_gamma(n, shape) * odds)
        return draw(make, self._extended_shape(sample_shape), self.probs)

    def _log_density(self, value: Tensor) -> Tensor:
        n, logits = self.total_count, self.logits
        ways = f.lgamma(n + value) - f.lgamma(value + 1.0) - f.lgamma(n)
        ways = f.where(n + value == 0.0, 0.0, ways)
        return ways - n * F.softplus(logits) - value * F.softplus(-logits)


class Poisson(Distribution):
    """Counts with a rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None):
        self.rate = as_parameter(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: f.floor(self.rate))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw, without history."""
        rate = as_plain(self.rate)
        return draw(lambda shape: generator().poisson(rate, shape), self._extended_shape(sample_shape), self.rate)

    def _log_density(self, value: Tensor) -> Tensor:
        return f.xlogy(value, self.rate) - self.rate - f.lgamma(value + 1.0)


class WithClasses(Distribution):
    """A distribution of the probabilities of classes, in the last axis, or of their logarithms."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def _take_classes(self, probs: Any, logits: Any, one_number: bool, validate_args: bool | None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("give either probs or logits")
        given = logits if probs is None else probs
        if given.ndim < 1:
            raise ValueError("the probabilities of classes need one axis or more")
        event_shape = () if one_number else given.shape[-1:]
        if probs is None:
            self.logits = given - f.logsumexp(given, -1, keepdim=True)
            Distribution.__init__(self, given.shape[:-1], event_shape, validate_args)
            self.probs = f.softmax(self.logits, -1)
        else:
            total = given.sum(-1, keepdim=True)
            if self._is_checked(validate_args) and not is_true(total.value > 0.0):
                raise ValueError(
                    f"{type(self).__name__} needs probs of which the sums are positive, not {given.detach()}"
                )
            self.probs = given / total
            Distribution.__init__(self, given.shape[:-1], event_shape, validate_args)
            self.logits = f.log(keep_inside(self.probs))

    param_shape = property(lambda self: self.probs.shape)

    def _draw_classes(self, sample_shape: Any) -> Tensor:
        drawn = multinomial(self.probs, math.prod(sample_shape), replacement=True)
        return drawn.movedim(-1, 0).reshape((*sample_shape, *self._batch_shape))

    def entropy(self) -> Tensor:
        lowest = float(np.finfo(self.logits.dtype).min)
        return -(self.probs * f.clamp(self.logits, lowest)).sum(-1)


def _pick(logits: Tensor, classes: Tensor) -> Tensor:
    """Return the logarithms of the probabilities of class numbers."""
    shape = np.broadcast_shapes(tuple(classes.shape), tuple(logits.shape[:-1]))
    wide = logits.expand(*shape, logits.shape[-1])
    return f.gather(wide, -1, classes.expand(*shape).unsqueeze(-1)).squeeze(-1)


class Categorical(WithClasses):
    """Class numbers, with probabilities in the last axis, or their logarithms.

    >>> import fad.eager as torch
    >>> Categorical(torch.tensor([1.0, 3.0])).log_prob(torch.tensor(1)).exp()
    tensor(0.7500)
    """

    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        self._take_classes(probs, logits, True, validate_args)

    support = property(lambda self: constraints.integer_interval(0, self.probs.shape[-1] - 1))
    mode = property(lambda self: self.probs.argmax(-1))
    mean = variance = property(lambda self: full_like(self.probs[..., 0], math.nan))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw class numbers."""
        return self._draw_classes(sample_shape)

    def _log_density(self, value: Tensor) -> Tensor:
        return _pick(self.logits, value.long())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return the class numbers, along a first axis."""
        return self._put_values(arange(self.probs.shape[-1]), expand)


class OneHotCategorical(WithClasses):
    """Classes as vectors of one 1 and else zeros.

    >>> import fad.eager as torch
    >>> OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None):
        self._take_classes(probs, logits, False, validate_args)

    mean = property(lambda self: self.probs)
    mode = property(lambda self: self._mark(self.probs.argmax(-1)))
    variance = property(lambda self: self.probs * (1.0 - self.probs))

    def _mark(self, classes: Tensor) -> Tensor:
        return F.one_hot(classes, self.probs.shape[-1]).to(self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw vectors of one 1."""
        return self._mark(self._draw_classes(sample_shape))

    def _log_density(self, value: Tensor) -> Tensor:
        return _pick(self.logits, value.argmax(-1))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return the vectors of one 1, along a first axis."""
        return self._put_values(eye(self.probs.shape[-1], dtype=self.probs.dtype), expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Vectors of one 1, through whose draws gradients flow as if they were the probabilities."""

    has_rsample = True

    @no_grad()
    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw vectors of one 1, without history."""
        return super().sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw vectors of one 1, with the gradient of the probabilities."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(WithClasses):
    """How often each class is drawn, in `total_count` draws.

    >>> import fad.eager as torch
    >>> Multinomial(4, torch.tensor([1.0, 3.0])).mean
    tensor([1., 3.])
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise NotImplementedError("Multinomial needs one whole number as total_count, not different ones")
        self.total_count = total_count
        self._take_classes(probs, logits, False, validate_args)

    support = property(lambda self: constraints.multinomial(self.total_count))
    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.mean * (1.0 - self.probs))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw counts."""
        probs = as_plain(self.probs)
        probs = probs / probs.sum(-1, keepdims=True)
        shape = (*sample_shape, *self._batch_shape)
        return draw(lambda _: generator().multinomial(self.total_count, probs, shape), shape, self.probs)

    def _log_density(self, value: Tensor) -> Tensor:
        logits = f.where((value == 0.0) & f.isinf(self.logits), 0.0, self.logits)
        return f.lgamma(value.sum(-1) + 1.0) - f.lgamma(value + 1.0).sum(-1) + (value * logits).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        counts = Binomial(n, self.probs, validate_args=False)
        values = counts.enumerate_support(expand=False)
        expected = (f.exp(counts._log_density(values)) * f.lgamma(values + 1.0)).sum(0)
        return n * super().entropy() - math.lgamma(n + 1.0) + sum_last(expected, 1)
