"""Attention of several heads, in PyTorch's names and layouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad import random
from fad.nn import functional as F
from fad.nn import init
from fad.nn.linear import Linear
from fad.nn.lookup import Dropout
from fad.nn.module import Module
from fad.typing import Array, DTypeLike, Key


class MultiheadAttention(Module):
    """Attention in `num_heads` heads: query (batch, L, embed), key and value (batch, S, embed) -> (batch, L, embed).

    ``in_proj_weight`` (3 embed, embed) holds the weights for queries, keys and values, ``out_proj`` is a Linear.
    The batch comes first, as with PyTorch's ``batch_first=True``; inputs without it are one example. In training mode
    each weight of the attention is dropped with the probability `dropout`.

    >>> MultiheadAttention(8, 2, key=0)(np.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *,
        key: Key | None = None, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim={embed_dim} must be a multiple of num_heads={num_heads}")
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        key = init.next_key(key)
        if dropout:  # by a key of its own, so that the weights do not depend on it
            self.dropped = Dropout(dropout, key=random.fold_in(key, 0))
        k1, k2 = random.split(key)
        bound = math.sqrt(6.0 / (4 * embed_dim))  # Glorot's, as in PyTorch
        self.in_proj_weight = init.uniform(k1, (3 * embed_dim, embed_dim), -bound, bound, dtype)
        self.in_proj_bias = init.zeros(3 * embed_dim, dtype) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, key=k2, dtype=dtype)
        if bias:
            self.out_proj.bias = init.zeros(embed_dim, dtype)

    def forward(
        self, query: Array, key: Array = None, value: Array = None, mask: Array = None, *, is_causal: bool = False
    ) -> Array:
        """Attend; without key and value, to the query itself. `mask` and `is_causal` as in the function
        `scaled_dot_product_attention`; a mask has a shape that broadcasts to (batch, heads, L, S)."""
        return self.attend(query, key, value, mask, is_causal=is_causal)[0]

    def attend(
        self, query: Any, key: Any = None, value: Any = None, mask: Any = None, *, is_causal: bool = False
    ) -> tuple:
        """Return what :meth:`forward` does, and how much each query attended to each key in each head, what was dropped
        being zero: (batch, heads, L, S)."""
        if query.shape[-1] != self.embed_dim:
            raise ValueError(f"MultiheadAttention of width {self.embed_dim} got an input of shape {query.shape}")
        if key is None:
            n = self.embed_dim
            together = F.linear(query, self.in_proj_weight, self.in_proj_bias)
            q, k, v = (together[..., i * n : (i + 1) * n] for i in range(3))
        else:
            value = key if value is None else value
            q, k, v = (self._project(x, i) for i, x in enumerate((query, key, value)))
        shares = F.attention_weights(self._heads(q), self._heads(k), mask, is_causal=is_causal)
        if self.dropout:
            shares = self.dropped(shares)
        y = (shares @ self._heads(v)).swapaxes(-2, -3)
        return self.out_proj(y.reshape(*y.shape[:-2], self.embed_dim)), shares

    def weights(self, query: Any, key: Any = None, mask: Any = None, *, is_causal: bool = False) -> Any:
        """Return how much each query attends to each key, the mean over the heads, nothing dropped: (batch, L, S)."""
        q, k = (self._heads(self._project(x, i)) for i, x in enumerate((query, query if key is None else key)))
        return np.mean(F.attention_weights(q, k, mask, is_causal=is_causal), axis=-3)

    def _project(self, x: Any, i: int) -> Any:
        part = slice(i * self.embed_dim, (i + 1) * self.embed_dim)
        bias = None if self.in_proj_bias is None else self.in_proj_bias[part]
        return F.linear(x, self.in_proj_weight[part], bias)

    def _heads(self, x: Any) -> Any:
        return np.swapaxes(x.reshape(*x.shape[:-1], self.num_heads, self.embed_dim // self.num_heads), -2, -3)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}" + (f", dropout={self.dropout}" if self.dropout else "")
