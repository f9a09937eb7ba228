"""Losses as modules: the functions of `nn.functional` with their options set once."""

from __future__ import annotations

from typing import Any

from fad.eager.nn import functional as F
from fad.eager.nn.module import Module
from fad.eager.tensor import Tensor


def _loss(title: str, function: Any) -> type:
    class Loss(Module):
        def __init__(self, weight: Tensor | None = None, **options: Any):
            super().__init__()
            self.options = options if weight is None else {**options, "weight": weight}

        def forward(self, input: Tensor, target: Tensor) -> Tensor:
            options = dict(self.options)
            weight = options.pop("weight", None)
            return function(input, target, **options) if weight is None else function(input, target, weight, **options)

    Loss.__name__ = Loss.__qualname__ = title
    Loss.__doc__ = f"The loss {function.__name__} as a module."
    return Loss


MSELoss = _loss("MSELoss", F.mse_loss)
L1Loss = _loss("L1Loss", F.l1_loss)
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss)
HuberLoss = _loss("HuberLoss", F.huber_loss)
CrossEntropyLoss = _loss("CrossEntropyLoss", F.cross_entropy)
NLLLoss = _loss("NLLLoss", F.nll_loss)
BCELoss = _loss("BCELoss", F.binary_cross_entropy)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits)
KLDivLoss = _loss("KLDivLoss", F.kl_div)

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "NLLLoss",
    "SmoothL1Loss",
]  # fmt: skip
