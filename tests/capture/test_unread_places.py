"""What a step reads and does not use keeps its IndexError; what an `and` does not come to has none, and no effect."""

import math

import numpy as np
import pytest

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def beside_a_branch(x, n):
    s = 0.0
    for i in range(60):
        x[i // 10 + n]
        s = s + x[0] if s > 0.5 else s - x[1]
    return s


def of_a_test_that_decides_nothing(x, n):
    s = 0.0
    for i in range(60):
        v = x[i // 10 + n]
        if v > 10.0:
            v = 3.0
        s = s - x[1]
    return s


def in_a_branch(x, n):
    s = 0.0
    for i in range(60):
        if s > 0.5:
            x[i // 10 + n]
            s = s + x[0]
        else:
            s = s - x[1]
    return s


def in_a_while_loop(x, n):
    s, i = 0.0, 0
    while i < 60:
        x[i // 10 + n]
        s, i = s + x[0], i + 1
    return s


def in_a_branch_of_an_inner_while_loop(x, n):
    s = x[1]
    for _ in range(6):
        j = 0
        while j < 12:
            if s > 1.0:
                x[j // 2 + n]
            s, j = s + x[0], j + 1
    return s


def by_a_list(x, n):
    s = 0.0
    for i in range(60):
        x[[i // 10 + n, 0]]
        s = s + x[0]
    return s


def in_functions_of_cond_and_scan(x, n):
    def step(c, k):
        return fad.cond(c > 1.0, lambda c: (x[k + n], c + x[0])[1], lambda c: c * 2.0, c), None

    return fad.scan(step, x[0], np.arange(60) // 10)[0]


READING = [
    beside_a_branch, of_a_test_that_decides_nothing, in_a_branch, in_a_while_loop, in_a_branch_of_an_inner_while_loop,
    by_a_list, in_functions_of_cond_and_scan,
]  # fmt: skip


@pytest.mark.parametrize("loops", ["capture", "record"])
@pytest.mark.parametrize("transform", [lambda f: f, fad.grad], ids=["value", "gradient"])
@pytest.mark.parametrize("f", READING, ids=lambda f: f.__name__)
def test_an_element_that_is_not_there_is_an_error_though_nobody_uses_it(f, transform, loops):
    with fad.config.use(loops=loops):
        g = fad.jit(transform(f))
        for n in (-1, 0, 1, 1, -1):
            if n > -1:
                with pytest.raises(IndexError, match="out of bounds"):
                    g(X, np.int64(n))
            else:
                np.testing.assert_allclose(g(X, np.int64(n)), transform(f)(X, n), rtol=1e-12)


def behind_an_and(x):
    s = 0.0
    for i in range(60):
        s = s + x[0] if i // 10 + 1 < 5 and x[i // 10 + 1] > 0.5 else s + x[1]
    return s


def a_logarithm_behind_an_and(x):
    s = x[0]
    for _ in range(60):
        s = s - x[0] if s > 0.2 and math.log(s) > -1.0 else s + 0.1 * x[2]
    return s


def a_quotient_behind_an_or(x):
    s = 0.0
    for i in range(60):
        s = s + x[0] if i == 7 or x[0] / (i - 7) > 0.05 else s + x[1]
    return s


def a_row_that_is_written_behind_an_and(x):
    m, s = np.outer(x, x), x[0]
    for i in range(60):
        row = m[i % 5]
        m[i % 5, 0] = s * 0.1
        s = s - row[0] if s > 0.5 and row[int(s * 0.1)] > 0.1 else s + 0.1 * row[1] + 0.4
    return s


def a_flag_of_an_outer_step(x):
    s = x[0]
    for i in range(60):
        flag = s > 0.3
        for j in range(8):
            if flag and j + i // 15 + 1 < 5 and x[j + i // 15 + 1] > 0.5:
                s = s + 0.1 * x[1]
            else:
                s = s - 0.01 * x[0]
        if not flag:
            s = s + 1.0
    return s


ASKING = [
    behind_an_and, a_logarithm_behind_an_and, a_quotient_behind_an_or, a_row_that_is_written_behind_an_and,
    a_flag_of_an_outer_step,
]  # fmt: skip


@pytest.mark.parametrize("f", ASKING, ids=lambda f: f.__name__)
def test_a_loop_whose_test_does_not_come_to_what_may_raise_is_captured(f):
    with fad.config.use(loops="capture"):
        g, slope = fad.jit(f), fad.jit(fad.grad(f))
        for x in (X, X, 1.1 * X):
            np.testing.assert_allclose(g(x), f(x), rtol=1e-12)
            np.testing.assert_allclose(slope(x), fad.grad(f)(x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fad.jit(fad.vmap(f))(np.stack([X, 1.1 * X])), [f(X), f(1.1 * X)], rtol=1e-12)
    assert "captured" in g.explain(), g.explain()
    assert g.cache_info().misses == 1


def test_what_prints_behind_an_and_prints_in_the_steps_that_come_to_it(capsys):
    def is_large(s):
        fad.debug.print("asked")
        return s > 9.0

    def f(x):
        s = x
        for _ in range(60):
            s = s * 0.5 if s > 1.0 and is_large(s) else s + 0.03
        return s

    f(0.0)
    wanted = capsys.readouterr().out
    with fad.config.use(loops="capture"):
        g = fad.jit(f)
        for _ in range(2):
            g(0.0)
            assert capsys.readouterr().out == wanted
    assert "captured" in g.explain()
