"""Minima within traced bounds follow the bound that they lie on, and none that they do not."""

from __future__ import annotations

import numpy as np
import pytest

import fad

optimize = pytest.importorskip("scipy.optimize")

X, T = np.array([1.1, 0.7, 1.3]), np.arange(4.0)
FAR = lambda p: np.sum((p - np.array([3.0, 0.2])) ** 2) + p[0] * p[1]
PROGRAMS = {
    "minimize": lambda x: optimize.minimize(FAR, [0.1, 0.1], bounds=[(0, x[0]), (None, x[1])], tol=1e-10).x,
    "below": lambda x: optimize.minimize(FAR, [5.0, 4.0], bounds=[(x[0] + 3, 9), (x[1], 9)], method="TNC").x,
    "Bounds": lambda x: optimize.minimize(
        FAR, [0.1, 0.1], bounds=optimize.Bounds(0.0, x[:2]), method="Powell", tol=1e-12
    ).x,
    "the function, too": lambda x: optimize.minimize(
        lambda p: FAR(p * x[2]), [0.1, 0.1], bounds=[(0, x[0]), (0, x[1])], tol=1e-10
    ).x,
    "fmin_l_bfgs_b": lambda x: optimize.fmin_l_bfgs_b(
        FAR, [0.1, 0.1], approx_grad=True, bounds=[(0, x[0]), (0, x[1])], pgtol=1e-9, factr=1.0
    )[0],
    "one number": lambda x: optimize.minimize_scalar(
        lambda t: (t - 3 * x[1]) ** 2, bounds=(0, x[0]), method="bounded", options={"xatol": 1e-9}
    ).x,
    "least_squares": lambda x: optimize.least_squares(
        lambda p: np.stack([p[0] - 3, p[1] - 0.2, p[0] * p[1]]), [0.1, 0.1], bounds=([0, -1], x[:2]), xtol=1e-14
    ).x,
    "curve_fit": lambda x: optimize.curve_fit(
        lambda t, a, b: a * t + b, T, 3 * T * x[2] + 0.5, bounds=(0, np.stack([x[0], 9.0])), xtol=1e-14
    )[0],
    "lsq_linear": lambda x: optimize.lsq_linear(
        np.array([[1.0, 0.2], [0.3, 1.0], [0.1, 0.1]]), np.array([3.0, 0.2, 0.0]), (-np.ones(2), x[:2])
    ).x,
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_minimum_follows_the_bound_that_it_lies_on(program):
    wanted = np.stack([(program(X + d) - program(X - d)) / 2e-3 for d in 1e-3 * np.eye(3)], -1)
    for jacobian in (fad.jacfwd(program), fad.jacrev(program), fad.jit(fad.jacrev(program))):
        np.testing.assert_allclose(jacobian(X), wanted, 1e-3, 1e-4)
    many = np.stack([program(X), program(1.01 * X)])
    np.testing.assert_allclose(fad.vmap(program)(np.stack([X, 1.01 * X])), many, 1e-5, 1e-6)


def test_bounds_beside_constraints_are_to_be_written_as_such():
    limit = {"type": "ineq", "fun": lambda p: p[0]}
    with pytest.raises(fad.errors.DerivativeError, match="ineq"):
        fad.jacobian(lambda x: optimize.minimize(FAR, [0.1, 0.1], bounds=[(0, x[0])] * 2, constraints=limit).x)(X)
