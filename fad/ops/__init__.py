"""Operation modules: one file per family; everything about an operation stands in its module."""

# In the order of the layer: a module may import earlier ones.
from fad.ops import asking, elementwise, activation  # noqa: I001
from fad.ops import complexes, selection, structural, conversion, numbers, indexing, functional_updates
from fad.ops import arranging, splitting, padding, diagonals, taking, creation
from fad.ops import reduction, flat_reductions, contraction, norms, scans, differences
from fad.ops import statistics, nan_statistics, predicates, mapping, strided, curves
from fad.ops import linalg, polynomials, histograms
from fad.ops import sorting, quantiles, sets, fft, convolution, conv, pooling, scimath
from fad.ops import writing, in_place, compiled_functions, python_math, python_cmath, python_statistics, number_types
from fad.ops import refused  # the last: it names the nearest of all the others

__all__ = [  # noqa: RUF022  (in the order of the layer)
    "asking", "elementwise", "activation", "complexes", "selection", "structural", "conversion", "numbers", "indexing",
    "functional_updates", "arranging", "splitting", "padding", "diagonals", "taking", "creation", "reduction",
    "flat_reductions", "contraction", "norms", "scans", "differences", "statistics", "nan_statistics", "einsum",
    "predicates", "mapping", "strided", "curves", "polynomials", "histograms", "linalg", "sorting", "quantiles", "sets",
    "fft", "convolution", "conv", "pooling", "scimath", "writing", "in_place", "compiled_functions", "python_math",
    "python_cmath", "python_statistics", "number_types", "refused",
]  # fmt: skip
