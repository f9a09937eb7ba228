"""Loops whose state begins as a Python number, and becomes a NumPy scalar in some step: step control by min and max."""

import numpy as np
import pytest

import fad

P = np.array([1.0, 5.0])


def clipped(p):
    y, end = p
    t, h = 0.0, 0.01
    while t < end:
        h = min(h, end - t)
        y = y + h * np.sin(y)
        t += h
        h = max(h * 0.999, 1e-3)
    return y


def controlled(p):
    y, end = p
    t, h = 0.0, 0.01
    while t < end:
        y = y * (1 - h)
        t += h
        e = abs(h * y)
        h *= min(1.1, max(0.5, 0.9 * (1e-3 / (e + 1e-300)) ** 0.5))
    return y


def counted(p):
    y, end = p
    t, h = 0.0, 0.01
    for _ in range(700):
        h = min(h, end - t)
        y = y + h * np.sin(y)
        t += h
    return y


PROGRAMS = [clipped, controlled, counted]


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_loop_whose_step_is_clipped_is_captured(f):
    for jitted, plain in ((fad.jit(f), f), (fad.jit(fad.grad(f)), fad.grad(f))):
        for p in (P, P, P + [0.0, 0.5], P * 0.001):
            found, expected = jitted(p), plain(p)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
        assert ": captured: " in jitted.explain()


def divided(p):
    y, end = p
    t, h = 0.0, 1.0
    while t < end:
        h = min(h, end - t)
        y = y + 1.0 / h  # Python's number raises at zero
        t += 1.0
        h = h * 1e-10
    return y


def rooted(p):
    y, end = p
    t, h = 0.0, 1.0
    while t < end:
        h = min(h, end - t)
        y = y + abs((h - 1.0) ** 0.5)  # Python's number becomes complex below zero
        t += 1.0
        h = h * 0.9
    return y


def added(p):
    y, end = p
    t, h = 0.0, 0.01
    while t < end:
        h = min(h, end - t)
        y = y * 0.99 + ((h > 0.005) + (h > 0.001))  # Python's booleans count
        t += h
    return y


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f", [divided, rooted, added])
def test_where_pythons_numbers_do_otherwise_than_numpys_the_loop_does_as_python(f):
    J = fad.jit(f)
    for p in (np.array([1.0, 60.0]), np.array([1.0, 60.0]), np.array([1.0, 0.5])):
        results = []
        for g in (f, J):
            try:
                results.append(g(p))
            except ZeroDivisionError as error:
                results.append(str(error))
        assert np.array_equal(*results, equal_nan=True) if type(results[0]) is not str else results[0] == results[1]


def test_a_step_width_that_is_used_with_single_precision_keeps_it():
    def read_behind(p, q):
        y, end = p
        t, h = 0.0, 0.01
        while t < end:
            h = min(h, end - t)
            y = y + h * np.sin(y)
            t += 0.01
        return q * h

    def returned(p, q):
        y, end = p
        t, h = 0.0, 0.01
        for _ in range(700):
            h = min(h, end - t)
            y = y + h * np.sin(y)
            t += 0.01
            if y > 2.0:
                return q * h
        return q

    def narrow(p, q):
        _, end = p
        t, h = 0.0, 0.01
        while t < end:
            h = min(h, end - t)
            q = q + h * q
            t += 0.01
        return q

    q = np.ones(2, np.float32)
    for f in (read_behind, returned, narrow):
        J = fad.jit(f)
        for p in (P, P, P + [0.0, 0.005]):
            expected = f(p, q)
            found = J(p, q)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def root_by_break(a, x):
    for _ in range(50):
        d = (x * x - a) / (2 * x)
        x = x - d
        if abs(d) < 1e-12:
            break
    return x


def root_by_return(a, x):
    for _ in range(50):
        d = (x * x - a) / (2 * x)
        x = x - d
        if abs(d) < 1e-12:
            return x
    raise RuntimeError("no convergence")


def root_in_a_loop_without_end(a, x):
    n = 0
    while True:
        d = (x * x - a) / (2 * x)
        x = x - d
        if abs(d) < 1e-12:
            return x
        n += 1
        if n > 50:
            raise RuntimeError("no convergence")


@pytest.mark.parametrize("root", [root_by_break, root_by_return, root_in_a_loop_without_end])
def test_a_solver_in_every_step_is_captured_under_the_gradient_of_a_number(root):
    def f(a):
        total = 0.0
        for k in range(200):
            total = total + root(a, 1.0 + 0.01 * k) * np.exp(-0.01 * k)
        return total

    fast = fad.jit(fad.grad(f))
    for a in (2.0, 3.3, 0.5, 2.0):
        np.testing.assert_allclose(fast(a), fad.grad(f)(a), rtol=1e-12)
        np.testing.assert_allclose(fast(a), (f(a + 1e-6) - f(a - 1e-6)) / 2e-6, rtol=1e-7)
    assert fast.explain().count(": captured: ") == 2


def test_a_number_that_is_differentiated_widens_nothing_behind_a_loop():
    narrow = np.ones(3, np.float32)

    def f(a):
        s, t = 1.0, np.float64(0.0)
        for _ in range(300):
            s = s + 0.01 * (a - s)
            t = t + a
        return np.sum(narrow * s), (narrow * s, narrow * t)

    def both(a):
        return fad.value_and_grad(f, has_aux=True)(a)

    fast = fad.jit(both)
    for a in (2.0, 0.5, 2.0):
        for found, wanted in zip(fad.tree.leaves(fast(a)), fad.tree.leaves(both(a)), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert ": captured: " in fast.explain()
