"""What a loop or branch was given may be overwritten afterwards: its derivative is taken where it ran."""

import numpy as np
import pytest

import fad

B = np.array([0.2, 0.15, 0.1])
W = 0.9


def state_of_a_while_loop(x, w):
    return np.sum(fad.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] * w), (0, x))[1])


def state_of_a_fori_loop(x, w):
    return np.sum(fad.fori_loop(0, 4, lambda i, s: np.sin(s * w * x), x))


def rows_of_a_scan(x, w):
    return fad.scan(lambda c, v: (c * w * v, c * v), w, x)[0]


def operand_of_a_branch(x, w):
    return fad.cond(w > 0, lambda x, w: np.sum(x * w * w), lambda x, w: np.sum(w * x), x, w)


def number_of_a_branch(x, w):
    k = np.array(1)
    y = fad.switch(k, [lambda x, w: np.sum(x * w * w), lambda x, w: np.sum(w**3 * x)], x, w)
    k[...] = 0
    return y


def operand_of_a_pullback(x, w):
    return fad.grad(lambda v: state_of_a_while_loop(x, v))(w)


def operand_of_a_rule(x, w):
    rule = fad.custom_jvp(lambda x, w: x * w**2)
    rule.defjvp(lambda xs, ts: (xs[0] * xs[1] ** 2, ts[0] * xs[1] ** 2 + 2 * xs[0] * xs[1] * ts[1]))
    return np.sum(rule(x, w))


def matrix_of_a_linear_system(x, w):
    solve = lambda matvec, b: b / matvec(np.ones(3))
    return np.sum(fad.custom_linear_solve(lambda u: (x + w) * u, w * np.ones(3), solve, solve))


def right_hand_side_of_a_linear_system(x, w):
    solve = lambda matvec, b: b / matvec(np.ones(3))
    return np.sum(fad.custom_linear_solve(lambda u: w * u, x, solve, solve))


def closure_of_a_reverse_rule(x, w):
    rule = fad.custom_vjp(lambda v: np.sum(np.sin(v * x)))
    rule.defvjp(lambda v: (np.sum(np.sin(v * x)), v), lambda v, ct: (ct * np.sum(x * np.cos(v * x)),))
    return rule(w)


def closure_of_a_forward_rule(x, w):
    rule = fad.custom_jvp(lambda v: np.sum(x * v**2))
    rule.defjvp(lambda vs, ts: (np.sum(x * vs[0] ** 2), 2 * np.sum(x) * vs[0] * ts[0]))
    return rule(w)


def closure_of_an_integrand(x, w):
    return fad.scipy.integrate.quad(lambda t: np.sin(t * x[0] * w), 0.0, 1.0)[0]


def closure_of_a_differential_equation(x, w):
    field = lambda y, t: -y * x * w
    return np.sum(fad.scipy.integrate.odeint(field, B, np.array([0.0, 1.0]), rtol=1e-11, atol=1e-12)[-1])


OPERATIONS = [
    state_of_a_while_loop, state_of_a_fori_loop, rows_of_a_scan, operand_of_a_branch, number_of_a_branch,
    closure_of_a_reverse_rule, closure_of_a_forward_rule, closure_of_an_integrand, closure_of_a_differential_equation,
    operand_of_a_pullback, operand_of_a_rule, matrix_of_a_linear_system, right_hand_side_of_a_linear_system,
]  # fmt: skip
ARRAYS = {
    "computed": lambda b: b * 2.0, "copied": lambda b: b.copy(), "made": np.ones_like, "given": lambda b: b,
    "listed": lambda b: np.array([0.3, 0.4, 0.2]), "viewed": lambda b: (b * 2.0)[::-1],
}  # fmt: skip
TRANSFORMS = {
    "grad": lambda f: fad.grad(f, argnums=1),
    "grad of jit": lambda f: fad.grad(fad.jit(f), argnums=1),
    "linearize": lambda f: lambda b, w: fad.linearize(lambda v: f(b, v), w)[1](1.0),
    "jvp": lambda f: lambda b, w: fad.jvp(lambda v: f(b, v), (w,), (1.0,))[1],
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_written_after_an_operation_does_not_change_its_derivative(operation, array, transform):
    def overwriting(b, w):
        x = array(b)
        y = operation(x, w)
        x[0] = 7.0
        x[1:] *= 3.0
        return y

    value = lambda w: overwriting(B.copy(), w)
    h = 1e-3
    coarse, fine = ((value(W + s) - value(W - s)) / (2 * s) for s in (h, h / 2))
    derivative = fad.jit(transform(overwriting))
    for _ in range(2):
        np.testing.assert_allclose(derivative(B.copy(), W), (4 * fine - coarse) / 3, rtol=1e-8)


def relaxation(b, w):
    x = np.zeros_like(b)
    for _ in range(500):
        old = x.copy()
        for i in range(len(b)):
            x[i] = (1 - w) * x[i] + w * b[i]
        if np.max(np.abs(x - old)) < 1e-3:
            break
    return np.sum(x)


def damped(b, w):
    x, k = np.ones_like(b), 0
    while k < 4:
        x[0] = x[0] * w
        k += 1
    return np.sum(x * b)


@pytest.mark.parametrize("program", [relaxation, damped])
@pytest.mark.parametrize("argument", [0, 1])
def test_a_captured_loop_that_writes_its_state_has_the_derivative_of_where_it_began(program, argument):
    gradient = fad.grad(program, argnums=argument)
    with fad.config.use(loops="record"):
        wanted = gradient(B, W)
    with fad.config.use(loops="capture"):
        compiled = fad.jit(gradient)
        for _ in range(2):
            np.testing.assert_allclose(compiled(B, W), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_plain_array_in_the_matrix_of_a_linear_system_is_taken_as_it_was(compiled):
    def overwriting(w):
        x = B * 2.0
        y = right_hand_side_of_a_linear_system(w * B, w) + matrix_of_a_linear_system(x, w)
        x[0] = 7.0
        return y

    h = 1e-3
    coarse, fine = ((overwriting(W + s) - overwriting(W - s)) / (2 * s) for s in (h, h / 2))
    wanted = (4 * fine - coarse) / 3
    for derivative in (fad.grad(overwriting), lambda w: fad.linearize(overwriting, w)[1](1.0)):
        found = fad.jit(derivative)(W) if compiled else derivative(W)
        np.testing.assert_allclose(found, wanted, rtol=1e-8)


def rule_with_an_integral(x, w):
    return closure_of_a_reverse_rule(x, w) + closure_of_a_forward_rule(x, w) * closure_of_an_integrand(x, w)


@pytest.mark.parametrize("compiled", [False, True])
def test_plain_arrays_of_functions_that_rules_run_later_are_taken_as_they_were(compiled):
    def overwriting(w):
        x = B * 2.0
        y = rule_with_an_integral(x, w)
        x[:] = 7.0
        return y

    h = 1e-3
    coarse, fine = ((overwriting(W + s) - overwriting(W - s)) / (2 * s) for s in (h, h / 2))
    for derivative in (fad.grad(overwriting), lambda w: fad.linearize(overwriting, w)[1](1.0)):
        found = fad.jit(derivative)(W) if compiled else derivative(W)
        np.testing.assert_allclose(found, (4 * fine - coarse) / 3, rtol=1e-8)


def test_an_integrand_may_count_its_calls_in_an_array_from_outside():
    calls = np.zeros(1)

    def integrand(t, w):
        calls[0] += 1
        return np.sin(t * w)

    fad.scipy.integrate.quad(integrand, 0.0, 1.0, (W,))
    plain = calls[0]
    fad.vjp(lambda w: fad.scipy.integrate.quad(integrand, 0.0, 1.0, (w,))[0], W)
    assert calls[0] == 2 * plain > 0
