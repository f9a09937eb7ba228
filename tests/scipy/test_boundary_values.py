"""Boundary value problems have the derivatives of their differences, in parameters, conditions and ends."""

from __future__ import annotations

import numpy as np
import pytest

import fad

integrate = pytest.importorskip("scipy.integrate")

from scipy.integrate import solve_bvp  # noqa: E402

X, MESH, GUESS = np.array([1.1, 0.7, 1.3]), np.linspace(0.0, 1.0, 11), np.ones((2, 11))


def oscillate(x, end=1.0, **settings):
    def fun(t, y):
        return np.vstack([y[1], -x[0] * np.sin(y[0]) + t * x[2]])

    return solve_bvp(fun, lambda a, b: np.array([a[0] - 0.2, b[0] - x[1]]), end * MESH, GUESS, tol=1e-6, **settings)


def find_frequency(x):
    fun = lambda t, y, p: np.vstack([y[1], -(p[0] ** 2) * x[0] * y[0]])
    bc = lambda a, b, p: np.array([a[0], b[0], a[1] - p[0] * x[1]])
    return solve_bvp(fun, bc, MESH, np.stack([np.sin(3 * MESH), 3 * np.cos(3 * MESH)]), [3.0], tol=1e-6)


PROGRAMS = {
    "a slope": lambda x: oscillate(x).y[1, 0],
    "the end": lambda x: oscillate(X, end=x[0]).y[1, 0],
    "between": lambda x: oscillate(x).sol(0.37),
    "a parameter": lambda x: find_frequency(x).p,
    "slopes": lambda x: find_frequency(x).yp[1, -1],
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_solutions_have_the_derivatives_of_their_differences(program):
    value = program(X)
    wanted = np.stack([(program(X + d) - program(X - d)) / 2e-3 for d in 1e-3 * np.eye(3)], -1)
    for jacobian in (fad.jacfwd(program), fad.jacrev(program)):
        np.testing.assert_allclose(jacobian(X), wanted, 1e-4, 1e-4)
    np.testing.assert_allclose(fad.jvp(program, (X,), (X,))[0], value, 1e-9)
    slope = fad.grad(lambda s: np.sum(program(X + s * np.cos(X)) ** 2))
    np.testing.assert_allclose(fad.grad(slope)(0.0), (slope(1e-3) - slope(-1e-3)) / 2e-3, 1e-3, 1e-3)


def test_what_has_no_derivative_is_refused():
    for transformed in (fad.jit(PROGRAMS["a slope"]), lambda x: fad.vmap(PROGRAMS["a slope"])(np.stack([x, x]))):
        with pytest.raises(NotImplementedError, match="under jit and vmap"):
            transformed(X)
    with pytest.raises(NotImplementedError, match="singular"):
        fad.grad(lambda x: oscillate(x, S=np.zeros((2, 2))).y[1, 0])(X)
    with pytest.raises(fad.errors.DerivativeError, match="converge"):
        fad.grad(lambda x: oscillate(1e3 * x, max_nodes=11).y[1, 0])(X)
