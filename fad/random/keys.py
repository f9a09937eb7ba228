"""Keys and bits of random numbers: Philox 4x32-10 as an operation, and the keys that are made of keys."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from fad import backends
from fad.backends import is_numpy_scalar
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.core.tracing.views import unwrap
from fad.typing import ArrayLike, Key

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW, SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
# What a block of bits is for: the last word of the counter keeps the uses apart.
BITS, _SPLIT, FOLD = 0, 1, 2


def philox(key: Key, counter: tuple, rounds: int = 10) -> tuple:
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
        c0, c1, c2, c3 = (p1 >> SHIFT) ^ c1 ^ r0, p1 & _LOW, (p0 >> SHIFT) ^ c3 ^ r1, p0 & _LOW
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


def make_words(key, *, n, purpose):
    """Return n words of 32 bits: (..., 2) -> (..., n), uint32."""
    blocks = np.arange(-(-n // 4)).astype(np.uint64)
    index = np.zeros_like(key, shape=blocks.shape, dtype=np.uint64)
    index += blocks if type(key) is np.ndarray else backends.backend_of(key).from_host(blocks)
    zero = np.zeros_like(index)
    words = philox(key, (index, zero, zero, zero + np.uint64(purpose)))
    out = np.stack(np.broadcast_arrays(*words), axis=-1)
    return out.reshape(*out.shape[:-2], -1)[..., :n].astype(np.uint32)


def fold_words(key, data, *, purpose):
    data = (np.asarray(data) if type(data) is int else data).astype(np.uint64)  # a recorded number may be an int
    zero = np.zeros_like(data)[..., None]
    words = philox(key, ((data & _LOW)[..., None], (data >> SHIFT)[..., None], zero, zero + np.uint64(purpose)))
    return np.concatenate(words[:2], axis=-1).astype(np.uint32)


def spread_keys(size: int, batched: tuple, xs: tuple) -> list:
    return [x if b else np.broadcast_to(x, (size, *x.shape)) for x, b in zip(xs, batched, strict=True)]


words_p: Any = register(
    Primitive(
        "random_words", make_words, flat=True, archetype="flat",
        batch=lambda size, batched, xs, params: bind(words_p, *xs, **params),
        samples=lambda s: [call(np.array([1, 2], np.uint32), n=6, purpose=0)],
    )
)  # fmt: skip
fold_p: Any = register(
    Primitive(
        "random_fold", fold_words, flat=True, archetype="flat",
        batch=lambda size, batched, xs, params: bind(fold_p, *spread_keys(size, batched, xs), **params),
        samples=lambda s: [call(np.array([1, 2], np.uint32), np.asarray(7), purpose=2)],
        doc="A random key made of another one and of numbers.",
    )
)  # fmt: skip


# --- keys ----------------------------------------------------------------------------------------------------------


def key(seed: int) -> Key:
    """Return a key made from a seed: two uint32, on the default backend.

    >>> fad.random.key(7)
    array([7, 0], dtype=uint32)
    """
    seed = operator.index(seed)
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError(f"a seed has at most 64 bits, but {seed} has more")
    return backends.default().from_host(np.array([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF], np.uint32))


def as_key(x: Any) -> Any:
    """Return a key: the argument itself, or a key made from it if it is a seed."""
    if issubclass(type(x), (int, np.integer)):
        return key(x)
    if not hasattr(x, "dtype") or x.dtype != np.uint32 or x.shape != (2,):
        raise TypeError(f"a key is made by fad.random.key(seed) or split; got {x!r:.60}")
    return x


def split(key: Key, num: int = 2) -> Key:
    """Return `num` new keys, shape (num, 2), independent of each other and of what the old key gives.

    >>> a, b = fad.random.split(fad.random.key(0))
    """
    return bind(words_p, as_key(key), n=2 * num, purpose=_SPLIT).reshape(num, 2)


def fold_in(key: Key, data: ArrayLike) -> Key:
    """Return a new key made from a key and a whole number, such as the number of a step.

    >>> fad.random.fold_in(fad.random.key(0), 3).shape
    (2,)
    """
    key = as_key(key)
    dtype = data.dtype if hasattr(data, "dtype") else np.asarray(data).dtype
    if dtype.kind not in "biu":
        raise TypeError(f"fold_in takes a whole number of at most 64 bits, not one of dtype {dtype}")
    return bind(fold_p, key, put_beside(data, key), purpose=FOLD)


def put_beside(x: Any, key: Any) -> Any:
    """Return a number or host array as an array in the memory where the key lives; any other array as it is."""
    x = x if hasattr(x, "dtype") and not is_numpy_scalar(x) else np.asarray(x)
    key = unwrap(key)
    return backends.backend_of(key).from_host(x) if type(x) is np.ndarray and type(key) is not np.ndarray else x
