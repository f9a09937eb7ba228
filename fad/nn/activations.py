"""Activations as modules, for `Sequential`."""

from __future__ import annotations

from typing import Any

from fad.nn import functional as F
from fad.nn.module import Module


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Any) -> Any:
        return F.relu(x)
