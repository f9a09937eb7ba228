"""How two samples go together: a line through points, and correlations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from fad.core.primitives.samples import call
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.ops.places.taking import searchsorted
from fad.scipy.registration import registrar
from fad.scipy.special.build import may_hold, number
from fad.scipy.stats.descriptive import _sample
from fad.scipy.stats.results import make_correlation, make_line, make_significance
from fad.scipy.versions import SINCE_1_18

register_function = registrar("stats")
_TINY = 1.0e-20  # SciPy's


def find_pvalue(alternative: str, below: Any, above: Any, statistic: Any, symmetric: bool = True) -> Any:
    """Return the probability of a statistic as far out, from the functions ``below(t)`` and ``above(t)``."""
    if alternative == "less":
        return below(statistic)
    if alternative == "greater":
        return above(statistic)
    if alternative != "two-sided":
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    return 2 * above(np.abs(statistic))


def student_pvalue(t: Any, df: Any, alternative: str) -> Any:
    """Return the probability of a t statistic as far out."""
    return find_pvalue(alternative, lambda t: sc.stdtr(df, t), lambda t: sc.stdtr(df, -t), t)


def root(x: Any) -> Any:
    """Return the square root of what is not negative, with the derivative 0 at 0, the least of its subgradients."""
    gone = x <= 0
    return np.where(gone, 0.0, np.sqrt(np.where(gone, 1.0, x)))[()]


def _line_samples(s):
    return [
        call(s.real(6), s.real(6)),
        call(s.real(5), s.real(5), "greater"),
        call(s.real(5), s.real(5), alternative="less"),
    ]


@register_function(
    "linregress", complex=False, rounding="single", samples=_line_samples, raises="ValueError: All x are the same."
)
def linregress(x, y, alternative="two-sided"):
    """Return the line of least squares through points: slope, intercept, correlation, p-value and standard errors.

    At points on a line the standard errors, which have a kink there, have the derivative 0.

    >>> import numpy as np, fad
    >>> from fad.scipy.stats import linregress
    >>> fad.grad(lambda y: linregress(np.array([0.0, 1.0, 2.0]), y).slope)(np.array([0.0, 1.0, 5.0]))
    array([-0.5,  0. ,  0.5])
    """
    x, y = (_sample(v) for v in (x, y))
    if x.size == 0 or y.size == 0:
        raise ValueError("Inputs must not be empty.")
    n = x.shape[0]
    if n > 1 and not SINCE_1_18 and np.all(number(np.max(x) == np.min(x))):
        raise ValueError("Cannot calculate a linear regression if all x values are identical")
    dtype = np.result_type(x, y) if SINCE_1_18 else np.dtype(float)
    moments: Any = np.cov(x, y, bias=True, dtype=dtype)
    xx, xy, yy = moments[0, 0], moments[0, 1], moments[1, 1]
    flat = (xx == 0) | (yy == 0)
    r = np.where(flat, np.where(xy == 0, np.nan, 0.0) + 0.0 * xy, xy / np.sqrt(np.where(flat, 1.0, xx * yy)))[()]
    r = np.clip(r, -1.0, 1.0).astype(dtype)
    slope = xy / xx
    intercept = np.mean(y) - slope * np.mean(x)
    if n == 2 and not SINCE_1_18:
        return make_line(slope, intercept, r, np.where(y[0] == y[1], 1.0, 0.0)[()], 0.0, 0.0)
    df = n - 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = r * np.sqrt(df / ((1.0 - r + _TINY) * (1.0 + r + _TINY)))
        error = root(np.divide((1 - r**2) * yy / xx, df))
        error_at_zero = error * np.sqrt(xx + np.mean(x) ** 2)
        pvalue = student_pvalue(t, df, alternative) if df else np.nan * r
    return make_line(slope, intercept, r, pvalue.astype(dtype), error, error_at_zero)


def _pair_samples(s):
    return [
        call(s.real(6), s.real(6)),
        call(s.real(3, 5), s.real(3, 5), axis=1),
        call(s.real(5, 2), s.real(5, 1), alternative="less"),
        call(s.real(2, 3), s.real(2, 3), axis=None, alternative="greater"),
        call(s.real(2), s.real(2)),
    ]


@register_function(
    "pearsonr", complex=False, samples=_pair_samples, raises="ValueError: There are less than two pairs."
)
def pearsonr(x, y, *, alternative="two-sided", method=None, axis=0):
    """Return Pearson's correlation of samples, and the probability of one as far from 0 in independent normal numbers.

    Parameters
    ----------
    x, y : array
        Samples, which broadcast beside `axis`.
    alternative : str
        Which correlations count as far: "two-sided", "less" or "greater".
    method : None
        Of the probability, as scipy.stats.pearsonr computes it by default.
    axis : int, optional
        Along which the samples lie; None takes all numbers of each array.

    Returns
    -------
    PearsonRResult
        With ``statistic`` and ``pvalue``, and ``confidence_interval(confidence_level)`` by Fisher's transformation.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.stats import pearsonr
    >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    >>> fad.grad(lambda y: pearsonr(x, y).statistic)(y).round(4)
    array([-0.0468,  0.0701, -0.0234])
    """
    if method is not None:
        raise NotImplementedError("pearsonr of traced values takes method=None: its other methods draw random numbers")
    x, y = (_sample(v) for v in (x, y))
    if "c" in (x.dtype.kind, y.dtype.kind):
        raise ValueError("This function does not support complex data")
    dtype = np.result_type(x, y)
    x, y = x.astype(dtype), y.astype(dtype)
    if axis is None:
        x, y, axis = x.reshape(-1), y.reshape(-1), -1
    ndim = max(x.ndim, y.ndim)
    x, y = (v.reshape((1,) * (ndim - v.ndim) + v.shape) for v in (x, y))
    axis = normalize_axis(axis, ndim)
    n = x.shape[axis]
    if y.shape[axis] != n:
        raise ValueError("`x` and `y` must have the same length along `axis`.")
    if n < 2:
        raise ValueError("`x` and `y` must have length at least 2.")
    x, y = (np.moveaxis(v, axis, -1) for v in (x, y))
    constant = [np.all(v == v[..., :1], axis=-1) for v in (x, y)]
    undefined = constant[0] | constant[1]
    if np.any(number(undefined)):
        text = "An input array is constant; the correlation coefficient is not defined."
        warnings.warn(scipy.stats.ConstantInputWarning(text), stacklevel=3)
        x, y = (np.where(c[..., None], np.nan, v) for c, v in zip(constant, (x, y), strict=True))
    # Scaled by the largest first, so that no square overflows
    x, y = (v - np.mean(v, axis=-1, keepdims=True) for v in (x, y))
    x, y = (v / np.max(np.abs(v), axis=-1, keepdims=True) for v in (x, y))
    x, y = (v / np.linalg.norm(v, axis=-1, keepdims=True) for v in (x, y))
    r = np.clip(np.sum(x * y, axis=-1), -1.0, 1.0)
    if n == 2:
        r = np.round(r)
        return make_correlation(r, np.where(np.isnan(r), np.nan, np.ones_like(r))[()], n, alternative)
    half = dtype.type(n / 2 - 1)
    below = lambda r: sc.betainc(half, half, (r + 1) / 2)
    above = lambda r: sc.betaincc(half, half, (r + 1) / 2)
    return make_correlation(r, find_pvalue(alternative, below, above, r), n, alternative)


def _count_ranks(a: Any, method: str) -> Any:
    """Return the ranks of the elements of a vector."""
    if method == "ordinal":
        return np.argsort(np.argsort(a, kind="stable"), kind="stable") + 1
    s = np.sort(a)
    low = searchsorted(s, a, "left")
    if method == "min":
        return low + 1
    if method == "dense":
        first = np.concatenate([np.zeros_like(s[:1], dtype=np.intp), (s[1:] != s[:-1]).astype(np.intp)])
        return np.cumsum(first)[low] + 1
    high = searchsorted(s, a, "right")
    return high if method == "max" else 0.5 * (low + high + 1)


def _rank_samples(s):
    return [call(s.real(6)), call(s.real(3, 4), axis=1), call(s.real(2, 3), "min"), call(s.real(4), method="dense")]


@register_function("rankdata", complex=False, flat=True, samples=_rank_samples)
def rankdata(a, method="average", *, axis=None, nan_policy="propagate"):
    """Return the ranks of elements among all, or along an axis, from 1 on; their derivative is 0.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.rankdata(np.array([0.3, 0.1, 0.3]))
    array([2.5, 1. , 2.5])
    """
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f'unknown method "{method}"')
    a = as_array(a) if nan_policy == "propagate" else _sample(a, nan_policy)
    if axis is None:
        a, axis = a.reshape(-1), -1
    a = np.moveaxis(a, axis, -1)
    rows = a.reshape((-1, a.shape[-1]))
    ranks = np.stack([_count_ranks(rows[i], method) for i in range(rows.shape[0])]) if a.size else rows
    if method == "average" or SINCE_1_18:
        ranks = ranks.astype(a.dtype if a.dtype.kind == "f" and SINCE_1_18 else float)
    if a.dtype.kind == "f":
        missing = np.any(np.isnan(rows), axis=-1, keepdims=True)
        if may_hold(missing):
            ranks = np.where(missing, np.nan, ranks)
    return np.moveaxis(ranks.reshape(a.shape), -1, axis)


@register_function(
    "spearmanr", complex=False, flat=True, samples=lambda s: [call(s.real(6), s.real(6)), call(s.real(5, 3))]
)
def spearmanr(a, b=None, axis=0, nan_policy="propagate", alternative="two-sided"):
    """Return Spearman's correlation, that of the ranks, and the probability of one as far out; their derivative is 0.

    >>> import numpy as np, fad
    >>> fad.scipy.stats.spearmanr(np.array([0.1, 0.3, 0.2]), np.array([1.0, 2.0, 3.0])).statistic.round(6)
    np.float64(0.5)
    """
    if axis is not None and axis > 1:
        raise ValueError(f"spearmanr only handles 1-D or 2-D arrays, supplied axis argument {axis}")
    a, *others = [_sample(v, nan_policy) for v in ((a,) if b is None else (a, b))]
    if axis is None:
        a, others, axis = a.reshape(-1), [v.reshape(-1) for v in others], 0
    if a.ndim > 2 or (a.ndim < 2 and b is None):
        raise ValueError("spearmanr takes two vectors, or a matrix of several variables")
    columns = [v.reshape((-1, 1)) if v.ndim == 1 else v if axis == 0 else v.T for v in (a, *others)]
    table = np.concatenate(columns, axis=1)
    n = table.shape[0]
    rs = np.corrcoef(rankdata(table, axis=0), rowvar=False)
    with np.errstate(divide="ignore"):
        t = rs * np.sqrt(np.maximum((n - 2) / ((rs + 1.0) * (1.0 - rs)), 0.0))
    pvalue = student_pvalue(t, n - 2, alternative)
    return make_significance(rs[1, 0], pvalue[1, 0]) if rs.shape == (2, 2) else make_significance(rs, pvalue)
