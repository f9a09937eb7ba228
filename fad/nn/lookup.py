"""Layers that look things up or leave things out: embeddings and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import random
from fad.nn import functional as F
from fad.nn import init
from fad.nn.module import Buffer, Module
from fad.typing import Array, DTypeLike, Key


class Embedding(Module):
    """A table of vectors: whole numbers of any shape in, ``(*shape, embedding_dim)`` out; weight (num, dim) ~ N(0, 1).

    The row `padding_idx` starts at zero and gets no gradient.

    >>> Embedding(10, 3, key=0)(np.array([1, 4])).shape
    (2, 3)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *,
        key: Key | None = None, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx={padding_idx} is no row of a table of {num_embeddings}")
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % num_embeddings
        self.weight = init.normal(init.next_key(key), (num_embeddings, embedding_dim), dtype=dtype)
        if padding_idx is not None:
            self.weight[padding_idx] = 0.0

    def forward(self, indices: Array) -> Array:
        return F.embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class EmbeddingBag(Module):
    """The sum, mean or maximum over bags of rows of a table: see `functional.embedding_bag`.

    >>> EmbeddingBag(10, 3, key=0)(np.array([1, 4, 4]), np.array([0, 1])).shape
    (2, 3)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, mode: str = "mean", *, key: Key | None = None,
        dtype: DTypeLike | None = None,
    ):  # fmt: skip
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.mode = mode
        self.weight = init.normal(init.next_key(key), (num_embeddings, embedding_dim), dtype=dtype)

    def forward(self, indices: Array, offsets: Array = None, per_sample_weights: Array = None) -> Array:
        return F.embedding_bag(indices, self.weight, offsets, self.mode, per_sample_weights)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"


class Dropout(Module):
    """In training mode, set each element to 0 with probability p and divide the others by 1 - p.

    The layer keeps a random key and counts its calls, both in buffers that ``state_dict(everything=True)`` saves.
    A key may also be given in the call. Under ``vmap`` every batch element drops the same elements, unless each
    batch element is given a key of its own.

    >>> layer = Dropout(0.5, key=0)
    >>> sorted(set(layer(np.ones(100)).tolist()))
    [0.0, 2.0]
    >>> layer.eval()(np.ones(2))
    array([1., 1.])
    """

    function = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5, *, key: Key | None = None):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"p is a probability, not {p}")
        self.p = p
        self.key = Buffer(init.next_key(key), persistent=False)
        self.calls: Any = Buffer(np.array(0), persistent=False)

    def forward(self, x: Array, *, key: Array = None) -> Array:
        if not self.training or self.p == 0.0:
            return x
        if key is None:
            key = random.fold_in(self.key, self.calls)
            self.calls = self.calls + 1
        return type(self).function(x, self.p, key=key)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(Dropout):
    """`Dropout` of whole channels of (batch, channels, length).

    >>> fad.nn.Dropout1d(0.5, key=0)(np.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    function = staticmethod(F.dropout1d)


class Dropout2d(Dropout):
    """`Dropout` of whole channels of images.

    >>> layer = Dropout2d(0.5, key=0)
    >>> sorted({x.tobytes() == np.zeros((2, 2)).tobytes() for x in layer(np.ones((4, 8, 2, 2))).reshape(32, 2, 2)})
    [False, True]
    """

    function = staticmethod(F.dropout2d)


class Dropout3d(Dropout):
    """`Dropout` of whole channels of volumes.

    >>> fad.nn.Dropout3d(0.5, key=0)(np.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """

    function = staticmethod(F.dropout3d)


class AlphaDropout(Dropout):
    """`Dropout` after `SELU`, which keeps mean and variance: see `functional.alpha_dropout`.

    >>> fad.nn.AlphaDropout(0.5, key=0).eval()(np.ones(2))
    array([1., 1.])
    """

    function = staticmethod(F.alpha_dropout)
