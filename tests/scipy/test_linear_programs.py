"""Linear programs have the derivatives of the vertex that their constraints hold, or say why there is none."""

from __future__ import annotations

import numpy as np
import pytest

import fad

optimize = pytest.importorskip("scipy.optimize")

from scipy.optimize import linprog  # noqa: E402

A, B, C = np.array([[1.0, 1.0, 0.5], [1.0, 3.0, 0.2]]), np.array([4.0, 6.0]), np.array([-1.0, -2.0, 0.3])
X = np.array([1.1, 0.7, 1.3])
PROGRAMS = {
    "the ends": lambda x: linprog(C, A, B + x[:2]).x,
    "the least value by its coefficients": lambda x: linprog(C * x, A, B).fun,
    "rows": lambda x: linprog(C, A * x, B).x,
    "equations": lambda x: linprog(-C, A * x, B, np.ones((1, 3)), x[:1]).x,
    "bounds": lambda x: linprog(C, A, B, bounds=[(x[0], None), (0, x[1]), (0.1 * x[2], 3)]).x,
    "one pair": lambda x: linprog(-C, bounds=(x[0], 2 * x[0])).x,
    "slack": lambda x: linprog(C, np.concatenate([A, [x]]), np.append(B, 30.0)).slack,
    "marginals": lambda x: linprog(C * x, A, B).ineqlin.marginals,
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_vertex_has_the_derivatives_of_its_differences(program):
    value = program(X)
    wanted = np.stack([(program(X + d) - program(X - d)) / 2e-5 for d in 1e-5 * np.eye(3)], -1)
    for jacobian in (fad.jacfwd(program), fad.jacrev(program), fad.jit(fad.jacrev(program))):
        np.testing.assert_allclose(jacobian(X), wanted, 1e-6, 1e-7)
    np.testing.assert_allclose(fad.jvp(program, (X,), (X,))[0], value, 1e-9, 1e-9)
    np.testing.assert_allclose(fad.jit(program)(X), value, 1e-9, 1e-9)
    many = np.stack([value, program(1.01 * X)])
    np.testing.assert_allclose(fad.vmap(program)(np.stack([X, 1.01 * X])), many, 1e-9, 1e-9)
    slope = fad.grad(lambda s: np.sum(program(X + s * np.cos(X)) ** 2))
    np.testing.assert_allclose(fad.grad(slope)(0.0), (slope(1e-4) - slope(-1e-4)) / 2e-4, 1e-4, 1e-4)


REFUSED = {
    "several points": (lambda x: linprog([-1, -1], np.array([[1.0, 1]]), x[:1]).fun, "as good"),
    "too many constraints": (lambda x: linprog([-1, -2], np.array([[1.0, 0], [0, 1], [1, 1]]), x).x, "as good"),
    "no solution": (lambda x: linprog([-1.0], np.array([[1.0], [-1.0]]), np.stack([x[0], -2 * x[0]])).x, "converge"),
    "no least value": (lambda x: linprog(-x).fun, "converge"),
}  # fmt: skip


@pytest.mark.parametrize(("program", "says"), REFUSED.values(), ids=REFUSED)
def test_where_a_vertex_is_not_held_there_is_no_derivative(program, says):
    with pytest.raises(fad.errors.DerivativeError, match=says):
        fad.vjp(program, np.array([1.0, 1.0, 2.0]))


def test_whole_numbers_and_other_methods_are_for_plain_arguments():
    for settings in ({"integrality": 1}, {"method": "revised simplex"}):
        with pytest.raises(NotImplementedError, match="linprog"):
            fad.vjp(lambda b, s=settings: linprog(C, A, b, **s).x, B)
    assert linprog(C, A, B, integrality=1).success
