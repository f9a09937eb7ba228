"""Nested derivatives of functions that close over each other's variables: each derivative sees its own perturbation."""

import numpy as np
import pytest

import fad


def _derivative_by_grad(f):
    return fad.grad(f)


def _derivative_by_jvp(f):
    return lambda x: fad.jvp(f, (x,), (np.ones_like(x),))[1]


def _derivative_by_vjp(f):
    def derivative(x):
        y, pullback = fad.vjp(f, x)
        return pullback(np.ones_like(y))[0]

    return derivative


def _derivative_by_linearize(f):
    return lambda x: fad.linearize(f, x)[1](np.ones_like(x))


WAYS = [_derivative_by_grad, _derivative_by_jvp, _derivative_by_vjp, _derivative_by_linearize]
pairs = pytest.mark.parametrize(("outer", "inner"), [(a, b) for a in WAYS for b in WAYS])


@pairs
def test_the_classical_example_is_one_and_not_two(outer, inner):
    # d/dx [x * d/dy (x + y) at y = 1] at x = 1 is 1; a confused tool gives 2.
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == 1.0


@pairs
def test_the_inner_derivative_of_a_product_is_the_outer_variable(outer, inner):
    # d/dx [d/dy (x * y) at y = 2] = d/dx x = 1
    assert outer(lambda x: inner(lambda y: x * y)(2.0))(3.0) == 1.0


@pairs
def test_the_inner_point_may_be_the_outer_variable(outer, inner):
    # d/dx [d/dy (x * y**2) at y = x] = d/dx 2 x**2 = 4 x
    assert outer(lambda x: inner(lambda y: x * y**2)(x))(3.0) == 12.0


@pairs
def test_an_outer_variable_that_the_inner_function_ignores_is_a_constant(outer, inner):
    assert outer(lambda x: inner(lambda y: y * y * y)(2.0) * x)(5.0) == 12.0


@pairs
def test_a_function_returned_from_a_derivative_keeps_its_own_perturbation(outer, inner):
    # The example of Manzyuk et al., "Perturbation confusion in forward automatic differentiation of higher-order
    # functions" (2019): s(u)(f)(x) = f(x + u); its derivative in u, applied twice, is the second derivative.
    def shift(u):
        return lambda f: lambda x: f(x + u)

    def d(f):
        return lambda x: outer(lambda u: shift(u)(f)(x))(0.0)

    def dd(f):
        return lambda x: inner(lambda u: shift(u)(d(f))(x))(0.0)

    assert np.isclose(dd(lambda x: x**3)(2.0), 12.0)


@pytest.mark.parametrize("way", WAYS)
def test_four_nested_derivatives_of_one_closure(way):
    # d4/dx dy dz dw of x * y**2 * z**3 * w**4, by four closures
    def f(x):
        return way(lambda y: way(lambda z: way(lambda w: x * y**2 * z**3 * w**4)(1.5))(2.0))(3.0)

    assert np.isclose(way(f)(0.5), 2 * 3.0 * 3 * 2.0**2 * 4 * 1.5**3)


@pytest.mark.parametrize("way", WAYS)
def test_the_nth_derivative_by_nesting(way):
    f = np.sin
    for _ in range(4):
        f = way(f)
    assert np.isclose(f(0.7), np.sin(0.7))


@pairs
def test_a_bilevel_problem(outer, inner):
    # Two steps of gradient descent on (y - x)**2 from 0, then the derivative of the result in x.
    def descend(x):
        y = 0.0
        for _ in range(2):
            y = y - 0.25 * inner(lambda y: (y - x) ** 2)(y)
        return y

    assert np.isclose(outer(descend)(3.0), 0.75)


@pairs
def test_vmap_between_two_derivatives_confuses_nothing(outer, inner):
    xs = np.array([1.0, 2.0, 3.0])

    def f(a):
        return np.sum(fad.vmap(lambda x: inner(lambda y: a * y * x)(x))(xs))

    assert outer(f)(2.0) == 6.0


@pytest.mark.parametrize("way", WAYS)
def test_recursion_through_the_derivative(way):
    def power_rule(f, n):
        return f if n == 0 else power_rule(way(f), n - 1)

    assert np.isclose(power_rule(lambda x: x**5, 5)(1.3), 120.0)
