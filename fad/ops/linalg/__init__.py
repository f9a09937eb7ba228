"""Linear algebra: the rooms of ``numpy.linalg``. Formulas and degenerate cases: docs/design/linalg.md."""

from fad.ops.linalg import solving, decompositions, eigen, singular, functions  # noqa: I001  (a room may import earlier rooms)

__all__ = ["decompositions", "eigen", "functions", "singular", "solving"]
