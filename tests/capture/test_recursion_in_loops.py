"""Loops whose steps call functions that call themselves, and end by values that differ from step to step."""

import numpy as np
from capture.agreement import agree, report_of

import fad

WEIGHTS = np.array([0.5, 0.3, 0.2])


def coefficient(i, t, x):
    """A coefficient of Gaussians' products: that it ends shows `t` alone, the counter of a loop."""
    if t < 0 or t > i:
        return 0.0
    if i == t == 0:
        return np.exp(-x)
    return coefficient(i - 1, t - 1, x) + x * coefficient(i - 1, t, x) + (t + 1) * coefficient(i - 1, t + 1, x)


def integral(x):
    total = 0.0
    for t in range(3):
        for u in range(3):
            for v in range(2):
                total += coefficient(2, t, x[0]) * coefficient(2, u, x[1]) * coefficient(1, v, x[2]) * WEIGHTS[u]
    return total


X = np.array([0.3, 0.7, 1.1])


def test_a_recursion_that_a_counter_ends_is_right():
    agree(integral, X)


def test_a_recursion_without_end_is_given_up_for_what_it_is():
    assert "a function calls itself" in report_of(integral, X)[1]


def test_a_recursion_of_known_depth_is_captured():
    def horner(coefficients, x):
        if not coefficients:
            return 0.0
        rest = horner(coefficients[1:], x)
        return coefficients[0] + x * rest if x > 0.5 else coefficients[0] - x * rest

    def f(x):
        y = x[0]
        for k in range(60):
            y = np.sin(horner((0.3, 0.2, 0.4, 0.1), y + x[1])) + 0.01 * k
        return y

    assert report_of(f, X)[0] == ["captured"]
    agree(f, X)
    assert np.isfinite(fad.grad(f)(X)).all()
