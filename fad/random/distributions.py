"""Draws of the common distributions: uniform, normal, exponential, choices and permutations."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fad import config
from fad.core.tracing.tracer import Tracer, bind
from fad.random.keys import BITS, SHIFT, as_key, words_p
from fad.typing import Array, ArrayLike, DTypeLike, Key, Shape


def as_shape(shape: Any) -> tuple[int, ...]:
    found = (operator.index(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(operator.index, shape))
    if any(d < 0 for d in found):
        raise ValueError(f"negative dimensions are not allowed: the shape {shape}")
    return found


def count_elements(shape: tuple) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def as_dtype(dtype: Any) -> np.dtype:
    dtype = np.dtype(config.default_dtype.get() if dtype is None else dtype)
    if dtype.kind != "f":
        raise TypeError(f"dtype must be a real floating-point one, not {dtype}")
    return dtype


def bits(key: Key, shape: Shape = ()) -> Array:
    """Return uniform random uint32.

    >>> fad.random.bits(fad.random.key(0), (2,)).dtype
    dtype('uint32')
    """
    shape = as_shape(shape)
    return bind(words_p, as_key(key), n=count_elements(shape), purpose=BITS).reshape(shape)


def draw_unit(key: Any, shape: tuple, dtype: np.dtype, n: int = 1) -> Any:
    """Return n arrays of uniform numbers in [0, 1), stacked in front: 53 random bits for float64, 24 for float32."""
    if dtype.itemsize < 8:
        return ((bits(key, (n, *shape)) >> np.uint32(8)).astype(np.float32) * 2.0**-24).astype(dtype)
    words = bits(key, (2, n, *shape)).astype(np.uint64)
    return (((words[0] << np.uint64(21)) | (words[1] >> np.uint64(11))).astype(np.float64) * 2.0**-53).astype(dtype)


def uniform(
    key: Key, shape: Shape = (), dtype: DTypeLike | None = None, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Array:
    """Return numbers uniform in [minval, maxval), differentiable in both ends.

    >>> fad.random.uniform(fad.random.key(0), (3,)).shape
    (3,)
    """
    u = draw_unit(key, as_shape(shape), as_dtype(dtype))[0]
    if type(minval) is float and type(maxval) is float:
        return u if (minval, maxval) == (0.0, 1.0) else u * (maxval - minval) + minval
    return u * (maxval - minval) + minval


def normal(key: Key, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return numbers of the standard normal distribution, by the transform of Box and Muller.

    >>> fad.random.normal(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    dtype = as_dtype(dtype)
    u, v = draw_unit(key, as_shape(shape), dtype, 2)
    return np.sqrt(-2.0 * np.log1p(-u)) * np.cos((2.0 * np.pi) * v)


def randint(key: Key, shape: Shape, minval: int, maxval: int) -> Array:
    """Return whole numbers (int64) uniform in minval ... maxval - 1.

    >>> set(fad.random.randint(fad.random.key(0), (50,), 2, 4).tolist()) == {2, 3}
    True
    """
    span = int(maxval) - int(minval)
    if not 0 < span <= 1 << 32:
        raise ValueError(f"randint needs minval < maxval, at most 2**32 apart, not {minval} and {maxval}")
    # The high word of a product with 64 random bits: the bias is below 2**-32.
    high, low = bits(key, (2, *as_shape(shape))).astype(np.uint64)
    whole = high * np.uint64(span) + ((low * np.uint64(span)) >> SHIFT)
    return (whole >> SHIFT).astype(np.int64) + int(minval)


def bernoulli(key: Key, p: ArrayLike = 0.5, shape: Shape | None = None) -> Array:
    """Return booleans, true with probability p; p broadcasts to `shape`, by default its own.

    >>> fad.random.bernoulli(fad.random.key(0), 1.0, (2,))
    array([ True,  True])
    """
    if np.result_type(p).kind == "c":
        raise TypeError(f"a probability is a real number, not one of dtype {np.result_type(p)}")
    shape = np.shape(p) if shape is None else as_shape(shape)
    return draw_unit(key, shape, np.dtype(np.float64))[0] < p


def exponential(key: Key, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return numbers of the exponential distribution of mean 1; multiply by the mean.

    >>> bool(fad.random.exponential(fad.random.key(0), (100,)).min() > 0)
    True
    """
    return -np.log1p(-uniform(key, shape, dtype))


def _open_unit(key: Any, shape: Any, dtype: Any) -> Any:
    """Return uniform numbers strictly between 0 and 1: the middles of the cells of `uniform`."""
    dtype = as_dtype(dtype)
    return uniform(key, shape, dtype) + (2.0**-54 if dtype.itemsize >= 8 else 2.0**-25)


def gumbel(key: Key, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return numbers of the standard Gumbel distribution.

    >>> fad.random.gumbel(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return -np.log(-np.log(_open_unit(key, shape, dtype)))


def logistic(key: Key, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return numbers of the standard logistic distribution.

    >>> fad.random.logistic(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    u = _open_unit(key, shape, dtype)
    return np.log(u) - np.log1p(-u)


def laplace(key: Key, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return numbers of the standard Laplace distribution.

    >>> fad.random.laplace(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    u = _open_unit(key, shape, dtype) - 0.5
    return -np.sign(u) * np.log1p(-2.0 * np.abs(u))


def cauchy(key: Key, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return numbers of the standard Cauchy distribution.

    >>> fad.random.cauchy(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return np.tan(np.pi * (_open_unit(key, shape, dtype) - 0.5))


def rademacher(key: Key, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return -1 and 1 with equal probability.

    >>> sorted(set(fad.random.rademacher(fad.random.key(0), (100,)).tolist()))
    [-1.0, 1.0]
    """
    return (2.0 * (bits(key, shape) & np.uint32(1)) - 1.0).astype(as_dtype(dtype))


def truncated_normal(key: Key, lower: float, upper: float, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Return standard normal numbers that lie in [lower, upper], by the inverse distribution function; needs SciPy.

    Differentiable in both ends.

    >>> bool(abs(fad.random.truncated_normal(fad.random.key(0), -1.0, 1.0, (100,))).max() <= 1.0)
    True
    """
    from fad.scipy.special import ndtr, ndtri

    if type(lower) is not Tracer and type(upper) is not Tracer and np.any(np.greater(lower, upper)):
        raise ValueError(f"truncated_normal needs lower <= upper, not {lower} and {upper}")
    a, b = ndtr(lower), ndtr(upper)
    return np.clip(ndtri(a + (b - a) * _open_unit(key, shape, dtype)), lower, upper).astype(as_dtype(dtype))


def multivariate_normal(
    key: Key, mean: ArrayLike, cov: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Return normal vectors of a mean (n,) and covariance (n, n): shape ``(*shape, n)``; differentiable in both.

    >>> fad.random.multivariate_normal(fad.random.key(0), np.zeros(2), np.eye(2), (5,)).shape
    (5, 2)
    """
    z = normal(key, (*as_shape(shape), mean.shape[-1]), dtype)
    return mean + z @ np.linalg.cholesky(cov).T


def categorical(key: Key, logits: ArrayLike, axis: int = -1, shape: Shape | None = None) -> Array:
    """Return class numbers drawn with probabilities softmax(logits) along an axis.

    `shape` is the shape of the result, by default that of `logits` without the axis, to which it must broadcast.

    >>> fad.random.categorical(fad.random.key(0), np.array([0.0, -np.inf]), shape=(3,))
    array([0, 0, 0])
    """
    logits = np.moveaxis(logits, axis, -1)
    shape = logits.shape[:-1] if shape is None else as_shape(shape)
    return np.argmax(logits + gumbel(key, (*shape, logits.shape[-1])), axis=-1)


def permutation(key: Key, x: ArrayLike, axis: int = 0) -> Array:
    """Return a random permutation of ``arange(x)`` if x is a whole number, else of the entries of x along an axis.

    >>> sorted(fad.random.permutation(fad.random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """
    whole = isinstance(x, (int, np.integer))
    n = int(x) if whole else x.shape[axis]
    high, low = bits(key, (2, n)).astype(np.uint64)
    order = np.argsort((high << SHIFT) | low)
    return order if whole else np.take(x, order, axis=axis)


def choice(
    key: Key, a: ArrayLike, shape: Shape = (), replace: bool = True, p: ArrayLike | None = None, axis: int = 0
) -> Array:
    """Return entries of an array (or of ``arange(a)``) drawn at random, with probabilities p if given.

    >>> sorted(fad.random.choice(fad.random.key(0), 3, (3,), replace=False).tolist())
    [0, 1, 2]
    """
    whole = isinstance(a, (int, np.integer))
    n = int(a) if whole else a.shape[axis]
    shape = as_shape(shape)
    size = count_elements(shape)
    if not replace and size > n:
        raise ValueError(f"{size} different entries cannot be drawn from {n}: use replace=True")
    if replace:
        i = randint(key, shape, 0, n) if p is None else categorical(key, np.log(p), shape=shape)
    elif p is None:
        i = permutation(key, n)[:size].reshape(shape)
    else:  # the largest of log p + Gumbel noise are a draw without replacement
        i = np.argsort(-(np.log(p) + gumbel(key, (n,))))[:size].reshape(shape)
    return i if whole else np.take(a, i, axis=axis)
