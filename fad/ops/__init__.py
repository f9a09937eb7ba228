"""Operation modules: one file per family; everything about an operation stands in its module."""

# In the order of the layer: a module may import earlier ones.
from fad.ops.layout import asking  # noqa: I001
from fad.ops.ufuncs import elementwise, activation, complexes, selection
from fad.ops.arrangement import structural
from fad.ops.ufuncs import conversion
from fad.ops.python import numbers
from fad.ops.places import indexing, functional_updates
from fad.ops.arrangement import arranging, splitting, padding
from fad.ops.places import diagonals, taking, creation
from fad.ops.reductions import reduction, flat_reductions
from fad.ops.products import contraction
from fad.ops.reductions import norms, scans, differences, statistics, nan_statistics
from fad.ops.ufuncs import predicates
from fad.ops.places import mapping, strided
from fad.ops import curves, linalg, polynomials
from fad.ops.ordering import histograms, sorting, quantiles, sets
from fad.ops import fft
from fad.ops.products import convolution, conv, pooling
from fad.ops.ufuncs import scimath
from fad.ops.places import writing, in_place
from fad.ops.python import compiled_functions, python_math, python_cmath, python_statistics, number_types
from fad.ops import refused  # the last: it names the nearest of all the others

__all__ = [  # noqa: RUF022  (in the order of the layer)
    "asking", "elementwise", "activation", "complexes", "selection", "structural", "conversion", "numbers", "indexing",
    "functional_updates", "arranging", "splitting", "padding", "diagonals", "taking", "creation", "reduction",
    "flat_reductions", "contraction", "norms", "scans", "differences", "statistics", "nan_statistics", "einsum",
    "predicates", "mapping", "strided", "curves", "polynomials", "histograms", "linalg", "sorting", "quantiles", "sets",
    "fft", "convolution", "conv", "pooling", "scimath", "writing", "in_place", "compiled_functions", "python_math",
    "python_cmath", "python_statistics", "number_types", "refused",
]  # fmt: skip
