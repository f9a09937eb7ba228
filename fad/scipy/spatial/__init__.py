"""``scipy.spatial``, differentiable: neighbours, hulls, distances (`distance`) and rotations (`transform`)."""

from __future__ import annotations

import scipy.spatial

from fad.core.primitives.docstring_sections import refer
from fad.scipy.registration import missing
from fad.scipy.spatial import distance, transform
from fad.scipy.spatial.neighbours import ConvexHull, KDTree, cKDTree, distance_matrix, procrustes

__all__ = ["ConvexHull", "KDTree", "cKDTree", "distance", "distance_matrix", "procrustes", "transform"]
__getattr__ = missing("spatial")
refer({name: globals()[name] for name in ("ConvexHull", "KDTree", "cKDTree")}, scipy.spatial)
