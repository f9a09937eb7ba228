"""Loops over a few numbers with an ``if`` in their body are one function, in the backward pass as well."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import fad
from fad.compile.targets.select import using


def compiled(f, *args):
    """Return f compiled for such arguments; all its loops must be functions that call nothing."""
    with using("llvm"):
        fast = fad.jit(f)
        for _ in range(2):
            fast(*args)
    assert "loops are one function each" in fast.explain(), fast.explain()
    assert "calls of NumPy" not in fast.explain(), fast.explain()
    return fast


def bouncing(x):
    """A ball that loses speed at the floor, until it is slow: positions and velocities in arrays of two numbers."""

    def step(state):
        place, speed = state
        place = place + 0.05 * speed
        speed = fad.cond(place[1] < 0.0, lambda v: v * np.array([0.9, -0.8]), lambda v: v - np.array([0.0, 0.1]), speed)
        return np.maximum(place, 0.0), speed

    place, speed = fad.while_loop(lambda s: np.sum(s[1] ** 2) > 0.04, step, (np.array([0.0, 1.0]), x))
    return np.sum(place * x) + np.sum(speed**2)


def untaken(x):
    """Every other step divides by zero in the branch that it does not take."""

    def step(state):
        k, y = state
        even = k % 2 == 0
        y = fad.cond(even, lambda y: y * 0.9, lambda y: y + 0.1 / np.sqrt(1.0 * k) * (k - 1.0) / (k % 2), y)
        return k + 1, y

    return np.sum(fad.while_loop(lambda s: s[0] < 31, step, (np.zeros((), int), x))[1] ** 2)


def nested(x):
    def step(state):
        k, y = state
        up = lambda y: fad.cond(y[0] > 2.0, lambda y: y[::-1] * 0.5, lambda y: y * 1.5, y)
        y = fad.cond(np.sum(y) > 1.0, up, lambda y: 0.7 * y + 0.4, y)
        return k + 1, y

    return np.sum(fad.while_loop(lambda s: s[0] < 25, step, (np.zeros((), int), x))[1])


PROGRAMS = {"bouncing": bouncing, "untaken": untaken, "nested": nested}
X = np.array([0.7, 1.3])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_with_branches_is_one_function_and_has_the_values_without_jit(name):
    f = PROGRAMS[name]
    np.testing.assert_array_equal(compiled(f, X)(X), f(X))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_backward_pass_of_a_loop_with_branches_is_one_function_for_each_loop(name):
    g = fad.grad(PROGRAMS[name])
    found, wanted = compiled(g, X)(X), g(X)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_another_argument_takes_other_branches(name):
    g = compiled(fad.grad(PROGRAMS[name]), X)
    for x in ([2.5, 0.1], [-0.4, 3.0], [1e-3, 0.5]):
        np.testing.assert_allclose(g(np.array(x)), fad.grad(PROGRAMS[name])(np.array(x)), rtol=1e-11, atol=1e-13)


def test_a_branch_with_many_operations_stays_a_branch():
    def long(y):
        for k in range(200):
            y = y * 0.999 + 0.001 * k
        return y

    def f(x):
        step = lambda s: (s[0] + 1, fad.cond(s[0] % 50 == 0, long, lambda y: y * 0.5, s[1]))
        return fad.while_loop(lambda s: s[0] < 120, step, (np.zeros((), int), x))[1]

    with using("llvm"):
        fast = fad.jit(f)
        for _ in range(2):
            found = fast(X)
    np.testing.assert_allclose(found, f(X), rtol=1e-14)
