"""Python's `statistics` of traced numbers, as `fad.ops.python.python_math` has its `math`.

Most of its functions are differentiated as they are written there. Those that compute with fractions, which lose the
derivative, stand for exact sums here, rounded before they are divided: the last bit may be another.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import make_elementwise, one
from fad.core.tracing.tracer import strong
from fad.ops.python.python_functions import (
    enter,
    leave,
    make_forward,
    of_scalars,
    stand_for_iterables,
    stand_for_operation,
)
from fad.ops.python.python_math import fsum, hypot, take_real


def _is_python_float(x: Any) -> bool:
    return isinstance(x, float) and not isinstance(x, np.generic)


def _divide(total: Any, count: Any, xs: list) -> Any:
    """Return a quotient as a number of the type of the data: Python's, which is whole if it can be, or NumPy's."""
    kinds = [x.dtype for x in xs if isinstance(x, np.generic)]
    if kinds:
        more = [1.0] if any(map(_is_python_float, xs)) else []
        return strong(total / count).astype(np.result_type(*kinds, *more))
    whole = all(isinstance(x, int) for x in xs) and total % count == 0
    return total // count if whole else total / count


def _add(xs: list) -> Any:
    """Return an exact sum: a whole number of whole ones."""
    return sum(xs) if all(isinstance(x, int) for x in xs) else leave(fsum(xs))


def _mean(data: Iterable) -> Any:
    xs = list(data)
    return _divide(_add(xs), len(xs), xs)


def _spread(name: str, root: bool, fewer: int) -> Callable:
    def spread(data: Iterable, xbar: Any = None) -> Any:
        xs = list(data)
        count = len(xs) - fewer
        if count <= 0:
            getattr(importlib.import_module("statistics"), name)([0.0] * len(xs))  # which raises
        centre = fsum(xs) / len(xs) if xbar is None else xbar
        if root:  # as a length, whose derivative where all are equal is zero
            return hypot(*[x - centre for x in xs]) / math.sqrt(count)
        if xbar is None and all(isinstance(x, int) for x in xs):  # the square sum of what is left, without a fraction
            return _divide(len(xs) * sum([x * x for x in xs]) - sum(xs) ** 2, count * len(xs), xs)
        squares = [(x - centre) ** 2 for x in xs]
        return _divide(_add(squares), count, xs if xbar is None else squares)

    return spread


def _harmonic_mean(data: Iterable, weights: Iterable | None = None) -> Any:
    xs = list(data)
    shares = [1] * len(xs) if weights is None else list(weights)
    low = [k for k, x in enumerate(xs) if x <= 0]
    if any(xs[k] < 0 for k in low):
        importlib.import_module("statistics").harmonic_mean([-1.0])  # which raises
    if low:  # the limit, which Python gives as well: with the quotients the derivative would be NaN
        return xs[low[0]] * (_add(shares) / shares[low[0]])
    if len(xs) == 1 and weights is None:
        return xs[0]
    quotients = [w / x for w, x in zip(shares, xs, strict=True)]
    return _divide(_add(shares), _add(quotients), quotients)


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
