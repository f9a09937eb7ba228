"""The encoder of transformers: attention to itself and two linear layers, each with a sum around and a norm."""

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

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


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

    Examples
    --------
    >>> import numpy as np
    >>> TransformerEncoderLayer(8, 2, 16, key=0)(np.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        *, layer_norm_eps: float = 1e-5, norm_first: bool = False, bias: bool = True, key: Any = None,
        dtype: Any = None,
    ):  # fmt: skip
        if isinstance(activation, str) and activation not in _ACTIVATIONS:
            raise ValueError(f"activation must be 'relu', 'gelu' or a function, not {activation!r}")
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
        self.activation: Callable = _ACTIVATIONS[activation] if isinstance(activation, str) else activation

    def forward(self, x: Any, mask: Any = None, *, is_causal: bool = False) -> Any:
        """Encode; `mask` and `is_causal` are those of :class:`MultiheadAttention`."""
        if self.norm_first:
            x = x + self._attended(self.norm1(x), mask, is_causal)
            return x + self._fed_forward(self.norm2(x))
        x = self.norm1(x + self._attended(x, mask, is_causal))
        return self.norm2(x + self._fed_forward(x))

    def _attended(self, x: Any, mask: Any, is_causal: bool) -> Any:
        return self.dropout1(self.self_attn(x, mask=mask, is_causal=is_causal))

    def _fed_forward(self, x: Any) -> Any:
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
        self.layers = [copy.deepcopy(encoder_layer) for _ in range(num_layers)]
        for i, layer in enumerate(self.layers):
            for m in layer.modules():
                if isinstance(m, Dropout):
                    m.key = random.fold_in(m.key, i)
        self.norm = norm

    def forward(self, x: Any, mask: Any = None, *, is_causal: bool = False) -> Any:
        for layer in self.layers:
            x = layer(x, mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)
