"""Generators from which steps draw one element after the other, by next()."""

import inspect
import itertools

import numpy as np
import pytest
from capture.agreement import agree_briefly, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
N = 20


def swinging(angle, speed=0.0, h=0.1):
    while True:
        yield angle, speed
        speed = speed - h * np.sin(angle)
        angle = angle + h * speed


def decaying(v, rate):
    v, n = v + 0.0, 0
    while True:
        n += 1
        if n % 2:
            v = v * rate
        yield v
        later = v * 0.999
        v = later


class Pendulum:
    def __init__(self, angle):
        self.angle, self.speed = angle, 0.0

    def steps(self):
        while True:
            self.speed -= 0.1 * np.sin(self.angle)
            self.angle += 0.1 * self.speed
            yield self.angle


def drawn(x):
    g, s = swinging(x[0]), 0.0
    for i in range(N):
        angle, speed = next(g)
        s = s + 0.1 * i * angle * speed
    return s + next(g)[0]


def drawn_before_and_behind(x):
    g = decaying(x[0], 0.9)
    first, s = next(g), 0.0
    for _ in range(N):
        s = s + (next(g) - first) ** 2
    return s + next(g)


def two_at_once(x):
    a, b, s = decaying(x[0], 0.9), swinging(x[2], x[1]), 0.0
    for _ in range(N):
        s = s + next(a) * next(b)[0]
    return s


def in_some_steps(x):
    g = decaying(x[0], 0.9)
    v, s = next(g), 0.0
    for i in range(N):
        if i % 3 == 0:
            v = next(g)
        s = s + v * x[i % 5]
    return s


def in_a_while_loop(x):
    g, n = decaying(x[2], 0.9), 0
    v = next(g)
    while v > 0.3:
        v, n = next(g), n + 1
    return v * n


def in_an_inner_loop(x):
    g, s = decaying(x[0], 0.99), 0.0
    for k in range(9):
        own = decaying(x[2] + 0.01 * k, 0.9)
        for _ in range(9):
            s = s + next(g) * next(own)
    return s


def in_a_function(x):
    g = swinging(x[0], 0.2)

    def step(s):
        return s + next(g)[0] ** 2

    s = 0.0
    for _ in range(N):
        s = step(s)
    return s


def one_of_its_own(x):
    count = 0

    def counting(v):
        nonlocal count
        while True:
            count += 1
            yield v * count
            v = v * 0.9

    g, s = counting(x[0]), 0.0
    for _ in range(N):
        s = s + next(g)
    return s * count


def of_a_method(x):
    p = Pendulum(x[0])
    g, s = p.steps(), 0.0
    for _ in range(N):
        s = s + next(g)
    return s + p.speed


def of_an_array(x):
    def spreading(u):
        u = u.copy()
        while True:
            u[1:] += 0.1 * u[:-1]
            yield u.copy()

    g, s = spreading(x), 0.0
    for _ in range(N):
        s = s + np.sum(next(g) * x)
    return s


def in_loops_one_after_the_other(x):
    g, s = decaying(x[0], 0.9), 0.0
    for v in itertools.islice(g, 5):
        s = s + v
    for i, v in zip(range(4), g):  # noqa: B905
        s = s + i * v
    for v in g:
        s = s + v
        if v < 0.2:
            break
    s = s + next(g) + g.send(None)
    g.close()
    return s + next(g, x[1]) + inspect.isgenerator(g)


def several_beside_one_another(x):
    s = 0.0
    for i, p, (q, _) in zip(range(N), decaying(x[0], 0.9), swinging(x[2])):  # noqa: B905
        s = s + p * q * i
    for (q, r), p in zip(swinging(x[2]), decaying(x[4], 0.9)):  # noqa: B905
        s = s + q * r
        if p < 0.3:
            break
    return s


CAPTURED = [
    drawn, drawn_before_and_behind, two_at_once, in_some_steps, in_a_while_loop, in_an_inner_loop, in_a_function,
    one_of_its_own, of_a_method, of_an_array, in_loops_one_after_the_other, several_beside_one_another,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_draws_from_a_generator_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree_briefly(f, X)


def one_that_ends_behind_others(x):
    a, b, s = decaying(x[0], 0.9), swinging(x[2]), 0.0
    for p, (q, _), t in zip(a, b, np.linspace(0.0, 1.0, 5)):  # noqa: B905
        s = s + p * q * t
    return s + next(a) + next(b)[0]


def an_array_that_it_writes_again(x):
    def spreading(u):
        u = u.copy()
        while True:
            yield u
            u[1:] += 0.1 * u[:-1]

    g, s = spreading(x), 0.0
    first = next(g)
    for _ in range(5):
        u = next(g)
        s = s + np.sum(u * first)
    return s


def one_that_ends(x):
    def few(v):
        for _ in range(4):
            yield v
            v = 0.5 * v

    g, s = few(x[0]), 0.0
    for _ in range(6):
        s = s + next(g, x[1])
    return s


OTHERS = [one_that_ends_behind_others, an_array_that_it_writes_again, one_that_ends]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_a_generator_that_is_used_otherwise_is_right(f):
    agree_briefly(f, X)


def test_code_of_a_generator_runs_when_it_is_drawn_from():
    seen = []

    def counted(x):
        seen.append("begin")
        while True:
            seen.append("before")
            yield x
            seen.append("behind")

    def f(x):
        g = counted(x)
        seen.append("made")
        return next(g) + next(g)

    fad.jit(f)(1.0)
    assert seen == ["made", "begin", "before", "behind", "before"]
    with pytest.raises(TypeError, match="positional argument"):
        fad.jit(lambda x: next(counted()))(1.0)
