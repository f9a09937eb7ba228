"""Linear algebra: the operations of ``numpy.linalg``. Formulas and degenerate cases: docs/design/linalg.md."""

from fad.ops.linalg import solving, decompositions, eigen, singular, functions  # noqa: I001  (a module may import earlier ones)

__all__ = ["decompositions", "eigen", "functions", "singular", "solving"]
