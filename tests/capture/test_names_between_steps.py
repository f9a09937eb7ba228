"""Names that only a loop's test or its ``else`` reads: a step hands them on like any other."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.7, -0.4, 1.3, 0.2, 0.9])


def only_the_test_reads(x):
    y = x * 1.0
    change = 1
    steps = 0
    while change > 0.05 and steps < 50:  # steps: so that a mistake ends, too
        old = y.copy()
        y[1:-1] = old[1:-1] + 0.3 * (x[2:] - old[1:-1])
        change = np.sum((y - old) ** 2)
        steps += 1
    return np.sum(y * x) + steps


def only_the_else_reads(x):
    s, t = x[0], 3.0
    for i in range(5):
        t = x[i] * s
        s = s + x[i]
    else:
        s = s * t
    return s


def only_the_else_of_a_while_reads(x):
    s, t, k = x[0], 3.0, 0
    while k < 5:
        t = x[k] * s
        s = s + x[k]
        k += 1
    else:
        s = s * t
    return s


PROGRAMS = [only_the_test_reads, only_the_else_reads, only_the_else_of_a_while_reads]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_name_that_only_the_test_or_the_else_reads_goes_from_step_to_step(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text


LIMIT = 1.0


def unbound_in_a_loop(x):
    for _ in range(3):
        x = x + LIMIT  # noqa: F823
        LIMIT = x  # noqa: F841
    return x


def unbound_in_a_branch(x):
    if x[0] > 0:
        LIMIT += 1  # noqa: F823, F841
    return x


def unbound_and_handled(x):
    for _ in range(2):
        try:
            x = x + LIMIT  # noqa: F823
        except UnboundLocalError:
            x = x + 5
        LIMIT = x  # noqa: F841
    return x


def unbound_in_an_operand(x):
    for i in range(2):
        if i == 0 and LIMIT:  # noqa: F823
            continue
        LIMIT = x  # noqa: F841
    return x


def unbound_in_a_choice(x):
    for _ in range(2):
        x = x + (LIMIT if x[0] > 0 else 1.0)  # noqa: F823
        LIMIT = x  # noqa: F841
    return x


def unbound_by_del(x):
    y = x
    del x
    for _ in range(2):
        y = y + x  # noqa: F821
    return y


def unbound_in_a_function_of_a_step(x):
    for _ in range(2):
        x = x + (lambda: later)()
        later = 1.0
    return x


@pytest.mark.parametrize(
    "f",
    [
        unbound_in_a_loop,
        unbound_in_a_branch,
        unbound_and_handled,
        unbound_in_an_operand,
        unbound_in_a_choice,
        unbound_by_del,
        unbound_in_a_function_of_a_step,
    ],
)
def test_a_variable_without_a_value_is_the_error_that_python_raises(f):
    def outcome(f):
        try:
            return f(np.ones(3)).tolist()
        except NameError as error:
            return type(error), str(error)

    assert outcome(fad.jit(f)) == outcome(f)


def swapped_an_even_number_of_times(x):
    t, u, v = x[0], x * 1.0, 0.5 * x
    alias = u
    for i in range(3):
        u[-1] += 0.2 * u[2]
        for j in range(i + 1, 5):
            v = 0.4 * x * x[j]
        for _ in range(4):
            t = 0.8 * t + 0.1
            u, v = v, u
    return np.sum(np.sin(u) * v) + np.sum(alias) * t


def handed_round(x):
    t, u, v, w = x[0], x * 1.0, 0.5 * x, x * x
    alias = u
    for _ in range(3):
        t = 0.8 * t + 0.1
        u, v, w = v, w, u
    u[0] = t
    return np.sum(np.sin(u) * v * w) + np.sum(alias**2)


def handed_round_by_a_while(x):
    t, u, v, w, k = x[0], x * 1.0, 0.5 * x, x * x, 0
    alias = v
    while k < 6:
        t = 0.8 * t + 0.1
        u, v, w = v, w, u
        k += 1
    alias[0] = t
    return np.sum(np.sin(u) * v * w) + np.sum(alias**2)


SWAPS = [swapped_an_even_number_of_times, handed_round, handed_round_by_a_while]


@pytest.mark.parametrize("f", SWAPS, ids=lambda f: f.__name__)
def test_an_array_that_names_hand_round_keeps_its_other_name(f):
    agree(f, X)


def a_parameter_of_a_function_inside_has_the_name(x):
    def slope(y, h=0.1):
        z = np.roll(y, 1)
        return h * (z - y)

    ys = np.zeros((6, 5))
    ys[0] = x
    for k in range(5):
        y = ys[k]
        z = y + slope(y)
        ys[k + 1] = y + 0.5 * (slope(y) + slope(z))
    return np.sum(ys**2)


def a_function_inside_reads_what_steps_bind(x):
    def slope():
        return 0.1 * np.roll(y, 1)

    def count():
        nonlocal n
        n += 1
        return n

    y, n, s = x, 0, 0.0
    for _ in range(5):
        y = y - slope()
        s = s + count() * np.sum(y)
    return s * n


def test_a_function_inside_shares_the_names_that_are_not_its_own():
    agree(a_function_inside_reads_what_steps_bind, X)
    agree(a_parameter_of_a_function_inside_has_the_name, X)
    what, text = report_of(a_parameter_of_a_function_inside_has_the_name, X)
    assert what == ["captured"], text
