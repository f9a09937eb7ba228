"""Transformers: attention and two linear layers, each with a sum around and a norm, in encoders and decoders."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from fad import random
from fad.nn import functional as F
from fad.nn import init
from fad.nn.attention import MultiheadAttention
from fad.nn.linear import Linear
from fad.nn.lookup import Dropout
from fad.nn.module import Module
from fad.nn.normalisation import LayerNorm
from fad.typing import Array, DTypeLike, Key

_ACTIVATIONS: dict[str, Callable] = {"relu": F.relu, "gelu": F.gelu}


def _activation(given: Any) -> Callable:
    if isinstance(given, str) and given not in _ACTIVATIONS:
        raise ValueError(f"activation must be 'relu', 'gelu' or a function, not {given!r}")
    return _ACTIVATIONS[given] if isinstance(given, str) else given


def copies(layer: Module, n: int) -> list:
    """Return n copies of a layer, with the same weights and other numbers for their dropout."""
    found = [copy.deepcopy(layer) for _ in range(n)]
    for i, one in enumerate(found):
        for m in one.modules():
            if isinstance(m, Dropout):
                m.key = random.fold_in(m.key, i)
    return found


class TransformerEncoderLayer(Module):
    """One layer of an encoder: (batch, length, d_model) -> the same; inputs without a batch are one example.

    ``x = norm1(x + attention(x))``, ``x = norm2(x + linear2(activation(linear1(x))))``, with dropout in training mode;
    with `norm_first` each norm is taken of what goes into the part instead. Source: Vaswani et al., *Attention is all
    you need*, 2017; Xiong et al., *On layer normalization in the transformer architecture*, 2020.

    Parameters
    ----------
    d_model, nhead, dim_feedforward : int
        The width, the number of heads, and the width between the two linear layers.
    dropout : float
        The probability with which weights of the attention, and elements of what the parts return, are dropped.
    activation : str or callable
        ``"relu"``, ``"gelu"``, or a function of arrays.
    layer_norm_eps : float, keyword only
        Added to variances.
    norm_first : bool, keyword only
        Whether normalisation comes before attention and linear layers, not behind.
    bias : bool, keyword only
        Whether the linear layers have one.
    key : random key or int, keyword only
        What the first parameters are drawn with.
    dtype : dtype, keyword only
        Of the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> TransformerEncoderLayer(8, 2, 16, key=0)(np.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable = "relu", *, layer_norm_eps: float = 1e-5, norm_first: bool = False,
        bias: bool = True, key: Key | None = None, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        keys = random.split(init.next_key(key), 6)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, key=keys[0], dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, key=keys[1], dtype=dtype)
        self.dropout = Dropout(dropout, key=keys[2])
        self.linear2 = Linear(dim_feedforward, d_model, bias, key=keys[3], dtype=dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout, key=keys[4])
        self.dropout2 = Dropout(dropout, key=keys[5])
        self.norm_first = norm_first
        self.activation = _activation(activation)

    def forward(self, x: Array, mask: Array = None, *, is_causal: bool = False) -> Array:
        """Encode; `mask` and `is_causal` are those of :class:`MultiheadAttention`."""
        if self.norm_first:
            x = x + self._attend(self.norm1(x), mask, is_causal)
            return x + self._feed_forward(self.norm2(x))
        x = self.norm1(x + self._attend(x, mask, is_causal))
        return self.norm2(x + self._feed_forward(x))

    def _attend(self, x: Any, mask: Any, is_causal: bool) -> Any:
        return self.dropout1(self.self_attn(x, mask=mask, is_causal=is_causal))

    def _feed_forward(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after another, and a norm of the result if one is given.

    As in PyTorch all copies begin with the same weights. Each draws other numbers for its dropout.

    >>> import numpy as np
    >>> layer = TransformerEncoderLayer(8, 2, 16, key=0)
    >>> TransformerEncoder(layer, 3)(np.ones((2, 5, 8))).shape
    (2, 5, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None):
        self.layers = copies(encoder_layer, num_layers)
        self.norm = norm

    def forward(self, x: Array, mask: Array = None, *, is_causal: bool = False) -> Array:
        for layer in self.layers:
            x = layer(x, mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)


class TransformerDecoderLayer(Module):
    """One layer of a decoder: (batch, length, d_model) and what an encoder remembers, (batch, S, d_model) -> the first.

    ``x = norm1(x + attention(x))``, ``x = norm2(x + attention(x, memory))``, ``x = norm3(x + linear2(activation(
    linear1(x))))``; parameters and the rest as in :class:`TransformerEncoderLayer`.

    >>> import numpy as np
    >>> TransformerDecoderLayer(8, 2, 16, key=0)(np.ones((3, 5, 8)), np.ones((3, 7, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: str | Callable = "relu", *, layer_norm_eps: float = 1e-5, norm_first: bool = False,
        bias: bool = True, key: Key | None = None, dtype: DTypeLike | None = None,
    ):  # fmt: skip
        keys = random.split(init.next_key(key), 8)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, key=keys[0], dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, key=keys[1], dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, key=keys[2], dtype=dtype)
        self.dropout = Dropout(dropout, key=keys[3])
        self.linear2 = Linear(dim_feedforward, d_model, bias, key=keys[4], dtype=dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout, key=keys[5])
        self.dropout2 = Dropout(dropout, key=keys[6])
        self.dropout3 = Dropout(dropout, key=keys[7])
        self.norm_first = norm_first
        self.activation = _activation(activation)

    def forward(
        self, x: Array, memory: Array, mask: Array = None, memory_mask: Array = None, *,
        is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Array:  # fmt: skip
        """Decode; the masks are those of :class:`MultiheadAttention`, to the decoder's own input and to the memory."""
        first = self.norm_first
        parts: list = [
            (self.norm1, lambda x: self.dropout1(self.self_attn(x, mask=mask, is_causal=is_causal))),
            (self.norm2, lambda x: self._attend_to_memory(x, memory, memory_mask, memory_is_causal)),
            (self.norm3, lambda x: self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))),
        ]
        for norm, part in parts:
            x = x + part(norm(x)) if first else norm(x + part(x))
        return x

    def _attend_to_memory(self, x: Any, memory: Any, mask: Any, is_causal: bool) -> Any:
        return self.dropout2(self.multihead_attn(x, memory, memory, mask, is_causal=is_causal))


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after another, and a norm of the result if one is given.

    >>> import numpy as np
    >>> layer = TransformerDecoderLayer(8, 2, 16, key=0)
    >>> TransformerDecoder(layer, 3)(np.ones((2, 5, 8)), np.ones((2, 4, 8))).shape
    (2, 5, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        self.layers = copies(decoder_layer, num_layers)
        self.norm = norm

    def forward(
        self, x: Array, memory: Array, mask: Array = None, memory_mask: Array = None, *,
        is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Array:  # fmt: skip
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask, is_causal=is_causal, memory_is_causal=memory_is_causal)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of a source and a decoder of a target: (batch, S, d_model), (batch, T, d_model) -> the second.

    Each has a norm at its end, and weights of two axes are drawn uniformly as Glorot and Bengio do, as in PyTorch.
    Source: Vaswani et al., *Attention is all you need*, 2017.

    >>> import numpy as np
    >>> Transformer(8, 2, 1, 1, 16, key=0)(np.ones((3, 5, 8)), np.ones((3, 4, 8)), tgt_is_causal=True).shape
    (3, 4, 8)
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable = "relu", *,
        layer_norm_eps: float = 1e-5, norm_first: bool = False, bias: bool = True, key: Key | None = None,
        dtype: DTypeLike | None = None,
    ):  # fmt: skip
        keys = random.split(init.next_key(key), 3)
        options: dict = {"layer_norm_eps": layer_norm_eps, "norm_first": norm_first, "bias": bias, "dtype": dtype}
        settings = (d_model, nhead, dim_feedforward, dropout, activation)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype) for _ in range(2)]
        encoder = TransformerEncoderLayer(*settings, **options, key=keys[0])
        decoder = TransformerDecoderLayer(*settings, **options, key=keys[1])
        self.encoder = TransformerEncoder(encoder, num_encoder_layers, norms[0])
        self.decoder = TransformerDecoder(decoder, num_decoder_layers, norms[1])
        wide = [p for _, p in self.named_parameters() if p.ndim > 1]
        for p, k in zip(wide, random.split(keys[2], len(wide)), strict=True):
            p[...] = init.xavier_uniform(k, p.shape, dtype=p.dtype)

    def forward(
        self, src: Array, tgt: Array, src_mask: Array = None, tgt_mask: Array = None, memory_mask: Array = None, *,
        src_is_causal: bool = False, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Array:  # fmt: skip
        memory = self.encoder(src, src_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, is_causal=tgt_is_causal, memory_is_causal=memory_is_causal
        )
