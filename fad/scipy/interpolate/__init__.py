"""``scipy.interpolate``, differentiable: splines, piecewise polynomials, and values on grids.

An interpolant is differentiable in the values that it was made from, in the knots, and in the points where it is
evaluated; and it is a tree of its arrays, so that it can be an argument or result of a transformed function.

>>> import numpy as np, fad
>>> x = np.arange(6.0)
>>> fad.grad(lambda y: fad.scipy.interpolate.CubicSpline(x, y)(2.0))(np.sin(x)).round(9)
array([0., 0., 1., 0., 0., 0.])
"""

from __future__ import annotations

import scipy.interpolate

from fad.core.primitives.docstring_sections import refer
from fad.scipy.interpolate import operations  # noqa: F401  (registers the curves)
from fad.scipy.interpolate.fitpack import (
    InterpolatedUnivariateSpline,
    LSQUnivariateSpline,
    UnivariateSpline,
    splev,
    splint,
    splrep,
)
from fad.scipy.interpolate.grids import RegularGridInterpolator, interp1d, interpn
from fad.scipy.interpolate.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
)
from fad.scipy.interpolate.polynomials import (
    BarycentricInterpolator,
    KroghInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
)
from fad.scipy.interpolate.scattered import RBFInterpolator
from fad.scipy.interpolate.splines import BSpline, make_interp_spline, make_lsq_spline
from fad.scipy.interpolate.surfaces import (
    BivariateSpline,
    LSQBivariateSpline,
    RectBivariateSpline,
    SmoothBivariateSpline,
    bisplev,
)
from fad.scipy.interpolate.triangulated import LinearNDInterpolator, NearestNDInterpolator, griddata
from fad.scipy.registration import missing

__all__ = [
    "Akima1DInterpolator", "BSpline", "BarycentricInterpolator", "BivariateSpline", "CubicHermiteSpline",
    "CubicSpline", "InterpolatedUnivariateSpline", "KroghInterpolator", "LSQBivariateSpline", "LSQUnivariateSpline",
    "LinearNDInterpolator", "NearestNDInterpolator", "PPoly", "PchipInterpolator", "RBFInterpolator",
    "RectBivariateSpline", "RegularGridInterpolator", "SmoothBivariateSpline", "UnivariateSpline",
    "barycentric_interpolate", "bisplev", "griddata", "interp1d", "interpn", "krogh_interpolate",
    "make_interp_spline", "make_lsq_spline", "splev", "splint", "splrep",
]  # fmt: skip
__getattr__ = missing("interpolate")
refer({name: globals()[name] for name in __all__}, scipy.interpolate)
