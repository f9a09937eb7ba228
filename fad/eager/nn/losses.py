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

        def forward(self, *tensors: Tensor) -> Tensor:
            options = dict(self.options)
            weight = [options.pop("weight")] if "weight" in options else []
            return function(*tensors, *weight, **options)

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
SoftMarginLoss = _loss("SoftMarginLoss", F.soft_margin_loss)
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss)
PoissonNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss)
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss)
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss)
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss)
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss)

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss",
    "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MultiLabelSoftMarginLoss", "NLLLoss",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
]  # fmt: skip
