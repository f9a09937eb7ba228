"""``import fad.compat.einops`` lets einops take traced arrays: ``einops.rearrange(x, ...)`` under any transform.

einops tries every subclass of its `AbstractBackend` on a tensor, so one subclass is all it needs.
"""

from __future__ import annotations

from typing import Any

import einops
import numpy as np
from einops._backends import NumpyBackend

from fad.core.tracing.tracer import Tracer

__all__ = ["einops"]


class FadBackend(NumpyBackend):
    """Traced arrays answer NumPy's names, so NumPy's backend does the work."""

    framework_name = "fad"

    def __init__(self) -> None:
        self.np = np

    def is_appropriate_type(self, tensor: Any) -> bool:
        return type(tensor) is Tracer
