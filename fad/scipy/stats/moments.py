"""Means and variances of distributions in their standard form, and what follows from them and from quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc

from fad.errors import DerivativeError

_EULER = 0.5772156649015329


def _above(bound: float, formula: Callable, otherwise: float = np.inf) -> Callable:
    """Return a moment that is infinite where its first shape is not above a bound, or what SciPy gives there."""

    def moment(shape: Any, *others: Any) -> Any:
        there = shape > bound
        return np.where(there, formula(np.where(there, shape, bound + 1.0), *others), otherwise)

    return moment


def _variance(second: Callable, mean: Callable) -> Callable:
    return lambda *shapes: second(*shapes) - mean(*shapes) ** 2


def _weibull(c: Any, k: int = 1) -> Any:
    return sc.gamma(1.0 + k / c)


def _fisk(c: Any, k: int = 1) -> Any:
    return (k * math.pi / c) / np.sin(k * math.pi / c)


def _chi_mean(df: Any) -> Any:
    return math.sqrt(2.0) * np.exp(sc.gammaln(0.5 * df + 0.5) - sc.gammaln(0.5 * df))


def _nakagami_mean(nu: Any) -> Any:
    return np.exp(sc.gammaln(nu + 0.5) - sc.gammaln(nu)) / np.sqrt(nu)


def _skew(a: Any) -> Any:
    return a / np.sqrt(1.0 + a * a) * math.sqrt(2.0 / math.pi)


def _log_uniform(a: Any, b: Any, k: int = 1) -> Any:
    return (b**k - a**k) / (k * np.log(b / a))


def _f_mean(dfn: Any, dfd: Any) -> Any:
    return _above(2.0, lambda d: d / (d - 2.0))(dfd) + 0.0 * dfn


def _f_variance(dfn: Any, dfd: Any) -> Any:
    return _above(4.0, lambda d, n: 2.0 * d * d * (n + d - 2.0) / (n * (d - 2.0) ** 2 * (d - 4.0)))(dfd, dfn)


def _gamma_moments() -> tuple:
    return (lambda a: a), (lambda a: a)


# By the name of a distribution: its mean and its variance as functions of the shapes, at loc 0 and scale 1.
MOMENTS: dict[str, tuple[Callable, Callable]] = {
    "norm": (lambda: 0.0, lambda: 1.0),
    "t": (
        lambda df: np.where(df > 1.0, 0.0 * df, np.inf),
        lambda df: np.where(df > 1.0, _above(2.0, lambda d: d / (d - 2.0))(df), np.nan),
    ),
    "laplace": (lambda: 0.0, lambda: 2.0),
    "logistic": (lambda: 0.0, lambda: math.pi**2 / 3.0),
    "gumbel_r": (lambda: _EULER, lambda: math.pi**2 / 6.0),
    "gumbel_l": (lambda: -_EULER, lambda: math.pi**2 / 6.0),
    "expon": (lambda: 1.0, lambda: 1.0),
    "gamma": _gamma_moments(),
    "erlang": _gamma_moments(),
    "invgamma": (
        _above(1.0, lambda a: 1.0 / (a - 1.0)), _above(2.0, lambda a: 1.0 / ((a - 1.0) ** 2 * (a - 2.0))),
    ),
    "chi2": (lambda df: df, lambda df: 2.0 * df),
    "chi": (_chi_mean, lambda df: df - _chi_mean(df) ** 2),
    "f": (_f_mean, _f_variance),
    "lognorm": (lambda s: np.exp(0.5 * s * s), lambda s: np.expm1(s * s) * np.exp(s * s)),
    "weibull_min": (_weibull, _variance(lambda c: _weibull(c, 2), _weibull)),
    "weibull_max": (lambda c: -_weibull(c), _variance(lambda c: _weibull(c, 2), _weibull)),
    "invweibull": (  # SciPy's, which is no moment of a small shape
        lambda c: sc.gamma(1.0 - 1.0 / c), lambda c: sc.gamma(1.0 - 2.0 / c) - sc.gamma(1.0 - 1.0 / c) ** 2,
    ),
    "rayleigh": (lambda: math.sqrt(0.5 * math.pi), lambda: 2.0 - 0.5 * math.pi),
    "maxwell": (lambda: 2.0 * math.sqrt(2.0 / math.pi), lambda: 3.0 - 8.0 / math.pi),
    "halfnorm": (lambda: math.sqrt(2.0 / math.pi), lambda: 1.0 - 2.0 / math.pi),
    "pareto": (
        _above(1.0, lambda b: b / (b - 1.0)), _above(2.0, lambda b: b / ((b - 1.0) ** 2 * (b - 2.0))),
    ),
    "lomax": (
        _above(1.0, lambda c: 1.0 / (c - 1.0)), _above(2.0, lambda c: c / ((c - 1.0) ** 2 * (c - 2.0))),
    ),
    "fisk": (_above(1.0, _fisk, np.nan), _above(2.0, _variance(lambda c: _fisk(c, 2), _fisk), np.nan)),
    "uniform": (lambda: 0.5, lambda: 1.0 / 12.0),
    "beta": (lambda a, b: a / (a + b), lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1.0))),
    "powerlaw": (lambda a: a / (a + 1.0), lambda a: a / ((a + 2.0) * (a + 1.0) ** 2)),
    "triang": (lambda c: (c + 1.0) / 3.0, lambda c: (1.0 - c + c * c) / 18.0),
    "loguniform": (_log_uniform, _variance(lambda a, b: _log_uniform(a, b, 2), _log_uniform)),
    "reciprocal": (_log_uniform, _variance(lambda a, b: _log_uniform(a, b, 2), _log_uniform)),
    "exponnorm": (lambda K: K, lambda K: 1.0 + K * K),
    "invgauss": (lambda mu: mu, lambda mu: mu**3),
    "skewnorm": (_skew, lambda a: 1.0 - _skew(a) ** 2),
    "nakagami": (_nakagami_mean, lambda nu: 1.0 - _nakagami_mean(nu) ** 2),
    "poisson": (lambda mu: mu, lambda mu: mu),
    "binom": (lambda n, p: n * p, lambda n, p: n * p * (1.0 - p)),
    "bernoulli": (lambda p: p, lambda p: p * (1.0 - p)),
    "nbinom": (lambda n, p: n * (1.0 - p) / p, lambda n, p: n * (1.0 - p) / p**2),
    "geom": (lambda p: 1.0 / p, lambda p: (1.0 - p) / p**2),
}  # fmt: skip


# Those that have moments for large shapes alone.
HEAVY = frozenset({"f", "fisk", "invgamma", "invweibull", "lomax", "pareto", "t"})


class Summaries:
    """A distribution's mean, variance and standard deviation, by formulas in its parameters."""

    name: str

    def mean(self, *args, **named):
        """Return the mean."""
        value, scale, loc = self._moment(0, args, named)
        return value * scale + loc

    def var(self, *args, **named):
        """Return the variance."""
        value, scale, loc = self._moment(1, args, named)
        return value * scale * scale + 0.0 * loc

    def std(self, *args, **named):
        """Return the standard deviation."""
        return np.sqrt(self.var(*args, **named))

    def _moment(self, which: int, args: tuple, named: dict) -> tuple:
        if self.name not in MOMENTS:
            raise DerivativeError(
                f"fad has no formula for the moments of {self.name} in its parameters: integrate its density, "
                f"fad.scipy.integrate.quad(lambda x: x * {self.name}.pdf(x, ...), low, high)"
            )
        shapes, loc, scale = self._parts(args, named)
        return self._mask_moment(MOMENTS[self.name][which](*shapes), shapes, scale), scale, loc

    def _parts(self, args: tuple, named: dict) -> tuple:
        raise NotImplementedError

    def _mask_moment(self, value: Any, shapes: list, scale: Any) -> Any:
        return value
