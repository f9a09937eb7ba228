"""Random numbers as pure functions of a key: the same key gives the same numbers, on every backend.

The bits come from Philox 4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
written with integer NumPy. A key is an array of two uint32; `split` and `fold_in` make new ones. Every call with one
key gives the same numbers, so each use needs its own key.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import backends, config
from fad.core.primitive import Primitive, register
from fad.core.samples import call
from fad.core.tracer import Tracer, bind

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
# What a block of bits is for: the last word of the counter keeps the uses apart.
_BITS, _SPLIT, _FOLD = 0, 1, 2


def philox(key: Any, counter: tuple, rounds: int = 10) -> tuple:
    """Return four words of 32 random bits (in uint64) for each counter: four uint64 arrays that broadcast with the key.

    `key` has shape (..., 2); its leading axes are put in front of the counter's.
    """
    k0 = key[..., 0].astype(np.uint64)[..., None]
    k1 = key[..., 1].astype(np.uint64)[..., None]
    c0, c1, c2, c3 = counter
    for i in range(rounds):
        p0, p1 = c0 * _M0, c2 * _M1
        r0 = (k0 + np.uint64(i * _W0 & 0xFFFFFFFF)) & _LOW
        r1 = (k1 + np.uint64(i * _W1 & 0xFFFFFFFF)) & _LOW
        c0, c1, c2, c3 = (p1 >> _SHIFT) ^ c1 ^ r0, p1 & _LOW, (p0 >> _SHIFT) ^ c3 ^ r1, p0 & _LOW
    return c0, c1, c2, c3


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
    data = data.astype(np.uint64)
    zero = np.zeros_like(data)[..., None]
    words = philox(key, ((data & _LOW)[..., None], (data >> _SHIFT)[..., None], zero, zero + np.uint64(purpose)))
    return np.concatenate(words[:2], axis=-1).astype(np.uint32)


def _spread(size: int, batched: tuple, xs: tuple) -> list:
    return [x if b else np.broadcast_to(x, (size, *x.shape)) for x, b in zip(xs, batched, strict=True)]


words_p = register(
    Primitive(
        "random_words", _words, flat=True, archetype="flat",
        batch=lambda size, batched, xs, params: bind(words_p, *xs, **params),
        samples=lambda s: [call(np.array([1, 2], np.uint32), n=6, purpose=0)],
    )
)  # fmt: skip
fold_p = register(
    Primitive(
        "random_fold", _fold, flat=True, archetype="flat",
        batch=lambda size, batched, xs, params: bind(fold_p, *_spread(size, batched, xs), **params),
        samples=lambda s: [call(np.array([1, 2], np.uint32), np.asarray(7), purpose=2)],
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
    if type(x) is int or isinstance(x, np.integer):
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
    data = data if type(data) is Tracer else np.asarray(data)
    return bind(fold_p, as_key(key), data, purpose=_FOLD)


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
