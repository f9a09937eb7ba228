"""``scipy.ndimage``, differentiable: filters, images between their pixels, and what is measured by labels.

Every `mode` at the edges is SciPy's. Weights, the width of a Gaussian, coordinates, shifts and matrices may be traced
as well as images. A window's size and origin, the order of a spline and the factor of a zoom are constants.

>>> import numpy as np, fad
>>> fad.grad(lambda x: fad.scipy.ndimage.uniform_filter(x, 3)[1])(np.array([1.0, 2.0, 6.0])).round(6)
array([0.333333, 0.333333, 0.333333])
"""

from __future__ import annotations

from fad.scipy.ndimage.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from fad.scipy.ndimage.interpolation import (
    affine_transform,
    map_coordinates,
    rotate,
    shift,
    spline_filter,
    spline_filter1d,
    zoom,
)
from fad.scipy.ndimage.measurements import (
    center_of_mass,
    maximum,
    mean,
    minimum,
    standard_deviation,
    sum,
    sum_labels,
    variance,
)
from fad.scipy.ndimage.ranks import (
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from fad.scipy.registration import missing

__all__ = [
    "affine_transform", "center_of_mass", "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter",
    "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace", "laplace", "map_coordinates", "maximum",
    "maximum_filter", "maximum_filter1d", "mean", "median_filter", "minimum", "minimum_filter", "minimum_filter1d",
    "percentile_filter", "prewitt", "rank_filter", "rotate", "shift", "sobel", "spline_filter", "spline_filter1d",
    "standard_deviation", "sum", "sum_labels", "uniform_filter", "uniform_filter1d", "variance", "zoom",
]  # fmt: skip
__getattr__ = missing("ndimage")
