"""Roots and linear systems: derivatives from the equation alone, to any order, under every transform."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from each import each

import fad
from fad.errors import CustomRuleError, DerivativeError, TreeMismatchError
from fad.scipy import optimize


def bisect(f, x):
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return high


def cube_root(a):
    return fad.custom_root(lambda x: x**3 - a, 1.0, bisect, lambda g, y: y / g(1.0))


def dense(matvec, b):
    return np.linalg.solve(fad.jacobian(matvec)(b), b)


def solved(a, b):
    return fad.custom_linear_solve(lambda x: a @ x, b, dense, dense)


def loss(solve):
    return lambda a, b: np.sum(np.sin(solve(a, b)))


@pytest.fixture
def system():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=3)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_every_order_of_derivative_of_a_root_is_exact(order):
    f, exponents = cube_root, [1 / 3 - k for k in range(order)]
    for _ in range(order):
        f = fad.grad(f)
    assert f(2.0) == pytest.approx(np.prod(exponents) * 2.0 ** (1 / 3 - order), rel=1e-11)


def newton(f, x):
    for _ in range(30):
        x = x - np.linalg.solve(np.atleast_2d(fad.jacobian(f)(x)), np.atleast_1d(f(x))).reshape(np.shape(x))
    return x


LEVEL = {"a": 2.0}


def _of_a_global(a):
    LEVEL["a"] = a
    return fad.custom_root(lambda x: x**3 - LEVEL["a"], 1.0, newton, lambda g, y: y / g(1.0))


def _of_a_closure(a):
    return fad.custom_root(lambda x: x**3 - a, 1.0, newton, lambda g, y: y / g(1.0))


@pytest.mark.parametrize("root", [_of_a_closure, _of_a_global])
def test_a_solver_may_take_derivatives_of_its_own(root):
    assert root(2.0) == pytest.approx(2.0 ** (1 / 3))
    assert fad.grad(root)(2.0) == pytest.approx(2.0 ** (-2 / 3) / 3)
    assert fad.grad(fad.grad(root))(2.0) == pytest.approx(-2 * 2.0 ** (-5 / 3) / 9)
    assert fad.jvp(root, (2.0,), (1.0,))[1] == pytest.approx(2.0 ** (-2 / 3) / 3)
    np.testing.assert_allclose(fad.vmap(root)(np.array([1.0, 8.0])), [1.0, 2.0])
    assert fad.jit(fad.grad(root))(2.0) == pytest.approx(2.0 ** (-2 / 3) / 3)


def test_a_solver_of_another_library_sees_plain_numbers():
    optimize = pytest.importorskip("scipy.optimize")

    def solve(f, x):
        return optimize.root(f, x, jac=fad.jacobian(f), tol=1e-12).x

    def root(a):
        tangent_solve = lambda g, y: np.linalg.solve(fad.jacobian(g)(y), y)
        return np.sum(fad.custom_root(lambda x: x + 0.1 * np.roll(x, 1) ** 2 - a, np.ones(3), solve, tangent_solve))

    a = np.array([1.0, 2.0, 3.0])
    t = np.array([1.0, 0.0, 0.0])
    numerical = (root(a + 1e-5 * t) - root(a - 1e-5 * t)) / 2e-5
    assert fad.grad(root)(a)[0] == pytest.approx(numerical, rel=1e-8)


def test_a_root_composes_with_jvp_hessian_vmap_and_back():
    a = np.array([1.0, 2.0, 3.0])
    first = a ** (-2 / 3) / 3
    assert fad.jvp(fad.grad(cube_root), (2.0,), (1.0,))[1] == pytest.approx(fad.hessian(cube_root)(2.0))
    np.testing.assert_allclose(fad.vmap(cube_root)(a), np.cbrt(a), rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(fad.grad(cube_root))(a), first, rtol=1e-12)
    np.testing.assert_allclose(fad.grad(lambda a: np.sum(fad.vmap(cube_root)(a)))(a), first, rtol=1e-12)


def newtons(a):
    def solve(f, x):
        return fad.fori_loop(0, 9, lambda i, x: x - f(x) / (3 * x * x), x)

    return fad.custom_root(lambda x: x**3 - a, 1.0, solve, lambda g, y: y / g(1.0))


SCALE = 1 + 2 ** (1 / 3)
ROOTS_IN_BODIES = {
    "fori_loop": lambda root, a: fad.fori_loop(1, 3, lambda i, s: s + root(a * i), 0.0),
    "carried": lambda root, a: SCALE / 2 * a ** (2 / 9) * fad.fori_loop(0, 2, lambda i, s: root(s) * (1.0 + i), a),
    "cond": lambda root, a: SCALE * fad.cond(a > 0, root, lambda a: a, a),
    "checkpoint": lambda root, a: fad.checkpoint(ROOTS_IN_BODIES["fori_loop"], static_argnums=0)(root, a),
}  # fmt: skip


@each("in_body", ROOTS_IN_BODIES.values(), ids=ROOTS_IN_BODIES)
@each("root", [newtons, lambda a: optimize.newton(lambda x: x**3 - a, 1.0)], ids=["custom_root", "scipy"])
def test_a_root_in_a_recorded_body_has_its_derivatives(root, in_body):
    gradient = fad.grad(lambda a: in_body(root, a))
    both = fad.jit(fad.vmap(lambda a: fad.jvp(gradient, (a,), (1.0,))))
    a = np.array([2.0, 3.0])
    first, second = both(a)
    np.testing.assert_allclose(first, SCALE * a ** (-2 / 3) / 3, rtol=1e-9)
    np.testing.assert_allclose(second, -SCALE * a ** (-5 / 3) * 2 / 9, rtol=1e-9)


def test_a_root_in_a_recorded_body_has_its_taylor_series():
    loop = ROOTS_IN_BODIES["fori_loop"]
    third = fad.jit(lambda a: fad.jet(lambda a: loop(newtons, a), (a,), ((1.0, 0.0, 0.0),))[1][2])
    assert third(2.0) == pytest.approx(SCALE * 2 ** (-8 / 3) * 10 / 27)


def test_the_root_does_not_depend_on_where_the_solver_started():
    def f(start):
        return fad.custom_root(lambda x: x**3 - 2.0, start, bisect, lambda g, y: y / g(1.0))

    assert fad.grad(f)(1.0) == 0.0


def test_a_root_of_a_tree_and_auxiliary_output():
    def f(p):
        def solve(residual, start):
            return {"u": fad.stop_gradient(p), "v": fad.stop_gradient(p) ** 2}, "done"

        def residual(x):
            return {"u": x["u"] - p, "v": x["v"] - x["u"] * p}

        def tangent_solve(g, y):
            flat, unravel = fad.tree.ravel(y)
            matrix = fad.jacobian(lambda t: fad.tree.ravel(g(unravel(t)))[0])(flat)
            return unravel(np.linalg.solve(matrix, flat))

        x, note = fad.custom_root(residual, {"u": 0.0, "v": 0.0}, solve, tangent_solve, has_aux=True)
        assert note == "done"
        return x["u"] + x["v"]

    assert fad.grad(f)(3.0) == pytest.approx(7.0)
    assert fad.grad(fad.grad(f))(3.0) == pytest.approx(2.0)


def test_a_residual_of_another_structure_is_refused():
    with pytest.raises(TreeMismatchError, match="structure of its argument"):
        fad.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y)


def solved_by_a_factor(a, b):
    """Solve with solvers that hold what was computed from the traced matrix."""
    inverse = np.linalg.inv(2.0 * a) * 2.0
    return fad.custom_linear_solve(lambda x: a @ x, b, lambda mv, y: inverse @ y, lambda mv, y: inverse.T @ y)


@pytest.mark.parametrize("solved", [solved, solved_by_a_factor])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: fad.grad(f, (0, 1)),
        lambda f: fad.jacfwd(f, (0, 1)),
        lambda f: fad.hessian(f, (0, 1)),
        lambda f: fad.jacrev(fad.jacfwd(f, (0, 1)), (0, 1)),
        lambda f: fad.jit(fad.grad(f, (0, 1))),
        lambda f: lambda a, b: fad.vmap(fad.grad(f, (0, 1)))(np.stack([a, 2 * a]), np.stack([b, b])),
        lambda f: fad.grad(lambda a, b: np.sum(fad.vmap(f, (0, None))(np.stack([a, 2 * a]), b)), (0, 1)),
    ],
)
def test_a_linear_solve_has_the_derivatives_of_numpys(transform, solved, system):
    found = fad.tree.leaves(transform(loss(solved))(*system))
    wanted = fad.tree.leaves(transform(loss(np.linalg.solve))(*system))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


def test_a_linear_solve_maps_over_matrices_held_in_the_closure(system):
    a, b = system
    many = a + 0.1 * np.random.default_rng(1).normal(size=(4, 3, 3))
    mapped = fad.vmap(solved, (0, None))
    np.testing.assert_allclose(mapped(many, b), np.stack([np.linalg.solve(m, b) for m in many]), atol=1e-13)
    outside = fad.grad(lambda m: np.sum(np.sin(mapped(m, b))))(many)
    np.testing.assert_allclose(outside, fad.vmap(fad.grad(loss(solved)), (0, None))(many, b), atol=1e-13)


def test_conjugate_gradients_are_never_differentiated(system):
    matrix = system[0] @ system[0].T
    calls = []

    def solve(matvec, b):
        calls.append(1)
        return np.linalg.inv(matrix) @ b

    def f(b):
        return np.sum(fad.custom_linear_solve(lambda x: matrix @ x, b, solve, symmetric=True) ** 2)

    x = np.linalg.solve(matrix, system[1])
    np.testing.assert_allclose(fad.grad(f)(system[1]), 2 * np.linalg.solve(matrix, x), rtol=1e-9)
    assert len(calls) == 2


def test_reverse_mode_without_a_transposed_solver_says_what_to_pass(system):
    a, b = system

    def f(b):
        return np.sum(fad.custom_linear_solve(lambda x: a @ x, b, dense))

    assert fad.jvp(f, (b,), (b,))[1] == pytest.approx(np.sum(np.linalg.solve(a, b)))
    with pytest.raises(DerivativeError, match="transpose_solve"):
        fad.grad(f)(b)


def test_values_in_partials_defaults_and_nested_functions_are_found(system):
    from functools import partial

    a, b = system

    def product(m, x, *, scale):
        return scale * (m @ x)

    def f(a, s):
        def nested(x, held=(a, s)):
            return product(held[0], x, scale=held[1])

        by_default = fad.custom_linear_solve(nested, b, dense, dense)
        by_partial = fad.custom_linear_solve(partial(product, a, scale=s), b, dense, dense)
        by_cell = fad.custom_linear_solve(lambda x: nested(x), b, dense, dense)
        return np.sum(by_default + 2 * by_partial + 3 * by_cell)

    found = fad.grad(f, (0, 1))(a, 2.0)
    wanted = fad.grad(lambda a, s: 6 * np.sum(np.linalg.solve(s * a, b)), (0, 1))(a, 2.0)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


def test_a_function_that_two_closures_share_is_found_in_both(system):
    a, b = system

    def f(s):
        scaled = lambda x: s * (a @ x)
        first, second = (lambda x: scaled(x)), (lambda x: scaled(x))
        return np.sum(fad.custom_linear_solve(lambda x: first(x) + second(x), b, dense, dense))

    assert fad.grad(f)(2.0) == pytest.approx(fad.grad(lambda s: np.sum(np.linalg.solve(2 * s * a, b)))(2.0))


def test_a_traced_value_in_an_attribute_is_found(system):
    a, b = system

    class Holder:
        pass

    def f(a, b):
        holder = Holder()
        holder.matrix = a
        return np.sum(fad.custom_linear_solve(lambda x: holder.matrix @ x, b, dense, dense))

    wanted = fad.grad(lambda a, b: np.sum(np.linalg.solve(a, b)), (0, 1))(a, b)
    for x, y in zip(fad.grad(f, (0, 1))(a, b), wanted, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


def test_a_traced_value_that_cannot_be_found_is_refused(system):
    a, b = system

    def f(a, b):
        matrices = itertools.repeat(a)
        return np.sum(fad.custom_linear_solve(lambda x: next(matrices) @ x, b, dense, dense))

    with pytest.raises(CustomRuleError, match="argument"):
        fad.grad(f, (0, 1))(a, b)


def test_values_in_keyword_defaults_and_in_the_instance_of_a_method_are_found(system):
    a, b = system

    class Scaled(NamedTuple):
        matrix: np.ndarray
        scale: float

        def of(self, x):
            return self.scale * (self.matrix @ x)

    def f(a, s):
        def keyword(x, *, held=(a, s), double=2.0):
            return 0.5 * double * held[1] * (held[0] @ x)

        by_keyword = fad.custom_linear_solve(keyword, b, dense, dense)
        by_method = fad.custom_linear_solve(Scaled(a, s).of, b, dense, dense)
        return np.sum(by_keyword + 2 * by_method)

    found = fad.grad(f, (0, 1))(a, 2.0)
    wanted = fad.grad(lambda a, s: 3 * np.sum(np.linalg.solve(s * a, b)), (0, 1))(a, 2.0)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)
