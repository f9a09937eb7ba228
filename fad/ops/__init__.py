"""The rooms: one file per family of operations; everything about an operation stands in its room."""

from fad.ops import asking, elementwise  # noqa: I001  (the order of the floor: a room may import earlier rooms)
from fad.ops import complexes, selection, structural, indexing, creation, reduction, contraction

__all__ = [
    "asking", "elementwise", "complexes", "selection", "structural", "indexing", "creation", "reduction", "contraction",
]  # fmt: skip
