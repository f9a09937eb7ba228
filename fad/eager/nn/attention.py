"""Attention and transformers, with PyTorch's layouts, masks and results."""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

import fad.nn
from fad.eager.nn import init
from fad.eager.nn.containers import ModuleList
from fad.eager.nn.layers import Layer, LayerNorm
from fad.eager.nn.module import Module
from fad.eager.tensor import Tensor, lower, wrap

__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip


class SDPBackend(enum.Enum):
    """PyTorch's ways of computing attention; there is one here."""

    ERROR, MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION = -1, 0, 1, 2, 3


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Do nothing: attention is computed in one way."""
    yield


class MultiheadAttention(Layer):
    """Attention of several heads; with PyTorch's defaults: (length, batch, width) unless `batch_first`, and what
    is returned is (result, weights)."""

    core_class = fad.nn.MultiheadAttention

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *, batch_first: bool = False
    ):
        super().__init__(embed_dim, num_heads, dropout, bias)
        self.batch_first = batch_first

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple:  # fmt: skip
        """Return the result, and the weights, the mean over heads by default, or None.

        True in a boolean mask is what may *not* be seen, as in PyTorch's module: `key_padding_mask` (batch, S),
        `attn_mask` (L, S) or (batch * heads, L, S).
        """
        turn = query.ndim == 3 and not self.batch_first
        if turn:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        mask = _one_mask(self.core.num_heads, attn_mask, key_padding_mask)
        y, weights = self._run(lambda core, *xs: core.attend(*xs, is_causal=is_causal), query, key, value, mask)
        if average_attn_weights:
            weights = weights.mean(-3)
        return (y.transpose(0, 1) if turn else y), (weights if need_weights else None)


def _one_mask(heads: int, attn_mask: Tensor | None, padding: Tensor | None) -> Any:
    """Return one mask in the form of `fad.nn`: true for what may be seen, or numbers to add to the scores."""
    masks = []
    if attn_mask is not None:
        x = attn_mask.value
        masks.append(x.reshape(-1, heads, *x.shape[1:]) if x.ndim == 3 else x)
    if padding is not None:
        masks.append(padding.value[..., None, None, :])
    if all(x.dtype == bool for x in masks):
        return ~functools.reduce(np.logical_or, masks) if masks else None
    return sum(np.where(x, np.float32(-np.inf), np.float32(0.0)) if x.dtype == bool else x for x in masks)


class _TransformerLayer(Layer):
    """What a layer of an encoder and one of a decoder are made of."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True,
    ):  # fmt: skip
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, _of_arrays(activation), layer_norm_eps=layer_norm_eps,
            norm_first=norm_first, bias=bias,
        )  # fmt: skip
        self.batch_first = batch_first


class TransformerEncoderLayer(_TransformerLayer):
    """One layer of an encoder; with PyTorch's defaults: (length, batch, width) unless `batch_first`."""

    core_class = fad.nn.TransformerEncoderLayer

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Encode; true in a boolean mask is what may *not* be seen, as in :class:`MultiheadAttention`.

        `is_causal` says that `src_mask` is that of what comes later, which is then used as it is.
        """
        turn = src.ndim == 3 and not self.batch_first
        mask = _one_mask(self.core.self_attn.num_heads, src_mask, src_key_padding_mask)
        later = is_causal and src_mask is None
        y = self._run(lambda core, x, m: core(x, m, is_causal=later), src.transpose(0, 1) if turn else src, mask)
        return y.transpose(0, 1) if turn else y


def _of_arrays(activation: Any) -> Any:
    """Return a function of tensors as one of arrays."""
    if isinstance(activation, str):
        return activation
    return lambda x: lower(activation(wrap(x)))


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after another, and a norm of the result if one is given."""

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:  # fmt: skip
        """Run the layers, each with the masks of :class:`TransformerEncoderLayer`."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoderLayer(_TransformerLayer):
    """One layer of a decoder; with PyTorch's defaults: (length, batch, width) unless `batch_first`."""

    core_class = fad.nn.TransformerDecoderLayer

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Decode; true in a boolean mask is what may *not* be seen, as in :class:`MultiheadAttention`.

        `tgt_is_causal` and `memory_is_causal` say that a mask is that of what comes later, which is then used as it is.
        """
        turn = tgt.ndim == 3 and not self.batch_first
        heads = self.core.self_attn.num_heads
        masks = _one_mask(heads, tgt_mask, tgt_key_padding_mask), _one_mask(heads, memory_mask, memory_key_padding_mask)
        later = {
            "is_causal": tgt_is_causal and tgt_mask is None,
            "memory_is_causal": memory_is_causal and memory_mask is None,
        }
        given = [x.transpose(0, 1) if turn else x for x in (tgt, memory)]
        y = self._run(lambda core, *xs: core(*xs, **later), *given, *masks)
        return y.transpose(0, 1) if turn else y


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after another, and a norm of the result if one is given."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Run the layers, each with the masks of :class:`TransformerDecoderLayer`."""
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, bool(tgt_is_causal), memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of a source and a decoder of a target; with PyTorch's defaults: (length, batch, width) unless
    `batch_first`."""

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu", custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True,
    ):  # fmt: skip
        super().__init__()
        given = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        norms = (LayerNorm(d_model, layer_norm_eps, bias=bias) for _ in range(2))
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*given), num_encoder_layers, next(norms)
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*given), num_decoder_layers, next(norms)
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for p in self.parameters():
            if p.dim() > 1:
                init.xavier_uniform_(p)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """Encode the source and decode the target, with the masks of the layers."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
            memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the mask of what comes later: -inf above the diagonal, zero elsewhere."""
        return Tensor(np.triu(np.full((sz, sz), -np.inf, dtype or np.float32), 1))
