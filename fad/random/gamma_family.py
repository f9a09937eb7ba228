"""Draws of the gamma family: gamma, beta, Dirichlet, Student's t and Poisson, with derivatives in their parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.backends import is_numpy
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.random.distributions import as_dtype, as_shape, count_elements, draw_unit, normal
from fad.random.keys import FOLD, as_key, fold_words, make_words, put_beside, split, spread_keys
from fad.typing import Array, ArrayLike, DTypeLike, Key, Shape


def _gamma(key, a):
    """Draw by the rejection of G. Marsaglia and W. Tsang (ACM TOMS 26, 2000): key (..., 2), a (..., *shape)."""
    lead = key.shape[:-1]
    a = np.broadcast_to(a, a.shape)
    shape = a.shape[len(lead) :]
    d = np.where(a < 1.0, a + 1.0, a) - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    out, waiting = np.zeros_like(d), np.ones_like(d, dtype=bool)
    for attempt in range(1, 200):
        here = fold_words(key, np.full_like(key[..., 0], attempt, dtype=np.int64), purpose=FOLD)
        u, w, log_u = (_from_words(here, shape, i) for i in range(3))
        z = np.sqrt(-2.0 * np.log(u)) * np.cos((2.0 * np.pi) * w)
        v = (1.0 + c * z) ** 3
        good = v > 0.0
        v = np.where(good, v, 1.0)
        good &= np.log(log_u) < 0.5 * z * z + d - d * v + d * np.log(v)
        out = np.where(waiting & good, d * v, out)
        waiting &= ~good
        if not waiting.any():
            break
    # An a below 1 is raised by 1 and the number multiplied by u^(1/a).
    boost = _from_words(fold_words(key, np.zeros_like(key[..., 0], dtype=np.int64), purpose=FOLD), shape, 0)
    return np.where(a < 1.0, out * boost ** (1.0 / a), out).astype(a.dtype)


def _from_words(key, shape, stream):
    """Return uniform numbers strictly between 0 and 1 from plain keys (..., 2): (..., *shape)."""
    n = count_elements(shape)
    words = make_words(key, n=2 * n, purpose=16 + stream).astype(np.uint64)
    whole = (words[..., :n] << np.uint64(20)) | (words[..., n:] >> np.uint64(12))
    return (whole.astype(np.float64) * 2.0**-52 + 2.0**-53).reshape((*key.shape[:-1], *shape))


def _gamma_jvp(tangents, y, xs, params):
    # P(a, x) stays as it is when a moves: dx/da = -(dP/da) / (dP/dx) (Figurnov et al., NeurIPS 2018).
    from fad.scipy.special import gammainc, gammaln

    _, a = xs
    y = np.maximum(y, float(np.finfo(y.dtype).tiny))  # a small `a` gives numbers that are zero, which have no logarithm
    density = np.exp((a - 1.0) * np.log(y) - y - gammaln(a))
    slope = gammainc.partials[0](gammainc(a, y), a, y)
    return (-slope / density * tangents[1]).astype(y.dtype)


gamma_p: Any = register(
    Primitive(
        # The numbers come from rejection, and jump in a where a proposal is accepted or not; the derivative is that of
        # the quantile at the number drawn, so differences of the numbers are no measure of it.
        "random_gamma", _gamma, jvp=_gamma_jvp, complex=False, numerical=False,
        batch=lambda size, batched, xs, params: bind(gamma_p, *spread_keys(size, batched, xs), **params),
        samples=lambda s: [call(np.array([k, 2], np.uint32), s.positive(*shape)) for k, shape in ((1, (3,)), (3, ()))],
    )
)  # fmt: skip


def gamma(key: Key, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Return numbers of the gamma distribution of shape parameter a and scale 1; differentiable in a (needs SciPy).

    >>> fad.random.gamma(fad.random.key(0), 2.0, (3,)).shape
    (3,)
    """
    key = as_key(key)
    return bind(gamma_p, key, put_beside(_parameter(a, shape, dtype), key))


def _parameter(a: Any, shape: Any, dtype: Any) -> Any:
    if np.result_type(a).kind == "c":
        raise TypeError(f"the parameters of random numbers are real, but one has the dtype {np.result_type(a)}")
    if (not hasattr(a, "dtype") or is_numpy(a)) and np.any(np.less(a, 0)):
        raise ValueError("the parameters of the gamma distribution and of those made of it must not be negative")
    dtype = as_dtype(dtype or getattr(a, "dtype", None))
    a = a.astype(dtype) if hasattr(a, "dtype") else np.asarray(a, dtype)
    return a if shape is None else np.broadcast_to(a, as_shape(shape))


def beta(key: Key, a: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Return numbers of the beta distribution; differentiable in a and b (needs SciPy).

    >>> fad.random.beta(fad.random.key(0), 2.0, 3.0, (2, 3)).shape
    (2, 3)
    """
    shape = np.broadcast_shapes(np.shape(a), np.shape(b)) if shape is None else shape
    k1, k2 = split(key)
    x, y = gamma(k1, a, shape, dtype), gamma(k2, b, shape, dtype)
    return x / (x + y)


def dirichlet(key: Key, alpha: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return probability vectors of the Dirichlet distribution, ``(*shape, n)``; differentiable in alpha; by SciPy.

    >>> fad.random.dirichlet(fad.random.key(0), np.ones(3)).sum().round(6)
    np.float64(1.0)
    """
    x = gamma(key, alpha, (*as_shape(shape), *np.shape(alpha)), dtype)
    return x / np.sum(x, axis=-1, keepdims=True)


def t(key: Key, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Return numbers of Student's t distribution of `df` degrees of freedom; differentiable in df (needs SciPy).

    >>> fad.grad(lambda df: fad.random.t(fad.random.key(0), df, (4,)).sum())(5.0).dtype
    dtype('float64')
    """
    shape = np.shape(df) if shape is None else as_shape(shape)
    k1, k2 = split(key)
    return normal(k1, shape, dtype) * np.sqrt(0.5 * df / gamma(k2, 0.5 * df, shape, dtype))


def poisson(key: Key, lam: ArrayLike, shape: Shape | None = None) -> Array:
    """Return whole numbers (int64) of the Poisson distribution of mean `lam`, which has no derivative.

    Up to a mean of 64 by the distribution function, in pieces of the mean: a sum of Poisson numbers is Poisson.

    >>> fad.random.poisson(fad.random.key(0), 3.0, (2, 3)).dtype
    dtype('int64')
    """
    shape = np.shape(lam) if shape is None else as_shape(shape)
    key = as_key(key)
    lam = np.broadcast_to(put_beside(lam, key).astype(float), shape)
    if np.any(lam < 0) or not np.all(np.isfinite(lam)):
        raise ValueError("the mean of a Poisson distribution must be finite and not negative")
    pieces = max(1, math.ceil(float(np.max(lam)) / 64.0)) if lam.size else 1
    u = draw_unit(key, shape, np.dtype(float), pieces)
    part = lam / pieces
    term = np.exp(-part) * np.ones_like(u)
    total, count = term.copy(), np.zeros_like(u, dtype=np.int64)
    k = 0
    while np.any(above := (u > total) & (term > 0.0) | (u > total) & (k < part)):
        count += above
        k += 1
        term = term * part / k
        total += term
    return np.sum(count, axis=0)
