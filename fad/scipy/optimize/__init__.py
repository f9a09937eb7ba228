"""``scipy.optimize``, differentiable through the solution: SciPy solves, with derivatives that fad gives it,
and the equation that the solution satisfies gives the derivative of the solution.

Unknowns are arrays or pytrees. What the functions depend on is passed in ``args`` (or held in their closure), and the
solution is differentiable with respect to it, to any order. It does not depend on the starting point.
A solver that did not converge returns its result with a warning, as its ``success`` says;
the derivative there is refused, for there is no equation to take it from.
"""

import scipy.optimize

from fad.core.primitives.docstring_sections import refer
from fad.scipy.optimize.brackets import bisect, brenth, brentq, ridder, toms748
from fad.scipy.optimize.common import OptimizeResult
from fad.scipy.optimize.constraints import LinearConstraint
from fad.scipy.optimize.equations import fixed_point, fsolve, newton, root, root_scalar
from fad.scipy.optimize.linear import linprog
from fad.scipy.optimize.minima import curve_fit, least_squares, minimize, minimize_scalar
from fad.scipy.optimize.older import (
    brent,
    fmin,
    fmin_bfgs,
    fmin_cg,
    fmin_powell,
    fminbound,
    golden,
    leastsq,
    lsq_linear,
    nnls,
)
from fad.scipy.optimize.within import approx_fprime, fmin_l_bfgs_b, fmin_ncg, fmin_slsqp, fmin_tnc

__all__ = [
    "LinearConstraint", "OptimizeResult", "approx_fprime", "bisect", "brent", "brenth", "brentq", "curve_fit",
    "fixed_point", "fmin", "fmin_bfgs", "fmin_cg", "fmin_l_bfgs_b", "fmin_ncg", "fmin_powell", "fmin_slsqp",
    "fmin_tnc", "fminbound", "fsolve", "golden", "least_squares", "leastsq", "linprog", "lsq_linear", "minimize",
    "minimize_scalar", "newton", "nnls", "ridder", "root", "root_scalar", "toms748",
]  # fmt: skip
refer({name: globals()[name] for name in __all__}, scipy.optimize)
