"""``scipy.spatial``, differentiable: `distance`, the distances between points."""

from __future__ import annotations

from fad.scipy.spatial import distance

__all__ = ["distance"]
