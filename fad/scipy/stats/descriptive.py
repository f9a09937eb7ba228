"""What describes samples: moments, means of several kinds, scores and entropy.

The formulas are SciPy's. Samples with NaN give NaN (``nan_policy="propagate"``); the other policies count and leave out
elements, which has no derivative, and are refused for traced values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.core.primitives.samples import call
from fad.errors import MissingRuleError
from fad.ops.arrangement.structural import as_array, normalize_axes
from fad.scipy.registration import registrar
from fad.scipy.special import entr, rel_entr
from fad.scipy.special.build import may_hold
from fad.scipy.stats.results import Describe

register_function = registrar("stats")


def _sample(a: Any, nan_policy: str = "propagate") -> Any:
    if nan_policy != "propagate":
        raise MissingRuleError(f"nan_policy={nan_policy!r} takes plain samples alone: leave out NaNs before")
    a = as_array(a)
    return a if a.dtype.kind in "fc" else a.astype(float)


def _count(a: Any, axis: Any) -> int:
    """Return how many elements each sample has along an axis, several, or all."""
    return a.size // max(1, np.mean(np.zeros(a.shape), axis=axis).size) if a.size else 0


def as_rows(a: Any, axis: Any) -> Any:
    """Return samples along the last axis: those of one axis, of several, or of all."""
    axes = normalize_axes(axis, a.ndim)
    rest = tuple(i for i in range(a.ndim) if i not in axes)
    a = np.transpose(a, rest + axes)
    return a.reshape((*a.shape[: len(rest)], math.prod(a.shape[len(rest) :])))


def keep_nan(y: Any, rows: Any) -> Any:
    """Return what was found of sorted rows, and NaN of those that hold one, though it was cut off with the largest."""
    missing = np.any(np.isnan(rows), axis=-1)
    return np.where(missing, np.nan, y)[()] if may_hold(missing) else y


def _keep(y: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    """Return results of rows with axes of length 1 where those of the samples were."""
    return np.expand_dims(y, normalize_axes(axis, a.ndim)) if keepdims else y


def _central(a: Any, order: int, axis: Any, keepdims: bool) -> Any:
    return np.mean((a - np.mean(a, axis=axis, keepdims=True)) ** order, axis=axis, keepdims=keepdims)


def _over_variance(a: Any, order: int, power: float, axis: Any, keepdims: bool) -> Any:
    """Return a moment over a power of the variance; NaN where that is nothing but rounding."""
    m2, m = _central(a, 2, axis, keepdims), np.mean(a, axis=axis, keepdims=keepdims)
    constant = m2 <= (np.finfo(a.dtype).eps * m) ** 2
    return _central(a, order, axis, keepdims) / np.where(constant, np.nan, m2) ** power


def _along(s):
    return [call(s.real(7)), call(s.real(5, 3)), call(s.real(2, 6), axis=1), call(s.real(3, 4), axis=None)]


def _positive_along(s):
    return [call(s.positive(7)), call(s.positive(5, 3)), call(s.positive(2, 6), axis=1)]


@register_function(
    "moment", complex=False, samples=lambda s: [*_along(s), call(s.real(6), order=3), call(s.real(6), 2, center=0.3)]
)
def moment(a, order=1, axis=0, nan_policy="propagate", *, center=None, keepdims=False):
    """Return a moment of samples about their mean, or about `center`.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.moment(np.array([1.0, 2.0, 3.0]), 2).round(6)
    np.float64(0.666667)
    """
    a = _sample(a, nan_policy)
    if np.ndim(order):
        return np.stack([moment(a, k, axis, center=center, keepdims=keepdims) for k in order])
    if order == 1 and center is None:
        return np.mean(np.zeros_like(a), axis=axis, keepdims=keepdims)
    if center is None:
        return _central(a, order, axis, keepdims)
    return np.mean((a - center) ** order, axis=axis, keepdims=keepdims)


@register_function("skew", complex=False, samples=lambda s: [*_along(s), call(s.real(6), bias=False)])
def skew(a, axis=0, bias=True, nan_policy="propagate", *, keepdims=False):
    """Return the skewness of samples: the third moment over the variance to the power 3/2.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.skew(np.array([1.0, 2.0, 6.0])).round(6)
    np.float64(0.59517)
    """
    a = _sample(a, nan_policy)
    n = _count(a, axis)
    found = _over_variance(a, 3, 1.5, axis, keepdims)
    return found if bias or n <= 2 else found * (((n - 1.0) * n) ** 0.5 / (n - 2.0))


def _kurtosis_samples(s):
    return [*_along(s), call(s.real(6), bias=False), call(s.real(6), fisher=False)]


@register_function("kurtosis", complex=False, samples=_kurtosis_samples)
def kurtosis(a, axis=0, fisher=True, bias=True, nan_policy="propagate", *, keepdims=False):
    """Return the kurtosis of samples: the fourth moment over the squared variance, less 3 by Fisher's definition.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.kurtosis(np.array([1.0, 2.0, 6.0, 7.0])).round(6)
    np.float64(-1.852071)
    """
    a = _sample(a, nan_policy)
    n = _count(a, axis)
    found = _over_variance(a, 4, 2.0, axis, keepdims)
    if not bias and n > 3:
        found = 1.0 / (n - 2) / (n - 3) * ((n**2 - 1.0) * found - 3 * (n - 1) ** 2.0) + 3.0
    return found - 3 if fisher else found


@register_function("sem", samples=lambda s: [*_along(s), call(s.real(6), ddof=0)])
def sem(a, axis=0, ddof=1, nan_policy="propagate", *, keepdims=False):
    """Return the standard error of the mean of samples.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.sem(np.array([1.0, 2.0, 6.0])).round(6)
    np.float64(1.527525)
    """
    a = _sample(a, nan_policy)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / float(_count(a, axis)) ** 0.5


@register_function("variation", samples=lambda s: [*_positive_along(s), call(s.positive(6), ddof=1)])
def variation(a, axis=0, nan_policy="propagate", ddof=0, *, keepdims=False):
    """Return the coefficient of variation of samples: the standard deviation over the mean.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.variation(np.array([1.0, 2.0, 3.0])).round(6)
    np.float64(0.408248)
    """
    a = _sample(a, nan_policy)
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / np.mean(a, axis=axis, keepdims=keepdims)


@register_function("zscore", samples=lambda s: [*_along(s), call(s.real(6), ddof=1)])
def zscore(a, axis=0, ddof=0, nan_policy="propagate"):
    """Return the elements of samples less their mean, over their standard deviation.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.zscore(np.array([1.0, 2.0, 3.0])).round(6)
    array([-1.224745,  0.      ,  1.224745])
    """
    return zmap(a, a, axis, ddof, nan_policy)


@register_function("zmap", samples=lambda s: [call(s.real(4), s.real(6)), call(s.real(3), s.real(2, 5), axis=None)])
def zmap(scores, compare, axis=0, ddof=0, nan_policy="propagate"):
    """Return scores less the mean of the samples `compare`, over the standard deviation of these.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.zmap(np.array([4.0]), np.array([1.0, 2.0, 3.0])).round(6)
    array([2.44949])
    """
    scores, compare = _sample(scores, nan_policy), _sample(compare, nan_policy)
    first = compare.reshape(-1)[:1].reshape((1,) * compare.ndim) if axis is None else np.take(compare, [0], axis=axis)
    constant = np.all(compare == first, axis=axis, keepdims=True)
    spread = np.where(constant, np.nan, np.std(compare, axis=axis, ddof=ddof, keepdims=True))
    return (scores - np.mean(compare, axis=axis, keepdims=True)) / spread


def _mean_samples(s):
    return [*_positive_along(s), call(s.positive(4), weights=s.positive(4))]


@register_function("gmean", samples=_mean_samples)
def gmean(a, axis=0, dtype=None, weights=None, *, nan_policy="propagate", keepdims=False):
    """Return the geometric mean of positive samples.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.gmean(np.array([1.0, 4.0])).round(6)
    np.float64(2.0)
    """
    a = _sample(a, nan_policy)
    a = a if dtype is None else a.astype(dtype)
    return np.exp(np.average(np.log(a), axis, weights, keepdims=keepdims))


@register_function("hmean", samples=_mean_samples)
def hmean(a, axis=0, dtype=None, *, weights=None, nan_policy="propagate", keepdims=False):
    """Return the harmonic mean of positive samples.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.hmean(np.array([1.0, 4.0])).round(6)
    np.float64(1.6)
    """
    return pmean(a, -1, axis=axis, dtype=dtype, weights=weights, nan_policy=nan_policy, keepdims=keepdims)


@register_function("pmean", samples=lambda s: [call(s.positive(5), 3), call(s.positive(2, 4), 0.5, axis=1)])
def pmean(a, p, *, axis=0, dtype=None, weights=None, nan_policy="propagate", keepdims=False):
    """Return the mean of positive samples by the power p: the geometric one for 0.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.pmean(np.array([1.0, 7.0]), 2).round(6)
    np.float64(5.0)
    """
    if p == 0:
        return gmean(a, axis, dtype, weights, nan_policy=nan_policy, keepdims=keepdims)
    a = _sample(a, nan_policy)
    a = a if dtype is None else a.astype(dtype)
    return np.average(a ** float(p), axis, weights, keepdims=keepdims) ** (1.0 / p)


@register_function(
    "entropy",
    samples=lambda s: [*_positive_along(s), call(s.positive(5), s.positive(5)), call(s.positive(5), base=2.0)],
)
def entropy(pk, qk=None, base=None, axis=0, *, nan_policy="propagate", keepdims=False):
    """Return the entropy of a distribution, or its relative entropy to another; both are scaled to the sum 1.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.entropy(np.array([1.0, 1.0]), base=2)
    np.float64(1.0)
    """
    pk = _sample(pk, nan_policy)
    pk = pk / np.sum(pk, axis=axis, keepdims=True)
    if qk is None:
        found = np.sum(entr(pk), axis=axis, keepdims=keepdims)
    else:
        qk = _sample(qk, nan_policy)
        found = np.sum(rel_entr(pk, qk / np.sum(qk, axis=axis, keepdims=True)), axis=axis, keepdims=keepdims)
    return found if base is None else found / float(np.log(base))


# --- robust ones ----------------------------------------------------------------------------------------------------


@register_function(
    "median_abs_deviation",
    complex=False,
    samples=lambda s: [call(s.real(7)), call(s.real(5, 3)), call(s.real(3, 4), axis=None, scale="normal")],
)
def median_abs_deviation(x, axis=0, center=None, scale=1.0, nan_policy="propagate", *, keepdims=False):
    """Return the median distance of samples from their median, or from what `center` finds.

    >>> import numpy as np, fad
    >>> fad.grad(fad.scipy.stats.median_abs_deviation)(np.array([0.0, 1.0, 3.0, 7.0, 8.0]))
    array([-1.,  0.,  1.,  0.,  0.])
    """
    center = np.median if center is None else center
    if not callable(center):
        raise TypeError(f"The argument 'center' must be callable. The given value {center!r} is not callable.")
    if isinstance(scale, str):
        if scale.lower() != "normal":
            raise ValueError(f"{scale} is not a valid scale value.")
        scale = 0.6744897501960817  # ndtri(0.75), as SciPy writes it
    x = _sample(x, nan_policy)
    rows = as_rows(x, axis)
    middle = np.expand_dims(center(rows, axis=-1), -1)
    return _keep(np.median(np.abs(rows - middle), axis=-1) / scale, x, axis, keepdims)


_NORMAL_IQR = 1.3489795003921634  # the interquartile range of the normal distribution


@register_function(
    "iqr",
    complex=False,
    samples=lambda s: [
        call(s.real(7)),
        call(s.real(5, 3), axis=0, scale="normal"),
        call(s.real(3, 4), axis=1, rng=(10, 80), keepdims=True),
    ],
)
def iqr(x, axis=None, rng=(25, 75), scale=1.0, nan_policy="propagate", interpolation="linear", keepdims=False):
    """Return the distance between two percentiles of samples, of the quartiles by default.

    >>> import numpy as np, fad
    >>> fad.grad(fad.scipy.stats.iqr)(np.array([0.0, 1.0, 3.0, 7.0, 8.0]))
    array([ 0., -1.,  0.,  1.,  0.])
    """
    if isinstance(scale, str):
        if scale.lower() != "normal":
            raise ValueError(f"{scale} not a valid scale for `iqr`")
        scale = _NORMAL_IQR
    if len(rng) != 2:
        raise TypeError("`rng` must be a two element sequence.")
    if np.isnan(rng).any():
        raise ValueError("`rng` must not contain NaNs.")
    low, high = (r / 100 for r in sorted(rng))
    if low < 0 or high > 1:
        raise ValueError("Elements of `rng` must be in the range [0, 100].")
    x = _sample(x, nan_policy)
    rows = as_rows(x, axis)
    if not rows.shape[-1]:
        return _keep(np.full_like(rows, np.nan, shape=rows.shape[:-1])[()], x, axis, keepdims)
    ends = np.quantile(rows, [low, high], axis=-1, method=interpolation).astype(x.dtype)
    found = ends[1] - ends[0]
    return _keep(found if isinstance(scale, float) and scale == 1.0 else found / scale, x, axis, keepdims)


@register_function(
    "scoreatpercentile",
    complex=False,
    samples=lambda s: [
        call(s.real(7), 30.0),
        call(s.real(5, 3), [10, 50], axis=0),
        call(s.real(6), 30, (-10.0, 10.0), "lower"),
    ],
    raises="ValueError: A percentile is none, or the method is unknown.",
)
def scoreatpercentile(a, per, limit=(), interpolation_method="fraction", axis=None):
    """Return percentiles of samples, of those between two limits if these are given.

    >>> import numpy as np, fad
    >>> fad.grad(fad.scipy.stats.scoreatpercentile)(np.array([0.0, 1.0, 3.0]), 75)
    array([0. , 0.5, 0.5])
    """
    a = as_array(a)
    if not a.size:
        return np.full(np.shape(per), np.nan)[()]
    if limit:
        a = a[(limit[0] <= a) & (a <= limit[1])]
    a = np.sort(a, axis=axis) * np.float64(1.0)  # SciPy's weights are in double precision
    along = 0 if axis is None else axis
    if not np.isscalar(per):
        return np.stack([_find_score(a, p, interpolation_method, along) for p in per])
    return _find_score(a, per, interpolation_method, along)


def _find_score(a: Any, per: Any, method: str, axis: int) -> Any:
    """Return a percentile of sorted samples."""
    if not 0 <= per <= 100:
        raise ValueError("percentile must be in the range [0, 100]")
    at = per / 100.0 * (a.shape[axis] - 1)
    if at % 1 and method not in ("lower", "higher", "fraction"):
        raise ValueError("interpolation_method can only be 'fraction', 'lower' or 'higher'")
    at = math.floor(at) if method == "lower" else math.ceil(at) if method == "higher" else at
    low = np.take(a, int(at), axis=axis)
    return low if at == int(at) else low * (int(at) + 1 - at) + np.take(a, int(at) + 1, axis=axis) * (at - int(at))


@register_function(
    "trim_mean",
    complex=False,
    samples=lambda s: [call(s.real(7), 0.2), call(s.real(5, 3), 0.3), call(s.real(3, 4), 0.1, axis=None)],
    raises="ValueError: More than half is cut on each side.",
)
def trim_mean(a, proportiontocut, axis=0, *, nan_policy="propagate", keepdims=False):
    """Return the mean of what is left of samples after a part of the smallest and of the largest is cut.

    >>> import numpy as np, fad
    >>> fad.grad(fad.scipy.stats.trim_mean)(np.array([0.0, 9.0, 1.0, 2.0]), 0.25)
    array([0. , 0. , 0.5, 0.5])
    """
    a = _sample(a, nan_policy)
    rows = as_rows(a, axis)
    n = rows.shape[-1]
    cut = int(proportiontocut * n)
    if cut > n - cut:
        raise ValueError("Proportion too big.")
    return _keep(keep_nan(np.mean(np.sort(rows, axis=-1)[..., cut : n - cut], axis=-1), rows), a, axis, keepdims)


@register_function(
    "describe", complex=False, samples=lambda s: [call(s.real(7)), call(s.real(5, 3), axis=1, ddof=0, bias=False)]
)
def describe(a, axis=0, ddof=1, bias=True, nan_policy="propagate"):
    """Return the number, the ends, the mean, the variance, the skewness and the kurtosis of samples.

    >>> import numpy as np, fad
    >>> fad.grad(lambda a: fad.scipy.stats.describe(a).variance)(np.array([1.0, 2.0, 6.0]))
    array([-2., -1.,  3.])
    """
    given = as_array(a)
    a = _sample(a, nan_policy)
    if axis is None:
        given, a, axis = given.reshape(-1), a.reshape(-1), 0
    if not a.size:
        raise ValueError("The input must not be empty.")
    moments = np.mean(a, axis=axis), np.var(a, axis=axis, ddof=ddof)
    ends = np.min(given, axis=axis), np.max(given, axis=axis)
    shape = skew(a, axis, bias), kurtosis(a, axis, bias=bias)
    return Describe(np.int64(a.shape[axis]), ends, *moments, *shape)


# --- of the logarithms ----------------------------------------------------------------------------------------------


@register_function("gstd", complex=False, samples=_positive_along)
def gstd(a, axis=0, ddof=1, *, keepdims=False, nan_policy="propagate"):
    """Return the geometric standard deviation of positive samples: exp of the standard deviation of the logarithms.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.gstd(np.array([1.0, 2.0, 4.0])).round(6)
    np.float64(2.0)
    """
    return np.exp(np.std(np.log(_sample(a, nan_policy)), axis=axis, ddof=ddof, keepdims=keepdims))


@register_function("gzscore", complex=False, samples=lambda s: [call(s.positive(6)), call(s.positive(3, 4), axis=1)])
def gzscore(a, *, axis=0, ddof=0, nan_policy="propagate"):
    """Return the scores (`zscore`) of the logarithms of positive samples.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.gzscore(np.array([1.0, 2.0, 4.0])).round(6)
    array([-1.224745,  0.      ,  1.224745])
    """
    return zscore(np.log(_sample(a, nan_policy)), axis, ddof, nan_policy)
