"""Variables that functions bind, which the steps of a loop call, and that declare them nonlocal."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def counting_calls(x):
    calls = 0

    def rhs(t, y):
        nonlocal calls
        calls += 1
        return -x[0] * y + np.sin(t) * x[1]

    y, h = x[2], 0.05
    for i in range(40):
        k1 = rhs(i * h, y)
        k2 = rhs(i * h + 0.5 * h, y + 0.5 * h * k1)
        y = y + h * k2
    return y + 0.01 * calls


def a_value_that_is_handed_on(x):
    last, largest = x[0], 0.0

    def step(v):
        nonlocal last, largest
        last = 0.5 * last + v
        if last > largest:
            largest = last
        return last * v

    s = 0.0
    for i in range(40):
        s = s + step(x[i % 5]) + 0.1 * last
    return s + largest + last


def an_array_that_is_handed_on(x):
    momentum = np.zeros(5)

    def move(u, g):
        nonlocal momentum
        momentum = 0.9 * momentum + g
        return u - 0.05 * momentum

    u = x * 1.0
    for _ in range(40):
        u = move(u, 2 * u - x)
    return u @ u + momentum @ x


def in_one_way_and_in_an_inner_loop(x):
    hits, total = 0, 0.0

    def hit(v):
        nonlocal hits, total
        hits += 1
        for j in range(3):
            if v > 0.1 * j:
                total += v * j

    for i in range(8):
        for j in range(5):
            if x[j] + 0.05 * i > 0.4:
                hit(x[j])
    return total + 0.1 * hits


def reset_by_another_function(x):
    charge, fired = 0.0, 0

    def fire():
        nonlocal charge, fired
        charge, fired = charge - 1.0, fired + 1

    def load(v):
        nonlocal charge
        charge = 0.95 * charge + v
        if charge > 1.0:
            fire()

    for i in range(40):
        load(0.5 * x[i % 5] ** 2)
    return charge + 0.1 * fired


def in_a_while_loop(x):
    steps, error = 0, 1.0

    def improve(y):
        nonlocal steps, error
        d = (y * y - 2.0 - x[0]) / (2 * y)
        steps, error = steps + 1, abs(d)
        return y - d

    y = 5.0 + x[1]
    while error > 1e-10:
        y = improve(y)
    return y * (1 + 0.1 * steps)


CAPTURED = [
    counting_calls, a_value_that_is_handed_on, an_array_that_is_handed_on, in_one_way_and_in_an_inner_loop,
    reset_by_another_function, in_a_while_loop,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_variable_that_a_called_function_binds_is_state(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X, 0.7 * X)
    agree(f, 0.4 * X, smooth=False)


def bound_by_the_loop_as_well(x):
    n = 0

    def more(v):
        nonlocal n
        n += 1
        return v * n

    s = 0.0
    for i in range(20):
        s = s + more(x[i % 5])
        n = n + 1
    return s


def bound_in_the_condition(x):
    n = 0

    def goes_on():
        nonlocal n
        n += 1
        return n < 20

    s = 0.0
    while goes_on():
        s = s + x[n % 5]
    return s + n


def bound_to_an_object(x):
    seen = None

    def see(v):
        nonlocal seen
        seen = {"v": v}
        return v

    s = 0.0
    for i in range(20):
        s = s + see(x[i % 5])
    return s + seen["v"]


def of_a_function_that_the_step_calls(x):
    def twice(v):
        n = 0

        def once():
            nonlocal n
            n += 1
            return v * n

        return once() + once()

    s = 0.0
    for i in range(20):
        s = s + twice(x[i % 5])
    return s


@pytest.mark.parametrize(
    "f",
    [bound_by_the_loop_as_well, bound_in_the_condition, bound_to_an_object, of_a_function_that_the_step_calls],
    ids=lambda f: f.__name__,
)
def test_other_variables_are_right(f):
    agree(f, X)


def make_counting():
    calls = 0

    def count(x):
        def one(v):
            nonlocal calls
            calls += 1
            return v * v

        s = 0.0
        for i in range(20):
            s = s + one(x[i % 5])
        return s

    return count, lambda: calls


def test_a_variable_from_outside_is_a_number_behind_the_call():
    f, calls = make_counting()
    assert "captured" in report_of(f, X)[1]
    before = calls()
    fast = fad.jit(fad.grad(f))
    np.testing.assert_allclose(fast(X), 8 * X)
    assert type(calls()) is int
    assert calls() == before + 20
