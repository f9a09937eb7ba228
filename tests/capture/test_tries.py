"""``try`` in the steps of captured loops: recorded as if nothing was raised, and left to Python where something is."""

import math

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
BAD = np.array([2.71, -0.42, 1.13, -2.33, 0.89])


class TooFar(Exception):
    pass


def a_solver_that_may_be_singular(x):
    u = np.ones(2)
    for i in range(20):
        a = np.array([[2.0 + x[0], x[1]], [x[1], 1.0 + 0.01 * i + x[3]]])
        if x[3] < -2:
            a = a * 0.0
        try:
            u = np.linalg.solve(a, 0.5 * u + 1.0)
        except np.linalg.LinAlgError:
            u = 0.5 * u
    return np.sum(u)


def an_error_of_its_own_ends_the_loop(x):
    y = x[2]
    for i in range(30):
        g = 2 * (y - x[0])
        try:
            new = y - 0.1 * g
            if abs(new) > 1.5:
                raise TooFar(i)
            y = new
        except TooFar:
            break
    else:
        y = y * 2
    return y**2 + 0.1 * i


def checked_root(v):
    try:
        return math.sqrt(1.5 + v)
    except ValueError:
        return 0.1 * v


def a_function_that_catches(x):
    s = 0.0
    for i in range(30):
        s = 0.9 * s + checked_root(x[i % 5]) * x[2]
    return s


def far(v):
    if abs(v) > 2.0:
        raise TooFar(float(v))
    return np.sin(v)


def with_else_and_finally(x):
    s, n, k = 0.0, 0, 0
    for i in range(30):
        try:
            v = far(x[i % 5])
        except TooFar as error:
            n += 1
            v = 0.01 * len(str(error))
        else:
            s = s + v
        finally:
            k += 1
        s = 0.8 * s
    return s + 0.1 * n + 0.01 * k + v


def tried_again_with_half_the_step(x):
    y, h = x[2], 2.0
    for _ in range(20):
        while True:
            try:
                new = y - h * (y - x[0]) + 0.01 * far(h)
            except TooFar:
                h = 0.5 * h
            else:
                break
        y = new
        h = min(1.1 * h, 1.9)
    return y


def within_each_other(x):
    s = 0.0
    for i in range(20):
        try:
            try:
                s = s + far(x[i % 5])
            except KeyError:
                s = s * 0.0
            s = s * 0.9
        except (TooFar, ValueError):
            s = s - 0.1
    return s


def it_writes_and_appends(x):
    u, seen = x * 1.0, []
    for i in range(20):
        try:
            u[i % 5] = 0.5 * far(u[i % 5]) + 0.1 * x[0]
            seen.append(u[0] * u[1])
        except TooFar:
            u[i % 5] = 0.3
            seen.append(u[2])
    return np.sum(u) + sum(seen)


def around_a_loop_that_a_handler_leaves(x):
    u = x * 1.0
    for i in range(20):
        try:
            for j in range(1, 5):
                try:
                    if u[i % 5] > 2.5:
                        raise TooFar(j)
                    u[j] = 0.9 * u[j] + 0.1 * u[j - 1]
                except TooFar:
                    break
        except ValueError:
            u[0] = 0.0
        u[i % 5] += 0.2 * np.tanh(x[1])
    return np.sum(u * x)


CAPTURED = [
    a_solver_that_may_be_singular, an_error_of_its_own_ends_the_loop, a_function_that_catches, with_else_and_finally,
    tried_again_with_half_the_step, within_each_other, it_writes_and_appends,
    around_a_loop_that_a_handler_leaves,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_try_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X)
    agree(f, 0.7 * X)


@pytest.mark.parametrize("loops", ["auto", "capture"])
@pytest.mark.parametrize("transform", [lambda f: f, fad.grad], ids=["value", "gradient"])
@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_what_a_handler_does_is_done_whichever_call_is_first(f, transform, loops):
    calls = [X, BAD, X, 0.9 * BAD, 0.8 * X, X]
    for start in (0, 1):
        fast = fad.jit(transform(f))
        for x in (*calls[start:], *calls[:start]):
            with fad.config.use(loops=loops):
                np.testing.assert_allclose(fast(x.copy()), transform(f)(x.copy()), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_one_element_of_a_batch_that_raises_is_enough(f):
    if f is a_solver_that_may_be_singular:
        return  # a batch is solved at once, and is singular as a whole
    fast = fad.jit(fad.vmap(f))
    for _ in range(2):
        np.testing.assert_allclose(fast(np.stack([X, 0.9 * X])), [f(X), f(0.9 * X)], rtol=1e-9)


def a_way_that_jumps_and_one_that_goes_on(x):
    s = 0.0
    for i in range(20):
        try:
            if s > 1.0:
                continue
            s = s + far(x[i % 5])
        except TooFar:
            s = s - 0.1
        s = s * 0.9
    return s


def a_finally_that_branches(x):
    s = 0.0
    for i in range(20):
        try:
            s = s + far(x[i % 5])
        except TooFar:
            pass
        finally:
            if s > 0.5:
                s = 0.1
    return s


def a_key_that_is_made_once(x):
    s, known = 0.0, {}
    for i in range(20):
        try:
            s = s + known["scale"] * x[i % 5]
        except KeyError:
            known["scale"] = x[0]
    return s


@pytest.mark.parametrize(
    "f",
    [a_way_that_jumps_and_one_that_goes_on, a_finally_that_branches, a_key_that_is_made_once],
    ids=lambda f: f.__name__,
)
def test_another_try_is_right(f):
    agree(f, X)
    agree(f, BAD, smooth=False)


def test_a_loop_that_raises_in_every_call_is_recorded_step_by_step():
    def f(x):
        y = x * 1.0
        for _ in range(3):
            for i in range(len(y)):
                try:
                    right = y[i + 1]
                except IndexError:
                    right = 0.0
                y[i] = 0.5 * y[i] + 0.4 * right
        return np.sum(y)

    x = np.linspace(1.0, 2.0, 200)
    fast = fad.jit(fad.grad(f))
    for _ in range(3):
        np.testing.assert_allclose(fast(x), fad.grad(f)(x), rtol=1e-12)
    assert "recorded step by step: it raises IndexError" in fast.explain()
    assert "hits=2" in fast.explain()
