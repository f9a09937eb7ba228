"""Bodies of loops and branches that write: into their arguments, into arrays of their own, into arrays from outside."""

import warnings

import numpy as np
import pytest
from in_place.test_in_place_programs import X, close, differences

import fad


def the_carry_at_a_number_of_the_step(x):
    def body(t, b):
        b[t] = b[t - 1] * b[t]
        return b

    return np.sum(fad.fori_loop(1, 4, body, x))


def the_carry_by_slices(x):
    def body(c, t):
        c[1:] += c[:-1] * t
        return c, c[0]

    last, firsts = fad.scan(body, x, np.arange(3.0))
    return np.sum(last**2) + np.sum(firsts)


def a_buffer_of_its_own(x):
    def body(c, _):
        b = np.zeros(4)
        b[1:] = c[:-1]
        b[0] = c[3] * c[0]
        return b, None

    return np.sum(fad.scan(body, x, np.zeros(3))[0])


def a_buffer_from_outside(x):
    b = np.zeros(3)

    def body(t, c):
        b[t] = c
        return c * x[1]

    fad.fori_loop(0, 3, body, x[0])
    return np.sum(b**2)


def an_array_from_outside_by_plain_numbers(x):
    b = x * 1.0

    def body(c, t):
        b[0] = t
        return c * b[0], None

    last, _ = fad.scan(body, x, np.arange(1.0, 4.0))
    return np.sum(last) + np.sum(b * x)


def a_view_from_outside(x):
    m = x.reshape(2, 2) * 1.0
    row = m[1]

    def body(c, t):
        row[0] += c
        return c * t, None

    fad.scan(body, x[0], np.arange(1.0, 4.0))
    return np.sum(m**2)


def one_of_two_branches(x):
    b = x * 1.0

    def clear(y):
        b[0] = 0.0
        return y

    z = fad.cond(x[0] > 0, clear, lambda y: y * 2, x)
    return np.sum(b) + np.sum(z)


def the_other_branch(x):
    return one_of_two_branches(-x)


EVERY = pytest.mark.parametrize("f", [
    the_carry_at_a_number_of_the_step, the_carry_by_slices, a_buffer_of_its_own, a_buffer_from_outside,
    an_array_from_outside_by_plain_numbers, a_view_from_outside, one_of_two_branches, the_other_branch,
], ids=lambda f: f.__name__)  # fmt: skip


@EVERY
def test_a_body_that_writes_does_what_the_plain_loop_does(f):
    value, g = f(X.copy()), differences(lambda x: f(x.copy()), X)
    for transform in (fad.grad, lambda f: fad.jit(fad.grad(f)), lambda f: fad.grad(fad.jit(f))):
        given = X.copy()
        close(transform(f)(given), g, f)
        np.testing.assert_array_equal(given, X)
    jitted = fad.jit(f)
    for _ in range(2):
        close(jitted(X), value, f, 1e-13)
    close(fad.jit(fad.vmap(f))(np.stack([X, X])), [value, value], f, 1e-13)


@pytest.mark.parametrize("f", [the_carry_at_a_number_of_the_step, the_carry_by_slices, a_buffer_of_its_own])
def test_a_loop_that_writes_into_what_is_its_own_stays_one_operation(f):
    names = [eq.prim.name for eq in fad.make_graph(f)(X).equations]
    assert "scan" in names


def test_a_function_that_runs_without_jit_in_the_end_leaves_its_arguments_alone():
    @fad.jit
    def f(x):
        x[0] += 1.0
        return x[0] * int(x[1])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.PathLimitWarning)
        for k in range(60):
            x = np.array([1.0, float(k)])
            assert f(x) == 2.0 * k
            assert x[0] == 1.0


def test_a_function_under_checkpoint_writes_into_nothing_that_outlives_it():
    def f(x):
        b = np.zeros(4)

        @fad.checkpoint
        def square(y):
            b[0] += y[0]
            return y * y

        return np.sum(square(square(x))) + b[0]

    with pytest.raises(fad.errors.ItemAssignmentError, match="from outside"):
        fad.grad(f)(X)


def test_a_function_under_checkpoint_writes_into_what_it_makes_and_returns():
    @fad.checkpoint
    def powers(y):
        b = np.zeros((3, 4))
        b[0] = y
        for k in range(1, 3):
            row = b[k]
            np.multiply(b[k - 1], y, out=row)
        b[:, 0] *= y[1]
        return b

    def f(x):
        return np.sum(powers(powers(x)[1]) * np.arange(12.0).reshape(3, 4))

    close(fad.grad(f)(X), differences(f, X), f)
    close(fad.hessian(f)(X), fad.jacfwd(fad.jacfwd(f))(X), f)


def test_a_recorded_body_that_would_round_what_has_a_derivative_raises_as_plain_python_does():
    def step(i, s):
        k = np.zeros(1, int)
        k[0] = s
        return s + k[0]

    def f(x):
        return fad.fori_loop(0, 2, step, x)

    assert fad.jit(f)(1.5) == f(1.5) == 4.5
    for gradient in (fad.grad(f), fad.jit(fad.grad(f)), fad.grad(fad.jit(f))):
        with pytest.raises(fad.errors.ItemAssignmentError, match="would round it"):
            gradient(1.5)
    assert fad.jit(fad.grad(lambda x: x * fad.fori_loop(0, 2, step, 1.5)))(2.0) == 4.5
