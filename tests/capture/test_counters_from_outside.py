"""Integers that steps count in global variables, attributes and dictionaries, which are integers behind the call."""

import numpy as np
import pytest
from capture.agreement import agree_briefly, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
N = 30
CALLS, SEEN, TOTAL = 0, False, 0.0
LOG = {"n": 0, "last": None}


class Model:
    def __init__(self):
        self.calls = 0

    def slope(self, y):
        self.calls += 1
        return -0.5 * y


MODEL = Model()


def slope(y):
    global CALLS
    CALLS += 1
    return -np.sin(y)


def counted():
    return CALLS, SEEN, LOG["n"], MODEL.calls


def a_function_that_counts_its_calls(x):
    global CALLS
    y, CALLS = x[0], 0
    for i in range(N):
        y = y + 0.1 * slope(y + 0.05 * slope(y)) * x[i % 5]
    return y * CALLS


def in_the_loop_itself(x):
    global CALLS, SEEN
    y, CALLS, SEEN = x[0], 0, False
    for i in range(N):
        y = 0.9 * y + 0.1 * np.sin(x[i % 5] * i)
        if y > 0.2:
            CALLS += 1
        elif y < -0.1:
            SEEN = True
    return y * CALLS if SEEN else -y


def in_a_while_loop(x):
    global CALLS
    y, CALLS = x[2], 0
    while abs(y) > 0.3:
        y = y + 0.1 * slope(y)
    return y * CALLS


def in_an_inner_loop(x):
    global CALLS
    s, CALLS = 0.0, 0
    for k in range(9):
        y = x[k % 5]
        for _ in range(9):
            y = y + 0.1 * slope(y)
        s = s + y
    return s * CALLS


def in_objects(x):
    y, MODEL.calls, LOG["n"] = x[0], 0, 0
    for i in range(N):
        y = y + 0.1 * MODEL.slope(y) * x[i % 5]
        LOG["n"] += 2
    return y * MODEL.calls + LOG["n"]


def under_a_gradient(x):
    global CALLS
    CALLS = 0
    return np.sum(fad.grad(in_an_inner_loop)(x)) * CALLS


CAPTURED = [
    a_function_that_counts_its_calls, in_the_loop_itself, in_a_while_loop, in_an_inner_loop, in_objects,
    under_a_gradient,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_counts_is_captured_and_leaves_integers(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree_briefly(f, X)
    f(X)
    wanted = counted()
    for transform in (fad.jit, lambda f: fad.jit(fad.grad(f))):
        with fad.config.use(loops="capture"):
            transform(f)(X)
        assert counted() == wanted
        assert list(map(type, counted())) == [int, bool, int, int]


def test_a_count_that_nobody_reads_is_no_question():
    def f(x):
        while np.abs(x) > 0.3:
            x = x + 0.1 * slope(x)
        return x

    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for x in (1.0, 0.9, 0.8, 2.0):
            np.testing.assert_allclose(fast(np.float64(x)), f(x))
    assert "paths=1" in fast.explain()


def a_sum(x):
    global TOTAL
    y, TOTAL = x[0], 0.0
    for i in range(N):
        y = 0.9 * y + x[i % 5]
        TOTAL += y
    y, TOTAL = TOTAL, 0.0
    return y


def the_last_one(x):
    y = x[0]
    for i in range(N):
        y = 0.9 * y + x[i % 5]
        LOG["last"] = y
    LOG["last"] = None
    return y


@pytest.mark.parametrize("f", [a_sum, the_last_one], ids=lambda f: f.__name__)
def test_what_is_no_integer_is_left_to_python(f):
    assert "from outside of the function" in report_of(f, X)[1]
    agree_briefly(f, X)
