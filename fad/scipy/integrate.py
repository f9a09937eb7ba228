"""``scipy.integrate``, differentiable: integrals of functions and of samples, and ordinary differential equations.

A differential equation is differentiated in one of two ways. The discrete one gives the derivative of the numbers
computed, through the steps of an explicit Runge-Kutta method or of Radau's; the step sizes are chosen from values and
are not differentiated. The continuous one leaves the solution to SciPy, stores it, and solves the sensitivity equations
along it: every method works, and the derivative is as accurate as the tolerances.
"""

from __future__ import annotations

import scipy.integrate

from fad.core.primitives.docstring_sections import refer
from fad.scipy.boundary import solve_bvp
from fad.scipy.cubature import dblquad, fixed_quad, nquad, tplquad
from fad.scipy.ode import odeint, solve_ivp
from fad.scipy.quadrature import quad, quad_vec
from fad.scipy.registration import missing
from fad.scipy.sampled import cumulative_simpson, cumulative_trapezoid, romb, simpson, trapezoid

__all__ = [
    "cumulative_simpson", "cumulative_trapezoid", "dblquad", "fixed_quad", "nquad", "odeint", "quad", "quad_vec",
    "romb", "simpson", "solve_bvp", "solve_ivp", "tplquad", "trapezoid",
]  # fmt: skip
__getattr__ = missing("integrate")
refer({name: globals()[name] for name in __all__}, scipy.integrate)
