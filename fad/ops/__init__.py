"""The rooms: one file per family of operations; everything about an operation stands in its room."""

from fad.ops import asking, elementwise, activation  # noqa: I001  (the order of the floor: a room may import earlier rooms)
from fad.ops import complexes, selection, structural, indexing, arranging, padding, diagonals, taking, creation, reduction, contraction

__all__ = [
    "asking", "elementwise", "activation", "complexes", "selection", "structural", "indexing", "arranging", "padding", "diagonals", "taking", "creation", "reduction", "contraction",
]  # fmt: skip
