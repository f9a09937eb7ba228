"""Random numbers as pure functions of a key: the same key gives the same numbers, on every backend.

The bits come from Philox 4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
written with integer NumPy. A key is an array of two uint32; `split` and `fold_in` make new ones. Every call with one
key gives the same numbers, so each use needs its own key.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fad import backends, config
from fad.backends import is_numpy_scalar
from fad.core.docstring_sections import complete
from fad.core.memory import unwrap
from fad.core.primitive import Primitive, register
from fad.core.samples import call
from fad.core.tracer import bind

__all__ = [
    "bernoulli", "beta", "bits", "categorical", "cauchy", "choice", "dirichlet", "exponential", "fold_in", "gamma",
    "gumbel", "key", "laplace", "logistic", "multivariate_normal", "normal", "permutation", "philox", "poisson",
    "rademacher", "randint", "split", "t", "truncated_normal", "uniform",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
# What a block of bits is for: the last word of the counter keeps the uses apart.
_BITS, _SPLIT, _FOLD = 0, 1, 2


def philox(key: Any, counter: tuple, rounds: int = 10) -> tuple:
    """Return four words of 32 random bits (in uint64) for each counter: four uint64 arrays that broadcast with the key.

    `key` has shape (..., 2); its leading axes are put in front of the counter's.

    >>> counters = tuple(np.arange(2, dtype=np.uint64) for _ in range(4))
    >>> [word.shape for word in fad.random.philox(fad.random.key(0), counters)]
    [(2,), (2,), (2,), (2,)]
    """
    k0 = key[..., 0].astype(np.uint64)[..., None]
    k1 = key[..., 1].astype(np.uint64)[..., None]
    if type(key) is not np.ndarray:
        return _philox_kernel(backends.backend_of(key), rounds)(k0, k1, *counter)
    c0, c1, c2, c3 = counter
    for i in range(rounds):
        p0, p1 = c0 * _M0, c2 * _M1
        r0 = (k0 + np.uint64(i * _W0 & 0xFFFFFFFF)) & _LOW
        r1 = (k1 + np.uint64(i * _W1 & 0xFFFFFFFF)) & _LOW
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ r0, p1 & _LOW, (p0 >> _SHIFT) ^ c3 ^ r1, p0 & _LOW
    return c0, c1, c2, c3


@functools.cache
def _philox_kernel(backend, rounds):
    """Return the same as one kernel of a device, which would launch a hundred otherwise."""
    kind, (c0, c1, c2, c3), lines = "unsigned long long", ("c0", "c1", "c2", "c3"), []
    for i in range(rounds):
        r0, r1 = (f"((k{k} + {i * w & 0xFFFFFFFF}ULL) & {_LOW}ULL)" for k, w in enumerate((_W0, _W1)))
        lines += [f"{kind} p{i} = {c0} * {_M0}ULL;", f"{kind} q{i} = {c2} * {_M1}ULL;"]
        lines += [f"{kind} a{i} = ((q{i} >> 32ULL) ^ {c1}) ^ {r0};", f"{kind} b{i} = q{i} & {_LOW}ULL;"]
        lines += [f"{kind} d{i} = ((p{i} >> 32ULL) ^ {c3}) ^ {r1};", f"{kind} e{i} = p{i} & {_LOW}ULL;"]
        c0, c1, c2, c3 = f"a{i}", f"b{i}", f"d{i}", f"e{i}"
    lines += [f"y{k} = {c};" for k, c in enumerate((c0, c1, c2, c3))]
    ins = tuple(("uint64", name) for name in ("k0", "k1", "c0", "c1", "c2", "c3"))
    return backend.elementwise_kernel(ins, tuple(("uint64", f"y{k}") for k in range(4)), "\n".join(lines), "fad_philox")


def _words(key, *, n, purpose):
    """Return n words of 32 bits: (..., 2) -> (..., n), uint32."""
    blocks = np.arange(-(-n // 4)).astype(np.uint64)
    index = np.zeros_like(key, shape=blocks.shape, dtype=np.uint64)
    index += blocks if type(key) is np.ndarray else backends.backend_of(key).from_host(blocks)
    zero = np.zeros_like(index)
    words = philox(key, (index, zero, zero, zero + np.uint64(purpose)))
    out = np.stack(np.broadcast_arrays(*words), axis=-1)
    return out.reshape(*out.shape[:-2], -1)[..., :n].astype(np.uint32)


def _fold(key, data, *, purpose):
    data = (np.asarray(data) if type(data) is int else data).astype(np.uint64)  # a recorded number may be an int
    zero = np.zeros_like(data)[..., None]
    words = philox(key, ((data & _LOW)[..., None], (data >> _SHIFT)[..., None], zero, zero + np.uint64(purpose)))
    return np.concatenate(words[:2], axis=-1).astype(np.uint32)


def _spread(size: int, batched: tuple, xs: tuple) -> list:
    return [x if b else np.broadcast_to(x, (size, *x.shape)) for x, b in zip(xs, batched, strict=True)]


words_p: Any = register(
    Primitive(
        "random_words", _words, flat=True, archetype="flat",
        batch=lambda size, batched, xs, params: bind(words_p, *xs, **params),
        samples=lambda s: [call(np.array([1, 2], np.uint32), n=6, purpose=0)],
    )
)  # fmt: skip
fold_p: Any = register(
    Primitive(
        "random_fold", _fold, flat=True, archetype="flat",
        batch=lambda size, batched, xs, params: bind(fold_p, *_spread(size, batched, xs), **params),
        samples=lambda s: [call(np.array([1, 2], np.uint32), np.asarray(7), purpose=2)],
        doc="A random key made of another one and of numbers.",
    )
)  # fmt: skip


# --- keys ----------------------------------------------------------------------------------------------------------


def key(seed: int) -> Any:
    """Return a key made from a seed: two uint32, on the default backend.

    >>> key(7)
    array([7, 0], dtype=uint32)
    """
    seed = int(seed)
    return backends.default().from_host(np.array([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF], np.uint32))


def as_key(x: Any) -> Any:
    """Return a key: the argument itself, or a key made from it if it is a seed."""
    if issubclass(type(x), (int, np.integer)):
        return key(x)
    if not hasattr(x, "dtype") or x.dtype != np.uint32 or x.shape != (2,):
        raise TypeError(f"a key is made by fad.random.key(seed) or split; got {x!r:.60}")
    return x


def split(key: Any, num: int = 2) -> Any:
    """Return `num` new keys, shape (num, 2), independent of each other and of what the old key gives.

    >>> a, b = split(key(0))
    """
    return bind(words_p, as_key(key), n=2 * num, purpose=_SPLIT).reshape(num, 2)


def fold_in(key: Any, data: Any) -> Any:
    """Return a new key made from a key and a whole number, such as the number of a step.

    >>> fold_in(key(0), 3).shape
    (2,)
    """
    key = as_key(key)
    return bind(fold_p, key, _beside(data, key), purpose=_FOLD)


def _beside(x: Any, key: Any) -> Any:
    """Return a number or host array as an array in the memory where the key lives; any other array as it is."""
    x = x if hasattr(x, "dtype") and not is_numpy_scalar(x) else np.asarray(x)
    key = unwrap(key)
    return backends.backend_of(key).from_host(x) if type(x) is np.ndarray and type(key) is not np.ndarray else x


# --- numbers -------------------------------------------------------------------------------------------------------


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(d) for d in shape)


def _size(shape: tuple) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def _dtype(dtype: Any) -> np.dtype:
    dtype = np.dtype(config.default_dtype.get() if dtype is None else dtype)
    if dtype.kind != "f":
        raise TypeError(f"dtype must be a real floating-point one, not {dtype}")
    return dtype


def bits(key: Any, shape: Any = ()) -> Any:
    """Return uniform random uint32.

    >>> bits(key(0), (2,)).dtype
    dtype('uint32')
    """
    shape = _shape(shape)
    return bind(words_p, as_key(key), n=_size(shape), purpose=_BITS).reshape(shape)


def _unit(key: Any, shape: tuple, dtype: np.dtype, n: int = 1) -> Any:
    """Return n arrays of uniform numbers in [0, 1), stacked in front: 53 random bits for float64, 24 for float32."""
    if dtype.itemsize < 8:
        return ((bits(key, (n, *shape)) >> np.uint32(8)).astype(np.float32) * 2.0**-24).astype(dtype)
    words = bits(key, (2, n, *shape)).astype(np.uint64)
    return (((words[0] << np.uint64(21)) | (words[1] >> np.uint64(11))).astype(np.float64) * 2.0**-53).astype(dtype)


def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Return numbers uniform in [minval, maxval), differentiable in both ends.

    >>> uniform(key(0), (3,)).shape
    (3,)
    """
    u = _unit(key, _shape(shape), _dtype(dtype))[0]
    if type(minval) is float and type(maxval) is float:
        return u if (minval, maxval) == (0.0, 1.0) else u * (maxval - minval) + minval
    return u * (maxval - minval) + minval


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return numbers of the standard normal distribution, by the transform of Box and Muller.

    >>> normal(key(0), (2, 3)).shape
    (2, 3)
    """
    dtype = _dtype(dtype)
    u, v = _unit(key, _shape(shape), dtype, 2)
    return np.sqrt(-2.0 * np.log1p(-u)) * np.cos((2.0 * np.pi) * v)


def randint(key: Any, shape: Any, minval: int, maxval: int) -> Any:
    """Return whole numbers (int64) uniform in minval ... maxval - 1.

    >>> set(randint(key(0), (50,), 2, 4).tolist()) == {2, 3}
    True
    """
    span = int(maxval) - int(minval)
    if not 0 < span <= 1 << 32:
        raise ValueError(f"randint needs minval < maxval, at most 2**32 apart, not {minval} and {maxval}")
    # The high word of a product with 64 random bits: the bias is below 2**-32.
    high, low = bits(key, (2, *_shape(shape))).astype(np.uint64)
    whole = high * np.uint64(span) + ((low * np.uint64(span)) >> _SHIFT)
    return (whole >> _SHIFT).astype(np.int64) + int(minval)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """Return booleans, true with probability p; p broadcasts to `shape`, by default its own.

    >>> bernoulli(key(0), 1.0, (2,))
    array([ True,  True])
    """
    shape = np.shape(p) if shape is None else _shape(shape)
    return _unit(key, shape, np.dtype(np.float64))[0] < p


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return numbers of the exponential distribution of mean 1; multiply by the mean.

    >>> bool(fad.random.exponential(fad.random.key(0), (100,)).min() > 0)
    True
    """
    return -np.log1p(-uniform(key, shape, dtype))


def _open_unit(key: Any, shape: Any, dtype: Any) -> Any:
    """Return uniform numbers strictly between 0 and 1: the middles of the cells of `uniform`."""
    dtype = _dtype(dtype)
    return uniform(key, shape, dtype) + (2.0**-54 if dtype.itemsize >= 8 else 2.0**-25)


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return numbers of the standard Gumbel distribution.

    >>> fad.random.gumbel(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return -np.log(-np.log(_open_unit(key, shape, dtype)))


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return numbers of the standard logistic distribution.

    >>> fad.random.logistic(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    u = _open_unit(key, shape, dtype)
    return np.log(u) - np.log1p(-u)


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return numbers of the standard Laplace distribution.

    >>> fad.random.laplace(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    u = _open_unit(key, shape, dtype) - 0.5
    return -np.sign(u) * np.log1p(-2.0 * np.abs(u))


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return numbers of the standard Cauchy distribution.

    >>> fad.random.cauchy(fad.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return np.tan(np.pi * (_open_unit(key, shape, dtype) - 0.5))


def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return -1 and 1 with equal probability.

    >>> sorted(set(fad.random.rademacher(fad.random.key(0), (100,)).tolist()))
    [-1.0, 1.0]
    """
    return (2.0 * (bits(key, shape) & np.uint32(1)) - 1.0).astype(_dtype(dtype))


def truncated_normal(key: Any, lower: float, upper: float, shape: Any = (), dtype: Any = None) -> Any:
    """Return standard normal numbers that lie in [lower, upper], by the inverse distribution function; needs SciPy.

    Differentiable in both ends.

    >>> bool(abs(fad.random.truncated_normal(fad.random.key(0), -1.0, 1.0, (100,))).max() <= 1.0)
    True
    """
    from fad.scipy.special import ndtr, ndtri

    a, b = ndtr(lower), ndtr(upper)
    return np.clip(ndtri(a + (b - a) * _open_unit(key, shape, dtype)), lower, upper).astype(_dtype(dtype))


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return normal vectors of a mean (n,) and covariance (n, n): shape ``(*shape, n)``; differentiable in both.

    >>> multivariate_normal(key(0), np.zeros(2), np.eye(2), (5,)).shape
    (5, 2)
    """
    z = normal(key, (*_shape(shape), mean.shape[-1]), dtype)
    return mean + z @ np.linalg.cholesky(cov).T


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Return class numbers drawn with probabilities softmax(logits) along an axis.

    `shape` is the shape of the result, by default that of `logits` without the axis, to which it must broadcast.

    >>> categorical(key(0), np.array([0.0, -np.inf]), shape=(3,))
    array([0, 0, 0])
    """
    logits = np.moveaxis(logits, axis, -1)
    shape = logits.shape[:-1] if shape is None else _shape(shape)
    return np.argmax(logits + gumbel(key, (*shape, logits.shape[-1])), axis=-1)


def permutation(key: Any, x: Any, axis: int = 0) -> Any:
    """Return a random permutation of ``arange(x)`` if x is a whole number, else of the entries of x along an axis.

    >>> sorted(permutation(key(0), 4).tolist())
    [0, 1, 2, 3]
    """
    whole = isinstance(x, (int, np.integer))
    n = int(x) if whole else x.shape[axis]
    high, low = bits(key, (2, n)).astype(np.uint64)
    order = np.argsort((high << _SHIFT) | low)
    return order if whole else np.take(x, order, axis=axis)


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """Return entries of an array (or of ``arange(a)``) drawn at random, with probabilities p if given.

    >>> sorted(choice(key(0), 3, (3,), replace=False).tolist())
    [0, 1, 2]
    """
    whole = isinstance(a, (int, np.integer))
    n = int(a) if whole else a.shape[axis]
    shape = _shape(shape)
    size = _size(shape)
    if not replace and size > n:
        raise ValueError(f"{size} different entries cannot be drawn from {n}: use replace=True")
    if replace:
        i = randint(key, shape, 0, n) if p is None else categorical(key, np.log(p), shape=shape)
    elif p is None:
        i = permutation(key, n)[:size].reshape(shape)
    else:  # the largest of log p + Gumbel noise are a draw without replacement
        i = np.argsort(-(np.log(p) + gumbel(key, (n,))))[:size].reshape(shape)
    return i if whole else np.take(a, i, axis=axis)


# --- the gamma family ----------------------------------------------------------------------------------------------


def _gamma(key, a):
    """Draw by the rejection of G. Marsaglia and W. Tsang (ACM TOMS 26, 2000): key (..., 2), a (..., *shape)."""
    lead = key.shape[:-1]
    a = np.broadcast_to(a, a.shape)
    shape = a.shape[len(lead) :]
    d = np.where(a < 1.0, a + 1.0, a) - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    out, waiting = np.zeros_like(d), np.ones_like(d, dtype=bool)
    for attempt in range(1, 200):
        here = _fold(key, np.full_like(key[..., 0], attempt, dtype=np.int64), purpose=_FOLD)
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
    boost = _from_words(_fold(key, np.zeros_like(key[..., 0], dtype=np.int64), purpose=_FOLD), shape, 0)
    return np.where(a < 1.0, out * boost ** (1.0 / a), out).astype(a.dtype)


def _from_words(key, shape, stream):
    """Return uniform numbers strictly between 0 and 1 from plain keys (..., 2): (..., *shape)."""
    n = _size(shape)
    words = _words(key, n=2 * n, purpose=16 + stream).astype(np.uint64)
    whole = (words[..., :n] << np.uint64(20)) | (words[..., n:] >> np.uint64(12))
    return (whole.astype(np.float64) * 2.0**-52 + 2.0**-53).reshape((*key.shape[:-1], *shape))


def _gamma_jvp(tangents, y, xs, params):
    # P(a, x) stays as it is when a moves: dx/da = -(dP/da) / (dP/dx) (Figurnov et al., NeurIPS 2018).
    from fad.scipy.special import gammainc, gammaln

    _, a = xs
    density = np.exp((a - 1.0) * np.log(y) - y - gammaln(a))
    slope = gammainc.partials[0](gammainc(a, y), a, y)
    return (-slope / density * tangents[1]).astype(y.dtype)


gamma_p: Any = register(
    Primitive(
        # The numbers come from rejection, and jump in a where a proposal is accepted or not; the derivative is that of
        # the quantile at the number drawn, so differences of the numbers are no measure of it.
        "random_gamma", _gamma, jvp=_gamma_jvp, complex=False, numerical=False,
        batch=lambda size, batched, xs, params: bind(gamma_p, *_spread(size, batched, xs), **params),
        samples=lambda s: [call(np.array([k, 2], np.uint32), s.positive(*shape)) for k, shape in ((1, (3,)), (3, ()))],
    )
)  # fmt: skip


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Return numbers of the gamma distribution of shape parameter a and scale 1; differentiable in a (needs SciPy).

    >>> gamma(key(0), 2.0, (3,)).shape
    (3,)
    """
    key = as_key(key)
    return bind(gamma_p, key, _beside(_parameter(a, shape, dtype), key))


def _parameter(a: Any, shape: Any, dtype: Any) -> Any:
    if np.result_type(a).kind == "c":
        raise TypeError(f"the parameters of random numbers are real, but one has the dtype {np.result_type(a)}")
    dtype = _dtype(dtype or getattr(a, "dtype", None))
    a = a.astype(dtype) if hasattr(a, "dtype") else np.asarray(a, dtype)
    return a if shape is None else np.broadcast_to(a, _shape(shape))


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Return numbers of the beta distribution; differentiable in a and b (needs SciPy).

    >>> fad.random.beta(fad.random.key(0), 2.0, 3.0, (2, 3)).shape
    (2, 3)
    """
    shape = np.broadcast_shapes(np.shape(a), np.shape(b)) if shape is None else shape
    k1, k2 = split(key)
    x, y = gamma(k1, a, shape, dtype), gamma(k2, b, shape, dtype)
    return x / (x + y)


def dirichlet(key: Any, alpha: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Return probability vectors of the Dirichlet distribution, ``(*shape, n)``; differentiable in alpha; by SciPy.

    >>> fad.random.dirichlet(fad.random.key(0), np.ones(3)).sum().round(6)
    np.float64(1.0)
    """
    x = gamma(key, alpha, (*_shape(shape), *np.shape(alpha)), dtype)
    return x / np.sum(x, axis=-1, keepdims=True)


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Return numbers of Student's t distribution of `df` degrees of freedom; differentiable in df (needs SciPy).

    >>> fad.grad(lambda df: fad.random.t(fad.random.key(0), df, (4,)).sum())(5.0).dtype
    dtype('float64')
    """
    shape = np.shape(df) if shape is None else _shape(shape)
    k1, k2 = split(key)
    return normal(k1, shape, dtype) * np.sqrt(0.5 * df / gamma(k2, 0.5 * df, shape, dtype))


def poisson(key: Any, lam: Any, shape: Any = None) -> Any:
    """Return whole numbers (int64) of the Poisson distribution of mean `lam`, which has no derivative.

    Up to a mean of 64 by the distribution function, in pieces of the mean: a sum of Poisson numbers is Poisson.

    >>> fad.random.poisson(fad.random.key(0), 3.0, (2, 3)).dtype
    dtype('int64')
    """
    shape = np.shape(lam) if shape is None else _shape(shape)
    key = as_key(key)
    lam = np.broadcast_to(_beside(lam, key).astype(float), shape)
    if np.any(lam < 0) or not np.all(np.isfinite(lam)):
        raise ValueError("the mean of a Poisson distribution must be finite and not negative")
    pieces = max(1, math.ceil(float(np.max(lam)) / 64.0)) if lam.size else 1
    u = _unit(key, shape, np.dtype(float), pieces)
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


_PARAMETERS = """
key : random key
    What is drawn with: the same key gives the same numbers. See `key` and `split`.
shape : int or tuple of int
    Of the result, in which parameters are broadcast; None takes their own.
dirichlet.shape, multivariate_normal.shape : int or tuple of int
    Of the draws, in front of the axis of their components.
dtype : dtype
    Of the result; by default `fad.config.default_dtype`.
a, b, df, lam, alpha, mean, cov : array_like
    The distribution's parameters: positive, but for `mean`.
choice.a : array_like or int
    What is chosen from, along `axis`; an int stands for ``np.arange(a)``.
p : float or array
    Probability of True; of `choice` the probability of each element.
logits : array
    Logarithms of probabilities along `axis`, up to a constant.
axis : int
    Along which is drawn or permuted.
replace : bool
    Whether an element may be drawn twice.
data : int or array of int
    What makes a new key of an old one.
seed : int
    Any integer; different ones give independent streams.
x : array or int
    What is permuted; an int stands for ``np.arange(x)``.
counter : tuple of four arrays of uint64
    What the bits are a function of, beside the key.
rounds : int
    How often the bits are mixed.
minval, maxval : number or array
    Ends of the interval; the upper one is not drawn.
lower, upper : number
    Ends of the interval, in standard deviations.
num : int
    How many keys.
"""
_ERRORS = """
key.seed : ValueError
    It is no integer.
dtype : TypeError
    It is no real floating-point one.
a, df, alpha : TypeError
    It is complex.
choice.a : ValueError
    More different elements are requested than there are.
minval : ValueError
    It is not below `maxval`, or they are further apart than 2**32.
axis : IndexError
    The array has no such axis.
choice.axis : None
lam : ValueError
    It is negative, infinite or NaN.
cov : LinAlgError
    It is not positive definite.
mean : ValueError
    Its length is not that of `cov`.
"""
_ALGORITHMS = {
    "beta": "a ratio of draws of `gamma`",
    "dirichlet": "ratios of draws of `gamma`",
    "gamma": "G. Marsaglia and W. Tsang, ACM TOMS 26 (2000); derivatives: M. Figurnov et al., NeurIPS 2018",
    "categorical": "the largest of logits and draws of `gumbel`: C. Maddison, D. Tarlow and T. Minka, NeurIPS 2014",
    **dict.fromkeys(("key", "split", "fold_in", "bits", "philox"), "J. K. Salmon et al., SC 2011"),
}
_RESULTS = {
    "key": "random key\n    An array of two uint32.", "fold_in": "random key", "split": "array of keys, (num, 2)",
    "bits": "array of uint32", "philox": "tuple of four arrays of uint64", "bernoulli": "array of bool",
}  # fmt: skip

_OWN = {name: globals()[name] for name in __all__}
complete(
    _OWN, _PARAMETERS, lambda name, thing: _RESULTS.get(name, "array\n    Of that shape."), _ERRORS,
    lambda name: _ALGORITHMS.get(name, ""),
)  # fmt: skip
