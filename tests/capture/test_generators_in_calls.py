"""Generators in functions that steps call, in comprehensions, and given to enumerate, map, filter and accumulate."""

import itertools
import warnings

import numpy as np
import pytest
from agreement import report_of

import fad

N = 30
X = np.abs(np.random.default_rng(0).normal(size=20)) * 0.5
X[3:9] *= -1.0


def powers(a, n):
    p = 1.0
    for _ in range(n):
        yield p
        p = p * a


def series0(a):
    s = 0.0
    for p in powers(a, 10):
        s = s + p
    return s


def series1(a):
    s = 0.0
    for k, p in enumerate(powers(a, 10)):
        s = s + p / (k + 1)
    return s


def a_function_with_a_loop_over_one(x):
    s = x[0]
    for _i in range(N):
        s = 0.5 * s + 0.1 * series0(0.3 * s)
    return s


def enumerated(x):
    return series1(x[0])


def in_the_step_itself(x):
    s = x[0]
    for _i in range(N):
        for p in powers(0.3 * s, 10):
            s = s + 0.01 * p
        s = 0.5 * s
    return s


def a_function_with_an_enumerated_one(x):
    s = x[0]
    for _i in range(N):
        s = 0.5 * s + 0.1 * series1(0.3 * s)
    return s


def alone(x):
    s = 0.0
    for p in powers(x[0], N):
        s = s + p
    return s


def a_sum(x):
    return sum(p * p for p in powers(x[0], N))


def a_list_of_some(x):
    return max([p * x[1] for p in powers(x[0], N) if p > 0.01])


def mapped(x):
    s = 0.0
    for v in map(np.square, powers(x[0], N)):
        s = s + v
    return s


def filtered(x):
    s = 0.0
    for v in filter(lambda p: p > 0.1, x):
        s = s + v
    for v in filter(None, x):
        s = s + v
    for v in filter(lambda p: p > 0.1, []):
        s = s + v
    return s


def accumulated(x):
    s = 0.0
    for v in itertools.accumulate(x, lambda a, b: a * 0.9 + b, initial=2.0):
        s = s + v * v
    for v in itertools.accumulate(x):
        s = s + v * v
    for v in itertools.accumulate(range(5)):
        s = s + v * x[1]
    for v in itertools.accumulate([]):
        s = s + v
    for k, v in enumerate(itertools.accumulate(x, max), 1):
        s = s + v * k
    return s


def a_break(x):
    s = 0.0
    for v in filter(lambda p: p > 0.1, x):
        if v > 0.6:
            break
        s = s + v
    return s


def any_and_all(x):
    return any(p > 2 for p in powers(x[0] + 1, N)) * x[0] + all(p < 2 for p in filter(lambda v: v > 0, x)) * x[1]


def countdown(n, a):
    while n > 0:
        yield a * n
        n -= 1


def appended_to_a_list(x):
    out = []
    for i in range(6):
        for v in countdown(5, x[i]):
            out.append(v)
    return sum(out) + len(out)


def an_if(x):
    s = 0.0
    for v in countdown(20, x[0]):
        if v > 0.3:
            s += v
        else:
            s -= 0.1 * v
    return s


def written_into_an_array(x):
    a = np.zeros(20)
    for k, v in enumerate(countdown(20, x[0])):
        a[k] = v * 2
    return np.sum(a**2)


def in_a_branch(x):
    def f(a):
        s = 0.0
        for v in countdown(4, a):
            s += v
        return s

    s = x[0]
    for _i in range(N):
        if s < 1.0:
            s = s + 0.1 * f(0.2 * s)
        else:
            s = s * 0.9
    return s


def two_calls(x):
    def f(a):
        return sum(v * v for v in countdown(4, a))

    s = x[0]
    for _i in range(N):
        s = 0.5 * s + 0.01 * f(s) + 0.01 * f(s * s)
    return s


def sums_of_integers(x):
    return sum(1 for v in filter(lambda v: v > 0, x)) * x[0] + sum(k for k, v in enumerate(x) if v > 0) * x[1]


def a_method(x):
    class T:
        def __init__(self, h):
            self.h = h

        def walk(self, n):
            y = 1.0
            for _ in range(n):
                y = y - self.h * y
                yield y

        def total(self, n):
            t = 0.0
            for y in self.walk(n):
                t += y
            return t

    s = 0.0
    for i in range(20):
        s = s + T(0.1 * x[i]).total(5)
    return s


def an_else(x):
    s = 0.0
    for v in countdown(5, x[0]):
        s += v
    else:
        s *= 2
    return s


def accumulated_pairs(x):
    s = 0.0
    for a, b in itertools.accumulate(x, lambda st, v: (st[0] * 0.9 + v, st[1] + st[0]), initial=(x[0], 0.0)):
        s = s + a * b
    return s


def zipped(x):
    s = 0.0
    for a, b in zip(countdown(5, x[0]), x, strict=False):
        s += a * b
    return s


def one_of_another(x):
    def inner(a):
        yield from countdown(3, a)

    def outer(n):
        for i in range(n):
            for v in inner(x[i]):
                yield v * i

    s = 0.0
    for v in outer(8):
        s = s * 0.9 + v
    return s


def filtered_and_enumerated(x):
    s = 0.0
    for v in filter(lambda v: v > 0, countdown(10, x[0])):
        s += v
    for k, v in enumerate(filter(lambda v: v > 0, x)):
        s += k * v
    return s


def a_variable_of_both(x):
    scale = 1.0

    def gen():
        for i in range(10):
            yield x[i] * scale

    s = 0.0
    for v in gen():
        s += v
        scale = scale * 0.9
    return s


CAPTURED = [
    a_function_with_a_loop_over_one,
    enumerated,
    in_the_step_itself,
    a_function_with_an_enumerated_one,
    alone,
    a_sum,
    a_list_of_some,
    mapped,
    an_if,
    written_into_an_array,
    in_a_branch,
    two_calls,
    a_method,
    an_else,
    accumulated_pairs,
    one_of_another,
    filtered_and_enumerated,
    a_variable_of_both,
]
LEFT = [filtered, accumulated, a_break, any_and_all, appended_to_a_list, sums_of_integers, zipped]


@pytest.mark.parametrize("f", [*CAPTURED, *LEFT], ids=lambda f: f.__name__)
def test_a_loop_over_what_generators_give_is_right(f):
    slope = fad.grad(f)
    curve = fad.grad(lambda x: np.sum(slope(x) * np.cos(x)))
    batch = np.stack([X, X * 1.1])
    with fad.config.use(loops="capture"), warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fast, steep = fad.jit(f), fad.jit(slope)
        for x in (X, X, X * 1.1):
            np.testing.assert_allclose(fast(x), f(x), rtol=1e-10)
            np.testing.assert_allclose(steep(x), slope(x), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(fad.jit(fad.vmap(slope))(batch), fad.vmap(slope)(batch), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(fad.jit(curve)(X), curve(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_it_is_captured(f):
    report, text = report_of(f, X)
    assert report, text
    assert set(report) <= {"captured", "inside"}, text


def test_a_loop_over_what_filter_gives_is_reported_at_its_line():
    def f(x):
        s = 0.0
        for v in filter(lambda v: v > 0, x):
            s = s + v
        return s

    fast = fad.jit(f)
    with fad.config.use(loops="capture"):
        fast(X)
    assert f"loop at test_generators_in_calls.py:{f.__code__.co_firstlineno + 2}: captured: 20 steps" in fast.explain()
