"""``scipy.integrate``, differentiable: integrals of functions and of samples, and ordinary differential equations.

A differential equation has two adjoints. The discrete one runs an adaptive Runge-Kutta method in fad's operations,
so the derivative is exactly that of the numbers computed; the steps are chosen from values and are not differentiated.
The continuous one leaves the solution to SciPy and solves the adjoint equation backwards: its memory does not grow with
the number of steps, stiff methods work, and the derivative is as accurate as the tolerances.
"""

from __future__ import annotations

from fad.scipy.cubature import dblquad, fixed_quad, nquad, tplquad
from fad.scipy.doors import missing
from fad.scipy.ode import odeint, solve_ivp
from fad.scipy.quadrature import quad
from fad.scipy.sampled import cumulative_simpson, cumulative_trapezoid, romb, simpson, trapezoid

__all__ = [
    "cumulative_simpson", "cumulative_trapezoid", "dblquad", "fixed_quad", "nquad", "odeint", "quad", "romb", "simpson",
    "solve_ivp", "tplquad", "trapezoid",
]  # fmt: skip
__getattr__ = missing("integrate")
