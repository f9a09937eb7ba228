"""What one step of an inner loop does not show: numbers that differ in further steps decide what those do."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def a_while_writes_in_its_second_step(x):
    t, v, i = x[0], x * 1.0, -1
    while i < 2:
        i += 1
        j = -1
        while j < 2:
            j += 1
            if j % 2 == 0:
                t = 0.5 * t + v[0]
            else:
                v[1:] = 0.5 * v[:-1]
    return np.sum(v) + t


def so_does_one_within_an_if(x):
    t, v, i = x[0], x * 1.0, -1
    while i < 2:
        i += 1
        if i % 2 == 0:
            j = -1
            while j < 2:
                j += 1
                if j % 2 == 0:
                    t = 0.5 * t + v[0]
                else:
                    v[1:] = 0.5 * v[:-1]
    return np.sum(v) + t


def so_does_a_for_with_a_number_of_its_own(x):
    t, v = x[0], x * 1.0
    for _ in range(3):
        if t > -5:
            n = 0
            for _ in range(3):
                if n % 2 == 0:
                    t = 0.5 * t + v[0]
                else:
                    v[1:] = 0.5 * v[:-1]
                n += 1  # noqa: SIM113
    return np.sum(v) + t


def a_flag_says_which_step_is_the_first(x):
    m = np.outer(x, x)
    for i in range(4):
        if x[0] > -5:
            first, row = True, m[i]
            for j in range(3):
                if first:
                    first = False
                else:
                    row[j] = row[j - 1] * 0.5
    return np.sum(m * m)


def a_name_is_bound_in_the_third_step(x):
    s, v = 0.0, x * 1.0
    for i in range(4):
        if x[i] > 0.0:
            k = 0
            while k < 3:
                if k == 0:
                    v[i] = 0.5 * v[i - 1]
                elif k == 2:
                    s = s + x[i] * v[i]
                k += 1
    return np.sum(v) + s


def a_return_in_a_later_step(x):
    s, v = 0.0, x * 1.0
    for i in range(4):
        k = 0
        while k < 5:
            if k == 0:
                s = s + x[i]
            elif k == 1:
                v[i] = 0.5 * v[i - 1]
            elif k > 3 and i > 1:
                return np.sum(v) * s
            k += 1
    return np.sum(v)


def a_sign_that_alternates(x):
    v = x * 1.0
    for i in range(4):
        sign = x[0] * 0 + 1.0
        for _ in range(2):
            if sign > 0:
                v[i] = v[i] * 0.9
            else:
                v[i - 1] = v[i - 1] + v[i]
            sign = -sign
    return np.sum(v * v)


PROGRAMS = [
    a_while_writes_in_its_second_step, so_does_one_within_an_if, so_does_a_for_with_a_number_of_its_own,
    a_flag_says_which_step_is_the_first, a_name_is_bound_in_the_third_step, a_return_in_a_later_step,
    a_sign_that_alternates,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_what_later_steps_of_an_inner_loop_write_is_kept(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert what == ["captured", "captured"], text


def a_length_that_grows(x):
    s = x[0] * 0
    for i in range(40):
        n = 1
        for _ in range(2):
            s = s + np.sum(np.ones(n)) * x[i % 5]
            n += 1
    return s * s


def test_an_inner_loop_that_needs_its_numbers_is_looked_at_as_its_first_step_is():
    agree(a_length_that_grows, X)
    what, text = report_of(a_length_that_grows, X)
    assert what == ["captured", "recorded step by step"], text


def counts(x):
    """Which way is taken is counted in an array that the first look knows the numbers of."""
    t, v, c = x[0], x * 1.0, np.zeros(1)
    for _ in range(3):
        if t > -5:
            c[0] = 0.0
            for _ in range(3):
                if c[0] % 2 == 0:
                    t = 0.5 * t + v[0]
                else:
                    v[1:] = 0.5 * v[:-1]
                c[0] += 1
    return np.sum(v) + t


def test_a_write_that_no_look_has_shown_is_never_lost():
    agree(counts, X)


def test_a_guard_is_shown_at_the_line_of_its_if_and_not_at_the_end_of_its_body():
    def f(x):
        s = 0.0
        for i in range(3):
            names = [str(i)]  # no state
            if x[i] > 0:
                y = 2 * x
                s = s + y[i] * len(names)
        return s

    fast = fad.jit(f)
    fast(X)
    shown = fast.explain()
    assert shown.count(": if x[i] > 0") == 3, shown


TURNS = np.array([[0, 1], [1, 0], [-1, 2]])
PARTS = ["x", "y", "z"]


def streaming(x):
    u = np.stack([x, 0.5 * x, 0.1 * x])
    for _ in range(30):
        v = np.zeros_like(u)
        for i in range(3):
            v[i] = 0.9 * u[2 - i]
        for i in range(3):
            u[i] = np.roll(v[i], [2, 0, 1][i])
    return np.sum(u**2)


def by_names(x):
    u = x * 1.0
    for _ in range(30):
        for i in range(3):
            if PARTS[i] == "y":
                u[i] += 0.1
            else:
                u[i] *= 0.99
    return np.sum(u**2)


def of_growing_shapes(x):
    s = x * 1.0
    for t in range(30):
        for n in range(1, 4):
            s = s + 1e-3 * np.ones((n, 1)).sum(0) * t * np.sin(s)
    return np.sum(s)


@pytest.mark.parametrize("f", [streaming, by_names, of_growing_shapes], ids=lambda f: f.__name__)
def test_a_loop_is_captured_around_a_short_one_that_needs_the_number_of_its_step(f):
    x = np.array([0.3, -0.2, 0.5])
    agree(f, x)
    what, text = report_of(f, x)
    assert what[0] == "captured", text
