"""The eight traps: what libraries differ in, decided once."""

import numpy as np
import pytest
from refusals import X

import fad


def test_trap_1_argnums_a_tuple_gives_a_tuple_an_int_a_bare_gradient_negative_ones_count_from_the_end():
    f = lambda x, y: x * y
    assert fad.grad(f, (0,))(2.0, 3.0) == (3.0,)
    assert fad.grad(f, [0, 1])(2.0, 3.0) == (3.0, 2.0)
    assert fad.grad(f, 1)(2.0, 3.0) == 2.0
    assert fad.grad(f, -1)(2.0, 3.0) == 2.0
    assert fad.grad(f, (-1, 0))(2.0, 3.0) == (2.0, 3.0)


def test_trap_2_a_pullback_returns_a_tuple_even_for_one_primal():
    _, pullback = fad.vjp(lambda x: x * x, 3.0)
    assert pullback(1.0) == (6.0,)
    assert fad.jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)
    assert fad.jvp(lambda x: x * x, [3.0], [1.0]) == (9.0, 6.0)


def test_trap_3_the_value_comes_first_and_aux_nests():
    assert fad.value_and_grad(lambda x: x * x)(3.0) == (9.0, 6.0)
    assert fad.value_and_grad(lambda x: (x * x, "aux"), has_aux=True)(3.0) == ((9.0, "aux"), 6.0)
    assert fad.grad(lambda x: (x * x, "aux"), has_aux=True)(3.0) == (6.0, "aux")


def test_trap_4_a_jacobian_has_the_output_in_front_and_the_outputs_structure_outside():
    a = np.arange(6.0).reshape(2, 3)
    for jac in (fad.jacfwd, fad.jacrev, fad.jacobian):
        np.testing.assert_array_equal(jac(lambda x: a @ x)(X), a)
        tree = jac(lambda p: {"s": np.sum(p["x"]) * p["y"], "v": p["x"] * p["y"]})({"x": X, "y": 2.0})
        assert tree["s"]["x"].shape == (3,)
        assert tree["v"]["x"].shape == (3, 3)
        assert tree["v"]["y"].shape == (3,)
        assert tree["s"]["y"].shape == ()


def test_trap_5_complex_gradients_are_jaxs():
    assert fad.grad(lambda z: abs(z) ** 2)(1 + 2j) == 2 - 4j
    assert fad.grad(lambda z: z * z, holomorphic=True)(1 + 2j) == 2 + 4j
    assert fad.grad(lambda z: z.real)(1 + 2j) == 1
    assert fad.grad(lambda z: z.imag)(1 + 2j) == -1j


def test_trap_5_ties_share_and_kinks_have_the_middle():
    np.testing.assert_array_equal(fad.grad(lambda x: np.max(x))(np.array([2.0, 2.0, 1.0])), [0.5, 0.5, 0.0])
    assert fad.grad(lambda x: np.maximum(x, 2.0))(2.0) == 0.5
    assert fad.grad(lambda x: np.abs(x))(0.0) == 0.0
    assert fad.grad(abs)(0j) == 0
    np.testing.assert_array_equal(fad.grad(lambda x: np.linalg.norm(x))(np.zeros(2)), [0.0, 0.0])
    with np.errstate(divide="ignore"):
        assert fad.grad(np.sqrt)(0.0) == np.inf


@pytest.mark.parametrize("way", [fad.grad, lambda f: lambda x: fad.jvp(f, (x,), (1.0,))[1]])
def test_trap_5_powers_at_zero(way):
    assert way(lambda x: x**2.0)(0.0) == 0.0
    assert way(way(lambda x: x**2.0))(0.0) == 2.0
    assert way(way(lambda x: x**2))(0.0) == 2.0
    assert way(way(way(lambda x: x**2.0)))(0.0) == 0.0
    assert way(lambda x: x**0.0)(0.0) == 0.0
    assert way(lambda x: x**1.0)(0.0) == 1.0
    assert way(lambda x: x ** np.float64(2.0))(0.0) == 0.0
    assert way(way(lambda x: x ** np.float64(2.0)))(0.0) == 2.0
    assert way(lambda x: np.sum(x ** np.array([0.0, 1.0, 2.0])))(0.0) == 1.0
    assert way(lambda y: 0.0**y)(2.0) == 0.0
    assert way(lambda y: np.float64(0.0) ** y)(0.5) == 0.0
    assert way(lambda x: (-2.0 * x) ** 3)(1.0) == -24.0


def test_trap_6_a_python_float_gives_a_numpy_scalar_and_an_integer_a_type_error():
    assert type(fad.grad(lambda x: x * x)(3.0)) is np.float64
    with pytest.raises(TypeError, match="allow_int"):
        fad.grad(lambda x: x * x)(3)


def test_trap_7_an_output_that_does_not_depend_on_its_input_has_zeros():
    np.testing.assert_array_equal(fad.grad(lambda x: 3.0)(X), np.zeros(3))
    np.testing.assert_array_equal(fad.jvp(lambda x: np.ones(2), (X,), (X,))[1], np.zeros(2))
    np.testing.assert_array_equal(fad.jacfwd(lambda x: np.ones(2))(X), np.zeros((2, 3)))
    np.testing.assert_array_equal(fad.jacrev(lambda x: np.ones(2))(X), np.zeros((2, 3)))
    assert fad.grad(lambda x: np.floor(x))(2.5) == 0.0
    assert fad.grad(lambda x, y: x * 2.0, 1)(1.0, 1.0) == 0.0


@pytest.mark.parametrize(
    ("f", "g", "x", "wanted"),
    [
        (np.sqrt, lambda x: x * 0, 0.0, 0.0),
        (np.log, lambda x: 3 * x, -1.0, 3.0),
        (np.log, lambda x: 3 * x, 0.0, 3.0),
        (lambda x: 1 / x, lambda x: x, np.float64(0.0), 1.0),  # of Python's 0.0 the function itself raises an error
        (lambda x: np.sqrt(x - 1) / x, lambda x: np.exp(x), 0.0, 1.0),
        (lambda x: np.arctan2(x, x) * np.log(x), lambda x: 2 * x, 0.0, 2.0),
        (lambda x: np.exp(1000 * (1 - x)), lambda x: x, -1.0, 1.0),
        (lambda x: x**0.5, lambda x: x, 0.0, 1.0),
        (lambda x: np.log(x) ** 2, lambda x: x, 0.0, 1.0),
    ],
)
def test_trap_8_what_where_does_not_choose_does_not_reach_the_gradient(f, g, x, wanted):
    with np.errstate(all="ignore"):
        assert fad.grad(lambda x: np.where(x > 0, f(x), g(x)))(x) == wanted
        assert fad.jvp(lambda x: np.where(x > 0, f(x), g(x)), (x,), (1.0,))[1] == wanted
        assert fad.grad(lambda x: np.sum(np.where(x > 0, f(x), g(x))))(np.array([x, 2.0]))[0] == wanted
        assert fad.vmap(fad.grad(lambda x: np.where(x > 0, f(x), g(x))))(np.array([x, x]))[0] == wanted


def test_trap_8_at_second_order():
    with np.errstate(all="ignore"):
        f = lambda x: np.where(x > 0, np.log(x), x * x * x)
        assert fad.grad(fad.grad(f))(0.0) == 0.0
        assert fad.grad(fad.grad(f))(-1.0) == -6.0
        assert fad.hessian(f)(-1.0) == -6.0
