"""Student's tests of means."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.samples import call
from fad.ops.arrangement.structural import as_array, normalize_axes
from fad.scipy.registration import registrar
from fad.scipy.special.build import may_hold
from fad.scipy.stats.descriptive import _count, _sample, as_rows, keep_nan
from fad.scipy.stats.relations import student_pvalue
from fad.scipy.stats.results import make_ttest, number_alternative

register_function = registrar("stats")


def _test(difference: Any, error: Any, df: Any, estimate: Any, alternative: str) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / error
    pvalue = student_pvalue(t, t.dtype.type(df) if type(df) is int else df, alternative)
    df = np.broadcast_to(df, np.shape(t))[()]
    missing = np.isnan(estimate)
    if may_hold(missing):  # of samples with a NaN SciPy gives no degrees of freedom
        df = np.where(missing, np.nan, df)[()]
    return make_ttest(t, pvalue, df, error, estimate, number_alternative(alternative))


def _one_sample(s):
    return [
        call(s.real(6), 0.3),
        call(s.real(3, 5), s.real(), axis=1),
        call(s.real(5, 2), s.real(2), alternative="less"),
        call(s.real(2, 3), 0.1, axis=None, alternative="greater", keepdims=True),
    ]


@register_function("ttest_1samp", complex=False, samples=_one_sample)
def ttest_1samp(a, popmean, axis=0, nan_policy="propagate", alternative="two-sided", *, keepdims=False):
    """Test whether the mean of a sample is `popmean`: Student's t, its p-value, degrees of freedom and an interval.

    >>> import numpy as np, fad
    >>> from fad.scipy.stats import ttest_1samp
    >>> fad.grad(lambda m: ttest_1samp(np.array([1.0, 2.0, 6.0]), m).statistic)(0.0).round(6)
    np.float64(-0.654654)
    """
    a = _sample(a, nan_policy)
    popmean = np.full_like(a, popmean, shape=()) if type(popmean) in (bool, int, float) else _sample(popmean)
    dtype = np.result_type(a, popmean)
    a, popmean = a.astype(dtype), popmean.astype(dtype)
    if popmean.ndim:
        popmean = popmean.reshape((1,) * (a.ndim - popmean.ndim) + popmean.shape)
        if any(popmean.shape[i] != 1 for i in normalize_axes(axis, a.ndim)):
            raise ValueError("`popmean.shape[axis]` must equal 1.")
        popmean = popmean if keepdims else np.squeeze(popmean, axis=axis)
    n = _count(a, axis)
    mean = np.mean(a, axis=axis, keepdims=keepdims)
    error = np.sqrt(np.var(a, axis=axis, ddof=1, keepdims=keepdims) / n)
    return _test(mean - popmean, error, n - 1, mean, alternative)


@register_function(
    "ttest_rel", complex=False, samples=lambda s: [call(s.real(6), s.real(6)), call(s.real(2, 5), s.real(2, 5), axis=1)]
)
def ttest_rel(a, b, axis=0, nan_policy="propagate", alternative="two-sided", *, keepdims=False):
    """Test whether the mean difference of pairs is 0: `ttest_1samp` of the differences.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.ttest_rel(np.array([1.0, 2.0, 4.0]), np.array([0.0, 2.0, 2.0])).statistic.round(6)
    np.float64(1.732051)
    """
    a, b = _sample(a, nan_policy), _sample(b, nan_policy)
    if a.shape != b.shape and (axis is None or a.shape[axis] != b.shape[axis]):
        raise ValueError("unequal length arrays")
    return ttest_1samp(a - b, 0.0, axis, nan_policy, alternative, keepdims=keepdims)


def _trim(a: Any, trim: float, axis: Any) -> tuple:
    """Return the winsorized variance, the mean and the number of what is left after the ends are cut."""
    rows = np.sort(as_rows(a, axis), axis=-1)
    n = rows.shape[-1]
    cut = int(n * trim)
    inner = rows[..., cut : n - cut]
    ends = [np.repeat(inner[..., i : i + 1 or None], cut, axis=-1) for i in (0, -1)]
    whole = np.concatenate([ends[0], inner, ends[1]], axis=-1)
    found = np.var(whole, axis=-1, ddof=2 * cut + 1), np.mean(inner, axis=-1)
    return *[keep_nan(v, rows) for v in found], n - 2 * cut


def _two_samples(s):
    return [
        call(s.real(6), s.real(4)),
        call(s.real(3, 5), s.real(3, 4), axis=1, equal_var=False),
        call(s.real(5, 2), s.real(4, 2), alternative="less"),
        call(s.real(2, 3), s.real(5), axis=None, alternative="greater"),
        call(s.real(9), s.real(7), trim=0.2, equal_var=False),
    ]


@register_function("ttest_ind", complex=False, samples=_two_samples, raises="ValueError: `trim` is not in [0, 0.5).")
def ttest_ind(
    a, b, *, axis=0, equal_var=True, nan_policy="propagate", alternative="two-sided", trim=0, method=None,
    keepdims=False,
):  # fmt: skip
    """Test whether the means of two samples are the same: Student's t, Welch's without equal variances, or Yuen's.

    Yuen's, with `trim`, leaves out the ends of the sorted samples.

    >>> import numpy as np, fad
    >>> from fad.scipy.stats import ttest_ind
    >>> fad.grad(lambda a: ttest_ind(a, np.array([0.0, 1.0])).statistic)(np.array([2.0, 4.0])).round(6)
    array([ 1.341641, -0.447214])
    """
    if not 0 <= trim < 0.5:
        raise ValueError("Trimming percentage should be 0 <= `trim` < .5.")
    if method is not None:
        raise NotImplementedError("ttest_ind of traced values takes method=None: the others draw random numbers")
    a, b = _sample(a, nan_policy), _sample(b, nan_policy)
    dtype = np.result_type(a, b)
    a, b = as_array(a).astype(dtype), as_array(b).astype(dtype)
    if axis is None:
        a, b, axis = a.reshape(-1), b.reshape(-1), 0
    if trim == 0:
        parts = [(_variance(v, axis), np.mean(v, axis=axis), _count(v, axis)) for v in (a, b)]
    else:
        parts = [_trim(v, trim, axis) for v in (a, b)]
    (v1, m1, n1), (v2, m2, n2) = [(v, m, dtype.type(n)) for v, m, n in parts]  # 0 elements give NaN
    if equal_var:
        df: Any = m1.dtype.type(n1 + n2 - 2.0)
        shared = ((n1 - 1) * v1 + (n2 - 1) * v2) / df
        error = np.sqrt(shared * (1.0 / n1 + 1.0 / n2))
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            df = (v1 / n1 + v2 / n2) ** 2 / ((v1 / n1) ** 2 / (n1 - 1) + (v2 / n2) ** 2 / (n2 - 1))
        df = np.where(np.isnan(df), 1.0, df)
        error = np.sqrt(v1 / n1 + v2 / n2)
    if keepdims:
        m1, m2, error = (np.expand_dims(v, axis) for v in (m1, m2, error))
        df = np.expand_dims(df, axis) if np.ndim(df) else df
    return _test(m1 - m2, error, df, m1 - m2, alternative)


def _variance(a: Any, axis: Any) -> Any:
    """Return the variance, and 0 of samples of one element, of which the other sample's is that of both."""
    return np.var(a, axis=axis, ddof=1) if _count(a, axis) != 1 else np.mean(a, axis=axis) * 0.0
