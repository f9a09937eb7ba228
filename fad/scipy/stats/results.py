"""SciPy's results as trees, and their intervals of traced values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.special as sc
import scipy.stats

from fad import tree
from fad.core.tracing.tracer import Tracer

_PAIR = np.array([0.0, 1.0])
Linregress: Any = type(scipy.stats.linregress(_PAIR, _PAIR))
Pearson: Any = type(scipy.stats.pearsonr(_PAIR, _PAIR))
Ttest: Any = type(scipy.stats.ttest_1samp(_PAIR, 0.0))
Significance: Any = type(scipy.stats.spearmanr(np.arange(3), np.arange(3)))
Describe: Any = type(scipy.stats.describe(_PAIR))
_SIGNS = {"less": -1, "two-sided": 0, "greater": 1}  # as SciPy's t-tests write the alternative


class ConfidenceInterval(NamedTuple):
    """The ends of an interval."""

    low: Any
    high: Any


def make_line(*values: Any) -> Any:
    """Return SciPy's result of a regression, of its five fields and the standard error of the intercept."""
    return Linregress(*values[:5], intercept_stderr=values[5])


def make_significance(statistic: Any, pvalue: Any) -> Any:
    """Return SciPy's result of a rank correlation."""
    result = Significance(statistic, pvalue)
    result.correlation = statistic
    return result


def make_correlation(statistic: Any, pvalue: Any, n: int, alternative: str) -> Any:
    """Return SciPy's result of a correlation of n pairs."""
    result = Pearson(statistic, pvalue, alternative=alternative, n=np.int64(n), x=None, y=None, axis=-1)
    if type(statistic) is Tracer:
        result.confidence_interval = lambda confidence_level=0.95, method=None: _find_fisher_interval(
            statistic, n, alternative, confidence_level, method
        )
    return result


def make_ttest(statistic: Any, pvalue: Any, df: Any, error: Any, estimate: Any, alternative: Any) -> Any:
    """Return SciPy's result of a t-test; the alternative is -1 for "less", 0 for "two-sided", 1 for "greater"."""
    result = Ttest.__new__(Ttest, statistic, pvalue)
    vars(result).update(
        df=df, _alternative=alternative, _standard_error=error, _estimate=estimate, _statistic_np=statistic,
        _dtype=getattr(statistic, "dtype", None), _xp=np,
    )  # fmt: skip
    if any(type(x) is Tracer for x in (df, error, estimate)):
        result.confidence_interval = lambda confidence_level=0.95: _find_student_interval(
            df, error, estimate, alternative, confidence_level
        )
    return result


def number_alternative(alternative: str) -> int:
    """Return an alternative as SciPy's t-tests write it."""
    return _SIGNS[alternative]


def _find_fisher_interval(r: Any, n: int, alternative: str, confidence_level: Any, method: Any) -> ConfidenceInterval:
    """Return the interval of a correlation by Fisher's transformation."""
    if method is not None:
        raise NotImplementedError("a correlation of traced values has its interval with method=None alone")
    one = np.ones_like(r)
    if n <= 3:
        return ConfidenceInterval(-one, one)
    level = 0.5 + 0.5 * confidence_level if alternative == "two-sided" else confidence_level
    z, reach = np.arctanh(r), sc.ndtri(level) / (n - 3) ** 0.5
    low = -one if alternative == "less" else np.tanh(z - reach)
    return ConfidenceInterval(low, one if alternative == "greater" else np.tanh(z + reach))


def _find_student_interval(
    df: Any, error: Any, estimate: Any, alternative: int, confidence_level: Any
) -> ConfidenceInterval:
    """Return the interval of a difference of means, or of a mean, by Student's t."""
    if confidence_level < 0 or confidence_level > 1:
        raise ValueError("`confidence_level` must be a number between 0 and 1.")
    reach = sc.stdtrit(df, confidence_level if alternative else 0.5 + 0.5 * confidence_level) * error
    low = np.full_like(reach, -np.inf) if alternative < 0 else estimate - reach
    return ConfidenceInterval(low, np.full_like(reach, np.inf) if alternative > 0 else estimate + reach)


tree.register_node(Linregress, lambda x: ((*x, x.intercept_stderr), None), lambda _, values: make_line(*values))
tree.register_node(Significance, lambda x: (tuple(x), None), lambda _, values: make_significance(*values))
tree.register_node(
    Pearson,
    lambda x: (tuple(x), (int(x._n), x._alternative)),
    lambda rest, values: make_correlation(*values, *rest),
)
tree.register_node(
    Ttest,
    lambda x: ((*x, x.df, x._standard_error, x._estimate), None if np.isnan(x._alternative) else int(x._alternative)),
    lambda sign, values: make_ttest(*[*values, np.nan if sign is None else sign]),
)
