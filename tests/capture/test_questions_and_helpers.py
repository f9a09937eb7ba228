"""Questions whether a number is among others, conditions that bind names, and what a step makes to help itself."""

import functools

import numpy as np
import pytest
from capture.agreement import agree_briefly, report_of

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def among_numbers(x):
    s, saved = 0.0, {3, 7, 11.0, None}
    for i in range(30):
        if i in (1, 5, 9) or i % 10 in [3, 4]:
            s = s + x[i % 5]
        if i in saved and i % 5 not in frozenset((1, "a")):
            s = s * x[0]
    return s


def among_large_numbers(x):
    s, n = 0.0, 2**60
    for i in range(20):
        n = n + 1
        if n in (2**60 + 5, 2.0**60 + 4096.0) or i in (float("inf"), 3):
            s = s + x[i % 5]
        s = 0.9 * s
    return s


def a_condition_that_binds(x):
    v, n = x[2] + 1.0, 0
    while (r := v * v - 2.0) > 1e-3 or r < -1e-3:
        v, n = v - 0.1 * r, n + 1
    return v * n + r


def binding_in_the_first_operand(x):
    s = 0.0
    for i in range(30):
        v = x[i % 5]
        if (w := v * np.cos(s)) > 0.2 and w < 0.6:
            s = s + w
        s = s + (0.1 * u if (u := v * s) > 0.0 else -0.2 * u)
    return s


def partial_functions(x):
    def slope(rate, y, t):
        return t - rate * y

    y = x[0]
    for i in range(30):
        f = functools.partial(slope, x[1], t=0.1 * i)
        y = y + 0.1 * f(y + 0.05 * f(y))
    return y


def the_best_by_a_key(x):
    s, us, weights = 0.0, [x, 2 * x, x * x], [0.1, 0.5, 0.9]
    for i in range(30):
        v = np.sin(i * x[0])
        k = min(range(3), key=lambda j: abs(weights[j] - v))
        u = max(us, key=lambda u: np.sum(u * v))
        y, w = max([(v, 1.0), (x[1] + 0.1 * i, 2.0)], key=lambda pair: np.sin(pair[0]))
        weights[k] = 0.9 * weights[k] + 0.1 * v
        s = 0.9 * s + u[k] + y * w
    return s + weights[1]


class Slope:
    def __init__(self, rate):
        self.rate = rate

    def at(self, y):
        return self.rate * y


def objects_of_one_way(x):
    s = x[0]
    for i in range(30):
        if i % 3 == 0:
            f = lambda v: 0.1 * v * i / 30  # noqa: B023
            s = s + f(s)
        elif i % 3 == 1:
            slope = Slope(0.1 * s)
            s = s - slope.at(x[1])
        else:
            parts = {"s": s, "name": "text"}
            s = 0.9 * parts["s"]
    return s


CAPTURED = [
    among_numbers, a_condition_that_binds, binding_in_the_first_operand, partial_functions, objects_of_one_way,
    the_best_by_a_key,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree_briefly(f, X)


def test_integers_that_no_float_is_are_compared_as_python_compares_them():
    agree_briefly(among_large_numbers, X)


def a_function_that_is_kept(x):
    s, f = x[0], lambda v: 0.1 * v
    for i in range(10):
        if i % 3 == 0:
            f = lambda v: 0.2 * v
        s = s + f(s)
    return s


def test_a_function_that_later_steps_call_is_left_to_python():
    assert "step by step" in report_of(a_function_that_is_kept, X)[1]
    agree_briefly(a_function_that_is_kept, X)
