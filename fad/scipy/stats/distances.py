"""What compares several samples or counts: the analysis of variance, chi-squared, distances between distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import registrar
from fad.scipy.special.build import number
from fad.scipy.stats.descriptive import _sample

register_function = registrar("stats")
_PAIR = np.array([1.0, 2.0])
_Oneway: Any = type(scipy.stats.f_oneway(_PAIR, _PAIR + 1.0))
_Divergence: Any = type(scipy.stats.chisquare(_PAIR))


def _groups(s):
    return [call(s.real(4), s.real(3), s.real(5)), call(s.real(4, 2), s.real(3, 2), axis=0)]


@register_function("f_oneway", complex=False, samples=_groups, raises="ValueError: A single sample was given.")
def f_oneway(*samples, axis=0, equal_var=True, nan_policy="propagate", keepdims=False):
    """Test whether the means of several samples are the same: the F of the analysis of variance, and its p-value.

    >>> import numpy as np, fad
    >>> f = lambda a: fad.scipy.stats.f_oneway(a, np.array([0.0, 1.0])).statistic
    >>> fad.grad(f)(np.array([2.0, 4.0])).round(6)
    array([ 6., -2.])
    """
    if len(samples) < 2:
        raise TypeError(f"at least two inputs are required; got {len(samples)}.")
    if not equal_var:
        raise NotImplementedError("f_oneway of traced values takes equal_var=True")
    groups = [_sample(a, nan_policy) for a in samples]
    dtype = np.result_type(*groups)
    groups = [a.astype(dtype) for a in groups]
    if axis is None:
        groups, axis = [a.reshape(-1) for a in groups], 0
    sizes = [a.shape[axis] for a in groups]
    means = [np.mean(a, axis=axis, keepdims=True) for a in groups]
    total, k = sum(sizes), len(groups)
    grand = sum(n * m for n, m in zip(sizes, means, strict=True)) / total
    between = sum(n * (m - grand) ** 2 for n, m in zip(sizes, means, strict=True)) / (k - 1)
    within = sum(
        np.sum((a - m) ** 2, axis=axis, keepdims=True) for a, m in zip(groups, means, strict=True)
    ) / (total - k)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = between / within
    statistic = statistic if keepdims else np.squeeze(statistic, axis=axis)
    pvalue = sc.fdtrc(dtype.type(k - 1), dtype.type(total - k), statistic)
    return _Oneway(statistic[()], pvalue[()])


@register_function(
    "chisquare", complex=False, raises="ValueError: The sums of the counts and of what is expected differ.",
    samples=lambda s: [call(s.positive(5)), call(s.positive(3, 4), axis=1, ddof=1)],
)  # fmt: skip
def chisquare(f_obs, f_exp=None, ddof=0, axis=0, *, sum_check=True, nan_policy="propagate", keepdims=False):
    """Test whether counts are those expected, by default the same for all: chi-squared, and its p-value.

    >>> fad.grad(lambda o: fad.scipy.stats.chisquare(o).statistic)(np.array([1.0, 2.0, 6.0])).round(6)
    array([-1.851852, -1.185185,  1.481481])
    """
    observed = _sample(f_obs, nan_policy)
    if axis is None:
        observed, axis = observed.reshape(-1), 0
        f_exp = None if f_exp is None else as_array(f_exp).reshape(-1)
    if f_exp is None:
        expected = np.mean(observed, axis=axis, keepdims=True)
    else:
        expected = _sample(f_exp, nan_policy)
        observed, expected = np.broadcast_arrays(observed, expected)
        sums = [number(np.sum(v, axis=axis)) for v in (observed, expected)]
        if sum_check and not np.all(np.abs(sums[0] - sums[1]) <= 1.5e-8 * np.minimum(*map(np.abs, sums))):
            raise ValueError("the sum of the observed frequencies must agree with that of the expected ones to 1.5e-8")
    terms = (observed - expected) ** 2 / expected
    statistic = np.sum(terms, axis=axis, keepdims=keepdims)
    pvalue = sc.chdtrc(statistic.dtype.type(observed.shape[axis] - 1 - ddof), statistic)
    return _Divergence(statistic[()], pvalue[()])


def _cumulative(values: Any, weights: Any, places: Any) -> Any:
    """Return the distribution function of a weighted sample at places, between which it is constant."""
    order = np.argsort(values)
    found = np.searchsorted(np.sort(values), places, "right")
    if weights is None:
        return found / values.shape[0]
    total = np.concatenate([np.zeros(1), np.cumsum(np.take(weights, order))])
    return np.take(total, found) / total[-1]


def _compare(u: Any, v: Any, u_weights: Any, v_weights: Any) -> tuple:
    """Return the difference of two distribution functions between neighbouring values, and how far these are apart."""
    samples = []
    for values, weights in ((u, u_weights), (v, v_weights)):
        values = as_array(values).astype(float)
        weights = None if weights is None else as_array(weights).astype(float)
        if values.ndim != 1 or not values.shape[0]:
            raise ValueError("Distribution can't be empty, and has one axis.")
        if weights is not None and weights.shape != values.shape:
            raise ValueError("values and weights of one distribution must be of the same size")
        samples.append((values, weights))
    together = np.sort(np.concatenate([values for values, _ in samples]))
    below = [_cumulative(values, weights, together[:-1]) for values, weights in samples]
    return below[0] - below[1], np.diff(together)


_NOTES: dict[str, Any] = {
    "complex": False,
    "samples": lambda s: [call(s.real(4), s.real(5)), call(s.real(3), s.real(3), s.positive(3), s.positive(3))],
    "raises": "ValueError: A sample is empty.",
}


@register_function("wasserstein_distance", **_NOTES)
def wasserstein_distance(u_values, v_values, u_weights=None, v_weights=None):
    """Return the area between the distribution functions of two samples: how far one is to be moved to the other.

    Where two values coincide it has a kink, and one of the slopes is returned.

    >>> fad.grad(lambda u: fad.scipy.stats.wasserstein_distance(u, np.array([0.0, 1.0])))(np.array([2.0, 4.0]))
    array([0.5, 0.5])
    """
    difference, widths = _compare(u_values, v_values, u_weights, v_weights)
    return np.sum(np.abs(difference) * widths)


@register_function("energy_distance", **_NOTES)
def energy_distance(u_values, v_values, u_weights=None, v_weights=None):
    """Return the energy distance of two samples: the root of twice the squared area between their distributions.

    >>> fad.grad(lambda u: fad.scipy.stats.energy_distance(u, np.array([0.0, 1.0])))(np.array([2.0, 4.0])).round(6)
    array([0.400892, 0.133631])
    """
    difference, widths = _compare(u_values, v_values, u_weights, v_weights)
    return np.sqrt(2.0 * np.sum(difference**2 * widths))


@register_function(
    "boxcox_llf", complex=False, samples=lambda s: [call(0.4, s.positive(5)), call(s.real(), s.positive(4, 2))]
)
def boxcox_llf(lmb, data, *, axis=0, keepdims=False, nan_policy="propagate"):
    """Return the logarithm of the likelihood of a sample under the transformation of Box and Cox, but for a constant.

    >>> fad.grad(fad.scipy.stats.boxcox_llf)(1.0, np.array([1.0, 2.0, 6.0])).round(6)
    np.float64(-1.129103)
    """
    data = _sample(data, nan_policy)
    if axis is None:
        data, axis = data.reshape(-1), 0
    logs = np.log(data)
    middle = np.exp(stop_gradient(np.mean(logs, axis=axis, keepdims=True)))  # which keeps powers from overflowing
    spread = np.var(sc.boxcox(data / middle, lmb), axis=axis, keepdims=True)
    n = data.shape[axis]
    log_spread = np.log(spread) + 2.0 * lmb * np.log(middle)
    value = (lmb - 1.0) * np.sum(logs, axis=axis, keepdims=True) - 0.5 * n * log_spread
    return value if keepdims else np.squeeze(value, axis=axis)[()]
