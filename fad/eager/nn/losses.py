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
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", F.multilabel_margin_loss)
PoissonNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss)
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss)
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss)
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss)
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss)
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss)

MultiMarginLoss = _loss("MultiMarginLoss", F.multi_margin_loss)
TripletMarginWithDistanceLoss = _loss("TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss)


class CTCLoss(Module):
    """The loss ctc_loss as a module: log_probs (T, N, C), targets, and the lengths of both."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """Return the loss; see `fad.nn.functional.ctc_loss`."""
        options = {"reduction": self.reduction, "zero_infinity": self.zero_infinity}
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, **options)


class CosineSimilarity(Module):
    """The function cosine_similarity as a module."""

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the cosine of the angle between x1 and x2 along an axis."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The function pairwise_distance as a module."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the p-norm of ``x1 - x2 + eps`` along the last axis."""
        y = F.pairwise_distance(x1, x2, self.p, self.eps)
        return y.unsqueeze(-1) if self.keepdim else y


__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PairwiseDistance",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip
