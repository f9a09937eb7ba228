"""Entropies of distributions, and fits to samples, where formulas are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sc
import scipy.stats

from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.values import stop_gradient
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.optimize.brackets import brentq

_EULER = 0.5772156649015329


def _gamma(a: Any) -> Any:
    return a + sc.gammaln(a) + (1.0 - a) * sc.psi(a)


def _t(df: Any) -> Any:
    half = 0.5 * df
    return (half + 0.5) * (sc.psi(half + 0.5) - sc.psi(half)) + 0.5 * np.log(df) + sc.betaln(half, 0.5)


def _f(dfn: Any, dfd: Any) -> Any:
    a, b = 0.5 * dfn, 0.5 * dfd
    inner = (1.0 - a) * sc.psi(a) - (1.0 + b) * sc.psi(b) + (a + b) * sc.psi(a + b)
    return inner + sc.betaln(a, b) + np.log(dfd / dfn)


def _beta(a: Any, b: Any) -> Any:
    inner = (a - 1.0) * sc.psi(a) + (b - 1.0) * sc.psi(b) - (a + b - 2.0) * sc.psi(a + b)
    return sc.betaln(a, b) - inner


def _weibull(c: Any) -> Any:
    return _EULER * (1.0 - 1.0 / c) - np.log(c) + 1.0


def _pareto(b: Any) -> Any:
    return 1.0 + 1.0 / b - np.log(b)


def _log_uniform(a: Any, b: Any) -> Any:
    return 0.5 * (np.log(a) + np.log(b)) + np.log(np.log(b / a))


# By the name of a distribution: its entropy as a function of the shapes, at scale 1.
ENTROPIES: dict[str, Callable] = {
    "norm": lambda: 0.5 * math.log(2.0 * math.pi) + 0.5,
    "laplace": lambda: 1.0 + math.log(2.0),
    "logistic": lambda: 2.0,
    "gumbel_r": lambda: _EULER + 1.0,
    "gumbel_l": lambda: _EULER + 1.0,
    "expon": lambda: 1.0,
    "cauchy": lambda: math.log(4.0 * math.pi),
    "gamma": _gamma,
    "erlang": _gamma,
    "invgamma": lambda a: a + sc.gammaln(a) - (1.0 + a) * sc.psi(a),
    "chi2": lambda df: math.log(2.0) + _gamma(0.5 * df),
    "chi": lambda df: sc.gammaln(0.5 * df) + 0.5 * (df - math.log(2.0) - (df - 1.0) * sc.psi(0.5 * df)),
    "t": _t,
    "f": _f,
    "lognorm": lambda s: 0.5 * (1.0 + math.log(2.0 * math.pi)) + np.log(s),
    "weibull_min": _weibull,
    "weibull_max": _weibull,
    "invweibull": lambda c: 1.0 + _EULER + _EULER / c - np.log(c),
    "rayleigh": lambda: 0.5 * _EULER + 1.0 - 0.5 * math.log(2.0),
    "maxwell": lambda: _EULER + 0.5 * math.log(2.0 * math.pi) - 0.5,
    "halfnorm": lambda: 0.5 * math.log(0.5 * math.pi) + 0.5,
    "pareto": _pareto,
    "lomax": _pareto,
    "fisk": lambda c: 2.0 - np.log(c),
    "uniform": lambda: 0.0,
    "beta": _beta,
    "powerlaw": lambda a: 1.0 - 1.0 / a - np.log(a),
    "triang": lambda c: 0.5 - math.log(2.0) + 0.0 * c,
    "loguniform": _log_uniform,
    "reciprocal": _log_uniform,
}


def _spread(x: Any, loc: Any) -> Any:
    return np.sqrt(np.mean((x - loc) ** 2))


def _fit_normal(x: Any, loc: Any, scale: Any) -> tuple:
    loc = np.mean(x) if loc is None else loc
    return loc, _spread(x, loc) if scale is None else scale


def _fit_exponential(x: Any, loc: Any, scale: Any) -> tuple:
    loc = np.min(x) if loc is None else loc
    return loc, np.mean(x) - loc if scale is None else scale


def _fit_laplace(x: Any, loc: Any, scale: Any) -> tuple:
    loc = np.median(x) if loc is None else loc
    return loc, np.mean(np.abs(x - loc)) if scale is None else scale


def _fit_uniform(x: Any, loc: Any, scale: Any) -> tuple | None:
    if loc is not None or scale is not None:
        return None
    return np.min(x), np.ptp(x)


def _fit_half_normal(x: Any, loc: Any, scale: Any) -> tuple:
    loc = np.min(x) if loc is None else loc
    return loc, _spread(x, loc) if scale is None else scale


def _fit_log_normal(x: Any, loc: Any, scale: Any) -> tuple | None:
    if loc is None or scale is not None:
        return None
    logs = np.log(x - loc)
    middle = np.mean(logs)
    return _spread(logs, middle), loc, np.exp(middle)


def _fit_rayleigh(x: Any, loc: Any, scale: Any) -> tuple | None:
    return None if loc is None or scale is not None else (loc, _spread(x, loc) / math.sqrt(2.0))


def _fit_gamma(x: Any, loc: Any, scale: Any) -> tuple | None:
    """Return the shape where ``log(a) - psi(a)`` is that of the sample, between the ends that SciPy looks between."""
    if loc is None or scale is not None:
        return None
    x = x - loc
    mean = np.mean(x)
    wanted = np.log(mean) - np.mean(np.log(x))
    plain = stop_gradient(wanted)
    guess = (3.0 - plain + np.sqrt((plain - 3.0) ** 2 + 24.0 * plain)) / (12.0 * plain)
    a = brentq(lambda a, wanted: np.log(a) - sc.psi(a) - wanted, guess * 0.6, guess * 1.4, args=(wanted,))
    return a, loc, mean / a


_FITS: dict[str, Callable] = {
    "norm": _fit_normal, "expon": _fit_exponential, "laplace": _fit_laplace, "uniform": _fit_uniform,
    "halfnorm": _fit_half_normal, "lognorm": _fit_log_normal, "rayleigh": _fit_rayleigh, "gamma": _fit_gamma,
}  # fmt: skip


class Estimates:
    """The entropy of a distribution, and the parameters of the greatest likelihood."""

    name: str

    def entropy(self, *args, **named):
        """Return the differential entropy."""
        if self.name not in ENTROPIES:
            if not has_tracer((*args, *named.values())):
                return getattr(scipy.stats, self.name).entropy(*args, **named)
            raise DerivativeError(
                f"fad has no formula for the entropy of {self.name} in its parameters: integrate it, "
                f"fad.scipy.integrate.quad(lambda x: -{self.name}.pdf(x, ...) * {self.name}.logpdf(x, ...), low, high)"
            )
        shapes, loc, scale = self._parts(args, named)
        return self._mask_moment(ENTROPIES[self.name](*shapes), shapes, scale) + np.log(scale) + 0.0 * loc

    def fit(self, data, *args, floc=None, fscale=None, method="MLE", **named):
        """Return the parameters of the greatest likelihood of a sample, where a formula gives them.

        Raises NotImplementedError where SciPy searches for them: minimise ``nnlf`` instead.
        """
        if not has_tracer((data, args, floc, fscale, *named.values())):
            ends = {name: end for name, end in (("floc", floc), ("fscale", fscale)) if end is not None}
            return getattr(scipy.stats, self.name).fit(data, *args, method=method, **ends, **named)
        formula = _FITS.get(self.name)
        x = as_array(data)
        x = (x if x.dtype.kind == "f" else x.astype(float)).reshape(-1)
        if not np.all(np.isfinite(stop_gradient(x))):
            raise ValueError("The data contains non-finite values.")
        found = None
        if formula is not None and not named and str(method).lower() == "mle":
            if floc is not None and fscale is not None and self.name != "gamma":
                raise ValueError("All parameters fixed. There is nothing to optimize.")
            found = formula(x, floc, fscale)
        if found is None:
            raise NotImplementedError(
                f"fad has no formula for the fit of {self.name} to traced samples with these settings; "
                "norm, expon, laplace, uniform and halfnorm have one, and with floc gamma, lognorm and rayleigh: "
                f"minimise fad.scipy.stats.{self.name}.nnlf(parameters, data) with fad.scipy.optimize.minimize"
            )
        return found

    def _parts(self, args: tuple, named: dict) -> tuple:
        raise NotImplementedError

    def _mask_moment(self, value: Any, shapes: list, scale: Any) -> Any:
        return value
