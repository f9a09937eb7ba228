"""Statistics of orders, which are constant almost everywhere: Kendall's correlation, and the test of two samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats

from fad import tree
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import flat_on_host, registrar
from fad.scipy.stats.results import make_significance
from fad.scipy.versions import SINCE_1_18

register_function = registrar("stats")
Kstest: Any = type(scipy.stats.ks_2samp([0.0], [1.0]))


def _find_correlation(x: Any, y: Any, **settings: Any) -> Any:
    return np.array(tuple(scipy.stats.kendalltau(x, y, **settings)))


def _find_gap(x: Any, y: Any, **settings: Any) -> Any:
    found = scipy.stats.ks_2samp(x, y, **settings)
    where = np.flatnonzero(np.concatenate([x, y]) == found.statistic_location)
    return np.array([found.statistic, found.pvalue, found.statistic_sign, where[0] if where.size else 0], dtype=float)


_PAIR: Any = lambda s: [call(s.real(5), s.real(5), alternative="two-sided", method="asymptotic")]
_TWO: Any = lambda s: [call(s.real(5), s.real(4), alternative="two-sided", method="asymp")]
correlation_p = flat_on_host(
    "kendall", _find_correlation, _PAIR, "Kendall's correlation and the probability of one as far out.", complex=False
)
gap_p = flat_on_host(
    "gap", _find_gap, _TWO, "The largest gap between two distribution functions, its probability, sign and place.",
    complex=False,
)  # fmt: skip


def _samples(*xs: Any, axis: Any, nan_policy: str, keepdims: bool, axes: tuple) -> list:
    """Return samples along one axis."""
    if nan_policy not in ("propagate", "raise") or keepdims:
        raise NotImplementedError("traced samples take nan_policy='propagate' and keepdims=False here")
    found = [as_array(x) for x in xs]
    if axis not in axes or (axis is not None and any(x.ndim != 1 for x in found)):
        raise NotImplementedError("traced samples are vectors here: take fad.vmap over those of other axes")
    found = [(x if x.dtype.kind == "f" else x.astype(float)).reshape(-1) for x in found]
    if nan_policy == "raise" and any(np.any(np.isnan(x)) for x in found):
        raise ValueError("The input contains nan values")
    return found


@register_function("kendalltau", complex=False, flat=True, samples=lambda s: [
    call(s.real(6), s.real(6)), call(s.real(5), s.real(5), variant="c", alternative="less")])  # fmt: skip
def kendalltau(x, y, *, nan_policy="propagate", method="auto", variant="b", alternative="two-sided", axis=None,
               keepdims=False):  # fmt: skip
    """Return Kendall's correlation, that of orders, and the probability of one as far out; their derivative is 0.

    >>> fad.scipy.stats.kendalltau(np.array([0.1, 0.3, 0.2]), np.array([1.0, 2.0, 3.0])).statistic.round(6)
    np.float64(0.333333)
    """
    x, y = _samples(x, y, axis=axis, nan_policy=nan_policy, keepdims=keepdims, axes=(None, 0, -1))
    if x.shape != y.shape:
        raise ValueError("Array shapes are incompatible for broadcasting.")
    found = bind(correlation_p, x, y, method=method, variant=variant, alternative=alternative)
    return make_significance(found[0], found[1])


def _make_gap(statistic: Any, pvalue: Any, location: Any, sign: Any) -> Any:
    return Kstest(statistic, pvalue, statistic_location=location, statistic_sign=sign)


tree.register_node(
    Kstest, lambda x: ((*x, x.statistic_location, x.statistic_sign), None), lambda _, values: _make_gap(*values)
)


@register_function("ks_2samp", complex=False, samples=lambda s: [
    call(s.real(6), s.real(4)), call(s.real(5), s.real(6), "less")])  # fmt: skip
def ks_2samp(data1, data2, alternative="two-sided", method="auto", *, axis=0, nan_policy="propagate", keepdims=False):
    """Return the test of Kolmogorov and Smirnov of two samples.

    The statistic and its probability have the derivative 0, and the place of the largest gap follows its value.

    >>> fad.scipy.stats.ks_2samp(np.array([0.1, 0.3]), np.array([1.0, 2.0])).statistic
    np.float64(1.0)
    """
    x, y = _samples(data1, data2, axis=axis, nan_policy=nan_policy, keepdims=keepdims, axes=(0, -1, None))
    found = bind(gap_p, x, y, alternative=alternative, method=method)
    place = np.take(np.concatenate([x, y]), found[3].astype(np.intp))
    dtype = np.result_type(x, y) if SINCE_1_18 else np.dtype(float)
    return _make_gap(found[0].astype(dtype), found[1].astype(dtype), place, found[2].astype(np.int8))
