"""``scipy.linalg`` in SciPy's names and signatures, differentiable; what needs no derivative is SciPy's own."""

from fad.scipy.linalg import triangular, equations, functions  # noqa: I001  (a room may import earlier rooms)
