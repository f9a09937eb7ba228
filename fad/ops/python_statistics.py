"""Python's `statistics` of traced numbers, as `fad.ops.python_math` has its `math`.

Most of its functions are differentiated as they are written there. Those that compute with fractions, which lose the
derivative, stand for exact sums here, rounded before they are divided: the last bit may be another.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.core.archetypes import make_elementwise, one
from fad.core.tracer import Tracer, strong
from fad.core.views import unwrap
from fad.core.weak import is_weak
from fad.ops.python_functions import (
    enter,
    make_forward,
    of_scalars,
    stand_for_iterables,
    stand_for_operation,
)
from fad.ops.python_math import fsum, hypot, take_real


def _give_back(y: Any, xs: list) -> Any:
    """Return a result of the type of the data: a Python number, or one of NumPy's, whose dtype counts."""
    dtypes = [x.dtype for x in xs if isinstance(x, (Tracer, np.generic)) and not is_weak(unwrap(x))]
    return strong(y).astype(np.result_type(*dtypes)) if dtypes else y


def _mean(data: Iterable) -> Any:
    xs = list(data)
    return _give_back(fsum(xs) / len(xs), xs)


def _spread(name: str, root: bool, fewer: int) -> Callable:
    def spread(data: Iterable, xbar: Any = None) -> Any:
        xs = list(data)
        if len(xs) <= fewer:
            getattr(importlib.import_module("statistics"), name)([0.0] * len(xs))  # which raises
        centre = fsum(xs) / len(xs) if xbar is None else xbar
        apart = [x - centre for x in xs]
        if root:  # as a length, whose derivative where all are equal is zero
            return _give_back(hypot(*apart) / math.sqrt(len(xs) - fewer), xs)
        return _give_back(fsum([d * d for d in apart]) / (len(xs) - fewer), xs)

    return spread


def _harmonic_mean(data: Iterable, weights: Iterable | None = None) -> Any:
    xs = list(data)
    if any(x < 0 for x in xs):
        importlib.import_module("statistics").harmonic_mean([-1.0])  # which raises
    shares = [1] * len(xs) if weights is None else list(weights)
    return _give_back(fsum(shares) / fsum([w / x for w, x in zip(shares, xs, strict=True)]), xs)


def _mean_stdev(data: Iterable) -> tuple:
    """Of NormalDist.from_samples."""
    xs = list(data)
    return _mean(xs), _MADE["stdev"](xs)


def _of_population(spread: Callable) -> Callable:
    return lambda data, mu=None: spread(data, mu)


_MADE: dict[str, Callable] = {
    "mean": _mean, "variance": _spread("variance", False, 1), "stdev": _spread("stdev", True, 1),
    "pvariance": _of_population(_spread("pvariance", False, 0)),
    "pstdev": _of_population(_spread("pstdev", True, 0)), "harmonic_mean": _harmonic_mean,
    "_mean_stdev": _mean_stdev,
}  # fmt: skip
enter("statistics", _MADE, lambda name, original: stand_for_iterables(original, _MADE[name]))


def _quantile(p: float, mu: float, sigma: float) -> float:
    return importlib.import_module("statistics").NormalDist(mu, sigma).inv_cdf(p)


_inv_cdf = make_elementwise(
    "normal_quantile",
    make_forward(_quantile, np.vectorize(_quantile, otypes=[float])),
    (
        of_scalars(lambda z, _p, mu, sigma: sigma * math.sqrt(2 * math.pi) * np.exp(((z - mu) / sigma) ** 2 / 2)),
        one,
        of_scalars(lambda z, _p, mu, sigma: (z - mu) / sigma),
    ),
)
# The part of NormalDist.inv_cdf that is written in C.
enter("_statistics", ["_normal_dist_inv_cdf"], lambda _, original: stand_for_operation(original, _inv_cdf, take_real))
