"""Iterations with operators given by functions, which may use traced values, and with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

sla = pytest.importorskip("scipy.sparse.linalg")

N = 6
RNG = np.random.default_rng(0)
SYMMETRIC = np.diag(np.arange(1.0, N + 1)) + 0.1
GENERAL = SYMMETRIC + 0.3 * RNG.normal(size=(N, N))
B, X = RNG.normal(size=N), np.array([1.3, 0.7, 2.1])
MADE_BEFORE = sla.LinearOperator((N, N), matvec=lambda v: SYMMETRIC @ v)
OF_A_MATRIX = sla.aslinearoperator(GENERAL)


class Stencil:
    def __init__(self, weights):
        self.weights = weights

    def apply(self, v):
        wide = np.pad(v, 1)
        return (2.0 + self.weights[0]) * v - self.weights[1] * (wide[2:] + wide[:-2])


def tight(solver, *args, **options):
    return solver(*args, rtol=1e-13, **options)[0]


def operator(matvec):
    return sla.LinearOperator((N, N), matvec=matvec)


PROGRAMS = {
    "cg": lambda x: tight(sla.cg, operator(lambda v: SYMMETRIC @ v * x[0]), B * x[1]),
    "cg of an object's method": lambda x: tight(sla.cg, operator(Stencil(x).apply), B * x[2]),
    "gmres": lambda x: tight(sla.gmres, operator(lambda v: GENERAL @ v * x[0] + x[1] * v), B),
    "bicgstab with a preconditioner": lambda x: tight(
        sla.bicgstab, operator(lambda v: GENERAL @ v * x[0]), B, M=np.diag(1.0 / np.diag(GENERAL))
    ),
    "minres": lambda x: tight(sla.minres, operator(lambda v: SYMMETRIC @ v * x[0] - 3.3 * v), B * x[1]),
    "an operator made before": lambda x: tight(sla.cg, MADE_BEFORE, B * x[0] + x[1] ** 2),
    "of a matrix, made before": lambda x: tight(sla.gmres, OF_A_MATRIX, B * x[0] + x[1] ** 2),
    "a dense matrix": lambda x: tight(sla.gmres, GENERAL * x[0] + np.eye(N) * x[1], B),
    "a sum of operators": lambda x: tight(
        sla.gmres, 2.0 * operator(lambda v: x[0] * v) + sla.aslinearoperator(GENERAL), B
    ),
    "products": lambda x: sla.aslinearoperator(GENERAL * x[0]).T @ (operator(lambda v: v * x[1]) @ B),
    "with columns": lambda x: operator(lambda v: v * x[1]) @ np.stack([B, B * x[0]], axis=1),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_solution_has_the_derivatives_of_its_differences(program):
    for x in (X, X[::-1] + 0.5):
        value = program(x)
        wanted = np.stack([(program(x + d) - program(x - d)) / 2e-6 for d in 1e-6 * np.eye(3)], -1)
        for jacobian in (fad.jacrev(program), fad.jacfwd(program), fad.jit(fad.jacrev(program))):
            np.testing.assert_allclose(jacobian(x), wanted, 1e-6, 1e-7)
        np.testing.assert_allclose(fad.jit(program)(x), value, 1e-9, 1e-11)
        many = np.stack([value, program(1.1 * x)])
        np.testing.assert_allclose(fad.vmap(program)(np.stack([x, 1.1 * x])), many, 1e-9, 1e-11)
        slope = fad.grad(lambda s, x=x: np.sum(program(x + s * np.cos(x)) ** 2))
        np.testing.assert_allclose(fad.grad(slope)(0.0), (slope(1e-5) - slope(-1e-5)) / 2e-5, 1e-5, 1e-6)


def test_complex_operators_are_solved_and_transposed():
    z = GENERAL + 0.2j * SYMMETRIC
    f = lambda x: np.abs(tight(sla.gmres, sla.LinearOperator((N, N), lambda v: z @ v * x, dtype=complex), B)) ** 2
    np.testing.assert_allclose(fad.jacrev(f)(1.3), (f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6, 1e-5, 1e-8)


def test_what_cannot_be_solved_or_followed_is_refused():
    with pytest.raises(DerivativeError, match="cg did not converge"):
        fad.grad(lambda x: sla.cg(operator(lambda v: SYMMETRIC @ v * x), B, maxiter=1)[0][0])(1.0)
    with pytest.raises(ValueError, match=r"must be square|cannot reshape"):
        fad.grad(lambda x: sla.cg(sla.LinearOperator((N, 2), lambda v: v * x), B)[0][0])(1.0)
    with pytest.raises(TypeError, match="preconditioner"):
        fad.grad(lambda x: sla.cg(SYMMETRIC * x, B, M=operator(lambda v: v * x))[0][0])(1.0)
    with pytest.raises(ValueError, match=r"[dD]imension mismatch"):
        fad.grad(lambda x: np.sum(operator(lambda v: v * x) @ B[:3]))(1.0)
