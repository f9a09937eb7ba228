"""``scipy.spatial``, differentiable: `distance`, the distances between points, and `transform`, rotations."""

from __future__ import annotations

from fad.scipy.spatial import distance, transform

__all__ = ["distance", "transform"]
