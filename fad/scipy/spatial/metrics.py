"""Formulas of the metrics of scipy.spatial.distance, over the last axis of two arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.scipy.spatial.pairs import root

# --- one formula for each metric, over the last axis ----------------------------------------------------------------


def where(condition: Any, a: Any, b: Any) -> Any:
    """Choose as np.where does, with a scalar for a scalar."""
    y = np.where(condition, a, b)
    return y if y.ndim else y[()]


def weigh(x: Any, w: Any) -> Any:
    return x if w is None else x * w


def over(a: Any, b: Any) -> Any:
    """Divide, with 0 for 0/0."""
    zero = b == 0
    return np.where(zero, 0.0 * a, a / np.where(zero, 1.0 + 0.0 * b, b))


def squares(u: Any, v: Any, w: Any) -> Any:
    d = u - v
    return np.sum(weigh(d * d, w), axis=-1)


def powers(u: Any, v: Any, w: Any, p: Any) -> Any:
    d = np.abs(u - v)
    if p == math.inf:
        return np.max(d if w is None else np.where(w > 0, d, 0.0 * d), axis=-1)
    if p == 1:
        return np.sum(weigh(d, w), axis=-1)
    if p == 2:
        return root(np.sum(weigh(d * d, w), axis=-1))
    zero = d == 0
    terms = np.where(zero, 0.0 * d, np.where(zero, 1.0 + 0.0 * d, d) ** p)
    return positive_power(np.sum(weigh(terms, w), axis=-1), 1.0 / p)


def positive_power(x: Any, exponent: Any) -> Any:
    """Return a power of a number that is not negative, with the derivative 0 at 0."""
    zero = x == 0
    return where(zero, 0.0 * x, np.where(zero, 1.0 + 0.0 * x, x) ** exponent)


def mean(x: Any, w: Any) -> Any:
    return np.mean(x, axis=-1, keepdims=True) if w is None else np.sum(x * w, axis=-1, keepdims=True) / np.sum(w)


def correlation(u: Any, v: Any, w: Any, centered: bool = True) -> Any:
    if centered:
        u, v = u - mean(u, w), v - mean(v, w)
    inner = np.sum(weigh(u * v, w), axis=-1)
    lengths = np.sqrt(np.sum(weigh(u * u, w), axis=-1) * np.sum(weigh(v * v, w), axis=-1))
    return 1.0 - inner / lengths


def canberra(u: Any, v: Any, w: Any) -> Any:
    return np.sum(weigh(over(np.abs(u - v), np.abs(u) + np.abs(v)), w), axis=-1)


def braycurtis(u: Any, v: Any, w: Any) -> Any:
    return np.sum(weigh(np.abs(u - v), w), axis=-1) / np.sum(weigh(np.abs(u + v), w), axis=-1)


def jensenshannon(u: Any, v: Any) -> Any:
    u, v = u / np.sum(u, axis=-1, keepdims=True), v / np.sum(v, axis=-1, keepdims=True)
    m = (u + v) / 2.0
    total = np.sum(relative(u, m), axis=-1) + np.sum(relative(v, m), axis=-1)
    return root(np.where(total > 0, total, 0.0 * total) / 2.0)


def relative(p: Any, q: Any) -> Any:
    """Return ``p log(p / q)``, 0 where p is 0."""
    zero = p == 0
    safe = np.where(zero, 1.0 + 0.0 * p, p)
    return np.where(zero, 0.0 * p, safe * np.log(safe / np.where(zero, 1.0 + 0.0 * q, q)))


def mahalanobis(u: Any, v: Any, inverse: Any) -> Any:
    d = u - v
    return root(np.sum((d @ inverse) * d, axis=-1))
