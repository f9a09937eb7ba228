"""Jacobians and Hessians: shapes, trees, chunks, modes, and products with them."""

import numpy as np
import pytest

import fad
from fad.errors import ComplexGradientError

A = np.arange(6.0).reshape(2, 3)
X = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize("jac", [fad.jacfwd, fad.jacrev, fad.jacobian])
def test_shapes_are_output_then_input(jac):
    f = lambda x, m: np.sin(m @ x)[:, None] * x
    assert jac(f)(X, A).shape == (2, 3, 3)
    assert jac(f, 1)(X, A).shape == (2, 3, 2, 3)
    both = jac(f, (0, 1))(X, A)
    np.testing.assert_allclose(both[1], fad.jacrev(f, 1)(X, A))
    assert jac(lambda x: x * x)(2.0) == 4.0
    np.testing.assert_array_equal(jac(lambda x: x * X)(2.0), X)
    np.testing.assert_array_equal(jac(np.sum)(X), np.ones(3))


@pytest.mark.parametrize("jac", [fad.jacfwd, fad.jacrev, fad.jacobian])
@pytest.mark.parametrize("chunk", [1, 2, None])
def test_chunks_change_nothing(jac, chunk):
    f = lambda x: np.cumsum(np.sin(x)) * x[0]
    np.testing.assert_allclose(jac(f, chunk_size=chunk)(X), fad.jacfwd(f)(X))


@pytest.mark.parametrize("jac", [fad.jacfwd, fad.jacrev, fad.jacobian])
def test_aux_comes_second(jac):
    found, aux = jac(lambda x: (x * x, {"n": x[0]}), has_aux=True)(X)
    np.testing.assert_allclose(found, np.diag(2 * X))
    assert aux["n"] == 0.5


def test_the_hessian_of_a_tree_is_a_tree_of_trees():
    f = lambda p: np.sum(p["w"] ** 2) * p["b"] ** 2
    h = fad.hessian(f)({"w": X, "b": 2.0})
    np.testing.assert_allclose(h["w"]["w"], 8 * np.eye(3))
    np.testing.assert_allclose(h["w"]["b"], 8 * X)
    np.testing.assert_allclose(h["b"]["w"], 8 * X)
    np.testing.assert_allclose(h["b"]["b"], 2 * np.sum(X**2))


def test_the_hessian_with_two_arguments():
    h = fad.hessian(lambda x, y: x * x * y, (0, 1))(2.0, 3.0)
    np.testing.assert_allclose(np.array(h), [[6.0, 4.0], [4.0, 0.0]])


def test_the_hessian_of_a_vector_function_has_the_output_in_front():
    h = fad.hessian(lambda x: np.stack([np.sum(x**2), x[0] * x[1]]))(X)
    assert h.shape == (2, 3, 3)
    np.testing.assert_allclose(h[0], 2 * np.eye(3))


def test_hvp_and_vhp_return_the_value_first_and_take_trees():
    f = lambda p: np.sum(p["w"] ** 3)
    for product in (fad.hvp, fad.vhp):
        value, found = product(f, ({"w": X},), ({"w": np.ones(3)},))
        np.testing.assert_allclose(value, np.sum(X**3))
        np.testing.assert_allclose(found["w"], 6 * X)
    value, (a, b) = fad.hvp(lambda x, y: x * x * y, (2.0, 3.0), (1.0, 1.0))
    assert (value, a, b) == (12.0, 10.0, 4.0)


def test_elementwise_grad_is_the_diagonal():
    np.testing.assert_allclose(fad.elementwise_grad(np.sin)(X), np.cos(X))
    np.testing.assert_allclose(fad.elementwise_grad(fad.elementwise_grad(np.sin))(A), -np.sin(A))
    np.testing.assert_allclose(fad.elementwise_grad(lambda x, y: x * y**2, 1)(X, 2 * X), 4 * X**2)


def test_complex_jacobians():
    z = X + 1j
    for jac in (fad.jacfwd, fad.jacrev):
        np.testing.assert_allclose(jac(np.exp, holomorphic=True)(z), np.diag(np.exp(z)))
    np.testing.assert_allclose(fad.jacrev(np.abs)(z), np.diag(np.conj(z) / np.abs(z)))


def test_jacobians_of_no_rows_and_no_columns():
    assert fad.jacrev(lambda x: x[:0])(X).shape == (0, 3)
    assert fad.jacfwd(lambda x: x[:0])(X).shape == (0, 3)
    assert fad.jacfwd(lambda x: np.ones(2) * np.sum(x))(np.zeros(0)).shape == (2, 0)
    assert fad.jacrev(lambda x: np.ones(2) * np.sum(x))(np.zeros(0)).shape == (2, 0)


def test_jacobian_of_jacobian_of_jacobian():
    third = fad.jacfwd(fad.jacrev(fad.jacfwd(lambda x: np.sum(x**3))))(X)
    wanted = np.zeros((3, 3, 3))
    wanted[range(3), range(3), range(3)] = 6.0
    np.testing.assert_allclose(third, wanted)


def test_the_jacobian_of_no_columns_comes_with_what_is_returned_beside_the_output():
    for jac in (fad.jacfwd, fad.jacrev, fad.jacobian):
        found, aux = jac(lambda x: (np.concatenate([x, np.ones(2)]), "beside"), has_aux=True)(np.zeros(0))
        assert found.shape == (2, 0)
        assert aux == "beside"


def test_an_unknown_mode_of_jacobian_is_refused():
    with pytest.raises(ValueError, match=r"mode of jacobian.*'sideways'"):
        fad.jacobian(np.sin, mode="sideways")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: fad.jacobian(np.sin, mode="no such mode")(x), ValueError, "'auto', 'fwd' or 'rev'"),
        (lambda x: fad.jacobian(np.sin, chunk_size=0)(x), ValueError, "positive int"),
        (lambda x: fad.jacrev(np.sin, holomorphic=True)(x), ComplexGradientError, "complex output"),
        (lambda x: fad.jacfwd(np.sin)(1j * x), ComplexGradientError, "holomorphic=True"),
        (lambda x: fad.hvp(np.sum, x, x), TypeError, "one entry per argument"),
        (lambda x: fad.checkpoint(np.sin, policy="no such policy"), ValueError, "'nothing', 'everything'"),
    ],
)
def test_wrong_settings_are_answered_with_what_they_may_be(call, error, said):
    with pytest.raises(error, match=said):
        call(np.ones(2))


def test_settings_may_be_given_before_the_function():
    assert fad.checkpoint(policy="everything")(np.sin) is np.sin
    assert fad.grad(fad.checkpoint(policy="nothing")(np.sin))(0.0) == 1.0
    assert fad.grad(fad.jit(static_argnums=1)(lambda x, n: x**n))(2.0, 3) == 12.0
