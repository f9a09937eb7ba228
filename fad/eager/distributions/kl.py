"""Divergences of Kullback and Leibler: of the pairs of distributions for which there is a formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.distributions.base import EULER, LOG_ROOT, Distribution, is_true, sum_last
from fad.eager.distributions.composed import Independent, MultivariateNormal
from fad.eager.distributions.discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    OneHotCategorical,
    Poisson,
)
from fad.eager.distributions.gamma_family import Beta, Dirichlet, Exponential, Gamma
from fad.eager.distributions.location_scale import (
    Cauchy,
    Gumbel,
    HalfNormal,
    Laplace,
    Normal,
    Pareto,
    Uniform,
)
from fad.eager.distributions.transformed import TransformedDistribution
from fad.eager.nn import functional as F
from fad.eager.ops import functions as f
from fad.eager.ops.linalg import linalg
from fad.eager.tensor import Tensor

_FORMULAS: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Return a decorator for the function that computes the divergence of two classes of distributions.

    >>> @register_kl(Laplace, Gumbel)
    ... def compute(p, q): return p.loc * 0.0
    """
    for kind in (type_p, type_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"register_kl needs classes of distributions, not {kind}")

    def register(formula: Callable) -> Callable:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Any, q: Any) -> Tensor:
    """Return the divergence of two distributions, by the formula of their classes or the nearest they derive from.

    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    for type_p in type(p).__mro__:
        for type_q in type(q).__mro__:
            if (type_p, type_q) in _FORMULAS:
                return _FORMULAS[type_p, type_q](p, q)
    raise NotImplementedError(f"there is no divergence of {type(p).__name__} and {type(q).__name__} here")


# --- what is expected of numbers of a distribution --------------------------------------------------------------------


def _mean_log(p: Any) -> Tensor:
    """Return the mean of the logarithm."""
    if isinstance(p, Beta):
        return f.digamma(p.concentration1) - f.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Gamma):
        return f.digamma(p.concentration) - f.log(p.rate)
    if isinstance(p, Exponential):
        return -f.log(p.rate) - EULER
    if isinstance(p, Pareto):
        return f.log(p.scale) + 1.0 / p.alpha
    return (f.xlogy(p.high, p.high) - f.xlogy(p.low, p.low)) / (p.high - p.low) - 1.0  # Uniform


def _mean_exp(p: Any, s: Tensor) -> Tensor:
    """Return the mean of ``exp(-x / s)``."""
    if isinstance(p, Exponential):
        return p.rate * s / (p.rate * s + 1.0)
    if isinstance(p, Gamma):
        return (1.0 + 1.0 / (p.rate * s)) ** -p.concentration
    if isinstance(p, Gumbel):
        return f.exp(f.lgamma(1.0 + p.scale / s) - p.loc / s)
    if isinstance(p, Normal):
        return f.exp(0.5 * (p.scale / s) ** 2 - p.loc / s)
    return s * (f.exp(-p.low / s) - f.exp(-p.high / s)) / (p.high - p.low)  # Uniform


# --- any of several and one kind --------------------------------------------------------------------------------------


def _to_normal(p: Any, q: Normal) -> Tensor:
    second = p.variance + (p.mean - q.loc) ** 2
    return 0.5 * second / q.scale**2 + f.log(q.scale) + LOG_ROOT - p.entropy()


def _to_exponential(p: Any, q: Exponential) -> Tensor:
    return q.rate * p.mean - f.log(q.rate) - p.entropy()


def _to_gamma(p: Any, q: Gamma) -> Tensor:
    a, b = q.concentration, q.rate
    return f.lgamma(a) - a * f.log(b) - (a - 1.0) * _mean_log(p) + b * p.mean - p.entropy()


def _to_gumbel(p: Any, q: Gumbel) -> Tensor:
    return f.log(q.scale) + (p.mean - q.loc) / q.scale + f.exp(q.loc / q.scale) * _mean_exp(p, q.scale) - p.entropy()


def _to_pareto(p: Any, q: Pareto) -> Tensor:
    return (q.alpha + 1.0) * _mean_log(p) - f.log(q.alpha) - q.alpha * f.log(q.scale) - p.entropy()


def _where_finite(good: Any, divergence: Tensor) -> Tensor:
    """Return infinity where a value of the one is none of the other, or a mean is infinite."""
    return f.where(good, divergence, math.inf)


def _register_pairs() -> None:
    for kind in (Beta, Exponential, Gamma, Gumbel, Laplace, Uniform):
        register_kl(kind, Normal)(_to_normal)
    for kind in (Beta, Exponential, Gamma):
        register_kl(kind, Exponential)(_to_exponential)
        register_kl(kind, Gamma)(_to_gamma)
    for kind in (Exponential, Gamma, Gumbel, Normal, Uniform):
        register_kl(kind, Gumbel)(_to_gumbel)
    bounded = (Beta, Pareto, Uniform)
    for kinds, others in (
        ((Beta,), (Pareto,)),
        ((Exponential, Gamma), bounded),
        ((Gumbel, Laplace, Normal), (*bounded, Exponential, Gamma)),
        ((Pareto,), (Beta, Uniform)),
        ((Poisson,), (Bernoulli, Binomial)),
    ):
        for kind in kinds:
            for other in others:
                register_kl(kind, other)(_return_infinity)


def _return_infinity(p: Any, q: Any) -> Tensor:
    """Return infinity: values of the one are none of the other."""
    shape = np.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    return Tensor(np.full(shape, math.inf, p.mean.dtype))


_register_pairs()


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    return _where_finite(p.alpha > 2.0, _to_normal(p, q))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    return _where_finite(p.alpha > 1.0, _to_exponential(p, q))


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    return _where_finite(p.alpha > 1.0, _to_gamma(p, q))


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    return _where_finite(p.scale >= q.scale, _to_pareto(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _where_finite(p.low >= 0.0, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return _where_finite(p.low >= 0.0, _to_gamma(p, q))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    return _where_finite(p.low >= q.scale, _to_pareto(p, q))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    turned = Uniform(1.0 - p.high, 1.0 - p.low, validate_args=False)
    own = -q.log_norm() + (a - 1.0) * _mean_log(p) + (b - 1.0) * _mean_log(turned)
    return _where_finite((p.low >= 0.0) & (p.high <= 1.0), -p.entropy() - own)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = (q.low <= p.low) & (q.high >= p.high)
    return _where_finite(inside, f.log((q.high - q.low) / (p.high - p.low)))


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    return _where_finite((q.low <= 0.0) & (q.high >= 1.0), f.log(q.high - q.low) - p.entropy())


# --- two of one kind --------------------------------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio, shift = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + shift - 1.0 - f.log(ratio))


@register_kl(HalfNormal, HalfNormal)
def _half_normal_half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    shift = p.loc - q.loc
    z = shift / p.scale
    distance = math.sqrt(2.0 / math.pi) * p.scale * f.exp(-0.5 * z**2) + shift * f.erf(z / math.sqrt(2.0))
    return f.log(2.0 * q.scale) + distance / q.scale - p.entropy()


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, shift = p.scale / q.scale, f.abs(p.loc - q.loc)
    return ratio * f.exp(-shift / p.scale) + shift / q.scale - f.log(ratio) - 1.0


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    return f.log((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) - f.log(4.0 * p.scale * q.scale)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a = p.concentration
    mean_log = f.digamma(a) - f.digamma(a.sum(-1, keepdim=True))
    return q.log_norm() - p.log_norm() + ((a - q.concentration) * mean_log).sum(-1)


@register_kl(Beta, Beta)
def _beta_beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet_dirichlet(p.as_dirichlet(), q.as_dirichlet())


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    def compute_term(sign, of_p, of_q):
        term = of_p * (F.softplus(-sign * q.logits) - F.softplus(-sign * p.logits))
        return f.where(of_p == 0.0, 0.0, f.where(of_q == 0.0, math.inf, term))

    return compute_term(1.0, p.probs, q.probs) + compute_term(-1.0, 1.0 - p.probs, 1.0 - q.probs)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * f.log(q.rate) - p.entropy()


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    if not is_true(p.total_count.value >= q.total_count.value):
        raise NotImplementedError("there is no divergence of a Binomial and one of a larger total_count here")
    each = p.probs * (p.logits - q.logits) + F.softplus(q.logits) - F.softplus(p.logits)
    return _where_finite(p.total_count <= q.total_count, p.total_count * each)


@register_kl(Geometric, Geometric)
def _geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - f.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return f.xlogy(p.rate, p.rate) - f.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _categorical_categorical(p: Any, q: Any) -> Tensor:
    lowest = float(np.finfo(p.logits.dtype).min)
    terms = p.probs * (f.clamp(p.logits, lowest) - f.clamp(q.logits, lowest))
    return f.where(p.probs == 0.0, 0.0, _where_finite(q.probs != 0.0, terms)).sum(-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _vectors_vectors(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(f"the vectors have different lengths, {p.event_shape} and {q.event_shape}")
    n = p.loc.shape[-1]
    batch = np.broadcast_shapes(tuple(p.batch_shape), tuple(q.batch_shape))
    p, q = p.expand(batch), q.expand(batch)
    ratio = linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    squares = sum_last(ratio**2, 2) + q.squared_distance(q.loc - p.loc)
    return q.half_log_det() - p.half_log_det() + 0.5 * (squares - n)


# --- of others --------------------------------------------------------------------------------------------------------


@register_kl(Independent, Independent)
def _independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("there is no divergence of Independent distributions of different numbers of axes")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("there is no divergence of distributions that are transformed differently")
    inner = kl_divergence(p.base_dist, q.base_dist)
    return sum_last(inner, inner.ndim - len(p.batch_shape))
