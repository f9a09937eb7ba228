"""Gradients of loops without a known number of steps: what they push and pop is native code of one function."""

import numpy as np
import pytest
from natively import compiled

import fad

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
X, WEIGHTS = rng.normal(size=40), rng.integers(1, 12, 20)


def insertion_sort(x):
    a = x.copy()
    for i in range(1, len(a)):
        j = i
        while j > 0 and a[j - 1] > a[j]:
            a[j - 1], a[j] = a[j], a[j - 1]
            j = j - 1
    return np.sum(a * np.arange(len(a)))


def knapsack(v):
    best = np.zeros(81)
    for i in range(20):
        for w in range(80, WEIGHTS[i] - 1, -1):
            best[w] = max(best[w], best[w - WEIGHTS[i]] + v[i])
    return best[80]


def halved(x):
    """Push an array and a number in each step, as often as the values ask for."""
    a, total = np.sin(x), 0.0
    for _ in range(6):
        k = 0
        while np.sum(a * a) > 0.5 and k < 30:
            a = a * np.cos(a) * 0.9
            total = total + a[k % 5] * a[0]
            k = k + 1
        a = a + 0.2 * x
    return total + np.sum(a**3)


LOOPS = {"insertion sort": insertion_sort, "knapsack": knapsack, "arrays": halved}


@pytest.mark.parametrize("name", LOOPS)
def test_the_gradient_of_loops_of_unknown_length_is_that_without_jit(name):
    f = LOOPS[name]
    run = compiled(fad.value_and_grad(f), X)
    for x in (X, 2.0 * X, np.sort(X), np.sort(X)[::-1].copy(), np.abs(X)):
        value, gradient = run(x)
        expected, slope = fad.value_and_grad(f)(x)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", LOOPS)
def test_the_gradient_is_one_function_for_each_way_through_the_loops(name):
    assert "2 loops are one function each" in compiled(fad.grad(LOOPS[name]), X).explain()


def test_a_stack_grows_and_is_used_again_by_later_calls():
    def steps(x, n):
        k, y = 0, x
        while k < n:
            y = y + 0.1 * np.sin(y * np.arange(1.0, 5.0))
            k = k + 1
        return np.sum(y)

    run = compiled(fad.grad(steps), X[:4], 3)
    for n in (3, 1, 40, 0, 700, 5, 700):
        np.testing.assert_allclose(run(X[:4], n), fad.grad(steps)(X[:4], n), rtol=1e-10)
