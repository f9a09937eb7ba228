"""A program that has written into an array meets the custom rules that it calls afterwards, as any other does."""

import numpy as np
import pytest

import fad
import fad.compat.autograd as autograd

X = np.array([1.3, 0.7])


def by_forward_rule():
    rule = fad.custom_jvp(lambda x: x * x)
    rule.defjvp(lambda xs, ts: (xs[0] ** 2, 10.0 * ts[0]))
    return rule


def by_reverse_rule():
    rule = fad.custom_vjp(lambda x: x * x)
    rule.defvjp(lambda x: (x * x, None), lambda res, ct: (10.0 * ct,))
    return rule


def by_a_primitive_of_autograd():
    rule = autograd.extend.primitive(lambda x: x * x)
    autograd.extend.defvjp(rule, lambda ans, x: lambda g: 10.0 * g)
    return rule


def by_a_root():
    return lambda x: fad.custom_root(lambda y: y - 10.0 * x, 9.0 * X, lambda f, y: y - f(y), lambda g, y: y)


def by_a_linear_system():
    solve = lambda matvec, b: b / matvec(np.ones(2))
    return lambda x: fad.custom_linear_solve(lambda y: 0.1 * y, x, solve, solve)


def by_a_compiled_function():
    rule = by_reverse_rule()
    return fad.jit(lambda x: rule(x))


RULES = [
    by_forward_rule, by_reverse_rule, by_a_primitive_of_autograd, by_a_root, by_a_linear_system, by_a_compiled_function
]  # fmt: skip


@pytest.mark.parametrize("make", RULES)
@pytest.mark.parametrize("of_written", [False, True])
def test_a_rule_counts_after_a_write(make, of_written):
    rule = make()

    def program(x):
        y = x * 1.0
        y[0] += x[1]
        z = rule(y if of_written else x)
        z[1] *= 2.0
        return np.sum(z)

    wanted = [10.0, 30.0 if of_written else 20.0]
    np.testing.assert_allclose(fad.grad(program)(X), wanted, rtol=1e-14)
    np.testing.assert_allclose(fad.vjp(program, X)[1](1.0)[0], wanted, rtol=1e-14)
    np.testing.assert_allclose(fad.vmap(fad.grad(program))(np.stack([X, X]))[1], wanted, rtol=1e-14)
    compiled = fad.jit(fad.grad(program))
    for _ in range(2):
        np.testing.assert_allclose(compiled(X), wanted, rtol=1e-14)
    if make is not by_a_primitive_of_autograd:
        np.testing.assert_allclose(fad.jvp(program, (X,), (np.ones(2),))[1], np.sum(wanted), rtol=1e-14)
        np.testing.assert_allclose(fad.linearize(program, X)[1](np.ones(2)), np.sum(wanted), rtol=1e-14)


def test_an_integral_after_a_write_has_a_derivative():
    def program(a):
        c = np.zeros(2)
        c[1] = a
        return fad.scipy.integrate.quad(lambda t: (a * t) ** 2 * c[1], 0.0, 1.0)[0]

    np.testing.assert_allclose(fad.grad(program)(1.3), 1.3**2, rtol=1e-12)
    np.testing.assert_allclose(fad.grad(fad.grad(program))(1.3), 2.6, rtol=1e-12)
